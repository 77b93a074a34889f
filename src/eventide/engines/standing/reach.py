"""How far back a query looks, so what has to be read of each stream.

The answer at an instant depends on the contents of windows then, and a window of time holds nothing
older than its length. So events before that need not be read, nor those that a condition right
above the window rules out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eventide.engines.history.pruning import merged
from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.expressions import Column, Expression, conjuncts, rebuild
from eventide.plan.nodes import Filter, Scan, scans_of
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.windows import RowsWindow, SessionWindow, Windowed
from eventide.plan.tree import Plan
from eventide.store.index.ranges import ValueRange


def scan_of(leaf: Windowed) -> Scan:
    """Return the scan below a window."""
    assert isinstance(leaf.source, Scan)
    return leaf.source


def needed_ranges(plan: Plan, now_us: int, *, continuing: bool = False) -> tuple[TimeRange, ...]:
    """Return the times of the events of each scan on which the rows at an instant depend.

    With `continuing`, return what the query has to keep at that instant, so that all later reports
    are as if it had seen everything.
    """
    if plan.changes:
        return tuple(_needed(plan, TimeRange.since(now_us)))
    # What never goes again is all part of the answer.
    return tuple(_needed(plan, TimeRange.since(now_us + 1) if continuing else ALL_TIME))


def _needed(plan: Plan, period: TimeRange) -> Iterator[TimeRange]:
    """Yield the times of the events of each scan on which the rows of a period depend."""
    if isinstance(plan, Scan):
        yield plan.time_range.intersect(period)
    for source in plan.children:
        yield from _needed(source, plan.period_below(period))


def why_whole(plan: Standing) -> str | None:
    """Return why all events have to be read for any windows, or None."""
    if plan.report != "current":
        return f"{plan.report.upper()} reports every change from the first event on"
    return plan.why_whole


def conditions_of(plan: Plan) -> tuple[dict[str, ValueRange], ...]:
    """Return for each scan the ranges of attributes outside of which no event can matter."""
    match plan:
        case Scan() | Windowed():
            return tuple({} for _ in scans_of(plan))
        case Filter(source=Scan(), condition=condition):
            return (dict(merged(conjuncts(condition))),)
        case Filter(source=Windowed(window=RowsWindow() | SessionWindow()) as window):
            # There, an event that does not pass itself may still push another out, or keep it.
            return conditions_of(window)
        case Filter(source=Windowed(source=Scan(), alias=alias), condition=condition):
            return (dict(merged(unaliased(each, alias) for each in conjuncts(condition))),)
    return tuple(found for source in plan.children for found in conditions_of(source))


def unaliased(expression: Expression, alias: str) -> Expression:
    """Return an expression over a window's columns as one over its scan's."""
    if isinstance(expression, Column):
        return replace(expression, name=expression.name.removeprefix(f"{alias}."))
    return rebuild(expression, lambda part: unaliased(part, alias))
