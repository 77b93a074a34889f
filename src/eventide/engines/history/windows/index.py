"""Windows of time without keys, answered from the index of a stored stream.

Time is cut where windows start and end. Each slice between two cuts is looked up in the index: most
leaves lie in one slice and are not read, only their entries are merged; a leaf is read only if a
cut goes through it. The slices go to the operator that merges windows from panes, as if it had
reduced events to them itself, so the rows are those of a replay.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.engines.history.access import Cost, StopWatch
from eventide.engines.history.weights import Weights
from eventide.engines.history.windows.above import AboveWindows
from eventide.engines.history.windows.calls import Asked, asked_of
from eventide.engines.history.windows.costs import (
    IndexWork,
    count_replay_seconds,
    time_replay_seconds,
    window_count,
)
from eventide.engines.history.windows.count_index import CountIndex
from eventide.engines.history.windows.pane_sums import PaneSums, aggregates_of, pane_sums, some
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.kernels.compiled import Int64s
from eventide.operators.windows.by_time import FAR_US, AggregateWindows
from eventide.plan.nodes import Scan
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import CalendarWindow, CountWindow, Window, WindowAggregate
from eventide.store.reading.borders import PeriodPartials
from eventide.store.reading.cuts import EvenCuts
from eventide.store.reading.exact import SummedPeriods, exact_sums
from eventide.store.reading.periods import Cover, covers_of, merged_by_period, read_covers
from eventide.store.reading.proof import proven
from eventide.store.reading.question import AggregateQuestion, question_of
from eventide.store.snapshot import Snapshot
from eventide.threads import in_threads

THREADS = os.cpu_count() or 1
LEAST_WINDOWS = 50_000
"""Fewer windows are merged sooner than another thread can start."""

THINNED = "some of the events were thinned to aggregates, which windows may cut"


def window_access(plan: Plan, source: Snapshot, weights: Weights) -> WindowIndex | CountIndex | str:
    """Return the way to answer a block's windows from the index, or why there is none."""
    asked = asked_of(plan)
    if isinstance(asked, str):
        return asked
    times = asked.scan.time_range
    if has_thinned(source, times):
        return THINNED
    if isinstance(asked.window, Window):
        return WindowIndex(plan, asked, source, times.intersect(source.time_range), weights)
    found = CountIndex(plan, asked, source, weights)
    # Overlapping leaves are read together, and so are those at the ends of the time range.
    return THINNED if has_thinned(source, found.counted.touched) else found


def has_thinned(source: Snapshot, times: TimeRange) -> bool:
    """Whether events of a time range have been thinned to aggregates."""
    return any(each.thinned and times.overlaps(each.time_range) for each in source.segments)


