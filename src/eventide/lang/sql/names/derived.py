"""Rows of a query as events: the names of their times, their scope, and UNION ALL of several."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.names.scope import Scope, sources_of
from eventide.plan.expressions import Cast, Column, Expression, Named
from eventide.plan.nodes import Project
from eventide.plan.tree import Plan
from eventide.plan.types import common_type
from eventide.schema import START_TS, TS, DataType


def event_scope(stream: str, alias: str, visible: list[str], plan: Plan) -> Scope:
    """Return the scope of rows of a query that are events; their times need not be visible."""
    times = {TS, START_TS}
    shown = [name.lower() if name.lower() in times else name for name in visible]
    hidden = [name for name in (TS, START_TS) if name not in shown]
    return Scope(stream, alias, [*shown, *hidden], plan, hidden=frozenset(hidden))


def aligned(arms: list[Plan], span: Span | None) -> list[Plan]:
    """Return the plans of UNION ALL with the columns of the first, by position."""
    names = list(arms[0].row)
    for arm in arms:
        if len(arm.row) != len(names):
            message = f"UNION ALL of {len(names)} and of {len(arm.row)} columns"
            raise BindError(message, span=span, hint="each side has the same number of columns")
    kinds = []
    columns = zip(*(arm.row.values() for arm in arms), strict=True)
    for name, column in zip(names, columns, strict=True):
        kind = common_type(column)
        if kind is None:
            message = f"{name} is {' and '.join(map(str, dict.fromkeys(column)))} in UNION ALL"
            raise BindError(message, span=span, hint="cast one of them: CAST(… AS …)")
        kinds.append(kind)
    wanted = list(zip(names, kinds, strict=True))
    return [arm if list(arm.row.items()) == wanted else _alike(arm, wanted) for arm in arms]


def _alike(arm: Plan, wanted: list[tuple[str, DataType]]) -> Plan:
    """Return a plan with other names and types of its columns."""
    columns = zip(wanted, arm.row.items(), strict=True)
    return Project(
        arm,
        tuple(Named(name, _as(Column(own, found), kind)) for (name, kind), (own, found) in columns),
    )


def _as(column: Column, kind: DataType) -> Expression:
    return column if column.type == kind else Cast(column, kind)


def own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT, without those of the queries inside it."""
    for node in select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not select):
        if node is select or not isinstance(node, exp.Query):
            yield node


def has_joins(select: exp.Select) -> bool:
    """Whether a SELECT reads more than one table."""
    return len(list(sources_of(select))) > 1


def has_frames(select: exp.Select) -> bool:
    """Whether a SELECT has an OVER of its own."""
    return any(isinstance(each, exp.Window) for each in own_nodes(select))


def times_named(select: exp.Select, alias: str | None = None) -> set[str]:
    """Return the times of derived rows that a SELECT names; with an alias, only behind it."""
    columns = (each for each in own_nodes(select) if isinstance(each, exp.Column))
    named = {
        each.name.lower()
        for each in columns
        if alias is None or each.table.lower() == alias.lower()
    }
    return named & {TS, START_TS}
