"""Events by the values of an attribute, and leaves in order: as a plain scan finds them."""

from __future__ import annotations

import logging
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

from eventide.errors import StoreError
from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import INT64, Schema
from eventide.store import Snapshot, StoredStream
from eventide.store.index.ranges import ValueRange
from eventide.store.options import StreamOptions
from eventide.store.reading.hits import Atom, hits_of, reach_of
from eventide.store.reading.leaves import Units, units_of
from tests.naive.ranges import qualifies
from tests.store.events import at, new_stream, reopened, tiny_files, values
from tests.store.history import TYPES, History, options, pools, seeds
from tests.store.values import conditions

Row = dict[str, Any]
Event = tuple[int, int]
"""Time and number."""
NUMBERS = Schema.of({"x": "int64", "y": "float64", "label": "string"})


def rows_of(snapshot: Snapshot) -> list[Row]:
    """Return all events in order, times as integers."""
    names = ["ts", "_seq", *snapshot.schema.names]
    names = list(dict.fromkeys(names))
    found: list[Row] = []
    for batch in snapshot.scan(names):
        columns = [values(batch.column(0)), *(each.to_pylist() for each in batch.columns[1:])]
        found += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return found


def naive_hits(
    rows: Sequence[Row], atoms: Sequence[Atom], time_range: TimeRange = ALL_TIME
) -> list[Event]:
    return [
        (row["ts"], row["_seq"])
        for row in rows
        if time_range.start_us <= row["ts"] < time_range.end_us
        and any(qualifies(row[name], wanted) for name, wanted in atoms)
    ]


def hits(
    snapshot: Snapshot, atoms: Sequence[Atom], time_range: TimeRange = ALL_TIME
) -> list[Event]:
    found = hits_of(snapshot, atoms, time_range, in_order=units_of(snapshot).in_order)
    assert found.ts.dtype == found.seq.dtype == np.int64
    return list(zip(found.ts.tolist(), found.seq.tolist(), strict=True))


def check(snapshot: Snapshot, *asked: Sequence[Atom]) -> None:
    """Ask for several conditions, each against a scan."""
    rows = rows_of(snapshot)
    for atoms in asked:
        expected = naive_hits(rows, atoms)
        assert hits(snapshot, atoms) == expected
        reach = reach_of(snapshot, atoms, ALL_TIME)
        if not reach.read_rows:
            each = [len(naive_hits(rows, [atom])) for atom in atoms]
            assert reach.events == sum(each)
    check_units(snapshot, [atom for atoms in asked for atom in atoms])


def check_units(snapshot: Snapshot, atoms: Sequence[Atom] = ()) -> Units:
    """Check that units are what is read in order, and that none is ruled out that has a row."""
    units, rows = units_of(snapshot), rows_of(snapshot)
    names = ["ts", "_seq"]
    ends = np.cumsum(units.rows).tolist()
    assert (ends[-1] if ends else 0) == len(rows)
    read: list[Event] = []
    for unit in range(units.count):
        batches = units.read(np.array([unit]), names)
        events = [
            pair
            for batch in batches
            for pair in zip(*(values(batch.column(name)) for name in names), strict=True)
        ]
        assert len(events) == units.rows[unit]
        times = [ts for ts, _ in events]
        assert (min(times), max(times)) == (units.ts_min[unit], units.ts_max[unit])
        read += events
    # Units one after another are all rows in order.
    assert read == [(row["ts"], row["_seq"]) for row in rows]
    numbers = [row["_seq"] for row in rows]
    first = numbers[0] if numbers else 0
    if units.in_order:
        assert numbers == list(range(first, first + len(numbers)))
        assert units.first_seq == first
    for name, wanted in atoms:
        possible = units.may_hold(name, wanted)
        assert possible.shape == (units.count,)
        for unit, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            meets = any(qualifies(row[name], wanted) for row in rows[start:end])
            assert possible[unit] or not meets
    return units


# Streams with any past


