"""What FROM reads: the scope of a stream, of a query in brackets, of a pattern's matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import BindError, EventideError, UnsupportedError
from eventide.lang.sql.block import Block, plan_block, scope_over, stream_below
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.names.lists import RENAMED_STREAM
from eventide.lang.sql.names.scope import Scope, refuse, scope_of, sources_of
from eventide.lang.sql.names.streams import stream_named
from eventide.lang.sql.ordering import OuterClauses, around_of
from eventide.lang.sql.patterns.clause import RowPattern, pattern_over_matches
from eventide.lang.sql.patterns.hints import hint_before_match
from eventide.lang.sql.patterns.plan import plan_match
from eventide.lang.sql.relation_rows import is_of_rows, reads_relation
from eventide.lang.sql.situations.clause import SituationTable, over_situations
from eventide.lang.sql.situations.period_join import joined_sides
from eventide.lang.sql.situations.plan import plan_situations
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import report_of
from eventide.lang.sql.standing.find import is_standing
from eventide.lang.sql.values import written_scope
from eventide.lang.sql.windows.group_by import check_windowed, is_windowed
from eventide.plan.bind import bind
from eventide.plan.nodes import Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.tree import Plan
from eventide.schema import TIMESTAMP, TS, Schema

Names = frozenset[str]

# What a block may consist of; ORDER BY, LIMIT and DISTINCT stay around it.
_BLOCK_ARGS = {"expressions", "from_", "where", "group", "having", "windows", "with_"}
_AROUND_ARGS = {"order", "limit", "offset", "distinct"}
_OUTER_HINT = "put it in a SELECT around this one"
_MATCH_HINT = (
    "write FROM (SELECT ts, … FROM stream WHERE …) MATCH_RECOGNIZE (…), the rest around it"
)
_PLAIN_ARGS = {"expressions", "from_", "where"}
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
        if matched and is_windowed(select):
            what = "TUMBLE and HOP work over a stream, not over matches"
            refuse(what, select.args["group"], STORE_HINT)
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
            source = self.match_source(node.this, ctes, word)
            match = plan_match(node.clause, source, self.text)
        else:
            word, part = node.clause.kind, "RETURN"
            found = "match" if word == "TPSTREAM" else "situation"
            source = self.match_source(node.this, ctes, word)
            match = plan_situations(node.clause, source, self.text)
        alias = node.args.get("alias")
        if alias is not None and alias.columns:
            refuse(f"renaming the columns of a {found} in FROM", alias, f"name them in {part}")
        # The columns of a match are known once the types are.
        fields = list(bind(match, self.catalog).row)
        if isinstance(match, MatchRecognize) and match.all_rows and TS not in source.fields:
            measured = [item.name for item in match.measures]  # all rows of a table without times
            fields = [name for name in fields if name != TS or name in measured]
        rows = "matches" if found == "match" else "situations"
        stream = alias.name if alias is not None else f"the {rows} in {source.stream}"
        return Scope(stream, alias.name if alias is not None else source.alias, fields, match)

    def match_source(self, table: exp.Expr, ctes: Names, word: str) -> Scope:
        """Return the scope of the source of a clause: a stream, or a block in brackets."""
        scope = self.scope(table, ctes, NO_MATCHES)
        if isinstance(table, exp.Table) and scope is not None and not table.args.get("joins"):
            return scope
        if isinstance(table, exp.Values):
            return self.written(table)
        select = table.this if isinstance(table, exp.Subquery) else None
        if not isinstance(select, exp.Select):
            what = f"{word} reads a stream, or a SELECT from one in brackets"
            refuse(what, table, _source_hint(word))
        tables = list(sources_of(select))
        for each in tables:
            if isinstance(each, RowPattern):
                raise pattern_over_matches(each.clause.span)
            if isinstance(each, SituationTable):
                raise over_situations(each.clause.span)
        inner = self.sole_scope(select, tables, ctes, written=True)
        kept = {key for key, value in select.args.items() if value} - _BLOCK_ARGS
        grouped = select.args.get("group") is not None and not is_windowed(select)
        if inner is None or kept or grouped or select.args.get("with_"):
            what = f"{word} reads a plain SELECT from one stream"
            refuse(what, _culprit(select, kept) or table, _source_hint(word))
        try:
            block = plan_block(select, inner, self.text)
        except UnsupportedError as error:
            hint_before_match(error)
            raise
        if bind(block.plan, self.catalog).row.get(TS) != TIMESTAMP:
            message = f"{word} needs the time of its rows in a column ts"
            hint = "add window_end AS ts" if is_windowed(select) else "add ts"
            hint = f"{hint} to the SELECT list"
            if select.meta.get(RENAMED_STREAM):
                hint = f"leave it its name, as in {table.alias}({TS}, …)"
            raise BindError(message, span=span_of(select), hint=hint)
        name = table.alias
        return Scope(name or "the subquery", name or "matches", list(block.names), block.plan)

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


def _source_hint(word: str) -> str:
    return _MATCH_HINT.replace("MATCH_RECOGNIZE", word)


def _culprit(select: exp.Select, kept: set[str]) -> exp.Expr | None:
    """Return the clause that keeps a SELECT from being a block, if it is a single clause."""
    clauses = [
        select.args[key] for key in sorted({*kept, "group", "with_"}) if select.args.get(key)
    ]
    return next((each for each in clauses if isinstance(each, exp.Expr) and span_of(each)), None)
