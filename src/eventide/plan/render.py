"""Expressions as text, for plans and errors, as a person would write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import assert_never

from eventide.plan.expressions import (
    Aggregate,
    At,
    Call,
    Cast,
    Classifier,
    Column,
    Expression,
    Frame,
    Literal,
    MatchAggregate,
    MatchNumber,
    Named,
    NamedAggregate,
    OrderKey,
    Over,
    PeriodPart,
    RangeFrame,
    RowsFrame,
    rebuild,
    rebuild_aggregate,
)
from eventide.plan.functions import FUNCTIONS, Function
from eventide.plan.times import format_duration, format_timestamp
from eventide.schema import STRING

_TIGHTEST = 10


def render(expression: Expression) -> str:
    """Return an expression as text.

    >>> from eventide.plan.expressions import integer
    >>> total = Call("+", (Column("a"), integer(1)))
    >>> render(Call("*", (total, Column("b"))))
    '(a + 1) * b'
    """
    match expression:
        case Column(name=name):
            return name
        case Literal():
            return _literal(expression)
        case Call():
            return _call(expression)
        case Cast(argument=argument, type=data_type, or_null=or_null):
            return f"{'TRY_CAST' if or_null else 'CAST'}({render(argument)} AS {data_type})"
        case Aggregate(argument=argument):
            if expression.time is not None:
                values = "" if argument is None else f"{render(argument)}, "
                half_life = format_duration(int(expression.parameter or 0))
                return f"{expression.function}({values}'{half_life}')"
            return _aggregate(expression, "*" if argument is None else render(argument))
        case Over(aggregate=aggregate, keys=keys, frame=frame):
            return f"{render(aggregate)} OVER ({render_over(keys, frame)})"
        case At() | MatchAggregate() | Classifier() | MatchNumber():
            return _of_match(expression)
        case PeriodPart(variable=variable, part=part):
            return f"{part}({variable})"
    assert_never(expression)


def _of_match(expression: At | MatchAggregate | Classifier | MatchNumber) -> str:
    match expression:
        case Classifier():
            return "CLASSIFIER()"
        case MatchNumber():
            return "MATCH_NUMBER()"
        case MatchAggregate(variable=variable):
            plain = expression.plain
            if variable is not None:
                plain = rebuild_aggregate(plain, partial(_with_variable, variable=variable))
            text = _qualified(expression.argument, variable)
            return f"{'FINAL ' if expression.final else ''}{_aggregate(plain, text)}"
        case At(argument=argument, variable=variable, edge=edge, offset=offset, shift=shift):
            text = _qualified(argument, variable)
            if edge != "last" or offset or expression.final:
                far = f", {offset}" if offset else ""
                text = f"{'FINAL ' if expression.final else ''}{edge.upper()}({text}{far})"
            if shift:
                far = f", {abs(shift)}" if abs(shift) != 1 else ""
                text = f"{'PREV' if shift < 0 else 'NEXT'}({text}{far})"
            return text
    assert_never(expression)


def _aggregate(aggregate: Aggregate, argument: str) -> str:
    parameter = aggregate.parameter
    behind = "" if aggregate.second is None else f", {render(aggregate.second)}"
    if parameter is not None:
        behind += f", {_literal(Literal(parameter, STRING))}"
    if aggregate.kept is not None:
        behind += f", {aggregate.kept}"
    distinct = "DISTINCT " if aggregate.distinct else ""
    text = f"{aggregate.function}({distinct}{argument}{behind})"
    if aggregate.condition is not None:
        text += f" FILTER (WHERE {render(aggregate.condition)})"
    return text


def _qualified(argument: Expression | None, variable: str | None) -> str:
    """Return an argument with its columns qualified by a pattern variable."""
    prefix = f"{variable}." if variable is not None else ""
    if argument is None:
        return f"{prefix}*"
    return render(_with_variable(argument, variable)) if variable is not None else render(argument)


def _with_variable(expression: Expression, variable: str) -> Expression:
    match expression:
        case Column(name=name):
            return replace(expression, name=f"{variable}.{name}")
        case Classifier():
            return Column(f"CLASSIFIER({variable})")
    return rebuild(expression, lambda part: _with_variable(part, variable))


def render_items(items: Iterable[Named | NamedAggregate]) -> str:
    """Return named expressions as text."""
    return ", ".join(render_as(item.expression, item.name) for item in items)


def render_as(expression: Expression, name: str) -> str:
    """Return an expression as text, with its name if that is another."""
    text = render(expression)
    return text if text == name else f"{text} AS {name}"


def render_computed(items: Iterable[Named | NamedAggregate]) -> str:
    """Return the last part of a line: what a node computes."""
    shown = render_items(items)
    return f": {shown}" if shown else ""


def render_order(order: Iterable[OrderKey]) -> str:
    """Return an order as text."""
    return ", ".join(
        render(key.expression)
        + (" DESC" if key.descending else "")
        + (" NULLS FIRST" if key.nulls_first else "")
        for key in order
    )


def render_equal(keys: tuple[tuple[Expression, ...], ...]) -> str:
    """Return as text which keys of several sources are equal."""
    pairs = [" = ".join(map(render, parts)) for parts in zip(*keys, strict=True)]
    return f" on {' and '.join(pairs)}" if pairs else ""


def render_over(keys: tuple[Expression, ...], frame: Frame) -> str:
    """Return the keys and the frame of a window as text."""
    by = f"by {', '.join(map(render, keys))}, " if keys else ""
    return by + render_frame(frame)


def render_frame(frame: Frame) -> str:
    """Return a frame as text."""
    match frame:
        case RangeFrame(preceding_us=preceding):
            return f"last {format_duration(preceding)}"
        case RowsFrame(preceding=preceding):
            return f"last {preceding + 1} rows"
    assert_never(frame)


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, int) and literal.type.kind == "timestamp":
        return f"TIMESTAMP '{format_timestamp(value)}'"
    if isinstance(value, int) and literal.type.kind == "interval":
        return f"INTERVAL '{format_duration(value)}'"
    return str(value)


def _call(call: Call) -> str:
    function = FUNCTIONS.get(call.function)
    if function is None or function.form == "call":
        return f"{call.function}({', '.join(map(render, call.arguments))})"
    if function.form == "case":
        return _case(call.arguments)
    first, *others = (_inside(each, function) for each in call.arguments)
    match function.form:
        case "prefix":
            return f"-{first}" if function.name == "negate" else _negated(call.arguments[0], first)
        case "postfix":
            return f"{first} {function.name.upper()}"
        case "in":
            return f"{first} IN ({', '.join(map(render, call.arguments[1:]))})"
    # The right side of the same precedence needs brackets: a - (b - c).
    right = _inside(call.arguments[1], function, tighter=function.name not in ("and", "or"))
    escape = f" ESCAPE {others[1]}" if len(others) > 1 else ""
    return f"{first} {function.name.upper()} {right}{escape}"


def _negated(argument: Expression, text: str) -> str:
    match argument:
        case Call(function="is null", arguments=(inner,)):
            return f"{_inside(inner, FUNCTIONS['is null'])} IS NOT NULL"
        case Call(function="like" | "ilike" | "in" as name):
            return text.replace(f" {name.upper()} ", f" NOT {name.upper()} ", 1)
    return f"NOT {text}"


def _inside(expression: Expression, outer: Function, *, tighter: bool = False) -> str:
    text = render(expression)
    inner = _precedence(expression)
    needs = inner < outer.precedence or (tighter and inner == outer.precedence)
    return f"({text})" if needs else text


def _precedence(expression: Expression) -> int:
    if isinstance(expression, Call) and expression.function in FUNCTIONS:
        return FUNCTIONS[expression.function].precedence
    if isinstance(expression, Literal) and str(expression.value).startswith("-"):
        return FUNCTIONS["negate"].precedence
    return _TIGHTEST


def _case(arguments: tuple[Expression, ...]) -> str:
    *branches, otherwise = map(render, arguments)
    pairs = zip(branches[::2], branches[1::2], strict=True)
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"CASE {whens} ELSE {otherwise} END"
