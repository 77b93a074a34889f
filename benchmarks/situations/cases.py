"""Situation cases against rivals: aggressive drivers, and four situations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import eventide as ev
from benchmarks.patterns.rivals import FLINK, AbsentError, Answer, Job, Task, ask
from benchmarks.race import Finding, at_least, at_most, race
from benchmarks.situations.data import ALIKE, devices, drivers
from benchmarks.situations.queries import (
    Ask,
    aggressive,
    four_of_devices,
    four_situations,
    simplified,
)
from benchmarks.situations.scan import changing, ended_of, matches_among, scan_matches
from benchmarks.situations.setting import (
    ARRIVING_ROWS,
    ASKED_COLUMNS,
    SituationSetting,
    arrivals,
    check_counts,
    check_rows,
    one_core,
    over_arrow,
    over_store,
    pushed,
    single_pushes,
    standing,
)
from benchmarks.situations.sql import duckdb_text, flink_text

HISTORY_SPEED = 4_600_000
LIVE_SPEED = 2_000_000
"""Events a second that one core has to take, at least."""
LEAST_OF_SPEED = at_least(1)
LEAST_OF_RIVALS = at_least(20)
LEAST_OF_SCAN = at_least(1)
MOST_OF_ALTERNATIVES = at_most(1.1)
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
        ended = ended_of(final, rows["derive"])
        ways["scan"] = partial(matches_among, final, ended)
        rows["scan"] = ways["scan"]()
        check_counts(
            final.name, {name: rows[name].num_rows for name in ("final", "kernel", "scan")}
        )
        del rows
        seconds = race(ways)
    count, took = events.num_rows, seconds.__getitem__
    scanned = took("derive") + took("scan")

    def final_line(rival: str, theirs: float) -> Finding:
        return Finding("final", took("final"), rival, theirs, LEAST_OF_SCAN, count)

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
        final_line("fed by our SITUATIONS rows: derived, then scanned", scanned),
        final_line("scan of bare arrays, derived by itself", took("kernel")),
    ]


def drivers_one_by_one(setting: SituationSetting) -> list[Finding]:
    """W1, single events: seconds from an event to all matches that it makes certain."""
    singles, ask = setting.sizes.singles, aggressive()
    before = 10 * singles
    events = setting.drivers.slice(0, before + singles)
    query = standing(ask, events.schema)
    # All cars are known, and some situations are under way.
    first = query.push(arrivals(events, before)[0]).to_arrow()
    with one_core():
        spent = single_pushes(query, arrivals(events, 1)[before:])
    found = first.num_rows + int(spent.rows.sum()) + query.finish().to_arrow().num_rows
    expected = over_arrow(ask, events).num_rows
    check_counts(f"{ask.name}, one by one", {"history": expected, "live": found})
    busy = spent.busy(changing(ask, events)[before:])
    return [
        Finding(f"pushed, {which}{name}", value)
        for which, each in (("", spent), (f"{busy.kept.sum():,} with changes or rows, ", busy))
        for name, value in each.percentiles.items()
    ]


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


RIVAL_CASES = (
    SituationCase(
        "aggressive drivers",
        "sharp acceleration before hard braking, both along with speeding, each of four relations "
        "(simplified: two), within 5 minutes; all threads share one core, to which the process is "
        "confined. The scan is in the manner of ISEQ. In one line it is fed as the paper fed its "
        "ISEQ, by the deriver of the system that it is compared with: its seconds are those of "
        "Eventide's own SITUATIONS query, rows and all, and of the scan over these rows. In the "
        "other it derives situations itself from bare arrays, with neither a query nor rows "
        "between: the harder rival, with the same target",
        drivers_on_one_core,
    ),
    SituationCase(
        "drivers one by one",
        "the same as a standing query: seconds until an event's matches are there; of all events, "
        "and of those at which a situation begins or ends, or that give rows",
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
)
