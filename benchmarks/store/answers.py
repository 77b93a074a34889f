"""Aggregates over ranges of time and in SQL, and the first answer after a crash."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.guard import MismatchError
from benchmarks.race import Finding, at_least, at_most, check_close, median_seconds
from benchmarks.sensors import MEASURED, STREAM
from benchmarks.store.cases import StoreCase
from benchmarks.store.child import CALLS, SMALL_ROWS, VALUE, aggregates
from benchmarks.store.setting import StoreSetting
from eventide.engines.history.answer import run_history
from eventide.instants import TimeRange
from eventide.lang.sql import plan_sql
from eventide.plan.tree import Plan
from eventide.store import Snapshot, StoredStream

PROJECT = Path(__file__).parents[2]
SHARES = {"100 %": 1.0, "10 %": 0.1, "1 %": 0.01, "0.1 %": 0.001}
SHORTEST = "0.1 %"
PLACES = 5
REPEATS = 20
DUCKDB = (
    f"SELECT avg({MEASURED}), min({MEASURED}), max({MEASURED}), stddev({MEASURED}), "
    f"count({MEASURED}) FROM {STREAM} WHERE ts >= make_timestamp(?) AND ts < make_timestamp(?)"
)
ACKNOWLEDGED = 30


def aggregates_by_duckdb(setting: StoreSetting, times: TimeRange) -> dict[str, float]:
    """Ask DuckDB, over a table of its own."""
    found = setting.many_duckdb.execute(DUCKDB, [times.start_us, times.end_us]).fetchone()
    return dict(zip((call.function for call in CALLS), found, strict=True))


def aggregates_by_polars(setting: StoreSetting, times: TimeRange) -> dict[str, float]:
    """Ask Polars, over the Parquet file."""
    value = pl.col(MEASURED)
    start, end = (
        pl.lit(at, pl.Int64).cast(pl.Datetime("us")) for at in (times.start_us, times.end_us)
    )
    frame = (
        pl.scan_parquet(setting.many_parquet)
        .filter((pl.col("ts") >= start) & (pl.col("ts") < end))
        .select(
            value.mean().alias("avg"),
            value.min().alias("min"),
            value.max().alias("max"),
            value.std().alias("stddev"),
            value.count().alias("count"),
        )
    )
    row: dict[str, float] = frame.collect(engine="streaming").row(0, named=True)
    return row


def ranges_of(setting: StoreSetting, share: float) -> list[TimeRange]:
    """Return ranges of a share of all time, placed at random; all of it only once."""
    whole = setting.many_range
    length = int((whole.end_us - whole.start_us) * share)
    free = whole.end_us - whole.start_us - length
    random = np.random.default_rng(int(1 / share))
    places = random.integers(0, free, PLACES) if free else np.zeros(1, np.int64)
    return [TimeRange(whole.start_us + int(at), whole.start_us + int(at) + length) for at in places]


def range_aggregates(setting: StoreSetting) -> list[Finding]:
    """Average, least, greatest, deviation and count of one attribute, over ranges of time."""
    snapshot = setting.many.snapshot()
    findings: list[Finding] = []
    ours: dict[str, float] = {}
    for name, share in SHARES.items():
        ranges = ranges_of(setting, share)
        for times in ranges:
            found = aggregates(snapshot, times)
            check_close(f"DuckDB, {name}", found, aggregates_by_duckdb(setting, times))
            check_close(f"Polars, {name}", found, aggregates_by_polars(setting, times))
        ours[name] = over(ranges, partial(aggregates, snapshot), REPEATS)
        for rival, ask in (("DuckDB", aggregates_by_duckdb), ("Polars", aggregates_by_polars)):
            theirs = over(ranges, partial(ask, setting), 3)
            findings.append(Finding(name, ours[name], rival, theirs, at_least(100)))
            if (name, rival) == (SHORTEST, "DuckDB"):
                findings.append(Finding(name, ours[name], rival, theirs, at_least(30)))
    first, last = ours["100 %"], ours[SHORTEST]
    slowest = max(ours, key=lambda name: ours[name])
    return [
        *findings,
        Finding("100 %", first, "0.1 %", last, at_most(2)),
        Finding(f"{slowest}, warm", ours[slowest], target=at_most(1e-4)),
    ]


def plain_aggregates(setting: StoreSetting) -> list[Finding]:
    """Aggregates without a window and the last rows, as SQL; DuckDB has a table of its own."""
    stored = setting.many
    sources = {STREAM: stored.snapshot()}
    findings: list[Finding] = []
    answered: list[float] = []
    for name, text in plain_texts(setting.many_range).items():
        plan = planned(text, sources)
        expected = answer_of_duckdb(setting, text)
        check_rows(f"DuckDB, {name}", run_history(plan, sources), expected)
        ours = median_seconds(partial(answer, text, sources), REPEATS)
        theirs = median_seconds(partial(answer_of_duckdb, setting, text), REPEATS)
        findings.append(Finding(name, ours, "DuckDB", theirs))
        answered.append(median_seconds(partial(run_history, plan, sources), REPEATS))
    slowest = max(answered[:-1])
    return [*findings, Finding("planned, slowest but by day", slowest, target=at_most(1e-3))]


def planned(text: str, sources: Mapping[str, Snapshot]) -> Plan:
    """Return the plan of a text over stored streams."""
    catalog = {name: source.schema for name, source in sources.items()}
    return plan_sql(text, catalog, indexed=catalog)


def answer(text: str, sources: Mapping[str, Snapshot]) -> pa.Table:
    """Plan a text, and answer it."""
    return run_history(planned(text, sources), sources)


def answer_of_duckdb(setting: StoreSetting, text: str) -> list[tuple[object, ...]]:
    """Ask DuckDB, over a table of its own."""
    rows: list[tuple[object, ...]] = setting.many_duckdb.execute(text).fetchall()
    return rows


def plain_texts(times: TimeRange) -> dict[str, str]:
    """Return what is asked, by name; by day comes last."""
    start = times.start_us + (times.end_us - times.start_us) * 45 // 100
    end = times.start_us + (times.end_us - times.start_us) * 55 // 100
    calls = f"COUNT(*), SUM({MEASURED}), AVG({MEASURED}), MIN({MEASURED}), MAX({MEASURED})"
    inside = f"ts >= make_timestamp({start}) AND ts < make_timestamp({end})"
    return {
        "count": f"SELECT COUNT(*) FROM {STREAM}",
        "newest time": f"SELECT MAX(ts) FROM {STREAM}",
        "five aggregates": f"SELECT {calls} FROM {STREAM}",
        "of a tenth of time": f"SELECT {calls} FROM {STREAM} WHERE {inside}",
        "last 10 rows": f"SELECT ts, {MEASURED} FROM {STREAM} ORDER BY ts DESC LIMIT 10",
        "by day": f"SELECT date_trunc('day', ts) AS day, {calls} FROM {STREAM} "
        "GROUP BY day ORDER BY day",
    }


def check_rows(who: str, found: pa.Table, expected: list[tuple[object, ...]]) -> None:
    """Compare rows; the last bits of floats are free."""
    rows = [tuple(row.values()) for row in found.to_pylist()]
    same = len(rows) == len(expected) and all(
        is_close(one, other)
        for row, wanted in zip(rows, expected, strict=True)
        for one, other in zip(row, wanted, strict=True)
    )
    if not same:
        message = f"{who}: {rows[:3]}, not {expected[:3]}"
        raise MismatchError(message)


def is_close(one: object, other: object) -> bool:
    """Whether two values are equal but for the last bits of floats."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other


