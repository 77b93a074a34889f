"""What FROM reads: the scope of a stream, of a query in brackets, of a pattern's matches.

What plans a clause is imported with the first clause of its kind: most statements have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from eventide.errors import EventideError, Span, UnsupportedError
from eventide.lang.sql.block import plan_block, scope_over, stream_below
from eventide.lang.sql.cel.table import CelTable
from eventide.lang.sql.ctes import inline_cte
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.names.derived import (
    aligned,
    event_scope,
    has_frames,
    has_joins,
    times_named,
)
from eventide.lang.sql.names.lists import RENAMED_STREAM
from eventide.lang.sql.names.scope import Scope, refuse, scope_of, sources_of, stream_named
from eventide.lang.sql.patterns.clause import RowPattern
from eventide.lang.sql.patterns.hints import hint_before_match
from eventide.lang.sql.relation_rows import reads_changes
from eventide.lang.sql.situations.clause import SituationTable
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import report_of, window_of_table
from eventide.lang.sql.standing.find import is_standing
from eventide.lang.sql.values import written_scope
from eventide.lang.sql.windows.group_by import check_windowed, is_windowed
from eventide.lang.sql.xml.table import XPathTable
from eventide.plan.bind import bind
from eventide.plan.events.derived import as_events, merged_events
from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import Project, Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.standing.edges import UpdatePattern
from eventide.plan.standing.nodes import Merge
from eventide.plan.standing.update_patterns import pattern_of
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TIMESTAMP, TS, Schema

if TYPE_CHECKING:
    from eventide.lang.sql.standing.plan import StandingQuery

Names = frozenset[str]

BLOCK_ARGS = {"expressions", "from_", "where", "group", "having", "windows", "with_"}
"""What a block may consist of; ORDER BY, LIMIT and DISTINCT stay around it."""
_MATCH_HINT = "write FROM (SELECT … FROM stream WHERE …) MATCH_RECOGNIZE (…), the rest around it"
_RELATION_HINT = "make events of its changes: ISTREAM (SELECT …), DSTREAM (…) or RSTREAM (…)"
_GROUP_HINT = (
    "add a window: GROUP BY …, TUMBLE(ts, INTERVAL '1' MINUTE); or make events of a changing "
    "answer: ISTREAM (SELECT … FROM stream [RANGE 1 MINUTE] GROUP BY …)"
)
_PLAIN_ARGS = {"expressions", "from_", "where"}
_UNION_ARGS = {"this", "expression", "distinct"}
_CLAUSES = (RowPattern, SituationTable, CelTable, XPathTable)
NO_MATCHES: Mapping[int, Scope] = {}


@dataclass
class SourceReader:
    """Reads the tables of FROM. VALUES that are read as events become streams of the catalog."""

    catalog: Mapping[str, Schema]
    text: str

    def scope(self, table: exp.Expr, ctes: Names, matched: Mapping[int, Scope]) -> Scope | None:
        """Return the scope of a stream or of a row pattern's matches, None for anything else."""
        if id(table) in matched:
            return matched[id(table)]
        if isinstance(table, exp.Subquery) and table.this.meta.get(RENAMED_STREAM):
            return self.plain(table, ctes)
        stream = stream_named(table, self.catalog, ctes) if isinstance(table, exp.Table) else None
        if stream is None or not isinstance(table, exp.Table):
            return None
        return scope_of(table, stream, self.catalog[stream])

    def sole_scope(
        self,
        select: exp.Select,
        tables: list[exp.Expr],
        ctes: Names,
        matched: Mapping[int, Scope] = NO_MATCHES,
        *,
        written: bool = False,
    ) -> Scope | None:
        """Return the scope of a SELECT that reads one source: VALUES only if they may be events."""
        if len(tables) != 1 or select.args.get("joins") or select.args.get("laterals"):
            return None
        (table,) = tables
        scope = self.scope(table, ctes, matched)
        if scope is None and isinstance(table, exp.Subquery):
            scope = self.plain(table, ctes, written=written)
        if scope is None and written and isinstance(table, exp.Values):
            scope = self.written(table)
        if scope is None or table.args.get("joins"):
            return None
        if scope.meanings and is_windowed(select):
            check_windowed(scope, select)
        return scope.of_select(select)

    def written(self, values: exp.Values) -> Scope:
        """Return the scope of VALUES that an operator reads, now a stream of the catalog."""
        scope, schema = written_scope(values, self.text, self.catalog)
        assert isinstance(scope.source, Scan)
        self.catalog = {**self.catalog, scope.source.stream: schema}
        return scope

    def plain(self, table: exp.Subquery, ctes: Names, *, written: bool = False) -> Scope | None:
        """Return the scope of a SELECT in brackets that chooses events and computes with each.

        The query around it reads the stream below: each column is replaced by its expression.
        """
        select = table.this
        if not isinstance(select, exp.Select) or report_of(table) is not None:
            return None
        kept = {key for key, value in select.args.items() if value} - _PLAIN_ARGS
        tables = list(sources_of(select))
        if kept or is_standing(select) or any(isinstance(each, _CLAUSES) for each in tables):
            return None
        inner = self.sole_scope(select, tables, ctes, written=written)
        scan = None if inner is None else stream_below(inner.source)
        if inner is None or scan is None or self.catalog[scan.stream].key:
            return None
        try:
            block = plan_block(select, inner, self.text)
        except EventideError:
            if written:
                raise
            return None  # it may be SQL for the engine, or refer to a query around it
        scope = scope_over(table.alias, block)
        if scope is None or START_TS not in scope.hidden:
            return scope
        if self.catalog[scan.stream].types.get(START_TS) != TIMESTAMP:
            return scope
        # The events of a derived stream have a start of their own.
        return replace(scope, meanings={**scope.meanings, START_TS: Column(START_TS)})

    def find_matches(self, select: exp.Select, ctes: Names) -> dict[int, Scope]:
        """Replace every row pattern in FROM by a table; return the scope of each."""
        matched: dict[int, Scope] = {}
        for node in list(sources_of(select)):
            if isinstance(node, _CLAUSES):
                scope = self.match(node, ctes)
                table = exp.Table(this=identifier(scope.alias), alias=alias_of(scope.alias))
                table.this.meta.update(node.meta)
                node.replace(table)
                matched[id(table)] = scope
        return matched

    def find_periods(self, select: exp.Select, ctes: Names) -> dict[int, Scope]:
        """Replace every SELECT whose periods are joined by relation by a table."""
        from eventide.lang.sql.situations.period_join import joined_sides

        found: dict[int, Scope] = {}
        for node in joined_sides(select):
            if isinstance(node, exp.Subquery):
                scope = self.periods(node, ctes)
                table = exp.Table(this=identifier(scope.alias), alias=alias_of(scope.alias))
                table.this.meta.update(node.meta)
                node.replace(table)
                found[id(table)] = scope
        return found

    def periods(self, node: exp.Subquery, ctes: Names) -> Scope:
        """Return the scope of an append-only query in brackets whose rows are periods."""
        try:
            arms = self.arms(node, ctes, "a relation")
        except UnsupportedError:
            what = "a relation is between the rows of streams, or of a plain SELECT from one"
            refuse(what, node, "leave joins, GROUP BY, ORDER BY and LIMIT to the SELECT around")
        plan = arms[0] if len(arms) == 1 else merged_events(aligned(arms, span_of(node)))
        return Scope(node.alias or "the subquery", node.alias, list(arms[0].row), plan)

    def match(
        self, node: RowPattern | SituationTable | CelTable | XPathTable, ctes: Names
    ) -> Scope:
        """Return the scope of a clause in FROM: its plan, and the columns of its rows."""
        if isinstance(node, CelTable):
            return self.cel(node, ctes)
        if isinstance(node, XPathTable):
            return self.witnesses(node, ctes)
        match: Plan
        if isinstance(node, RowPattern):
            from eventide.lang.sql.patterns.plan import plan_match

            word, part, found = "MATCH_RECOGNIZE", "MEASURES", "match"
            source = self.events(node.this, ctes, word)
            match = plan_match(node.clause, source, self.text)
        else:
            from eventide.lang.sql.situations.plan import plan_situations

            word, part = node.clause.kind, "RETURN"
            found = "match" if word == "TPSTREAM" else "situation"
            source = self.events(node.this, ctes, word)
            match = plan_situations(node.clause, source, self.text)
        alias = node.args.get("alias")
        if alias is not None and alias.columns:
            refuse(f"renaming the columns of a {found} in FROM", alias, f"name them in {part}")
        # The columns of a match are known once the types are.
        fields = list(bind(match, self.catalog).row)
        if isinstance(match, MatchRecognize) and match.all_rows:
            # The rows of a query have columns that it does not show, those of a table no times.
            shown = {*source.fields} - source.hidden
            unseen = {*source.source.row, TS} - shown - {item.name for item in match.measures}
            fields = [name for name in fields if name not in unseen]
        rows = "matches" if found == "match" else "situations"
        stream = alias.name if alias is not None else f"the {rows} in {source.stream}"
        return Scope(stream, alias.name if alias is not None else source.alias, fields, match)

    def cel(self, node: CelTable, ctes: Names) -> Scope:
        """Return the scope of CEL: its plan, and the times and attributes of its events."""
        from eventide.lang.sql.cel.sources import plan_table

        plan = plan_table(node, lambda table: self.events(table, ctes, "CEL"), self.catalog)
        return Scope("the events of CEL", "", list(plan.row), plan)

    def witnesses(self, node: XPathTable, ctes: Names) -> Scope:
        """Return the scope of a tree pattern: its plan, and the values of its variables."""
        from eventide.lang.sql.xml.sources import plan_witnesses

        documents = self.events(node.expressions[0], ctes, "XPATH")
        plan = plan_witnesses(node.parsed, documents, self.catalog)
        return Scope(f"the tree pattern of {documents.stream}", "", list(plan.row), plan)

    def standing(self, query: exp.Expr, ctes: Names) -> StandingQuery:
        """Return the plan of a standing query, perhaps in brackets behind ISTREAM or its like."""
        from eventide.lang.sql.standing.plan import plan_standing

        events = partial(self.beside_windows, ctes=ctes)
        return plan_standing(query, self.catalog, ctes, self.text, events)

    def beside_windows(self, table: exp.Expr, ctes: Names) -> Scope | None:
        """Return the scope of a table of a standing query whose rows are read as events, or None.

        It has a window, or is a query that can be no part of the standing one.
        """
        windowed = window_of_table(table) is not None or report_of(table) is not None
        query = table.this if isinstance(table, exp.Subquery) else table
        found = isinstance(query, _CLAUSES)
        if isinstance(query, exp.Select):
            found = is_windowed(query) or any(isinstance(e, _CLAUSES) for e in sources_of(query))
        return self.events(table, ctes, "a window", always=True) if windowed or found else None

    def events(self, table: exp.Expr, ctes: Names, word: str, *, always: bool = False) -> Scope:
        """Return the scope of what an operator reads: a stream, VALUES, or the rows of a query.

        With `always`, the rows of a query are a derived stream even if they are in order anyway.
        """
        if isinstance(table, exp.Table) and not table.args.get("joins"):
            scope = self.scope(table, ctes, NO_MATCHES)
            if scope is not None:
                return scope
        if isinstance(table, exp.Values):
            return self.written(table)
        if isinstance(table, _CLAUSES):
            return self.in_time(self.match(table, ctes), span_of(table))
        if not isinstance(table, exp.Subquery) or table.args.get("joins"):
            what = f"{word} reads a stream, or a query in brackets"
            refuse(what, table, _source_hint(word))
        arms = self.arms(table, ctes, word)
        span = span_of(table)
        if len(arms) == 1:
            plan = as_events(arms[0], span, always=always)
        else:
            plan = merged_events(aligned(arms, span), span)
        shown = table.alias or "the subquery"
        return event_scope(shown, table.alias or "matches", list(arms[0].row), plan)

    def in_time(self, scope: Scope, span: Span | None) -> Scope:
        """Return a scope whose rows are in order of their times, and have them."""
        if scope.source.in_order:
            return scope
        names = scope.starred
        items = tuple(Named(name, scope.means(name)) for name in names)
        plan = as_events(bind(Project(scope.source, items), self.catalog), span)
        return event_scope(scope.stream, scope.alias, names, plan)

    def timed(
        self, select: exp.Select, tables: list[exp.Expr], ctes: Names, scope: Scope | None
    ) -> Scope | None:
        """Return the scope of a SELECT that follows time row by row, None if it does not.

        It has frames, or names the times of the rows of a query that do not show them.
        """
        named, framed = times_named(select), has_frames(select)
        if not (framed or named) or len(tables) != 1:
            return None
        scope = scope or self.attempt(tables[0], ctes)
        if scope is None:
            return None
        found = self.in_time(scope, span_of(tables[0]))
        if found is scope and not scope.hidden:
            return None
        return found.of_select(select) if framed or named & found.hidden else None

    def show_times(
        self, select: exp.Select, ctes: Names, matched: Mapping[int, Scope]
    ) -> dict[int, Scope]:
        """Return the scopes of matches and queries whose hidden times SQL around them names."""
        tables = list(sources_of(select))
        shown: dict[int, Scope] = {}
        for table in tables:
            asked = times_named(select, None if len(tables) == 1 else table.alias_or_name)
            if not asked or any(item.is_star for item in select.expressions):
                continue
            scope = matched.get(id(table))
            if scope is not None and not asked <= {*scope.fields}:
                shown[id(table)] = self.in_time(scope, span_of(table))
            elif scope is None and isinstance(table, exp.Subquery):
                found = self.attempt(table, ctes)
                if found is not None and asked & found.hidden:
                    stand_in = exp.Table(this=identifier(table.alias), alias=alias_of(table.alias))
                    stand_in.this.meta.update(table.meta)
                    table.replace(stand_in)
                    shown[id(stand_in)] = found
        return shown

    def attempt(self, table: exp.Expr, ctes: Names) -> Scope | None:
        """Return the scope of a query whose rows are events, None if they are not."""
        try:
            return self.events(table.copy(), ctes, "OVER")
        except EventideError:
            return None  # SQL for the engine reads more than our operators do

    def inner_rows(self, query: exp.Expr, ctes: Names) -> Plan | None:
        """Return the plan of an append-only query, its rows in no order, None if it is not one.

        Present rows of a relation, and VALUES without an operator above them, are not events.
        """
        if query.find(exp.Values) is not None:
            return None
        try:
            arms = self.arms(query.copy(), ctes, "SELECT")
            found = arms[0] if len(arms) == 1 else Merge(tuple(aligned(arms, span_of(query))))
        except EventideError:
            return None  # SQL for the engine reads more than our operators do
        return None if reads_changes(found, self.catalog) else found

    def over_query(self, select: exp.Select, tables: list[exp.Expr], ctes: Names) -> Scope | None:
        """Return the scope of a SELECT of an append-only query in brackets, row by row, or None."""
        if len(tables) != 1 or has_joins(select) or not isinstance(tables[0], exp.Subquery):
            return None
        (table,) = tables
        alias = table.args.get("alias")
        if _kept(table, {"this", "alias", "report"}) or (alias is not None and alias.columns):
            return None
        plan = self.inner_rows(table, ctes)
        if plan is None:
            return None
        shown = table.alias or "the subquery"
        return Scope(shown, table.alias, list(plan.row), plan).of_select(select)

    def arms(self, query: exp.Expr, ctes: Names, word: str) -> list[Plan]:
        """Return the plans whose rows together are those of an append-only query, bound."""
        reported = report_of(query) is not None
        match query:
            case exp.Subquery() if not reported:
                return self.arms(query.this, ctes, word)
            case exp.Union() if not (is_standing(query) or _kept(query, _UNION_ARGS)):
                if not query.args.get("distinct"):
                    both = (query.this, query.expression)
                    return [plan for arm in both for plan in self.arms(arm, ctes, word)]
            case exp.Select() if not (is_standing(query) or has_joins(query)):
                return [self.rows(query, ctes, word)]
            case exp.Subquery() | exp.Union() | exp.Select() if not query.args.get("distinct"):
                return [self.standing_rows(query, ctes, word)]
        what = f"{word} reads rows that come and stay, and those of this query do not"
        hint = _RELATION_HINT
        if isinstance(query, exp.Union):
            hint = "write UNION ALL"
        elif isinstance(query, exp.Table):
            hint = "write a SELECT in brackets: (SELECT … FROM … JOIN …)"
        raise UnsupportedError(what, span=span_of(query), hint=hint)

    def rows(self, select: exp.Select, ctes: Names, word: str) -> Plan:
        """Return the plan of a SELECT that an operator reads, bound: it has to be a block."""
        if select.args.get("with_"):
            select = select.copy()
            for table in list(sources_of(select)):
                inline_cte(select, table, through=True)
        kept = _kept(select, BLOCK_ARGS - {"with_"})
        grouped = select.args.get("group") is not None and not is_windowed(select)
        tables = list(sources_of(select))
        if kept or grouped or len(tables) != 1:
            what = f"{word} reads a plain SELECT from one stream"
            hint = _GROUP_HINT if grouped else _source_hint(word)
            refuse(what, _culprit(select, kept) or select, hint)
        scope = self.source(select, ctes, word)
        try:
            block = plan_block(select, scope, self.text)
        except UnsupportedError as error:
            hint_before_match(error)
            raise
        return bind(block.plan, self.catalog)

    def source(self, select: exp.Select, ctes: Names, word: str) -> Scope:
        """Return the scope of a SELECT whose one source an operator of ours reads."""
        matched = self.find_matches(select, ctes)
        tables = list(sources_of(select))
        scope = self.sole_scope(select, tables, ctes, matched, written=True)
        if scope is None:
            scope = self.events(tables[0], ctes, word).of_select(select)
        if is_windowed(select):
            return self.in_time(scope, span_of(tables[0])).of_select(select)
        return self.timed(select, tables, ctes, scope) or scope

    def standing_rows(self, query: exp.Expr, ctes: Names, word: str) -> Plan:
        """Return the plan of a standing query whose rows never go, or of ISTREAM and its like."""
        found = self.standing(query, ctes)
        if found.plan.report != "current":
            return found.plan
        edge = pattern_of(found.plan)
        if edge.pattern != UpdatePattern.MONOTONIC or not found.planned.around.is_empty:
            what = f"{word} reads rows that come and stay, and those of this query go again"
            refuse(what, query, _RELATION_HINT)
        came = bind(replace(found.plan, report="istream"), self.catalog)
        items = tuple(Named(name, Column(name, kind)) for name, kind in found.plan.row.items())
        return Project(came, items)


def alias_of(name: str) -> exp.TableAlias:
    """Return a name as the alias of a table."""
    return exp.TableAlias(this=identifier(name))


def _kept(query: exp.Expr, read: Set[str]) -> set[str]:
    """Return the parts of a query that are not read."""
    return {key for key, value in query.args.items() if value} - read


def _source_hint(word: str) -> str:
    if word not in ("MATCH_RECOGNIZE", "TPSTREAM", "SITUATIONS"):
        return "ORDER BY, LIMIT and DISTINCT stand in the SELECT around"
    return _MATCH_HINT.replace("MATCH_RECOGNIZE", word)


def _culprit(select: exp.Select, kept: set[str]) -> exp.Expr | None:
    """Return the clause that keeps a SELECT from being a block, if it is a single clause."""
    clauses = [
        select.args[key] for key in sorted({*kept, "group", "with_"}) if select.args.get(key)
    ]
    return next((each for each in clauses if isinstance(each, exp.Expr) and span_of(each)), None)
