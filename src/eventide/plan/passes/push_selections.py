"""Move conditions down a standing plan, to before operators that keep rows.

A condition that can fail stays where it is: further down it would meet more values. A condition
above an operator that treats equal rows as one moves only if it gives the same result for all equal
values: 0.0 and -0.0 are equal, for example.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eventide.plan.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjuncts,
    substituted,
    walk,
)
from eventide.plan.failing import can_fail
from eventide.plan.nodes import Filter, Project
from eventide.plan.passes.push_down_time_range import conjoin
from eventide.plan.standing.joins import AsOfJoin, Existence, OuterJoin, WindowJoin
from eventide.plan.standing.nodes import Difference, Distinct, GroupAggregate, Merge
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import Plan

_COMPARISONS = frozenset(
    {"and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "in", "is null"}
    | {"is distinct from", "is not distinct from"}
)


def push_selections(plan: Plan) -> Plan:
    """Filter(p(a) AND q(a, b), Join(a, b)) -> Filter(q, Join(Filter(p, a), b)).

    A condition moves through joins, into the source whose columns it reads; of a join as of a time
    only into the left source, of an outer join only into one all of whose rows are kept. It moves
    through unions, DISTINCT, EXCEPT and (NOT) EXISTS; through GROUP BY if it reads only keys; not
    through ORDER BY … LIMIT. It stops above the windows: windows of time keep nothing, and before
    other windows a condition would mean something else.
    """
    plan = _loosened(plan)
    if isinstance(plan, Filter):
        parts, source = list(conjuncts(plan.condition)), plan.source
        while isinstance(source, Filter):
            parts, source = [*conjuncts(source.condition), *parts], source.source
        return _pushed(parts, source)
    return plan if isinstance(plan, Windowed) else plan.with_children(push_selections)


def takes_equal_for_one(condition: Expression) -> bool:
    """Whether a condition gives the same result for values that are equal but not identical."""
    for part in walk(condition):
        if isinstance(part, Column) and part.type.kind == "float64":
            return all(
                each.function in _COMPARISONS for each in walk(condition) if isinstance(each, Call)
            )
    return True


def filtered(source: Plan, parts: Iterable[Expression]) -> Plan:
    """Return a plan filtered by conditions, if there are any."""
    parts = list(parts)
    return Filter(source, conjoin(parts)) if parts else source


def _pushed(parts: list[Expression], source: Plan) -> Plan:
    source = _loosened(source)
    if isinstance(source, Filter):
        return push_selections(filtered(source, parts))
    movable = [part for part in parts if columns_of(part) and not can_fail(part)]
    below, moved = _below(movable, source)
    kept = [part for part in parts if part not in moved]
    return filtered(push_selections(below), kept)


def _below(parts: list[Expression], source: Plan) -> tuple[Plan, list[Expression]]:
    """Return a node with the conditions that may move below it, and which those are."""
    match source:
        case Project(source=inner, items=items):
            meaning = {item.name: item.expression for item in items}
            moved = [part for part in parts if not can_fail(substituted(part, meaning))]
            inside = filtered(inner, (substituted(part, meaning) for part in moved))
            return replace(source, source=inside), moved
        case WindowJoin(sources=sources):
            moved = [part for part in parts if any(_reads_only(part, each) for each in sources)]
            inside_all = tuple(_sieve(each, moved) for each in sources)
            return replace(source, sources=inside_all), moved
        case OuterJoin(sources=(left, right), keeps=(keeps_left, keeps_right)):
            # Beside nulls, a row of the other source would look different from one with a
            # partner.
            on_left = [] if keeps_right else [each for each in parts if _reads_only(each, left)]
            on_right = [] if keeps_left else [each for each in parts if _reads_only(each, right)]
            sieved = filtered(left, on_left), filtered(right, on_right)
            return replace(source, sources=sieved), [*on_left, *on_right]
        case AsOfJoin(left=left):
            moved = [part for part in parts if _reads_only(part, left)]
            return replace(source, left=filtered(left, moved)), moved
        case Existence(left=left):
            return replace(source, left=filtered(left, parts)), parts
        case Distinct(source=inner):
            moved = [part for part in parts if takes_equal_for_one(part)]
            return replace(source, source=filtered(inner, moved)), moved
        case Difference(left=left, right=right):
            moved = [part for part in parts if takes_equal_for_one(part)]
            inside_both = filtered(left, moved), filtered(right, moved)
            return replace(source, left=inside_both[0], right=inside_both[1]), moved
        case Merge(sources=sources):
            return replace(source, sources=tuple(filtered(each, parts) for each in sources)), parts
        case GroupAggregate(source=inner, keys=keys):
            meaning = {key.name: key.expression for key in keys}
            moved = [
                part
                for part in parts
                if columns_of(part) <= meaning.keys()
                and takes_equal_for_one(part)
                and not can_fail(substituted(part, meaning))
            ]
            inside = filtered(inner, (substituted(part, meaning) for part in moved))
            return replace(source, source=inside), moved
        case _:
            return source, []


def _loosened(join: Plan) -> Plan:
    """Return a join whose condition only compares sources; other conditions stand above it."""
    if not isinstance(join, WindowJoin) or join.condition is None:
        return join
    parts = list(conjuncts(join.condition))
    single = [
        part
        for part in parts
        if columns_of(part)
        and not can_fail(part)
        and any(_reads_only(part, source) for source in join.sources)
    ]
    if not single:
        return join
    rest = [part for part in parts if part not in single]
    return filtered(replace(join, condition=conjoin(rest) if rest else None), single)


def _reads_only(condition: Expression, source: Plan) -> bool:
    return columns_of(condition) <= source.row.keys()


def _sieve(source: Plan, parts: list[Expression]) -> Plan:
    return filtered(source, (part for part in parts if _reads_only(part, source)))
