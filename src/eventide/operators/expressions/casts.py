"""CAST and TRY_CAST, as DuckDB does them.

Every cast is computed as one that gives null where a value cannot be cast. CAST then looks for such
nulls and raises an error with the first value; TRY_CAST leaves them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import EvaluationError
from eventide.operators.expressions.datum import map_distinct
from eventide.operators.expressions.numbers import round_exactly
from eventide.plan.constants import exact_decimal
from eventide.plan.times import parse_timestamp
from eventide.schema import BINARY, DataType

_INT64_LIMIT = 2**63
_INT64_MAX = _INT64_LIMIT - 1
_EXACT = Context(prec=76)
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TRUE = ("true", "t", "yes", "y", "1", "on")
_FALSE = ("false", "f", "no", "n", "0", "off")
_BYTE = re.compile(r"\\x([0-9a-fA-F]{2})")


def cast_column(column: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return a column as another type; `EvaluationError` names the first value that fails."""
    found = cast_or_null(column, source, target)
    if found.null_count > column.null_count:
        lost = pc.and_(pc.is_valid(column), pc.is_null(found))
        value = column.filter(lost)[0].as_py()
        shown = repr(value) if isinstance(value, str) else str(value)
        message = f"cannot cast {shown} to {target}"
        raise EvaluationError(message, hint="TRY_CAST gives NULL instead")
    return found


def cast_or_null(column: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return a column as another type, with null where a value cannot be cast."""
    if source == target:
        return column
    if source.kind == "null":
        return pa.nulls(len(column), target.arrow)
    if source.kind == "string":
        return _FROM_STRING[target.kind](column, target)
    match target.kind:
        case "string":
            return _to_string(column, source)
        case "bool":
            return pc.not_equal(column, pa.scalar(_zero(source), column.type))
        case "decimal":
            return _to_decimal(column, source, target)
        case "int64":
            return _to_int64(column, source)
    return pc.cast(column, target.arrow, safe=False)


def _to_int64(column: pa.Array, source: DataType) -> pa.Array:
    if source.kind == "decimal":
        wide = round_exactly(column, 0)
        least, most = (pa.scalar(Decimal(each), wide.type) for each in (-_INT64_LIMIT, _INT64_MAX))
        fits = pc.and_(pc.greater_equal(wide, least), pc.less_equal(wide, most))
        return pc.cast(_only(wide, fits), pa.int64())
    if source.kind == "float64":
        whole = pc.round(column, ndigits=0, round_mode="half_to_even")
        limit = float(_INT64_LIMIT)
        fits = pc.and_(pc.less(whole, limit), pc.greater_equal(whole, -limit))
        return pc.cast(_only(whole, fits), pa.int64())
    return pc.cast(column, pa.int64())


def _zero(source: DataType) -> Decimal | int:
    return Decimal(0) if source.kind == "decimal" else 0


def _only(column: pa.Array, keep: pa.Array) -> pa.Array:
    return pc.if_else(keep, column, pa.scalar(None, column.type))


def _to_decimal(column: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if source.kind == "float64":
        return map_distinct(lambda each: _float_as_decimal(each, target), column, target.arrow)
    if source.kind == "bool":
        column = pc.cast(column, pa.int64())
    if source.kind != "decimal":
        column = pc.cast(column, pa.decimal128(19, 0))
    if source.scale > target.scale:
        column = round_exactly(column, target.scale)
    wide = pc.cast(column, pa.decimal256(76, max(source.scale, target.scale)))
    # One step below the first number that is too long: that number may not fit in 76 digits
    # either.
    most = _EXACT.scaleb(
        Decimal("9" * (target.precision - target.scale + wide.type.scale) or "0"), -wide.type.scale
    )
    fits = pc.less_equal(pc.abs(wide), pa.scalar(most, wide.type))
    return pc.cast(_only(wide, fits), target.arrow)


def _float_as_decimal(value: object, target: DataType) -> Decimal | None:
    assert isinstance(value, float)
    number = Decimal(repr(value))
    return exact_decimal(number, target) if number.is_finite() else None


def _to_string(column: pa.Array, source: DataType) -> pa.Array:
    match source.kind:
        case "float64":
            return map_distinct(repr, column, pa.string())
        case "binary":
            return map_distinct(_show_bytes, column, pa.string())
        case "timestamp":
            text = pc.cast(column, pa.string())
            return pc.replace_substring_regex(text, r"\.?0+$|(\.\d*?)0+$", r"\1")
    return pc.cast(column, pa.string())


def _show_bytes(value: object) -> str:
    assert isinstance(value, bytes)
    shown = (chr(byte) if 32 <= byte < 127 and byte not in b"\\'\"" else None for byte in value)
    return "".join(
        f"\\x{byte:02X}" if char is None else char for char, byte in zip(shown, value, strict=True)
    )


def _parsed(parse: Callable[[str, DataType], object]) -> Callable[[pa.Array, DataType], pa.Array]:
    """Return a cast that tries Arrow's own first, and parses value by value where that fails."""

    def cast(column: pa.Array, target: DataType) -> pa.Array:
        trimmed = pc.utf8_trim_whitespace(column)
        try:
            return pc.cast(trimmed, target.arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return map_distinct(lambda text: parse(str(text), target), trimmed, target.arrow)

    return cast


def _parse_bool(text: str, _: DataType) -> bool | None:
    folded = text.lower()
    return folded in _TRUE if folded in _TRUE + _FALSE else None


def _parse_number(text: str) -> Decimal | None:
    return Decimal(text.replace("_", "")) if _NUMBER.fullmatch(text) else None


def _parse_int64(text: str, _: DataType) -> int | None:
    number = _parse_number(text)
    if number is None or number.adjusted() > 19:
        return None
    whole = int(number.to_integral_value(ROUND_HALF_UP))
    return whole if -_INT64_LIMIT <= whole < _INT64_LIMIT else None


def _parse_float(text: str, _: DataType) -> float | None:
    special = re.fullmatch(r"[+-]?(?:nan|inf|infinity)", text, re.IGNORECASE)
    return float(text) if special or _NUMBER.fullmatch(text) else None


def _parse_decimal(text: str, target: DataType) -> Decimal | None:
    number = _parse_number(text)
    return None if number is None else exact_decimal(number, target)


def _parse_timestamp(text: str, _: DataType) -> int | None:
    return parse_timestamp(text)


def _to_binary(column: pa.Array, _: DataType) -> pa.Array:
    def read(text: object) -> bytes:
        parts = _BYTE.split(str(text))
        return b"".join(
            bytes.fromhex(part) if place % 2 else part.encode() for place, part in enumerate(parts)
        )

    return map_distinct(read, column, BINARY.arrow)


_FROM_STRING: dict[str, Callable[[pa.Array, DataType], pa.Array]] = {
    "bool": _parsed(_parse_bool),
    "int64": _parsed(_parse_int64),
    "float64": _parsed(_parse_float),
    "decimal": _parsed(_parse_decimal),
    "timestamp": _parsed(_parse_timestamp),
    "binary": _to_binary,
}
