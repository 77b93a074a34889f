"""Events out of order, in every known pattern: they read as if they had come in order."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from eventide.instants import ALL_TIME, TimeRange
from eventide.store import Snapshot, StoredStream
from eventide.store.options import StreamOptions
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.segments.segment import Segment
from eventide.store.segments.segment_writer import write_segments
from eventide.store.segments.tree import place
from eventide.store.writing import late
from tests.exploring import EXPLORING
from tests.naive.store import NaiveStream, Row
from tests.store.check_tree import check_tree
from tests.store.events import COLUMNS, new_stream, reopened, scanned, table, tiny_files
from tests.store.events import at as events_at

EVENTS = 240
STEP_US = 10


@dataclass(frozen=True)
class Pattern:
    """Times in order of arrival, and what the store has to do with them to keep them in order."""

    times: Callable[[random.Random], list[int]]
    paths: frozenset[str]


def in_order(_: random.Random) -> list[int]:
    return [turn * STEP_US for turn in range(EVENTS)]


def delayed(share: float, delay: Callable[[random.Random], float]) -> Pattern:
    """Some events, evenly spread, arrive later than they happened."""

    def times(chance: random.Random) -> list[int]:
        arrivals = [
            (ts + (delay(chance) if int(turn * share) < int((turn + 1) * share) else 0), ts)
            for turn, ts in enumerate(in_order(chance))
        ]
        return [ts for _, ts in sorted(arrivals, key=lambda arrival: arrival[0])]

    return Pattern(times, frozenset({"late"}))


def uniform(chance: random.Random) -> float:
    return chance.uniform(20 * STEP_US, 60 * STEP_US)


def exponential(chance: random.Random) -> float:
    return 20 * STEP_US + chance.expovariate(1 / (30 * STEP_US))


def bursts(chance: random.Random) -> list[int]:
    """After each 80 events in order, 20 late ones from the time since the previous burst."""
    times: list[int] = []
    for start in range(0, EVENTS, 80):
        first, last = start * STEP_US, (start + 80) * STEP_US
        times += range(first, last, STEP_US)
        times += [chance.randrange(first, last) for _ in range(20)]
    return times


def with_outlier(ts: int) -> Callable[[random.Random], list[int]]:
    def times(chance: random.Random) -> list[int]:
        found = in_order(chance)
        return [*found[: EVENTS // 2], ts, *found[EVENTS // 2 :]]

    return times


def shuffled(chance: random.Random) -> list[int]:
    return chance.sample(in_order(chance), EVENTS)


DELAYED = [
    (percent, delay)
    for percent, delay in product((1, 5, 10, 15, 50), (uniform, exponential))
    if EXPLORING or (percent, delay) in ((1, uniform), (5, exponential), (50, exponential))
]
"""Shares of late events, and how late they are."""
LATE, REWRITTEN, SPLIT, DELTA = "late", "rewritten", "split", "delta"
NOTHING: frozenset[str] = frozenset()
PATTERNS = {
    "none": Pattern(in_order, NOTHING),
    "all equal": Pattern(lambda _: [5] * EVENTS, NOTHING),
    "reversed": Pattern(lambda chance: in_order(chance)[::-1], frozenset({LATE, DELTA})),
    "shuffled": Pattern(shuffled, frozenset({LATE, DELTA, REWRITTEN, SPLIT})),
    "bursts": Pattern(bursts, frozenset({LATE, REWRITTEN})),
    "past outlier": Pattern(with_outlier(-(10**12)), frozenset({LATE, DELTA})),
    "future outlier": Pattern(with_outlier(10**12), NOTHING),
    **{
        f"{percent} % {delay.__name__}": delayed(percent / 100, delay) for percent, delay in DELAYED
    },
}


@contextlib.contextmanager
def short_log() -> Iterator[None]:
    """Make leaves of what came after every second append."""
    with (
        tiny_files(),
        patch("eventide.store.writing.flush.LOG_BYTES", 2000),
        patch("eventide.store.writing.append.LOG_BYTES", 2000),
    ):
        yield


@contextlib.contextmanager
def watched() -> Iterator[Counter[str]]:
    """Count the ways that late events take."""
    counts: Counter[str] = Counter()
    insert = late.Insertion.leaves

    def leaves(
        self: late.Insertion, entries: Sequence[pa.RecordBatch], parts: Sequence[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        grown = insert(self, entries, parts)
        counts[LATE] += sum(part.num_rows for part in parts)
        counts[REWRITTEN] += len(entries)
        counts[SPLIT] += sum(each.num_rows > 1 for each in grown)
        return grown

    def written(*arguments: Any) -> tuple[Segment, ...]:  # noqa: ANN401
        segments = write_segments(*arguments)
        counts[LATE] += sum(segment.rows for segment in segments)
        counts[DELTA] += len(segments)
        return segments

    with (
        patch.object(late.Insertion, "leaves", leaves),
        patch("eventide.store.writing.flush.write_segments", written),
    ):
        yield counts


@dataclass
class Twins:
    """A stream and the list it must read like."""

    stream: StoredStream
    naive: NaiveStream

    @classmethod
    def new(cls, folder: Path, options: StreamOptions) -> Twins:
        return cls(new_stream(folder, options=options), NaiveStream())

    def append(self, *times: int, car: str = "a") -> None:
        first = self.naive.next_seq
        rows: list[Row] = [
            {"ts": ts, "car": car, "speed": float(first + at), "lane": at % 3}
            for at, ts in enumerate(times)
        ]
        self.append_rows(rows)

    def append_in_parts(self, times: Sequence[int], checking: bool = True) -> None:
        """Append in many small parts, and one that is large."""
        parts = [(start, start + 9) for start in range(0, len(times) * 2 // 3, 9)]
        for start, end in [*parts, (parts[-1][1], len(times))]:
            self.append(*times[start:end])
            if checking and start % 81 == 0:
                self.check()

    def append_rows(self, rows: list[Row]) -> None:
        self.stream.append(table(rows))
        self.naive.append(rows)

    def check(self) -> None:
        """Compare the two, and the index with its rows."""
        snapshot = self.stream.snapshot()
        assert scanned(snapshot) == self.naive.scan(COLUMNS)
        check_tree(snapshot)

    def leaf_starts(self) -> list[int]:
        """Return the first time of every leaf of the open segment."""
        segment = self.stream.snapshot().view.segment
        assert segment is not None
        found = [
            start
            for leaves in segment.tree(self.stream.path).leaves(segment.time_range)
            for start in place(leaves, "ts_min").tolist()
        ]
        assert found == sorted(found)
        return found


ROOMS = [(0.0, None), (1.0, None), (0.1, 50 * STEP_US)]
"""The spare room of leaves, and where segments are split."""


@pytest.mark.parametrize(
    ("pattern", "spare", "split_us"),
    [
        (pattern, *room)
        for turn, pattern in enumerate(PATTERNS)
        for place, room in enumerate(ROOMS)
        if EXPLORING or place == 2 or place == turn % 2
    ],
)
def test_late_events_read_in_their_place(
    tmp_path: Path, pattern: str, spare: float, split_us: int | None
) -> None:
    expected = PATTERNS[pattern]
    with short_log(), watched() as paths:
        twins = Twins.new(tmp_path, StreamOptions(spare=spare, split_us=split_us))
        twins.append_in_parts(expected.times(random.Random(7)))
        if pattern == "future outlier":
            assert twins.stream.snapshot().view.closed_ts < EVENTS * STEP_US
        twins.stream.flush()
        twins.check()
        taken = {path for path in (LATE, REWRITTEN, SPLIT, DELTA) if paths[path]}
        assert bool(taken) == bool(expected.paths)
        if split_us is None:
            assert taken >= expected.paths
        else:
            periods = {s.ts_min // split_us for s in twins.stream.snapshot().segments}
            assert len(periods) > 3 or pattern == "all equal"
        twins.stream.compact()
        twins.stream = reopened(twins.stream)
        twins.check()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_stream_in_order_of_arrival_answers_the_same(tmp_path: Path, pattern: str) -> None:
    times = PATTERNS[pattern].times(random.Random(7))
    with short_log(), watched() as paths:
        by_arrival = Twins.new(tmp_path / "arrival", StreamOptions(order="arrival"))
        by_time = Twins.new(tmp_path / "time", StreamOptions())
        for twins in (by_arrival, by_time):
            # What comes in order of time has been checked on its way above.
            twins.append_in_parts(times, checking=twins is by_arrival)
            if twins is by_arrival:
                assert not paths
        snapshot = by_arrival.stream.snapshot()
        assert snapshot.segments
        assert not snapshot.view.queue
        assert not any(segment.form.in_order for segment in snapshot.segments)
        calls = [
            AggregateCall("count"),
            *(AggregateCall(each, "speed") for each in ("sum", "min", "max", "avg")),
        ]
        calls += [
            AggregateCall("count", "car"),
            AggregateCall("max", "car"),
            AggregateCall("sum", "lane"),
        ]
        cuts = [-(10**13), 0, 55, 555, 1200, 1201, 10**13]
        pieces = snapshot.slices(ALL_TIME, 20)
        joined = [row for each in pieces for row in scanned(snapshot, COLUMNS, each.time_range)]
        assert joined == by_time.naive.scan(COLUMNS)
        other = by_time.stream.snapshot()
        assert scanned(snapshot) == scanned(other)
        assert aggregate(snapshot, calls, cuts) == aggregate(other, calls, cuts)
        where: dict[str, object] = {"car": "a", "speed": (20.0, 100.0)}
        for time_range in (ALL_TIME, TimeRange(55, 1201)):
            assert rows_of(snapshot, time_range, where) == rows_of(other, time_range, where)
        by_arrival.stream.flush(seal=True)
        by_arrival.stream.compact()
        by_arrival.check()
        assert all(s.form.in_order for s in by_arrival.stream.snapshot().segments)


def rows_of(snapshot: Snapshot, time_range: TimeRange, where: dict[str, object]) -> list[object]:
    return [row for batch in snapshot.scan(COLUMNS, time_range, where) for row in batch.to_pylist()]


def flushed(folder: Path, *times: int, options: StreamOptions | None = None) -> Twins:
    """Return a stream all of whose events are in leaves."""
    twins = Twins.new(folder, options or StreamOptions())
    twins.append(*times)
    twins.stream.flush()
    return twins


def test_an_event_at_the_first_time_of_a_leaf_comes_last_among_equals(tmp_path: Path) -> None:
    with tiny_files(), watched() as paths:
        twins = flushed(tmp_path, *range(0, 300, 10))
        starts = twins.leaf_starts()
        assert starts == list(range(0, 300, 30))
        twins.append(starts[4], car="late")
        twins.stream.flush()
        twins.check()
        assert paths == Counter({LATE: 1, REWRITTEN: 1, SPLIT: 1})
        around = scanned(twins.stream.snapshot(), ["ts", "car"], TimeRange(110, 131))
        assert around == [(110, "a"), (120, "a"), (120, "late"), (130, "a")]


def test_ties_across_the_border_of_leaves_stay_in_order_of_arrival(tmp_path: Path) -> None:
    #  leaves   0 5 5 | 5 5 5 | 5 9 9      then 5 and 9 once more
    with tiny_files(), watched() as paths:
        twins = flushed(tmp_path, 0, 5, 5, 5, 5, 5, 5, 9, 9)
        assert twins.leaf_starts() == [0, 5, 5]
        twins.append(5, 5, car="late")
        twins.append(8, 5, car="later")
        twins.stream.flush()
        twins.check()
        assert paths[REWRITTEN] == 1
        assert scanned(twins.stream.snapshot(), ["_seq"], TimeRange(5, 6)) == [
            (seq,) for seq in (1, 2, 3, 4, 5, 6, 9, 10, 12)
        ]


@pytest.mark.parametrize(
    ("ts", "path"),
    [
        (-50, DELTA),  # before the first split
        (0, DELTA),
        (200, DELTA),  # exactly at a border
        (199, DELTA),
        (350, DELTA),  # in a gap: nothing happened from 300 to 399
        (400, REWRITTEN),  # exactly where the open one begins
        (399, DELTA),
        (455, REWRITTEN),
    ],
)
def test_a_late_event_around_the_borders_of_splits(tmp_path: Path, ts: int, path: str) -> None:
    #  sealed 0-90, 100-190, 200-290; open 400-490
    with tiny_files(), watched() as paths:
        times = [*range(0, 300, 10), *range(400, 500, 10)]
        twins = flushed(tmp_path, *times, options=StreamOptions(split_us=100))
        periods = [(s.ts_min, s.ts_max) for s in twins.stream.snapshot().segments]
        assert periods == [(0, 90), (100, 190), (200, 290), (400, 490)]
        assert not paths
        twins.append(ts, car="late")
        twins.check()
        assert twins.stream.snapshot().view.queue
        twins.stream.flush()
        twins.check()
        assert (paths[path], paths[LATE]) == (1, 1)
        twins.stream.compact()
        twins.check()
        twins.stream.flush(seal=True)
        twins.stream.compact()
        twins.check()
        for segment in twins.stream.snapshot().segments:
            assert segment.ts_min // 100 == segment.ts_max // 100


@pytest.mark.parametrize(("spare", "held"), [(0.0, 0), (0.1, 1), (0.5, 5), (1.0, 10)])
def test_a_leaf_is_split_when_its_spare_space_is_full(
    tmp_path: Path, spare: float, held: int
) -> None:
    with (
        tiny_files(),
        patch("eventide.store.segments.segment_writer.LEAF_ROWS", 10),
        patch("eventide.store.writing.late.MOST_REWRITTEN", 20),
    ):
        twins = flushed(tmp_path, *range(0, 280, 10), options=StreamOptions(spare=spare))
        for turn in range(held + 1):
            with watched() as paths:
                twins.append(110 + turn, car="late")
                twins.stream.flush()
            assert paths == Counter({LATE: 1, REWRITTEN: 1, SPLIT: int(turn == held)})
        twins.check()


@pytest.mark.parametrize("spare", [0.0, 0.1, 1.0])
def test_one_leaf_hit_again_and_again_splits_and_so_do_the_nodes_above(
    tmp_path: Path, spare: float
) -> None:
    with tiny_files(), watched() as paths:
        twins = flushed(tmp_path, *range(0, 300, 10), options=StreamOptions(spare=spare))
        before = len(twins.leaf_starts())
        levels = depth(twins)
        with patch("eventide.store.segments.segment_writer.SEGMENT_ROWS", 10_000):
            for turn in range(12):
                twins.append(*(121 + (turn * 5 + at) % 9 for at in range(8)))
                twins.stream.flush()
                twins.check()
        assert paths[DELTA] == 0
        assert paths[LATE] == 96
        assert paths[SPLIT] > 10
        assert len(twins.leaf_starts()) > before + 10
        assert depth(twins) > levels
        twins.stream = reopened(twins.stream)
        twins.append(*range(300, 330))
        twins.stream.flush()
        twins.check()


def depth(twins: Twins) -> int:
    segment = twins.stream.snapshot().view.segment
    assert segment is not None
    return len(segment.levels(twins.stream.path))


def test_late_rows_that_cannot_be_compressed(tmp_path: Path) -> None:
    chance = random.Random(3)
    with tiny_files(), watched() as paths:
        twins = Twins.new(tmp_path, StreamOptions(codec="zstd"))
        for times in (range(0, 60, 2), range(31, 45, 2)):
            rows: list[Row] = [
                {
                    "ts": ts,
                    "car": "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(400)),
                    "speed": chance.random(),
                    "lane": chance.randrange(-(2**63), 2**63),
                }
                for ts in times
            ]
            twins.append_rows(rows)
            twins.stream.flush()
        twins.check()
        assert paths[REWRITTEN] > 1
        stored = sum(path.stat().st_size for path in twins.stream.path.glob("seg-*.ev"))
        assert stored > 37 * 1200


def test_the_same_event_twice_is_two_events(tmp_path: Path) -> None:
    same: Row = {"ts": 20, "car": "twin", "speed": 1.0, "lane": 1}
    with tiny_files(), watched() as paths:
        twins = flushed(tmp_path, 0, 10, 20, 30, 40)
        for _ in range(3):
            twins.append_rows([same, same])
            twins.stream.flush()
        twins.check()
        assert paths[LATE] == 6
        assert paths[REWRITTEN] > 0
        twins.stream.flush(seal=True)
        twins.stream.compact()
        twins.check()


def test_a_few_late_events_for_each_of_many_leaves_are_kept_apart(tmp_path: Path) -> None:
    with tiny_files(), watched() as paths, patch("eventide.store.writing.late.MOST_REWRITTEN", 1):
        twins = flushed(tmp_path, *range(0, 300, 10))
        twins.append(*range(15, 290, 30))
        twins.stream.flush()
        twins.check()
        assert paths == Counter({LATE: 10, DELTA: 1})
        assert len(twins.stream.snapshot().segments) == 2


def test_late_events_far_apart_are_inserted_where_they_hit_few_leaves(tmp_path: Path) -> None:
    with tiny_files(), watched() as paths:
        with patch("eventide.store.segments.segment_writer.SEGMENT_ROWS", 1000):
            twins = flushed(tmp_path, *range(0, 3000, 10))
            twins.append(5, 2500)
            twins.stream.flush()
        twins.check()
        assert (paths[REWRITTEN], paths[DELTA]) == (2, 0)


def test_a_wrong_clock_in_the_future_makes_others_late_only_when_it_must(tmp_path: Path) -> None:
    with tiny_files(), watched() as paths:
        twins = Twins.new(tmp_path, StreamOptions())
        twins.append(0, 10**15, 10, 20)
        twins.append_in_parts(range(30, 900, 10))
        assert twins.stream.snapshot().segments
        assert not paths
        twins.stream.flush()  # everything, so the outlier too becomes a leaf
        twins.append_in_parts(range(900, 1000, 10))
        assert twins.stream.snapshot().view.queue or paths[LATE]
        twins.stream.flush()
        twins.check()
        assert paths[LATE] == 10


def test_a_file_that_is_mostly_out_of_reach_is_written_anew(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(events_at(*range(0, 3000, 100)))
        stream.flush()
        for turn in range(20):
            stream.append(events_at(*range(105 + turn, 2905, 400)))
            stream.flush()
        stream.flush(seal=True)
        before = stream.snapshot()
        wasteful = [each for each in before.segments if each.wasted > each.bytes // 2]
        assert wasteful
        assert stream.compact() >= len(wasteful)
        after = stream.snapshot()
        assert all(each.wasted <= each.bytes // 2 for each in after.segments)
        assert after.size < before.size
        assert scanned(after) == scanned(before)