# Without shrinking, which takes minutes: a past of ten steps is short enough.
@settings(deadline=None, max_examples=15, phases=[Phase.generate])
@given(options, pools, seeds, st.data())
def test_streams_with_any_past(
    chosen: StreamOptions, found: dict[str, list[object]], seed: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), chosen, found, seed, steps=10)
        snapshot = history.stream.snapshot()
        rows = rows_of(snapshot)
        asked: list[list[Atom]] = []
        for _ in range(3):
            names = data.draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3))
            asked.append(
                [(name, data.draw(conditions(TYPES[name], found[name]))) for name in names]
            )
        check(snapshot, *asked)
        event(f"in order: {units_of(snapshot).in_order}")
        instants = st.sampled_from([-50, 200, *(row["ts"] for row in rows)])
        period = TimeRange(data.draw(instants), data.draw(instants))
        for atoms in asked:
            assert hits(snapshot, atoms, period) == naive_hits(rows, atoms, period)


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), seeds, st.data())
def test_in_order_is_said_whenever_it_is_so(
    sizes: list[int], seed: int, data: st.DataObject
) -> None:
    """Events that come in order, in whatever pieces: their numbers count the rows."""
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream = new_stream(Path(folder))
        now = 0
        for size in sizes:
            times = [now := now + choose.choice([0, 1, 3]) for _ in range(size)]
            stream.append(at(*times))
            match data.draw(st.sampled_from(["", "flush", "seal", "compact"])):
                case "flush":
                    stream.flush()
                case "seal":
                    stream.flush(seal=True)
                case "compact":
                    stream.compact()
        assert check_units(stream.snapshot()).in_order


# States of a stream, one by one

WANTED: list[list[Atom]] = [
    [("x", ValueRange(3, 3))],
    [("x", ValueRange(2, 4, includes_low=False))],
    [("x", ValueRange(high=2)), ("label", ValueRange.of("b"))],
    [("x", ValueRange.of(3)), ("x", ValueRange(3, 5)), ("y", ValueRange(1.0))],
    [("y", ValueRange(float("nan"), float("nan")))],
    [("y", ValueRange(0.5))],
    [("y", ValueRange(high=0.5))],
    [("label", ValueRange("b", "c"))],
    [("label", ValueRange(high=""))],
    [("x", ValueRange())],
    # there is nothing between them, and nothing there
    [("x", ValueRange(4, 2))],
    [("x", ValueRange.of(99))],
]


def events(count: int, start: int = 0) -> pa.Table:
    """Return events in order: values come again and again, some are null, NaN or infinite."""
    reals = [0.5, None, float("nan"), 1.5, float("inf"), -0.0, -float("inf")]
    return pa.Table.from_pylist(
        [
            {
                "ts": start + step,
                "x": None if step % 7 == 6 else step % 6,
                "y": reals[step % 7],
                "label": ["a", "b", None, "", "c"][step % 5],
            }
            for step in range(count)
        ],
        schema=NUMBERS.arrow.remove(1),
    )


INDEXES = [(), ("x",), ("x", "y", "label")]


def stream_in(folder: Path, indexes: tuple[str, ...], **others: object) -> StoredStream:
    chosen = StreamOptions(indexes=indexes, **others)  # type: ignore[arg-type]
    return new_stream(folder, "s", chosen, NUMBERS)


@pytest.mark.parametrize("indexes", INDEXES)
@pytest.mark.parametrize("summaries", [None, ()], ids=["summaries", "no summaries"])
def test_rows_in_memory_in_runs_and_in_segments(
    tmp_path: Path, indexes: tuple[str, ...], summaries: tuple[str, ...] | None
) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, indexes, summaries=summaries)
        check(stream.snapshot(), *WANTED)
        stream.append(events(10))
        check(stream.snapshot(), *WANTED)
        for start in (10, 20, 30):
            stream.append(events(10, start))
            stream.flush()
        check(stream.snapshot(), *WANTED)
        stream.append(events(5, 50))
        assert check_units(stream.snapshot()).in_order
        # Late ones: some where there is room in a leaf, some not.
        stream.append(events(4, 12))
        stream.append(events(20, 0))
        stream.flush()
        stream.append(events(3, 31))
        snapshot = stream.snapshot()
        check(snapshot, *WANTED)
        assert not units_of(snapshot).in_order
        stream.compact()
        check(reopened(stream).snapshot(), *WANTED)


@pytest.mark.parametrize("indexes", INDEXES)
def test_staged_segments_have_numbers_from_where_they_were_committed(
    tmp_path: Path, indexes: tuple[str, ...]
) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, indexes)
        stream.append(events(7))
        stream.flush(seal=True)
        staged = [stream.stage(events(9, start).to_batches()) for start in (10, 20, 30)]
        stream.commit(staged)
        snapshot = stream.snapshot()
        assert {segment.seq_offset for segment in snapshot.segments} == {0, 7, 16, 25}
        check(snapshot, *WANTED)
        assert units_of(snapshot).in_order
        # Two that overlap in time
        stream.commit([stream.stage(events(9, start).to_batches()) for start in (45, 41)])
        check(stream.snapshot(), *WANTED)
        assert not units_of(stream.snapshot()).in_order


