"""Functions of times in Spark's dialect."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from eventide.errors import UnsupportedError
from eventide.lang.sql.functions.arguments import unread
from eventide.lang.sql.functions.formats import FormatPart, read_codes
from eventide.lang.sql.functions.kinds import Kinds, kind_of
from eventide.lang.sql.functions.known import DATE_PARTS, PART_ALIASES
from eventide.lang.sql.functions.on_spark.templates import (
    EMBEDDED_HINT,
    beyond_spark,
    filled,
    filled_integer,
)
from eventide.lang.sql.spans import written

# A time that comes from no column is an instant, whatever the session takes TIMESTAMP for.
_EPOCH = "TIMESTAMP_LTZ '1970-01-01 00:00:00'"

# Spark's EXTRACT gives an INT, which has no room for the seconds since 1970 from 2038 on.
_SECONDS = (
    "(CAST(EXTRACT(DAY FROM {0}) AS BIGINT) * 86400 + EXTRACT(HOUR FROM {0}) * 3600"
    " + EXTRACT(MINUTE FROM {0}) * 60 + EXTRACT(SECOND FROM {0}))"
)

_SINCE_1970 = _SECONDS.format(f"(:x - {_EPOCH})")

_PARTS: Mapping[str, str] = {
    "year": "YEAR(:x)",
    "quarter": "QUARTER(:x)",
    "month": "MONTH(:x)",
    "week": "WEEKOFYEAR(:x)",
    "day": "DAYOFMONTH(:x)",
    "dow": "DAYOFWEEK(:x) - 1",
    "isodow": "WEEKDAY(:x) + 1",
    "doy": "DAYOFYEAR(:x)",
    "hour": "HOUR(:x)",
    "minute": "MINUTE(:x)",
    "second": "SECOND(:x)",
    "millisecond": "FLOOR(EXTRACT(SECOND FROM :x) * 1000)",
    "microsecond": "EXTRACT(SECOND FROM :x) * 1000000",
}

# The part below the unit is subtracted, so an instant stays one and a time without a zone has
# none: Spark's own DATE_TRUNC makes instants of both.
_TRUNCATIONS: Mapping[str, str] = {
    **{
        unit: f":x - (:x - CAST(TRUNC(CAST(:x AS DATE), '{unit}') AS TIMESTAMP_NTZ))"
        for unit in ("year", "quarter", "month", "week")
    },
    "day": ":x - (:x - CAST(CAST(:x AS DATE) AS TIMESTAMP_NTZ))",
    "hour": ":x - MAKE_DT_INTERVAL(0, 0, MINUTE(:x), EXTRACT(SECOND FROM :x))",
    "minute": ":x - MAKE_DT_INTERVAL(0, 0, 0, EXTRACT(SECOND FROM :x))",
    "second": ":x - MAKE_DT_INTERVAL(0, 0, 0, EXTRACT(SECOND FROM :x) % 1)",
    "millisecond": ":x - MAKE_DT_INTERVAL(0, 0, 0, EXTRACT(SECOND FROM :x) % 0.001)",
    "microsecond": ":x",
}

_DIFFERENCES: Mapping[str, str] = {
    "year": "YEAR(:y) - YEAR(:x)",
    "quarter": "(YEAR(:y) * 4 + QUARTER(:y)) - (YEAR(:x) * 4 + QUARTER(:x))",
    "month": "(YEAR(:y) * 12 + MONTH(:y)) - (YEAR(:x) * 12 + MONTH(:x))",
    "day": "DATEDIFF(CAST(:y AS DATE), CAST(:x AS DATE))",
    **{
        unit: f"FLOOR({_SINCE_1970.replace(':x', ':y')} {per}) - FLOOR({_SINCE_1970} {per})"
        for unit, per in (
            ("hour", "/ 3600"),
            ("minute", "/ 60"),
            ("second", "* 1"),
            ("millisecond", "* 1000"),
            ("microsecond", "* 1000000"),
        )
    },
}


_MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
]

_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def _named(number: str, names: list[str]) -> str:
    listed = ", ".join(f"'{each}'" for each in names)
    return f"ELT({number}, {listed})"


def _padded(number: str, digits: int) -> str:
    return f"LPAD(CAST({number} AS STRING), {digits}, '0')"


_HOUR_12 = "((HOUR(:x) + 11) % 12 + 1)"

_MICROSECOND = "CAST((EXTRACT(SECOND FROM :x) % 1) * 1000000 AS INT)"

CODES: Mapping[str, str] = {
    # LPAD would cut a year of five digits.
    "Y": f"IF(YEAR(:x) > 9999, CAST(YEAR(:x) AS STRING), {_padded('YEAR(:x)', 4)})",
    "y": _padded("(YEAR(:x) % 100)", 2),
    "-y": "CAST((YEAR(:x) % 100) AS STRING)",
    "m": _padded("MONTH(:x)", 2),
    "-m": "CAST(MONTH(:x) AS STRING)",
    "d": _padded("DAYOFMONTH(:x)", 2),
    "-d": "CAST(DAYOFMONTH(:x) AS STRING)",
    "j": _padded("DAYOFYEAR(:x)", 3),
    "-j": "CAST(DAYOFYEAR(:x) AS STRING)",
    "H": _padded("HOUR(:x)", 2),
    "-H": "CAST(HOUR(:x) AS STRING)",
    "I": _padded(_HOUR_12, 2),
    "-I": f"CAST({_HOUR_12} AS STRING)",
    "M": _padded("MINUTE(:x)", 2),
    "-M": "CAST(MINUTE(:x) AS STRING)",
    "S": _padded("SECOND(:x)", 2),
    "-S": "CAST(SECOND(:x) AS STRING)",
    "f": _padded(_MICROSECOND, 6),
    "g": _padded(f"({_MICROSECOND} DIV 1000)", 3),
    "p": "IF(HOUR(:x) < 12, 'AM', 'PM')",
    "B": _named("MONTH(:x)", _MONTHS),
    "b": _named("MONTH(:x)", [each[:3] for each in _MONTHS]),
    "A": _named("WEEKDAY(:x) + 1", _DAYS),
    "a": _named("WEEKDAY(:x) + 1", [each[:3] for each in _DAYS]),
}

_READ_CODES: Mapping[str, str] = {
    **{"Y": "yyyy", "m": "M", "-m": "M", "d": "d", "-d": "d", "H": "H", "-H": "H"},
    **{"M": "m", "-M": "m", "S": "s", "-S": "s", "f": "SSSSSS"},
}


def part_of_time(node: exp.Expr, kinds: Kinds) -> exp.Expr | None:
    """Return EXTRACT, DATE_PART, YEAR(…) and similar functions."""
    name, value = "", None
    if isinstance(node, exp.Extract):
        name, value = node.name, node.expression
    elif type(node) in DATE_PARTS:
        if unread(node, "this") is not None:
            raise beyond_spark(written(node), node)
        name, value = DATE_PARTS[type(node)], node.this
    elif isinstance(node, exp.Anonymous) and node.expressions:
        name, value = node.name, node.expressions[-1]
        if name.lower() in ("date_part", "datepart"):
            name = node.expressions[0].name
    name = PART_ALIASES.get(name.lower(), name.lower())
    if value is None:
        return None
    if name == "epoch":
        return epoch(value, "CAST({0} AS DOUBLE)", kinds)
    if name in _PARTS:
        return filled_integer(_PARTS[name], x=value)
    if isinstance(node, exp.Anonymous) and name == "epoch_us":
        return epoch(value, "CAST({0} * 1000000 AS BIGINT)", kinds)
    if isinstance(node, exp.Extract):
        raise beyond_spark(written(node), node)
    return None


def epoch(value: exp.Expr, form: str, kinds: Kinds) -> exp.Expr:
    """Return the time since 1970, or an interval, as a number."""
    interval = kind_of(value, kinds) == "interval"
    seconds = _SECONDS.format(":x") if interval else _SINCE_1970
    return filled(form.format(seconds), x=value)


def truncated_time(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return DATE_TRUNC that keeps the kind of time."""
    unit = node.args["unit"].name.lower()
    unit = PART_ALIASES.get(unit, unit)
    if unit not in _TRUNCATIONS or unread(node, "this", "unit") is not None:
        raise beyond_spark(written(node), node)
    return filled(_TRUNCATIONS[unit], x=node.this)


