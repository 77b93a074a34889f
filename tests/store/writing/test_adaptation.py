"""Leaving out indexes under load: when, which, until when; answers never change by it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventide.instants import TimeRange
from eventide.store import StoredStream
from eventide.store.options import Order, StreamOptions
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.stats import delay_bound
from eventide.store.writing.adaptation import Configuration, Mode, QueueState, Reduction, decide
from eventide.store.writing.load import Load, LoadMeter
from eventide.store.writing.view import Reduced
from tests.naive.adaptation import most_delay, sorted_by_heap
from tests.naive.store import NaiveStream, Row
from tests.store.check_tree import check_tree
from tests.store.events import (
    COLUMNS,
    at,
    new_stream,
    reopened,
    rows,
    scanned,
    table,
    time_ranges,
    times,
    tiny_files,
)

INDEXES = ("car", "speed", "lane")
CORRELATION = {"speed": 0.99, "lane": 0.4}
FULL = Configuration(Mode.FULL, INDEXES)
ARRIVAL = Reduced(in_order=False, indexes=())
PHASES = {"full": None, "partial": Reduced(True, ("lane",)), "system time": ARRIVAL}


def load(
    late_share: float = 0.0, delay_us: float = 0.0, asked: dict[str, int] | None = None
) -> Load:
    return Load(1000.0, late_share, delay_us, int(delay_us), asked or {})


def queue(queued: int, open_us: int = 500) -> QueueState:
    return QueueState(queued, 100, open_us)


def decided(
    measured: Load, queued: QueueState, present: Configuration = FULL, order: Order = "time"
) -> Reduction | None:
    return decide(
        measured, queued, present, StreamOptions(indexes=INDEXES, order=order), CORRELATION
    )


@pytest.mark.parametrize(
    ("measured", "queued", "present", "kept"),
    [
        (load(), queue(49), FULL, "as before"),
        (load(0.5, 9e9), queue(49), FULL, "as before"),  # late, but the queue is short
        (load(), queue(50), FULL, "car"),  # speed is steady, so it goes before lane
        (load(), queue(100), FULL, "car"),
        (load(asked={"speed": 1000}), queue(50), FULL, "speed"),  # but it is asked for
        (load(0.01, 9e9), queue(50), FULL, "car"),  # no more than one in a hundred
        (load(0.02, 500), queue(50), FULL, "car"),  # the open end absorbs them
        (load(0.02, 501), queue(50), FULL, "arrival"),
        (load(), queue(50), Configuration(Mode.PARTIAL, ("car", "lane")), "car"),
        (load(), queue(50), Configuration(Mode.PARTIAL, ("lane",)), ""),
        (load(), queue(50), Configuration(Mode.PARTIAL, ()), "as before"),  # the minimum
        (load(0.02, 501), queue(50), Configuration(Mode.PARTIAL, ()), "arrival"),
        (load(0.9, 9e9), queue(100), Configuration(Mode.SYSTEM_TIME, ()), "as before"),
        (load(), queue(0), Configuration(Mode.SYSTEM_TIME, ()), "as before"),  # nothing goes back
        (load(), queue(50), Configuration(Mode.FULL, ()), "as before"),  # nothing to do without
    ],
)
def test_what_is_done_without(
    measured: Load, queued: QueueState, present: Configuration, kept: str
) -> None:
    found = decided(measured, queued, present)
    if found is None:
        assert kept == "as before"
    elif kept == "arrival":
        assert (found.mode, found.reduced) == (Mode.SYSTEM_TIME, ARRIVAL)
    else:
        assert (found.mode, found.reduced.in_order) == (Mode.PARTIAL, True)
        assert ", ".join(found.reduced.indexes) == kept


def test_a_stream_that_keeps_arrival_order_anyway_can_only_lose_indexes() -> None:
    found = decided(load(0.9, 9e9), queue(80), order="arrival")
    assert found is not None
    assert (found.mode, found.reduced) == (Mode.PARTIAL, Reduced(False, ("car",)))
    options = StreamOptions(indexes=INDEXES, order="arrival")
    assert Configuration.of(options, found.reduced) == Configuration(Mode.PARTIAL, ("car",))


def test_the_numbers_are_in_the_reason() -> None:
    found = decided(load(0.05, 1500), queue(80))
    assert found is not None
    assert found.why == (
        "events are kept as they arrive, without secondary indexes until the next regular split: "
        "80 of 100 rows waited, 1,000 rows came in a second, "
        "5.0% of them late, by 1,500 us on average"
    )


@given(st.floats(0, 1), st.floats(0, 1e12), st.integers(0, 200), st.integers(0, 10**12))
def test_going_on_ends_at_a_minimum(share: float, delay: float, queued: int, open_us: int) -> None:
    options = StreamOptions(indexes=INDEXES)
    present = FULL
    for _ in range(len(INDEXES) + 2):
        found = decided(load(share, delay), queue(queued, open_us), present)
        if found is None:
            break
        following = Configuration.of(options, found.reduced)
        assert following.mode == found.mode
        assert len(following.indexes) < len(present.indexes) or not found.reduced.in_order
        present = following
    else:
        pytest.fail("it never ends")


def test_delays_of_millennia_add_up() -> None:
    meter = LoadMeter(clock=iter(range(99)).__next__)
    year_9999, year_1 = 253402300799999999, -62135596800000000
    meter.observe(at(year_9999, *[year_1] * 50).combine_chunks().to_batches()[0])
    assert meter.load().average_delay_us == pytest.approx(year_9999 - year_1)


def test_conditions_of_scans_are_counted(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    for _ in range(3):
        list(stream.snapshot().scan(["ts"], where={"lane": 1}))
    list(stream.snapshot().scan(["ts"], where={"speed": (1.0, 2.0), "lane": 1}))
    assert stream.stats().load.asked == {"lane": 4, "speed": 1}


def forms(stream: StoredStream) -> list[tuple[int, int, bool, tuple[str, ...]]]:
    """Return first and last time, order and indexes of each segment."""
    return [
        (s.time_range.start_us, s.time_range.end_us - 1, s.in_order, s.indexes)
        for s in stream.stats().segments
    ]


@pytest.mark.parametrize("flushed", [True, False])
def test_the_end_of_a_period_is_a_regular_split(tmp_path: Path, flushed: bool) -> None:
    with tiny_files():
        options = StreamOptions(split_us=100, indexes=("lane",))
        stream = new_stream(tmp_path, options=options)
        stream.append(at(*range(0, 50, 10)))
        stream.split(ARRIVAL, note="too much")
        assert (
            stream.stats().reduced == "events are kept as they arrive; no secondary index on lane"
        )
        stream.append(at(60, 80, 70, 5, 90))
        if flushed:
            # The border is passed between two flushes, not within one.
            stream.flush()
        stream.append(at(110, 65, 100, 120, 140, 130))
        stream.flush()
        assert forms(stream)[:2] == [(0, 40, True, ("lane",)), (5, 90, False, ())]
        # 65 came after the border: it is late, and has a segment of its own.
        assert sorted(forms(stream)[2:]) == [(65, 65, True, ("lane",)), (100, 140, True, ("lane",))]
        assert stream.stats().reduced is None
        assert [decision.what for decision in stream.stats().decisions] == ["too much"]
        expected = sorted([*range(0, 50, 10), 60, 80, 70, 5, 90, 110, 65, 100, 120, 140, 130])
        assert times(stream.snapshot()) == expected


@pytest.mark.parametrize("order", ["time", "arrival"])
def test_without_periods_a_full_segment_is_a_regular_split(tmp_path: Path, order: Order) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(order=order, indexes=("lane",)))
        reduced = Reduced(False, ())
        stream.split(reduced)
        stream.append(at(*range(30)))
        stream.flush()
        assert stream.snapshot().view.reduced == reduced
        stream = reopened(stream)
        stream.append(at(*range(30, 50)))
        stream.flush()
        assert stream.snapshot().view.reduced is None
        stream.append(at(*range(50, 60)))
        stream.flush()
        in_order = order == "time"
        assert [form[2:] for form in forms(stream)] == [(False, ()), (in_order, ("lane",))]
        assert times(stream.snapshot()) == list(range(60))
        assert stream.rebuild_indexes(most=1) == 1
        assert [form[3] for form in forms(stream)] == [("lane",), ("lane",)]
        assert stream.rebuild_indexes(most=1) == 0


@pytest.mark.parametrize("split_us", [10, 25])
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_no_border_is_missed(tmp_path: Path, split_us: int, order: Order) -> None:
    """However appends and flushes lie to the borders, a segment lies between two of them."""
    with tiny_files():
        options = StreamOptions(split_us=split_us, order=order)
        stream = new_stream(tmp_path, options=options)
        for start in range(0, 200, 5):
            stream.append(at(*range(start, start + 5)))
            if start % 15 == 0:
                stream.flush()
        stream.flush()
        for first, last, *_ in forms(stream):
            assert first // split_us == last // split_us


@pytest.mark.parametrize("split_us", [None, 100])
@pytest.mark.parametrize(
    "late",
    [
        pytest.param([205, 245, 285], id="a tree covers its time"),
        pytest.param([110, 150, 195], id="in a gap"),
        pytest.param([30, 35, 45], id="two trees cover its time"),
        pytest.param([-10, -1], id="before all"),
        pytest.param([0, 60, 20, 80, 200, 290], id="where trees begin and end"),
    ],
)
@pytest.mark.parametrize("phase", ["full", "system time"])
def test_late_events_find_their_place_among_several_trees(
    tmp_path: Path, late: list[int], phase: str, split_us: int | None
) -> None:
    #  ts     0 ---- 60            in order
    #            20 ------ 80      as they arrived
    #                                    200 ---- 290   in order
    naive = NaiveStream()
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(split_us=split_us))

        def append(*at_times: int) -> None:
            events: list[Row] = [
                {"ts": ts, "car": "a", "speed": float(naive.next_seq + n), "lane": ts % 3}
                for n, ts in enumerate(at_times)
            ]
            stream.append(table(events))
            naive.append(events)

        append(*range(0, 70, 10))
        stream.split(ARRIVAL)
        append(*range(80, 10, -10))
        stream.split(PHASES[phase])
        append(*range(200, 300, 10))
        stream.flush()
        for ts in late:
            append(ts)
        check(stream, naive, [TimeRange(25, 46), TimeRange(190, 210)])
        stream.flush()
        check(stream, naive, [TimeRange(25, 46), TimeRange(190, 210)])
        stream = reopened(stream)
        stream.compact()
        check(stream, naive, [TimeRange(25, 46), TimeRange(190, 210)])


def check(stream: StoredStream, naive: NaiveStream, ranges: list[TimeRange]) -> None:
    """Compare scans and aggregates with the list, and every index with its rows."""
    snapshot = stream.snapshot()
    assert scanned(snapshot) == naive.scan(COLUMNS)
    check_tree(snapshot)
    functions = ["count", "sum", "min", "max"]
    calls = [AggregateCall("count"), *(AggregateCall(function, "speed") for function in functions)]
    for time_range in ranges:
        assert scanned(snapshot, COLUMNS, time_range) == naive.scan(COLUMNS, time_range)
        if time_range.is_empty:
            continue
        found = aggregate(snapshot, calls, [time_range.start_us, time_range.end_us])
        expected = [naive.aggregate(call.function, call.attribute, time_range) for call in calls]
        assert [column[0].as_py() for column in found.columns] == expected


phase_steps = st.one_of(
    st.tuples(st.just("append"), st.lists(rows, max_size=20)),
    st.tuples(st.just("split"), st.sampled_from(sorted(PHASES))),
    st.tuples(st.just("flush")),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("compact")),
    st.tuples(st.just("index")),
)


@settings(deadline=None, max_examples=120)
@given(
    st.lists(phase_steps, max_size=10),
    st.lists(time_ranges, max_size=3),
    st.sampled_from([None, 10, 25]),
    st.sampled_from(["time", "arrival"]),
)
def test_answers_are_the_same_in_every_mode(
    steps: list[tuple[object, ...]], ranges: list[TimeRange], split_us: int | None, order: Order
) -> None:
    naive = NaiveStream()
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        options = StreamOptions(split_us=split_us, order=order, indexes=("lane", "car"))
        stream = new_stream(Path(folder), options=options)
        for step in steps:
            match step:
                case ("append", list(events)):
                    stream.append(table(events))
                    naive.append(events)
                case ("split", str(phase)):
                    stream.split(PHASES[phase])
                case ("flush",):
                    stream.flush()
                case ("reopen",):
                    stream = reopened(stream)
                case ("compact",):
                    stream.compact()
                case ("index",):
                    stream.rebuild_indexes()
        check(stream, naive, ranges)


# Fewer than a segment takes: events of two segments are merged, however late they are.
arrivals = st.lists(
    st.integers(0, 30) | st.integers(0, 1000) | st.sampled_from([-(10**9), 10**9]),
    min_size=1,
    max_size=39,
)


@settings(deadline=None, max_examples=150)
@given(arrivals, st.integers(1, 20))
@example([1, 1000, 1001, 1002, 1003, 999], 6)
@example([5] * 20, 7)
@example(list(range(39, 0, -1)), 9)
def test_a_heap_of_the_delay_bound_sorts_a_segment(stamps: list[int], part: int) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream = new_stream(Path(folder), options=StreamOptions(order="arrival"))
        for start in range(0, len(stamps), part):
            stream.append(at(*stamps[start : start + part]))
            stream.flush()
        snapshot = stream.snapshot()
        (segment,) = snapshot.segments
        assert (segment.form.in_order, segment.rows) == (False, len(stamps))
        bound = delay_bound(snapshot)
        assert bound >= most_delay(stamps)
        assert sorted_by_heap(stamps, bound + 1) == sorted(stamps)


def test_the_heap_is_as_large_as_it_has_to_be() -> None:
    stamps = [1, 1000, 1001, 1002, 1003, 999]
    assert most_delay(stamps) == 4
    assert sorted_by_heap(stamps, 5) == sorted(stamps)
    assert sorted_by_heap(stamps, 4) != sorted(stamps)
