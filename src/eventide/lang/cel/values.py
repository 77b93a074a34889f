"""Values and conditions of CEL → expressions. `bind` adds the types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Protocol, cast

from lark import Token, Tree

from eventide.errors import BindError, Span
from eventide.lang.cel.functions import call_of, refuse_aggregate
from eventide.lang.cel.parse import name_text
from eventide.lang.cel.tree import Value, span_of
from eventide.lang.constants import decimal_type, number, timestamp
from eventide.lang.parameters import Parameter, known_value
from eventide.plan.bind import suggestion
from eventide.plan.expressions import Call, Cast, Expression, Literal
from eventide.plan.times import duration_us, parse_duration, scaled_duration
from eventide.schema import (
    BINARY,
    BOOL,
    FLOAT64,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
)

NO_VALUES: Mapping[int, object] = {}
_NULL = Literal(None, NULL)
_TYPES: Mapping[str, DataType] = {
    **dict.fromkeys(("bool", "boolean"), BOOL),
    **dict.fromkeys(("int", "integer", "bigint", "int64"), INT64),
    **dict.fromkeys(("double", "float", "float64", "real"), FLOAT64),
    **dict.fromkeys(("text", "varchar", "string", "char"), STRING),
    **dict.fromkeys(("timestamp", "datetime"), TIMESTAMP),
    **dict.fromkeys(("blob", "bytea", "binary", "varbinary"), BINARY),
}
_COMPARISONS = {"!=": "<>", "==": "="}


class Names(Protocol):
    """What the names in a value mean."""

    def attribute(self, name: str, span: Span) -> Expression:
        """Return an attribute by its plain name."""

    def sided(self, side: str, name: str, span: Span) -> Expression:
        """Return an attribute behind a decorator: `side` is `$1`, `$2` or `$`."""

    def length(self, span: Span, side: str | None = None) -> Expression:
        """Return how long the event lasts, or that of a side."""


@dataclass(frozen=True)
class ValueReader:
    """Turns values into expressions. `values` are those of parameters, by their places."""

    names: Names
    values: Mapping[int, object]

    def read(self, value: Value) -> Expression:
        """Return the expression that a value stands for."""
        span, parts = span_of(value), value.children
        match value.data:
            case "either" | "both" as joined:
                return self.call("or" if joined == "either" else "and", value)
            case "not":
                return self.call("not", value)
            case "negative":
                return self.call("negate", value)
            case "positive":
                return self.read(_tree(parts[-1]))
            case "compared" | "operation":
                left, sign, right = parts
                name = _COMPARISONS.get(str(sign), str(sign))
                return Call(name, (self.read(_tree(left)), self.read(_tree(right))), span=span)
        found = self.predicate(value) or self.constant(value) or self.name(value)
        return found or self.function(value)

    def call(self, function: str, value: Value, *, negated: bool = False) -> Expression:
        """Return a call with the parts of a value as arguments."""
        span = span_of(value)
        arguments = tuple(self.read(part) for part in value.children if isinstance(part, Tree))
        found = Call(function, arguments, span=span)
        return Call("not", (found,), span=span) if negated else found

    def predicate(self, value: Value) -> Expression | None:
        """Return IS, IN, LIKE or BETWEEN."""
        kind = str(value.data)
        negated = "not_" in kind
        match kind.replace("not_", ""):
            case "is_null":
                return self.call("is null", value, negated=negated)
            case "distinct":
                name = "is not distinct from" if negated else "is distinct from"
                return self.call(name, value)
            case "is_truth":
                tested, word = value.children
                truth = Literal(str(word).upper() == "TRUE", BOOL, span_of(cast("Token", word)))
                same = (self.read(_tree(tested)), truth)
                found = Call("is not distinct from", same, span=span_of(value))
                return Call("not", (found,), span=span_of(value)) if negated else found
            case "among":
                return self.call("in", value, negated=negated)
            case "like":
                word = next(part for part in value.children if isinstance(part, Token))
                return self.call(str(word).lower(), value, negated=negated)
            case "between":
                return self.between(value, negated=negated)
        return None

    def between(self, value: Value, *, negated: bool) -> Expression:
        """Return BETWEEN as two comparisons."""
        span = span_of(value)
        tested, low, high = (self.read(_tree(part)) for part in value.children)
        above, below = Call(">=", (tested, low), span=span), Call("<=", (tested, high), span=span)
        found = Call("and", (above, below), span=span)
        return Call("not", (found,), span=span) if negated else found

    def constant(self, value: Value) -> Expression | None:
        """Return a literal, or the value of a parameter."""
        span, parts = span_of(value), [str(part) for part in value.children]
        match value.data:
            case "number":
                return number(parts[0], span)
            case "text":
                return Literal(_text(parts[0]), STRING, span)
            case "truth":
                return Literal(parts[0].upper() == "TRUE", BOOL, span)
            case "null":
                return Literal(None, NULL, span)
            case "duration":
                return Literal(duration_us(" ".join(parts)), INTERVAL, span)
            case "interval":
                unit = value.children[1]
                return _interval(_text(parts[0]), None if unit is None else str(unit), span)
            case "time":
                return timestamp(_text(parts[0]), span)
            case "parameter":
                return _given(self.values[span.start], Parameter(parts[0].strip("?$"), span))
        return None

    def name(self, value: Value) -> Expression | None:
        """Return an attribute, or a length."""
        span = span_of(value)
        match value.data, value.children:
            case "attribute", [name]:
                return self.names.attribute(spelled(name), span)
            case "sided", [side, name]:
                return self.names.sided(_side(str(side)), spelled(name), span)
            case "length", _:
                return self.names.length(span)
            case "sided_length", [side]:
                return self.names.length(span, _side(str(side)))
        return None

    def function(self, value: Value) -> Expression:
        """Return a CASE, a cast or a call."""
        span = span_of(value)
        match value.data, value.children:
            case "case", [tested, *branches, otherwise]:
                return self.case(tested, branches, otherwise, span)
            case "cast", [word, argument, kind]:
                or_null = str(word).upper().startswith("TRY")
                return self.cast(_tree(argument), _tree(kind), span, or_null=or_null)
            case "as_type", [argument, kind]:
                return self.cast(_tree(argument), _tree(kind), span)
            case "extract", [part, argument]:
                asked = Literal(_word(str(part)), STRING, span)
                return call_of("date_part", (asked, self.read(_tree(argument))), span)
            case "call", [name, distinct, arguments]:
                refuse_aggregate(str(name), span)
                if str(distinct).upper() == "DISTINCT":
                    message = f"DISTINCT is for aggregates, and {name} is none"
                    raise BindError(message, span=span, hint="leave it out")
                given = arguments.children if isinstance(arguments, Tree) else []
                return call_of(str(name), tuple(self.read(_tree(each)) for each in given), span)
            case "call_of_all", [name, _]:
                refuse_aggregate(str(name), span)
                message = f"{name} takes values, not *"
                raise BindError(message, span=span, hint="name an attribute")
        message = f"the grammar has {value.data}, and nothing reads it"
        raise AssertionError(message)

    def case(
        self, tested: object, branches: list[Token | Value], otherwise: object, span: Span
    ) -> Expression:
        """Return a CASE of either form."""
        parts: list[Expression] = []
        for branch in map(_tree, branches):
            condition, result = (self.read(_tree(each)) for each in branch.children)
            if isinstance(tested, Tree):
                compared = (self.read(tested), condition)
                condition = Call("=", compared, span=span_of(branch))
            parts += [condition, result]
        last = self.read(otherwise) if isinstance(otherwise, Tree) else _NULL
        return Call("case", (*parts, last), span=span)

    def cast(
        self, argument: Value, kind: Value, span: Span, *, or_null: bool = False
    ) -> Expression:
        """Return a cast; of a text to a time, the time."""
        target = _type(kind)
        if target == TIMESTAMP and argument.data == "text":
            (text,) = argument.children
            return timestamp(_text(str(text)), span_of(argument), or_null=or_null)
        return Cast(self.read(argument), target, span, or_null=or_null)


def _tree(part: object) -> Value:
    assert isinstance(part, Tree), f"{part} is no value"
    return part


def spelled(part: object) -> str:
    """Return a name as the text has it, without quotes."""
    (token,) = _tree(part).children
    assert isinstance(token, Token)
    return name_text(token)


def _side(token: str) -> str:
    return token.rstrip(".").strip()


def _text(quoted: str) -> str:
    return quoted[1:-1].replace("''", "'")


def _word(text: str) -> str:
    return _text(text) if text.startswith("'") else text


def _interval(text: str, unit: str | None, span: Span) -> Literal:
    us = parse_duration(text) if unit is None else scaled_duration(text, unit)
    if us is None:
        shown = f"'{text}'" + (f" {unit}" if unit else "")
        message = f"{shown} is not a length of time"
        raise BindError(message, span=span, hint="write 90 s, 10 min, 2 hours or 52 weeks")
    return Literal(us, INTERVAL, span)


def _type(kind: Value) -> DataType:
    name, *sizes = kind.children
    given = [str(each) for each in sizes if each is not None]
    lower, span = str(name).lower(), span_of(kind)
    if lower in ("decimal", "numeric"):
        return decimal_type(given, span)
    found = _TYPES.get(lower)
    if found is None or given:
        message = f"no type {str(name)!r}" if found is None else f"{name} has no size"
        known = ["boolean", "bigint", "double", "varchar", "timestamp", "decimal", "blob"]
        hint = suggestion(lower, known, "type") if found is None else f"write {name}"
        raise BindError(message, span=span, hint=hint)
    return found


def _given(given: object, parameter: Parameter) -> Expression:
    """Return the value of a parameter as a constant of its own type."""
    value, span = known_value(given, parameter), parameter.span
    match value:
        case None:
            return Literal(None, NULL, span)
        case bool():
            return Literal(value, BOOL, span)
        case str():
            return Literal(value, STRING, span)
        case int() | Decimal():
            text = f"{abs(value):f}" if isinstance(value, Decimal) else str(abs(value))
            text += "." if isinstance(value, Decimal) and "." not in text else ""
            found = number(text, span)
            negative = value.is_signed() if isinstance(value, Decimal) else value < 0
            return Call("negate", (found,), span=span) if negative else found
        case float():
            if isfinite(value):
                return Literal(value, FLOAT64, span)
            return Cast(Literal(repr(value), STRING, span), FLOAT64, span)
        case datetime() | date():
            return timestamp(str(value), span)
        case timedelta():
            return Literal(value // timedelta(microseconds=1), INTERVAL, span)