def time_difference(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return DATE_DIFF."""
    unit = node.args.get("unit")
    name = "" if unit is None else PART_ALIASES.get(unit.name.lower(), unit.name.lower())
    if name not in _DIFFERENCES:
        raise beyond_spark(written(node), node)
    return filled_integer(_DIFFERENCES[name], x=node.expression, y=node.this)


def from_number(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """EPOCH_MS(x) and MAKE_TIMESTAMP(x), which sqlglot reads as one function."""
    scale = node.args["scale"].name if node.args.get("scale") else ""
    if scale not in ("3", "6"):
        raise beyond_spark(written(node), node, "write MAKE_TIMESTAMP(microseconds)")
    kind = kind_of(node.this, kinds)
    if scale == "3" and kind in ("timestamp", "interval"):
        return epoch(node.this, "CAST({0} * 1000 AS BIGINT)", kinds)
    if kind != "int64":
        raise beyond_spark(written(node), node)
    per = "1000" if scale == "3" else "1000000"
    since = f"MAKE_DT_INTERVAL(0, 0, 0, CAST(:x AS DECIMAL(20, 0)) / {per})"
    return filled(f"{_EPOCH} + {since}", x=node.this)


def _format_parts(node: exp.Expr) -> list[FormatPart]:
    """Return the parts of a format that is written in the query."""
    format_ = node.args.get("format")
    if not (isinstance(format_, exp.Literal) and format_.is_string):
        what = f"a format that is no text: {written(node)}"
        raise beyond_spark(what, node)
    try:
        return list(read_codes(format_.name))
    except UnsupportedError as error:
        raise beyond_spark(error.message, format_, error.hint or EMBEDDED_HINT) from None


def formatted_time(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return STRFTIME with a literal format."""
    parts = [
        filled(CODES[each.code], x=node.this) if each.code else exp.Literal.string(each.text)
        for each in _format_parts(node)
    ]
    return exp.Anonymous(this="CONCAT", expressions=parts or [exp.Literal.string("")])


def read_time(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return STRPTIME with a literal format."""
    pattern = ""
    for each in _format_parts(node):
        if each.code and each.code not in _READ_CODES:
            what = f"{each.text!r} in a format that is read"
            raise beyond_spark(what, node)
        quoted = f"'{each.text}'" if each.text.isalpha() else each.text.replace("'", "''")
        pattern += _READ_CODES[each.code] if each.code else quoted
    parts = [node.this, exp.Literal.string(pattern)]
    return exp.Anonymous(this="TO_TIMESTAMP_LTZ", expressions=parts)


def time_added(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return DATE_ADD of an interval."""
    if not isinstance(node.expression, exp.Interval) or unread(node, "this", "expression"):
        raise beyond_spark(written(node), node, "write ts + INTERVAL '1' DAY")
    return exp.Paren(this=exp.Add(this=node.this, expression=node.expression))


def timestamp_of(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return MAKE_TIMESTAMP as an instant."""
    keys = ("year", "month", "day", "hour", "min", "sec")
    if unread(node, *keys) is not None or not all(node.args.get(key) for key in keys):
        raise beyond_spark(written(node), node)
    parts = [node.args[key] for key in keys]
    return exp.Anonymous(this="MAKE_TIMESTAMP_LTZ", expressions=parts)


def interval_of_units(node: exp.Expr, _: Kinds) -> exp.Expr:
    """INTERVAL (n) MINUTE -> n * INTERVAL '1' MINUTE."""
    unit = node.args.get("unit")
    if isinstance(node.this, exp.Literal) or unit is None:
        return node
    one = exp.Interval(this=exp.Literal.string("1"), unit=unit)
    return exp.Paren(this=exp.Mul(this=exp.Paren(this=node.this.unnest()), expression=one))
