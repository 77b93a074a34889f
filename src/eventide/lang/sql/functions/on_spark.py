"""Functions of the rest in Spark's words: the same answer as DuckDB's, or no answer.

A function that is named here is rewritten so that Spark gives what DuckDB gives, in every session
time zone; `tests/engines/test_functions.py` compares them. Functions of texts and times that are
not named here are not handed to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.expressions import string, temporal

from eventide.errors import UnsupportedError
from eventide.lang.sql.functions.formats import Piece, read_codes
from eventide.lang.sql.functions.kinds import KIND, WHOLE, Kinds, kind_of
from eventide.lang.sql.functions.known import DATE_PARTS, PART_ALIASES, unread
from eventide.lang.sql.spans import span_of, written

_ROUND_HINT = "write CAST(ROUND(x) AS BIGINT)"
_EMBEDDED_HINT = "run this query without Spark, or compute it on the DataFrame"

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

# What is too much is taken off, so an instant stays one and a time without a zone has none:
# Spark's own DATE_TRUNC makes instants of both.
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

_NAMES = {"prefix": "STARTSWITH", "suffix": "ENDSWITH"}

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
_CODES: Mapping[str, str] = {
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

_SUBSTRING = """
CASE WHEN :s IS NULL OR :o IS NULL OR :n IS NULL THEN NULL
     WHEN :n = 0 OR (:o = 0 AND :n <= 1) THEN ''
     WHEN :n > 0 THEN IF(:o = 0, SUBSTRING(:s, 1, :n - 1), SUBSTRING(:s, :o, :n))
     ELSE SUBSTRING(:s, GREATEST({start} + :n, 0) + 1, {start} - GREATEST({start} + :n, 0)) END
""".format(
    start="CASE WHEN :o > 0 THEN :o - 1 WHEN :o < 0 THEN GREATEST(LENGTH(:s) + :o, 0) ELSE 0 END"
)
_LOGARITHM = (
    "CASE WHEN :x > 0 THEN {0}(:x) WHEN :x = 0 THEN CAST('-Infinity' AS DOUBLE)"
    " WHEN :x < 0 THEN CAST('NaN' AS DOUBLE) END"
)
_SIGN = (
    "CAST(CASE WHEN ISNAN(CAST(:x AS DOUBLE)) THEN 0 WHEN :x > 0 THEN 1 WHEN :x < 0 THEN -1"
    " WHEN :x = 0 THEN 0 END AS BIGINT)"
)
# Beyond 2^52 every double is whole, and Spark's FLOOR would have to fit it into 64 bits.
_WHOLE = "CASE WHEN ABS(:x) < 4503599627370496D THEN CAST({0} AS DOUBLE) ELSE :x END"


@cache
def _template(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


def _filled(text: str, **values: exp.Expr) -> exp.Expr:
    """Return Spark's SQL with expressions in the place of :names."""
    tree = exp.Paren(this=_template(text).copy())
    for place in list(tree.find_all(exp.Placeholder)):
        value = values[place.name]
        wrapped = value if isinstance(value, exp.Column | exp.Literal) else exp.Paren(this=value)
        place.replace(wrapped.copy())
    return tree


def _integer(text: str, **values: exp.Expr) -> exp.Expr:
    return _filled(f"CAST({text} AS BIGINT)", **values)


def beyond_spark(what: str, node: exp.Expr, hint: str = _EMBEDDED_HINT) -> UnsupportedError:
    """Return the error for what Spark would answer differently, or not at all."""
    return UnsupportedError(f"{what} is not handed to Spark", span=span_of(node), hint=hint)


def in_sparks_words(rest: exp.Expr, kinds: Kinds) -> exp.Expr:
    """Return the rest with its functions in Spark's words; the tree is changed.

    `UnsupportedError` says that Spark would answer something else.
    """
    # What stands inside comes first: what is put in is not looked at again.
    for node in reversed(list(rest.walk())):
        form = _on_spark(node, kinds)
        if form is not node:
            kind = kind_of(node, kinds)
            form.meta.update({key: node.meta[key] for key in ("start", "end") if key in node.meta})
            form.meta[KIND] = kind
            if node is rest:
                return form
            node.replace(form)
    return rest


