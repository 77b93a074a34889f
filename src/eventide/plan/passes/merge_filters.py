"""Stacked filters become one."""

from __future__ import annotations

from eventide.plan.expressions import Call
from eventide.plan.nodes import Filter
from eventide.plan.tree import Plan
from eventide.schema import BOOL


def merge_filters(plan: Plan) -> Plan:
    """Filter(p, Filter(q, x)) -> Filter(q AND p, x).

    The inner condition comes first: it may guard the outer one against values it cannot take.
    """
    plan = plan.with_children(merge_filters)
    match plan:
        case Filter(source=Filter(source=source, condition=inner), condition=outer):
            return Filter(source, Call("and", (inner, outer), BOOL))
    return plan
