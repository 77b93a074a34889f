"""LEFT, RIGHT and FULL JOIN: which of the conditions in ON are keys, and which filter one side.

A condition on one side filters that side, if its unmatched rows are not kept. If they are kept, it
becomes a key: 1 where it is true, else null, which equals nothing; the other side has 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import reduce

from eventide.errors import Span, UnsupportedError
from eventide.lang.sql.standing.join import band_of, filtered
from eventide.plan.bind import bind_expression
from eventide.plan.expressions import ALWAYS, Call, Expression, Literal, columns_of
from eventide.plan.render import render
from eventide.plan.standing.joins import OuterJoin
from eventide.plan.tree import Plan, Row
from eventide.schema import BOOL, INT64, NULL

KEEPS = {"LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}
"""The sides whose rows without a partner are kept."""

_Pair = tuple[Expression, Expression]


def outer_join(
    sides: tuple[Plan, Plan], conditions: Iterable[Expression], word: str, span: Span | None
) -> OuterJoin:
    """Return the outer join of two plans on conditions; all are bound."""
    rows = (sides[0].row, sides[1].row)
    keeps = KEEPS[word]
    pairs: list[_Pair] = []
    sieves: tuple[list[Expression], list[Expression]] = ([], [])
    both: list[Expression] = []
    for condition in conditions:
        check_known(condition, rows[0].keys() | rows[1].keys(), word)
        pair = _equality(condition, *rows)
        place = _only_side(condition, rows, keeps)
        if pair is not None:
            pairs.append(pair)
        elif place is None:
            both.append(condition)
        elif not keeps[place]:
            sieves[place].append(condition)
        elif condition != ALWAYS:
            pairs.append(_as_key(condition, place, rows[place]))
    left, right = (filtered(side, own) for side, own in zip(sides, sieves, strict=True))
    keys = tuple(one for one, _ in pairs), tuple(other for _, other in pairs)
    together = reduce(lambda one, other: Call("and", (one, other), BOOL), both) if both else None
    band = None if pairs else band_of(both, left, right)
    return OuterJoin((left, right), keys, keeps, together, band, span)


def check_known(condition: Expression, known: AbstractSet[str], word: str) -> None:
    """Refuse a condition that reads more than the two sides of an outer join."""
    strange = sorted(columns_of(condition) - known)
    if strange:
        message = f"{strange[0]} in {render(condition)} is of neither side of this {word} JOIN"
        hint = "a comma binds less than JOIN: write JOIN … ON instead of it"
        raise UnsupportedError(message, span=condition.span, hint=hint)


def _equality(condition: Expression, left: Row, right: Row) -> _Pair | None:
    """Return both sides of an equality of the two, that of the left first."""
    match condition:
        case Call(function="=", arguments=(one, other)):
            for pair in ((one, other), (other, one)):
                read = columns_of(pair[0]), columns_of(pair[1])
                if all(read) and read[0] <= left.keys() and read[1] <= right.keys():
                    return pair
    return None


def _only_side(
    condition: Expression, rows: tuple[Row, Row], keeps: tuple[bool, bool]
) -> int | None:
    """Return the one side that a condition reads; if either would do, one that is not kept."""
    fits = [place for place in (0, 1) if columns_of(condition) <= rows[place].keys()]
    return min(fits, key=lambda place: keeps[place], default=None)


def _as_key(condition: Expression, place: int, row: Row) -> _Pair:
    one = Literal(1, INT64)
    found = bind_expression(Call("case", (condition, one, Literal(None, NULL))), row)
    return (found, one) if place == 0 else (one, found)
