"""The functions and operators an expression may call: arity, type rule, and how they print.

signatures.py holds the type rules, operators/expressions an implementation for every name here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eventide.plan.signatures import (
    Rule,
    add,
    any_value,
    choose,
    compare,
    many,
    milliseconds,
    multiply,
    negation,
    one_kind_of_number,
    rounding,
    signum,
    subtract,
    takes,
    texts,
    time_or_interval,
    unify,
    unify_compared,
    whole_number,
)
from eventide.schema import BOOL, FLOAT64, INT64, STRING, TIMESTAMP

Form = Literal["call", "infix", "prefix", "postfix", "in", "case"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function or operator.

    `takes` completes the sentence "… takes …" in an error. `precedence` orders the infix forms,
    loosest first. `options` are the words that its first argument may be. `reads_times` means that
    a string literal beside a timestamp is read as a timestamp. `can_fail` means that some values of
    the right type have no result, as when integers overflow.
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
    Function("nullif", f"two {_VALUES}", unify_compared, 2, 2, reads_times=True),
    Function("greatest", _VALUES, unify_compared, 1, None, reads_times=True),
    Function("least", _VALUES, unify_compared, 1, None, reads_times=True),
)

_STRINGS = (
    Function("concat", "values that can be written as text", texts, 1, None),
    *(
        Function(name, _TEXT, takes(STRING, returns=STRING))
        for name in ("lower", "upper", "reverse")
    ),
    Function("length", _TEXT, takes(STRING, returns=INT64)),
    *(Function(name, _TEXTS, many(STRING, STRING), 1, 2) for name in ("trim", "ltrim", "rtrim")),
    Function(
        "substring",
        "a string, where to start and how many characters",
        takes(STRING, INT64, INT64, returns=STRING),
        2,
        3,
    ),
    *(
        Function(
            name, "a string and how many characters", takes(STRING, INT64, returns=STRING), 2, 2
        )
        for name in ("left", "right")
    ),
    Function("replace", _TEXTS, many(STRING, STRING), 3, 3),
    *(
        Function(name, _TEXTS, many(STRING, BOOL), 2, 2)
        for name in ("starts_with", "ends_with", "contains")
    ),
    Function("regexp_matches", _TEXTS, many(STRING, BOOL), 2, 2, can_fail=True),
    Function(
        "regexp_extract",
        "a string, a regular expression and the number of a group",
        takes(STRING, STRING, INT64, returns=STRING),
        2,
        3,
        can_fail=True,
    ),
    Function(
        "split_part",
        "a string, what separates its parts, and the number of a part",
        takes(STRING, STRING, INT64, returns=STRING),
        3,
        3,
    ),
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
    Function(
        "strftime", "a timestamp and a format", takes(TIMESTAMP, STRING, returns=STRING), 2, 2
    ),
    Function("make_timestamp", "microseconds since 1970", takes(INT64, returns=TIMESTAMP)),
)

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (*_OPERATORS, *_CONDITIONALS, *_STRINGS, *_MATHEMATICS, *_TIMES)
}
