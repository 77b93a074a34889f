"""Windows by count: a number of events of a key, however long they take.

    event   0  1  2  3  4  5  6  7      size 4, slide 2: panes of 2 events
            |-a-| |-b-| |-c-| |-d-|
            [ a    b ]                  a window merges the panes it covers
                  [ b    c ]

An event's place among those of its key is known when it comes, because events come in order of
(ts, seq): live, they are released only when the watermark has passed them. So a window is complete
with its last event. The state is a counter for each key, and the partials of panes that windows
still need. A key between two windows that share no event is as at the beginning, and is forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Frames, Groups
from eventide.accumulators.columns import int64s
from eventide.accumulators.picks import FirstOrLast
from eventide.arrays import no_rows, to_arrow, to_numpy
from eventide.kernels.aggregates.extremes import last_by_group
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.grouping import group_by_key_and_pane, number_events, order_by_key
from eventide.kernels.ordering import ranges
from eventide.operators.aggregate import accumulator_of, lift
from eventide.operators.checking import filled, require, require_keys, require_within
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, query_place
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layer import NEVER
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.windows.nodes import CountWindow, WindowAggregate

BOUNDS = (FirstOrLast(pa.timestamp("us"), first=True), FirstOrLast(pa.timestamp("us"), first=False))
"""A window's bounds are two more aggregates: the times of its first and of its last event."""
PLACE = ("key", "pane")
"""The first columns of a partial: the row of its key among the counters, and its pane."""


