"""Aggregates over all of time, or by a unit of the calendar, from the index of a stored stream.

Segments and index entries that lie in one period are not read; of the leaves that the end of a
period cuts, only the rows inside are summed up. If the index lacks an attribute, its rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import decimal_column, int64s
from eventide.engines.history.access import Cost, StopWatch
from eventide.engines.history.windows.calls import call_of
from eventide.errors import EvaluationError
from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s
from eventide.operators.expressions.evaluate import evaluate, evaluate_predicate
from eventide.plan.expressions import Aggregate, Column, columns_of
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    WINDOW_START,
    CalendarUnit,
    CalendarWindow,
    WindowAggregate,
)
from eventide.schema import TS
from eventide.store.reading.aggregate import partials_of_index, period_partials
from eventide.store.reading.ends import first_and_last
from eventide.store.reading.exact import SummedPeriods
from eventide.store.reading.proof import proven
from eventide.store.reading.question import ROWS, AggregateCall, AggregateQuestion, question_of
from eventide.store.snapshot import Snapshot

WEEK_DAYS = 7
FIRST_MONDAY = 4
"""The fifth day of 1970."""
MONTHS = {"month": 1, "quarter": 3, "year": 12}

Partials = Callable[[Snapshot, AggregateQuestion, Sequence[int]], pa.RecordBatch]
"""Returns the partials of the periods between cuts."""


def is_indexed(node: WindowAggregate) -> bool:
    """Whether the index has all aggregates of a node, which has no keys and no condition."""
    if node.keys or not isinstance(node.source, Scan):
        return False
    names = {name: name for name in node.source.row}
    return all(_has_index(item.aggregate, names) for item in node.aggregates)


def _has_index(aggregate: Aggregate, names: Mapping[str, str]) -> bool:
    """Whether the index has an aggregate."""
    return isinstance(call_of(aggregate, names), AggregateCall) or _is_end(aggregate)


def _is_end(aggregate: Aggregate) -> bool:
    """Whether an aggregate is the first or the last time."""
    if aggregate.condition is not None or aggregate.function not in ("min", "max"):
        return False
    return isinstance(aggregate.argument, Column) and aggregate.argument.name == TS


@dataclass(frozen=True)
class CalendarIndex:
    """The only way to windows of the calendar: an `Access`. On Spark, tasks may find `partials`."""

    plan: Plan
    node: WindowAggregate
    source: Snapshot
    partials: Partials | None = None

    @property
    def name(self) -> str:
        """What kind of way it is."""
        return "index"

    @property
    def unit(self) -> CalendarUnit:
        """The unit of the calendar."""
        assert isinstance(self.node.window, CalendarWindow)
        return self.node.window.unit

    @cached_property
    def times(self) -> TimeRange:
        """The period that is asked for, as far as there are events."""
        scan = self.node.source
        assert isinstance(scan, Scan), "the index knows nothing of what is computed"
        found = scan.time_range.intersect(self.source.known_range)
        return TimeRange(0, 0) if found.is_empty else found

    @cached_property
    def cuts(self) -> Int64s:
        """Where periods begin, and where the last one ends."""
        if self.unit == "all":
            return np.array([self.times.start_us, self.times.end_us])
        return calendar_cuts(self.unit, self.times)

    @cached_property
    def calls(self) -> dict[str, AggregateCall]:
        """What is looked up for each aggregate but the first and the last time."""
        names = {name: name for name in self.node.source.row}
        found: dict[str, AggregateCall] = {}
        for item in self.node.aggregates:
            call = call_of(item.aggregate, names)
            if isinstance(call, AggregateCall):
                found[item.name] = call
            else:
                assert columns_of(item.aggregate) == {TS}, call
        return found

    @cached_property
    def question(self) -> AggregateQuestion:
        """What is looked up in the index for each period."""
        return question_of(tuple(self.calls.values()), self.source.schema)

    @property
    def estimate(self) -> Cost:
        """The expected cost: there is no other way to compare it with."""
        return Cost(0.0, intervals=len(self.cuts) - 1)

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        by = "aggregates" if self.unit == "all" else f"aggregates by {self.unit}"
        return f"{by} from the time index, reading only leaves that an end of a period cuts"

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        watch = StopWatch()
        clipped = np.clip(self.cuts, self.times.start_us, self.times.end_us)
        # To go down the index twice takes less time than a look at the entries of all leaves.
        here = partials_of_index if self.unit == "all" else period_partials
        partials = (self.partials or here)(self.source, self.question, clipped.tolist())
        watch.step("look up periods in the index", partials.num_rows)

        def periods_of(rows: Int64s) -> SummedPeriods:
            return SummedPeriods(clipped[rows], clipped[rows + 1], np.arange(len(rows)))

        partials = proven(self.source, self.question, partials, periods_of)
        rows = above(self.plan, self.node, self.windows(partials))
        watch.step("what is above", rows.num_rows)
        return [rows], Cost(watch.total, intervals=partials.num_rows, steps=watch.steps)

    def windows(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the windows: aggregates, and but for all of time, where they begin."""
        columns: dict[str, pa.Array] = {}
        if self.unit != "all":
            filled = int64s(partials.column(ROWS.name)) > 0
            partials = partials.filter(pa.array(filled))
            starts = pa.array(self.cuts[:-1][filled])
            columns[WINDOW_START] = starts.view(pa.timestamp("us"))
        for item in self.node.aggregates:
            call = self.calls.get(item.name)
            if call is None:
                ends = first_and_last(self.source, self.times)
                end = None if ends is None else ends[item.aggregate.function == "max"]
                columns[item.name] = pa.array([end], pa.timestamp("us"))
            else:
                columns[item.name] = self.answer(item.name, call, partials)
        if not columns:
            return pa.RecordBatch.from_pylist([{}] * partials.num_rows)
        return pa.RecordBatch.from_pydict(columns)

    def answer(self, name: str, call: AggregateCall, partials: pa.RecordBatch) -> pa.Array:
        """Return an aggregate of each period; a sum that does not fit 64 bits is a decimal."""
        if call.attribute is None:
            return partials.column(ROWS.name)
        try:
            return self.question.layout.finish(call.function, call.attribute, partials)
        except EvaluationError:
            kind = self.source.schema.type_of(call.attribute).kind
            if kind != "int64" or name in computed_with(self.plan, self.node):
                raise
            high, low, count = (
                int64s(partials.column(f"{call.attribute}.{part}"))
                for part in ("whole.high", "whole.low", "count")
            )
            return decimal_column(high, low, count > 0, 0)


