"""Parts that queries have in common run once, and what each query has above them reads their rows.

    Filter(avg > 70, windows) ─┐                    windows ──▶ index ─┬▶ avg > 70
    Filter(avg > 65, windows) ─┴▶  the same windows,                   └▶ avg > 65

A part is a query as well: it has a number, a template and constants of its own. Its rows are
events to the queries that have it, whose conditions on these rows are entries of an index. The
queries need not be of one template, and what they have above a part may be anything: a condition,
a pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from eventide.errors import Span
from eventide.plan.expressions import ALWAYS, Call, Column, Expression, Literal, walk
from eventide.plan.nodes import Scan
from eventide.plan.sharing.part_rows import PART, PART_NUMBER, is_part, reads_parts
from eventide.plan.sharing.rules import SharingRules
from eventide.plan.sharing.template import QUERY, TemplateQuery, member_of, sunk
from eventide.plan.tree import Plan
from eventide.schema import BOOL, INT64

MOST_CUTS = 8
"""So many parts of a plan are considered, the largest first."""
Constants = tuple[int | Literal, ...]
"""Where constants come from: a constant of the whole plan by its place, or a value."""


@dataclass(frozen=True, slots=True)
class DividedPlan:
    """A plan that is divided: a part that others may have as well, and what is above it."""

    part: TemplateQuery
    part_plan: Plan
    part_constants: Constants
    above: TemplateQuery
    above_constants: Constants


def cuts_of(
    plan: Plan,
    whole: TemplateQuery,
    varying: frozenset[int],
    *,
    common: bool = False,
    rules: SharingRules,
) -> Iterator[DividedPlan]:
    """Yield the ways to divide a plan, those with the largest parts first.

    `whole` is the plan's template, with constants; the `varying` differ from query to query.
    """
    if not rules.share_parts or plan.standing is not None:
        return
    top = sunk(plan)
    for count, part in enumerate(parts_of(top)):
        if count == MOST_CUTS:
            return
        found = divided(top, part, whole, varying, common=common, rules=rules)
        if found is not None:
            yield found


def parts_of(plan: Plan) -> Iterator[Plan]:
    """Yield the parts of a plan that remember something, those above first."""
    if plan.children and plan.state_keys is not None and not reads_parts(plan):
        yield plan
    for child in plan.children:
        yield from parts_of(child)


def divided(
    plan: Plan,
    part: Plan,
    whole: TemplateQuery,
    varying: frozenset[int],
    *,
    common: bool,
    rules: SharingRules,
) -> DividedPlan | None:
    """Return a plan divided above a part, if both run with the numbers of queries."""
    below = member_of(part, common=common, rules=rules)
    if below is None:
        return None
    below = below.opened()
    rows = Scan(PART + below.template.digest, tuple(part.row.items()))
    above = member_of(with_rows(plan, part, rows), common=common, rules=rules)
    if above is None:
        return None
    above = above.opened()
    leaves, conditions = above.template.numbered, above.conditions
    above = replace(
        above,
        template=replace(above.template, parts=(below.template,)),
        conditions=tuple(map(of_part, leaves, conditions)),
    )
    of_below, of_above = (origins(whole, each) for each in (below, above))
    if not varying <= {each for each in (*of_below, *of_above) if isinstance(each, int)}:
        return None
    spans = [whole.constants[place].span for place in varying]
    if any(is_left(span, each) for span in spans for each in (below, above)):
        return None
    return DividedPlan(below, part, of_below, above, of_above)


def with_rows(plan: Plan, part: Plan, rows: Scan) -> Plan:
    """Return a plan that reads rows instead of computing a part of it."""
    if plan is part:
        return rows
    return plan.with_children(lambda child: with_rows(child, part, rows))


def of_part(leaf: Scan, condition: Expression) -> Expression:
    """Return a condition on rows, which have to be those of the query's part if they are any's."""
    if not is_part(leaf):
        return condition
    own = Call("=", (Column(QUERY, INT64), Column(PART_NUMBER, INT64)), BOOL)
    return own if condition == ALWAYS else Call("and", (own, condition), BOOL)


def origins(whole: TemplateQuery, query: TemplateQuery) -> Constants:
    """Return where the constants of a part come from: most often from those of the whole plan."""
    places = {(each.span, each.type): place for place, each in enumerate(whole.constants)}
    places = {key: place for key, place in places.items() if key[0] is not None}
    return tuple(places.get((each.span, each.type), each) for each in query.constants)


def is_left(span: Span | None, query: TemplateQuery) -> bool:
    """Whether a constant is still in a template that has been taken out of the whole plan."""
    if span is None:
        return True
    kept = [
        part.span
        for each in (*query.conditions, *expressions_of(query.template.whole))
        for part in walk(each)
        if isinstance(part, Literal) and part.span is not None
    ]
    return any(each.start < span.end and span.start < each.end for each in kept)


def expressions_of(plan: Plan) -> Iterator[Expression]:
    """Yield all expressions of a plan."""
    yield from (each for each, _ in plan.expressions)
    for child in plan.children:
        yield from expressions_of(child)
