"""Windows by count without keys, answered from the index of a stored stream.

A window's ends are numbers of events, and the index knows how many events its leaves have. So
events are cut where windows start and end, as time is for windows of time; most leaves lie between
two cuts and are not read. See store/reading/counted.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.accumulators import Frames
from eventide.engines.history.access import Cost, StopWatch
from eventide.engines.history.weights import Weights
from eventide.engines.history.windows.above import AboveWindows
from eventide.engines.history.windows.calls import Asked
from eventide.engines.history.windows.costs import BOUNDS, IndexWork
from eventide.engines.history.windows.pane_sums import PaneSums, aggregates_of, pane_sums, some
from eventide.kernels.compiled import Int64s, frozen
from eventide.operators.windows.by_count import AggregateCountWindows
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import CountWindow
from eventide.store.reading.counted import Counted, CountedUnits, counted_units
from eventide.store.reading.leaves import units_of
from eventide.store.reading.question import AggregateQuestion, question_of
from eventide.store.snapshot import Snapshot
from eventide.threads import in_threads

THREADS = os.cpu_count() or 1
LEAST_WINDOWS = 50_000
"""Fewer windows are merged sooner than another thread can start."""


@dataclass(frozen=True)
class CountIndex:
    """The way through the index for windows by count: an `Access`."""

    plan: Plan
    asked: Asked
    source: Snapshot
    weights: Weights

    @property
    def name(self) -> str:
        """What kind of way it is."""
        return "index"

    @property
    def window(self) -> CountWindow:
        """The windows of the query."""
        assert isinstance(self.asked.window, CountWindow)
        return self.asked.window

    @cached_property
    def question(self) -> AggregateQuestion:
        """What is looked up in the index for each slice."""
        return question_of(self.asked.calls, self.source.schema)

    @cached_property
    def counted(self) -> CountedUnits:
        """The leaves with the numbers of their events, and where those are cut."""
        units = units_of(self.source, numbered=False)
        times, window = self.asked.scan.time_range, self.window
        return counted_units(units, self.question, times, window.size, window.slide)

    @property
    def window_count(self) -> int:
        """How many windows are full."""
        end = self.counted.cuts.times.end_us
        return (end - self.window.size) // self.window.slide + 1 if end else 0

    @cached_property
    def estimate(self) -> Cost:
        """The expected cost."""
        counted = self.counted
        rows = counted.units.rows
        work = IndexWork(
            entries=counted.count_leaves(counted.whole),
            leaves=counted.count_leaves(counted.read),
            rows=int(rows[counted.read].sum()),
            slices=counted.slices,
            windows=self.window_count,
            attributes=len(self.question.layout.types),
            aggregates=len(self.asked.node.aggregates) + BOUNDS,
            scanned=int(rows[counted.read & ~counted.plain].sum()),
        )
        return work.cost(self.weights)

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        window = self.window
        each = f"windows of {window.size:,} events"
        every = "" if window.is_tumbling else f" every {window.slide:,}"
        return f"{each}{every} from the time index, reading only leaves that their ends cut"

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        watch = StopWatch()
        counted = self.counted
        found = counted.partials()
        watch.step("count events, read leaves that are cut", len(found.numbers))
        above = AboveWindows.of(self.plan, AggregateCountWindows)
        windows = self.windows_of(above.operator, found)
        watch.step("put windows together", sum(part.num_rows for part in windows))
        results = list(above.run(windows))
        watch.step("what is above", sum(part.num_rows for part in results))
        rows, blocks = self.estimate.rows, self.estimate.blocks
        return results, Cost(watch.total, rows, blocks, 0, len(found.numbers), watch.steps)

    def as_panes(self, operator: AggregateCountWindows, found: Counted) -> pa.RecordBatch:
        """Return the partials of slices as the operator keeps those of panes."""
        bounds = [pa.array(ts).view(pa.timestamp("us")) for ts in (found.first_us, found.last_us)]
        own = operator.accumulators[len(bounds) :]
        columns = self.asked.partials(self.question, own, found.entries)
        keys = pa.array(np.zeros(len(found.numbers), np.int32))
        arrays = [keys, pa.array(found.numbers), *bounds, *columns]
        return pa.RecordBatch.from_arrays(arrays, schema=operator.partial_schema)

    def pane_sums(self, found: Counted) -> list[PaneSums | None]:
        """Return how far the slices of each sum of floats may be off, and how to read them."""

        def read(attribute: str, rows: Int64s) -> list[pa.Array]:
            return self.counted.exact_sums(attribute, found.numbers[rows])

        return pane_sums(self.source, self.question, found.entries, read)

    def windows_of(self, operator: AggregateCountWindows, found: Counted) -> list[pa.RecordBatch]:
        """Return the windows merged from panes, in parallel if there are many."""
        panes, sums = self.as_panes(operator, found), self.pane_sums(found)
        size, slide, cuts = self.window.size, self.window.slide, self.counted.cuts
        # Every slice has events, so those of a window are consecutive.
        step = 1 if cuts.gaps else cuts.per_slide
        length = 1 if size <= slide else step * (size // slide) + (1 if size % slide else 0)

        def put_together(first: int, last: int) -> pa.RecordBatch:
            left = np.arange(last - first, dtype=np.int64) * step
            rows = max(0, (last - first - 1) * step + length)
            frames = Frames(frozen(left), frozen(left + length))
            columns = operator.split(panes.slice(first * step, rows))
            own = [None] * BOUNDS + some(sums, first * step, first * step + rows)
            parts = zip(operator.accumulators, columns, own, strict=True)
            arrays = [aggregates_of(each, partials, frames, its) for each, partials, its in parts]
            return pa.RecordBatch.from_arrays(arrays, schema=operator.output_schema)

        count = self.window_count
        if THREADS == 1 or count < LEAST_WINDOWS:
            return [put_together(0, count)]
        bounds = pairwise(count * turn // THREADS for turn in range(THREADS + 1))
        return in_threads(lambda own: put_together(*own), bounds)