def above(plan: Plan, node: WindowAggregate, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a plan whose windows have these rows."""
    if plan is node:
        return rows
    assert isinstance(plan, Filter | Project)
    below = above(plan.source, node, rows)
    if isinstance(plan, Filter):
        return below.filter(evaluate_predicate(plan.condition, below))
    arrays = [evaluate(item.expression, below) for item in plan.items]
    return pa.RecordBatch.from_arrays(arrays, [item.name for item in plan.items])


def computed_with(plan: Plan, node: WindowAggregate) -> frozenset[str]:
    """Return the columns of windows that conditions and expressions above them compute with."""
    used: frozenset[str] = frozenset()
    while plan is not node:
        assert isinstance(plan, Filter | Project)
        conditions = [plan.condition] if isinstance(plan, Filter) else []
        items = [] if isinstance(plan, Filter) else [item.expression for item in plan.items]
        for each in (*conditions, *items):
            if not isinstance(each, Column):
                used |= columns_of(each)
        plan = plan.source
    return used


def calendar_cuts(unit: CalendarUnit, times: TimeRange) -> Int64s:
    """Return where the units of the calendar begin that touch a period, and where the last ends.

    >>> cuts = calendar_cuts("quarter", TimeRange(0, 1))
    >>> cuts.astype("datetime64[us]").astype("datetime64[D]").tolist()
    [datetime.date(1970, 1, 1), datetime.date(1970, 4, 1)]
    """
    if times.is_empty:
        return np.array([0])
    ends = np.array([times.start_us, times.end_us - 1]).astype("datetime64[us]")
    if unit == "week":
        first, last = (ends.astype("datetime64[D]").astype(np.int64) - FIRST_MONDAY) // WEEK_DAYS
        days = np.arange(first, last + 2) * WEEK_DAYS + FIRST_MONDAY
        starts = days.astype("datetime64[D]")
    else:
        months = MONTHS[unit]
        first, last = ends.astype("datetime64[M]").astype(np.int64) // months
        starts = (np.arange(first, last + 2) * months).astype("datetime64[M]")
    found: Int64s = starts.astype("datetime64[us]").astype(np.int64)
    return found