@dataclass(frozen=True)
class WindowIndex:
    """The way through the index: an `Access`."""

    plan: Plan
    asked: Asked
    source: Snapshot
    times: TimeRange
    weights: Weights

    @property
    def name(self) -> str:
        """What kind of way it is."""
        return "index"

    @property
    def window(self) -> Window:
        """The windows of the query."""
        assert isinstance(self.asked.window, Window)
        return self.asked.window

    @cached_property
    def question(self) -> AggregateQuestion:
        """What is looked up in the index for each slice."""
        return question_of(self.asked.calls, self.source.schema)

    @cached_property
    def cuts(self) -> EvenCuts:
        """Where time is cut into slices."""
        return EvenCuts.of_windows(self.window.size_us, self.window.slide_us, self.times)

    @cached_property
    def covers(self) -> list[Cover]:
        """What each segment has for the slices, and which leaves have to be read."""
        return covers_of(self.source, self.question, self.cuts)

    @cached_property
    def estimate(self) -> Cost:
        """The expected cost."""
        borders = [cover.border.entries for cover in self.covers]
        windows = window_count(self.window, self.source.rows_in(self.times), self.times)
        work = IndexWork(
            entries=sum(cover.whole.num_rows for cover in self.covers),
            leaves=sum(entries.num_rows for entries in borders),
            rows=sum(int(cover.border.rows.sum()) for cover in self.covers),
            slices=min(self.cuts.between(self.times) + 1, self.source.row_count),
            windows=windows,
            attributes=len(self.question.layout.types),
            aggregates=len(self.asked.node.aggregates),
        )
        return work.cost(self.weights)

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        size, slide = format_duration(self.window.size_us), format_duration(self.window.slide_us)
        each = f"windows of {size}" if size == slide else f"windows of {size} every {slide}"
        return f"{each} from the time index, reading only leaves that their ends cut"

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        watch = StopWatch()
        found = read_covers(self.source, self.question, self.cuts, self.covers)
        watch.step("read leaves that are cut", len(found.periods))
        alone = self.window.is_tumbling or self.cuts.gaps
        if alone or 2 * distinct(found) < len(found.periods):
            found = merged_by_period(self.question, found, self.cuts)
        watch.step("merge what lies in one slice", len(found.periods))
        if alone:
            found = self.proven(found)
        sums = [None] * len(self.asked.calls) if alone else self.pane_sums(found)
        if any(sums):
            # A slice is read as a whole.
            found = merged_by_period(self.question, found, self.cuts)
            sums = self.pane_sums(found)
        above = AboveWindows.of(self.plan, AggregateWindows)
        windows = self.windows_of(above.operator, self.as_panes(above.operator, found), sums)
        watch.step("put windows together", sum(part.num_rows for part in windows))
        results = list(above.run(windows))
        watch.step("what is above", sum(part.num_rows for part in results))
        rows = sum(int(cover.border.rows.sum()) for cover in self.covers)
        blocks = sum(cover.border.entries.num_rows for cover in self.covers)
        return results, Cost(watch.total, rows, blocks, 0, distinct(found), watch.steps)

    def proven(self, found: PeriodPartials) -> PeriodPartials:
        """Return slices that are windows, with sums of floats that are correctly rounded."""

        def periods_of(rows: Int64s) -> SummedPeriods:
            return self.periods_of(found.periods[rows])

        entries = proven(self.source, self.question, found.entries, periods_of)
        return PeriodPartials(found.periods, entries)

    def pane_sums(self, found: PeriodPartials) -> list[PaneSums | None]:
        """Return how far the slices of each sum of floats may be off, and how to read them."""

        def read(attribute: str, rows: Int64s) -> list[pa.Array]:
            periods = self.periods_of(found.periods[rows])
            return exact_sums(self.source, attribute, periods, len(rows))

        return pane_sums(self.source, self.question, found.entries, read)

    def periods_of(self, slices: Int64s) -> SummedPeriods:
        """Return the periods of slices."""
        times = self.times.start_us, self.times.end_us
        starts, ends = (self.cuts.starts_of(each).clip(*times) for each in (slices, slices + 1))
        return SummedPeriods(starts, ends, np.arange(len(slices)))

    def as_panes(self, operator: AggregateWindows, found: PeriodPartials) -> pa.RecordBatch:
        """Return the partials of slices as the operator keeps those of panes."""
        starts = self.cuts.starts_of(found.periods)
        columns = self.asked.partials(self.question, operator.accumulators, found.entries)
        schema = operator.partial_schema
        return pa.RecordBatch.from_arrays([pa.array(starts), *columns], schema=schema)

    def windows_of(
        self,
        operator: AggregateWindows,
        panes: pa.RecordBatch,
        sums: Sequence[PaneSums | None],
    ) -> list[pa.RecordBatch]:
        """Return the windows merged from panes, in parallel if there are many."""
        window = self.window
        threads = THREADS
        count = (self.times.end_us - self.times.start_us + window.size_us) // window.slide_us
        if threads == 1 or min(count, panes.num_rows) < LEAST_WINDOWS:
            return [put_together(operator, panes, sums, ALL_TIME)]
        first = self.times.start_us - window.size_us
        step = -(-(self.times.end_us - first) // threads // window.slide_us) * window.slide_us
        cuts = [first + step * turn for turn in range(1, threads)]
        starts = panes.column("pane").to_numpy()

        def part(owned: TimeRange) -> pa.RecordBatch:
            end_us = min(owned.end_us, self.times.end_us) + window.size_us
            low, high = np.searchsorted(starts, [owned.start_us, end_us]).tolist()
            own = panes.slice(low, high - low)
            return put_together(operator, own, some(sums, low, high), owned)

        owned = [TimeRange(*pair) for pair in pairwise([START_OF_TIME_US, *cuts, END_OF_TIME_US])]
        return in_threads(part, owned)


def put_together(
    operator: AggregateWindows,
    panes: pa.RecordBatch,
    sums: Sequence[PaneSums | None],
    owned: TimeRange,
) -> pa.RecordBatch:
    """Return the windows that start in a time range, merged from panes."""
    if operator.window.is_tumbling:
        owner = replace(operator, owned=owned)
        return owner.close(panes, START_OF_TIME_US, END_OF_TIME_US)
    _, starts, columns = operator.split(panes)
    inside = owned.intersect(TimeRange(-FAR_US, FAR_US))
    window_starts, _, frames = operator.frames(starts, np.array([0, len(starts)]), inside)
    parts = zip(operator.accumulators, columns, sums, strict=True)
    answers = [aggregates_of(each, partials, frames, own) for each, partials, own in parts]
    return operator.rows([], window_starts, answers)


def distinct(found: PeriodPartials) -> int:
    """Return how many slices have events."""
    return int(np.count_nonzero(found.periods[1:] != found.periods[:-1])) + min(
        1, len(found.periods)
    )


def replay_seconds(plan: Plan, source: Snapshot, weights: Weights) -> float:
    """Return about how long the replay of a plan with windows takes."""
    node = next(each for each in below(plan) if isinstance(each, WindowAggregate))
    scan = next(each for each in below(plan) if isinstance(each, Scan))
    times = scan.time_range.intersect(source.time_range)
    rows, aggregates = source.rows_in(times), len(node.aggregates)
    assert not isinstance(node.window, CalendarWindow), "such windows are never replayed"
    if isinstance(node.window, CountWindow):
        return count_replay_seconds(node.window, aggregates, rows, weights)
    assert isinstance(node.window, Window)
    return time_replay_seconds(node.window, aggregates, rows, times, weights)


def below(plan: Plan) -> Iterator[Plan]:
    """Yield a plan over one scan and what is below it, from the scan on."""
    for source in plan.children:
        yield from below(source)
    yield plan
