"""A frame for every event: aggregates over the events of the same key just before it.

    ts     0   4   7   9   15       RANGE 5: the frame of the event at 9 is [4, 9]
           a   b   c   d   e        e's frame is [10, 15], e alone

An event leaves with its aggregates once the watermark has passed it, for only then are all its
peers known. The state is the events that later frames can still reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Frames
from eventide.accumulators.columns import int64s
from eventide.batch import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, Batch, TimeRange
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.frames import keep_reachable_rows, range_frames, rows_frames
from eventide.kernels.groups import order_by_key
from eventide.operators.aggregate import accumulator_of
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.evaluate import evaluate
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import RangeFrame, RowsFrame
from eventide.plan.nodes import SlidingAggregate


@dataclass(frozen=True, slots=True)
class SlidingState:
    """Events in order of time: the first `done` have left, later frames may still reach them."""

    rows: pa.RecordBatch
    done: int = 0


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """Rows by key: row `order[i]` is the i-th, key k is [offsets[k], offsets[k + 1])."""

    order: Int64s
    offsets: Int64s


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
        return SlidingState(pa.RecordBatch.from_pylist([], schema=self.source_schema))

    def step(self, state: SlidingState, batch: Batch) -> tuple[SlidingState, Batch]:
        """Take a batch in; return the events that its watermark has passed."""
        rows = concat_batches([state.rows, batch.rows], self.source_schema)
        ts = int64s(rows.column("ts"))
        done = len(ts) if batch.watermark_us == END_OF_TIME_US else passed(ts, batch.watermark_us)
        if done <= state.done:
            nothing = pa.RecordBatch.from_pylist([], schema=self.output_schema)
            return SlidingState(rows, state.done), Batch(nothing, batch.watermark_us)
        keys = [evaluate(key, rows) for key in self.node.keys]
        codes, _, count = encode_keys(keys, rows.num_rows)
        order, offsets = np.empty(len(ts), np.int64), np.zeros(count + 1, np.int64)
        order_by_key(codes, offsets, order)
        by_key = KeyOrder(frozen(order), frozen(offsets))
        results = self.report(rows, ts, by_key, state.done, done)
        kept = self.still_needed(rows, ts, by_key, done, batch.watermark_us)
        return kept, Batch(results, batch.watermark_us)

    def write(self, state: SlidingState) -> bytes:
        """Write the state out."""
        return write_rows(type(self).__name__, state.rows, {"done": state.done})

    def read(self, written: bytes) -> SlidingState:
        """Read back what `write` wrote."""
        rows, facts = read_rows(type(self).__name__, written, self.source_schema)
        return SlidingState(rows, facts["done"])

    def report(
        self, rows: pa.RecordBatch, ts: Int64s, by_key: KeyOrder, start: int, end: int
    ) -> pa.RecordBatch:
        """Return rows [start, end) of those owned, with their aggregates."""
        start = max(start, passed(ts, self.owned.start_us))
        end = max(start, min(end, passed(ts, self.owned.end_us)))
        frames, place = self.frames(ts, by_key, start, end)
        in_order = pa.array(by_key.order)
        arrays = rows.slice(start, end - start).columns
        for item, accumulator in zip(self.node.aggregates, self.accumulators, strict=True):
            argument = item.aggregate.argument
            values = rows.column("ts") if argument is None else evaluate(argument, rows)
            partials = accumulator.by_frame(accumulator.lift(values.take(in_order)), frames)
            arrays.append(accumulator.finish(partials).take(place))
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

    def still_needed(
        self, rows: pa.RecordBatch, ts: Int64s, by_key: KeyOrder, done: int, watermark_us: int
    ) -> SlidingState:
        """Drop the events that no later frame can reach."""
        match self.node.frame:
            case RangeFrame(preceding_us):
                # Rows not yet done have ts >= watermark, so their frames start no earlier.
                start = min(done, passed(ts, watermark_us - preceding_us))
                return SlidingState(rows.slice(start), done - start)
            case RowsFrame(preceding):
                keep = np.zeros(len(ts), np.bool_)
                keep_reachable_rows(by_key.order, by_key.offsets, done, preceding, keep)
                return SlidingState(rows.filter(pa.array(keep)), int(keep[:done].sum()))
            case _ as unreachable:
                assert_never(unreachable)


def passed(ts: Int64s, instant_us: int) -> int:
    """Return how many rows come before an instant."""
    clamped = min(max(instant_us, START_OF_TIME_US), END_OF_TIME_US)
    return int(np.searchsorted(ts, np.int64(clamped)))
