"""Arithmetic and mathematics. Integers and decimals are exact or an error, floats are IEEE."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.operators.expressions.datum import (
    Datum,
    Implementation,
    as_array,
    is_float,
    length_of,
    per_parameter,
)
from eventide.schema import DataType

_HALF_AWAY = "half_towards_infinity"


def arithmetic(plain: Callable[..., Datum], checked: Callable[..., Datum]) -> Implementation:
    """Return an operation that fails on overflow, except on floats, which have infinity."""

    def apply(arguments: Sequence[Datum], result: DataType) -> Datum:
        if result.kind == "float64":
            return plain(*arguments)
        if result.kind == "decimal":
            return _wide(checked, arguments, result)
        return checked(*arguments)

    return apply


def _wide(checked: Callable[..., Datum], arguments: Sequence[Datum], result: DataType) -> Datum:
    """Compute in 256 bits: Arrow would refuse results whose type exceeds 38 digits."""
    widened = [pc.cast(each, _as_256(each.type, len(arguments))) for each in arguments]
    return pc.cast(checked(*widened), result.arrow)


def _as_256(arrow: pa.DataType, operands: int) -> pa.DataType:
    # Two operands of 38 digits would have a product type of 77 digits, one too many.
    most = 37 if operands == 2 else 38
    return pa.decimal256(min(arrow.precision, most), arrow.scale)


def zero_to_null(divisor: Datum) -> Datum:
    """Return the divisor with null for zero: division by zero is null in SQL."""
    exact = pa.types.is_decimal(divisor.type)
    zero = pa.scalar(Decimal(0) if exact else 0, divisor.type)
    return pc.if_else(pc.equal(divisor, zero), pa.scalar(None, divisor.type), divisor)


def divide(arguments: Sequence[Datum], _: DataType) -> Datum:
    """True division; null where the divisor is zero."""
    dividend, divisor = arguments
    return pc.divide(dividend, zero_to_null(divisor))


def remainder(arguments: Sequence[Datum], result: DataType) -> Datum:
    """What division leaves, with the sign of the dividend; null where the divisor is zero."""
    dividend, divisor = arguments[0], zero_to_null(arguments[1])
    if result.kind == "decimal":
        return _decimal_remainder(dividend, divisor, length_of(arguments), result)
    if result.kind == "float64":
        return _float_remainder(dividend, divisor, length_of(arguments))
    # The least integer divided by -1 overflows although its remainder is 0.
    safe = pc.if_else(pc.equal(divisor, -1), pa.scalar(1, pa.int64()), divisor)
    return pc.subtract(dividend, pc.multiply(pc.divide(dividend, safe), safe))


def _float_remainder(dividend: Datum, divisor: Datum, rows: int) -> pa.Array:
    left, right = (as_array(each, rows) for each in (dividend, divisor))
    missing = pc.or_(pc.is_null(left), pc.is_null(right)).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        found = np.fmod(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False))
    return pa.array(found, mask=missing)


def _decimal_remainder(dividend: Datum, divisor: Datum, rows: int, result: DataType) -> pa.Array:
    # Arrow has no remainder of decimals, and its quotient of them is rounded.
    def one(left: Decimal | None, right: Decimal | None) -> Decimal | None:
        return None if left is None or right is None else left % right

    columns = (as_array(each, rows).to_pylist() for each in (dividend, divisor))
    return pa.array(list(map(one, *columns)), result.arrow)


def negate(arguments: Sequence[Datum], _: DataType) -> Datum:
    """The opposite number."""
    return pc.negate_checked(*arguments)


def sign(arguments: Sequence[Datum], _: DataType) -> Datum:
    """-1, 0 or 1; NaN has none and gives 0."""
    (value,) = arguments
    found = pc.sign(value)
    if is_float(value):
        found = pc.if_else(pc.is_nan(found), 0.0, found)
    return pc.cast(found, pa.int64())


def round_half_away(arguments: Sequence[Datum], result: DataType) -> Datum:
    """Round to a number of digits after the point, halves away from zero."""
    value = arguments[0]
    if len(arguments) == 1:
        return pc.cast(round_exactly(value, 0), result.arrow)

    def kernel(column: pa.Array, digits: int) -> pa.Array:
        if _keeps_all(result, digits):
            return pc.cast(column, result.arrow)
        return pc.cast(round_exactly(column, digits), result.arrow)

    column = as_array(value, length_of(arguments))
    return per_parameter(kernel, column, arguments[1:], result.arrow)


def round_exactly(value: Datum, digits: int) -> Datum:
    """Round halves away from zero; decimals get a digit more if rounding needs it."""
    return pc.round(widen(value), ndigits=digits, round_mode=_HALF_AWAY)


def widen(value: Datum) -> Datum:
    """Return decimals with room to grow: if 9.9 has no room for 10, Arrow rounds it to 0."""
    if not pa.types.is_decimal(value.type):
        return value
    return pc.cast(value, pa.decimal256(76, value.type.scale))


def _keeps_all(number: DataType, digits: int) -> bool:
    """Whether rounding to that many digits changes nothing; Arrow refuses some of these."""
    limits = {"int64": 0, "decimal": number.scale, "float64": 300}
    return digits >= limits[number.kind]


def whole(round_: Callable[[Datum], Datum]) -> Implementation:
    """Return FLOOR or CEIL."""

    def apply(arguments: Sequence[Datum], result: DataType) -> Datum:
        return pc.cast(round_(widen(arguments[0])), result.arrow)

    return apply


def _mathematics(function: Callable[..., Datum]) -> Implementation:
    return lambda arguments, _: function(*arguments)


def cube_root(value: Datum) -> Datum:
    """The cube root."""
    return _by_numpy(np.cbrt, value)


def _by_numpy(function: Callable[..., object], value: Datum) -> pa.Array:
    column = as_array(value, 1)
    missing = pc.is_null(column).to_numpy(zero_copy_only=False)
    return pa.array(function(column.to_numpy(zero_copy_only=False)), mask=missing)


NUMBERS: Mapping[str, Implementation] = {
    "+": arithmetic(pc.add, pc.add_checked),
    "-": arithmetic(pc.subtract, pc.subtract_checked),
    "*": arithmetic(pc.multiply, pc.multiply_checked),
    "/": divide,
    "%": remainder,
    "negate": negate,
    "abs": lambda arguments, _: pc.abs_checked(*arguments),
    "sign": sign,
    "round": round_half_away,
    "floor": whole(pc.floor),
    "ceil": whole(pc.ceil),
    "sqrt": _mathematics(pc.sqrt),
    "cbrt": _mathematics(cube_root),
    "exp": _mathematics(pc.exp),
    "ln": _mathematics(pc.ln),
    "log10": _mathematics(pc.log10),
    "log2": _mathematics(pc.log2),
    "sin": _mathematics(pc.sin),
    "cos": _mathematics(pc.cos),
    "tan": _mathematics(pc.tan),
    "asin": _mathematics(pc.asin),
    "acos": _mathematics(pc.acos),
    "atan": _mathematics(pc.atan),
    "degrees": _mathematics(lambda value: pc.multiply(value, 180.0 / math.pi)),
    "radians": _mathematics(lambda value: pc.multiply(value, math.pi / 180.0)),
    "isnan": _mathematics(pc.is_nan),
    "power": _mathematics(pc.power),
    "atan2": _mathematics(pc.atan2),
    "pi": lambda *_: pa.scalar(math.pi),
}
