"""A frame for every event: aggregates over the events of the same key just before it.

    ts     0   4   7   9   15       RANGE 5: the frame of the event at 9 is [4, 9]
           a   b   c   d   e        e's frame is [10, 15], e alone

An event leaves with its aggregates once the watermark has passed it, because only then all its
peers are known. The state is the events that wait for that, and by key those that later frames can
still reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, assert_never

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Frames
from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.kernels.aggregates.frames import keep_reachable_rows, range_frames, rows_frames
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.grouping import order_by_key
from eventide.kernels.ordering import ranges
from eventide.operators.aggregate import accumulator_of, arguments_of
from eventide.operators.checking import (
    require,
    require_ascending,
    require_ascending_in_runs,
    times_of,
)
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layer import NEVER
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import RangeFrame, RowsFrame
from eventide.plan.windows.nodes import SlidingAggregate
from eventide.schema import MIN_TS_US

FAR_US = 2**61
"""Longer than any frame, and no sum with a time overflows."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """Rows by key: row `order[i]` is the i-th, key k is [offsets[k], offsets[k + 1])."""

    order: Int64s
    offsets: Int64s

    @classmethod
    def of(cls, codes: Int32s, count: int) -> Self:
        """Put rows in order of their keys."""
        order, offsets = np.empty(len(codes), np.int64), np.zeros(count + 1, np.int64)
        order_by_key(codes, offsets, order)
        return cls(frozen(order), frozen(offsets))


@dataclass(frozen=True)
class FrameRows:
    """Events that later frames may reach: those of a key in order of time, keys in any order.

    `codes` has the number of each event's key, `keys` the columns of the keys.
    """

    rows: pa.RecordBatch
    node: SlidingAggregate
    codes: Int32s
    keys: tuple[pa.Array, ...]
    count: int
    """The number of keys; without columns of keys there is one."""

    @classmethod
    def of(cls, rows: pa.RecordBatch, node: SlidingAggregate) -> Self:
        """Number the keys of events."""
        columns = [evaluate(key, rows) for key in node.keys]
        codes, keys, count = encode_keys(columns, rows.num_rows)
        return cls(rows, node, codes, tuple(keys), count)

    @cached_property
    def by_key(self) -> KeyOrder:
        """The events of each key."""
        return KeyOrder.of(frozen(self.codes), self.count)

    @cached_property
    def due(self) -> Int64s:
        """When the last row of each key is out of reach of all frames."""
        by_key = self.by_key
        due = np.full(self.count, NEVER, np.int64)
        if isinstance(self.node.frame, RangeFrame) and self.rows.num_rows:
            last = int64s(self.rows.column("ts"))[by_key.order[by_key.offsets[1:] - 1]]
            due = last + min(self.node.frame.preceding_us, FAR_US)
        return due

    @property
    def weight(self) -> int:
        """The number of rows; every key has some."""
        return int(self.rows.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes the rows take."""
        return int(self.rows.nbytes)

    def take(self, keys: Int64s) -> Self:
        """Return the rows of some keys, by number."""
        by_key = self.by_key
        counts = by_key.offsets[1:][keys] - by_key.offsets[keys]
        places = by_key.order[ranges(by_key.offsets[keys], counts)]
        chosen = to_arrow(keys)
        return type(self)(
            self.rows.take(to_arrow(places)),
            self.node,
            np.repeat(np.arange(len(keys), dtype=np.int32), counts),
            tuple(key.take(chosen) for key in self.keys),
            len(keys),
        )

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these rows, then those of other keys."""
        parts = [self, *others]
        codes, count = [], 0
        for each in parts:
            codes.append(each.codes + np.int32(count))
            count += each.count
        columns = zip(*(each.keys for each in parts), strict=True)
        return type(self)(
            concat_batches([each.rows for each in parts], self.rows.schema),
            self.node,
            np.concatenate(codes),
            tuple(map(pa.concat_arrays, columns)),
            count,
        )

    def only(self, wanted: Bools) -> tuple[Self, Int64s]:
        """Return some of the rows, and the keys that these have, by number."""
        if wanted.all():
            return self, np.arange(self.count)
        rows, codes = self.rows.filter(to_arrow(wanted)), self.codes[wanted]
        if not self.keys:
            return type(self)(rows, self.node, codes, (), self.count), np.arange(self.count)
        has_rows = np.zeros(self.count, np.bool_)
        has_rows[codes] = True
        stayed = np.flatnonzero(has_rows)
        numbers = np.cumsum(has_rows, dtype=np.int32) - np.int32(1)
        chosen = to_arrow(stayed)
        keys = tuple(key.take(chosen) for key in self.keys)
        return type(self)(rows, self.node, numbers[codes], keys, len(stayed)), stayed


@dataclass(frozen=True, slots=True)
class SlidingState:
    """Events that have left, by key, and those that wait for the watermark, in order of time."""

    done: KeyLayers[FrameRows]
    waiting: pa.RecordBatch


@dataclass(frozen=True)
class AggregateFrames(Stateful[SlidingState]):
    """Every event with aggregates over its frame, once the watermark has passed it.

    Only events in `owned` are reported: a slice of a larger run owns some events and reads
    those before it as well.
    """

    node: SlidingAggregate
    output_schema: pa.Schema
    owned: TimeRange = ALL_TIME
    accumulators: tuple[Accumulator, ...] = field(init=False)

    def __post_init__(self) -> None:
        accumulators = tuple(accumulator_of(item.aggregate) for item in self.node.aggregates)
        object.__setattr__(self, "accumulators", accumulators)

    @property
    def source_schema(self) -> pa.Schema:
        """The columns of the events."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.source.row.items()])

    def initial_state(self) -> SlidingState:
        """Return the state before the first batch."""
        nothing = no_rows(self.source_schema)
        return SlidingState(KeyLayers.of(FrameRows.of(nothing, self.node)), nothing)

    def step(
        self, state: SlidingState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[SlidingState, pa.RecordBatch]:
        """Take events; return those before `until_us`."""
        rows = concat_batches([state.waiting, *inputs], self.source_schema)
        count = rows.num_rows
        if until_us != END_OF_TIME_US:
            count = passed(int64s(rows.column("ts")), until_us)
        leaving, waiting = rows.slice(0, count), rows.slice(count)
        taken = state.done.taken(
            [evaluate(key, leaving) for key in self.node.keys], count, until_us
        )
        before = taken.part.rows.num_rows
        rows = concat_batches([taken.part.rows, leaving], self.source_schema)
        codes, keys, known = taken.numbered()
        codes = np.concatenate([taken.part.codes, codes])
        reached = FrameRows(rows, self.node, codes, tuple(keys), known)
        ts, by_key = int64s(rows.column("ts")), reached.by_key
        results = self.report(rows, ts, by_key, before)
        kept, stayed = reached.only(self.still_needed(ts, by_key, until_us))
        return SlidingState(taken.put(kept, until_us, stayed), waiting), results

    def size(self, state: SlidingState) -> Size:
        """Return the size of the state."""
        held = state.waiting
        return Size(state.done.weight + held.num_rows, state.done.nbytes + held.nbytes)

    def write(self, state: SlidingState) -> bytes:
        """Write the state out."""
        done = state.done.whole.rows
        rows = concat_batches([done, state.waiting], self.source_schema)
        return write_rows(type(self).__name__, rows, {"done": done.num_rows})

    def read(self, written: bytes) -> SlidingState:
        """Read back what `write` wrote."""
        rows, facts = read_rows(type(self).__name__, written, self.source_schema)
        ts, done = times_of(rows), facts["done"]
        require(0 <= done <= rows.num_rows, f"{done} of {rows.num_rows} events have left")
        left = FrameRows.of(rows.slice(0, done), self.node)
        # Layers leave keys in any order; only the events of one key are in order of time.
        by_key = left.by_key
        starts = by_key.offsets[1:-1]
        require_ascending_in_runs(ts[by_key.order], starts, "times of events of a key")
        # Waiting events come behind all that have left.
        newest = ts[:done].max(initial=MIN_TS_US)
        require_ascending(np.append(newest, ts[done:]), "times of events that wait")
        return SlidingState(KeyLayers.of(left), rows.slice(done))

    def report(
        self, rows: pa.RecordBatch, ts: Int64s, by_key: KeyOrder, start: int
    ) -> pa.RecordBatch:
        """Return the rows from `start` on, of those owned, with their aggregates."""
        leaving = ts[start:]
        first, last = (passed(leaving, us) for us in (self.owned.start_us, self.owned.end_us))
        if self.owned.end_us == END_OF_TIME_US:
            last = len(leaving)
        start, end = start + first, start + max(first, last)
        frames, place = self.frames(ts, by_key, start, end)
        in_order = pa.array(by_key.order)
        arrays = rows.slice(start, end - start).columns
        for item, accumulator in zip(self.node.aggregates, self.accumulators, strict=True):
            values = [each.take(in_order) for each in arguments_of(item.aggregate, rows)]
            arrays.append(accumulator.of_frames(accumulator.lift(*values), frames).take(place))
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def frames(self, ts: Int64s, by_key: KeyOrder, start: int, end: int) -> tuple[Frames, pa.Array]:
        """Return the frames of rows [start, end) in key order, and where each row's frame is."""
        left, right = np.empty(len(ts), np.int64), np.empty(len(ts), np.int64)
        match self.node.frame:
            case RangeFrame(preceding_us):
                range_frames(frozen(ts[by_key.order]), by_key.offsets, preceding_us, left, right)
            case RowsFrame(preceding):
                rows_frames(by_key.offsets, preceding, left, right)
            case _ as unreachable:
                assert_never(unreachable)
        wanted = (by_key.order >= start) & (by_key.order < end)
        place = np.empty(end - start, np.int64)
        place[by_key.order[wanted] - start] = np.arange(end - start)
        return Frames(frozen(left[wanted]), frozen(right[wanted])), pa.array(place)

    def still_needed(self, ts: Int64s, by_key: KeyOrder, watermark_us: int) -> Bools:
        """Return which events, of those that have left, later frames can reach."""
        match self.node.frame:
            case RangeFrame(preceding_us):
                # Events to come have ts >= watermark, so their frames start no earlier.
                reached = ts >= max(watermark_us, -FAR_US) - preceding_us
                if watermark_us == END_OF_TIME_US:
                    reached[:] = False
            case RowsFrame(preceding):
                reached = np.zeros(len(ts), np.bool_)
                keep_reachable_rows(by_key.order, by_key.offsets, len(ts), preceding, reached)
            case _ as unreachable:
                assert_never(unreachable)
        return reached


def passed(ts: Int64s, instant_us: int) -> int:
    """Return how many rows come before an instant."""
    clamped = min(max(instant_us, START_OF_TIME_US), END_OF_TIME_US)
    return int(np.searchsorted(ts, np.int64(clamped)))
