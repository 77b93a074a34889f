"""Windows from the index: the rows of a replay, and of the definition, whatever was stored how."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.batch import ALL_TIME, TimeRange
from eventide.engines import window_index
from eventide.engines.build import build_pipeline
from eventide.engines.history import run_slice
from eventide.engines.slices import Slice
from eventide.engines.weights import Weights
from eventide.engines.window_index import WindowIndex, replay_seconds, window_access
from eventide.errors import EvaluationError, StoreError
from eventide.lang.sql import plan_sql
from eventide.plan.expressions import Call, Column, Named
from eventide.plan.nodes import Plan, Project, WindowAggregate
from eventide.schema import FLOAT64, TIMESTAMP, TS, Schema
from eventide.store import Snapshot
from eventide.store.options import Order, StreamOptions
from eventide.store.reading import spans
from tests.naive import windows as naive
from tests.store.events import new_stream, table, tiny_files
from tests.store.history import FIRST_TS, LAST_TS, TYPES, History, options, pools, seeds
from tests.store.test_aggregate import LANES, SPEEDS

WEIGHTS = Weights()
EXACT = [f"{each}({name})" for name in TYPES for each in ("count", "min", "max")]
SUMS = ["sum(speed)", "avg(speed)", "avg(lane)", "sum(price)", "avg(price)"]
DEVIATIONS = [f"stddev({name})" for name in ("speed", "lane", "price")]
lengths = st.integers(1, 60)
time_ranges = st.just(ALL_TIME) | st.builds(
    lambda start, length: TimeRange(start, start + length),
    st.integers(FIRST_TS - 5, LAST_TS),
    st.integers(0, 80),
)


def hop(calls: list[str], size: int, slide: int, rest: str = "") -> str:
    """Return a query for aggregates of windows, named a0, a1, and so on."""
    items = ", ".join(f"{call} AS a{i}" for i, call in enumerate(calls))
    window = f"HOP(ts, INTERVAL '{slide} us', INTERVAL '{size} us')"
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
    assert isinstance(access, WindowIndex), access
    rows, cost = access.run()
    assert cost.blocks == access.estimate.blocks
    return pa.Table.from_batches(rows, build_pipeline(plan).output_schema)


def from_replay(snapshot: Snapshot, plan: Plan) -> pa.Table:
    pipeline = build_pipeline(plan)
    whole = Slice(ALL_TIME, pipeline.scan.time_range, snapshot.row_count)
    return pa.Table.from_batches(run_slice(plan, snapshot, whole), pipeline.output_schema)


def spelled(table: pa.Table) -> list[list[str]]:
    """Return what tells values apart, but for the two zeros, of which engines keep one."""
    return [
        [repr(0.0 if isinstance(each, float) and each == 0 else each) for each in row.values()]
        for row in table.to_pylist()
    ]


def check_close(found: pa.Table, expected: pa.Table, room: float) -> None:
    assert found.num_rows == expected.num_rows
    for ours, theirs in zip(found.to_pylist(), expected.to_pylist(), strict=True):
        for name, value in theirs.items():
            if isinstance(value, float):
                assert ours[name] == pytest.approx(value, rel=1e-12, abs=room, nan_ok=True)
            else:
                assert ours[name] == value


@settings(deadline=None, max_examples=25)
@given(
    options,
    st.tuples(pools, st.lists(SPEEDS, min_size=1), st.lists(LANES, min_size=1)),
    seeds,
    st.tuples(lengths, lengths),
    time_ranges,
)
def test_any_history_has_the_windows_of_its_replay(
    chosen: StreamOptions,
    values: tuple[dict[str, list[object]], list[object], list[object]],
    seed: int,
    window: tuple[int, int],
    times: TimeRange,
) -> None:
    found = {**values[0], "speed": values[1], "lane": values[2]}
    size, slide = window
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), chosen, found, seed, steps=8)
        snapshot = history.stream.snapshot()
        if snapshot.known_range != snapshot.time_range:
            return  # thinned: see below
        plan = planned(snapshot, hop(["count(*)", *EXACT], size, slide, within(times)))
        replayed = from_replay(snapshot, plan)
        assert spelled(from_index(snapshot, plan)) == spelled(replayed)
        plan = planned(snapshot, hop(SUMS, size, slide, within(times)))
        check_close(from_index(snapshot, plan), from_replay(snapshot, plan), 0.0)
        plan = planned(snapshot, hop(DEVIATIONS, size, slide, within(times)))
        largest = max((abs(float(each)) for each in found["price"] if each is not None), default=0)  # type: ignore[arg-type]
        room = max(1e-7 * largest, 1e-13 * 2.0**63)
        check_close(from_index(snapshot, plan), from_replay(snapshot, plan), room)


def test_sums_of_integers_that_do_not_fit_are_the_same_error(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    stream.append(table([{"ts": ts, "lane": 2**62} for ts in range(5)]))
    plan = planned(stream.snapshot(), hop(["sum(lane)"], 4, 2))
    for way in (from_index, from_replay):
        with pytest.raises(EvaluationError, match=r"sum\(lane\) does not fit"):
            way(stream.snapshot(), plan)


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


@settings(deadline=None, max_examples=40)
@given(rows_of_cars, lengths, lengths, st.integers(1, 4), orders)
def test_windows_are_those_of_their_definition(
    rows: list[dict[str, Any]], size: int, slide: int, appends: int, order: Order
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream = new_stream(Path(folder), options=StreamOptions(order=order))
        for part in range(appends):
            stream.append(table(rows[part::appends]))
            if part == 1:
                stream.flush()
        snapshot = stream.snapshot()
        found = from_index(snapshot, planned(snapshot, hop(CALLS, size, slide)))
    arrived = [row for part in range(appends) for row in rows[part::appends]]
    events = [{**row, "seq": number} for number, row in enumerate(arrived)]
    expected = naive.windows(events, [], size, slide, NAMED)
    ours = [
        {name: us(value) if isinstance(value, datetime) else value for name, value in row.items()}
        for row in found.to_pylist()
    ]
    assert ours == sorted(expected, key=lambda row: row["window_start"])


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


RANDOM = np.random.default_rng(4)
COUNT = 100_000  # seven leaves
NOISE = RANDOM.normal(20, 5, COUNT)
WITH_NAN = np.where(NOISE > 30, np.nan, NOISE)
INFINITE = np.where(NOISE > 38, np.inf, NOISE)
JITTER = np.cumsum(RANDOM.integers(0, 21, COUNT))
TIED = np.sort(RANDOM.integers(0, 40, COUNT)) * 30_000


@pytest.mark.parametrize(
    ("values", "ts"),
    [
        pytest.param(NOISE, None, id="doubles as they are, at even distances"),
        pytest.param(NOISE, JITTER, id="times at uneven distances"),
        pytest.param(NOISE, TIED, id="many events at once"),
        pytest.param(NOISE, np.full(COUNT, 77), id="all events at once"),
        pytest.param(np.round(NOISE), None, id="few different values"),
        pytest.param(WITH_NAN, None, id="nulls"),
        pytest.param(INFINITE, None, id="infinities"),
    ],
)
@pytest.mark.parametrize(("size", "slide"), [(1_000_000, 90_000), (700, 700), (5_000, 30), (7, 13)])
def test_leaves_of_any_encoding_are_cut_rightly(
    tmp_path: Path,
    values: np.ndarray[Any, Any],
    ts: np.ndarray[Any, Any] | None,
    size: int,
    slide: int,
) -> None:
    snapshot = sensor(tmp_path, values, ts)
    for calls in (["count(*)", "avg(speed)", "max(speed)", "sum(lane)"], ["sum(speed)"]):
        plan = planned(snapshot, hop(calls, size, slide))
        assert from_index(snapshot, plan).equals(from_replay(snapshot, plan))


def test_many_windows_are_put_together_in_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_index, "LEAST_WINDOWS", 10)
    monkeypatch.setattr(window_index, "THREADS", 3)
    snapshot = sensor(tmp_path, NOISE)
    for size, slide in [(1_000_000, 9_000), (7_000, 7_000), (3_000, 5_000), (10_000_000, 50_000)]:
        plan = planned(snapshot, hop(["count(*)", "avg(speed)"], size, slide))
        assert from_index(snapshot, plan).equals(from_replay(snapshot, plan))


def test_only_leaves_that_a_cut_goes_through_are_read(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    leaves = snapshot.segments[0].leaves
    assert leaves == 7
    length = snapshot.time_range.end_us
    for size, slide, blocks, slices in [
        (2 * length, 2 * length, 0, 1),
        (500_000, 500_000, 1, 2),
        (300_000, 300_000, 3, 4),
        (100, 100, 7, 10_000),
        (400_000, 300_000, 6, 7),
    ]:
        plan = planned(snapshot, hop(["sum(speed)"], size, slide))
        access = window_access(plan, snapshot, WEIGHTS)
        assert isinstance(access, WindowIndex)
        estimate = access.estimate
        _, cost = access.run()
        assert (estimate.blocks, estimate.rows) == (cost.blocks, cost.rows)
        assert cost.blocks == blocks
        assert cost.intervals == slices
        # Cuts at the very ends of the stream may count or not.
        assert abs(estimate.intervals - cost.intervals) <= 2


def test_leaves_between_windows_are_not_read(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    plan = planned(snapshot, hop(["sum(speed)"], 10, 400_000))
    access = window_access(plan, snapshot, WEIGHTS)
    assert isinstance(access, WindowIndex)
    assert access.estimate.blocks == 3  # of seven: at 0, 0.4 and 0.8 s
    assert from_index(snapshot, plan).equals(from_replay(snapshot, plan))


def test_conditions_on_time_and_what_is_above_windows_stay(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    text = """
        SELECT window_end AS till, SUM(speed) * 2 AS twice FROM cars
        WHERE ts >= TIMESTAMP '1970-01-01 00:00:00.033333'
        GROUP BY HOP(ts, INTERVAL '20 ms', INTERVAL '70 ms')
        HAVING COUNT(*) > 6000
    """
    plan = planned(snapshot, text)
    found = from_index(snapshot, plan)
    assert found.num_rows == 45
    assert found.equals(from_replay(snapshot, plan))


def test_columns_that_are_only_renamed_are_looked_through(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    node = windows_in(planned(snapshot, hop(["sum(speed)", "count(lane)"], 70_000, 20_000)))
    items = [("v", "speed"), ("speed", "lane"), (TS, TS)]
    types = snapshot.schema.type_of
    project = Project(node.source, tuple(Named(n, Column(o, types(o))) for n, o in items))
    swapped = tuple(
        replace(each, aggregate=replace(each.aggregate, argument=Column(name, types(old))))
        for each, (name, old) in zip(node.aggregates, items, strict=False)
    )
    plan = replace(node, source=project, aggregates=swapped)
    assert from_index(snapshot, plan).equals(from_index(snapshot, node))
    assert from_index(snapshot, plan).equals(from_replay(snapshot, plan))
    later = Project(node.source, tuple(Named(n, Column("seen", TIMESTAMP)) for n in ("v", TS)))
    refused = window_access(replace(plan, source=later), snapshot, WEIGHTS)
    assert refused == "the windows go by a time that is computed, and not by that of the events"
    sums = Named("v", Call("+", (Column("speed", FLOAT64), Column("speed", FLOAT64)), FLOAT64))
    computed = replace(project, items=(sums, *project.items[1:]))
    refused = window_access(replace(plan, source=computed), snapshot, WEIGHTS)
    assert refused == "sum(v) is of an expression, and the index has only attributes"


def windows_in(plan: Plan) -> WindowAggregate:
    assert isinstance(plan, Project)
    assert isinstance(plan.source, WindowAggregate)
    return plan.source


def test_patterns_over_windows_find_the_same(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    text = """
        SELECT * FROM (
            SELECT window_end AS ts, AVG(speed) AS mean FROM cars
            GROUP BY TUMBLE(ts, INTERVAL '1 ms'))
        MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(up.ts) AS since, LAST(up.mean) AS top
                         PATTERN (up{3,}) DEFINE up AS mean > 20.2)
    """
    plan = planned(snapshot, text)
    found = from_index(snapshot, plan)
    assert found.num_rows > 5
    assert found.equals(from_replay(snapshot, plan))


def test_segments_that_know_less_are_read(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(summaries=("lane",)))
        stream.append(table([{"ts": ts, "speed": float(ts), "lane": ts} for ts in range(50)]))
        stream.flush()
        stream.add_column("power", Schema.of({"power": "float64"}).type_of("power"))
        more = [{"ts": ts, "speed": 1.0, "lane": ts, "power": 2.0} for ts in range(40, 90)]
        schema = stream.snapshot().schema.arrow.remove(1)
        stream.append(pa.Table.from_pylist(more, schema=schema))
        snapshot = stream.snapshot()
        for call in ("sum(speed)", "sum(lane)", "sum(power)", "count(power)", "count(*)"):
            for size, slide in [(30, 7), (1000, 1000), (3, 3)]:
                plan = planned(snapshot, hop([call], size, slide))
                assert from_index(snapshot, plan).equals(from_replay(snapshot, plan)), call


def test_an_empty_stream_has_no_windows(tmp_path: Path) -> None:
    snapshot = new_stream(tmp_path).snapshot()
    plan = planned(snapshot, hop(["count(*)"], 5, 3))
    assert from_index(snapshot, plan).num_rows == 0
    assert replay_seconds(plan, snapshot, WEIGHTS) >= 0


def test_a_damaged_leaf_is_an_error_that_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "THREADS", 1)
    snapshot = sensor(tmp_path, NOISE)
    segment = snapshot.segments[0]
    entries = spans.lowest_entries(snapshot, segment)
    plan = planned(snapshot, hop(["sum(speed)"], 1000, 1000))
    path = snapshot.path / segment.file
    content = path.read_bytes()
    address = entries.column("address")[3].as_py()
    for place in (address + 20, address + 48 + 30, address + 48 + 600, address + 5000):
        damaged = bytearray(content)
        damaged[place] ^= 4
        with path.open("r+b") as file:
            file.write(damaged)
        with pytest.raises(StoreError, match=rf"is damaged: .*byte {address}"):
            from_index(snapshot, plan)
    with path.open("r+b") as file:
        file.write(content)
    assert from_index(snapshot, plan).num_rows == 1000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1 s')",
            "the index has no aggregates by key",
        ),
        (
            "SELECT FIRST(speed) AS f FROM cars GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "the index has no first: first(speed) needs each event",
        ),
        (
            "SELECT SUM(speed * 2) AS f FROM cars GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "sum(speed * 2.0) is of an expression, and the index has only attributes",
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE speed > 3) AS f FROM cars "
            "GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "has a condition, which has to be asked of each event",
        ),
        (
            "SELECT COUNT(*) AS n FROM cars WHERE speed > 3 GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "speed > 3.0 has to be asked of each event",
        ),
        (
            "SELECT MAX(ts) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "the index has no aggregates of ts",
        ),
        (
            "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ROWS, 5)",
            "windows by count begin at an event, and the index is one of times",
        ),
        (
            "SELECT ts, SUM(speed) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '6 us' PRECEDING "
            "AND CURRENT ROW) s FROM cars",
            "frames are of each event, and the index has only aggregates of many",
        ),
        ("SELECT ts FROM cars", "there are no windows"),
    ],
)
def test_what_the_index_cannot_answer_is_said(tmp_path: Path, text: str, reason: str) -> None:
    snapshot = new_stream(tmp_path).snapshot()
    found = window_access(planned(snapshot, text), snapshot, WEIGHTS)
    assert isinstance(found, str)
    assert reason in found


def test_thinned_events_are_not_asked_for(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(split_us=10))
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(50)]))
        stream.flush()
        stream.thin(25, 1)
        snapshot = stream.snapshot()
        refused = window_access(planned(snapshot, hop(["count(*)"], 5, 5)), snapshot, WEIGHTS)
        assert isinstance(refused, str)
        assert "thinned to aggregates" in refused
        later = within(TimeRange(20, 100))
        plan = planned(snapshot, hop(["count(*)"], 5, 5, later))
        assert from_index(snapshot, plan).equals(from_replay(snapshot, plan))


def test_the_way_says_what_it_does(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    access = window_access(planned(snapshot, hop(["avg(speed)"], 90_000, 900)), snapshot, WEIGHTS)
    assert isinstance(access, WindowIndex)
    assert access.name == "index"
    assert access.describe() == (
        "windows of 90 ms every 900 us from the time index, reading only leaves that their ends cut"
    )


def test_long_windows_are_expected_to_pay(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    plan = planned(snapshot, hop(["sum(speed)", "avg(speed)", "count(*)"], 800_000, 400_000))
    access = window_access(plan, snapshot, WEIGHTS)
    assert isinstance(access, WindowIndex)
    assert 0 < access.estimate.seconds < replay_seconds(plan, snapshot, WEIGHTS)
