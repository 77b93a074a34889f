"""A relation in SQL: its present rows, unless its changes are asked for.

TUMBLE and HOP, MATCH_RECOGNIZE, TPSTREAM and SITUATIONS follow time, so they read the changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from eventide.lang.sql.names.scope import Scope, refuse
from eventide.plan.expressions import Column, Expression, Named, rebuild
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.standing.nodes import CHANGE_COLUMNS, Merge, Standing
from eventide.plan.standing.windows import RowsWindow, Windowed
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import SlidingAggregate
from eventide.schema import DELETED, Schema


def relation_window(schema: Schema) -> RowsWindow:
    """Return the window that holds the rows of a relation."""
    return RowsWindow(1, schema.key, DELETED if DELETED in schema.names else None)


def rows_now(scope: Scope, catalog: Mapping[str, Schema]) -> Scope:
    """Return the scope with a relation's rows in place of its changes; streams stay as they are."""
    scan = scope.source
    if not isinstance(scan, Scan) or not catalog[scan.stream].key:
        return scope
    fields = [name for name in scope.fields if name != DELETED]
    window = Windowed(scan, scope.alias, relation_window(catalog[scan.stream]), span=scan.span)
    items = tuple(Named(name, Column(f"{scope.alias}.{name}")) for name in fields)
    return replace(scope, fields=fields, source=Project(window, items))


def reads_relation(plan: Plan) -> bool:
    """Whether a plan reads the rows of a relation, and is not the answer to a query over them."""
    return plan.changes and plan.standing is None


def is_of_rows(plan: Plan) -> bool:
    """Whether a plan treats rows one by one, as a standing query over a relation does."""
    if isinstance(plan, Filter | Project):
        return is_of_rows(plan.source)
    return isinstance(plan, Windowed)


def reads_changes(plan: Plan, catalog: Mapping[str, Schema]) -> bool:
    """Whether the rows of a plan are those of a relation's changes, one by one."""
    match plan:
        case Scan(stream=stream):
            return bool(catalog[stream].key)
        case Filter() | Project() | Merge() | DerivedStream() | SlidingAggregate():
            return any(reads_changes(each, catalog) for each in plan.children)
    return False


def as_input(plan: Plan) -> Plan:
    """Return a plan as an input of the rest; over a relation, it becomes a standing query."""
    return Standing(_merged(plan)[0]) if reads_relation(plan) else plan


def _merged(plan: Plan) -> tuple[Plan, str]:
    """Return a plan over the window itself, and the prefix that its column names have there."""
    match plan:
        case Project(source=Windowed(alias=alias) as window):
            return window, f"{alias}."
        case Filter(source=source) | Project(source=source):
            below, front = _merged(source)

            def changed(expression: Expression) -> Expression:
                if isinstance(expression, Column):
                    return replace(expression, name=f"{front}{expression.name}")
                return rebuild(expression, changed)

            merged = replace(plan, source=below).with_expressions(lambda each, _: changed(each))
            return merged, front if isinstance(plan, Filter) else ""
    return plan, ""


def may_change(plan: Plan, names: Iterable[str]) -> bool:
    """Whether a plan may report changes: none of its columns has the name of one of theirs."""
    return not (reads_relation(plan) and any(name.lower() in CHANGE_COLUMNS for name in names))


def refuse_as_of(select: exp.Select, scopes: Mapping[int, Scope]) -> None:
    """Refuse ASOF JOIN of the present rows of a relation: it would not find earlier rows."""
    for join in select.args.get("joins") or ():
        scope = scopes.get(id(join.this))
        if join.method == "ASOF" and scope is not None and reads_relation(scope.source):
            what = f"ASOF JOIN of the relation {scope.stream} in a query without windows"
            hint = "put a window behind the stream before it, as in orders [RANGE UNBOUNDED] AS o"
            refuse(what, join.this, hint)
