"""The periods of a pattern, read from the store and matched, each as a stream of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.engines.history.patterns.candidates import Periods
from eventide.engines.history.patterns.slices import matcher_of
from eventide.instants import END_OF_TIME_US, TimeRange
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.grouping import order_by_key
from eventide.kernels.ordering import ranges
from eventide.operators.columns import encode_keys, results_that_fit
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.filter_project import FilterRows
from eventide.operators.patterns.match import MatchRows
from eventide.operators.patterns.state import Excerpts
from eventide.operators.tree import OperatorTree
from eventide.store.reading.leaves import Units
from eventide.store.reading.rows import NumberedRows, in_scope
from eventide.threads import in_threads

TASK_ROWS = 1 << 20
"""About this many rows go into one call of the matcher, if there are as many."""
SMALLEST_TASK_ROWS = 1 << 14
"""Fewer rows are matched sooner than another thread can start."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Rows [start, end) by their numbers in the store, in order and disjoint."""

    start: Int64s
    end: Int64s

    def __len__(self) -> int:
        return len(self.start)

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return int((self.end - self.start).sum())


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The rows of the output, and what was read and matched for them."""

    results: list[pa.RecordBatch]
    rows: int = 0
    units: int = 0
    intervals: int = 0


def intervals_of(
    units: Units, kept: Bools, periods: Periods, time_range: TimeRange, *, numbered: bool
) -> Intervals:
    """Return the rows of periods within what the map has kept; overlapping periods are merged."""
    stored = NumberedRows(units)
    # The first row of the next period is behind the last instant of a period.
    found = stored.find(np.concatenate([periods.start_us, periods.end_us + 1]))
    start, end = found[: len(periods)], found[len(periods) :]
    if numbered:
        start = np.maximum(start, periods.first - units.first_seq)
        end = np.minimum(end, periods.last + 1 - units.first_seq)
    least, most = stored.find(np.array([time_range.start_us, time_range.end_us])).tolist()
    start, end = merged(np.clip(start, least, most), np.clip(end, least, most))
    return shared(Intervals(start, end), Intervals(*in_scope(units, kept)))


def merged(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Return ranges [start, end), given in order, with overlapping ones merged.

    >>> [part.tolist() for part in merged(np.array([0, 3, 5, 9]), np.array([4, 5, 7, 9]))]
    [[0, 5], [5, 7]]
    """
    some = start < end
    start, end = start[some], np.maximum.accumulate(end[some]) if some.any() else end[some]
    fresh = np.concatenate([[True], start[1:] >= end[:-1]])[: len(start)]
    last = np.flatnonzero(np.concatenate([fresh[1:], [True]])[: len(start)])
    return start[fresh], end[last]


def shared(one: Intervals, other: Intervals) -> Intervals:
    """Return the intersection: an interval for each pair that overlaps.

    >>> found = shared(Intervals(np.array([0, 7]), np.array([5, 9])),
    ...                Intervals(np.array([2, 4]), np.array([3, 8])))
    >>> found.start.tolist(), found.end.tolist()
    ([2, 4, 7], [3, 5, 8])
    """
    first = np.searchsorted(other.end, one.start, "right")
    behind = np.searchsorted(other.start, one.end)
    counts = np.maximum(behind - first, 0)
    mine, theirs = np.repeat(np.arange(len(one)), counts), ranges(first, counts)
    return Intervals(
        np.maximum(one.start[mine], other.start[theirs]),
        np.minimum(one.end[mine], other.end[theirs]),
    )


