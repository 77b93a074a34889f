"""Tumbling and hopping windows that take late events as long as they are open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.kernels.compiled import Int64s
from eventide.operators.aggregate import lift
from eventide.operators.columns import concat_batches
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.windows.by_time import AggregateWindows, next_end
from eventide.operators.windows.late import Bools, needs_order
from eventide.operators.windows.window_state import WindowState


@dataclass(frozen=True)
class AggregateLateWindows(AggregateWindows):
    """Tumbling and hopping windows that take late events; see `AggregateWindows`.

    If the order of events matters, the column `pane` of partials has the times of events.
    """

    def is_open(self, ts: Int64s, watermark_us: int) -> Bools:
        """Return whether events of these times belong to a window that is open."""
        return ts >= self.first_open(watermark_us)

    def joins(
        self,
        state: WindowState,  # noqa: ARG002 - whatever other events there are
        rows: pa.RecordBatch,
        watermark_us: int,
    ) -> Bools:
        """Return whether events belong to a window that is open."""
        return self.is_open(int64s(rows.column("ts")), watermark_us)

    def first_open(self, watermark_us: int) -> int:
        """Return the start of the first window that is open."""
        size_us, slide_us = self.window.size_us, self.window.slide_us
        return next_end(watermark_us, size_us, slide_us) - size_us

    @cached_property
    def keeps_events(self) -> bool:
        """Whether the partials of single events are kept."""
        return needs_order(self.node.aggregates)

    def taken(
        self, state: WindowState, rows: pa.RecordBatch, until_us: int
    ) -> tuple[WindowState, pa.RecordBatch]:
        """Take events for a state of which nothing is ahead."""
        rows = rows.slice(
            int(np.searchsorted(int64s(rows.column("ts")), self.first_open(state.closed_us)))
        )
        both = [state.partials, self.lift(rows)]
        partials = in_order_of_panes(concat_batches(both, self.partial_schema))
        closes = self.closes_window(partials, state, until_us)
        merged_rows = state.merged_rows
        if not self.keeps_events and (closes or partials.num_rows > 2 * merged_rows + 65_536):
            partials = self.merge(partials)
            merged_rows = partials.num_rows
        closed_us = max(state.closed_us, until_us)
        if not closes:
            nothing = no_rows(self.output_schema)
            return WindowState(partials, merged_rows, closed_us), nothing
        merged = self.merge(partials) if self.keeps_events else partials
        results = self.close(merged, state.closed_us, closed_us)
        partials = self.still_needed(partials, closed_us)
        return WindowState(partials, min(merged_rows, partials.num_rows), closed_us), results

    def lift(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Reduce events to one partial for each pane and key, or return that of each event."""
        if not self.keeps_events or not rows.num_rows:
            return super().lift(rows)
        arrays = [evaluate(key.expression, rows) for key in self.node.keys]
        arrays.append(to_arrow(int64s(rows.column("ts"))))
        for item, accumulator in zip(self.node.aggregates, self.accumulators, strict=True):
            arrays += lift(item.aggregate, accumulator, rows)
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)

    def check_panes(self, panes: Int64s) -> None:
        """Refuse panes that are none of the window's; times of events may be any."""
        if not self.keeps_events:
            super().check_panes(panes)


def in_order_of_panes(partials: pa.RecordBatch) -> pa.RecordBatch:
    """Return partials in order of their panes, those of one pane as they came."""
    panes = int64s(partials.column("pane"))
    if (np.diff(panes) >= 0).all():
        return partials
    return partials.take(to_arrow(np.argsort(panes, kind="stable")))
