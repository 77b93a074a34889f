"""Let sequences forget events that are too old for what is asked of the results."""

from __future__ import annotations

from eventide.plan.algebra.conditions import least, longest_us
from eventide.plan.algebra.nodes import Follows
from eventide.plan.expressions import conjuncts
from eventide.plan.nodes import DerivedStream, Filter, Project
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan, replaced
from eventide.schema import START_TS, TS


def bound_lengths(plan: Plan) -> Plan:
    """Filter(ts - start_ts <= c, Sequence) -> the same, Sequence and those below it within c.

    A result takes as long as both its events and what is between them, so neither is longer.
    """
    return _bounded(plan, None)


def _bounded(plan: Plan, most_us: int | None) -> Plan:
    match plan:
        case Filter(condition=condition):
            for part in conjuncts(condition):
                most_us = least(most_us, longest_us(part))
            return plan.with_children(lambda source: _bounded(source, most_us))
        case Project() if plan.origin(TS) == TS and plan.origin(START_TS) == START_TS:
            return plan.with_children(lambda source: _bounded(source, most_us))
        case DerivedStream() | Merge():
            return plan.with_children(lambda source: _bounded(source, most_us))
        case Follows():
            span = plan.within_span if most_us is None else None
            most_us = least(most_us, plan.within_us)
            left, right = (_bounded(each, most_us) for each in (plan.left, plan.right))
            bounds = {"within_us": most_us, "within_span": span}
            return replaced(plan, left=left, right=right, **bounds)
    return plan.with_children(lambda source: _bounded(source, None))
