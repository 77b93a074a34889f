"""Constants and type names: their text in the query → our types and values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, DecimalException

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of, written
from eventide.plan.expressions import Literal
from eventide.plan.times import parse_timestamp
from eventide.plan.types import MAX_PRECISION
from eventide.schema import BINARY, BOOL, FLOAT64, INT64, STRING, TIMESTAMP, DataType

_INT64_MAX = 2**63 - 1
_DEFAULT_DECIMAL = DataType("decimal", 18, 3)

_TYPES: Mapping[exp.DType, DataType] = {
    exp.DType.BOOLEAN: BOOL,
    exp.DType.INT: INT64,
    exp.DType.BIGINT: INT64,
    exp.DType.DOUBLE: FLOAT64,
    exp.DType.FLOAT: FLOAT64,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.CHAR: STRING,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP,
    exp.DType.DATETIME: TIMESTAMP,
    exp.DType.VARBINARY: BINARY,
    exp.DType.BINARY: BINARY,
}


def number(text: str, span: Span | None) -> Literal:
    """Return a number as SQL types it: an integer, an exact decimal, or a float with exponent.

    >>> str(number("1.50", None).type)
    'decimal(3,2)'
    """
    text = text.replace("_", "")
    try:
        if "e" in text.lower():
            return Literal(float(text), FLOAT64, span)
        value = Decimal(text)
    except (DecimalException, ValueError):
        message = f"{text} is not a number"
        raise BindError(message, span=span, hint="write it in decimal digits") from None
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if "." not in text and value <= _INT64_MAX:
        return Literal(int(value), INT64, span)
    precision = max(len(digits), -exponent, 1)
    if precision > MAX_PRECISION:
        return Literal(float(text), FLOAT64, span)
    return Literal(value, DataType("decimal", precision, -exponent), span)


def is_timestamp(node: exp.DataType) -> bool:
    """Whether a type is a time without zone."""
    return _TYPES.get(node.this) == TIMESTAMP


def timestamp(node: exp.Literal, *, or_null: bool = False) -> Literal:
    """Return TIMESTAMP '…' as a constant."""
    us = parse_timestamp(str(node.this))
    if us is None and not or_null:
        message = f"{node.this!r} is not a timestamp"
        raise BindError(message, span=span_of(node), hint="write it as '2026-01-31 12:00:00'")
    return Literal(us, TIMESTAMP, span_of(node))


def data_type(node: exp.DataType, span: Span | None) -> DataType:
    """Return our type for the type of a CAST."""
    if node.this == exp.DType.DECIMAL:
        return _decimal(node, span)
    found = _TYPES.get(node.this)
    if found is None or node.expressions:
        what = f"the type {written(node)} is beyond Eventide's own operators"
        hint = "use boolean, bigint, double, varchar, timestamp, decimal(p,s) or blob"
        refuse(what, node, hint, span=span)
    return found


def _decimal(node: exp.DataType, span: Span | None) -> DataType:
    names = [each.name for each in node.expressions]
    if not all(map(str.isdecimal, names)):
        message = f"decimal({','.join(names)}) is not a decimal type"
        raise BindError(message, span=span_of(node) or span, hint="write it as decimal(10,2)")
    sizes = [int(name) for name in names]
    if not sizes:
        return _DEFAULT_DECIMAL
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        message = f"decimal({precision},{scale}) is not a decimal type"
        hint = "precision is 1 to 38, scale 0 to the precision"
        raise BindError(message, span=span_of(node) or span, hint=hint)
    return DataType("decimal", precision, scale)
