"""Whether rows can be relied on to follow time."""

from __future__ import annotations

from eventide.plan.nodes import Filter, Project
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import WINDOW_END, WindowAggregate
from eventide.schema import TS


def follows_time(plan: Plan) -> bool:
    """Whether no row with a `ts` before the watermark can still come.

    It is so for events, and for windows that carry their end: those are complete then.
    """
    match plan:
        case Filter(source=source):
            return follows_time(source)
        case Project(source=WindowAggregate() | Filter(source=WindowAggregate())):
            return plan.origin(TS) == WINDOW_END
    return plan.in_order
