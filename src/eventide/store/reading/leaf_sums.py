"""Leaves of a segment that are read, many at a time, and the sums of runs of their rows.

Only the columns asked for are read, and times only if they are asked for. Runs of all leaves of a
group are summed up in one call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.instants import ALL_TIME
from eventide.kernels.aggregates.proofs import find_least
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.store.leaves import summarise_runs
from eventide.schema import TS
from eventide.store.index.attribute_summaries import FloatSummary
from eventide.store.reading.heads import Heads
from eventide.store.reading.question import AggregateQuestion
from eventide.store.reading.scan import StreamColumns, Wanted, stored_leaves
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place

GROUP_ROWS = 64 * 16_384
"""About this many rows are summed up in one call."""


@dataclass(frozen=True, slots=True)
class LeafRuns:
    """Rows [starts, ends) of a leaf each, all of one period."""

    leaf_of: Int64s
    starts: Int64s
    ends: Int64s
    periods: Int64s


@dataclass(frozen=True)
class Leaves:
    """Leaves of a segment to be read: their entries, and what is asked of them."""

    folder: Path
    segment: Segment
    entries: pa.RecordBatch
    question: AggregateQuestion
    columns: StreamColumns

    def groups(self) -> Iterator[slice]:
        """Yield which leaves have about `GROUP_ROWS` rows together."""
        number = (np.cumsum(self.rows) - self.rows) // GROUP_ROWS
        starts = np.flatnonzero(np.append(True, number[1:] != number[:-1])[: len(number)])
        for start, end in zip(starts, np.append(starts[1:], len(number)), strict=True):
            yield slice(int(start), int(end))

    def some(self, which: slice) -> Leaves:
        """Return some of the leaves."""
        length = which.stop - which.start
        return replace(self, entries=self.entries.slice(which.start, length))

    @property
    def rows(self) -> Int64s:
        """How many rows each leaf has."""
        return place(self.entries, "rows")

    @property
    def names(self) -> list[str]:
        """The attributes that are summed up."""
        return list(self.question.layout.types)

    @cached_property
    def heads(self) -> Heads | None:
        """The heads of the leaves; None if they have to be read one by one, as a scan does."""
        names = self.names
        stored = self.columns.stored_in(self.segment, names)
        if not self.segment.form.in_order or len(stored) < len(names):
            return None
        leaves = [place(self.entries, name) for name in ("address", "length", "rows")]
        return Heads.of(self.folder, self.segment, [TS, *names], leaves)

    def read(self, number: int) -> pa.RecordBatch:
        """Return the rows of one leaf, read as a scan does: sorted, with nulls it lacks."""
        names = self.question.attributes
        wanted = Wanted(self.columns, tuple(names), ALL_TIME, {})
        entry = self.entries.slice(number, 1)
        (rows,) = (
            leaf.read(wanted, names) for leaf in stored_leaves(self.folder, self.segment, entry)
        )
        return rows

    def summed(self, heads: Heads, runs: LeafRuns) -> pa.RecordBatch:
        """Return the partial of each run, from what heads say and the columns."""
        layout = self.question.layout
        floats = [each for each, _ in layout.summaries if isinstance(each, FloatSummary)]
        direct = len(floats) == len(layout.summaries) and not layout.stored
        if direct and all(heads.lie_plain(1 + place) for place in range(len(self.names))):
            arrays = [
                array
                for place, summary in enumerate(floats)
                for array in plain_sums(heads, place, runs, summary)
            ]
            summaries = pa.RecordBatch.from_arrays(arrays, schema=layout.arrow)
            return self.question.joined(to_arrow(runs.ends - runs.starts), summaries)
        return self.summed_columns(heads, runs)

    def summed_columns(self, heads: Heads, runs: LeafRuns) -> pa.RecordBatch:
        """Return the same where columns have to be decoded: concatenated."""
        leaves = range(self.entries.num_rows)
        columns = [
            pa.concat_arrays([heads.column(leaf, 1 + position) for leaf in leaves])
            for position in range(len(self.names))
        ]
        if not len(runs.periods):
            return self.question.empty
        before = (np.cumsum(self.rows) - self.rows)[runs.leaf_of]
        starts, ends = runs.starts + before, runs.ends + before
        total = int(self.rows.sum())
        joined = pa.RecordBatch.from_arrays(columns, self.names)
        if starts[0] == 0 and ends[-1] == total and (starts[1:] == ends[:-1]).all():
            return self.question.of_rows(joined, np.append(starts, total))
        # Rows outside of all periods are runs as well, which are dropped.
        bounds = np.unique(np.concatenate([starts, ends, [0, total]]))
        entries = self.question.of_rows(joined, bounds)
        return entries.take(pa.array(np.searchsorted(bounds, starts)))


def plain_sums(
    heads: Heads, position: int, runs: LeafRuns, summary: FloatSummary
) -> list[pa.Array]:
    """Return the parts of the summary of doubles that are summed up in place."""
    values, begins = heads.plain(1 + position)
    begin = begins[runs.leaf_of]
    count = len(runs.periods)
    counts, extremes, moments = (
        np.empty(count, np.int64),
        np.empty((2, count)),
        np.empty((4, count)),
    )
    starts, ends = frozen(runs.starts + begin), frozen(runs.ends + begin)
    summarise_runs(values, starts, ends, counts, extremes, moments)
    found = summary.columns(counts, extremes, moments)
    if summary.least:
        least = np.empty(count)
        none = frozen(np.empty(0, np.bool_))
        find_least(values, none, starts, ends, extremes, least)
        found.append(pa.array(least))
    return found
