"""The rest of a cut query as text, in the dialect of each engine that can run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.errors import UnsupportedError as SqlglotUnsupportedError

from eventide.errors import Span, UnsupportedError
from eventide.lang.constants import timestamp
from eventide.lang.sql.functions.arguments import unread
from eventide.lang.sql.functions.formats import as_codes, read_letters
from eventide.lang.sql.functions.kinds import Kinds, column_kinds, kind_of
from eventide.lang.sql.functions.on_spark.rewrites import in_sparks_words
from eventide.lang.sql.rest.outside import refuse_outside
from eventide.lang.sql.spans import span_of, written
from eventide.lang.sql.types import is_timestamp
from eventide.plan.bind import bind
from eventide.plan.times import format_timestamp
from eventide.plan.tree import Plan
from eventide.schema import Schema

_ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}
_ELSEWHERE = "write it with other functions; docs/sql.md lists those of texts and times"


def rest_sql(
    rest: exp.Expr, inputs: Mapping[str, Plan], catalog: Mapping[str, Schema]
) -> tuple[str, str | UnsupportedError]:
    """Return what remains of a query as DuckDB's SQL and as Spark's, or why Spark has none."""
    refuse_outside(rest, inputs)
    common = rest.transform(_null_on_zero).transform(_in_utc).transform(_as_our_types)
    common = common.transform(_as_codes).transform(_as_our_aggregates)
    integers = _integer_columns(inputs, catalog)
    kinds = column_kinds(inputs, catalog)
    ours = _whole_milliseconds(_narrow_sums(common.copy(), integers), kinds)
    duckdb = said(ours.transform(_narrow_lengths).transform(_by_characters), "duckdb")
    try:
        spark = in_sparks_words(common.copy(), kinds)
        # A user without Spark need not hear what it lacks.
        return duckdb, said(spark, "spark")
    except UnsupportedError as error:
        return duckdb, error


def said(rest: exp.Expr, dialect: str) -> str:
    """Return SQL in a dialect; what the dialect cannot express is an error with its place."""
    try:
        text = rest.sql(dialect=dialect, unsupported_level=ErrorLevel.RAISE)
    except SqlglotUnsupportedError as error:
        culprit = _culprit(rest, dialect)
        reason = str(error).splitlines()[0].removesuffix(".")
        what = written(culprit)
        message = f"{what} has no form in {_ENGINES[dialect]}'s SQL: {reason}"
        raise UnsupportedError(message, span=span_of(culprit), hint=_ELSEWHERE) from None
    for node in rest.find_all(exp.Func):
        lost = _lost(node, dialect)
        if lost is not None:
            name = node.sql_name()
            message = f"this argument of {name} has no form in {_ENGINES[dialect]}'s SQL"
            place = span_of(lost) or span_of(node)
            raise UnsupportedError(message, span=place, hint="leave it out")
    return text


def _culprit(rest: exp.Expr, dialect: str) -> exp.Expr:
    """Return the innermost node that a dialect cannot express."""
    for node in reversed(list(rest.walk())):
        try:
            node.sql(dialect=dialect, unsupported_level=ErrorLevel.RAISE)
        except SqlglotUnsupportedError:
            return node
    return rest


_SIMPLE = (exp.Column, exp.Func, exp.Binary, exp.Unary, exp.Case, exp.Query)


def _lost(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """Return an argument that a dialect ignores: the text is the same with and without it."""
    if isinstance(node, exp.Cast | exp.Case | exp.AggFunc | exp.Anonymous | exp.Connector):
        return None
    shape = {
        key: exp.column("x")
        if isinstance(value, _SIMPLE) and not isinstance(value, exp.Interval)
        else value
        for key, value in node.args.items()
    }
    for key, value in node.args.items():
        # What sqlglot itself adds, such as the group of a regular expression, has no place.
        if not isinstance(value, exp.Expr) or key == "this" or span_of(value) is None:
            continue
        without = {name: each for name, each in shape.items() if name != key}
        if _text(type(node), shape, dialect) == _text(type(node), without, dialect):
            return value
    return None


def _text(kind: type[exp.Expr], arguments: dict[str, Any], dialect: str) -> str:
    copied = {
        key: value.copy() if isinstance(value, exp.Expr) else value
        for key, value in arguments.items()
    }
    try:
        return kind(**copied).sql(dialect=dialect, unsupported_level=ErrorLevel.IGNORE)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, SqlglotError):
        # A generator that needs the argument does not lose it.
        return repr(sorted(arguments))


def _as_codes(node: exp.Expr) -> exp.Expr:
    """TO_CHAR(ts, 'YYYY-MM-DD') -> STRFTIME(ts, '%Y-%m-%d')."""
    if not isinstance(node, exp.ToChar):
        return node
    written = node.args.get("format")
    if not (isinstance(written, exp.Literal) and written.is_string) or unread(
        node, "this", "format"
    ):
        message = "TO_CHAR takes a time and a format that is written in the query"
        hint = "write TO_CHAR(ts, 'YYYY-MM-DD HH24:MI:SS')"
        raise UnsupportedError(message, span=span_of(node), hint=hint)
    try:
        codes = as_codes(read_letters(written.name))
    except UnsupportedError as error:
        whole = span_of(written)
        if whole is not None and error.span is not None:
            inside = error.span
            error.span = Span(whole.start + 1 + inside.start, whole.start + 1 + inside.end)
        raise
    form = exp.TimeToStr(this=node.this, format=exp.Literal.string(codes))
    form.meta.update(node.meta)
    return form


def _as_our_aggregates(node: exp.Expr) -> exp.Expr:
    """QUANTILE(x, q) -> QUANTILE_CONT(x, q), EVERY(x) -> BOOL_AND(x): what they mean everywhere."""
    if isinstance(node, exp.Quantile) and unread(node, "this", "quantile") is None:
        return exp.PercentileCont(this=node.this, expression=node.args["quantile"])
    if isinstance(node, exp.Anonymous) and node.name.lower() == "every":
        return exp.LogicalAnd(this=node.expressions[0])
    return node


def _null_on_zero(node: exp.Expr) -> exp.Expr:
    """Turn a / b into a / NULLIF(b, 0): DuckDB would give infinity, Spark an error."""
    if not isinstance(node, exp.Div | exp.Mod | exp.IntDiv):
        return node
    divisor = node.expression
    if isinstance(divisor, exp.Nullif) or (
        isinstance(divisor, exp.Literal) and not _is_zero(divisor)
    ):
        return node
    # Done here for all engines, so sqlglot need not do it for some of them.
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
    or_null = isinstance(node, exp.TryCast)
    value = timestamp(str(literal.this), span_of(literal), or_null=or_null).value
    if isinstance(value, int):
        node.set("this", exp.Literal.string(format_timestamp(value)))
    return node


def _as_our_types(node: exp.Expr) -> exp.Expr:
    """CAST(… AS INT) -> CAST(… AS BIGINT): our operators have one integer and one float type."""
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


def _narrow_lengths(node: exp.Expr) -> exp.Expr:
    """LPAD(s, n, '-') -> LPAD(s, CAST(n AS INT), '-'): DuckDB's takes a short integer only."""
    if isinstance(node, exp.Pad) and not isinstance(node.expression, exp.Literal):
        node.set("expression", exp.cast(node.expression, exp.DType.INT))
    return node


