"""FREQUENT(x, 0.01) and FREQUENT(x, 10): the frequent values of a group, a row for each.

Each item of a SELECT that is one becomes three columns: the value, and the bounds of its count,
`lower` and `upper`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.spans import span_of
from eventide.plan.aggregates import FREQUENT
from eventide.plan.expressions import Aggregate, Call, Expression, Literal
from eventide.schema import NULL

_BOUNDS = {"lower": "frequent_lower", "upper": "frequent_upper"}
_KEPT = 1000
"""A pane keeps at least this many values, unless the query says how many."""
_SPARE = 10
"""How many times as many values are kept as there can be frequent ones."""
_MOST_KEPT = 10_000_000
_FINEST = 10**9
"""Shares are multiples of a billionth, so that they are compared exactly."""


def list_bounds(select: exp.Select) -> None:
    """Add the bounds of counts behind each item that is FREQUENT(…), in place."""
    select.set("expressions", [each for item in select.expressions for each in _columns(item)])


def _columns(item: exp.Expr) -> Iterator[exp.Expr]:
    node = item.unalias()
    call = frequent_call(node)
    if call is None or call.name.lower() != "frequent":
        yield item
        return
    value = call.expressions[0] if call.expressions else None
    own = value.name if isinstance(value, exp.Column) else "value"
    yield item if isinstance(item, exp.Alias) else exp.alias_(item, own, quoted=True)
    for name, function in _BOUNDS.items():
        bound = node.copy()
        inner = frequent_call(bound)
        assert inner is not None
        inner.set("this", function)
        yield exp.alias_(bound, name)


def frequent_call(node: exp.Expr) -> exp.Anonymous | None:
    """Return the call in an aggregate about frequent values, perhaps behind FILTER, or None."""
    call = node.this if isinstance(node, exp.Filter) else node
    if isinstance(call, exp.Anonymous) and call.name.lower() in FREQUENT:
        return call
    return None


def read_frequent(
    node: exp.Expr,
    call: exp.Anonymous,
    translate: Callable[[exp.Expr], Expression],
    span: Span | None,
) -> Aggregate:
    """Return an aggregate about frequent values."""
    given: list[exp.Expr] = call.expressions
    if len(given) not in (2, 3) or isinstance(given[0], exp.Distinct):
        message = "FREQUENT takes a value, and a share or how many"
        hint = "write FREQUENT(x, 0.01) for all over 1 %, or FREQUENT(x, 10) for the first ten"
        raise BindError(message, span=span, hint=hint)
    value, wanted, kept = given[0], given[1], given[2] if len(given) > 2 else None
    share, most = _wanted(wanted)
    usual = max(_KEPT, _SPARE * (most if share is None else math.ceil(1 / share)))
    number = usual if kept is None else _number(kept)
    if kept is not None and not max(most, 1) <= number <= _MOST_KEPT:
        message = f"FREQUENT keeps from {max(most, 1):,} to {_MOST_KEPT:,} values of each pane here"
        hint = f"leave the number out to keep {usual:,}"
        raise BindError(message, span=span_of(kept) or span, hint=hint)
    argument = translate(value)
    if isinstance(node, exp.Filter):
        condition = translate(node.expression.this)
        argument = Call("case", (condition, argument, Literal(None, NULL)), span=span)
    function = call.name.lower()
    return Aggregate(
        function, argument, span=span, parameter=most if share is None else share, kept=number
    )


def _wanted(node: exp.Expr) -> tuple[float | None, int]:
    """Return the share that is to be exceeded, or how many values are listed."""
    plain = isinstance(node, exp.Literal) and not node.is_string
    number = Fraction(node.name) if plain else Fraction(0)
    if number.denominator == 1 and 1 <= number <= _MOST_KEPT // _SPARE:
        return None, int(number)
    if 0 < number < 1 and _FINEST % number.denominator == 0:
        return float(number), 0
    message = "FREQUENT takes a share between 0 and 1, or how many"
    hint = "write 0.01 for all over 1 %, with at most nine decimals, or 10 for the first ten"
    raise BindError(message, span=span_of(node), hint=hint)


def _number(node: exp.Expr) -> int:
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else 0