def _on_spark(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    part = _part(node, kinds)
    if part is not None:
        return part
    rewrite = _REWRITES.get(type(node))
    if rewrite is not None:
        return rewrite(node, kinds)
    module = type(node).__module__
    if module in (string.__name__, temporal.__name__) and type(node) not in _ALIKE:
        raise beyond_spark(written(node), node)
    return node


def _part(node: exp.Expr, kinds: Kinds) -> exp.Expr | None:
    """Return EXTRACT, DATE_PART, YEAR(…) and their like."""
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
        return _epoch(value, "CAST({0} AS DOUBLE)", kinds)
    if name in _PARTS:
        return _integer(_PARTS[name], x=value)
    if isinstance(node, exp.Anonymous) and name == "epoch_us":
        return _epoch(value, "CAST({0} * 1000000 AS BIGINT)", kinds)
    if isinstance(node, exp.Anonymous) and name in _NAMES:
        return exp.Anonymous(this=_NAMES[name], expressions=node.expressions)
    if isinstance(node, exp.Extract):
        raise beyond_spark(written(node), node)
    return None


def _epoch(value: exp.Expr, form: str, kinds: Kinds) -> exp.Expr:
    interval = kind_of(value, kinds) == "interval"
    seconds = _SECONDS.format(":x") if interval else _SINCE_1970
    return _filled(form.format(seconds), x=value)


def _isnan(value: exp.Expr) -> exp.Expr:
    return _filled("CASE WHEN :x IS NOT NULL THEN ISNAN(:x) END", x=value)


def _truncation(node: exp.Expr, _: Kinds) -> exp.Expr:
    unit = node.args["unit"].name.lower()
    unit = PART_ALIASES.get(unit, unit)
    if unit not in _TRUNCATIONS or unread(node, "this", "unit") is not None:
        raise beyond_spark(written(node), node)
    return _filled(_TRUNCATIONS[unit], x=node.this)


def _difference(node: exp.Expr, _: Kinds) -> exp.Expr:
    unit = node.args.get("unit")
    name = "" if unit is None else PART_ALIASES.get(unit.name.lower(), unit.name.lower())
    if name not in _DIFFERENCES:
        raise beyond_spark(written(node), node)
    return _integer(_DIFFERENCES[name], x=node.expression, y=node.this)


def _from_number(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """EPOCH_MS(x) and MAKE_TIMESTAMP(x), which sqlglot reads as one function."""
    scale = node.args["scale"].name if node.args.get("scale") else ""
    if scale not in ("3", "6"):
        raise beyond_spark(written(node), node, "write MAKE_TIMESTAMP(microseconds)")
    kind = kind_of(node.this, kinds)
    if scale == "3" and kind in ("timestamp", "interval"):
        return _epoch(node.this, "CAST({0} * 1000 AS BIGINT)", kinds)
    if kind != "int64":
        raise beyond_spark(written(node), node)
    per = "1000" if scale == "3" else "1000000"
    since = f"MAKE_DT_INTERVAL(0, 0, 0, CAST(:x AS DECIMAL(20, 0)) / {per})"
    return _filled(f"{_EPOCH} + {since}", x=node.this)


def _pieces(node: exp.Expr) -> list[Piece]:
    """Return the pieces of a format that is written in the query."""
    format_ = node.args.get("format")
    if not (isinstance(format_, exp.Literal) and format_.is_string):
        what = f"a format that is no text: {written(node)}"
        raise beyond_spark(what, node)
    try:
        return list(read_codes(format_.name))
    except UnsupportedError as error:
        raise beyond_spark(error.message, format_, error.hint or _EMBEDDED_HINT) from None


def _formatted(node: exp.Expr, _: Kinds) -> exp.Expr:
    pieces = [
        _filled(_CODES[each.code], x=node.this) if each.code else exp.Literal.string(each.text)
        for each in _pieces(node)
    ]
    return exp.Anonymous(this="CONCAT", expressions=pieces or [exp.Literal.string("")])


def _read_time(node: exp.Expr, _: Kinds) -> exp.Expr:
    pattern = ""
    for each in _pieces(node):
        if each.code and each.code not in _READ_CODES:
            what = f"{each.text!r} in a format that is read"
            raise beyond_spark(what, node)
        quoted = f"'{each.text}'" if each.text.isalpha() else each.text.replace("'", "''")
        pattern += _READ_CODES[each.code] if each.code else quoted
    parts = [node.this, exp.Literal.string(pattern)]
    return exp.Anonymous(this="TO_TIMESTAMP_LTZ", expressions=parts)


def _texts(values: list[exp.Expr], kinds: Kinds) -> list[exp.Expr]:
    """Return values as text; engines write floats in different ways."""
    for each in values:
        if kind_of(each, kinds) == "float64":
            hint = "write it with as many digits as you need: CAST(x AS DECIMAL(18, 3))"
            what = f"{written(each)} as text"
            raise beyond_spark(what, each, hint)
    text = exp.DataType.build("STRING", dialect="spark")
    return [
        each if kind_of(each, kinds) == "string" else exp.Cast(this=each, to=text.copy())
        for each in values
    ]


def _concat(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    empty = exp.Literal.string("")
    texts = [
        exp.Coalesce(this=each, expressions=[empty.copy()])
        for each in _texts(node.expressions, kinds)
    ]
    return exp.Anonymous(this="CONCAT", expressions=texts)


def _concat_ws(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    return exp.Anonymous(this="CONCAT_WS", expressions=_texts(node.expressions, kinds))


def _pipe(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    left, right = _texts([node.this, node.expression], kinds)
    return exp.DPipe(this=left, expression=right, safe=True)


def _literal_int(node: exp.Expr | None) -> int | None:
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _substring(node: exp.Expr, _: Kinds) -> exp.Expr:
    start, length = node.args["start"], node.args.get("length")
    if unread(node, "this", "start", "length") is not None:
        raise beyond_spark(written(node), node)
    if (_literal_int(start) or 0) > 0 and (length is None or _literal_int(length) is not None):
        return node
    if length is None:
        length = exp.Literal.number(2**31 - 1)
    return _filled(_SUBSTRING, s=node.this, o=start, n=length)


def _side(node: exp.Expr, _: Kinds) -> exp.Expr:
    """LEFT and RIGHT; a negative number leaves so many characters out."""
    if unread(node, "this", "expression") is not None:
        raise beyond_spark(written(node), node)
    if _literal_int(node.expression) is not None:
        return node
    name = node.key.upper()
    form = (
        f"CASE WHEN :n >= 0 THEN {name}(:s, :n)"
        f" WHEN :n < 0 THEN {name}(:s, GREATEST(LENGTH(:s) + :n, 0)) END"
    )
    return _filled(form, s=node.this, n=node.expression)


def _position(node: exp.Expr, _: Kinds) -> exp.Expr:
    if unread(node, "this", "substr") is not None:
        raise beyond_spark(written(node), node)
    return _integer("LOCATE(:y, :x)", x=node.this, y=node.args["substr"])


def _split_part(node: exp.Expr, _: Kinds) -> exp.Expr:
    delimiter = node.args["delimiter"]
    if not (isinstance(delimiter, exp.Literal) and delimiter.name):
        what = f"{written(node)} by anything but a written text"
        raise beyond_spark(what, node)
    place = node.args["part_index"]
    form = (
        "CASE WHEN :n = 0 THEN LEFT(:s, 0)"
        " ELSE SPLIT_PART(:s, :d, CAST(IF(:n = 0, 1, :n) AS INT)) END"
    )
    return _filled(form, s=node.this, d=delimiter, n=place)


def _replaced(node: exp.Expr, _: Kinds) -> exp.Expr:
    """REGEXP_REPLACE of all matches; Spark cannot replace the first alone."""
    options, replacement = node.args.get("modifiers"), node.args.get("replacement")
    letters = options.name if isinstance(options, exp.Literal) else ""
    if "g" not in letters or set(letters) - {"g", "i"}:
        raise beyond_spark(written(node), node, "replace all matches with the option 'g'")
    if not isinstance(replacement, exp.Literal):
        what = f"a replacement that is no text: {written(node)}"
        raise beyond_spark(what, node)
    text = replacement.name.replace("$", r"\$")
    for digit in "0123456789":
        text = text.replace(f"\\{digit}", f"${digit}")
    parts = [node.this, _regular(node.expression, letters), exp.Literal.string(text)]
    return exp.Anonymous(this="REGEXP_REPLACE", expressions=parts)


def _regular(pattern: exp.Expr, letters: str) -> exp.Expr:
    if "i" not in letters:
        return pattern
    return exp.Anonymous(this="CONCAT", expressions=[exp.Literal.string("(?i)"), pattern])


def _matches(node: exp.Expr, _: Kinds) -> exp.Expr:
    options = node.args.get("flag")
    letters = "" if options is None else options.name
    if set(letters) - {"i"} or unread(node, "this", "expression", "flag") is not None:
        raise beyond_spark(written(node), node)
    return exp.RegexpLike(this=node.this, expression=_regular(node.expression, letters))


def _extracted(node: exp.Expr, _: Kinds) -> exp.Expr:
    if unread(node, "this", "expression", "group") is not None:
        raise beyond_spark(written(node), node)
    group = node.args.get("group") or exp.Literal.number(0)
    parts = [node.this, node.expression, group]
    return exp.Anonymous(this="REGEXP_EXTRACT", expressions=parts)


def _cast(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    assert isinstance(node, exp.Cast)
    if unread(node, "this", "to") is not None:
        raise beyond_spark(written(node), node)
    kind, value = kind_of(node.this, kinds), node.this
    name = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    match node.to.this:
        case exp.DType.BIGINT | exp.DType.INT:
            if kind in ("int64", "bool", WHOLE):
                return node
            if kind == "float64":
                return _filled(f"{name}(RINT(:x) AS BIGINT)", x=value)
            if kind == "decimal":
                return _filled(f"{name}(ROUND(:x) AS BIGINT)", x=value)
            if kind == "string":
                form = f"{name}(ROUND({name}(TRIM(:x) AS DECIMAL(38, 10))) AS BIGINT)"
                return _filled(form, x=value)
            what = f"{written(node)} of a type that is not known here"
            raise beyond_spark(what, node, _ROUND_HINT)
        case exp.DType.TEXT | exp.DType.VARCHAR | exp.DType.CHAR:
            if kind == "binary":
                raise beyond_spark(written(node), node)
            _texts([value], kinds)
        case exp.DType.VARBINARY | exp.DType.BINARY:
            if not (isinstance(value, exp.Literal) and "\\" not in value.name):
                raise beyond_spark(written(node), node)
        case exp.DType.TIMESTAMP | exp.DType.TIMESTAMPNTZ | exp.DType.DATETIME:
            if kind == "timestamp":
                return exp.Paren(this=value)
            # Texts are read as DuckDB reads them: no offset counts, and no time of day alone.
            return _filled(f"CAST({name}(:x AS TIMESTAMP_NTZ) AS TIMESTAMP_LTZ)", x=value)
        case exp.DType.TIME | exp.DType.TIMESTAMPTZ:
            raise beyond_spark(written(node), node)
    return node


def _whole(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """FLOOR, CEIL and TRUNC: floats stay floats."""
    if unread(node, "this") is not None:
        raise beyond_spark(written(node), node)
    kind = kind_of(node.this, kinds)
    if kind == "int64":
        return _filled("CAST(:x AS DOUBLE)", x=node.this)
    if kind == "float64":
        call = "CAST(:x AS BIGINT)" if isinstance(node, exp.Trunc) else f"{node.key.upper()}(:x)"
        return _filled(_WHOLE.format(call), x=node.this)
    if kind == "decimal":
        towards_zero = "IF(:x < 0, CEIL(:x), FLOOR(:x))"
        return _filled(towards_zero, x=node.this) if isinstance(node, exp.Trunc) else node
    hint = f"say what it is: {node.key.upper()}(CAST(x AS DOUBLE))"
    what = f"{written(node)} of a type that is not known here"
    raise beyond_spark(what, node, hint)


def _logarithm(node: exp.Expr, _: Kinds) -> exp.Expr:
    base, value = (node.this, node.expression) if node.expression else (None, node.this)
    if base is None or _literal_int(base) == 10:
        return _filled(_LOGARITHM.format("LOG10"), x=value)
    if _literal_int(base) == 2:
        return _filled(_LOGARITHM.format("LOG2"), x=value)
    return _filled(
        f"({_LOGARITHM.format('LOG10')}) / ({_LOGARITHM.format('LOG10').replace(':x', ':b')})",
        x=value,
        b=base,
    )


def _added(node: exp.Expr, _: Kinds) -> exp.Expr:
    if not isinstance(node.expression, exp.Interval) or unread(node, "this", "expression"):
        raise beyond_spark(written(node), node, "write ts + INTERVAL '1' DAY")
    return exp.Paren(this=exp.Add(this=node.this, expression=node.expression))


def _timestamp_of(node: exp.Expr, _: Kinds) -> exp.Expr:
    keys = ("year", "month", "day", "hour", "min", "sec")
    if unread(node, *keys) is not None or not all(node.args.get(key) for key in keys):
        raise beyond_spark(written(node), node)
    parts = [node.args[key] for key in keys]
    return exp.Anonymous(this="MAKE_TIMESTAMP_LTZ", expressions=parts)


def _interval(node: exp.Expr, _: Kinds) -> exp.Expr:
    """INTERVAL (n) MINUTE -> n * INTERVAL '1' MINUTE."""
    unit = node.args.get("unit")
    if isinstance(node.this, exp.Literal) or unit is None:
        return node
    one = exp.Interval(this=exp.Literal.string("1"), unit=unit)
    return exp.Paren(this=exp.Mul(this=exp.Paren(this=node.this.unnest()), expression=one))


def _of_one(form: str, *, whole: bool = False) -> Callable[[exp.Expr, Kinds], exp.Expr]:
    def rewrite(node: exp.Expr, _: Kinds) -> exp.Expr:
        if unread(node, "this") is not None:
            raise beyond_spark(written(node), node)
        return (_integer if whole else _filled)(form, x=node.this)

    return rewrite


def _refused(node: exp.Expr, _: Kinds) -> exp.Expr:
    raise beyond_spark(written(node), node)


Rewrite = Callable[[exp.Expr, Kinds], exp.Expr]

_REWRITES: Mapping[type[exp.Expr], Rewrite] = {
    exp.AtTimeZone: _refused,
    exp.Ascii: _of_one("ASCII(:x)", whole=True),
    exp.Cast: _cast,
    exp.Ceil: _whole,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.DPipe: _pipe,
    exp.DateAdd: _added,
    exp.DateDiff: _difference,
    exp.DateTrunc: _truncation,
    exp.Dayname: _of_one(_CODES["A"]),
    exp.Floor: _whole,
    exp.Glob: _refused,
    exp.Interval: _interval,
    exp.IsNan: lambda node, _: _isnan(node.this),
    exp.Left: _side,
    exp.Length: _of_one("LENGTH(:x)", whole=True),
    exp.Ln: lambda node, _: _filled(_LOGARITHM.format("LN"), x=node.this),
    exp.Log: _logarithm,
    exp.Monthname: _of_one(_CODES["B"]),
    exp.RegexpExtract: _extracted,
    exp.RegexpLike: _matches,
    exp.RegexpReplace: _replaced,
    exp.Right: _side,
    exp.Sign: lambda node, _: _filled(_SIGN, x=node.this),
    exp.SimilarTo: _refused,
    exp.SplitPart: _split_part,
    exp.StrPosition: _position,
    exp.StrToTime: _read_time,
    exp.Substring: _substring,
    exp.TimeToStr: _formatted,
    exp.TimeToUnix: lambda node, kinds: _epoch(node.this, "CAST({0} AS DOUBLE)", kinds),
    exp.TimestampFromParts: _timestamp_of,
    exp.TimestampTrunc: _truncation,
    exp.Trunc: _whole,
    exp.TryCast: _cast,
    exp.UnixToTime: _from_number,
}

_ALIKE = frozenset(
    {
        *(exp.Contains, exp.Date, exp.DateFromParts, exp.EndsWith, exp.LastDay, exp.Lower, exp.MD5),
        *(exp.Pad, exp.Repeat, exp.Replace, exp.Reverse, exp.SHA2, exp.Split, exp.StartsWith),
        *(exp.Translate, exp.Trim, exp.Upper),
    }
)
"""Functions of texts and times that both engines answer in the same way."""
