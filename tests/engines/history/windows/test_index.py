"""Windows from the index: the rows of a replay, and of the definition, for any stored form."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.history.windows import index as window_index
from eventide.engines.history.windows.index import WindowIndex, replay_seconds, window_access
from eventide.errors import EvaluationError, StoreError
from eventide.instants import TimeRange
from eventide.plan.expressions import Call, Column, Named
from eventide.plan.nodes import Project
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import WindowAggregate
from eventide.schema import FLOAT64, TIMESTAMP, TS, Schema
from eventide.store.options import Order, StreamOptions
from eventide.store.reading import periods
from eventide.store.reading.leaves import leaf_entries
from tests.engines.history.windows.window_queries import (
    CALLS,
    ENCODINGS,
    NAMED,
    NOISE,
    WEIGHTS,
    DrawnHistory,
    arrived,
    check_any_history,
    from_index,
    from_replay,
    histories,
    hop,
    orders,
    plain,
    planned,
    rows_of_cars,
    sensor,
    stored,
    time_ranges,
    within,
)
from tests.naive import windows as naive
from tests.store.events import new_stream, table, tiny_files

lengths = st.integers(1, 60)


@settings(deadline=None, max_examples=25)
@given(histories, st.tuples(lengths, lengths), time_ranges)
def test_any_history_has_the_windows_of_its_replay(
    history: DrawnHistory, window: tuple[int, int], times: TimeRange
) -> None:
    check_any_history(history, lambda calls: hop(calls, *window, within(times)))


def test_sums_of_integers_that_do_not_fit_are_the_same_error(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    stream.append(table([{"ts": ts, "lane": 2**62} for ts in range(5)]))
    plan = planned(stream.snapshot(), hop(["sum(lane)"], 4, 2))
    for way in (from_index, from_replay):
        with pytest.raises(EvaluationError, match=r"sum\(lane\) does not fit"):
            way(stream.snapshot(), plan)


@settings(deadline=None, max_examples=40)
@given(rows_of_cars, lengths, lengths, st.integers(1, 4), orders)
def test_windows_are_those_of_their_definition(
    rows: list[dict[str, Any]], size: int, slide: int, appends: int, order: Order
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        snapshot = stored(Path(folder), rows, appends, order)
        found = from_index(snapshot, planned(snapshot, hop(CALLS, size, slide)))
    expected = naive.windows(arrived(rows, appends), [], size, slide, NAMED)
    assert plain(found) == sorted(expected, key=lambda row: row["window_start"])


@pytest.mark.parametrize(("values", "ts"), ENCODINGS)
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
    monkeypatch.setattr(periods, "THREADS", 1)
    snapshot = sensor(tmp_path, NOISE)
    segment = snapshot.segments[0]
    entries = leaf_entries(snapshot.path, segment)
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
