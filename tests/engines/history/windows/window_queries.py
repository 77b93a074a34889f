"""Windows over stored streams for the tests of the index: queries, ways to run them, streams."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.engines.history.replay import run_slice
from eventide.engines.history.slices import Slice
from eventide.engines.history.weights import Weights
from eventide.engines.history.windows.count_index import CountIndex
from eventide.engines.history.windows.index import WindowIndex, window_access
from eventide.instants import ALL_TIME, TimeRange
from eventide.lang.sql import plan_sql
from eventide.plan.tree import Plan
from eventide.schema import Schema
from eventide.store import Snapshot
from eventide.store.options import Order, StreamOptions
from tests.store.events import new_stream, table, tiny_files
from tests.store.history import (
    FIRST_TS,
    LAST_TS,
    TYPES,
    History,
    Pools,
    options,
    pools,
    seeds,
)
from tests.store.reading.test_aggregate import LANES, SPEEDS

WEIGHTS = Weights()
EXACT = [f"{each}({name})" for name in TYPES for each in ("count", "min", "max")]
SUMS = ["sum(speed)", "avg(speed)", "avg(lane)", "sum(price)", "avg(price)"]
time_ranges = st.just(ALL_TIME) | st.builds(
    lambda start, length: TimeRange(start, start + length),
    st.integers(FIRST_TS - 5, LAST_TS),
    st.integers(0, 80),
)

rows_of_cars = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-40, 80) | st.sampled_from([500, 505, 900]),
            "speed": st.none() | st.integers(0, 9).map(float),
            "lane": st.integers(0, 3),
        }
    ),
    max_size=60,
)
orders: st.SearchStrategy[Order] = st.sampled_from(["time", "arrival"])
CALLS = ["count(*)", "count(speed)", "sum(speed)", "avg(lane)", "min(speed)", "max(lane)"]
NAMED = (
    ("a0", "count(*)", "ts"),
    ("a1", "count", "speed"),
    ("a2", "sum", "speed"),
    ("a3", "avg", "lane"),
    ("a4", "min", "speed"),
    ("a5", "max", "lane"),
)
"""`CALLS` as their twins take them."""
many_values = st.tuples(pools, st.lists(SPEEDS, min_size=1), st.lists(LANES, min_size=1)).map(
    lambda drawn: {**drawn[0], "speed": drawn[1], "lane": drawn[2]}
)
"""The values of every type that events of a random past have."""
DrawnHistory = tuple[StreamOptions, Pools, int]
histories: st.SearchStrategy[DrawnHistory] = st.tuples(options, many_values, seeds)
"""What a random past is made from: options of the stream, values, the seed of its steps."""

RANDOM = np.random.default_rng(4)
COUNT = 100_000  # seven leaves
NOISE = RANDOM.normal(20, 5, COUNT)
WITH_NAN = np.where(NOISE > 30, np.nan, NOISE)
INFINITE = np.where(NOISE > 38, np.inf, NOISE)
JITTER = np.cumsum(RANDOM.integers(0, 21, COUNT))
TIED = np.sort(RANDOM.integers(0, 40, COUNT)) * 30_000

ENCODINGS = [
    pytest.param(NOISE, None, id="doubles as they are, at even distances"),
    pytest.param(NOISE, JITTER, id="times at uneven distances"),
    pytest.param(NOISE, TIED, id="many events at once"),
    pytest.param(NOISE, np.full(COUNT, 77), id="all events at once"),
    pytest.param(np.round(NOISE), None, id="few different values"),
    pytest.param(WITH_NAN, None, id="nulls"),
    pytest.param(INFINITE, None, id="infinities"),
]
"""Values and times of streams whose leaves are encoded in different ways."""


def hop(calls: list[str], size: int, slide: int, rest: str = "") -> str:
    """Return a query for aggregates of windows, named a0, a1, and so on."""
    items = ", ".join(f"{call} AS a{i}" for i, call in enumerate(calls))
    window = f"HOP(ts, INTERVAL '{slide} us', INTERVAL '{size} us')"
    return f"SELECT window_start, window_end, {items} FROM cars {rest} GROUP BY {window}"


def by_count(calls: list[str], size: int, slide: int, rest: str = "") -> str:
    """Return a query for aggregates of windows by count, named in the same way."""
    items = ", ".join(f"{call} AS a{i}" for i, call in enumerate(calls))
    window = f"HOP(ROWS, {slide}, {size})"
    return f"SELECT window_start, window_end, {items} FROM cars {rest} GROUP BY {window}"


def planned(snapshot: Snapshot, text: str) -> Plan:
    return plan_sql(text, {"cars": snapshot.schema})


def within(times: TimeRange) -> str:
    if times == ALL_TIME:
        return ""
    start, end = (np.datetime64(us, "us") for us in (times.start_us, times.end_us))
    return f"WHERE ts >= TIMESTAMP '{start}' AND ts < TIMESTAMP '{end}'"


def from_index(snapshot: Snapshot, plan: Plan) -> pa.Table:
    access = window_access(plan, snapshot, WEIGHTS)
    assert isinstance(access, WindowIndex | CountIndex), access
    rows, cost = access.run()
    assert cost.blocks == access.estimate.blocks
    return pa.Table.from_batches(rows, build_tree(plan).output_schema)


def from_replay(snapshot: Snapshot, plan: Plan) -> pa.Table:
    tree = build_tree(plan)
    whole = Slice(ALL_TIME, tree.scan.time_range, snapshot.row_count)
    return pa.Table.from_batches(run_slice(plan, snapshot, whole), tree.output_schema)


def spelled(table: pa.Table) -> list[list[str]]:
    """Return what tells values apart, but for the two zeros, of which engines keep one."""
    return [
        [repr(0.0 if isinstance(each, float) and each == 0 else each) for each in row.values()]
        for row in table.to_pylist()
    ]


def check_close(found: pa.Table, expected: pa.Table) -> None:
    assert found.num_rows == expected.num_rows
    for ours, theirs in zip(found.to_pylist(), expected.to_pylist(), strict=True):
        for name, value in theirs.items():
            if isinstance(value, float):
                assert ours[name] == pytest.approx(value, rel=1e-12, abs=0.0, nan_ok=True)
            else:
                assert ours[name] == value


def check_every_type(snapshot: Snapshot, query: Callable[[list[str]], str]) -> None:
    """Hold what the index says of attributes of every type against a replay."""
    plan = planned(snapshot, query(["count(*)", *EXACT]))
    assert spelled(from_index(snapshot, plan)) == spelled(from_replay(snapshot, plan))
    plan = planned(snapshot, query(SUMS))
    check_close(from_index(snapshot, plan), from_replay(snapshot, plan))


def check_any_history(drawn: DrawnHistory, query: Callable[[list[str]], str]) -> None:
    """Hold the windows of any stored history against those of its replay."""
    chosen, values, seed = drawn
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        snapshot = History.new(Path(folder), chosen, values, seed, steps=8).stream.snapshot()
        check_every_type(snapshot, query)


def stored(folder: Path, rows: list[dict[str, Any]], appends: int, order: Order) -> Snapshot:
    """Return a stream that rows came to in several appends, some of them flushed, some not."""
    stream = new_stream(folder, options=StreamOptions(order=order))
    for part in range(appends):
        stream.append(table(rows[part::appends]))
        if part == 1:
            stream.flush()
    return stream.snapshot()


def arrived(rows: list[dict[str, Any]], appends: int) -> list[dict[str, Any]]:
    """Return the events of such a stream, with their numbers."""
    in_order = [row for part in range(appends) for row in rows[part::appends]]
    return [{**row, "_seq": number} for number, row in enumerate(in_order)]


def plain(found: pa.Table) -> list[dict[str, Any]]:
    """Return rows as twins have them: times in microseconds."""
    return [
        {name: us(value) if isinstance(value, datetime) else value for name, value in row.items()}
        for row in found.to_pylist()
    ]


def us(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1)) // (datetime.resolution)


def sensor(
    folder: Path, values: np.ndarray[Any, Any], ts: np.ndarray[Any, Any] | None = None
) -> Snapshot:
    """Return a stream with leaves of usual size, all of them in segments."""
    stream = new_stream(folder, schema=Schema.of({"speed": "float64", "lane": "int64"}))
    times = np.arange(len(values)) * 10 if ts is None else ts
    lanes = pa.array(np.arange(len(values)) % 7)
    speeds = pa.array(values, from_pandas=True)
    stream.append(
        pa.table({"ts": pa.array(times, pa.timestamp("us")), "speed": speeds, "lane": lanes})
    )
    stream.flush()
    return stream.snapshot()
