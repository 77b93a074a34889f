"""Tumbling and hopping windows by key.

    ts    0    5    10   15   20        size 10, slide 5: panes of 5
          |-a--|-b--|-c--|-d--|
          [ a    b  )                   a window merges the panes it covers
               [ b    c  )

Events are reduced to one partial for each pane and key as they come; a window is merged from its
panes when the watermark reaches its end. The state is the table of partials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Frames, Groups
from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.kernels.aggregates.frames import window_frames
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.grouping import group_by_pane, order_by_key
from eventide.operators.aggregate import accumulator_of, arguments_of
from eventide.operators.checking import (
    filled,
    require,
    require_ascending,
    require_instant,
    require_within,
)
from eventide.operators.columns import concat_batches, encode_keys, with_later
from eventide.operators.dividing import Wanted, query_place
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.operator import Size
from eventide.operators.stateful import Stateful
from eventide.operators.windows.window_state import (
    PANE,
    WindowState,
    read_windows,
    together,
    write_windows,
)
from eventide.plan.aggregates import AGGREGATES
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import MAX_TS_US, MIN_TS_US

# Keeps sums of an instant and a window's size inside 64 bits.
FAR_US = 2**61


@dataclass(frozen=True)
class AggregateWindows(Stateful[WindowState]):
    """One row for each window and key with an event, when the watermark reaches its end.

    Only windows that start in `owned` are reported: a slice of a larger run owns some windows
    and reads the events of others as well.
    """

    node: WindowAggregate
    output_schema: pa.Schema
    owned: TimeRange = ALL_TIME
    window: Window = field(init=False)
    accumulators: tuple[Accumulator, ...] = field(init=False)
    partial_schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.node.window, Window)
        accumulators = tuple(accumulator_of(item.aggregate) for item in self.node.aggregates)
        fields = [pa.field(f"key{i}", key.type.arrow) for i, key in enumerate(self.node.keys)]
        fields.append(pa.field(PANE, pa.int64()))
        for i, accumulator in enumerate(accumulators):
            fields += [pa.field(f"a{i}_{j}", kind) for j, kind in enumerate(accumulator.types)]
        object.__setattr__(self, "window", self.node.window)
        object.__setattr__(self, "accumulators", accumulators)
        object.__setattr__(self, "partial_schema", pa.schema(fields))

    @property
    def pane_us(self) -> int:
        """The longest period that every window covers entirely or not at all."""
        return math.gcd(self.window.size_us, self.window.slide_us)

    def initial_state(self) -> WindowState:
        """Return the state before the first batch."""
        return WindowState(no_rows(self.partial_schema))

    def step(
        self, state: WindowState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[WindowState, pa.RecordBatch]:
        """Take events; return the windows that end at or before `until_us`."""
        (rows,) = inputs
        if not state.ahead:
            return self.taken(state, rows, until_us)
        found: list[pa.RecordBatch] = []
        while state.ahead and state.ahead[0].closed_us <= until_us:
            own, following, *further = state.parts
            reached_us = following.closed_us
            count = int(np.searchsorted(int64s(rows.column("ts")), reached_us))
            own, results = self.taken(own, rows.slice(0, count), reached_us)
            found.append(results)
            state, rows = together((own, following, *further)), rows.slice(count)
        after, results = self.taken(state.alone, rows, until_us)
        return together((after, *state.ahead)), concat_batches([*found, results], results.schema)

    def taken(
        self, state: WindowState, rows: pa.RecordBatch, until_us: int
    ) -> tuple[WindowState, pa.RecordBatch]:
        """Take events for a state of which nothing is ahead."""
        layers = (state.oldest, *state.later)
        if rows.num_rows:
            layers = with_later(layers, self.lift(rows))
        closes = self.closes_window(layers[0], state, until_us)
        closed_us = max(state.closed_us, until_us)
        # Merging when the rows have doubled keeps memory near one partial a pane and key, at a
        # constant cost for each event.
        count = sum(each.num_rows for each in layers)
        if not closes and count <= 2 * state.merged_rows + 65_536:
            after = WindowState(layers[0], state.merged_rows, closed_us, later=layers[1:])
            return after, no_rows(self.output_schema)
        partials = self.merge(concat_batches(layers, self.partial_schema))
        if not closes:
            after = WindowState(partials, partials.num_rows, closed_us)
            return after, no_rows(self.output_schema)
        results = self.close(partials, state.closed_us, closed_us)
        partials = self.still_needed(partials, closed_us)
        return WindowState(partials, partials.num_rows, closed_us), results

    def reached(self, state: WindowState, until_us: int) -> int:  # noqa: ARG002 - whatever is open
        """Return the instant before which all windows are reported: those that end now are."""
        return until_us if until_us == END_OF_TIME_US else until_us + 1

    def size(self, state: WindowState) -> Size:
        """Return the size of the state."""
        parts = state.parts
        return Size(sum(each.rows for each in parts), sum(each.nbytes for each in parts))

    @property
    def merges_in_any_order(self) -> bool:
        """Whether partials need not come in order of time."""
        return not any(
            AGGREGATES[item.aggregate.function].needs_order for item in self.node.aggregates
        )

    def combine(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Return all windows of partials that were lifted elsewhere, in any order."""
        order = np.argsort(int64s(partials.column(PANE)), kind="stable")
        merged = self.merge(partials.take(to_arrow(order)))
        return self.close(merged, START_OF_TIME_US, END_OF_TIME_US)

    def of_keys(self, state: WindowState, wanted: Wanted) -> WindowState:
        """Return the partials for some queries."""
        return state.of_keys(query_place(self.node), wanted)

    def united(self, state: WindowState, other: WindowState) -> WindowState:
        """Return the partials of both."""
        return state.united(other)

    def write(self, state: WindowState) -> bytes:
        """Write the state out."""
        return write_windows(type(self).__name__, state)

    def read(self, written: bytes) -> WindowState:
        """Read back what `write` wrote."""
        state = read_windows(type(self).__name__, written, self.partial_schema)
        for part in state.parts:
            panes = filled(part.partials.column(PANE), "panes")
            require_ascending(panes, "panes")
            require_within(panes, MIN_TS_US - self.pane_us, MAX_TS_US + 1, "panes")
            self.check_panes(panes)
            merged_rows = part.merged_rows
            require(0 <= merged_rows <= len(panes), f"{merged_rows} of {len(panes)} partials")
            require_instant(part.closed_us, "the last window that is closed")
        return state

    def check_panes(self, panes: Int64s) -> None:
        """Refuse panes that are none of the window's."""
        require(not (panes % self.pane_us).any(), "a pane that is none of the window's")

    def lift(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Reduce events to one partial for each pane and key."""
        if rows.num_rows == 0:
            return no_rows(self.partial_schema)
        keys = [evaluate(key.expression, rows) for key in self.node.keys]
        return self.reduced(keys, int64s(rows.column("ts")), partial(self.lifted, rows))

    def lifted(self, rows: pa.RecordBatch, groups: Groups) -> Iterator[list[pa.Array]]:
        """Yield the partials of groups of events, those of each accumulator."""
        for item, accumulator in zip(self.node.aggregates, self.accumulators, strict=True):
            yield accumulator.of_groups(arguments_of(item.aggregate, rows), groups)

    def merge(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Merge partials of the same pane and key."""
        keys, panes, columns = self.split(partials)
        return self.reduced(keys, panes, partial(self.merged, columns))

    def merged(self, columns: Sequence[list[pa.Array]], groups: Groups) -> Iterator[list[pa.Array]]:
        """Yield the partials of groups of partials, those of each accumulator."""
        for accumulator, partials in zip(self.accumulators, columns, strict=True):
            yield accumulator.by_group(partials, groups)

    def split(
        self, partials: pa.RecordBatch
    ) -> tuple[list[pa.Array], Int64s, list[list[pa.Array]]]:
        """Return the key columns, the pane starts, and each accumulator's columns."""
        columns = partials.columns
        place = len(self.node.keys)
        split: list[list[pa.Array]] = []
        for accumulator in self.accumulators:
            start = place + 1 + sum(map(len, split))
            split.append(columns[start : start + len(accumulator.types)])
        return columns[:place], int64s(columns[place]), split

    def reduced(
        self,
        keys: list[pa.Array],
        ts: Int64s,
        merge: Callable[[Groups], Iterable[list[pa.Array]]],
    ) -> pa.RecordBatch:
        """Return a row for each pane and key with the merged partials of its rows.

        Rows are in order of time.
        """
        codes, distinct, count = encode_keys(keys, len(ts))
        of_row, panes, key_of = (np.empty(len(ts), np.int64) for _ in range(3))
        group_of_key = np.full(count, -1, np.int64)
        found = group_by_pane(ts, codes, self.pane_us, group_of_key, of_row, panes, key_of)
        groups = Groups(frozen(of_row), found)
        key_rows = to_arrow(key_of[:found])
        arrays = [key.take(key_rows) for key in distinct] + [to_arrow(panes[:found])]
        arrays += chain.from_iterable(merge(groups))
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)

    def closes_window(
        self, partials: pa.RecordBatch, state: WindowState, watermark_us: int
    ) -> bool:
        """Whether a window with an event ends in (closed, watermark]."""
        if partials.num_rows == 0 or watermark_us <= state.closed_us:
            return False
        window = self.window
        oldest: int = partials.column(PANE)[0].as_py()
        # The first window to end that can hold the oldest pane or a later one.
        earliest = (oldest - window.size_us) // window.slide_us + 1
        first_end = max(
            earliest * window.slide_us + window.size_us,
            next_end(state.closed_us, window.size_us, window.slide_us),
        )
        return first_end <= watermark_us

    def close(self, partials: pa.RecordBatch, closed_us: int, watermark_us: int) -> pa.RecordBatch:
        """Return the windows that end in (closed_us, watermark_us], from merged partials."""
        window = self.window
        # Ends in (closed, watermark] are starts in [closed - size + 1, watermark - size + 1).
        from_us = max(closed_us, -FAR_US) - window.size_us + 1
        to_us = min(watermark_us, FAR_US) - window.size_us + 1
        starts = TimeRange(from_us, to_us).intersect(self.owned)
        keys, panes, columns = self.split(partials)
        if window.is_tumbling:
            # Panes ascend, so the windows to report lie side by side.
            bounds = np.searchsorted(panes, [starts.start_us, max(starts.start_us, starts.end_us)])
            chosen = slice(int(bounds[0]), int(bounds[1]))
            answers = [
                accumulator.finish([part[chosen] for part in parts])
                for accumulator, parts in zip(self.accumulators, columns, strict=True)
            ]
            return self.rows([key[chosen] for key in keys], panes[chosen], answers)
        return self.close_hopping(keys, panes, columns, starts)

    def close_hopping(
        self,
        keys: list[pa.Array],
        panes: Int64s,
        columns: list[list[pa.Array]],
        starts: TimeRange,
    ) -> pa.RecordBatch:
        """Return the windows that start in `starts`, each merged from its panes."""
        codes, distinct, count = encode_keys(keys, len(panes))
        order, offsets = np.empty(len(panes), np.int64), np.zeros(count + 1, np.int64)
        order_by_key(codes, offsets, order)
        window_starts, key_of, frames = self.frames(panes[order], offsets, starts)
        in_order = to_arrow(order)
        answers = [
            accumulator.of_frames([part.take(in_order) for part in parts], frames)
            for accumulator, parts in zip(self.accumulators, columns, strict=True)
        ]
        return self.rows([key.take(to_arrow(key_of)) for key in distinct], window_starts, answers)

    def frames(
        self, panes: Int64s, offsets: Int64s, starts: TimeRange
    ) -> tuple[Int64s, Int64s, Frames]:
        """Return the windows that start in `starts`: their starts, keys, and frames of panes.

        The panes of key k are those from offsets[k] to offsets[k + 1].
        """
        window = self.window
        limits = (window.size_us, window.slide_us, starts.start_us, starts.end_us)
        inputs = (frozen(panes), frozen(offsets), limits)
        none = np.empty(0, np.int64)
        found = window_frames(*inputs, none, none, none, none)
        window_starts, key_of, left, right = (np.empty(found, np.int64) for _ in range(4))
        window_frames(*inputs, window_starts, key_of, left, right)
        return window_starts, key_of, Frames(frozen(left), frozen(right))

    def rows(self, keys: list[pa.Array], starts: Int64s, answers: list[pa.Array]) -> pa.RecordBatch:
        """Return the rows of windows, from their keys, starts and aggregates."""
        bounds = [to_arrow(starts), to_arrow(starts + self.window.size_us)]
        arrays = keys + [bound.view(pa.timestamp("us")) for bound in bounds]
        return pa.RecordBatch.from_arrays([*arrays, *answers], schema=self.output_schema)

    def still_needed(self, partials: pa.RecordBatch, closed_us: int) -> pa.RecordBatch:
        """Drop the panes that lie only in closed windows."""
        window = self.window
        next_start = next_end(closed_us, window.size_us, window.slide_us) - window.size_us
        panes = int64s(partials.column(PANE))
        # Panes ascend, so those still needed are a tail.
        return partials.slice(int(np.searchsorted(panes, next_start)))


def next_end(closed_us: int, size_us: int, slide_us: int) -> int:
    """Return the first window end after an instant."""
    clamped = min(max(closed_us, -FAR_US), FAR_US)
    return ((clamped - size_us) // slide_us + 1) * slide_us + size_us