def test_events_that_were_dropped_leave_numbers_from_later_on(tmp_path: Path) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, ("x",), split_us=10)
        stream.append(events(40))
        stream.flush(seal=True)
        assert stream.drop_before(20)
        snapshot = stream.snapshot()
        check(snapshot, *WANTED)
        units = units_of(snapshot)
        assert units.in_order
        assert units.first_seq == 20


def test_late_leaves_that_overlap_are_one_unit(tmp_path: Path) -> None:
    """Rows [0 … 8], then [1, 4, 7]: from 0 to 8 all leaves belong together."""
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.commit([stream.stage(at(*range(9)).to_batches())])
        stream.commit([stream.stage(at(1, 4, 7).to_batches())])
        stream.commit([stream.stage(at(20, 21, 22, 23).to_batches())])
        units = check_units(stream.snapshot())
    assert units.rows.tolist() == [12, 3, 1]
    assert not units.in_order


@pytest.mark.parametrize("state", ["memory", "flushed", "sealed", "staged"])
def test_an_event_that_came_late_within_its_leaf_is_out_of_order(
    tmp_path: Path, state: str
) -> None:
    """The first and the last number of the leaf are where they would be otherwise."""
    with tiny_files(), patch("eventide.store.segments.segment_writer.LEAF_ROWS", 10):
        stream = new_stream(tmp_path)
        events = at(0, 1, 3, 2, 4, 5)
        if state == "staged":
            stream.commit([stream.stage(events.to_batches())])
        else:
            stream.append(events)
        if state in ("flushed", "sealed"):
            stream.flush(seal=state == "sealed")
        units = check_units(stream.snapshot())
    assert units.count == 1
    assert not units.in_order


def test_events_of_one_instant_may_be_in_two_units(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(at(*[5] * 10))
        stream.flush()
        units = check_units(stream.snapshot())
    assert units.count == 4
    assert units.in_order


# Schemas that change


@pytest.mark.parametrize("indexes", INDEXES)
def test_attributes_that_were_added_and_dropped(tmp_path: Path, indexes: tuple[str, ...]) -> None:
    added: list[Atom] = [("z", ValueRange(0, 1))]
    with tiny_files():
        stream = stream_in(tmp_path, indexes)
        stream.append(events(9))
        stream.flush(seal=True)
        stream.append(events(3, 10))
        stream.add_column("z", INT64)
        # Nobody has a value yet, whether in a segment or in memory.
        check(stream.snapshot(), added, [*added, *WANTED[0]])
        more = events(9, 20).append_column("z", pa.array([n % 3 for n in range(9)], pa.int64()))
        stream.append(more)
        stream.flush()
        check(stream.snapshot(), added, [*added, *WANTED[0]], *WANTED)
        stream.drop_column("x")
        left = [atoms for atoms in WANTED if all(name != "x" for name, _ in atoms)]
        check(stream.snapshot(), added, *left)
        # A new attribute of an old name has nothing to do with the old values, nor their index.
        stream.add_column("x", INT64)
        check(stream.snapshot(), *WANTED)
        again = more.drop_columns(["x", "ts"]).append_column("x", pa.array([3] * 9, pa.int64()))
        again = again.append_column("ts", pa.array(range(40, 49), more.schema.field("ts").type))
        stream.append(again.select(["ts", *(name for name in stream.schema.names)]))
        check(stream.snapshot(), *WANTED)
        stream.flush()
        check(stream.snapshot(), added, *WANTED)
        assert len(hits(stream.snapshot(), WANTED[0])) == 9


def test_an_index_that_came_later(tmp_path: Path) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, ())
        stream.append(events(9))
        stream.flush(seal=True)
        stream.add_index("x")
        stream.append(events(9, 10))
        stream.flush()
        reach = reach_of(stream.snapshot(), WANTED[0], ALL_TIME)
        assert (reach.lookups, reach.read_rows) == (1, 9)
        check(stream.snapshot(), *WANTED)
        stream.rebuild_indexes()
        reach = reach_of(stream.snapshot(), WANTED[0], ALL_TIME)
        assert (reach.lookups, reach.read_rows, reach.events) == (2, 0, reach.entries)
        check(stream.snapshot(), *WANTED)
        stream.drop_index("x")
        check(stream.snapshot(), *WANTED)


# What is not whole


