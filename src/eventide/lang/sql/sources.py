"""What FROM reads: the scope of a stream, of a query in brackets, of a pattern's matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from eventide.errors import BindError, EventideError, Span, UnsupportedError
from eventide.lang.sql.block import Block, plan_block, scope_over, stream_below
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.names.lists import RENAMED_STREAM
from eventide.lang.sql.names.scope import Scope, refuse, scope_of, sources_of
from eventide.lang.sql.names.streams import stream_named
from eventide.lang.sql.ordering import OuterClauses, around_of
from eventide.lang.sql.patterns.clause import RowPattern
from eventide.lang.sql.patterns.hints import hint_before_match
from eventide.lang.sql.patterns.plan import plan_match
from eventide.lang.sql.relation_rows import is_of_rows, reads_relation
from eventide.lang.sql.situations.clause import SituationTable
from eventide.lang.sql.situations.period_join import joined_sides
from eventide.lang.sql.situations.plan import plan_situations
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import report_of, window_of_table
from eventide.lang.sql.standing.find import is_standing
from eventide.lang.sql.standing.plan import StandingQuery, plan_standing
from eventide.lang.sql.values import written_scope
from eventide.lang.sql.windows.group_by import check_windowed, is_windowed
from eventide.plan.bind import bind
from eventide.plan.events.derived import as_events, merged_events
from eventide.plan.events.time_order import in_order
from eventide.plan.expressions import Cast, Column, Expression, Named
from eventide.plan.nodes import Project, Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.situations.nodes import START_TS
from eventide.plan.standing.update_patterns import UpdatePattern, pattern_of
from eventide.plan.tree import Plan
from eventide.plan.types import common_type
from eventide.schema import TS, DataType, Schema

Names = frozenset[str]

# What a block may consist of; ORDER BY, LIMIT and DISTINCT stay around it.
_BLOCK_ARGS = {"expressions", "from_", "where", "group", "having", "windows", "with_"}
_AROUND_ARGS = {"order", "limit", "offset", "distinct"}
_OUTER_HINT = "put it in a SELECT around this one"
_MATCH_HINT = "write FROM (SELECT … FROM stream WHERE …) MATCH_RECOGNIZE (…), the rest around it"
_RELATION_HINT = "make events of its changes: ISTREAM (SELECT …), DSTREAM (…) or RSTREAM (…)"
_GROUP_HINT = (
    "add a window: GROUP BY …, TUMBLE(ts, INTERVAL '1' MINUTE); or make events of a changing "
    "answer: ISTREAM (SELECT … FROM stream [RANGE 1 MINUTE] GROUP BY …)"
)
_PLAIN_ARGS = {"expressions", "from_", "where"}
_UNION_ARGS = {"this", "expression", "distinct"}
_CLAUSES = (RowPattern, SituationTable)
STORE_HINT = "group by date_trunc('minute', …) instead, or store the rows as a stream first"
NO_MATCHES: Mapping[int, Scope] = {}


@dataclass
class SourceReader:
    """Reads the tables of FROM. VALUES that are read as events become streams of the catalog."""

    catalog: Mapping[str, Schema]
    text: str
    reason: UnsupportedError | None = None
    """Why a SELECT over one stream is not a block, if there is just one reason."""

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

    def fits(self, scope: Scope, block: Block) -> bool:
        """Whether the types of a block fit; over a SELECT in brackets, the engine may cast more."""
        if not scope.meanings:
            return True
        try:
            bind(block.plan, self.catalog)
        except BindError:
            return False
        return True

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
        return scope_over(table.alias, block)

    def find_matches(self, select: exp.Select, ctes: Names) -> dict[int, Scope]:
        """Replace every row pattern in FROM by a table; return the scope of each."""
        matched: dict[int, Scope] = {}
        for node in list(sources_of(select)):
            if isinstance(node, RowPattern | SituationTable):
                scope = self.match(node, ctes)
                table = exp.Table(this=identifier(scope.alias), alias=alias_of(scope.alias))
                table.this.meta.update(node.meta)
                node.replace(table)
                matched[id(table)] = scope
        return matched

    def find_periods(self, select: exp.Select, ctes: Names) -> dict[int, Scope]:
        """Replace every SELECT whose periods are joined by relation by a table."""
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
        """Return the scope of a SELECT in brackets whose rows are periods: it has to be a block."""
        select = node.this
        planned = None
        if isinstance(select, exp.Select) and not select.args.get("with_"):
            matched = self.find_matches(select, ctes)
            tables = list(sources_of(select))
            inner = self.sole_scope(select, tables, ctes, matched)
            if len(tables) == 1 and isinstance(tables[0], exp.Subquery) and not is_windowed(select):
                inner = self.periods(tables[0], ctes).of_select(select)
            planned = None if inner is None else self.block(select, inner, nested=False)
        if planned is None or not planned[1].is_empty:
            what = "a relation is between the rows of streams, or of a plain SELECT from one"
            refuse(what, node, "leave joins, GROUP BY, ORDER BY and LIMIT to the SELECT around")
        block, _ = planned
        return Scope(node.alias or "the subquery", node.alias, list(block.names), block.plan)

    def match(self, node: RowPattern | SituationTable, ctes: Names) -> Scope:
        """Return the scope of a clause behind a table: its plan, and the columns of its rows."""
        match: Plan
        if isinstance(node, RowPattern):
            word, part, found = "MATCH_RECOGNIZE", "MEASURES", "match"
            source = self.events(node.this, ctes, word)
            match = plan_match(node.clause, source, self.text)
        else:
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

    def standing(self, query: exp.Expr, ctes: Names) -> StandingQuery:
        """Return the plan of a standing query, perhaps in brackets behind ISTREAM or its like."""
        events = partial(self.beside_windows, ctes=ctes)
        return plan_standing(query, self.catalog, ctes, self.text, events)

    def beside_windows(self, table: exp.Expr, ctes: Names) -> Scope | None:
        """Return the scope of a table of a standing query whose rows are read as events, or None.

        It has a window, or is a query that can be no part of the standing one.
        """
        windowed = window_of_table(table) is not None or report_of(table) is not None
        query = table.this if isinstance(table, exp.Subquery) else table
        found = isinstance(query, RowPattern | SituationTable)
        if isinstance(query, exp.Select):
            clauses = (isinstance(each, RowPattern | SituationTable) for each in sources_of(query))
            found = is_windowed(query) or any(clauses)
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
        if isinstance(table, RowPattern | SituationTable):
            return self.in_time(self.match(table, ctes), span_of(table))
        if not isinstance(table, exp.Subquery) or table.args.get("joins"):
            what = f"{word} reads a stream, or a query in brackets"
            refuse(what, table, _source_hint(word))
        arms = self.arms(table, ctes, word)
        span = span_of(table)
        if len(arms) == 1:
            plan = as_events(arms[0], span, always=always)
        else:
            plan = merged_events(aligned(arms), span)
        shown = table.alias or "the subquery"
        return event_scope(shown, table.alias or "matches", list(arms[0].row), plan)

    def in_time(self, scope: Scope, span: Span | None) -> Scope:
        """Return a scope whose rows are in order of their times, and have them."""
        if in_order(scope.source):
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
        own = list(own_nodes(select))
        named = {each.name.lower() for each in own if isinstance(each, exp.Column)}
        framed = any(isinstance(each, exp.Window) for each in own)
        if not (framed or named & {TS, START_TS}) or len(tables) != 1:
            return None
        try:
            if scope is None:
                scope = self.events(tables[0].copy(), ctes, "OVER")
            found = self.in_time(scope, span_of(tables[0]))
        except EventideError:
            return None  # SQL for the engine reads more than our operators do
        if found is scope and not scope.hidden:
            return None
        return found.of_select(select) if framed or named & found.hidden else None

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
        kept = _kept(select, _BLOCK_ARGS - {"with_"})
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
        if edge.pattern != UpdatePattern.MONOTONIC or not found.planned.is_whole:
            what = f"{word} reads rows that come and stay, and those of this query go again"
            refuse(what, query, _RELATION_HINT)
        came = bind(replace(found.plan, report="istream"), self.catalog)
        items = tuple(Named(name, Column(name, kind)) for name, kind in found.plan.row.items())
        return Project(came, items)

    def block(
        self, select: exp.Select, scope: Scope, *, nested: bool
    ) -> tuple[Block, OuterClauses] | None:
        """Return the block a SELECT is, or None if the engine's SQL has to do it."""
        windowed = is_windowed(select)
        others = {key for key, value in select.args.items() if value} - _BLOCK_ARGS - _AROUND_ARGS
        grouped = select.args.get("group") or select.args.get("having")
        if not windowed and (others or grouped):
            return None
        if others:
            what = f"{min(others).strip('_').upper()} cannot stand beside a window"
            refuse(what, select, _OUTER_HINT)
        try:
            around = around_of(select, scope)
            block = plan_block(select, scope, self.text, around.extras)
            around.check(block)
        except UnsupportedError as error:
            if windowed:
                raise
            ordered = any(select.args.get(key) for key in _AROUND_ARGS)
            if not ordered and select.find(exp.AggFunc) is None:
                self.reason = self.reason or error
            return None
        except BindError:
            # In a subquery of an expression, an unknown name may be a column of the query around.
            if nested and not windowed:
                return None
            raise
        if reads_relation(block.plan) and not is_of_rows(block.plan):
            return None
        return block, around


