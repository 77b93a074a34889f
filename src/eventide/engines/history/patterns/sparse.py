"""The rows that conditions were looked up for, and no others: where only these matter.

In a pattern that has only gaps between its rows (plan/patterns/gaps.py), the answer is that of the
rows that were looked up for some symbol. Their times and numbers are known from the index, so no
leaf is searched, and only leaves with such a row inside a period are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.engines.history.patterns.candidates import Periods, shared_by
from eventide.engines.history.patterns.replay import (
    Intervals,
    PeriodReplay,
    ReplayOutcome,
    merged,
)
from eventide.kernels.compiled import Int64s
from eventide.kernels.ordering import ranges
from eventide.operators.patterns.state import Excerpts
from eventide.schema import SEQ, TS
from eventide.store.reading.hits import Hits


def united(hits: Sequence[Sequence[Hits]]) -> Hits:
    """Return the rows that meet all conditions of some symbol, by number; each once."""
    found = [shared_by(each) for each in hits]
    if len(found) == 1:
        return found[0]
    seq, first = np.unique(np.concatenate([each.seq for each in found]), return_index=True)
    return Hits(np.concatenate([each.ts for each in found])[first], seq)


@dataclass(frozen=True)
class SparseReplay(PeriodReplay):
    """Reads the rows of periods that matter, and finds the matches of a pattern there."""

    only: Hits

    def among(self, periods: Periods, *, numbered: bool) -> Intervals:
        """Return the places of the rows of periods; overlapping periods are merged."""
        ts, seq = self.only.ts, self.only.seq
        start, end = (
            np.searchsorted(ts, periods.start_us),
            np.searchsorted(ts, periods.end_us, "right"),
        )
        if numbered:
            start = np.maximum(start, np.searchsorted(seq, periods.first))
            end = np.minimum(end, np.searchsorted(seq, periods.last, "right"))
        return Intervals(*merged(start, end))

    def run_among(self, intervals: Intervals) -> ReplayOutcome:
        """Return the rows of all matches in some places, computed in threads."""
        results = self.results(intervals)
        units = np.searchsorted(self.stored.ends, self.numbers(intervals), "right")
        return ReplayOutcome(results, intervals.rows, len(np.unique(units)), len(intervals))

    def numbers(self, intervals: Intervals) -> Int64s:
        """Return the numbers of rows in the store."""
        return self.only.seq[places_in(intervals)] - self.units.first_seq

    def excerpts(self, intervals: Intervals) -> Excerpts:
        """Return the rows of some places."""
        offsets = np.concatenate([[0], np.cumsum(intervals.end - intervals.start)])
        return Excerpts(self.rows(intervals), (), offsets, offsets[:-1], offsets[1:])

    def rows(self, intervals: Intervals) -> pa.RecordBatch:
        """Read rows; their times and numbers are known."""
        places, schema = places_in(intervals), self.tree.input_schema
        known = {TS: to_arrow(self.only.ts[places]), SEQ: to_arrow(self.only.seq[places])}
        columns = {name: known[name].view(schema.field(name).type) for name in self.known_names}
        if len(self.read_schema):
            found = self.stored.take(self.numbers(intervals), self.read_schema)
            columns |= dict(zip(found.schema.names, found.columns, strict=True))
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    @cached_property
    def known_names(self) -> list[str]:
        """The columns that need not be read."""
        return [name for name in self.tree.input_schema.names if name in (TS, SEQ)]

    @cached_property
    def read_schema(self) -> pa.Schema:
        """The columns that have to be read."""
        fields = [field for field in self.tree.input_schema if field.name not in (TS, SEQ)]
        return pa.schema(fields)


def places_in(intervals: Intervals) -> Int64s:
    """Return the places of intervals, one after another."""
    return ranges(intervals.start, intervals.end - intervals.start)
