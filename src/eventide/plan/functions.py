"""The functions and operators an expression may call: arity, type rule, and how they print.

A type rule looks at the argument types and returns a `Signature`: the types the arguments are
cast to, and the type of the result. `None` means that the types do not fit.
operators/evaluate.py holds an implementation for every name here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from eventide.plan.types import MAX_PRECISION, as_decimal, can_cast, common_type, decimal_of
from eventide.schema import (
    BOOL,
    FLOAT64,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
)

Types = tuple[DataType, ...]
Form = Literal["call", "infix", "prefix", "postfix", "in", "case"]


@dataclass(frozen=True, slots=True)
class Signature:
    """The types a call casts its arguments to, and the type it returns."""

    arguments: Types
    result: DataType


Rule = Callable[[Types], Signature | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A function or operator.

    `takes` completes the sentence "… takes …" in an error. `precedence` orders the infix forms,
    loosest first. `options` are the words its first argument may be. `reads_times` says that a
    string literal beside a timestamp means a timestamp. `can_fail` says that some values of the
    right type have no answer, as when integers overflow.
    """

    name: str
    takes: str
    rule: Rule
    at_least: int = 1
    at_most: int | None = 1
    form: Form = "call"
    precedence: int = 10
    options: tuple[str, ...] = ()
    reads_times: bool = False
    can_fail: bool = False


DATE_PARTS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dow",
    "isodow",
    "doy",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)
TRUNCATIONS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)


def _fits(actual: DataType, wanted: DataType) -> bool:
    """Whether a value of one type becomes another without being asked."""
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
    # Only nulls: any type will do, and the result is null.
    return INT64 if common == NULL else common


def compare(types: Types) -> Signature | None:
    """Values of one type, giving a truth value."""
    common = _shared(types)
    return None if common is None else Signature((common,) * len(types), BOOL)


def unify(types: Types) -> Signature | None:
    """Values of one type, giving one of them."""
    common = _shared(types)
    return None if common is None else Signature((common,) * len(types), common)


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
    return Signature((number, INT64)[: len(types)], number)


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


_VALUES = "values of one type"
_TEXT = "a string"
_TEXTS = "strings"
_NUMBER = "a number"
_NUMBERS = "numbers"

_OPERATORS = (
    Function("or", "conditions", many(BOOL, BOOL), 2, 2, "infix", 1),
    Function("and", "conditions", many(BOOL, BOOL), 2, 2, "infix", 2),
    Function("not", "a condition", takes(BOOL, returns=BOOL), form="prefix", precedence=3),
    *(
        Function(name, f"two {_VALUES}", compare, 2, 2, "infix", 4, reads_times=True)
        for name in (
            "=",
            "<>",
            "<",
            "<=",
            ">",
            ">=",
            "is distinct from",
            "is not distinct from",
        )
    ),
    Function("is null", "anything", any_value, form="postfix", precedence=4),
    Function("in", _VALUES, compare, 2, None, "in", 4, reads_times=True),
    Function("like", _TEXTS, many(STRING, BOOL), 2, 3, "infix", 4),
    Function("ilike", _TEXTS, many(STRING, BOOL), 2, 3, "infix", 4),
    Function("||", "values that can be written as text", texts, 2, 2, "infix", 5),
    Function(
        "+",
        "two numbers, two intervals, or a timestamp and an interval",
        add,
        2,
        2,
        "infix",
        6,
        can_fail=True,
    ),
    Function(
        "-",
        "two numbers, timestamps or intervals, or a timestamp and an interval",
        subtract,
        2,
        2,
        "infix",
        6,
        reads_times=True,
        can_fail=True,
    ),
    Function(
        "*", "two numbers, or an interval and an int64", multiply, 2, 2, "infix", 7, can_fail=True
    ),
    Function("/", _NUMBERS, takes(FLOAT64, FLOAT64, returns=FLOAT64), 2, 2, "infix", 7),
    Function("%", _NUMBERS, one_kind_of_number, 2, 2, "infix", 7),
    Function(
        "negate",
        "a number or an interval",
        negation,
        form="prefix",
        precedence=8,
        can_fail=True,
    ),
)

_CONDITIONALS = (
    Function("case", f"conditions, and {_VALUES}", choose, 3, None, "case"),
    Function("coalesce", _VALUES, unify, 1, None, reads_times=True),
    Function("nullif", f"two {_VALUES}", unify, 2, 2, reads_times=True),
    Function("greatest", _VALUES, unify, 1, None, reads_times=True),
    Function("least", _VALUES, unify, 1, None, reads_times=True),
)

_STRINGS = (
    Function("concat", "values that can be written as text", texts, 1, None),
    *(
        Function(name, _TEXT, takes(STRING, returns=STRING))
        for name in ("lower", "upper", "reverse")
    ),
    Function("length", _TEXT, takes(STRING, returns=INT64)),
    *(
        Function(name, _TEXTS, many(STRING, STRING), 1, 2)
        for name in ("trim", "ltrim", "rtrim")
    ),
    Function(
        "substring",
        "a string, where to start and how many characters",
        takes(STRING, INT64, INT64, returns=STRING),
        2,
        3,
    ),
    *(
        Function(name, "a string and how many characters", takes(STRING, INT64, returns=STRING), 2, 2)
        for name in ("left", "right")
    ),
    Function("replace", _TEXTS, many(STRING, STRING), 3, 3),
    *(
        Function(name, _TEXTS, many(STRING, BOOL), 2, 2)
        for name in ("starts_with", "ends_with", "contains")
    ),
    Function("regexp_matches", _TEXTS, many(STRING, BOOL), 2, 2, can_fail=True),
)

_MATHEMATICS = (
    Function("abs", _NUMBER, one_kind_of_number, can_fail=True),
    Function("sign", _NUMBER, signum),
    Function("round", "a number and how many digits to keep", rounding, 1, 2, can_fail=True),
    Function("floor", _NUMBER, whole_number, can_fail=True),
    Function("ceil", _NUMBER, whole_number, can_fail=True),
    *(
        Function(name, _NUMBER, takes(FLOAT64, returns=FLOAT64))
        for name in (
            *("sqrt", "cbrt", "exp", "ln", "log10", "log2"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians"),
        )
    ),
    Function("isnan", _NUMBER, takes(FLOAT64, returns=BOOL)),
    *(
        Function(name, "two numbers", takes(FLOAT64, FLOAT64, returns=FLOAT64), 2, 2)
        for name in ("power", "atan2")
    ),
    Function("pi", "nothing", takes(returns=FLOAT64), 0, 0),
)

_TIMES = (
    Function(
        "extract",
        "a part of the calendar and a timestamp",
        takes(STRING, TIMESTAMP, returns=INT64),
        2,
        2,
        options=DATE_PARTS,
    ),
    Function(
        "date_trunc",
        "a part of the calendar and a timestamp",
        takes(STRING, TIMESTAMP, returns=TIMESTAMP),
        2,
        2,
        options=TRUNCATIONS,
    ),
    Function("epoch", "a timestamp or an interval", time_or_interval(FLOAT64)),
    Function("epoch_us", "a timestamp or an interval", time_or_interval(INT64)),
    Function("epoch_ms", "a timestamp, an interval, or milliseconds since 1970", milliseconds),
    Function("make_timestamp", "microseconds since 1970", takes(INT64, returns=TIMESTAMP)),
)

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (*_OPERATORS, *_CONDITIONALS, *_STRINGS, *_MATHEMATICS, *_TIMES)
}
