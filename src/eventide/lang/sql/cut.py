"""Cut a query: blocks become plans of ours, the rest is SQL for DuckDB or Spark.

`SELECT … FROM cars GROUP BY car, TUMBLE(…) ORDER BY n LIMIT 3` becomes our window aggregate as
`eventide_0`, and `SELECT … FROM eventide_0 ORDER BY n LIMIT 3` around it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError, EventideError, UnsupportedError
from eventide.lang.sql.block import Block, plan_block, scope_over, stream_below
from eventide.lang.sql.ctes import inline_ctes
from eventide.lang.sql.names.columns import fresh, identifier
from eventide.lang.sql.names.lists import (
    RENAMED_STREAM,
    apply_lists,
    read_short_lists,
    refuse_ambiguous,
)
from eventide.lang.sql.names.qualifiers import check_qualifiers
from eventide.lang.sql.names.scope import Scope, refuse, scope_of, sources_of
from eventide.lang.sql.names.streams import stream_named
from eventide.lang.sql.ordering import OuterClauses, around_of, check_limits
from eventide.lang.sql.patterns.clause import RowPattern, pattern_over_matches
from eventide.lang.sql.patterns.hints import hint_before_match
from eventide.lang.sql.patterns.plan import plan_match
from eventide.lang.sql.relation_rows import (
    as_input,
    is_of_rows,
    may_change,
    reads_relation,
    refuse_as_of,
    rows_now,
)
from eventide.lang.sql.rest.text import rest_sql
from eventide.lang.sql.situations.clause import SituationTable, over_situations
from eventide.lang.sql.situations.period_conditions import Exists, find_exists
from eventide.lang.sql.situations.period_join import joined_sides, keep_joined
from eventide.lang.sql.situations.plan import plan_situations
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import report_of
from eventide.lang.sql.standing.find import has_windows, inline_standing, is_standing
from eventide.lang.sql.standing.plan import plan_standing
from eventide.lang.sql.values import written_scope
from eventide.lang.sql.windows.group_by import check_windowed, is_windowed
from eventide.lang.sql.windows.table_functions import apply_window_tables
from eventide.plan.bind import bind
from eventide.plan.nodes import Relational, Scan
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
_WINDOW_HINT = (
    "what FROM reads is a stream, or a plain SELECT from one, as in (SELECT ts, … FROM stream "
    "WHERE …); over other rows, group by date_trunc('minute', …)"
)
_PLAIN_ARGS = {"expressions", "from_", "where"}
_CLAUSES = (RowPattern, SituationTable)
_STORE_HINT = "group by date_trunc('minute', …) instead, or store the rows as a stream first"
NO_MATCHES: Mapping[int, Scope] = {}


def plan_query(query: exp.Query, catalog: Mapping[str, Schema], text: str) -> Plan:
    """Return the plan of a parsed query, without types."""
    # A name that the query itself uses would hide our input of that name.
    prefix = fresh("eventide", re.findall(r"eventide(?:_\d+)*(?=_\d)", text, re.IGNORECASE))
    cutter = Cutter(catalog, text, prefix)
    query = query.copy()
    apply_window_tables(query)
    read_short_lists(query, catalog)
    check_qualifiers(query)
    check_limits(query)
    refuse_ambiguous(query, catalog)
    apply_lists(query, catalog)
    inline_ctes(query)
    inline_standing(query)
    rest = cutter.cut(query, frozenset())
    while isinstance(rest, exp.Subquery) and rest.this.meta.get("is_input"):
        rest = rest.this
    if len(cutter.inputs) == 1 and rest.meta.get("is_input"):
        return cutter.inputs[0][1]
    duckdb_sql, spark = rest_sql(rest, dict(cutter.inputs), catalog)
    reason = None if cutter.reason is None else cutter.reason.located_in(text)
    if isinstance(spark, UnsupportedError):
        gap = spark.located_in(text)
        return Relational(tuple(cutter.inputs), duckdb_sql, "", gap, reason)
    return Relational(tuple(cutter.inputs), duckdb_sql, spark, None, reason)


@dataclass
class Cutter:
    """Walks a query, taking blocks out of it and numbering them."""

    catalog: Mapping[str, Schema]
    text: str
    prefix: str = "eventide"
    inputs: list[tuple[str, Plan]] = field(default_factory=list)
    reason: UnsupportedError | None = None
    """Why a SELECT over one stream is not a block, if there is just one reason."""

    def add(self, plan: Plan) -> exp.Table:
        """Add a plan as an input, and return the table that stands for it in the rest."""
        name = f"{self.prefix}_{len(self.inputs)}"
        self.inputs.append((name, as_input(plan)))
        return exp.to_table(name)

    def cut(self, query: exp.Expr, ctes: Names, *, nested: bool = False) -> exp.Expr:
        """Return the rest of a query. `nested` queries may use columns of those around them."""
        ctes = self._cut_ctes(query, ctes)
        standing = self._cut_standing(query, ctes)
        if standing is not None:
            return standing
        match query:
            case exp.Select():
                return self._cut_select(query, ctes, nested=nested)
            case exp.SetOperation():
                for arm in ("this", "expression"):
                    query.set(arm, self.cut(query.args[arm], ctes, nested=nested))
            case exp.Subquery():
                query.set("this", self.cut(query.this, ctes, nested=nested))
            case exp.Table():
                # FROM (cars), FROM (cars JOIN trucks …): sqlglot calls the brackets a subquery.
                what = "brackets around a stream in FROM"
                refuse(what, query, "leave them out, or write (SELECT … FROM …)")
        return query

    def _cut_standing(self, query: exp.Expr, ctes: Names) -> exp.Expr | None:
        """Return the rest around a standing query, or None if the query is not one."""
        reported = isinstance(query, exp.Subquery) and report_of(query) is not None
        if not (reported or is_standing(query)) or isinstance(query, exp.Subquery) != reported:
            return None
        try:
            found = plan_standing(query, self.catalog, ctes, self.text)
        except UnsupportedError:
            if reported or has_windows(query):
                raise
            # SQL can stand around standing queries and read their answers.
            return None
        rest = found.around(self.add(found.plan))
        with_ = query.args.get("with_")
        if with_ is not None:
            rest.set("with_", with_)
            rest.meta["is_input"] = False
        if not reported or not isinstance(query.parent, exp.From | exp.Join):
            return rest
        return exp.Subquery(this=rest, alias=query.args.get("alias"), joins=query.args.get("joins"))

    def _cut_ctes(self, query: exp.Expr, ctes: Names) -> Names:
        with_ = query.args.get("with_")
        if with_ is None:
            return ctes
        for cte in with_.expressions:
            inner = ctes | {cte.alias.lower()} if with_.args.get("recursive") else ctes
            cte.set("this", self.cut(cte.this, inner))
            ctes |= {cte.alias.lower()}
        return ctes

    def _cut_select(self, select: exp.Select, ctes: Names, *, nested: bool) -> exp.Expr:
        matched = self._find_matches(select, ctes) | self._find_periods(select, ctes)
        partners = [(each, self._periods(each.side, ctes)) for each in find_exists(select)]
        tables = list(sources_of(select))
        scope = self._sole_scope(select, tables, ctes, matched, written=is_windowed(select))
        if scope is not None:
            scope = scope if is_windowed(select) else rows_now(scope, self.catalog)
            block = self._block(select, scope, nested=nested)
            if block is not None and (is_windowed(select) or self._fits(scope, block[0])):
                return self._replace(select, *block)
        elif is_windowed(select):
            what = "TUMBLE and HOP work over one stream"
            hint = "window each stream first, then join"
            if len(tables) == 1:
                hint = _WINDOW_HINT
                if tables[0].find(RowPattern, SituationTable):
                    hint = _STORE_HINT
            refuse(what, select.args["group"], hint)
        scopes = {id(table): self._scope(table, ctes, matched) for table in tables}
        known = {
            key: rows_now(each.of_select(select), self.catalog)
            for key, each in scopes.items()
            if each is not None
        }
        refuse_as_of(select, known)
        return self._keep(select, tables, known, ctes, partners, nested=nested)

    def _scope(self, table: exp.Expr, ctes: Names, matched: Mapping[int, Scope]) -> Scope | None:
        """Return the scope of a stream or of a row pattern's matches, None for anything else."""
        if id(table) in matched:
            return matched[id(table)]
        if isinstance(table, exp.Subquery) and table.this.meta.get(RENAMED_STREAM):
            return self._plain(table, ctes)
        stream = stream_named(table, self.catalog, ctes) if isinstance(table, exp.Table) else None
        if stream is None or not isinstance(table, exp.Table):
            return None
        return scope_of(table, stream, self.catalog[stream])

    def _sole_scope(
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
        scope = self._scope(table, ctes, matched)
        if scope is None and isinstance(table, exp.Subquery):
            scope = self._plain(table, ctes, written=written)
        if scope is None and written and isinstance(table, exp.Values):
            scope = self._written(table)
        if scope is None or table.args.get("joins"):
            return None
        if scope.meanings and is_windowed(select):
            check_windowed(scope, select)
        return scope.of_select(select)

    def _fits(self, scope: Scope, block: Block) -> bool:
        """Whether the types of a block fit; over a SELECT in brackets, the engine may cast more."""
        if not scope.meanings:
            return True
        try:
            bind(block.plan, self.catalog)
        except BindError:
            return False
        return True

    def _written(self, values: exp.Values) -> Scope:
        """Return the scope of VALUES that an operator reads, now a stream of the catalog."""
        scope, schema = written_scope(values, self.text, self.catalog)
        assert isinstance(scope.source, Scan)
        self.catalog = {**self.catalog, scope.source.stream: schema}
        return scope

    def _plain(self, table: exp.Subquery, ctes: Names, *, written: bool = False) -> Scope | None:
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
        inner = self._sole_scope(select, tables, ctes, written=written)
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

    def _find_matches(self, select: exp.Select, ctes: Names) -> dict[int, Scope]:
        """Replace every row pattern in FROM by a table; return the scope of each."""
        matched: dict[int, Scope] = {}
        for node in list(sources_of(select)):
            if isinstance(node, RowPattern | SituationTable):
                scope = self._match(node, ctes)
                table = exp.Table(this=identifier(scope.alias), alias=_alias(scope.alias))
                table.this.meta.update(node.meta)
                node.replace(table)
                matched[id(table)] = scope
        if matched and is_windowed(select):
            what = "TUMBLE and HOP work over a stream, not over matches"
            refuse(what, select.args["group"], _STORE_HINT)
        return matched

    def _find_periods(self, select: exp.Select, ctes: Names) -> dict[int, Scope]:
        """Replace every SELECT whose periods are joined by relation by a table."""
        found: dict[int, Scope] = {}
        for node in joined_sides(select):
            if isinstance(node, exp.Subquery):
                scope = self._periods(node, ctes)
                table = exp.Table(this=identifier(scope.alias), alias=_alias(scope.alias))
                table.this.meta.update(node.meta)
                node.replace(table)
                found[id(table)] = scope
        return found

    def _periods(self, node: exp.Subquery, ctes: Names) -> Scope:
        """Return the scope of a SELECT in brackets whose rows are periods: it has to be a block."""
        select = node.this
        planned = None
        if isinstance(select, exp.Select) and not select.args.get("with_"):
            matched = self._find_matches(select, ctes)
            tables = list(sources_of(select))
            inner = self._sole_scope(select, tables, ctes, matched)
            if len(tables) == 1 and isinstance(tables[0], exp.Subquery) and not is_windowed(select):
                inner = self._periods(tables[0], ctes).of_select(select)
            planned = None if inner is None else self._block(select, inner, nested=False)
        if planned is None or not planned[1].is_empty:
            what = "a relation is between the rows of streams, or of a plain SELECT from one"
            refuse(what, node, "leave joins, GROUP BY, ORDER BY and LIMIT to the SELECT around")
        block, _ = planned
        return Scope(node.alias or "the subquery", node.alias, list(block.names), block.plan)

    def _match(self, node: RowPattern | SituationTable, ctes: Names) -> Scope:
        """Return the scope of a clause behind a table: its plan, and the columns of its rows."""
        match: Plan
        if isinstance(node, RowPattern):
            word, part, found = "MATCH_RECOGNIZE", "MEASURES", "match"
            source = self._match_source(node.this, ctes, word)
            match = plan_match(node.clause, source, self.text)
        else:
            word, part = node.clause.kind, "RETURN"
            found = "match" if word == "TPSTREAM" else "situation"
            source = self._match_source(node.this, ctes, word)
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

    def _match_source(self, table: exp.Expr, ctes: Names, word: str) -> Scope:
        """Return the scope of the source of a clause: a stream, or a block in brackets."""
        scope = self._scope(table, ctes, NO_MATCHES)
        if isinstance(table, exp.Table) and scope is not None and not table.args.get("joins"):
            return scope
        if isinstance(table, exp.Values):
            return self._written(table)
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
        inner = self._sole_scope(select, tables, ctes, written=True)
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

    def _block(
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

    def _replace(self, select: exp.Select, block: Block, around: OuterClauses) -> exp.Expr:
        table = self.add(block.plan)
        rest = exp.Select(expressions=[exp.column(identifier(name)) for name in block.names])
        rest.set("from_", exp.From(this=table))
        rest.set("with_", select.args.get("with_"))
        around.put(rest, block)
        if not around.is_empty or rest.args.get("with_"):
            return rest
        rest.meta["is_input"] = may_change(block.plan, block.names)
        return rest

    def _keep(
        self,
        select: exp.Select,
        tables: list[exp.Expr],
        scopes: dict[int, Scope],
        ctes: Names,
        partners: list[tuple[Exists, Scope]],
        *,
        nested: bool,
    ) -> exp.Expr:
        """Leave a SELECT to the engine's SQL, over plans of the streams it reads."""
        plans = keep_joined(
            select, tables, scopes, self.catalog, self.add, nested=nested, partners=partners
        )
        for table in tables:
            if id(table) in plans:
                scope = scopes[id(table)]
                stand_in = self.add(plans[id(table)])
                stand_in.set("alias", _alias(scope.alias))
                table.replace(stand_in)
        for inner in list(inner_queries(select)):
            parent_is_source = isinstance(inner.parent, exp.From | exp.Join)
            rest = self.cut(inner, ctes, nested=not parent_is_source)
            if rest is not inner:
                inner.replace(rest)
        return select


def _source_hint(word: str) -> str:
    return _MATCH_HINT.replace("MATCH_RECOGNIZE", word)


def _culprit(select: exp.Select, kept: set[str]) -> exp.Expr | None:
    """Return the clause that keeps a SELECT from being a block, if it is a single clause."""
    clauses = [
        select.args[key] for key in sorted({*kept, "group", "with_"}) if select.args.get(key)
    ]
    return next((each for each in clauses if isinstance(each, exp.Expr) and span_of(each)), None)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=identifier(name))


def inner_queries(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the queries directly inside a SELECT, without its CTEs."""
    waiting = deque(child for key, child in _children(select) if key != "with_")
    while waiting:
        node = waiting.popleft()
        if isinstance(node, exp.Query):
            yield node
        else:
            waiting.extendleft(reversed([child for _, child in _children(node)]))


def _children(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for key, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield key, child
