"""Which of sqlglot's nodes is which function of ours.

Our operators have no function for a node that is not listed here: a plain query that uses one runs
on the engine's SQL instead, and elsewhere it is an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from eventide.lang.sql.functions.arguments import unread

_BINARY = ("this", "expression")
_UNARY = ("this",)

FIXED: Mapping[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    **{
        node: (name, _BINARY)
        for node, name in (
            (exp.EQ, "="),
            (exp.NEQ, "<>"),
            (exp.LT, "<"),
            (exp.LTE, "<="),
            (exp.GT, ">"),
            (exp.GTE, ">="),
            (exp.NullSafeEQ, "is not distinct from"),
            (exp.NullSafeNEQ, "is distinct from"),
            (exp.And, "and"),
            (exp.Or, "or"),
            (exp.Add, "+"),
            (exp.Sub, "-"),
            (exp.Mul, "*"),
            (exp.Div, "/"),
            (exp.Mod, "%"),
            (exp.DPipe, "||"),
            (exp.Pow, "power"),
            (exp.Atan2, "atan2"),
            (exp.StartsWith, "starts_with"),
            (exp.EndsWith, "ends_with"),
            (exp.Contains, "contains"),
            (exp.Nullif, "nullif"),
            (exp.Left, "left"),
            (exp.Right, "right"),
        )
    },
    **{
        node: (name, _UNARY)
        for node, name in (
            (exp.Not, "not"),
            (exp.Neg, "negate"),
            (exp.Lower, "lower"),
            (exp.Upper, "upper"),
            (exp.Reverse, "reverse"),
            (exp.Length, "length"),
            (exp.Abs, "abs"),
            (exp.Sign, "sign"),
            (exp.Floor, "floor"),
            (exp.Ceil, "ceil"),
            (exp.Sqrt, "sqrt"),
            (exp.Cbrt, "cbrt"),
            (exp.Exp, "exp"),
            (exp.Ln, "ln"),
            (exp.Sin, "sin"),
            (exp.Cos, "cos"),
            (exp.Tan, "tan"),
            (exp.Asin, "asin"),
            (exp.Acos, "acos"),
            (exp.Atan, "atan"),
            (exp.Degrees, "degrees"),
            (exp.Radians, "radians"),
            (exp.IsNan, "isnan"),
            (exp.TimeToUnix, "epoch"),
        )
    },
    exp.Pi: ("pi", ()),
    exp.Round: ("round", ("this", "decimals")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.RegexpLike: ("regexp_matches", ("this", "expression")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Concat: ("concat", ("expressions",)),
}
"""Nodes with the same arguments as ours, in the same order."""

READ: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Between: ("this", "low", "high"),
    exp.Case: ("this", "ifs", "default"),
    exp.Cast: ("this", "to"),
    exp.DateTrunc: ("this", "unit"),
    exp.Extract: _BINARY,
    exp.If: ("this", "true", "false"),
    exp.In: ("this", "expressions", "query", "unnest"),
    exp.Log: _BINARY,
    exp.TimestampTrunc: ("this", "unit"),
    exp.Trim: _BINARY,
    exp.TryCast: ("this", "to"),
    exp.UnixToTime: ("this", "scale"),
}
"""The arguments of other nodes of ours."""

DATE_PARTS: Mapping[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "doy",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}

PART_ALIASES: Mapping[str, str] = {
    "years": "year",
    "months": "month",
    "weeks": "week",
    "days": "day",
    "dayofweek": "dow",
    "dayofyear": "doy",
    "weekday": "dow",
    "hours": "hour",
    "minutes": "minute",
    "seconds": "second",
    "milliseconds": "millisecond",
    "ms": "millisecond",
    "microseconds": "microsecond",
    "us": "microsecond",
}

ANONYMOUS: Mapping[str, str] = {
    "prefix": "starts_with",
    "suffix": "ends_with",
    "datepart": "date_part",
}
"""Other names of functions that sqlglot does not know."""

PICKS: Mapping[type[exp.Expr], str] = {exp.FirstValue: "first", exp.LastValue: "last"}
"""The functions of a frame that are aggregates of ours by another name."""

WITH_CONSTANTS: Mapping[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.RegexpExtract: ("regexp_extract", ("expression", "group")),
    exp.SplitPart: ("split_part", ("delimiter", "part_index")),
    exp.TimeToStr: ("strftime", ("format",)),
}
"""Functions that are ours if their further arguments, under these keys, are constants."""
_CODES = frozenset("YmdHMSyj%")
"""The codes of strftime that Arrow writes as DuckDB does."""


def is_ours(node: exp.Expr, text: exp.Expr | None, number: exp.Expr | None) -> bool:
    """Whether a function has constants that our operators take: a text, perhaps a number."""
    plain = isinstance(text, exp.Literal) and text.is_string and text.name != ""
    _, keys = WITH_CONSTANTS[type(node)]
    known = ("this", *keys, "null_if_pos_overflow")
    if not plain or text is None or unread(node, *known) is not None:
        return False
    match node:
        case exp.TimeToStr():
            codes = text.name.split("%%")
            return all(part[:1] in _CODES for each in codes for part in each.split("%")[1:])
        case exp.SplitPart():
            amount = number.this if isinstance(number, exp.Neg) else number
            return isinstance(amount, exp.Literal) and amount.is_int and int(amount.name) != 0
        case exp.RegexpExtract():
            counted = isinstance(number, exp.Literal) and number.is_int and int(number.name) < 10
            return number is None or counted
    return False


def has_more(aggregate: exp.Expr) -> bool:
    """Whether an aggregate has more arguments than ours: COUNT(a, b), MAX(a, 3)."""
    return unread(aggregate, "this") is not None
