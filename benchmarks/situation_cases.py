"""Situation cases against rivals: aggressive drivers, four situations, ever larger windows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eventide as ev
from benchmarks.pattern_rivals import FLINK, AbsentError, Answer, Job, Task, ask
from benchmarks.race import Finding, at_least, at_most, race
from benchmarks.situation_data import ALIKE, booleans, devices, drivers
from benchmarks.situation_queries import (
    BEFORE_OVERLAPS,
    Ask,
    aggressive,
    four_of_devices,
    four_situations,
    simplified,
)
from benchmarks.situation_scan import ended_of, matches_among, scan_matches
from benchmarks.situation_setting import (
    ARRIVING_ROWS,
    ASKED_COLUMNS,
    SituationSetting,
    arrivals,
    check_counts,
    check_rows,
    matches_in,
    one_core,
    over_arrow,
    over_store,
    pushed,
    single_pushes,
    standing,
)
from benchmarks.situation_sql import duckdb_text, flink_text

HISTORY_SPEED = 4_600_000
LIVE_SPEED = 2_000_000
"""Events a second that one core has to take, at least."""
LEAST_OF_SPEED = at_least(1)
LEAST_OF_RIVALS = at_least(20)
LEAST_OF_SCAN = at_least(1)
LEAST_OF_WIDE_SCAN = at_least(14)
MOST_OF_ALTERNATIVES = at_most(1.1)
MOST_OF_MEMORY = at_most(1.12)
WINDOWS_S = (500, 2_000, 10_000, 20_000, 100_000)
CHILD = "benchmarks.situation_child"
FLINK_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class SituationCase:
    """Something asked about situations, and how it is checked and measured."""

    name: str
    asked: str
    run: Callable[[SituationSetting], list[Finding]]
    spark: bool = False


def derived(ask: Ask, events: pa.Table) -> pa.Table:
    """Return the situations alone, as Eventide derives them."""
    return ev.sql(ask.situations, **{ask.stream: events}).to_arrow()


def check_aggressive(setting: SituationSetting) -> None:
    """Compare a few cars with DuckDB and the scan, and other ways of Eventide's with the first."""
    events = setting.sample
    connection = duckdb.connect()
    connection.register(aggressive().stream, events)
    for whole in (aggressive(), simplified()):
        final = whole.asking("starts", "final")
        expected = over_arrow(final, events)
        check_rows(f"{whole.name}, scan", expected, as_rows(scan_matches(final, events)))
        found = matches_among(final, ended_of(final, derived(final, events)))
        check_rows(f"{whole.name}, derived", expected, as_rows(found))
        rows = connection.sql(duckdb_text(final)).to_arrow_table()
        check_rows(f"{whole.name}, DuckDB", expected, rows)
        early = whole.asking("starts", "early")
        live = pushed(early, events.schema, arrivals(events, ARRIVING_ROWS))
        check_rows(f"{whole.name}, live", over_arrow(early, events), live)
        check_no_later(whole, expected, over_arrow(early, events))


def as_rows(found: pa.Table | int) -> pa.Table:
    """Return the rows of a scan that was asked for them."""
    assert isinstance(found, pa.Table)
    return found


def check_no_later(ask: Ask, final: pa.Table, early: pa.Table) -> None:
    """Every match that is found in the end was found before, and not later."""
    names = [name for name in final.column_names if name != "ts"]
    joined = final.join(early, names, join_type="left outer", right_suffix="_early")
    late = [
        found is None or found > end
        for found, end in zip(
            joined.column("ts_early").to_pylist(), joined.column("ts").to_pylist(), strict=True
        )
    ]
    check_counts(f"{ask.name}: late matches", {"none": 0, "early": sum(late)})


def speed(who: str, seconds: float, events: int, least: float) -> Finding:
    """Return a line whose target is events a second."""
    rival = f"{least / 1e6:g} M events/s"
    return Finding(who, seconds, rival, events / least, LEAST_OF_SPEED, events)


