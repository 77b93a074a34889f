"""Rows that nothing above reads in order need no order."""

from __future__ import annotations

from eventide.plan.nodes import DerivedStream, Filter, Project, Relational
from eventide.plan.situations.nodes import PeriodJoin
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan


def drop_order(plan: Plan) -> Plan:
    """Project(a, DerivedStream(x)) -> Project(a, x), at the top of a plan."""
    match plan:
        case Filter() | Project() | Merge() | PeriodJoin() | Relational():
            return plan.with_children(drop_order)
        case DerivedStream(source=source) if not isinstance(source, Merge):
            return drop_order(source)
    return plan