def _whole_milliseconds(rest: exp.Expr, kinds: Kinds) -> exp.Expr:
    """EPOCH_MS(ts) -> EPOCH_US(ts) // 1000: DuckDB's own rounds in some versions."""
    for node in reversed(list(rest.find_all(exp.UnixToTime))):
        if kind_of(node.this, kinds) in ("timestamp", "interval"):
            us = exp.Anonymous(this="EPOCH_US", expressions=[node.this.copy()])
            form = exp.IntDiv(this=us, expression=exp.Literal.number(1000))
            node.replace(exp.Paren(this=form))
    return rest


def _by_characters(node: exp.Expr) -> exp.Expr:
    """Return TRIM and REVERSE as our operators and Spark have them.

    DuckDB's own TRIM also removes white space other than U+0020, and its REVERSE keeps combining
    characters behind their letters.
    """
    if isinstance(node, exp.Trim) and node.expression is None:
        node.set("expression", exp.Literal.string(" "))
    if not isinstance(node, exp.Reverse):
        return node
    nothing = exp.Literal.string("")
    split = exp.Anonymous(this="STRING_SPLIT", expressions=[node.this, nothing.copy()])
    turned = exp.Anonymous(this="LIST_REVERSE", expressions=[split])
    return exp.Anonymous(this="ARRAY_TO_STRING", expressions=[turned, nothing])


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
