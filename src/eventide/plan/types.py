"""How types mix: which type holds two others, and which casts exist."""

from __future__ import annotations

from collections.abc import Iterable

from eventide.schema import FLOAT64, NULL, DataType, Kind

MAX_PRECISION = 38
# An int64 has at most 19 digits.
INT64_AS_DECIMAL = DataType("decimal", 19, 0)

_FROM_STRING: tuple[Kind, ...] = ("bool", "int64", "float64", "decimal", "timestamp", "binary")
_NUMBERS: tuple[Kind, ...] = ("bool", "int64", "float64", "decimal", "string")
CASTS: dict[Kind, tuple[Kind, ...]] = {
    "bool": _NUMBERS,
    "int64": _NUMBERS,
    "float64": _NUMBERS,
    "decimal": _NUMBERS,
    "string": _FROM_STRING,
    "timestamp": ("string",),
    "binary": ("string",),
    "interval": (),
    "null": (),
    "list": (),
}
"""The kinds each kind can be cast to, beside itself. A null can be cast to anything."""


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether CAST exists from one type to another."""
    if "list" in (source.kind, target.kind):
        return source == target or source.kind == "null"
    return source.kind in (target.kind, "null") or target.kind in CASTS[source.kind]


def cast_can_fail(source: DataType, target: DataType) -> bool:
    """Whether some value of one type has no counterpart in another."""
    if source == target or source.kind == "null" or target.kind in ("string", "bool"):
        return source.kind == "string" and target.kind == "bool"
    if target.kind == "float64":
        return source.kind == "string"
    return (source.kind, target.kind) not in (("bool", "int64"), ("bool", "decimal"))


def as_decimal(data_type: DataType) -> DataType:
    """Return the decimal type that holds every value of an integer or decimal type."""
    return INT64_AS_DECIMAL if data_type.kind == "int64" else data_type


def decimal_of(digits_before: int, scale: int) -> DataType:
    """Return a decimal type, its precision cut to what fits in 128 bits."""
    return DataType("decimal", max(1, min(MAX_PRECISION, digits_before + scale)), scale)


def common_pair(left: DataType, right: DataType) -> DataType | None:
    """Return the type that holds the values of both, or None.

    >>> from eventide.schema import INT64
    >>> str(common_pair(INT64, DataType("decimal", 10, 2)))
    'decimal(21,2)'
    """
    if left == right or right.kind == "null":
        return left
    if left.kind == "null":
        return right
    if not (left.is_numeric and right.is_numeric):
        return None
    if "float64" in (left.kind, right.kind):
        return FLOAT64
    one, other = as_decimal(left), as_decimal(right)
    before = max(one.precision - one.scale, other.precision - other.scale)
    return decimal_of(before, max(one.scale, other.scale))


def common_type(types: Iterable[DataType]) -> DataType | None:
    """Return the type that holds the values of all, or None."""
    common: DataType | None = NULL
    for each in types:
        common = None if common is None else common_pair(common, each)
    return common
