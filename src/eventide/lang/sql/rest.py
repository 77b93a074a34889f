"""The rest of a cut query as text, in the dialect of each engine that can run it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from eventide.lang.sql.expressions import unknown_function
from eventide.lang.sql.functions import ANONYMOUS
from eventide.lang.sql.literals import is_timestamp, timestamp
from eventide.lang.sql.spans import span_of
from eventide.plan.functions import DATE_PARTS, FUNCTIONS
from eventide.plan.nodes import Plan, scans_of
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
    _refuse_unknown_functions(rest)
    common = rest.transform(_null_on_zero).transform(_in_utc)
    integers = _integer_columns(inputs, catalog)
    duckdb = common.transform(lambda node: _narrow_sum(node, integers))
    spark = common.transform(_spark_names)
    return duckdb.sql(dialect="duckdb"), spark.sql(dialect="spark")


def _refuse_unknown_functions(rest: exp.Expr) -> None:
    for node in rest.find_all(exp.Anonymous):
        name = node.name.lower()
        if not (
            name in FUNCTIONS or name in ANONYMOUS or name in DATE_PARTS or name == "date_part"
        ):
            raise unknown_function(node, span_of(node))


def _null_on_zero(node: exp.Expr) -> exp.Expr:
    """Turn a / b into a / NULLIF(b, 0): DuckDB would give infinity, Spark an error."""
    if not isinstance(node, exp.Div | exp.Mod | exp.IntDiv):
        return node
    divisor = node.expression
    if isinstance(divisor, exp.Nullif) or (
        isinstance(divisor, exp.Literal) and not _is_zero(divisor)
    ):
        return node
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


def _integer_columns(inputs: Mapping[str, Plan], catalog: Mapping[str, Schema]) -> frozenset[str]:
    """Return the names that are int64 columns in every stream that has them."""
    integers: set[str] = set()
    others: set[str] = set()
    for scan in (scan for plan in inputs.values() for scan in scans_of(plan)):
        for name, data_type in catalog[scan.stream].fields():
            (integers if data_type.kind == "int64" else others).add(name.lower())
    return frozenset(integers - others)


def _narrow_sum(node: exp.Expr, integers: frozenset[str]) -> exp.Expr:
    """SUM(int) -> CAST(SUM(int) AS BIGINT): DuckDB would give a type that only it has."""
    inner = node.parent if isinstance(node, exp.Sum) else None
    if not isinstance(node, exp.Sum) or isinstance(inner, exp.Window | exp.Filter | exp.Cast):
        return node
    columns = [column.name.lower() for column in node.find_all(exp.Column)]
    whole = all(
        isinstance(part, exp.Column | exp.Identifier | exp.Add | exp.Sub | exp.Mul | exp.Paren)
        or (isinstance(part, exp.Literal) and part.is_int)
        for part in node.this.walk()
    )
    if not (whole and columns and integers.issuperset(columns)):
        return node
    return exp.cast(node, exp.DataType.Type.BIGINT)


def _spark_names(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() in _SPARK_NAMES:
        return exp.Anonymous(this=_SPARK_NAMES[node.name.lower()], expressions=node.expressions)
    return node
