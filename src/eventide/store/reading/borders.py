"""Read the leaves that cuts go through, many at a time, and sum up what lies between the cuts.

Each leaf is read once for all spans that have a part of it, and only its times and the columns
asked for. Runs of rows between two cuts are found for all leaves of a group together, and summed up
in one call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.batch import ALL_TIME
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.leaves import summarise_runs
from eventide.schema import TS
from eventide.store.index.attribute_summaries import FloatSummary
from eventide.store.order import int64_array, int64_view
from eventide.store.reading.cuts import Cuts
from eventide.store.reading.heads import Heads
from eventide.store.reading.question import Question
from eventide.store.reading.scan import Columns, Wanted, leaf_pieces
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place

GROUP_ROWS = 64 * 16_384
"""About so many rows are summed up in one call."""
FEW_CUTS = 1 / 16
"""With fewer cuts than this many a row they are looked up, with more the rows are gone through."""


@dataclass(frozen=True, slots=True)
class Partials:
    """Partials, and the span that each is of. A span may have several, or none."""

    spans: Int64s
    entries: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Runs:
    """Rows [starts, ends) of a leaf each, all of one span."""

    leaf_of: Int64s
    starts: Int64s
    ends: Int64s
    spans: Int64s


@dataclass(frozen=True)
class Border:
    """Leaves of a segment to be read: their entries, and what is asked of them."""

    folder: Path
    segment: Segment
    entries: pa.RecordBatch
    question: Question
    columns: Columns
    cuts: Cuts

    def groups(self) -> Iterator[Border]:
        """Yield the leaves in groups of about `GROUP_ROWS`."""
        number = (np.cumsum(self.rows) - self.rows) // GROUP_ROWS
        starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        for start, end in zip(starts, np.append(starts[1:], len(number)), strict=True):
            yield replace(self, entries=self.entries.slice(start, end - start))

    @property
    def rows(self) -> Int64s:
        """How many rows each leaf has."""
        return place(self.entries, "rows")

    @property
    def names(self) -> list[str]:
        """The attributes that are summed up."""
        return list(self.question.layout.types)

    def partials(self) -> Partials:
        """Read the leaves, and return the partials of their runs of rows of the same span."""
        names = self.names
        if self.segment.form.in_order and len(self.stored) == len(names):
            leaves = [place(self.entries, name) for name in ("address", "length", "rows")]
            heads = Heads.of(self.folder, self.segment, [TS, *names], leaves)
            if heads is not None:
                return self.partials_of_heads(heads)
        parts = [self.partials_of_leaf(number) for number in range(self.entries.num_rows)]
        spans = np.concatenate([part.spans for part in parts])
        return Partials(spans, pa.concat_batches([part.entries for part in parts]))

    @cached_property
    def stored(self) -> list[str]:
        """The attributes that the segment has columns for."""
        return self.columns.stored_in(self.segment, self.names)

    def partials_of_leaf(self, number: int) -> Partials:
        """Return the partials of one leaf, read as a scan does: sorted, with nulls it lacks."""
        names = self.question.attributes
        wanted = Wanted(self.columns, tuple(names), ALL_TIME, {})
        entry = self.entries.slice(number, 1)
        (rows,) = (
            piece.read(wanted, names) for piece in leaf_pieces(self.folder, self.segment, entry)
        )
        return partials_of_rows(rows, self.question, self.cuts)

    def partials_of_heads(self, heads: Heads) -> Partials:
        """Return the partials of leaves, from what their heads say and the columns."""
        runs = self.runs(heads)
        layout = self.question.layout
        floats = all(isinstance(summary, FloatSummary) for summary, _ in layout.summaries)
        direct = floats and not layout.stored
        if direct and all(heads.lie_plain(1 + place) for place in range(len(self.names))):
            arrays = [
                array
                for place in range(len(self.names))
                for array in plain_sums(heads, place, runs)
            ]
            summaries = pa.RecordBatch.from_arrays(arrays, schema=layout.arrow)
            entries = self.question.joined(int64_array(runs.ends - runs.starts), summaries)
            return Partials(runs.spans, entries)
        return self.partials_of_columns(heads, runs)

    def partials_of_columns(self, heads: Heads, runs: Runs) -> Partials:
        """Return the partials of leaves whose columns have to be decoded: laid end to end."""
        leaves = range(self.entries.num_rows)
        columns = [
            pa.concat_arrays([heads.column(leaf, 1 + position) for leaf in leaves])
            for position in range(len(self.names))
        ]
        if not len(runs.spans):
            return Partials(runs.spans, self.question.empty)
        before = (np.cumsum(self.rows) - self.rows)[runs.leaf_of]
        starts, ends = runs.starts + before, runs.ends + before
        total = int(self.rows.sum())
        joined = pa.RecordBatch.from_arrays(columns, self.names)
        if starts[0] == 0 and ends[-1] == total and (starts[1:] == ends[:-1]).all():
            return Partials(runs.spans, self.question.of_rows(joined, np.append(starts, total)))
        # Rows outside of all spans are runs as well, which nobody wants.
        bounds = np.unique(np.concatenate([starts, ends, [0, total]]))
        entries = self.question.of_rows(joined, bounds)
        return Partials(runs.spans, entries.take(pa.array(np.searchsorted(bounds, starts))))

    def runs(self, heads: Heads) -> Runs:
        """Return the runs of rows of the same span, none empty."""
        times = self.cuts.times
        first, last = place(self.entries, "ts_min"), place(self.entries, "ts_max")
        low, high = np.zeros(len(first), np.int64), self.rows.copy()
        early, late = np.flatnonzero(first < times.start_us), np.flatnonzero(last >= times.end_us)
        low[early] = heads.find(early, np.full(len(early), times.start_us))
        high[late] = heads.find(late, np.full(len(late), times.end_us))
        first_span = self.cuts.spans_of(np.maximum(first, times.start_us))
        last_span = self.cuts.spans_of(np.minimum(last, times.end_us - 1))
        cuts = last_span - first_span
        if int(cuts.sum()) > FEW_CUTS * int(self.rows.sum()):
            return self.many_runs(heads, low, high)
        leaf_of = np.repeat(np.arange(len(cuts)), cuts + 1)
        firsts = np.cumsum(cuts + 1) - cuts - 1
        spans = np.arange(len(leaf_of)) - firsts[leaf_of] + first_span[leaf_of]
        starts = heads.find(leaf_of, self.cuts.starts_of(spans))
        # The first run of a leaf begins with it, wherever its span begins.
        starts[firsts] = low
        ends = np.append(starts[1:], 0)
        ends[firsts + cuts] = high
        full = starts < ends
        return Runs(leaf_of[full], starts[full], ends[full], spans[full])

    def many_runs(self, heads: Heads, low: Int64s, high: Int64s) -> Runs:
        """Return the runs by going through the times of all rows."""
        parts = [heads.times_of(leaf)[low[leaf] : high[leaf]] for leaf in range(len(low))]
        before = np.cumsum(high - low) - (high - low)
        starts, spans = self.cuts.runs(np.concatenate(parts), before)
        ends = np.append(starts[1:], (high - low).sum())
        leaf_of = np.searchsorted(before, starts, "right") - 1
        shift = (low - before)[leaf_of]
        return Runs(leaf_of, starts + shift, ends + shift, spans)


def plain_sums(heads: Heads, position: int, runs: Runs) -> list[pa.Array]:
    """Return the parts of the summary of doubles that are summed up where they lie."""
    values, begins = heads.plain(1 + position)
    begin = begins[runs.leaf_of]
    count = len(runs.spans)
    counts, extremes, moments = (
        np.empty(count, np.int64),
        np.empty((2, count)),
        np.empty((4, count)),
    )
    starts, ends = frozen(runs.starts + begin), frozen(runs.ends + begin)
    summarise_runs(values, starts, ends, counts, extremes, moments)
    return FloatSummary().columns(counts, extremes, moments)


def partials_of_rows(rows: pa.RecordBatch, question: Question, cuts: Cuts) -> Partials:
    """Return the partials of sorted rows, as far as they lie between the cuts."""
    ts = int64_view(rows.column(TS))
    start, end = np.searchsorted(ts, [cuts.times.start_us, cuts.times.end_us])
    if start >= end:
        return Partials(np.empty(0, np.int64), question.empty)
    starts, spans = cuts.runs(ts[start:end], np.empty(0, np.int64))
    inside = rows.slice(start, end - start).select(question.attributes)
    return Partials(spans, question.of_rows(inside, np.append(starts, end - start)))
