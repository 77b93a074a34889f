"""Three-valued logic one row at a time, straight from its truth tables. None is null."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from eventide.plan.expressions import Call, Column, Expression, Literal

Row = Mapping[str, Any]


def value_of(expression: Expression, row: Row) -> Any:  # noqa: ANN401
    """Return the value of an expression for one row."""
    match expression:
        case Column(name=name):
            return row[name]
        case Literal(value=value):
            return value
        case Call(function="case", arguments=arguments):
            *branches, otherwise = arguments
            for condition, chosen in zip(branches[::2], branches[1::2], strict=True):
                if value_of(condition, row) is True:
                    return value_of(chosen, row)
            return value_of(otherwise, row)
        case Call(function=name, arguments=arguments):
            return FUNCTIONS[name](*(value_of(argument, row) for argument in arguments))
    raise AssertionError(expression)


def order(value: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """A key under which NaN equals itself and is greater than every number."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)


def compare(decide: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def apply(left: Any, right: Any) -> bool | None:  # noqa: ANN401
        return None if left is None or right is None else decide(order(left), order(right))

    return apply


def and_(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def or_(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def distinct(left: Any, right: Any) -> bool:  # noqa: ANN401
    if left is None or right is None:
        return left is not right
    return order(left) != order(right)


def in_(value: Any, *others: Any) -> bool | None:  # noqa: ANN401
    found: bool | None = False
    for other in others:
        found = or_(found, equal(value, other))
    return found


equal = compare(lambda left, right: bool(left == right))

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": and_,
    "or": or_,
    "not": lambda value: None if value is None else not value,
    "=": equal,
    "<>": compare(lambda left, right: bool(left != right)),
    "<": compare(lambda left, right: bool(left < right)),
    "<=": compare(lambda left, right: bool(left <= right)),
    ">": compare(lambda left, right: bool(left > right)),
    ">=": compare(lambda left, right: bool(left >= right)),
    "is distinct from": distinct,
    "is not distinct from": lambda left, right: not distinct(left, right),
    "is null": lambda value: value is None,
    "in": in_,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "nullif": lambda value, other: None if equal(value, other) else value,
}
