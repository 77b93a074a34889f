"""Conditions on one attribute: the values between two bounds.

The order is that of the comparison operators: a NaN is larger than every number and equal to
itself, -0.0 equals 0.0, strings and bytes compare byte by byte, and null is in no range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_numpy, to_scalar
from eventide.errors import SchemaError
from eventide.kernels.compiled import Bools
from eventide.schema import MAX_TS_US, MIN_TS_US, DataType, Kind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values from `low` to `high`; None leaves an end open.

    >>> ValueRange(2, 5, includes_high=False).mask(pa.array([1, 2, None, 5])).tolist()
    [False, True, False, False]
    """

    low: object = None
    high: object = None
    includes_low: bool = True
    includes_high: bool = True

    @classmethod
    def of(cls, wanted: object) -> ValueRange:
        """Read a condition as callers write it: one value, or the pair of its closed ends.

        >>> ValueRange.of((None, 3)) == ValueRange(high=3)
        True
        """
        if isinstance(wanted, ValueRange):
            return wanted
        if isinstance(wanted, tuple) and len(wanted) == 2:
            return cls(*wanted)
        if wanted is None or isinstance(wanted, tuple):
            message = f"{wanted!r} is not a condition on an attribute"
            raise SchemaError(message, hint="give a value, or a pair (low, high)")
        return cls(wanted, wanted)

    @property
    def is_equality(self) -> bool:
        """Whether a single value qualifies."""
        closed = self.includes_low and self.includes_high
        return closed and self.low is not None and same(self.low, self.high)

    @property
    def is_empty(self) -> bool:
        """Whether no value is between the bounds."""
        if self.low is None or self.high is None:
            return False
        if same(self.low, self.high):
            return not (self.includes_low and self.includes_high)
        return precedes(self.high, self.low)

    def intersect(self, other: ValueRange) -> ValueRange:
        """Return the values that are in both; bounds are of one type.

        >>> ValueRange(low=1).intersect(ValueRange(5, 5)) == ValueRange(5, 5)
        True
        """
        low = tighter((self.low, self.includes_low), (other.low, other.includes_low), lower=True)
        high = tighter(
            (self.high, self.includes_high), (other.high, other.includes_high), lower=False
        )
        return ValueRange(low[0], high[0], low[1], high[1])

    def mask(self, column: pa.Array) -> Bools:
        """Return which rows of a column qualify; a null never does."""
        wanted = checked(self, type_of(column))
        return wanted.above_low(column) & wanted.below_high(column)

    def may_hold(self, minima: pa.Array, maxima: pa.Array) -> Bools:
        """Return which index entries could have a value that qualifies.

        An entry whose minimum is null has no values.
        """
        wanted = checked(self, type_of(minima))
        if wanted.is_empty:
            return np.zeros(len(minima), np.bool_)
        return wanted.above_low(maxima) & wanted.below_high(minima)

    def above_low(self, column: pa.Array) -> Bools:
        """Return which values are on the right side of the lower bound."""
        if self.low is None:
            return true_values(column.is_valid())
        if not is_nan(self.low):
            compare = pc.greater_equal if self.includes_low else pc.greater
            above = true_values(compare(column, to_scalar(self.low, column.type)))
            return above | nans(column)
        return nans(column) if self.includes_low else np.zeros(len(column), np.bool_)

    def below_high(self, column: pa.Array) -> Bools:
        """Return which values are on the right side of the upper bound."""
        if self.high is None or (is_nan(self.high) and self.includes_high):
            return true_values(column.is_valid())
        if is_nan(self.high):
            return true_values(column.is_valid()) & ~nans(column)
        compare = pc.less_equal if self.includes_high else pc.less
        return true_values(compare(column, pa.scalar(self.high, column.type)))


def checked(wanted: ValueRange, data_type: DataType) -> ValueRange:
    """Return the range with its bounds as the store keeps values of a type, times as microseconds.

    Raises `SchemaError` if a bound is no value of the type.
    """
    bounds = [
        None if bound is None else as_stored(bound, data_type)
        for bound in (wanted.low, wanted.high)
    ]
    return replace(wanted, low=bounds[0], high=bounds[1])


def as_stored(bound: object, data_type: DataType) -> object:
    """Return a bound as a value of a type, or raise `SchemaError`."""
    reader = READERS.get(data_type.kind)
    value = None if reader is None else reader(bound, data_type)
    if value is None:
        message = f"{bound!r} is not a value of type {data_type}"
        raise SchemaError(message, hint=HINTS.get(data_type.kind, "this type cannot be compared"))
    return value


def read_bool(bound: object, _: DataType) -> object:
    """Return a truth value, or None."""
    return bool(bound) if isinstance(bound, bool | np.bool_) else None


def read_int(bound: object, _: DataType) -> object:
    """Return a number that fits 64 bits, or None."""
    number = whole(bound)
    return number if number is not None and -(2**63) <= number < 2**63 else None


