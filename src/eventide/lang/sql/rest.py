"""The rest of a cut query as text, in the dialect of each engine that can run it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import ErrorLevel, exp

from eventide.lang.sql.literals import is_timestamp, timestamp
from eventide.lang.sql.outside import refuse_outside
from eventide.plan.bind import bind
from eventide.plan.nodes import Plan
from eventide.plan.times import format_timestamp
from eventide.schema import Schema

_SPARK_NAMES = {
    "epoch_us": "unix_micros",
    "prefix": "startswith",
    "suffix": "endswith",
    "isnan": "isnan",
}


def rest_sql(
    rest: exp.Expr, inputs: Mapping[str, Plan], catalog: Mapping[str, Schema]
) -> tuple[str, str]:
    """Return what remains of a query as DuckDB's SQL and as Spark's."""
    refuse_outside(rest, inputs)
    common = rest.transform(_null_on_zero).transform(_in_utc).transform(_as_our_types)
    integers = _integer_columns(inputs, catalog)
    duckdb = _narrow_sums(common.copy(), integers)
    spark = common.transform(_spark_names)
    # What Spark lacks is Spark's error to raise, not a warning to someone who does not use it.
    spark_sql = spark.sql(dialect="spark", unsupported_level=ErrorLevel.IGNORE)
    return duckdb.sql(dialect="duckdb"), spark_sql


def _null_on_zero(node: exp.Expr) -> exp.Expr:
    """Turn a / b into a / NULLIF(b, 0): DuckDB would give infinity, Spark an error."""
    if not isinstance(node, exp.Div | exp.Mod | exp.IntDiv):
        return node
    divisor = node.expression
    if isinstance(divisor, exp.Nullif) or (
        isinstance(divisor, exp.Literal) and not _is_zero(divisor)
    ):
        return node
    # Done here for all engines, so sqlglot need not do it for some.
    node.set("safe", False)
    node.set("expression", exp.Nullif(this=divisor.unnest(), expression=exp.Literal.number(0)))
    return node


def _is_zero(literal: exp.Literal) -> bool:
    try:
        return float(literal.name) == 0
    except ValueError:
        return True


def _in_utc(node: exp.Expr) -> exp.Expr:
    """TIMESTAMP '… +02:00' -> the same instant in UTC, which engines read in their own way."""
    if not (isinstance(node, exp.Cast) and is_timestamp(node.to)):
        return node
    literal = node.this
    if not (isinstance(literal, exp.Literal) and literal.is_string):
        return node
    value = timestamp(literal, or_null=isinstance(node, exp.TryCast)).value
    if isinstance(value, int):
        node.set("this", exp.Literal.string(format_timestamp(value)))
    return node


def _as_our_types(node: exp.Expr) -> exp.Expr:
    """CAST(… AS INT) -> CAST(… AS BIGINT): our operators have one integer and one float."""
    wider = {exp.DType.INT: exp.DType.BIGINT, exp.DType.FLOAT: exp.DType.DOUBLE}
    if isinstance(node, exp.DataType) and node.this in wider:
        return exp.DataType(this=wider[node.this], nested=False)
    return node


def _integer_columns(inputs: Mapping[str, Plan], catalog: Mapping[str, Schema]) -> frozenset[str]:
    """Return the names that are int64 columns in every input that has them."""
    integers: set[str] = set()
    others: set[str] = set()
    for plan in inputs.values():
        for name, data_type in bind(plan, catalog).row.items():
            (integers if data_type.kind == "int64" else others).add(name.lower())
    return frozenset(integers - others)


def _narrow_sums(rest: exp.Expr, integers: frozenset[str]) -> exp.Expr:
    """Turn SUM(int) into CAST(SUM(int) AS BIGINT): DuckDB would give a type that only it has."""
    for node in list(rest.find_all(exp.Sum)):
        if not _is_integer(node.this, integers):
            continue
        whole: exp.Expr = node
        while isinstance(whole.parent, exp.Window | exp.Filter) and whole.arg_key == "this":
            whole = whole.parent
        whole.replace(exp.cast(whole.copy(), exp.DType.BIGINT))
    return rest


def _is_integer(node: exp.Expr, integers: frozenset[str]) -> bool:
    """Whether an expression is surely an int64."""
    match node:
        case exp.Column():
            return node.name.lower() in integers
        case exp.Literal():
            return node.is_int
        case exp.Paren() | exp.Neg() | exp.Distinct():
            inner = node.expressions or [node.this]
            return all(_is_integer(each, integers) for each in inner)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _is_integer(node.this, integers) and _is_integer(node.expression, integers)
    return False


def _spark_names(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() in _SPARK_NAMES:
        return exp.Anonymous(this=_SPARK_NAMES[node.name.lower()], expressions=node.expressions)
    return node
