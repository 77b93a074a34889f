"""Type rules: which arguments a function takes, what they are cast to, and what it returns.

A rule looks at the argument types and returns a `Signature`; `None` means that they do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eventide.plan.types import MAX_PRECISION, as_decimal, can_cast, common_type, decimal_of
from eventide.schema import BOOL, FLOAT64, INT64, INTERVAL, NULL, STRING, TIMESTAMP, DataType

Types = tuple[DataType, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """The types a call casts its arguments to, and the type it returns."""

    arguments: Types
    result: DataType


Rule = Callable[[Types], Signature | None]


def _fits(actual: DataType, wanted: DataType) -> bool:
    """Whether a value of one type is cast to another implicitly."""
    if actual == wanted or actual.kind == "null":
        return True
    return wanted == FLOAT64 and actual.is_numeric


def takes(*wanted: DataType, returns: DataType) -> Rule:
    """Return the rule of a function with fixed argument types; the last ones may be left out."""

    def rule(types: Types) -> Signature | None:
        if not all(map(_fits, types, wanted)):
            return None
        return Signature(wanted[: len(types)], returns)

    return rule


def many(wanted: DataType, returns: DataType) -> Rule:
    """Return the rule of a function of any number of arguments of one type."""

    def rule(types: Types) -> Signature | None:
        fit = all(_fits(each, wanted) for each in types)
        return Signature((wanted,) * len(types), returns) if fit else None

    return rule


def _shared(types: Types) -> DataType | None:
    common = common_type(types)
    # All null: any type will do, and the result is null.
    return INT64 if common == NULL else common


def compare(types: Types) -> Signature | None:
    """Values of one type that can be compared, giving a truth value."""
    common = _shared(types)
    if common is None or common.kind == "list":
        return None
    return Signature((common,) * len(types), BOOL)


def unify(types: Types) -> Signature | None:
    """Values of one type, giving one of them."""
    common = _shared(types)
    return None if common is None else Signature((common,) * len(types), common)


def unify_compared(types: Types) -> Signature | None:
    """Values of one type that can be compared, giving one of them."""
    return None if any(each.kind == "list" for each in types) else unify(types)


def any_value(types: Types) -> Signature | None:
    """One value of any type, giving a truth value."""
    return Signature(types, BOOL)


def choose(types: Types) -> Signature | None:
    """Conditions and values in turn, then the value when no condition holds."""
    conditions, values = types[:-1:2], (*types[1::2], types[-1])
    common = _shared(values)
    if common is None or not all(_fits(each, BOOL) for each in conditions):
        return None
    return Signature((BOOL, common) * len(conditions) + (common,), common)


def texts(types: Types) -> Signature | None:
    """Anything that can be written as text, giving text."""
    if not all(can_cast(each, STRING) for each in types):
        return None
    return Signature((STRING,) * len(types), STRING)


def add(types: Types) -> Signature | None:
    """Numbers, intervals, or a timestamp and an interval."""
    match [each.kind for each in types]:
        case ["timestamp", "interval" | "null"]:
            return Signature((TIMESTAMP, INTERVAL), TIMESTAMP)
        case ["interval" | "null", "timestamp"]:
            return Signature((INTERVAL, TIMESTAMP), TIMESTAMP)
    return _interval_pair(types) or _sum_of_numbers(types)


def subtract(types: Types) -> Signature | None:
    """Numbers, intervals, two timestamps, or an interval from a timestamp."""
    match [each.kind for each in types]:
        case ["timestamp", "interval"]:
            return Signature((TIMESTAMP, INTERVAL), TIMESTAMP)
        case ["timestamp", "timestamp" | "null"] | ["null", "timestamp"]:
            return Signature((TIMESTAMP, TIMESTAMP), INTERVAL)
    return _interval_pair(types) or _sum_of_numbers(types)


def _interval_pair(types: Types) -> Signature | None:
    common = common_type(types)
    return Signature((INTERVAL, INTERVAL), INTERVAL) if common == INTERVAL else None


def _numbers(types: Types) -> DataType | None:
    common = _shared(types)
    return common if common is not None and common.is_numeric else None


def _sum_of_numbers(types: Types) -> Signature | None:
    common = _numbers(types)
    if common is None:
        return None
    if common.kind != "decimal":
        return Signature((common, common), common)
    grown = decimal_of(common.precision - common.scale + 1, common.scale)
    return Signature((common, common), grown)


def multiply(types: Types) -> Signature | None:
    """Numbers, or an interval and an integer."""
    match [each.kind for each in types]:
        case ["interval", "int64" | "null"]:
            return Signature((INTERVAL, INT64), INTERVAL)
        case ["int64" | "null", "interval"]:
            return Signature((INT64, INTERVAL), INTERVAL)
    common = _numbers(types)
    if common is None or common.kind != "decimal":
        return None if common is None else Signature((common, common), common)
    # A null beside a decimal has no precision of its own.
    left, right = (common if each.kind == "null" else as_decimal(each) for each in types)
    scale = left.scale + right.scale
    if scale > MAX_PRECISION:
        return Signature((FLOAT64, FLOAT64), FLOAT64)
    return Signature((left, right), decimal_of(left.precision + right.precision - scale, scale))


def one_kind_of_number(types: Types) -> Signature | None:
    """Numbers, giving a number of the same type."""
    common = _numbers(types)
    return None if common is None else Signature((common,) * len(types), common)


def negation(types: Types) -> Signature | None:
    """A number or an interval."""
    return Signature((INTERVAL,), INTERVAL) if types[0] == INTERVAL else one_kind_of_number(types)


def rounding(types: Types) -> Signature | None:
    """A number and, if wanted, how many digits to keep."""
    number = _numbers(types[:1])
    if number is None or not all(_fits(each, INT64) for each in types[1:]):
        return None
    if number.kind == "decimal" and len(types) == 1:
        return Signature((number,), DataType("decimal", number.precision, 0))
    # 99.95 to one digit is 100.0, which is one digit longer.
    grown = decimal_of(number.precision - number.scale + 1, number.scale)
    return Signature((number, INT64)[: len(types)], grown if number.kind == "decimal" else number)


def whole_number(types: Types) -> Signature | None:
    """A number; a decimal gives a decimal without fraction, the rest a float."""
    number = _numbers(types)
    if number is None or number.kind != "decimal":
        return None if number is None else Signature((FLOAT64,), FLOAT64)
    return Signature((number,), DataType("decimal", number.precision, 0))


def signum(types: Types) -> Signature | None:
    """A number, giving -1, 0 or 1."""
    number = _numbers(types)
    return None if number is None else Signature((number,), INT64)


def time_or_interval(returns: DataType) -> Rule:
    """Return the rule of a function over a timestamp or an interval."""

    def rule(types: Types) -> Signature | None:
        if types[0].kind not in ("timestamp", "interval", "null"):
            return None
        wanted = INTERVAL if types[0] == INTERVAL else TIMESTAMP
        return Signature((wanted,), returns)

    return rule


def milliseconds(types: Types) -> Signature | None:
    """A timestamp or an interval gives milliseconds, milliseconds give a timestamp."""
    if types[0] == INT64:
        return Signature((INT64,), TIMESTAMP)
    return time_or_interval(INT64)(types)
