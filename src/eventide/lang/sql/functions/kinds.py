"""The kind of value that an expression of the rest gives, as far as its form shows."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from eventide.lang.sql.types import is_timestamp
from eventide.plan.bind import bind
from eventide.plan.tree import Plan
from eventide.schema import Schema

Kinds = Mapping[str, str]

KIND = "kind"
"""The key under which a rewritten node remembers the kind of value it gave."""
WHOLE = "whole"
"""A number of some kind that has no fraction."""

_FLOATS = (
    exp.Div,
    exp.Avg,
    exp.Stddev,
    exp.Sqrt,
    exp.Ln,
    exp.Log,
    exp.Exp,
    exp.Pow,
    exp.TimeToUnix,
)
_INTEGERS = (exp.Count, exp.Length, exp.StrPosition, exp.Extract, exp.DateDiff, exp.Levenshtein)
_STRINGS = (
    *(exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Replace),
    *(exp.Concat, exp.ConcatWs, exp.DPipe, exp.SplitPart, exp.Pad, exp.Reverse, exp.TimeToStr),
)
_SAME = (exp.Paren, exp.Neg, exp.Abs, exp.Min, exp.Max, exp.First, exp.Last, exp.Distinct)
_CASTS = {
    exp.DType.BIGINT: "int64",
    exp.DType.INT: "int64",
    exp.DType.DOUBLE: "float64",
    exp.DType.FLOAT: "float64",
    exp.DType.TEXT: "string",
    exp.DType.VARCHAR: "string",
    exp.DType.BOOLEAN: "bool",
    exp.DType.DECIMAL: "decimal",
    exp.DType.DATE: "date",
    exp.DType.VARBINARY: "binary",
}


def column_kinds(inputs: Mapping[str, Plan], catalog: Mapping[str, Schema]) -> Kinds:
    """Return the kinds of columns that have the same kind in every input that has them."""
    kinds: dict[str, set[str]] = {}
    for plan in inputs.values():
        for name, data_type in bind(plan, catalog).row.items():
            kinds.setdefault(name.lower(), set()).add(data_type.kind)
    return {name: found.pop() for name, found in kinds.items() if len(found) == 1}


def kind_of(node: exp.Expr, kinds: Kinds) -> str | None:  # noqa: PLR0911, PLR0912
    """Return the kind of an expression, or None if its form does not show it."""
    if KIND in node.meta:
        remembered: str | None = node.meta[KIND]
        return remembered
    match node:
        case exp.Column():
            return kinds.get(node.name.lower())
        case exp.Literal():
            if node.is_string:
                return "string"
            if node.is_int:
                return "int64"
            return "float64" if "e" in node.name.lower() else "decimal"
        case exp.Cast():
            return "timestamp" if is_timestamp(node.to) else _CASTS.get(node.to.this)
        case exp.Boolean():
            return "bool"
        case exp.Interval():
            return "interval"
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            return _arithmetic(node, kind_of(node.this, kinds), kind_of(node.expression, kinds))
        case exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Nullif():
            parts = [node.this, *node.expressions]
            found = {kind_of(each, kinds) for each in parts if not isinstance(each, exp.Null)}
            return found.pop() if len(found) == 1 else None
        case exp.Floor() | exp.Ceil() | exp.Trunc() | exp.Round() if not node.args.get("decimals"):
            inner = kind_of(node.this, kinds)
            return {"int64": "float64", None: WHOLE}.get(inner, inner)
        case exp.Round() | exp.Sum() | exp.Window() | exp.Filter():
            return kind_of(node.this, kinds)
    if isinstance(node, _SAME):
        inner = node.this if node.this is not None else node.expressions[0]
        return kind_of(inner, kinds)
    for types, kind in ((_FLOATS, "float64"), (_INTEGERS, "int64"), (_STRINGS, "string")):
        if isinstance(node, types):
            return kind
    return "bool" if isinstance(node, exp.Predicate) else None


def _arithmetic(node: exp.Expr, left: str | None, right: str | None) -> str | None:
    pair = {left, right}
    if None in pair:
        return None
    if "timestamp" in pair:
        return "interval" if pair == {"timestamp"} and isinstance(node, exp.Sub) else "timestamp"
    for kind in ("interval", "float64", "decimal"):
        if kind in pair:
            return kind
    return "int64" if pair == {"int64"} else None
