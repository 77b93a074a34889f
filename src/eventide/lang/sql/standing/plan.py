"""A standing query → its plan, and the SQL that stands around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from eventide.errors import Span
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.names.scope import Scope
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.check import (
    check_as_of,
    check_columns,
    check_internal,
    check_report,
    slide_of,
)
from eventide.lang.sql.standing.clause import ReportClause, report_of
from eventide.lang.sql.standing.select import Planned, StandingPlanner
from eventide.plan.bind import bind
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.windows import RangeWindow, RowsWindow
from eventide.schema import Schema


@dataclass(frozen=True)
class StandingQuery:
    """A planned standing query: its plan, its columns, and the clauses around it."""

    plan: Standing
    names: list[str]
    planned: Planned

    def around(self, table: exp.Table) -> exp.Select:
        """Return the SELECT that reads the answer under the name of a table."""
        rest = exp.Select(expressions=[exp.column(identifier(name)) for name in self.names])
        rest.set("from_", exp.From(this=table))
        self.planned.around.put(rest)
        rest.meta["is_input"] = self.planned.around.is_empty
        return rest


def plan_standing(
    query: exp.Expr,
    catalog: Mapping[str, Schema],
    ctes: frozenset[str],
    text: str,
    events: Callable[[exp.Expr], Scope | None],
) -> StandingQuery:
    """Return the plan of a standing query, perhaps in brackets behind ISTREAM or its like.

    `events` returns the scope of a table in FROM whose rows are read as events.
    """
    report = report_of(query)
    planner = StandingPlanner(catalog, ctes, text, events)
    inner = query.this if report is not None else query
    planned = planner.plan(inner) if report is None else planner.whole(inner)
    windows = planner.reader.windows
    slide = slide_of(windows)
    if report is not None:
        check_report(report, slide, windows)
    check_columns(list(planned.plan.row), _places(inner))
    source = check_internal(planned.plan, windows, planner.reader.negations, report)
    plan = Standing(
        source,
        "current" if report is None else report.report,
        slide,
        restore=report is not None and report.restore is not None,
        output_window=_output_window(report),
        span=span_of(query),
    )
    bound = cast("Standing", bind(plan, catalog))
    check_as_of(bound)
    return StandingQuery(bound, [*bound.reported, *planned.names], planned)


def _output_window(report: ReportClause | None) -> RangeWindow | RowsWindow | None:
    window = None if report is None or report.window is None else report.window.window
    return window if isinstance(window, RangeWindow | RowsWindow) else None


def _places(query: exp.Expr) -> dict[str, Span | None]:
    """Return where the columns of a query are named."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    items = query.expressions if isinstance(query, exp.Select) else []
    return {item.alias_or_name: span_of(item) for item in items}