def over(ranges: list[TimeRange], ask: Callable[[TimeRange], object], repeats: int) -> float:
    """Return the median seconds of an answer over all ranges, everything warm."""
    return median(median_seconds(partial(ask, times), repeats) for times in ranges)


def open_after_kill(setting: StoreSetting) -> list[Finding]:
    """Open a database whose writer was killed, and answer a first question."""
    few, many = (
        [opened_after_kill(stream) for _ in range(setting.sizes.kills)]
        for stream in (setting.few, setting.many)
    )
    sizes = setting.sizes
    opened = median(opened for opened, _ in many)
    at_first = median(opened for opened, _ in few)
    return [
        Finding(f"{sizes.many:,} events", opened, f"{sizes.few:,} events", at_first, at_most(2)),
        Finding(f"{sizes.many:,} events", opened, target=at_most(0.1)),
        Finding("and the first aggregate", median(answered for _, answered in many)),
    ]


def opened_after_kill(stream: StoredStream) -> tuple[float, float]:
    """Kill a process that appends; return what another needs to open, and to answer."""
    everything = stream.snapshot()
    before = aggregates(everything, everything.time_range)
    database = str(stream.path.parent.parent)
    safe = killed_while_appending(database)
    done = subprocess.run(child("open", database), check=True, cwd=PROJECT, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    batches = (found["rows"] - before["count"]) / SMALL_ROWS
    # The batch that was being written may be there, or not; all of it, or nothing.
    if batches not in {safe, safe + 1}:
        message = f"{batches} batches are there, and {safe} were acknowledged"
        raise MismatchError(message)
    total = before["avg"] * before["count"] + batches * SMALL_ROWS * VALUE
    check_close("open", found, {"count": found["rows"], "avg": total / found["rows"]})
    return float(found["opened"]), float(found["answered"])


def killed_while_appending(database: str) -> int:
    """Start a process that appends, kill it, and return how many batches it said were safe."""
    with subprocess.Popen(
        child("append", database), cwd=PROJECT, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(ACKNOWLEDGED):
            process.stdout.readline()
        process.kill()
        rest = process.stdout.read().split(b"\n")
    return ACKNOWLEDGED + len([line for line in rest if line])


def child(role: str, database: str) -> list[str]:
    """Return the command of a process of ours."""
    return [sys.executable, "-m", "benchmarks.store.child", role, database]


ANSWER_CASES = (
    StoreCase(
        "range aggregates",
        "avg, min, max, stddev and count of an attribute over ranges placed at random",
        range_aggregates,
    ),
    StoreCase(
        "plain aggregates",
        "aggregates without a window, and the last rows, as SQL text: planned and answered",
        plain_aggregates,
    ),
    StoreCase(
        "open after kill -9",
        "open and count, in a new process, imports aside; then load compiled code and aggregate",
        open_after_kill,
    ),
)