def alias_of(name: str) -> exp.TableAlias:
    """Return a name as the alias of a table."""
    return exp.TableAlias(this=identifier(name))


def event_scope(stream: str, alias: str, visible: list[str], plan: Plan) -> Scope:
    """Return the scope of rows of a query that are events; their times need not be visible."""
    times = {TS, START_TS}
    shown = [name.lower() if name.lower() in times else name for name in visible]
    hidden = [name for name in (TS, START_TS) if name not in shown]
    return Scope(stream, alias, [*shown, *hidden], plan, hidden=frozenset(hidden))


def aligned(arms: list[Plan]) -> list[Plan]:
    """Return the plans of UNION ALL with the columns of the first, by position."""
    names = list(arms[0].row)
    for arm in arms:
        if len(arm.row) != len(names):
            message = f"UNION ALL of {len(names)} and of {len(arm.row)} columns"
            raise BindError(message, hint="each side has the same number of columns")
    kinds = []
    columns = zip(*(arm.row.values() for arm in arms), strict=True)
    for name, column in zip(names, columns, strict=True):
        kind = common_type(column)
        if kind is None:
            message = f"{name} is {' and '.join(map(str, dict.fromkeys(column)))} in UNION ALL"
            raise BindError(message, hint="cast one of them: CAST(… AS …)")
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


def _kept(query: exp.Expr, read: Set[str]) -> set[str]:
    """Return the parts of a query that are not read."""
    return {key for key, value in query.args.items() if value} - read


def _source_hint(word: str) -> str:
    return _MATCH_HINT.replace("MATCH_RECOGNIZE", word)


def _culprit(select: exp.Select, kept: set[str]) -> exp.Expr | None:
    """Return the clause that keeps a SELECT from being a block, if it is a single clause."""
    clauses = [
        select.args[key] for key in sorted({*kept, "group", "with_"}) if select.args.get(key)
    ]
    return next((each for each in clauses if isinstance(each, exp.Expr) and span_of(each)), None)
