"""Chooses the operator of a GROUP BY of a standing query: with panes wherever they are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide.errors import UnsupportedError
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.operators.standing.groups.recomputed import RecomputedGroups
from eventide.operators.standing.groups.slides import AggregateSlides
from eventide.plan.aggregates import DECAYED, FREQUENT, STANDING_ONLY
from eventide.plan.render import render
from eventide.plan.standing.edges import Edge
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import GroupAggregate
from eventide.plan.standing.structures import by_pane, by_sketch, is_taken_back

if TYPE_CHECKING:
    from eventide.operators.standing.groups.panes import AggregatePanes


def group_operator(
    node: GroupAggregate, edge: Edge, execution: Execution, slide_us: int | None
) -> AggregateGroups | AggregatePanes | AggregateSlides | RecomputedGroups:
    """Return the operator of a GROUP BY: with panes if there are any and they are enough.

    Other executions keep all tuples, as other systems do, unless that is not possible. So does an
    aggregate from which no value can be taken back.
    """
    functions = {item.aggregate.function for item in node.aggregates}
    for item in node.aggregates:
        if slide_us is None and item.aggregate.function in STANDING_ONLY:
            why = "changes with every instant"
            if item.aggregate.function in FREQUENT:
                why = "is kept by pane"
            message = f"{render(item.aggregate)} without SLIDE: it {why}"
            hint = (
                "add SLIDE to the window, which says when rows are reported, and leave out RESTORE"
            )
            raise UnsupportedError(message, span=item.aggregate.span, hint=hint)
    if slide_us is not None and functions & {*DECAYED} and not functions & {*FREQUENT}:
        return AggregateSlides(node, edge, slide_us)
    if slide_us is not None and (by_sketch(node, edge, slide_us) or functions & {*FREQUENT}):
        # Most queries have no sketches.
        from eventide.operators.standing.groups.panes import AggregatePanes

        return AggregatePanes(node, edge, slide_us)
    if not is_taken_back(node):
        return RecomputedGroups(node)
    if slide_us is not None and execution == "aware" and by_pane(node, edge, slide_us):
        return AggregateSlides(node, edge, slide_us)
    return AggregateGroups(node, edge, execution)
