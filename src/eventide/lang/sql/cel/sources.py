"""The plan of CEL in FROM, over the scopes of the streams that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.cel.events import END, Events
from eventide.lang.cel.plan import plan_cel
from eventide.lang.cel.tree import NamedStream, names_in
from eventide.lang.sql.cel.table import CelTable
from eventide.lang.sql.names.scope import Scope
from eventide.plan.bind import bind, bind_expression
from eventide.plan.tree import Plan
from eventide.schema import SEQ, START_TS, TIMESTAMP, TS, Schema

ReadTable = Callable[[exp.Expr], Scope]
"""Return the scope of a table whose rows are events."""


def plan_table(node: CelTable, read: ReadTable, catalog: Mapping[str, Schema]) -> Plan:
    """Return the bound plan of CEL in FROM."""
    clause = node.clause
    places = [name.span.start for name in names_in(clause.stream)]
    tables = dict(zip(places, node.expressions, strict=True))

    def read_stream(stream: NamedStream) -> Events:
        scope = read(tables[stream.span.start])
        return events_of(scope, catalog, stream.span)

    return plan_cel(clause.stream, read_stream, clause.values)


def events_of(scope: Scope, catalog: Mapping[str, Schema], span: Span) -> Events:
    """Return the rows of a scope as events; they begin at `start_ts`, if they have one."""
    plan = bind(scope.source, catalog)
    found = {name: bind_expression(scope.means(name), plan.row) for name in scope.fields}
    end = found.pop(TS, END)
    start = found.pop(START_TS, end)
    if start.type != TIMESTAMP:
        message = f"{START_TS} of {scope.stream} is {start.type}, and not where an event begins"
        hint = f"give it another name in a view: {START_TS} AS other"
        raise BindError(message, span=span, hint=hint)
    found.pop(SEQ, None)
    return Events(plan, found, start, scope.stream)
