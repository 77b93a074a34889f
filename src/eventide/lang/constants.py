"""Constants as all languages write them: numbers, times, the sizes of decimals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, DecimalException

from eventide.errors import BindError, Span
from eventide.plan.expressions import Literal
from eventide.plan.times import parse_timestamp
from eventide.plan.types import MAX_PRECISION
from eventide.schema import FLOAT64, INT64, TIMESTAMP, DataType

_INT64_MAX = 2**63 - 1
_DEFAULT_DECIMAL = DataType("decimal", 18, 3)


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


def timestamp(text: str, span: Span | None, *, or_null: bool = False) -> Literal:
    """Return TIMESTAMP '…' as a constant."""
    us = parse_timestamp(text)
    if us is None and not or_null:
        message = f"{text!r} is not a timestamp"
        raise BindError(message, span=span, hint="write it as '2026-01-31 12:00:00'")
    return Literal(us, TIMESTAMP, span)


def decimal_type(given: Sequence[str], span: Span | None) -> DataType:
    """Return a decimal type by its precision and scale, either of which may be missing."""
    if not all(map(str.isdecimal, given)):
        message = f"decimal({','.join(given)}) is not a decimal type"
        raise BindError(message, span=span, hint="write it as decimal(10,2)")
    sizes = [int(each) for each in given]
    if not sizes:
        return _DEFAULT_DECIMAL
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        message = f"decimal({precision},{scale}) is not a decimal type"
        hint = "precision is 1 to 38, scale 0 to the precision"
        raise BindError(message, span=span, hint=hint)
    return DataType("decimal", precision, scale)