def drivers_on_one_core(setting: SituationSetting) -> list[Finding]:
    """W1: history from Arrow and from the store, live in batches, and the scan; on one core."""
    check_aggressive(setting)
    events, database = setting.drivers, setting.database
    full, simple = aggressive(), simplified()
    final = full.asking("starts", "final")
    batches = arrivals(events, ARRIVING_ROWS)
    ways: dict[str, Callable[[], Any]] = {
        "Arrow": partial(over_arrow, full, events),
        "simplified": partial(over_arrow, simple, events),
        "store": partial(over_store, full, database),
        "live": partial(pushed, full, events.schema, batches),
        "final": partial(over_arrow, final, events),
        "derive": partial(derived, final, events),
        "kernel": partial(scan_matches, final, events),
    }
    with one_core():
        rows = {name: way() for name, way in ways.items()}
        check_counts(full.name, {name: rows[name].num_rows for name in ("Arrow", "store", "live")})
        check_counts(final.name, {name: rows[name].num_rows for name in ("final", "kernel")})
        ended = ended_of(final, rows["derive"])
        ways["scan"] = partial(matches_among, final, ended)
        seconds = race(ways)
    count, took = events.num_rows, seconds.__getitem__
    scanned = took("derive") + took("scan")
    return [
        speed("Arrow", took("Arrow"), count, HISTORY_SPEED),
        speed("store", took("store"), count, HISTORY_SPEED),
        speed(f"live, {ARRIVING_ROWS:,} at a time", took("live"), count, LIVE_SPEED),
        Finding(
            "Arrow, full",
            took("Arrow"),
            "simplified",
            took("simplified"),
            MOST_OF_ALTERNATIVES,
            count,
        ),
        Finding("final", took("final"), "derived, then scanned", scanned, LEAST_OF_SCAN, count),
        Finding("final", took("final"), "scan of bare arrays", took("kernel"), events=count),
    ]


def drivers_one_by_one(setting: SituationSetting) -> list[Finding]:
    """W1, single events: seconds from an event to all matches that it makes certain."""
    events = setting.drivers
    batches = arrivals(events.slice(0, 20 * setting.sizes.singles), 1)
    half = len(batches) // 2
    query = standing(aggressive(), events.schema)
    # All cars are known, and some situations are under way.
    query.push(pa.Table.from_batches(batches[:half]).combine_chunks().to_batches()[0])
    with one_core():
        p50, p99 = single_pushes(query, batches[half : half + setting.sizes.singles])
    return [Finding("pushed, p50", p50), Finding("pushed, p99", p99)]


def against_duckdb(pattern: Ask, events: pa.Table) -> tuple[Finding, pa.Table]:
    """Time a pattern and DuckDB's words for it, which give the same rows; all cores."""
    connection = duckdb.connect()
    connection.register(pattern.stream, events)
    text = duckdb_text(pattern)
    ways: dict[str, Callable[[], pa.Table]] = {
        "Eventide": partial(over_arrow, pattern, events),
        "DuckDB": lambda: connection.sql(text).to_arrow_table(),
    }
    rows = {name: way() for name, way in ways.items()}
    check_rows(f"{pattern.name}, DuckDB", rows["Eventide"], rows["DuckDB"])
    seconds = race(ways)
    count = events.num_rows
    line = Finding(
        f"Arrow, {count:,}",
        seconds["Eventide"],
        "DuckDB",
        seconds["DuckDB"],
        LEAST_OF_RIVALS,
        count,
    )
    return line, rows["Eventide"]


def four_of_drivers(setting: SituationSetting) -> list[Finding]:
    """Four situations, three constraints of six relations: against DuckDB and Flink SQL."""
    pattern = four_situations()
    found, _ = against_duckdb(pattern, setting.drivers)
    some = drivers(setting.sizes.of(0.1)).select(ASKED_COLUMNS)
    expected = over_arrow(pattern, some)
    seconds = race({"": partial(over_arrow, pattern, some)})[""]
    ours = Finding(f"Arrow, {some.num_rows:,}", seconds, events=some.num_rows)
    return [found, *against_flink(setting, pattern, some, ours, expected)]


def against_flink(
    setting: SituationSetting, pattern: Ask, events: pa.Table, ours: Finding, expected: pa.Table
) -> Iterator[Finding]:
    """Complete a line with Flink's side, once it has given the same rows."""
    try:
        answer, rows = asked_of_flink(setting, pattern, events)
    except AbsentError as absent:
        yield replace(ours, rival=f"none: {absent}")
        return
    # Of no rows at all, pandas does not know the types.
    check_rows(f"{pattern.name}, PyFlink", expected, rows.cast(expected.schema))
    setting.versions["PyFlink"] = answer.version
    run = answer.runs[-1]
    yield replace(ours, rival="PyFlink, net", theirs=run.net, target=LEAST_OF_RIVALS)
    yield replace(ours, rival="PyFlink, raw", theirs=run.seconds)


def asked_of_flink(
    setting: SituationSetting, pattern: Ask, events: pa.Table
) -> tuple[Answer, pa.Table]:
    """Return how Flink did over events, after a run over a sample, and its rows."""
    sample = events.slice(0, setting.sizes.of(0.002))
    rows = setting.folder / "flink-rows.parquet"
    columns = {pattern.key: "BIGINT", "ts": "TIMESTAMP(3)"}
    columns |= {f"{letter}_start": "TIMESTAMP(3)" for letter in pattern.letters}
    jobs = (
        Job(str(setting.parquet(pattern.stream, sample)), count=False),
        Job(str(setting.parquet(pattern.stream, events)), rows=str(rows), count=False),
    )
    task = Task(flink_text(pattern), pattern.stream, columns, FLINK_BATCH, jobs)
    answer = ask(FLINK, task, setting.rivals)
    return answer, pq.read_table(rows).select(list(columns))


