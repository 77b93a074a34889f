"""Find the runs of rows between cuts in the leaves that cuts go through, and sum them up.

Each leaf is read once for all periods that have a part of it, and only its times and the columns
asked for. Runs are found for all leaves of a group together: leaf_sums.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.schema import TS
from eventide.store.order import int64_view
from eventide.store.reading.cuts import Cuts
from eventide.store.reading.heads import Heads
from eventide.store.reading.leaf_sums import LeafRuns, Leaves
from eventide.store.reading.question import AggregateQuestion
from eventide.store.segments.tree import place

FEW_CUTS = 1 / 16
"""With fewer cuts than this for a row they are looked up, with more the rows are scanned."""


@dataclass(frozen=True, slots=True)
class PeriodPartials:
    """Partials, and the period that each is of. A period may have several, or none."""

    periods: Int64s
    entries: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Border:
    """Leaves that cuts go through."""

    leaves: Leaves
    cuts: Cuts

    def groups(self) -> Iterator[Border]:
        """Yield the leaves in groups that are summed up together."""
        for which in self.leaves.groups():
            yield Border(self.leaves.some(which), self.cuts)

    @property
    def entries(self) -> pa.RecordBatch:
        """The entries of the leaves."""
        return self.leaves.entries

    @property
    def rows(self) -> Int64s:
        """How many rows each leaf has."""
        return self.leaves.rows

    def partials(self) -> PeriodPartials:
        """Read the leaves, and return the partials of their runs of rows of the same period."""
        leaves = self.leaves
        heads = leaves.heads
        if heads is not None:
            runs = self.runs(heads)
            return PeriodPartials(runs.periods, leaves.summed(heads, runs))
        parts = [
            partials_of_rows(leaves.read(number), leaves.question, self.cuts)
            for number in range(self.entries.num_rows)
        ]
        periods = np.concatenate([part.periods for part in parts])
        return PeriodPartials(periods, pa.concat_batches([part.entries for part in parts]))

    def runs(self, heads: Heads) -> LeafRuns:
        """Return the runs of rows of the same period, none empty."""
        times = self.cuts.times
        first, last = place(self.entries, "ts_min"), place(self.entries, "ts_max")
        low, high = np.zeros(len(first), np.int64), self.rows.copy()
        early, late = np.flatnonzero(first < times.start_us), np.flatnonzero(last >= times.end_us)
        low[early] = heads.find(early, np.full(len(early), times.start_us))
        high[late] = heads.find(late, np.full(len(late), times.end_us))
        first_period = self.cuts.periods_of(np.maximum(first, times.start_us))
        last_period = self.cuts.periods_of(np.minimum(last, times.end_us - 1))
        cuts = last_period - first_period
        if int(cuts.sum()) > FEW_CUTS * int(self.rows.sum()):
            return self.many_runs(heads, low, high)
        leaf_of = np.repeat(np.arange(len(cuts)), cuts + 1)
        firsts = np.cumsum(cuts + 1) - cuts - 1
        periods = np.arange(len(leaf_of)) - firsts[leaf_of] + first_period[leaf_of]
        starts = heads.find(leaf_of, self.cuts.starts_of(periods))
        # The first run of a leaf begins with it, even if its period begins earlier.
        starts[firsts] = low
        ends = np.append(starts[1:], 0)
        ends[firsts + cuts] = high
        full = starts < ends
        return LeafRuns(leaf_of[full], starts[full], ends[full], periods[full])

    def many_runs(self, heads: Heads, low: Int64s, high: Int64s) -> LeafRuns:
        """Return the runs by going through the times of all rows."""
        parts = [heads.times_of(leaf)[low[leaf] : high[leaf]] for leaf in range(len(low))]
        before = np.cumsum(high - low) - (high - low)
        starts, periods = self.cuts.runs(np.concatenate(parts), before)
        ends = np.append(starts[1:], (high - low).sum())
        leaf_of = np.searchsorted(before, starts, "right") - 1
        shift = (low - before)[leaf_of]
        return LeafRuns(leaf_of, starts + shift, ends + shift, periods)


def partials_of_rows(
    rows: pa.RecordBatch, question: AggregateQuestion, cuts: Cuts
) -> PeriodPartials:
    """Return the partials of sorted rows, as far as they lie between the cuts."""
    ts = int64_view(rows.column(TS))
    start, end = np.searchsorted(ts, [cuts.times.start_us, cuts.times.end_us])
    if start >= end:
        return PeriodPartials(np.empty(0, np.int64), question.empty)
    starts, periods = cuts.runs(ts[start:end], np.empty(0, np.int64))
    inside = rows.slice(start, end - start).select(question.attributes)
    return PeriodPartials(periods, question.of_rows(inside, np.append(starts, end - start)))
