"""Functions of numbers, and casts, in Spark's dialect."""

from __future__ import annotations

from sqlglot import exp

from eventide.lang.sql.functions.arguments import unread
from eventide.lang.sql.functions.kinds import WHOLE, Kinds, kind_of
from eventide.lang.sql.functions.on_spark.templates import beyond_spark, filled
from eventide.lang.sql.functions.on_spark.texts import as_texts, literal_int
from eventide.lang.sql.spans import written

_ROUND_HINT = "write CAST(ROUND(x) AS BIGINT)"

LOGARITHM = (
    "CASE WHEN :x > 0 THEN {0}(:x) WHEN :x = 0 THEN CAST('-Infinity' AS DOUBLE)"
    " WHEN :x < 0 THEN CAST('NaN' AS DOUBLE) END"
)

SIGN = (
    "CAST(CASE WHEN ISNAN(CAST(:x AS DOUBLE)) THEN 0 WHEN :x > 0 THEN 1 WHEN :x < 0 THEN -1"
    " WHEN :x = 0 THEN 0 END AS BIGINT)"
)

# Beyond 2^52 every double is whole, and Spark's FLOOR would have to fit it into 64 bits.
_WHOLE = "CASE WHEN ABS(:x) < 4503599627370496D THEN CAST({0} AS DOUBLE) ELSE :x END"


def is_nan(value: exp.Expr) -> exp.Expr:
    """Return ISNAN, which is null of null."""
    return filled("CASE WHEN :x IS NOT NULL THEN ISNAN(:x) END", x=value)


def cast_value(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """Return a cast that rounds and refuses values as DuckDB's does."""
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
                return filled(f"{name}(RINT(:x) AS BIGINT)", x=value)
            if kind == "decimal":
                return filled(f"{name}(ROUND(:x) AS BIGINT)", x=value)
            if kind == "string":
                form = f"{name}(ROUND({name}(TRIM(:x) AS DECIMAL(38, 10))) AS BIGINT)"
                return filled(form, x=value)
            what = f"{written(node)} of a type that is not known here"
            raise beyond_spark(what, node, _ROUND_HINT)
        case exp.DType.TEXT | exp.DType.VARCHAR | exp.DType.CHAR:
            if kind == "binary":
                raise beyond_spark(written(node), node)
            as_texts([value], kinds)
        case exp.DType.VARBINARY | exp.DType.BINARY:
            if not (isinstance(value, exp.Literal) and "\\" not in value.name):
                raise beyond_spark(written(node), node)
        case exp.DType.TIMESTAMP | exp.DType.TIMESTAMPNTZ | exp.DType.DATETIME:
            if kind == "timestamp":
                return exp.Paren(this=value)
            # Texts are read as DuckDB reads them: no offset counts, and no time of day alone.
            return filled(f"CAST({name}(:x AS TIMESTAMP_NTZ) AS TIMESTAMP_LTZ)", x=value)
        case exp.DType.TIME | exp.DType.TIMESTAMPTZ:
            raise beyond_spark(written(node), node)
    return node


def rounded(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """FLOOR, CEIL and TRUNC: floats stay floats."""
    if unread(node, "this") is not None:
        raise beyond_spark(written(node), node)
    kind = kind_of(node.this, kinds)
    if kind == "int64":
        return filled("CAST(:x AS DOUBLE)", x=node.this)
    if kind == "float64":
        call = "CAST(:x AS BIGINT)" if isinstance(node, exp.Trunc) else f"{node.key.upper()}(:x)"
        return filled(_WHOLE.format(call), x=node.this)
    if kind == "decimal":
        towards_zero = "IF(:x < 0, CEIL(:x), FLOOR(:x))"
        return filled(towards_zero, x=node.this) if isinstance(node, exp.Trunc) else node
    hint = f"say what it is: {node.key.upper()}(CAST(x AS DOUBLE))"
    what = f"{written(node)} of a type that is not known here"
    raise beyond_spark(what, node, hint)


def logarithm(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return LOG or LN."""
    base, value = (node.this, node.expression) if node.expression else (None, node.this)
    if base is None or literal_int(base) == 10:
        return filled(LOGARITHM.format("LOG10"), x=value)
    if literal_int(base) == 2:
        return filled(LOGARITHM.format("LOG2"), x=value)
    return filled(
        f"({LOGARITHM.format('LOG10')}) / ({LOGARITHM.format('LOG10').replace(':x', ':b')})",
        x=value,
        b=base,
    )
