"""Cut a query: blocks become plans of ours, the rest is SQL for DuckDB or Spark.

`SELECT … FROM cars GROUP BY car, TUMBLE(…) ORDER BY n LIMIT 3` becomes our window aggregate as
`eventide_0`, and `SELECT … FROM eventide_0 ORDER BY n LIMIT 3` around it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql.block import Block, plan_block
from eventide.lang.sql.indexed import IndexReader
from eventide.lang.sql.names.columns import fresh, identifier
from eventide.lang.sql.names.scope import Scope, refuse, sources_of
from eventide.lang.sql.ordering import NOTHING_AROUND, OuterClauses, around_of
from eventide.lang.sql.relation_rows import (
    as_input,
    is_of_rows,
    may_change,
    reads_relation,
    refuse_as_of,
    rows_now,
)
from eventide.lang.sql.rewrites import Syntax, rewrite
from eventide.lang.sql.situations.period_relations import PeriodRelation
from eventide.lang.sql.sources import BLOCK_ARGS, Names, SourceReader, alias_of
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import report_of
from eventide.lang.sql.standing.find import has_windows, is_standing
from eventide.lang.sql.windows.group_by import check_windowed, is_window, is_windowed
from eventide.plan.bind import bind
from eventide.plan.nodes import Filter, Project, Relational
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan
from eventide.schema import Schema

if TYPE_CHECKING:
    from eventide.lang.sql.situations.period_conditions import Exists

_AROUND_ARGS = {"order", "limit", "offset", "distinct"}
_OUTER_HINT = "put it in a SELECT around this one"


def plan_query(
    query: exp.Query,
    catalog: Mapping[str, Schema],
    text: str,
    indexed: Collection[str] = frozenset(),
) -> Plan:
    """Return the plan of a parsed query, without types."""
    # A name that the query itself uses would hide our input of that name.
    prefix = fresh("eventide", re.findall(r"eventide(?:_\d+)*(?=_\d)", text, re.IGNORECASE))
    query = query.copy()
    syntax = rewrite(query, catalog)
    reader, index = SourceReader(catalog, text), IndexReader(catalog, text, indexed)
    cutter = Cutter(reader, index, syntax, prefix)
    merged = cutter.union(query)
    if merged is not None:
        return merged
    rest = cutter.cut(query, frozenset())
    while isinstance(rest, exp.Subquery) and rest.this.meta.get("is_input"):
        rest = rest.this
    if len(cutter.inputs) == 1 and rest.meta.get("is_input"):
        return cutter.inputs[0][1]
    # Only a query with a rest needs what writes one.
    from eventide.lang.sql.rest.text import rest_sql

    duckdb_sql, spark = rest_sql(rest, dict(cutter.inputs), catalog)
    reason = None if cutter.reason is None else cutter.reason.located_in(text)
    if isinstance(spark, UnsupportedError):
        gap = spark.located_in(text)
        return Relational(tuple(cutter.inputs), duckdb_sql, "", gap, reason)
    return Relational(tuple(cutter.inputs), duckdb_sql, spark, None, reason)


def plan_events(query: exp.Query, catalog: Mapping[str, Schema], text: str) -> Plan:
    """Return the bound plan of SELECT * from a clause of ours whose rows are events."""
    query = query.copy()
    rewrite(query, catalog)
    reader = SourceReader(catalog, text)
    return reader.events(query.args["from_"].this, frozenset(), "CEL").source


@dataclass
class Cutter:
    """Walks a query, taking blocks out of it and numbering them."""

    reader: SourceReader
    index: IndexReader
    syntax: Syntax
    prefix: str = "eventide"
    inputs: list[tuple[str, Plan]] = field(default_factory=list)
    reason: UnsupportedError | None = None
    """Why a SELECT over one stream is not a block, if there is just one reason."""

    def add(self, plan: Plan) -> exp.Table:
        """Add a plan as an input, and return the table that stands for it in the rest."""
        name = f"{self.prefix}_{len(self.inputs)}"
        self.inputs.append((name, as_input(plan) if plan.changes else plan))
        return exp.to_table(name)

    def union(self, query: exp.Expr) -> Plan | None:
        """Return the plan of a whole query that is UNION ALL of append-only ones, else None."""
        while isinstance(query, exp.Subquery) and report_of(query) is None:
            query = query.this
        if not isinstance(query, exp.Union) or is_standing(query):
            return None
        return self.reader.inner_rows(query, frozenset())

    def cut(self, query: exp.Expr, ctes: Names, *, nested: bool = False) -> exp.Expr:
        """Return the rest of a query. `nested` queries may use columns of those around them."""
        ctes = self._cut_ctes(query, ctes)
        standing = self._cut_standing(query, ctes) if self.syntax.standing else None
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
        if isinstance(query, exp.Select) and is_windowed(query) and not has_windows(query):
            return None  # TUMBLE and HOP read rows that never go as events
        try:
            found = self.reader.standing(query, ctes)
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
        matched = self.reader.find_matches(select, ctes)
        partners: list[tuple[Exists, Scope]] = []
        if self.syntax.has(PeriodRelation):
            from eventide.lang.sql.situations.period_conditions import find_exists

            matched |= self.reader.find_periods(select, ctes)
            partners += [
                (each, self.reader.periods(each.side, ctes)) for each in find_exists(select)
            ]
        tables = list(sources_of(select))
        scope = self.reader.sole_scope(select, tables, ctes, matched, written=is_windowed(select))
        if is_windowed(select):
            windowed = self._windowed(select, tables, ctes, scope)
            block = self._block(select, windowed, nested=nested)
            assert block is not None
            return self._replace(select, *block)
        aggregates = None if scope is None else self.index.aggregates(select, scope)
        if aggregates is None and scope is not None:
            aggregates = self.index.over_all(select, scope)
        if aggregates is not None:
            return self._replace(select, *aggregates)
        timed = self.reader.timed(select, tables, ctes, scope)
        now = None if scope is None else rows_now(scope, self.reader.catalog)
        for found in (timed, now):
            if found is None:
                continue
            # What our operators cannot do with the rows of a query is left to the engine.
            block = self._block(select, found, nested=nested or found is timed)
            if block is not None and self._fits(found, block[0]):
                return self._replace(select, *self.index.ended(*block))
        inner = self._over_query(select, tables, ctes) if scope is None else None
        if inner is not None:
            return self._replace(select, *inner)
        matched |= self.reader.show_times(select, ctes, matched)
        tables = list(sources_of(select))
        scopes = {id(table): self.reader.scope(table, ctes, matched) for table in tables}
        known = {
            key: rows_now(each.of_select(select), self.reader.catalog)
            for key, each in scopes.items()
            if each is not None
        }
        refuse_as_of(select, known)
        return self._keep(select, tables, known, ctes, partners, nested=nested)

    def _windowed(
        self, select: exp.Select, tables: list[exp.Expr], ctes: Names, scope: Scope | None
    ) -> Scope:
        """Return the scope of a SELECT with TUMBLE or HOP: its one source, in order of time."""
        word = next(each.name for each in select.args["group"].expressions if is_window(each))
        if len(tables) != 1 or tables[0].args.get("joins") or select.args.get("laterals"):
            hint = "window each stream first, or join them in brackets: FROM (SELECT … JOIN …)"
            refuse("TUMBLE and HOP work over one stream", select.args["group"], hint)
        if scope is None:
            scope = self.reader.events(tables[0], ctes, word.upper()).of_select(select)
        timed = self.reader.in_time(scope, span_of(tables[0]))
        if timed is not scope:
            check_windowed(timed, select)
        return timed.of_select(select)

    def _block(
        self, select: exp.Select, scope: Scope, *, nested: bool
    ) -> tuple[Block, OuterClauses] | None:
        """Return the block a SELECT is, or None if the engine's SQL has to do it."""
        windowed = is_windowed(select)
        others = {key for key, value in select.args.items() if value} - BLOCK_ARGS - _AROUND_ARGS
        grouped = select.args.get("group") or select.args.get("having")
        if not windowed and (others or grouped):
            return None
        if others:
            what = f"{min(others).strip('_').upper()} cannot stand beside a window"
            refuse(what, select, _OUTER_HINT)
        try:
            block = plan_block(select, scope, self.reader.text)
            ordered = any(select.args.get(key) for key in _AROUND_ARGS)
            around = around_of(select, block.columns) if ordered else NOTHING_AROUND
        except UnsupportedError as error:
            if windowed:
                raise
            ordered = any(select.args.get(key) for key in _AROUND_ARGS)
            if not ordered and not _has_aggregates(select):
                self.reason = self.reason or error
            return None
        except BindError:
            # In a subquery of an expression, an unknown name may be a column of the query around.
            if nested and not windowed:
                return None
            raise
        if block.plan.changes and reads_relation(block.plan) and not is_of_rows(block.plan):
            return None
        return block, around

    def _over_query(
        self, select: exp.Select, tables: list[exp.Expr], ctes: Names
    ) -> tuple[Block, OuterClauses] | None:
        """Return the block of a SELECT that computes with each row of an append-only query."""
        scope = self.reader.over_query(select, tables, ctes)
        block = None if scope is None else self._block(select, scope, nested=True)
        if block is None or not block[1].is_empty:
            return None
        try:
            plan = bind(block[0].plan, self.reader.catalog)
        except BindError:
            return None  # the engine may cast more
        return replace(block[0], plan=below_merge(plan)), block[1]

    def _fits(self, scope: Scope, block: Block) -> bool:
        """Whether the types of a block fit; over a SELECT in brackets, the engine may cast more."""
        if not (scope.meanings or scope.hidden):
            return True
        try:
            bind(block.plan, self.reader.catalog)
        except BindError:
            return False
        return True

    def _replace(self, select: exp.Select, block: Block, around: OuterClauses) -> exp.Expr:
        table = self.add(block.plan)
        names = block.columns.names
        rest = exp.Select(expressions=[exp.column(identifier(name)) for name in names])
        rest.set("from_", exp.From(this=table))
        rest.set("with_", select.args.get("with_"))
        if around is not NOTHING_AROUND:
            around.put(rest)
        if rest.args.keys() & _AROUND_ARGS or rest.args.get("with_"):
            return rest
        rest.meta["is_input"] = not block.plan.changes or may_change(block.plan, names)
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
        from eventide.lang.sql.situations.period_join import keep_joined

        plans = keep_joined(
            select, tables, scopes, self.reader.catalog, self.add, nested=nested, partners=partners
        )
        for table in tables:
            if id(table) in plans:
                scope = scopes[id(table)]
                stand_in = self.add(plans[id(table)])
                stand_in.set("alias", alias_of(scope.alias))
                table.replace(stand_in)
        for inner in list(inner_queries(select)):
            parent_is_source = isinstance(inner.parent, exp.From | exp.Join)
            rest = self.cut(inner, ctes, nested=not parent_is_source)
            if rest is not inner:
                inner.replace(rest)
        return select


def _has_aggregates(select: exp.Select) -> bool:
    """Whether a SELECT has aggregates without OVER, which need an end."""
    calls = select.find_all(exp.AggFunc)
    return any(call.find_ancestor(exp.Window, exp.Select) is select for call in calls)


def below_merge(plan: Plan) -> Plan:
    """Project(a, Merge(x, y)) -> Merge(Project(a, x), Project(a, y)): each is a block by itself."""
    if not isinstance(plan, Filter | Project):
        return plan
    source = below_merge(plan.source)
    if not isinstance(source, Merge):
        return plan
    return Merge(tuple(replace(plan, source=each) for each in source.sources))


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
