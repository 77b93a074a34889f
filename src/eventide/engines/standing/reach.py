"""How far back a query looks, so what has to be read of each stream.

The answer at an instant depends on the contents of windows then, and a window of time holds nothing
older than its length. So events before that need not be read, nor those that a condition right
above the window rules out.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from eventide.engines.history.pruning import merged
from eventide.instants import ALL_TIME, START_OF_TIME_US, TimeRange
from eventide.plan.expressions import Column, Expression, conjuncts, rebuild
from eventide.plan.nodes import Filter, Project, Scan, scans_of
from eventide.plan.standing.joins import WindowJoin
from eventide.plan.standing.nodes import Merge, Standing, Top
from eventide.plan.standing.update_patterns import (
    nodes_of,
    windows_of,
)
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    StreamWindow,
    Unbounded,
    Windowed,
)
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
    match plan:
        case Standing() if all(isinstance(each.source, Scan) for each in windows_of(plan)):
            return _held_by_windows(plan, now_us, continuing=continuing)
        case Scan(time_range=time_range) if not continuing:
            return (time_range,)
    if continuing:
        kept = since(needed_since(plan, now_us + 1))
        return tuple(scan.time_range.intersect(kept) for scan in scans_of(plan))
    return tuple(chain.from_iterable(needed_ranges(each, now_us) for each in plan.children))


def needed_since(plan: Plan, clock_us: int) -> int:
    """Return an instant before which no event of a plan matters from a later one on."""
    reach_us = 0
    while plan.children:
        if plan.reach_us is None or len(plan.children) != 1:
            return START_OF_TIME_US
        reach_us += plan.reach_us
        (plan,) = plan.children
    return clock_us - reach_us


def _held_by_windows(plan: Standing, now_us: int, *, continuing: bool) -> tuple[TimeRange, ...]:
    leaves = windows_of(plan)
    clock_us = now_us if plan.slide_us is None else now_us // plan.slide_us * plan.slide_us
    whole = why_whole(plan, continuing=continuing) is not None
    if isinstance(plan.output_window, RangeWindow):
        clock_us -= plan.output_window.size_us
    return tuple(
        scan_of(leaf)
        .time_range.intersect(offered(leaf.window))
        .intersect(ALL_TIME if whole else held_range(leaf.window, clock_us))
        for leaf in leaves
    )


def why_whole(plan: Standing, *, continuing: bool = False) -> str | None:
    """Return why all events have to be read for any windows, or None."""
    if plan.report != "current" and not continuing:
        return f"{plan.report.upper()} reports every change from the first event on"
    if isinstance(plan.output_window, RowsWindow):
        return "the last results may be of any age"
    internal = any(leaf.internal for leaf in windows_of(plan))
    if internal and plan.report == "current" and plan.output_window is None:
        return "results of internal windows stay when their events go"
    if any(isinstance(node, Top) and not comes_with_events(node.source) for node in nodes_of(plan)):
        return "which of equal rows came first may have been settled at any time"
    return None


def comes_with_events(plan: Plan) -> bool:
    """Whether a row came with the last of its events, independently of earlier ones."""
    match plan:
        case Windowed():
            return True
        case Filter() | Project() | WindowJoin() | Merge():
            return all(map(comes_with_events, plan.children))
    return False


def offered(window: StreamWindow) -> TimeRange:
    """Return the times of the events that a window accepts at all."""
    if isinstance(window, SinceWindow):
        end_us = ALL_TIME.end_us if window.until_us is None else window.until_us
        return TimeRange(window.since_us, end_us)
    return ALL_TIME


def held_range(window: StreamWindow, now_us: int) -> TimeRange:
    """Return a period outside of which a window holds no event at an instant, nor later."""
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            tail_us = now_us if jump is None else now_us // jump * jump
            return since(tail_us - size + 1)
        case PeriodWindow(period_us=period):
            return since(now_us // period * period)
        case Unbounded() | SinceWindow() | RowsWindow() | SessionWindow():
            return ALL_TIME


def since(start_us: int) -> TimeRange:
    """Return all time from an instant on."""
    return TimeRange(max(ALL_TIME.start_us, start_us))


def conditions_of(plan: Plan) -> tuple[dict[str, ValueRange], ...]:
    """Return for each scan the ranges of attributes outside of which no event can matter."""
    match plan:
        case Scan() | Windowed():
            return tuple({} for _ in scans_of(plan))
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
