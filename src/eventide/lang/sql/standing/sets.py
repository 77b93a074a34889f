"""UNION, EXCEPT and INTERSECT of standing queries, and the names of columns of those in FROM."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql.spans import span_of
from eventide.plan.expressions import Cast, Column, Named
from eventide.plan.nodes import Project
from eventide.plan.standing.nodes import Difference, Distinct, Merge
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.plan.types import common_type
from eventide.schema import DataType

Arm = tuple[Plan, list[str]]


def combined(query: exp.SetOperation, arms: list[Arm]) -> Plan:
    """Return the plan of UNION, EXCEPT or INTERSECT [ALL] of two queries, whose plans are bound."""
    if query.args.get("by_name"):
        message = "UNION BY NAME in a standing query"
        hint = "list the columns of both in the same order"
        raise UnsupportedError(message, span=span_of(query.expression), hint=hint)
    (left, names), (right, others) = arms
    if len(names) != len(others):
        message = f"one query has {len(names)} columns, the other {len(others)}"
        hint = "both sides of UNION, EXCEPT and INTERSECT have the same columns"
        raise BindError(message, span=span_of(query.expression), hint=hint)
    types = [
        _common(query, name, left.row[name], right.row[other])
        for name, other in zip(names, others, strict=True)
    ]
    left = _aligned(left, names, names, types)
    right = _aligned(right, others, names, types)
    distinct = bool(query.args.get("distinct"))
    match query:
        case exp.Except() | exp.Intersect():
            # Nulls are equal for both, as for DISTINCT.
            sides = (Distinct(left), Distinct(right)) if distinct else (left, right)
            span = span_of(query.expression)
            if isinstance(query, exp.Except):
                return Difference(*sides, span)
            # Of m and n copies of a row, m - max(m - n, 0) is the smaller number. The smaller plan
            # runs twice: of a chain that is the last query, and not all those before.
            one, other = sorted(sides, key=lambda side: len(windows_of(side)))
            return Difference(one, Difference(one, other, span), span)
        case exp.Union():
            sources = left.sources if isinstance(left, Merge) else (left,)
            merged = Merge((*sources, right))
            return Distinct(merged) if distinct else merged
    message = f"{query.key.upper()} in a standing query"
    hint = "there are UNION, EXCEPT and INTERSECT"
    raise UnsupportedError(message, span=span_of(query.expression), hint=hint)


def _common(query: exp.SetOperation, name: str, one: DataType, other: DataType) -> DataType:
    found = common_type((one, other))
    if found is None:
        message = f"{name} is {one} in one query and {other} in the other"
        hint = "cast one of them"
        raise BindError(message, span=span_of(query.expression), hint=hint)
    return found


def _aligned(plan: Plan, names: list[str], wanted: list[str], types: list[DataType]) -> Plan:
    """Return the columns of a plan with other names and types."""
    known = plan.row
    if list(known) == wanted and [known[name] for name in names] == types:
        return plan
    items = {name: Named(name, Column(name, known[name])) for name in names}
    source = plan
    if isinstance(plan, Project):
        items, source = {item.name: item for item in plan.items}, plan.source
    return Project(
        source,
        tuple(
            Named(new, each.expression if each.type == kind else Cast(each.expression, kind))
            for new, each, kind in zip(wanted, map(items.__getitem__, names), types, strict=True)
        ),
    )


def renamed(plan: Plan, names: list[str], alias: str) -> Plan:
    """Return the columns of a query in FROM as the SELECT around names them: `alias.name`."""
    match plan:
        case Project(items=items):
            named = {item.name: item.expression for item in items}
            return replace(
                plan, items=tuple(Named(f"{alias}.{name}", named[name]) for name in names)
            )
        case Distinct(source=source):
            return Distinct(renamed(source, names, alias))
    return Project(plan, tuple(Named(f"{alias}.{name}", Column(name)) for name in names))
