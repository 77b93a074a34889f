"""Conditions over several sources → joins: by equal keys where there are any.

Sources with a common set of equal keys become one join of them all. Others become a chain of joins,
those with the most keys in common first. Conditions on one source are evaluated before the joins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from eventide.plan.expressions import Call, Expression, Literal, columns_of
from eventide.plan.nodes import Filter
from eventide.plan.standing.joins import Band, WindowJoin
from eventide.plan.tree import Plan
from eventide.schema import BOOL

Member = tuple[int, Expression]
"""A source and an expression over its columns alone."""

_BANDED = ("int64", "float64", "timestamp")


@dataclass(frozen=True, slots=True)
class _Equality:
    """Two expressions of different sources that have to be equal."""

    condition: Expression
    one: Member
    other: Member


@dataclass(frozen=True, slots=True)
class _Joined:
    """A plan over some of the sources."""

    parts: frozenset[int]
    plan: Plan


def filtered(plan: Plan, conditions: Sequence[Expression]) -> Plan:
    """Return the rows of a plan on which all conditions are true."""
    if not conditions:
        return plan
    return Filter(plan, reduce(lambda one, other: Call("and", (one, other), BOOL), conditions))


def join_all(parts: Sequence[Plan], conditions: Iterable[Expression]) -> Plan:
    """Return the combinations of rows of all parts on which the conditions, all bound, are true."""
    owners = {name: place for place, part in enumerate(parts) for name in part.row}
    own: dict[int, list[Expression]] = {}
    equalities: list[_Equality] = []
    others: list[tuple[frozenset[int], Expression]] = []
    for condition in conditions:
        read = frozenset(owners[name] for name in columns_of(condition))
        equality = _equality(condition, owners)
        if len(read) <= 1:
            own.setdefault(next(iter(read), 0), []).append(condition)
        elif equality is not None:
            equalities.append(equality)
        else:
            others.append((read, condition))
    classes = _classes(equalities)
    groups = [
        _Joined(frozenset((place,)), filtered(part, own.get(place, [])))
        for place, part in enumerate(parts)
    ]
    while len(groups) > 1:
        chosen = _next_join(groups, classes, [read for read, _ in others])
        joined = _join(chosen, classes, equalities, others)
        place = groups.index(chosen[0])
        groups = [each for each in groups if each not in chosen]
        groups.insert(place, joined)
    return groups[0].plan


def _equality(condition: Expression, owners: dict[str, int]) -> _Equality | None:
    match condition:
        case Call(function="=", arguments=(left, right)):
            one = frozenset(owners[name] for name in columns_of(left))
            other = frozenset(owners[name] for name in columns_of(right))
            if len(one) == len(other) == 1 and one != other:
                return _Equality(condition, (min(one), left), (min(other), right))
    return None


def _classes(equalities: list[_Equality]) -> list[list[Member]]:
    """Return the sets of members that are all equal."""
    classes: list[list[Member]] = []
    for equality in equalities:
        touched = [each for each in classes if equality.one in each or equality.other in each]
        merged = [member for each in touched for member in each]
        merged += [each for each in (equality.one, equality.other) if each not in merged]
        place = classes.index(touched[0]) if touched else len(classes)
        classes = [each for each in classes if each not in touched]
        classes.insert(place, merged)
    return classes


def _members(members: list[Member], groups: Sequence[_Joined]) -> dict[int, Member]:
    """Return the first member of a class in each group that has one, by the group's place."""
    found: dict[int, Member] = {}
    for member in members:
        for place, group in enumerate(groups):
            if member[0] in group.parts:
                found.setdefault(place, member)
    return found


def _next_join(
    groups: list[_Joined], classes: list[list[Member]], linked: list[frozenset[int]]
) -> list[_Joined]:
    """Return the groups to join next: those with the most keys in common."""
    spread = [frozenset(_members(each, groups)) for each in classes]
    candidates = [each for each in dict.fromkeys(spread) if len(each) > 1]
    if candidates:
        best = max(candidates, key=lambda places: (len(places), spread.count(places)))
        return [groups[place] for place in sorted(best)]
    for parts in linked:
        touched = [group for group in groups if group.parts & parts]
        if len(touched) > 1:
            return touched[:2]
    return groups[:2]


