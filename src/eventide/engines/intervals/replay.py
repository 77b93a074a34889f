"""The spans of a pattern, read from the store and matched, each as a stream of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.batch import END_OF_TIME_US, Batch
from eventide.engines.build import Pipeline
from eventide.engines.intervals.candidates import Spans
from eventide.engines.match_slices import matcher_of
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.groups import order_by_key
from eventide.kernels.ordering import ranges
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.evaluate import evaluate
from eventide.operators.filter_project import FilterRows
from eventide.operators.match_rows import MatchRows
from eventide.operators.match_state import Stretches
from eventide.schema import TS
from eventide.store.order import int64_view
from eventide.store.reading.leaves import Units

TASK_ROWS = 1 << 20
"""About so many rows are read for one call of the matcher: calls cost something, and memory too."""


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring units, and the spans that lie in them."""

    first: int
    last: int
    spans: Spans

    lead: int = 0
    """How many units before are read as well, for PREV."""
    trail: int = 0
    """How many units behind, for NEXT."""

    def with_context(self, cut: CutRows, back: int, ahead: int) -> Run:
        """Return the run with a unit more where rows around its spans are missing."""
        if not len(cut.start):
            return self
        before = cut.start[0] < back and not cut.least and self.first - self.lead > 0
        behind = cut.end[-1] + ahead > cut.rows.num_rows and cut.most == cut.rows.num_rows
        behind = behind and self.last + self.trail < cut.units - 1
        return replace(self, lead=self.lead + bool(before), trail=self.trail + bool(behind))


@dataclass(frozen=True, slots=True)
class CutRows:
    """The rows of a run, and the intervals [start, end) of them in which matches can lie.

    Only rows in [least, most) are in the time that is asked for. The store has `units` units.
    """

    rows: pa.RecordBatch
    start: Int64s
    end: Int64s
    least: int
    most: int
    units: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """Rows that came out, and what was read and matched for them."""

    results: list[pa.RecordBatch]
    rows: int = 0
    units: int = 0
    intervals: int = 0


def runs_of(units: Units, kept: Bools, spans: Spans, *, numbered: bool) -> list[Run]:
    """Return the units that spans touch and the map has kept, cut where no span goes across."""
    first = np.searchsorted(units.ts_max, spans.start_us)
    last = np.searchsorted(units.ts_min, spans.end_us, "right") - 1
    if numbered:
        ends = units.first_seq + np.cumsum(units.rows)
        first = np.maximum(first, np.searchsorted(ends, spans.first, "right"))
        last = np.minimum(last, np.searchsorted(ends, spans.last, "right"))
    some = first <= last
    spans, first, last = spans.only(some), first[some], last[some]
    touched = covered(first, last + 1, units.count) & kept
    across = covered(first, last, units.count)
    begins = np.flatnonzero(touched & ~np.concatenate([[False], (touched & across)[:-1]]))
    ends_at = np.flatnonzero(touched & ~(across & np.append(touched[1:], [False])))
    low = np.searchsorted(np.maximum.accumulate(last), begins)
    high = np.searchsorted(first, ends_at, "right")
    return [
        Run(begin, end, spans.only(slice(a, b)))
        for begin, end, a, b in zip(
            *(x.tolist() for x in (begins, ends_at, low, high)), strict=True
        )
    ]


def covered(first: Int64s, end: Int64s, count: int) -> Bools:
    """Return which of `count` places lie in one of the ranges [first, end)."""
    marks = np.zeros(count + 1, np.int64)
    np.add.at(marks, first, 1)
    np.add.at(marks, end, -1)
    return np.asarray(np.cumsum(marks[:-1]) > 0)


