"""Move (NOT) EXISTS and EXCEPT ALL above or below joins.

Below a join they reduce its input; above it, the join does not see the rows that they take back.
Both plans give the same bag of rows at every instant, so the choice is one of cost. This module
yields the alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eventide.plan.expressions import Column, Expression, columns_of, substituted
from eventide.plan.failing import can_fail
from eventide.plan.nodes import Filter, Project
from eventide.plan.passes.push_selections import takes_equal_for_one
from eventide.plan.standing.joins import Existence, WindowJoin
from eventide.plan.standing.nodes import Difference
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import Plan


def moves_of_negation(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the plans in which one negation has another place, and what was done.

    Nothing moves across a join as of a time: a row that comes back later would meet another past.
    """
    yield from _moves_here(plan)
    if isinstance(plan, Windowed):
        return  # What it reads is a query of its own.
    for place, source in enumerate(plan.children):
        for name, moved in moves_of_negation(source):
            yield name, _with_source(plan, place, moved)


def existence_above(join: WindowJoin, place: int) -> Plan | None:
    """Join(Existence(a, c), b) -> Existence(Join(a, b), c).

    Whether a combination stays depends only on its part from `a`, whose columns it still has.
    """
    source = _without_project(join.sources[place])
    if not isinstance(source, Existence) or any(map(can_fail, _expressions(join))):
        return None
    return replace(source, left=_with_source(join, place, source.left))


def existence_below(existence: Existence) -> Plan | None:
    """Existence(Join(a, b), c) -> Join(Existence(a, c), b), if the keys are columns of `a`."""
    join = existence.left
    if isinstance(join, Filter):
        below = existence_below(replace(existence, left=join.source))
        return below and replace(join, source=below)
    if not isinstance(join, WindowJoin):
        return None
    read = frozenset[str]().union(*map(columns_of, existence.left_keys))
    for place, source in enumerate(join.sources):
        if read and read <= source.row.keys():
            return _with_source(join, place, replace(existence, left=source))
    return None


def difference_above(join: WindowJoin, place: int) -> Plan | None:
    """Join(Difference(a, c), b) -> Difference(Join(a, b), Join(c, b)).

    For a row that occurs m times in `a`, n times in `c`, and has k partners:
    max(m - n, 0) k = max(mk - nk, 0). The rest of the join then runs twice.
    """
    source = _without_project(join.sources[place])
    read = _expressions(join)
    if not isinstance(source, Difference) or any(map(can_fail, read)):
        return None
    if not all(map(takes_equal_for_one, read)):
        return None
    return replace(
        source,
        left=_with_source(join, place, source.left),
        right=_with_source(join, place, source.right),
    )


def _moves_here(plan: Plan) -> Iterator[tuple[str, Plan]]:
    match plan:
        case WindowJoin(sources=sources):
            for place in range(len(sources)):
                if (above := existence_above(plan, place)) is not None:
                    yield "existence above the join", above
                if (above := difference_above(plan, place)) is not None:
                    yield "EXCEPT above the join", above
        case Existence():
            if (below := existence_below(plan)) is not None:
                yield "existence below the join", below


def _without_project(plan: Plan) -> Plan:
    """Return the negation below a projection that only renames or drops columns.

    EXCEPT needs all columns: without one, rows that differ in it would become the same.
    """
    if not isinstance(plan, Project):
        return plan
    names = {
        item.expression.name: item for item in plan.items if isinstance(item.expression, Column)
    }
    match plan.source:
        case Existence(left=left, left_keys=keys) as existence:
            read = frozenset[str]().union(*map(columns_of, keys))
            if not read <= names.keys() or any(can_fail(each.expression) for each in plan.items):
                return plan
            there = {old: Column(new.name, new.type) for old, new in names.items()}
            return replace(
                existence,
                left=replace(plan, source=left),
                left_keys=tuple(substituted(key, there) for key in keys),
            )
        case Difference(left=left, right=right) as difference:
            if names.keys() != left.row.keys() or len(names) != len(plan.items):
                return plan
            return replace(
                difference, left=replace(plan, source=left), right=replace(plan, source=right)
            )
    return plan


def _expressions(join: WindowJoin) -> list[Expression]:
    condition = [] if join.condition is None else [join.condition]
    return [*(key for keys in join.keys for key in keys), *condition]


def _with_source(plan: Plan, place: int, source: Plan) -> Plan:
    places = iter(range(len(plan.children)))
    return plan.with_children(lambda each: source if next(places) == place else each)