def _join(
    chosen: list[_Joined],
    classes: list[list[Member]],
    equalities: list[_Equality],
    others: list[tuple[frozenset[int], Expression]],
) -> _Joined:
    parts = frozenset[int]().union(*(each.parts for each in chosen))
    shared = [_members(each, chosen) for each in classes]
    keyed = [each for each in shared if len(each) == len(chosen)]
    conditions = []
    for equality in equalities:
        asked = _crosses(frozenset((equality.one[0], equality.other[0])), chosen, parts)
        pair = {equality.one, equality.other}
        if asked and not any(pair <= set(each.values()) for each in keyed):
            conditions.append(equality.condition)
    conditions += [each for read, each in others if _crosses(read, chosen, parts)]
    sources = tuple(each.plan for each in chosen)
    keys = tuple(tuple(each[place][1] for each in keyed) for place in range(len(chosen)))
    condition = None
    if conditions:
        condition = reduce(lambda one, other: Call("and", (one, other), BOOL), conditions)
    band = None if keyed or len(chosen) != 2 else band_of(conditions, sources[0], sources[1])
    return _Joined(parts, WindowJoin(sources, keys, condition, band))


def _crosses(read: frozenset[int], chosen: list[_Joined], parts: frozenset[int]) -> bool:
    """Whether a condition can be evaluated after a join, and not before it."""
    return read <= parts and not any(read <= each.parts for each in chosen)


def band_of(conditions: Sequence[Expression], left: Plan, right: Plan) -> Band | None:
    """Return the band in which the values of two sources have to lie, if conditions say so."""
    reaches: dict[tuple[Expression, Expression], list[tuple[str, int | float]]] = {}
    for condition in conditions:
        for (one, other), side, width in _bounds(condition):
            sides = (columns_of(one), columns_of(other))
            if _are_of(sides, left, right) and one.type == other.type:
                reaches.setdefault((one, other), []).append((side, width))
            elif _are_of(sides, right, left) and one.type == other.type:
                mirrored = "below" if side == "above" else "above"
                reaches.setdefault((other, one), []).append((mirrored, width))
    for (one, other), bounds in reaches.items():
        sides_found = {side for side, _ in bounds}
        if sides_found == {"above", "below"} and one.type.kind in _BANDED:
            width = max(width for _, width in bounds)
            return Band(one, other, width) if width >= 0 else None
    return None


def _are_of(sides: tuple[frozenset[str], frozenset[str]], left: Plan, right: Plan) -> bool:
    one, other = sides
    return bool(one and other) and one <= frozenset(left.row) and other <= frozenset(right.row)


_Bound = tuple[tuple[Expression, Expression], str, int | float]


def _bounds(condition: Expression) -> list[_Bound]:
    """Return how far the first of two expressions may be above or below the second."""
    match condition:
        case (
            Call(
                function="<=" | "<",
                arguments=(
                    Call(function="abs", arguments=(Call("-", (one, other)),)),
                    Literal() as w,
                ),
            )
            | Call(
                function=">=" | ">",
                arguments=(
                    Literal() as w,
                    Call(function="abs", arguments=(Call("-", (one, other)),)),
                ),
            )
        ):
            width = _width(w)
            if width is None:
                return []
            return [((one, other), "above", width), ((one, other), "below", width)]
        case Call(function="<=" | "<", arguments=(lower, upper)):
            return _one_sided(lower, upper)
        case Call(function=">=" | ">", arguments=(upper, lower)):
            return _one_sided(lower, upper)
    return []


def _one_sided(lower: Expression, upper: Expression) -> list[_Bound]:
    """Read lower <= upper, where w has been added to one side or taken off the other."""
    match lower, upper:
        case _, Call(function="+", arguments=(base, Literal() as w)):
            one, other = lower, base
        case _, Call(function="+", arguments=(Literal() as w, base)):
            one, other = lower, base
        case Call(function="-", arguments=(base, Literal() as w)), _:
            one, other = base, upper
        case _:
            return []
    width = _width(w)
    return [] if width is None else [((one, other), "above", width)]


def _width(literal: Literal) -> int | float | None:
    match literal.value:
        case bool() | None | str() | bytes():
            return None
        case Decimal() as exact:
            # Never too narrow: the condition is evaluated again.
            return math.nextafter(float(exact), math.inf)
        case value:
            return value
