"""Ask of each event alone what a sequence asks of one of its events; find keys and bounds."""

from __future__ import annotations

from eventide.plan.algebra.conditions import parts_of, together
from eventide.plan.algebra.nodes import Follows
from eventide.plan.expressions import Expression, substituted
from eventide.plan.nodes import Filter, Project
from eventide.plan.tree import Plan, replaced


def divide_conditions(plan: Plan) -> Plan:
    """Sequence(a, b, p(a) AND q(b) AND a.k = b.k) -> Sequence(Filter(p, a), Filter(q, b), k)."""
    plan = plan.with_children(divide_conditions)
    if not isinstance(plan, Follows):
        return plan
    parts = parts_of(plan)
    return replaced(
        plan,
        left=_filtered(plan.left, parts.left),
        right=_filtered(plan.right, parts.right),
        condition=together(parts.both),
        left_keys=(*plan.left_keys, *(left for left, _ in parts.keys)),
        right_keys=(*plan.right_keys, *(right for _, right in parts.keys)),
        within_us=parts.within_us,
        within_span=parts.within_span,
    )


def _filtered(source: Plan, conditions: list[Expression]) -> Plan:
    """Return the rows on which all conditions are true, chosen before others are computed."""
    if not conditions:
        return source
    if isinstance(source, Project):
        known = {item.name: item.expression for item in source.items}
        below = [substituted(each, known) for each in conditions]
        return replaced(source, source=_filtered(source.source, below))
    return Filter(source, together(conditions))
