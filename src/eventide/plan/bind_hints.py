"""Hints: what to write instead, where the types of an expression do not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeGuard

from eventide.plan.expressions import Call, Expression, Literal, children
from eventide.plan.render import render
from eventide.plan.times import parse_duration
from eventide.plan.types import can_cast
from eventide.schema import INT64, NULL, STRING, DataType

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_OR_HINT = "|| joins texts; conditions are joined with OR"
_SHORT = 30
"""Expressions up to this length are shown in the hint."""


def cast_advice(source: DataType, target: DataType) -> str | None:
    """Say what to write in place of a cast that does not exist."""
    advice: dict[tuple[str, str], str] = {
        ("timestamp", "int64"): "EPOCH_US(…) gives the microseconds since 1970",
        ("timestamp", "float64"): "EPOCH(…) gives the seconds since 1970",
        ("int64", "timestamp"): "MAKE_TIMESTAMP(…) takes microseconds since 1970",
        ("interval", "int64"): "EPOCH_US(…) gives its microseconds",
        ("interval", "float64"): "EPOCH(…) gives its seconds",
        ("interval", "string"): "EPOCH(…) gives its seconds",
    }
    return advice.get((source.kind, target.kind))


def cast_hint(arguments: tuple[Expression, ...]) -> str | None:
    """Suggest the cast that makes the types fit, where there is an obvious one."""
    kinds = {argument.type.kind for argument in arguments}
    if "list" in kinds:
        return "a list is reported as a whole: compare and aggregate the values that it is made of"
    texts = [argument for argument in arguments if argument.type == STRING]
    others = [argument.type for argument in arguments if argument.type not in (STRING, NULL)]
    if texts and others and others[0].is_numeric and _is_number(texts[0]):
        return f"write {str(texts[0].value).strip()}"
    if texts and others and can_cast(STRING, others[0]):
        return f"cast one side, as in CAST({render(texts[0])} AS {_sql_name(others[0])})"
    if texts and len(kinds) == 1:
        return f"cast it, as in CAST({render(texts[0])} AS double)"
    return None


def _is_number(expression: Expression) -> TypeGuard[Literal]:
    """Whether it is a text that holds a number."""
    text = expression.value if isinstance(expression, Literal) else None
    return isinstance(text, str) and _NUMBER.fullmatch(text.strip()) is not None


def interval_hint(call: Call, arguments: tuple[Expression, ...]) -> str | None:
    """Suggest the interval that is meant by a number or a text beside a length of time."""
    kinds = {argument.type.kind for argument in arguments}
    if "interval" not in kinds and not (call.function in ("+", "-") and "timestamp" in kinds):
        return None
    for argument in arguments:
        shown = render(argument)
        if _is_number(argument):
            return f"write INTERVAL {shown} SECOND"
        if argument.type == STRING:
            known = isinstance(argument, Literal) and parse_duration(str(argument.value))
            return f"write INTERVAL {shown}" if known else "write INTERVAL '30' SECOND"
        if argument.type.is_numeric and call.function in ("/", "%"):
            return "multiply an interval by a whole number, as in INTERVAL '100' MILLISECOND * 5"
        if argument.type.is_numeric:
            if isinstance(argument, Literal):
                return f"write INTERVAL '{shown}' SECOND"
            if argument.type == INT64:
                return f"write {shown} * INTERVAL '1' SECOND"
            # Only whole numbers multiply an interval.
            micros = f"CAST({shown} * 1000000 AS BIGINT) * INTERVAL '1' MICROSECOND"
            return f"if it is seconds, write {micros}"
    return None


def joined_hint(arguments: tuple[Expression, ...]) -> str | None:
    """Explain || if it seems to stand between conditions."""
    inside = [part for each in arguments for part in (each, *children(each))]
    joined = any(isinstance(part, Call) and part.function == "||" for part in inside)
    unlike = any(argument.type not in (STRING, NULL) for argument in arguments)
    return _OR_HINT if joined and unlike else None


def compare_hint(condition: Expression, data_type: DataType) -> str:
    """Suggest a comparison that turns a value into a condition."""
    if isinstance(condition, Call) and condition.function == "||":
        return _OR_HINT
    endings: Mapping[str, str] = {
        "string": "= '…'",
        "timestamp": "> TIMESTAMP '2026-01-31 12:00:00'",
        "interval": "> INTERVAL '30' SECOND",
    }
    shown = render(condition)
    shown = shown if len(shown) <= _SHORT else "…"
    return f"compare it, as in {shown} {endings.get(data_type.kind, '<> 0')}"


def text_hint(arguments: tuple[Expression, ...]) -> str | None:
    """Suggest to write the first argument that is not text as text."""
    others = [argument for argument in arguments if argument.type not in (STRING, NULL)]
    if others and not can_cast(others[0].type, STRING):
        return None
    return f"cast it, as in CAST({render(others[0])} AS varchar)" if others else None


def _sql_name(data_type: DataType) -> str:
    names: Mapping[str, str] = {"int64": "bigint", "float64": "double", "string": "varchar"}
    return names.get(data_type.kind, str(data_type))
