"""Whether the column `ts` of a plan's rows is the time of the stream's events."""

from __future__ import annotations

from eventide.plan.expressions import Column
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import WINDOW_END, SlidingAggregate, WindowAggregate
from eventide.schema import TS


def in_order(plan: Plan) -> bool:
    """Whether rows come in order of (ts, _seq), `ts` being that of the events."""
    match plan:
        case Scan() | DerivedStream():
            return True
        case Filter(source=source) | SlidingAggregate(source=source):
            return in_order(source)
        case Project(source=source):
            return _origin(plan) == TS and in_order(source)
    return False


def follows_time(plan: Plan) -> bool:
    """Whether no row with a `ts` before the watermark can still come.

    It is so for events, and for windows that carry their end: those are complete then.
    """
    match plan:
        case Filter(source=source):
            return follows_time(source)
        case Project(source=WindowAggregate() | Filter(source=WindowAggregate())):
            return _origin(plan) == WINDOW_END
    return in_order(plan)


def _origin(plan: Project) -> str | None:
    """Return the column below that becomes `ts`, or None if it is computed."""
    for item in plan.items:
        if item.name == TS and isinstance(item.expression, Column):
            return item.expression.name
    return None