@dataclass(frozen=True)
class PeriodReplay:
    """Reads intervals of rows and finds the matches of a pattern there."""

    tree: OperatorTree
    units: Units

    @cached_property
    def matcher(self) -> MatchRows:
        """The operator that finds matches."""
        return matcher_of(self.tree)

    @cached_property
    def stored(self) -> NumberedRows:
        """The rows by their numbers."""
        return NumberedRows(self.units)

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The numbers of the first row and of the end of the rows in the time range."""
        scanned = self.tree.scan.time_range
        first, last = self.stored.find(np.array([scanned.start_us, scanned.end_us])).tolist()
        return first, last

    def run(self, intervals: Intervals) -> ReplayOutcome:
        """Return the rows of all matches, computed in threads."""
        results = self.results(intervals)
        first = np.searchsorted(self.stored.ends, intervals.start, "right")
        last = np.searchsorted(self.stored.ends, intervals.end - 1, "right")
        units = len(np.unique(ranges(first, last - first + 1)))
        return ReplayOutcome(results, intervals.rows, units, len(intervals))

    def results(self, intervals: Intervals) -> list[pa.RecordBatch]:
        """Return the output for the matches in all intervals, some at a time in threads."""
        done = in_threads(self.run_part, shares(intervals), os.cpu_count() or 1)
        return [rows for results in done for rows in results]

    def run_part(self, intervals: Intervals) -> list[pa.RecordBatch]:
        """Return the output for the matches in some intervals, found in one call."""
        excerpts = self.excerpts(intervals)
        operators = self.tree.stateless
        if self.matcher.node.keys or any(isinstance(each, FilterRows) for each in operators):
            excerpts = self.by_key(excerpts)
        else:
            excerpts = replace(excerpts, rows=below(self.tree, excerpts.rows))
        return matched(self.tree, self.matcher, excerpts)

    def excerpts(self, intervals: Intervals) -> Excerpts:
        """Return the rows of intervals, with those that PREV and NEXT look at."""
        start, end = intervals.start, intervals.end
        low = np.maximum(start - self.matcher.reach_back, self.limits[0])
        high = np.minimum(end + self.matcher.reach_ahead, self.limits[1])
        offsets = np.concatenate([[0], np.cumsum(high - low)])
        rows = self.stored.take_ranges(low, high, self.tree.input_schema)
        begin, finish = offsets[:-1] + (start - low), offsets[:-1] + (end - low)
        return Excerpts(rows, (), offsets, begin, finish)

    def by_key(self, excerpts: Excerpts) -> Excerpts:
        """Return the rows that the matcher gets, cut into an excerpt for each period and key."""
        counts = np.diff(excerpts.offsets)
        period_of = np.repeat(np.arange(len(counts)), counts)
        rows = excerpts.rows
        for operator in self.tree.stateless:
            if isinstance(operator, FilterRows):
                passed = operator.passing(rows)
                period_of = period_of[np.asarray(passed.to_numpy(zero_copy_only=False))]
            _, rows = operator.step(None, (rows,), END_OF_TIME_US)
        keys = [evaluate(key.expression, rows) for key in self.matcher.node.keys]
        codes, distinct, count = encode_keys(keys, rows.num_rows)
        together = period_of * max(1, count) + codes
        groups, group_of = np.unique(together, return_inverse=True)
        order, offsets = np.empty(len(together), np.int64), np.zeros(len(groups) + 1, np.int64)
        order_by_key(frozen(group_of.astype(np.int32)), offsets, order)
        of_key = pa.array(groups % max(1, count))
        return Excerpts(
            rows.take(pa.array(order)),
            tuple(key.take(of_key) for key in distinct),
            offsets,
            offsets[:-1],
            offsets[1:],
        )


def shares(intervals: Intervals) -> Iterator[Intervals]:
    """Yield intervals, some at a time: enough for a call of the matcher, and for all threads."""
    if not len(intervals):
        return
    reached = np.cumsum(intervals.end - intervals.start)
    total = int(reached[-1])
    # Few rows may lie in many leaves, which threads can share too.
    parts = max(-(-total // TASK_ROWS), min(os.cpu_count() or 1, total // SMALLEST_TASK_ROWS), 1)
    cuts = np.searchsorted(reached, np.linspace(0, total, parts + 1)[1:-1])
    for first, last in pairwise(np.unique([0, *cuts, len(intervals)]).tolist()):
        yield Intervals(intervals.start[first:last], intervals.end[first:last])


def below(tree: OperatorTree, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as the matcher gets them, where all of them pass the conditions below it."""
    lowest = tree.lowest(len(tree.stateless))
    _, passed = lowest.step(lowest.initial_state(), (rows,), END_OF_TIME_US)
    return passed


def matched(tree: OperatorTree, matcher: MatchRows, excerpts: Excerpts) -> list[pa.RecordBatch]:
    """Return what the matches in some excerpts give, through what is above the matcher."""
    if not excerpts.rows.num_rows:
        return []
    above = tree.above(tree.operators.index(matcher) + 1)
    results = []
    with results_that_fit():
        for rows in matcher.rows_in(excerpts):
            _, found = above.step(above.initial_state(), (rows,), END_OF_TIME_US)
            if found.num_rows:
                results.append(found)
    return results
