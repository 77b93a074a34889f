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
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.operators.aggregate import accumulator_of, arguments_of
from eventide.operators.checking import (
    require,
    require_ascending,
    require_ascending_in_runs,
    times_of,
)
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.dividing import Wanted, merged_by, query_place, rows_where
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.held_rows import HeldRows
from eventide.operators.key_layer import NEVER
from eventide.operators.key_layers import KeyLayers
from eventide.operators.key_parts import KeyOrder, key_parts, row_parts
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import RangeFrame, RowsFrame
from eventide.plan.windows.nodes import SlidingAggregate
from eventide.schema import MIN_TS_US
from eventide.threads import in_threads

FAR_US = 2**61
"""Longer than any frame, and no sum with a time overflows."""


@dataclass(frozen=True)
class FrameRows(HeldRows):
    """Events that later frames may reach."""

    node: SlidingAggregate

    @classmethod
    def of(cls, rows: pa.RecordBatch, node: SlidingAggregate) -> Self:
        """Number the keys of events."""
        columns = [evaluate(key, rows) for key in node.keys]
        codes, keys, count = encode_keys(columns, rows.num_rows)
        return cls(rows, codes, tuple(keys), count, node)

    @cached_property
    def due(self) -> Int64s:
        """When the last row of each key is out of reach of all frames."""
        by_key = self.by_key
        due = np.full(self.count, NEVER, np.int64)
        if isinstance(self.node.frame, RangeFrame) and self.rows.num_rows:
            last = int64s(self.rows.column("ts"))[by_key.order[by_key.offsets[1:] - 1]]
            due = last + min(self.node.frame.preceding_us, FAR_US)
        return due


@dataclass(frozen=True, slots=True)
class SlidingState:
    """Events that have left, by key, and those that wait for the watermark, in order of time."""

    done: KeyLayers[FrameRows]
    waiting: pa.RecordBatch