def test_a_damaged_index_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, ("x",))
        stream.append(events(30))
        stream.flush(seal=True)
        snapshot = stream.snapshot()
        expected = naive_hits(rows_of(snapshot), WANTED[0])
        files = {index.file for segment in snapshot.segments for index in segment.indexes}
        assert files
        for name in files:
            path = stream.path / name
            path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()))
        snapshot = reopened(stream).snapshot()
        with caplog.at_level(logging.WARNING):
            assert hits(snapshot, WANTED[0]) == expected
        assert "is not used" in caplog.text
        reach = reach_of(snapshot, WANTED[0], ALL_TIME)
        assert reach.lookups == 0
        assert reach.read_rows == 30
        for name in files:
            (stream.path / name).unlink()
        assert hits(reopened(stream).snapshot(), WANTED[0]) == expected


def test_thinned_segments_have_no_events_to_find(tmp_path: Path) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, ("x",), split_us=20)
        stream.append(events(60))
        stream.flush(seal=True)
        rows = rows_of(stream.snapshot())
        assert stream.thin(20, 1) == 1
        snapshot = stream.snapshot()
        later = TimeRange(20, 1000)
        with pytest.raises(StoreError, match="thinned to aggregates"):
            snapshot.check_whole(ALL_TIME)
        for atoms in WANTED:
            assert hits(snapshot, atoms, later) == naive_hits(rows, atoms, later)


# What finding events takes


def test_reach_of_an_index_is_exact(tmp_path: Path) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, ("x",))
        stream.append(events(42))
        stream.flush(seal=True)
        stream.append(events(7, 50))
        snapshot = stream.snapshot()
        reach = reach_of(snapshot, WANTED[0], ALL_TIME)
        assert reach.events == len(naive_hits(rows_of(snapshot), WANTED[0]))
        assert reach.entries == len(naive_hits(rows_of(snapshot)[:42], WANTED[0]))
        assert reach.read_rows == 0
        # Of other times nothing has to be looked up, though what is in memory is counted anyway.
        assert reach_of(snapshot, WANTED[0], TimeRange(100, 200)).entries == 0


def test_reach_without_an_index_goes_by_the_smallest_and_largest_values(tmp_path: Path) -> None:
    with tiny_files():
        stream = stream_in(tmp_path, ())
        rows = [{"ts": n, "x": n, "y": n / 2, "label": f"{n:02}"} for n in range(90)]
        stream.append(pa.Table.from_pylist(rows, schema=NUMBERS.arrow.remove(1)))
        stream.flush(seal=True)
        snapshot = stream.snapshot()
        for low, high in ((0, 29), (30, 59), (0, 89)):
            found = reach_of(snapshot, [("x", ValueRange(low, high))], ALL_TIME).events
            assert abs(found - (high - low + 1)) <= 3
        # Leaves have three rows, so of a narrow range at most those of two leaves are left.
        assert reach_of(snapshot, [("y", ValueRange(10.0, 10.5))], ALL_TIME).events <= 6
        assert reach_of(snapshot, [("label", ValueRange.of("33"))], ALL_TIME).events <= 3
        assert reach_of(snapshot, [("x", ValueRange(100))], ALL_TIME).events == 0
        assert reach_of(snapshot, [("x", ValueRange(100))], ALL_TIME).read_rows == 0


def test_reach_of_values_that_no_double_is(tmp_path: Path) -> None:
    """Numbers of 64 bits, infinities and NaN are no reason to fail: it is an estimate."""
    with tiny_files():
        stream = stream_in(tmp_path, ())
        whole = [-(2**63), 2**53 + 1, None, 2**63 - 1, 0, 5]
        reals = [float("nan"), float("inf"), -float("inf"), None, 1e308, -1e308]
        rows = [{"ts": n, "x": whole[n % 6], "y": reals[n // 2 % 6]} for n in range(24)]
        stream.append(pa.Table.from_pylist(rows, schema=NUMBERS.arrow.remove(1)))
        stream.flush(seal=True)
        snapshot = stream.snapshot()
        bounds: list[Atom] = [("x", ValueRange(2**53 + 1)), ("x", ValueRange(high=-(2**62)))]
        bounds += [("y", ValueRange(low)) for low in reals if low is not None]
        bounds += [("y", ValueRange(high=high)) for high in reals if high is not None]
        for atom in bounds:
            reach = reach_of(snapshot, [atom], ALL_TIME)
            assert 0 <= reach.events <= 24
            # Whatever is there has to be read.
            assert reach.read_rows or not naive_hits(rows_of(snapshot), [atom])
        check(snapshot, *([atom] for atom in bounds))
