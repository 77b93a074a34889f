"""Cut a query: blocks become plans of ours, what remains is SQL for DuckDB or Spark.

`SELECT … FROM cars GROUP BY car, TUMBLE(…) ORDER BY n LIMIT 3` becomes our window aggregate as
`eventide_0`, and `SELECT … FROM eventide_0 ORDER BY n LIMIT 3` around it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql.block import Block, is_windowed, plan_block
from eventide.lang.sql.names import fresh, identifier
from eventide.lang.sql.ordering import Around, around_of
from eventide.lang.sql.remainder import keep_select
from eventide.lang.sql.rest import rest_sql
from eventide.lang.sql.scope import Scope, refuse, scope_of
from eventide.lang.sql.spans import span_of
from eventide.plan.bind import suggestion
from eventide.plan.nodes import Plan, Relational
from eventide.schema import Schema

Names = frozenset[str]

# What a block may consist of; ORDER BY, LIMIT and DISTINCT stay around it.
_BLOCK_ARGS = {"expressions", "from_", "where", "group", "having", "windows", "with_"}
_AROUND_ARGS = {"order", "limit", "offset", "distinct"}
_OUTER_HINT = "put it in a SELECT around this one"


def plan_query(query: exp.Query, catalog: Mapping[str, Schema], text: str) -> Plan:
    """Return the plan of a parsed query, without types."""
    # A name that the query uses itself would hide what we put under it.
    prefix = fresh("eventide", re.findall(r"eventide(?:_\d+)*(?=_\d)", text, re.IGNORECASE))
    cutter = Cutter(catalog, text, prefix)
    rest = cutter.cut(query.copy(), frozenset())
    if len(cutter.inputs) == 1 and rest.meta.get("is_input"):
        return cutter.inputs[0][1]
    duckdb_sql, spark_sql = rest_sql(rest, dict(cutter.inputs), catalog)
    return Relational(tuple(cutter.inputs), duckdb_sql, spark_sql)


@dataclass
class Cutter:
    """Walks a query, taking blocks out of it and numbering them."""

    catalog: Mapping[str, Schema]
    text: str
    prefix: str = "eventide"
    inputs: list[tuple[str, Plan]] = field(default_factory=list)

    def add(self, plan: Plan) -> exp.Table:
        """Remember a plan as an input, and return the table it is to the rest."""
        name = f"{self.prefix}_{len(self.inputs)}"
        self.inputs.append((name, plan))
        return exp.to_table(name)

    def cut(self, query: exp.Expr, ctes: Names, *, nested: bool = False) -> exp.Expr:
        """Return the rest of a query. `nested` queries may use columns of those around them."""
        ctes = self._cut_ctes(query, ctes)
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

    def _cut_ctes(self, query: exp.Expr, ctes: Names) -> Names:
        with_ = query.args.get("with_")
        if with_ is None:
            return ctes
        for cte in with_.expressions:
            inner = ctes | {cte.alias.lower()} if with_.args.get("recursive") else ctes
            cte.set("this", self.cut(cte.this, inner))
            ctes |= {cte.alias.lower()}
        return ctes

    def stream_of(self, table: exp.Expr, ctes: Names) -> str | None:
        """Return the stream a table names, None for a CTE; anything else is an error."""
        if not isinstance(table, exp.Table):
            return None
        if not isinstance(table.this, exp.Identifier):
            what = f"{table.sql(dialect='duckdb')} is not a stream"
            refuse(what, table, "FROM takes streams, CTEs and subqueries")
        name = table.name
        if not table.db and name.lower() in ctes:
            return None
        folded = {stream.lower(): stream for stream in self.catalog}
        known = name if name in self.catalog else folded.get(name.lower())
        found = None if table.db else known
        if found is None:
            shown = f"{table.db}.{name}" if table.db else name
            message = f"no stream {shown!r}"
            hint = suggestion(name, [*self.catalog, *sorted(ctes)], "stream")
            raise BindError(message, span=span_of(table.this), hint=hint)
        _refuse_extras(table)
        return found

    def _cut_select(self, select: exp.Select, ctes: Names, *, nested: bool) -> exp.Expr:
        tables = list(sources_of(select))
        scope = self._sole_scope(select, tables, ctes)
        if scope is not None:
            block = self._block(select, scope, nested=nested)
            if block is not None:
                return self._replace(select, *block)
        elif is_windowed(select):
            what = "TUMBLE and HOP work over one stream"
            hint = "window each stream first, then join"
            if len(tables) == 1:
                hint = "name the stream in FROM and put the conditions on its events in WHERE"
            refuse(what, select.args["group"], hint)
        return self._keep(select, tables, ctes, nested=nested)

    def _sole_scope(self, select: exp.Select, tables: list[exp.Expr], ctes: Names) -> Scope | None:
        if len(tables) != 1 or select.args.get("joins") or select.args.get("laterals"):
            return None
        (table,) = tables
        stream = self.stream_of(table, ctes)
        if stream is None or table.args.get("joins"):
            return None
        assert isinstance(table, exp.Table)
        return scope_of(select, table, stream, self.catalog[stream])

    def _block(
        self, select: exp.Select, scope: Scope, *, nested: bool
    ) -> tuple[Block, Around] | None:
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
        except UnsupportedError:
            if windowed:
                raise
            return None
        except BindError:
            # In a subquery of an expression, an unknown name may be a column of the query around.
            if nested and not windowed:
                return None
            raise
        return block, around

    def _replace(self, select: exp.Select, block: Block, around: Around) -> exp.Expr:
        table = self.add(block.plan)
        rest = exp.Select(expressions=[exp.column(identifier(name)) for name in block.names])
        rest.set("from_", exp.From(this=table))
        rest.set("with_", select.args.get("with_"))
        around.put(rest, block)
        if not around.is_empty or rest.args.get("with_"):
            return rest
        rest.meta["is_input"] = True
        return rest

    def _keep(
        self, select: exp.Select, tables: list[exp.Expr], ctes: Names, *, nested: bool
    ) -> exp.Expr:
        """Leave a SELECT to the engine's SQL, over scans of the streams it reads."""
        scopes: dict[int, Scope] = {}
        for table in tables:
            stream = self.stream_of(table, ctes)
            if stream is not None and isinstance(table, exp.Table):
                scopes[id(table)] = scope_of(select, table, stream, self.catalog[stream])
        plans = keep_select(select, tables, scopes, nested=nested)
        for table in tables:
            if id(table) in scopes:
                scope = scopes[id(table)]
                stand_in = self.add(plans[id(table)])
                stand_in.set("alias", table.args.get("alias") or _alias(scope.alias))
                table.replace(stand_in)
        for inner in list(inner_queries(select)):
            parent_is_source = isinstance(inner.parent, exp.From | exp.Join)
            rest = self.cut(inner, ctes, nested=not parent_is_source)
            if rest is not inner:
                inner.replace(rest)
        return select


def _refuse_extras(table: exp.Table) -> None:
    """Refuse what would be lost when a stream's table is replaced: samples, pivots, renamings."""
    extras = {key for key, value in table.args.items() if value} - {"this", "alias", "joins"}
    alias = table.args.get("alias")
    if extras:
        what = f"{min(extras).strip('_').upper()} on a stream"
        refuse(what, table, "leave it out, or use it on a subquery")
    if alias is not None and alias.columns:
        refuse("renaming a stream's columns in FROM", alias, "rename them in the SELECT list")


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=identifier(name))


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield what a SELECT reads from: its FROM and its joins."""
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this
        yield from (join.this for join in from_.this.args.get("joins") or ())
    for join in select.args.get("joins") or ():
        yield join.this


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
