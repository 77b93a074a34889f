"""Cast constants while planning: only the casts whose result needs no engine."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from eventide.plan.expressions import Literal, Scalar
from eventide.plan.times import parse_timestamp
from eventide.plan.types import MAX_PRECISION
from eventide.schema import DataType

_EXACT = Context(prec=2 * MAX_PRECISION)


def cast_constant(literal: Literal, target: DataType) -> Literal | None:
    """Return the constant as another type, or None if that is left to the engine.

    >>> from eventide.schema import FLOAT64, INT64
    >>> cast_constant(Literal(3, INT64), FLOAT64).value
    3.0
    """
    if literal.value is None or literal.type == target:
        return Literal(literal.value, target, literal.span)
    value = _cast(literal.value, literal.type, target)
    return None if value is None else Literal(value, target, literal.span)


def _cast(value: Scalar, source: DataType, target: DataType) -> Scalar:
    match source.kind, target.kind:
        case "int64" | "decimal", "float64":
            assert isinstance(value, int | Decimal)
            return float(value)
        case "int64" | "decimal", "decimal":
            assert isinstance(value, int | Decimal)
            return exact_decimal(Decimal(value), target)
        case "string", "timestamp":
            return parse_timestamp(str(value))
    return None


def exact_decimal(value: Decimal, target: DataType) -> Decimal | None:
    """Return the value rounded to the target's scale, or None if it has too many digits."""
    try:
        rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        return None
    fits = abs(rounded) < Decimal(10) ** (target.precision - target.scale)
    return rounded if fits else None