def read_float(bound: object, _: DataType) -> object:
    """Return a number as a double, or None."""
    if isinstance(bound, bool | np.bool_) or not isinstance(
        bound, int | float | Decimal | np.integer | np.floating
    ):
        return None
    try:
        # Adding zero makes the two zeros one.
        number = float(bound) + 0.0
    except (OverflowError, ValueError):
        return None
    return None if math.isinf(number) and bound != number else number


def read_string(bound: object, _: DataType) -> object:
    """Return text, or None."""
    if not isinstance(bound, str):
        return None
    try:
        bound.encode()
    except UnicodeEncodeError:
        return None
    return str(bound)


def read_binary(bound: object, _: DataType) -> object:
    """Return bytes, or None."""
    return bytes(bound) if isinstance(bound, bytes | bytearray | memoryview) else None


def read_timestamp(bound: object, _: DataType) -> object:
    """Return microseconds since 1970, or None. A time without a zone is in UTC, as in ingest."""
    if isinstance(bound, datetime):
        aware = bound if bound.tzinfo is not None else bound.replace(tzinfo=UTC)
        return (aware - EPOCH) // MICROSECOND
    number = whole(bound)
    return number if number is not None and MIN_TS_US <= number <= MAX_TS_US else None


def read_decimal(bound: object, data_type: DataType) -> object:
    """Return a decimal with the scale of the type, or None where digits would be lost."""
    number = bound if isinstance(bound, Decimal) else whole(bound)
    if number is None:
        return None
    sign, digits, exponent = Decimal(number).as_tuple()
    if not isinstance(exponent, int):
        return None
    # By hand: the context of Decimal rounds to 28 digits, and raises when it cannot.
    unscaled, shift = int("".join(map(str, digits))), exponent + data_type.scale
    if unscaled == 0:
        return Decimal((0, (0,), -data_type.scale))
    if shift > data_type.precision:
        return None
    kept, lost = unscaled * 10 ** max(shift, 0), 0
    if shift < 0:
        kept, lost = divmod(unscaled, 10 ** min(-shift, len(digits)))
    if lost or kept >= 10**data_type.precision:
        return None
    return Decimal((sign, tuple(map(int, str(kept))), -data_type.scale))


def whole(bound: object) -> int | None:
    """Return a bound as an integer where that loses nothing."""
    if isinstance(bound, bool | np.bool_):
        return None
    if isinstance(bound, int | np.integer):
        return int(bound)
    if isinstance(bound, float) and abs(bound) < 2**63 and bound == int(bound):
        return int(bound)
    if isinstance(bound, Decimal) and bound.is_finite() and bound.adjusted() < 19:
        return int(bound) if bound == int(bound) else None
    return None


READERS: dict[Kind, Callable[[object, DataType], object]] = {
    "bool": read_bool,
    "int64": read_int,
    "float64": read_float,
    "string": read_string,
    "timestamp": read_timestamp,
    "decimal": read_decimal,
    "binary": read_binary,
}
HINTS: dict[Kind, str] = {
    "bool": "True or False",
    "int64": "a whole number of 64 bits",
    "float64": "a number",
    "string": "text that can be written as UTF-8",
    "timestamp": "a datetime, or microseconds since 1970-01-01 UTC",
    "decimal": "a Decimal or whole number with no more digits than the type has",
    "binary": "bytes",
}


def type_of(column: pa.Array) -> DataType:
    """Return the type of a stored column."""
    data_type = DataType.from_arrow(column.type)
    if data_type is None:
        message = f"no attribute has type {column.type}"
        raise SchemaError(message)
    return data_type


def tighter(
    one: tuple[object, bool], other: tuple[object, bool], *, lower: bool
) -> tuple[object, bool]:
    """Return which of two bounds, each with whether it is included, leaves fewer values."""
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    if same(one[0], other[0]):
        return one[0], one[1] and other[1]
    return other if precedes(one[0], other[0]) == lower else one


def same(one: object, other: object) -> bool:
    """Whether two bounds are equal; a NaN equals itself."""
    return bool(one == other) or (is_nan(one) and is_nan(other))


def precedes(one: object, other: object) -> bool:
    """Whether a bound is smaller than another of its type; a NaN is the largest."""
    if is_nan(one) or is_nan(other):
        return not is_nan(one)
    return bool(one < other)  # type: ignore[operator]  # a type's own values compare


def is_nan(bound: object) -> bool:
    """Whether a bound is the float that is not a number."""
    return isinstance(bound, float) and math.isnan(bound)


def nans(column: pa.Array) -> Bools:
    """Return which values of a column are NaN."""
    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), np.bool_)
    return true_values(pc.is_nan(column))


def true_values(column: pa.Array) -> Bools:
    """Return which values of a boolean column are true."""
    filled = column if column.null_count == 0 else pc.fill_null(column, False)
    bits: Bools = to_numpy(filled)
    return bits
