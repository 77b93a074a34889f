"""FROM (VALUES (TIMESTAMP '…', 1), …) AS t(ts, a): rows that an operator reads as events."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.expressions import Translator
from eventide.lang.sql.names.columns import fresh
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.spans import span_of
from eventide.plan.bind import bind_expression
from eventide.plan.constants import cast_constant
from eventide.plan.expressions import Call, Cast, Expression, Literal
from eventide.plan.nodes import Scan, WrittenRows
from eventide.plan.types import common_type
from eventide.schema import INTERVAL, NULL, SEQ, STRING, TIMESTAMP, TS, DataType, Schema

_SHAPE = "(VALUES (TIMESTAMP '2026-01-01 00:00:00', 1), …) AS t(ts, a)"


def written_scope(values: exp.Values, text: str, taken: Collection[str]) -> tuple[Scope, Schema]:
    """Return the scope of VALUES that are read as events, and their schema."""
    alias = values.args.get("alias")
    names = [each.name for each in alias.columns] if alias is not None else []
    rows = [_constants(row, text) for row in values.expressions]
    for row, written in zip(rows, values.expressions, strict=True):
        if len(row) != len(names):
            message = f"a row of VALUES has {len(row)} values, and the list {len(names)} names"
            hint = f"name every column, one of them ts: {_SHAPE}"
            raise BindError(message, span=span_of(written), hint=hint)
    if TS not in [name.lower() for name in names] or len({*map(str.lower, names)}) < len(names):
        message = "VALUES that are read as events have a time, in a column ts"
        hint = f"name the columns, each once, and one of them ts: {_SHAPE}"
        raise BindError(message, span=span_of(alias or values), hint=hint)
    names = [TS if name.lower() == TS else name for name in names]
    if SEQ in [name.lower() for name in names]:
        refuse(f"a column {SEQ} in VALUES", values, "leave it out: rows are numbered as they stand")
    columns = [
        _column(name, column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    ]
    kinds = tuple((name, kind) for name, (kind, _) in zip(names, columns, strict=True))
    stream = fresh(values.alias or "values", taken)
    written = WrittenRows(kinds, tuple(zip(*(each for _, each in columns), strict=True)))
    attributes = {name: str(kind) for name, kind in kinds if name != TS}
    schema = Schema.of(attributes)
    scan = Scan(stream, tuple(schema.fields()), span=span_of(values), written=written)
    return Scope(values.alias, values.alias, schema.visible, scan), schema


def _constants(row: exp.Expr, text: str) -> list[Literal]:
    cells = row.expressions if isinstance(row, exp.Tuple) else [row]
    nothing = Scope("VALUES", "", [], Scan(""))
    found = []
    for cell in cells:
        value = _constant(bind_expression(Translator(nothing, text).translate(cell), {}))
        if value is None:
            hint = "write numbers, texts, TIMESTAMP '…', TRUE, FALSE or NULL"
            refuse("VALUES that are read as events hold constants", cell, hint)
        found.append(value)
    return found


def _constant(expression: Expression) -> Literal | None:
    """Return the value of a literal, also of a negative or a cast one."""
    match expression:
        case Literal():
            return expression
        case Call(function="negate", arguments=(Literal(value=int() | float() | Decimal()) as of,)):
            assert isinstance(of.value, int | float | Decimal)
            return Literal(-of.value, of.type, expression.span)
        case Cast(argument=argument, type=kind):
            inner = _constant(argument)
            return None if inner is None else cast_constant(inner, kind)
    return None


def _column(name: str, column: tuple[Literal, ...]) -> tuple[DataType, list[object]]:
    """Return the type of a column, and its values as that type."""
    kind = common_type(each.type for each in column)
    kind = STRING if kind == NULL else kind
    if name == TS:
        kind = TIMESTAMP
    values: list[object] = []
    for each in column:
        one = None if kind is None else cast_constant(each, kind)
        timeless = one is not None and name == TS and one.value is None
        if kind is None or one is None or kind == INTERVAL or timeless:
            message = f"{name} in VALUES is {each.type} here"
            hint = "a column has values of one type, no intervals, and ts a time in every row"
            raise BindError(message, span=each.span, hint=hint)
        values.append(one.value)
    assert kind is not None
    return kind, values