def four_of_one_device(setting: SituationSetting) -> list[Finding]:
    """The same over one key with a long history, where DuckDB joins all with all."""
    events = devices(setting.sizes.of(0.3), 1, [ALIKE] * 4)
    return [against_duckdb(four_of_devices(), events)[0]]


def changes(events: pa.Table) -> pa.Table:
    """Return only the events at which some boolean changes."""
    changed = np.zeros(events.num_rows, np.bool_)
    for name in events.column_names[1:]:
        held = events.column(name).to_numpy()
        changed |= np.concatenate([held[:1], held[1:] != held[:-1]])
    return events.filter(pa.array(changed))


def wide_windows(setting: SituationSetting) -> list[Finding]:
    """W2: how time grows with the window, early and against a linear scan."""
    events = booleans(setting.sizes.of(1), [ALIKE] * 3)
    bare = changes(events)
    findings: list[Finding] = []
    for within_s in WINDOWS_S:
        early = BEFORE_OVERLAPS.within(within_s)
        final = early.asking("count", "final")
        target = LEAST_OF_WIDE_SCAN if within_s == WINDOWS_S[-1] else None
        for what, read in (("", events), (", changes only", bare)):
            ways: dict[str, Callable[[], Any]] = {
                "early": partial(over_arrow, early, read),
                "final": partial(over_arrow, final, read),
                "linear scan": partial(scan_matches, final, read, early_break=False),
                "scan with early break": partial(scan_matches, final, read),
            }
            with one_core():
                rows = {name: way() for name, way in ways.items()}
                counts = {name: rows[name] for name in ("linear scan", "scan with early break")}
                counts["final"] = matches_in(rows["final"])
                check_counts(f"{early.name}, {within_s} s", counts)
                seconds = race(ways)
            line = partial(Finding, f"w = {within_s:,} s{what}", seconds["final"])
            findings.append(
                Finding(f"w = {within_s:,} s, early{what}", seconds["early"], events=len(read))
            )
            findings.append(line("linear scan", seconds["linear scan"], target, events=len(read)))
            broken = "scan with early break"
            findings.append(line(broken, seconds[broken], events=len(read)))
    return findings


def memory(setting: SituationSetting) -> list[Finding]:
    """W2: the most memory that a process of its own has, live, in a narrow and in wide windows."""
    events = setting.sizes.of(0.5)
    peaks = {within_s: peak_of(events, within_s) for within_s in WINDOWS_S}
    narrow = WINDOWS_S[0]
    return [
        Finding(
            f"MB, w = {within_s:,} s",
            peaks[within_s],
            f"MB, w = {narrow:,} s",
            peaks[narrow],
            MOST_OF_MEMORY if within_s == WINDOWS_S[-1] else None,
        )
        for within_s in WINDOWS_S[1:]
    ]


def peak_of(events: int, within_s: int) -> float:
    """Return the megabytes of a process that answers."""
    command = [sys.executable, "-m", CHILD, str(events), str(within_s)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(said.splitlines()[-1])["peak_mb"])


RIVAL_CASES = (
    SituationCase(
        "aggressive drivers",
        "sharp acceleration before hard braking, both along with speeding, each of four relations "
        "(simplified: two), within 5 minutes; all threads share one core, to which the process is "
        "confined; the scan is in the manner of ISEQ, over situations that Eventide has derived",
        drivers_on_one_core,
    ),
    SituationCase(
        "drivers one by one",
        "the same as a standing query: seconds until an event's matches are there",
        drivers_one_by_one,
    ),
    SituationCase(
        "four situations",
        "four situations, three constraints of six relations each, all over; DuckDB finds "
        "situations with a window function and joins them, Flink SQL with MATCH_RECOGNIZE and "
        "joins them by ranges of event time; all cores",
        four_of_drivers,
    ),
    SituationCase(
        "four situations, long history",
        "the same relations of one key that has been there for long; all cores",
        four_of_one_device,
    ),
    SituationCase(
        "W2 windows",
        "A before B, B overlaps C, only counted, in ever larger windows; one core; the scan has "
        "bare arrays; of all events, and of those at which something begins or ends",
        wide_windows,
    ),
    SituationCase(
        "W2 memory",
        "the same live in a process of its own: the most memory it has had",
        memory,
    ),
)