@dataclass(frozen=True)
class CountState:
    """How many events of each key have come, and the partials that windows still need."""

    counters: pa.RecordBatch
    partials: pa.RecordBatch

    @property
    def keys(self) -> tuple[pa.Array, ...]:
        """The columns of the keys."""
        return tuple(self.counters.columns[:-1])

    @cached_property
    def due(self) -> Int64s:
        """When keys have to be looked at: never, as only their own events change anything."""
        return np.full(self.counters.num_rows, NEVER, np.int64)

    @property
    def weight(self) -> int:
        """How many keys and partials there are."""
        return int(self.counters.num_rows + self.partials.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self.counters.nbytes + self.partials.nbytes)

    @cached_property
    def by_key(self) -> tuple[Int64s, Int64s]:
        """The partials in order of their keys, and where those of each key begin."""
        codes = frozen(self.partials.column(0).to_numpy())
        order = np.empty(len(codes), np.int64)
        offsets = np.zeros(self.counters.num_rows + 1, np.int64)
        order_by_key(codes, offsets, order)
        return order, offsets

    def take(self, keys: Int64s) -> Self:
        """Return the state of some keys, by number."""
        order, offsets = self.by_key
        counts = offsets[1:][keys] - offsets[keys]
        places = order[ranges(offsets[keys], counts)]
        numbers = np.repeat(np.arange(len(keys), dtype=np.int32), counts)
        partials = self.partials.take(to_arrow(places))
        return type(self)(self.counters.take(to_arrow(keys)), with_keys(partials, numbers))

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these keys, then those of other states."""
        counters, partials = [self.counters], [self.partials]
        before = self.counters.num_rows
        for other in others:
            codes = to_numpy(other.partials.column(0)) + np.int32(before)
            counters.append(other.counters)
            partials.append(with_keys(other.partials, codes))
            before += other.counters.num_rows
        return type(self)(
            concat_batches(counters, self.counters.schema),
            concat_batches(partials, self.partials.schema),
        )


def with_keys(partials: pa.RecordBatch, keys: Int32s) -> pa.RecordBatch:
    """Return partials with other numbers of their keys."""
    arrays = [pa.array(keys, pa.int32()), *partials.columns[1:]]
    return pa.RecordBatch.from_arrays(arrays, schema=partials.schema)


@dataclass(frozen=True, slots=True)
class Panes:
    """Merged partials: one for each pane and key, the panes of a key ascending.

    `ended` are the rows, of those that were merged, with which each pane ended: they ascend in the
    order in which panes were completed.
    """

    partials: pa.RecordBatch
    keys: Int32s
    numbers: Int64s
    ended: Int64s


@dataclass(frozen=True)
class AggregateCountWindows(Stateful[KeyLayers[CountState]]):
    """One row for each full window, in the order of their last events."""

    node: WindowAggregate
    output_schema: pa.Schema
    window: CountWindow = field(init=False)
    accumulators: tuple[Accumulator, ...] = field(init=False)
    counter_schema: pa.Schema = field(init=False)
    partial_schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.node.window, CountWindow)
        accumulators = tuple(accumulator_of(item.aggregate) for item in self.node.aggregates)
        keys = [pa.field(f"key{i}", key.type.arrow) for i, key in enumerate(self.node.keys)]
        fields = [pa.field(name, pa.int32() if name == "key" else pa.int64()) for name in PLACE]
        for i, accumulator in enumerate((*BOUNDS, *accumulators)):
            fields += [pa.field(f"a{i}_{j}", kind) for j, kind in enumerate(accumulator.types)]
        object.__setattr__(self, "window", self.node.window)
        object.__setattr__(self, "accumulators", (*BOUNDS, *accumulators))
        object.__setattr__(self, "counter_schema", pa.schema([*keys, ("seen", pa.int64())]))
        object.__setattr__(self, "partial_schema", pa.schema(fields))

    @property
    def pane_size(self) -> int:
        """The longest run of events that every window covers entirely or not at all.

        If there are gaps between windows, a pane is a window with the gap behind it.
        """
        size, slide = self.window.size, self.window.slide
        return slide if slide >= size else math.gcd(size, slide)

    def initial_state(self) -> KeyLayers[CountState]:
        """Return the state before the first batch."""
        return KeyLayers.of(
            CountState(
                no_rows(self.counter_schema),
                no_rows(self.partial_schema),
            )
        )

    def step(
        self, layers: KeyLayers[CountState], inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[KeyLayers[CountState], pa.RecordBatch]:
        """Take events; return the windows that they fill."""
        (rows,) = inputs
        if rows.num_rows == 0:
            return layers, no_rows(self.output_schema)
        columns = [evaluate(key.expression, rows) for key in self.node.keys]
        taken = layers.taken(columns, rows.num_rows, until_us)
        state = taken.part
        codes, keys, count = taken.numbered()
        before = np.zeros(count, np.int64)
        before[: state.counters.num_rows] = int64s(state.counters.column("seen"))
        seen, numbers = before.copy(), np.empty(rows.num_rows, np.int64)
        number_events(codes, seen, numbers)
        lifted = self.lift(rows, codes, numbers)
        panes = self.merge(concat_batches([state.partials, lifted], self.partial_schema))
        done = self.full(seen)
        results = self.report(panes, keys, self.full(before), done)
        counters = pa.RecordBatch.from_arrays([*keys, to_arrow(seen)], schema=self.counter_schema)
        after = CountState(counters, self.still_needed(panes, done))
        begun = seen % self.window.slide != 0
        if self.forgets_keys and not begun.all():
            after = after.take(np.flatnonzero(begun))
        return taken.put(after, until_us), results

    def size(self, layers: KeyLayers[CountState]) -> Size:
        """Return the size of the state."""
        return Size(layers.weight, layers.nbytes)

    @property
    def forgets_keys(self) -> bool:
        """Whether a key is as at the beginning after each slide: no event is in two windows."""
        return bool(self.node.keys) and self.window.slide >= self.window.size

    def of_keys(self, layers: KeyLayers[CountState], wanted: Wanted) -> KeyLayers[CountState]:
        """Return the state of the keys of some queries."""
        return layers.of_keys(query_place(self.node), wanted)

    def united(
        self, layers: KeyLayers[CountState], other: KeyLayers[CountState]
    ) -> KeyLayers[CountState]:
        """Return the state of the keys of both."""
        return layers.united(other)

    def write(self, layers: KeyLayers[CountState]) -> bytes:
        """Write the state out."""
        name, state = type(self).__name__, layers.whole
        counters = write_rows(f"{name} keys", state.counters, {})
        return join_parts([write_rows(name, state.partials, {}), counters])

    def read(self, written: bytes) -> KeyLayers[CountState]:
        """Read back what `write` wrote."""
        name = type(self).__name__
        first, second = parts_of(name, written, 2)
        partials, _ = read_rows(name, first, self.partial_schema)
        counters, _ = read_rows(f"{name} keys", second, self.counter_schema)
        self.check(counters, partials)
        return KeyLayers.of(CountState(counters, partials))

    def check(self, counters: pa.RecordBatch, partials: pa.RecordBatch) -> None:
        """Refuse impossible counts: each key has the panes since its first open window."""
        seen = filled(counters.column("seen"), "counts of events")
        require_within(seen, 0, 2**62, "counts of events")
        require_keys(counters.columns[:-1], len(seen))
        keys, panes = (filled(partials.column(name), "panes") for name in PLACE)
        require_within(keys, 0, len(seen), "keys of panes")
        first = self.full(seen) * (self.window.slide // self.pane_size)
        counts = np.maximum((seen - 1) // self.pane_size + 1 - first, 0)
        require(counts.sum(dtype=np.float64) == len(keys), "panes are missing, or too many")
        order = np.argsort(keys, kind="stable")
        require((keys[order] == np.repeat(np.arange(len(seen)), counts)).all(), "panes of keys")
        expected = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts - first, counts)
        require((panes[order] == expected).all(), "panes that do not follow each other")

    def full(self, seen: Int64s) -> Int64s:
        """Return how many windows of each key are full after that many of its events."""
        full: Int64s = np.maximum(0, (seen - self.window.size) // self.window.slide + 1)
        return full

    def lift(self, rows: pa.RecordBatch, codes: Int32s, numbers: Int64s) -> pa.RecordBatch:
        """Return the partial of each single event; those between windows are left out."""
        arrays = [to_arrow(codes), to_arrow(numbers // self.pane_size)]
        for bound in BOUNDS:
            arrays += bound.lift(rows.column("ts"))
        of_items = self.accumulators[len(BOUNDS) :]
        for accumulator, item in zip(of_items, self.node.aggregates, strict=True):
            arrays += lift(item.aggregate, accumulator, rows)
        lifted = pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)
        if self.pane_size <= self.window.size:
            return lifted
        return lifted.filter(to_arrow(numbers % self.pane_size < self.window.size))

    def merge(self, partials: pa.RecordBatch) -> Panes:
        """Merge partials of the same pane and key."""
        codes, numbers = (frozen(partials.column(name).to_numpy()) for name in PLACE)
        of_row, pane_of = (np.empty(len(codes), np.int64) for _ in range(2))
        key_of = np.empty(len(codes), np.int32)
        group_of_key = np.full(codes.max(initial=-1) + 1, -1, np.int64)
        found = group_by_key_and_pane(codes, numbers, group_of_key, of_row, pane_of, key_of)
        groups = Groups(frozen(of_row), found)
        arrays = [to_arrow(key_of[:found]), to_arrow(pane_of[:found])]
        for accumulator, parts in zip(self.accumulators, self.split(partials), strict=True):
            arrays += accumulator.by_group(parts, groups)
        ended = np.empty(found, np.int64)
        last_by_group(groups.of_row, ended)
        merged = pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)
        return Panes(merged, frozen(key_of[:found]), frozen(pane_of[:found]), frozen(ended))

    def split(self, partials: pa.RecordBatch) -> list[list[pa.Array]]:
        """Return each accumulator's columns."""
        columns, split = partials.columns[len(PLACE) :], []
        for accumulator in self.accumulators:
            width = len(accumulator.types)
            split.append(columns[:width])
            columns = columns[width:]
        return split

    def report(
        self, panes: Panes, keys: list[pa.Array], before: Int64s, done: Int64s
    ) -> pa.RecordBatch:
        """Return the windows [before, done) of each key, in the order of their last events."""
        order, offsets = np.empty(len(panes.keys), np.int64), np.zeros(len(done) + 1, np.int64)
        order_by_key(panes.keys, offsets, order)
        new = done - before
        key_of = np.repeat(np.arange(len(done)), new)
        number = np.arange(len(key_of)) - np.repeat(np.cumsum(new) - new, new) + before[key_of]
        # The panes of a key lie side by side, and the first is that of its first open window.
        step = self.window.slide // self.pane_size
        left = offsets[key_of] + (number - before[key_of]) * step
        right = left + max(1, self.window.size // self.pane_size)
        by_end = np.argsort(panes.ended[order[right - 1]])
        frames, in_order = Frames(frozen(left), frozen(right)), to_arrow(order)
        arrays = [key.take(to_arrow(key_of)) for key in keys]
        arrays += self.put_together(panes.partials.take(in_order), frames)
        windows = pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)
        return windows.take(to_arrow(by_end))

    def put_together(self, partials: pa.RecordBatch, frames: Frames) -> list[pa.Array]:
        """Return bounds and aggregates of windows, each from the partials of a frame."""
        return [
            accumulator.of_frames(parts, frames)
            for accumulator, parts in zip(self.accumulators, self.split(partials), strict=True)
        ]

    def still_needed(self, panes: Panes, done: Int64s) -> pa.RecordBatch:
        """Drop the panes that lie in full windows only."""
        first = done * (self.window.slide // self.pane_size)
        return panes.partials.filter(to_arrow(panes.numbers >= first[panes.keys]))
