"""The parts of a condition, and whether two of them can be true of one event.

    host = 'a' OR host = 'b'      two parts, which are never true together
    load > 5 OR host = 'a'        two parts, of which an event may be in both

An event that is in one part is counted once, so what is known of the parts adds up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from math import isnan

from eventide.plan.expressions import Call, Column, Expression, Literal, conjuncts
from eventide.schema import BOOL

MOST_PARTS = 64
"""A condition of more parts stays whole: each is merged at each refresh."""
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def disjoint_parts(condition: Expression) -> tuple[Expression, ...]:
    """Return the parts of a condition that exclude each other; the condition itself if some do not.

    >>> from eventide.plan.expressions import integer
    >>> from eventide.schema import INT64
    >>> one, two = (Call("=", (Column("x", INT64), integer(each)), BOOL) for each in (1, 2))
    >>> disjoint_parts(Call("or", (one, two), BOOL)) == (one, two)
    True
    """
    parts = tuple(dict.fromkeys(_parts(condition)))
    if not 1 < len(parts) <= MOST_PARTS:
        return (condition,)
    bounds = [bounds_of(each) for each in parts]
    exclude = all(exclude_each_other(*pair) for pair in combinations(bounds, 2))
    return parts if exclude else (condition,)


def _parts(condition: Expression) -> Iterator[Expression]:
    match condition:
        case Call(function="or", arguments=(left, right)):
            yield from _parts(left)
            yield from _parts(right)
        case Call(function="in", arguments=(value, *options)):
            yield from (Call("=", (value, each), BOOL) for each in options)
        case _:
            yield condition


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which values a column is, where a condition is true; None for no bound."""

    low: object = None
    high: object = None
    low_counts: bool = True
    high_counts: bool = True

    def excludes(self, other: Bounds) -> bool:
        """Whether no value is within both."""
        return self.is_below(other) or other.is_below(self)

    def is_below(self, other: Bounds) -> bool:
        """Whether all values within these are below those within others."""
        if not are_comparable(self.high, other.low):
            return False
        touching = self.high_counts and other.low_counts
        return bool(self.high < other.low or (self.high == other.low and not touching))  # type: ignore[operator]


def are_comparable(one: object, other: object) -> bool:
    """Whether two constants have an order."""
    if isinstance(one, str) and isinstance(other, str):
        return True
    return is_number(one) and is_number(other)


def is_number(value: object) -> bool:
    """Whether a constant is a number, other than NaN."""
    if isinstance(value, float):
        return not isnan(value)
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def bounds_of(condition: Expression) -> dict[str, list[Bounds]]:
    """Return the bounds that the parts of an AND set to columns by comparing them to constants."""
    found: dict[str, list[Bounds]] = {}
    for part in conjuncts(condition):
        match part:
            case Call(function=word, arguments=(Column(name=name), Literal(value=value))):
                pass
            case Call(function=turned, arguments=(Literal(value=value), Column(name=name))):
                word = _TURNED.get(turned, "")
            case _:
                continue
        bounds = _bounds(word, value)
        if bounds is not None:
            found.setdefault(name, []).append(bounds)
    return found


def _bounds(word: str, value: object) -> Bounds | None:
    match word:
        case "=":
            return Bounds(value, value)
        case "<" | "<=":
            return Bounds(high=value, high_counts=word == "<=")
        case ">" | ">=":
            return Bounds(low=value, low_counts=word == ">=")
    return None


def exclude_each_other(one: dict[str, list[Bounds]], other: dict[str, list[Bounds]]) -> bool:
    """Whether no event is within the bounds of both."""
    return any(
        mine.excludes(theirs)
        for name in one.keys() & other.keys()
        for mine in one[name]
        for theirs in other[name]
    )