@dataclass(frozen=True)
class AggregateFrames(Stateful[SlidingState]):
    """Every event with aggregates over its frame, once the watermark has passed it.

    Only events in `owned` are reported: a slice of a larger run owns some events and reads
    those before it as well. Large batches of many keys are shared among `threads`.
    """

    node: SlidingAggregate
    output_schema: pa.Schema
    owned: TimeRange = ALL_TIME
    threads: int = field(default=1, compare=False)
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
        codes, keys, known = taken.numbered(self.threads)
        codes = frozen(np.concatenate([taken.part.codes, codes]))
        reached = FrameRows(rows, codes, tuple(keys), known, self.node)
        ts, by_key = int64s(rows.column("ts")), KeyOrder.of(codes, known, self.threads)
        parts = [by_key.part(*keys) for keys in key_parts(by_key.offsets, self.threads)]
        results = self.report(rows, ts, parts, before)
        kept, stayed = reached.only(self.still_needed(ts, parts, until_us))
        return SlidingState(taken.put(kept, until_us, stayed), waiting), results

    def size(self, state: SlidingState) -> Size:
        """Return the size of the state."""
        held = state.waiting
        return Size(state.done.weight + held.num_rows, state.done.nbytes + held.nbytes)

    def of_keys(self, state: SlidingState, wanted: Wanted) -> SlidingState:
        """Return the events for some queries."""
        place = query_place(self.node)
        numbers = evaluate(self.node.keys[place], state.waiting)
        waiting = rows_where(state.waiting, numbers, wanted)
        return SlidingState(state.done.of_keys(place, wanted), waiting)

    def united(self, state: SlidingState, other: SlidingState) -> SlidingState:
        """Return the events of both; those that wait are in order of time."""
        waiting = merged_by(state.waiting, other.waiting)
        return SlidingState(state.done.united(other.done), waiting)

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
        self, rows: pa.RecordBatch, ts: Int64s, parts: Sequence[KeyOrder], start: int
    ) -> pa.RecordBatch:
        """Return the rows from `start` on, of those owned, with their aggregates."""
        leaving = ts[start:]
        first, last = (passed(leaving, us) for us in (self.owned.start_us, self.owned.end_us))
        if self.owned.end_us == END_OF_TIME_US:
            last = len(leaving)
        start, end = start + first, start + max(first, last)
        arguments = [arguments_of(item.aggregate, rows) for item in self.node.aggregates]
        done = in_threads(
            lambda part: self.aggregated(ts, arguments, part, (start, end)), parts, self.threads
        )
        values = [
            pa.concat_arrays(each) for each in zip(*(found for _, found in done), strict=True)
        ]
        arrays = rows.slice(start, end - start).columns
        arrays += in_row_order(values, [own for own, _ in done], self.threads)
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def aggregated(
        self,
        ts: Int64s,
        arguments: Sequence[Sequence[pa.Array]],
        by_key: KeyOrder,
        wanted: tuple[int, int],
    ) -> tuple[Int64s, list[pa.Array]]:
        """Return the wanted rows of some keys, by number from the first, and their aggregates."""
        start, end = wanted
        left, right = self.frames(ts, by_key)
        own = (by_key.order >= start) & (by_key.order < end)
        frames = Frames(frozen(left[own]), frozen(right[own]))
        in_order = to_arrow(by_key.order)
        found = [
            each.of_frames(each.lift(*(value.take(in_order) for value in values)), frames)
            for each, values in zip(self.accumulators, arguments, strict=True)
        ]
        return by_key.order[own] - start, found

    def frames(self, ts: Int64s, by_key: KeyOrder) -> tuple[Int64s, Int64s]:
        """Return where the frame of each row begins and ends, all in key order."""
        count = len(by_key.order)
        left, right = np.empty(count, np.int64), np.empty(count, np.int64)
        match self.node.frame:
            case RangeFrame(preceding_us):
                range_frames(frozen(ts[by_key.order]), by_key.offsets, preceding_us, left, right)
            case RowsFrame(preceding):
                rows_frames(by_key.offsets, preceding, left, right)
            case _ as unreachable:
                assert_never(unreachable)
        return left, right

    def still_needed(self, ts: Int64s, parts: Sequence[KeyOrder], watermark_us: int) -> Bools:
        """Return which events, of those that have left, later frames can reach."""
        match self.node.frame:
            case RangeFrame(preceding_us):
                # Events to come have ts >= watermark, so their frames start no earlier.
                reached = ts >= max(watermark_us, -FAR_US) - preceding_us
                if watermark_us == END_OF_TIME_US:
                    reached[:] = False
            case RowsFrame(preceding):
                reached = np.zeros(len(ts), np.bool_)
                for part in parts:
                    keep_reachable_rows(part.order, part.offsets, len(ts), preceding, reached)
            case _ as unreachable:
                assert_never(unreachable)
        return reached


def in_row_order(
    values: Sequence[pa.Array], rows: Sequence[Int64s], threads: int
) -> list[pa.Array]:
    """Return columns of which the values of each part of `rows` come one after the other."""
    firsts = np.cumsum([0, *map(len, rows)])
    place = np.empty(int(firsts[-1]), np.int64)

    def write(part: int) -> None:
        place[rows[part]] = np.arange(firsts[part], firsts[part + 1])

    in_threads(write, range(len(rows)), threads)
    places = [to_arrow(place[first:last]) for first, last in row_parts(len(place), threads)]
    parts = in_threads(lambda own: [each.take(own) for each in values], places)
    return parts[0] if len(parts) == 1 else list(map(pa.concat_arrays, zip(*parts, strict=True)))


def passed(ts: Int64s, instant_us: int) -> int:
    """Return how many rows come before an instant."""
    clamped = min(max(instant_us, START_OF_TIME_US), END_OF_TIME_US)
    return int(np.searchsorted(ts, np.int64(clamped)))