def merged(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Return ranges [start, end), given in order, with those that share something as one.

    >>> [part.tolist() for part in merged(np.array([0, 3, 5, 9]), np.array([4, 5, 7, 9]))]
    [[0, 5], [5, 7]]
    """
    some = start < end
    start, end = start[some], np.maximum.accumulate(end[some]) if some.any() else end[some]
    fresh = np.concatenate([[True], start[1:] >= end[:-1]])[: len(start)]
    last = np.flatnonzero(np.concatenate([fresh[1:], [True]])[: len(start)])
    return start[fresh], end[last]


@dataclass(frozen=True)
class SpanReplay:
    """Reads the spans of a pattern and finds its matches there."""

    pipeline: Pipeline
    units: Units
    numbered: bool

    @cached_property
    def matcher(self) -> MatchRows:
        """The operator that finds matches."""
        return matcher_of(self.pipeline)

    @cached_property
    def names(self) -> list[str]:
        """The columns to read."""
        return [name for name, _ in self.pipeline.scan.columns]

    def run(self, runs: Sequence[Run]) -> Replayed:
        """Return the rows of all matches, computed in threads."""
        groups = list(self.grouped(runs))
        if len(groups) < 2:
            done = [self.run_group(group) for group in groups]
        else:
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                done = list(threads.map(self.run_group, groups))
        return Replayed(
            [rows for each in done for rows in each.results],
            sum(each.rows for each in done),
            sum(each.units for each in done),
            sum(each.intervals for each in done),
        )

    def grouped(self, runs: Sequence[Run]) -> Iterator[list[Run]]:
        """Yield runs of units, some at a time: enough for a call of the matcher, not too many."""
        group: list[Run] = []
        rows = 0
        for run in runs:
            group.append(run)
            rows += int(self.units.rows[run.first : run.last + 1].sum())
            if rows >= TASK_ROWS:
                yield group
                group, rows = [], 0
        if group:
            yield group

    def run_group(self, runs: Sequence[Run]) -> Replayed:
        """Return what the matches of some runs give, found in one call."""
        stretches, units = self.stretches(runs)
        intervals = len(stretches.offsets) - 1
        operators = self.pipeline.stateless
        if self.matcher.node.keys or any(isinstance(each, FilterRows) for each in operators):
            stretches = self.by_key(stretches)
        else:
            stretches = replace(stretches, rows=self.below(stretches.rows))
        results = []
        above = self.pipeline.above(self.pipeline.operators.index(self.matcher) + 1)
        for rows in self.matcher.rows_in(stretches) if stretches.rows.num_rows else ():
            _, batch = above.step(above.initial_state(), Batch(rows, END_OF_TIME_US))
            if batch.rows.num_rows:
                results.append(batch.rows)
        return Replayed(results, stretches.rows.num_rows, units, intervals)

    def stretches(self, runs: Sequence[Run]) -> tuple[Stretches, int]:
        """Return the rows of the spans of some runs, and how many units were read for them."""
        back, ahead = self.matcher.reach_back, self.matcher.reach_ahead
        while True:
            read = [self.cut(run, rows) for run, rows in zip(runs, self.read(runs), strict=True)]
            longer = [
                run.with_context(cut, back, ahead) for run, cut in zip(runs, read, strict=True)
            ]
            if longer == list(runs):
                break
            # PREV and NEXT look at rows of units that no span touches.
            runs = longer
        offset = np.cumsum([0, *(cut.rows.num_rows for cut in read)])
        moved = list(zip(read, offset.tolist(), strict=False))
        start = np.concatenate([cut.start + at for cut, at in moved])
        end = np.concatenate([cut.end + at for cut, at in moved])
        low = np.concatenate([np.maximum(cut.start - back, cut.least) + at for cut, at in moved])
        high = np.concatenate([np.minimum(cut.end + ahead, cut.most) + at for cut, at in moved])
        rows = concat_batches([cut.rows for cut in read], self.pipeline.input_schema)
        offsets = np.concatenate([[0], np.cumsum(high - low)])
        taken = rows.take(pa.array(ranges(low, high - low)))
        begin, finish = offsets[:-1] + (start - low), offsets[:-1] + (end - low)
        units = sum(run.last - run.first + 1 + run.lead + run.trail for run in runs)
        return Stretches(taken, (), offsets, begin, finish), units

    def read(self, runs: Sequence[Run]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the units of each run."""
        bounds = [(run.first - run.lead, run.last + run.trail + 1) for run in runs]
        if all(one[1] <= other[0] for one, other in pairwise(bounds)):
            everything = [np.arange(*each) for each in bounds]
            batches = self.units.read(np.concatenate(everything), self.names)
            rows = concat_batches(batches, self.pipeline.input_schema)
            ends = np.cumsum([int(self.units.rows[a:b].sum()) for a, b in bounds]).tolist()
            yield from (rows.slice(a, b - a) for a, b in pairwise([0, *ends]))
            return
        for each in bounds:
            # Two runs may need the same rows around them.
            batches = self.units.read(np.arange(*each), self.names)
            yield concat_batches(batches, self.pipeline.input_schema)

    def cut(self, run: Run, rows: pa.RecordBatch) -> CutRows:
        """Return where the spans of a run lie in its rows, those that share something as one."""
        ts = int64_view(rows.column(TS))
        scanned = self.pipeline.scan.time_range
        least, most = np.searchsorted(ts, [scanned.start_us, scanned.end_us]).tolist()
        start = np.searchsorted(ts, run.spans.start_us)
        end = np.searchsorted(ts, run.spans.end_us, "right")
        if self.numbered:
            number = self.units.first_seq + int(self.units.rows[: run.first - run.lead].sum())
            start = np.maximum(start, run.spans.first - number)
            end = np.minimum(end, run.spans.last + 1 - number)
        counts = self.units.rows
        low = max(least, int(counts[run.first - run.lead : run.first].sum()))
        trailing = int(counts[run.last + 1 : run.last + 1 + run.trail].sum())
        high = max(low, min(most, rows.num_rows - trailing))
        start, end = merged(np.clip(start, low, high), np.clip(end, low, high))
        return CutRows(rows, start, end, least, most, self.units.count)

    def below(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as the matcher gets them, where all of them pass."""
        batch = Batch(rows, END_OF_TIME_US)
        for operator in self.pipeline.stateless:
            _, batch = operator.step(None, batch)
        return batch.rows

    def by_key(self, stretches: Stretches) -> Stretches:
        """Return the rows that the matcher gets, cut into a stretch for each span and key."""
        rows = stretches.rows
        counts = np.diff(stretches.offsets)
        span_of = np.repeat(np.arange(len(counts)), counts)
        batch = Batch(rows, END_OF_TIME_US)
        for operator in self.pipeline.stateless:
            if isinstance(operator, FilterRows):
                passed = operator.passing(batch.rows)
                span_of = span_of[np.asarray(passed.to_numpy(zero_copy_only=False))]
            _, batch = operator.step(None, batch)
        rows = batch.rows
        keys = [evaluate(key.expression, rows) for key in self.matcher.node.keys]
        codes, distinct, count = encode_keys(keys, rows.num_rows)
        together = span_of * max(1, count) + codes
        groups, group_of = np.unique(together, return_inverse=True)
        order, offsets = np.empty(len(together), np.int64), np.zeros(len(groups) + 1, np.int64)
        order_by_key(frozen(group_of.astype(np.int32)), offsets, order)
        of_key = pa.array(groups % max(1, count))
        return Stretches(
            rows.take(pa.array(order)),
            tuple(key.take(of_key) for key in distinct),
            offsets,
            offsets[:-1],
            offsets[1:],
        )
