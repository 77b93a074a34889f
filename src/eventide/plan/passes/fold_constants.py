"""Compute constant expressions while planning, where no engine is needed to know the result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal

from eventide.plan.constants import cast_constant
from eventide.plan.expressions import Call, Cast, Expression, Literal, Scalar, rebuild
from eventide.plan.nodes import Filter
from eventide.plan.tree import Plan
from eventide.schema import BOOL, MAX_TS_US, MIN_TS_US, TIMESTAMP, DataType

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

# Integers, times and intervals are whole numbers here: exact, and the same on every engine.
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def fold_constants(plan: Plan) -> Plan:
    """Filter(ts > t - INTERVAL '1' DAY AND TRUE, x) -> Filter(ts > t', x)."""
    plan = plan.with_expressions(lambda each, _: fold(each)).with_children(fold_constants)
    match plan:
        case Filter(source=source, condition=Literal(value=True)):
            return source
    return plan


def fold(expression: Expression) -> Expression:
    """Return the expression with its constant parts computed, except those that may fail."""
    expression = rebuild(expression, fold)
    match expression:
        case Call(function="and" | "or" as name, arguments=(left, right)):
            return _fold_logic(expression, absorbing=name == "or", left=left, right=right)
        case Call(function="not", arguments=(Literal(value=bool(value)),)):
            return Literal(not value, BOOL, expression.span)
        case Call(function="negate", arguments=(Literal(value=int(value)),)):
            return _whole(expression, -value)
        case Call(function="negate", arguments=(Literal(value=float(value)),)):
            return Literal(-value, expression.type, expression.span)
        case Call(function="negate", arguments=(Literal(value=Decimal() as value),)):
            # Not `-value`, which rounds to the digits of the context.
            return Literal(value.copy_negate(), expression.type, expression.span)
        case Call(function="make_timestamp", arguments=(Literal(value=int(value)),)):
            known = MIN_TS_US <= value <= MAX_TS_US
            return Literal(value, TIMESTAMP, expression.span) if known else expression
        case Call(arguments=(Literal() as left, Literal() as right)):
            return _fold_pair(expression, left, right)
        case Cast(argument=Literal() as literal, type=target):
            return cast_constant(literal, target) or expression
    return expression


def _fold_logic(
    call: Expression, *, absorbing: bool, left: Expression, right: Expression
) -> Expression:
    """TRUE AND x -> x; FALSE AND x -> FALSE; and the mirror image for OR."""
    for constant, other in ((left, right), (right, left)):
        if isinstance(constant, Literal) and constant.value is (not absorbing):
            return other
    if isinstance(left, Literal) and left.value is absorbing:
        return left
    return call


def _fold_pair(call: Call, left: Literal, right: Literal) -> Expression:
    one, other = left.value, right.value
    if one is None or other is None:
        nulls = call.function in _ARITHMETIC or call.function in _COMPARISONS
        return Literal(None, call.type, call.span) if nulls else call
    if not (_is_whole(one, left.type) and _is_whole(other, right.type)):
        return call
    assert isinstance(one, int)
    assert isinstance(other, int)
    if call.function in _ARITHMETIC:
        return _whole(call, _ARITHMETIC[call.function](one, other))
    if call.function in _COMPARISONS:
        return Literal(_COMPARISONS[call.function](one, other), BOOL, call.span)
    return call


def _is_whole(value: Scalar, data_type: DataType) -> bool:
    return isinstance(value, int) and data_type.kind in ("int64", "timestamp", "interval")


def _whole(call: Call, value: int) -> Expression:
    fits = _INT64_MIN <= value <= _INT64_MAX
    return Literal(value, call.type, call.span) if fits else call
