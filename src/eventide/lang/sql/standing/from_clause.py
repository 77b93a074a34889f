"""FROM of a standing SELECT: its streams and subqueries with their windows, and how they join."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.names.scope import Scope, refuse, stream_named
from eventide.lang.sql.relation_rows import relation_window
from eventide.lang.sql.select_list import refuse_aggregates
from eventide.lang.sql.spans import span_of, union, written
from eventide.lang.sql.standing.as_of import as_of_join, versioned_join
from eventide.lang.sql.standing.clause import WindowClause, report_of, window_of_table
from eventide.lang.sql.standing.find import conjuncts_of
from eventide.lang.sql.standing.join import join_all
from eventide.lang.sql.standing.outer import check_known, outer_join
from eventide.lang.sql.standing.scope import JoinedScope, Merged, Source, StandingTranslator
from eventide.plan.bind import bind, bind_condition, resolve
from eventide.plan.expressions import Call, Column, Expression, conjuncts
from eventide.plan.nodes import Scan
from eventide.plan.standing.nodes import AT
from eventide.plan.standing.windows import (
    RowsWindow,
    SessionWindow,
    StreamWindow,
    Unbounded,
    Windowed,
)
from eventide.plan.tree import Plan, Row
from eventide.schema import BOOL, DELETED, SEQ, Schema

_READ = frozenset({"stream_window", "version"})
"""The parts of a table that are handled here, beside its name and alias."""


@dataclass(frozen=True, slots=True)
class Negation:
    """A part of a query whose answer may lose rows when other rows come: what it is, and where."""

    word: str
    span: Span | None


@dataclass(frozen=True)
class From:
    """A parsed FROM: its scope, the plans to join, and the conditions; all are bound."""

    scope: JoinedScope
    parts: list[Plan]
    conditions: list[Expression]


@dataclass
class FromReader:
    """Reads FROM clauses.

    `subquery` plans a standing query in brackets under an alias. `events` returns the scope of a
    table whose rows are read as events, None for other tables.
    """

    catalog: Mapping[str, Schema]
    ctes: frozenset[str]
    text: str
    subquery: Callable[[exp.Expr, str], tuple[Plan, list[str]]]
    events: Callable[[exp.Expr], Scope | None]
    windows: list[WindowClause] = field(default_factory=list)
    negations: list[Negation] = field(default_factory=list)

    def read(self, select: exp.Select, outer: JoinedScope | None = None) -> From:
        """Return the FROM of a SELECT."""
        from_ = select.args.get("from_")
        if from_ is None:
            refuse("a standing query without FROM", select, "name the streams in FROM")
        joins = [*(from_.this.args.get("joins") or ()), *(select.args.get("joins") or ())]
        state = _Reading(self, outer)
        state.add(self.source(from_.this))
        for join in joins:
            state.join(join)
        return From(state.scope(), state.parts, state.conditions)

    def source(self, table: exp.Expr) -> Source:
        """Return one side of a FROM."""
        if isinstance(table, exp.Table):
            return self.stream(table)
        scope = self.events(table)
        if scope is not None:
            return self.derived(table, scope)
        if not isinstance(table, exp.Subquery):
            what = f"{written(table)} cannot stand beside windows of streams"
            refuse(what, table, "store its rows as a stream first")
        alias = table.args.get("alias")
        if alias is not None and alias.columns:
            refuse("renaming columns in FROM", alias, "rename them in the SELECT list")
        name = table.alias or "subquery"
        plan, fields = self.subquery(table.this, name)
        shown = table.alias or "the subquery"
        return Source(name, shown, fields, plan, frozenset(), span_of(alias or table))

    def stream(self, table: exp.Table) -> Source:
        """Return a stream under its window."""
        name = self._stream_name(table)
        schema = self.catalog[name]
        fields = schema.visible
        clause = window_of_table(table)
        window, internal = _window(clause, schema)
        if clause is not None:
            self.windows.append(clause)
        alias = table.alias or name
        span = span_of(table) if clause is None else clause.span
        node = Windowed(Scan(name, span=span_of(table)), alias, window, internal, span)
        relation = isinstance(window, RowsWindow) and window.deleted is not None
        hidden = frozenset({SEQ, DELETED} if relation else {SEQ})
        return Source(alias, name, fields, bind(node, self.catalog), hidden, span_of(table))

    def derived(self, table: exp.Expr, scope: Scope) -> Source:
        """Return the rows of an append-only query under their window."""
        clause = window_of_table(table)
        window = Unbounded() if clause is None else _keyed(clause, scope.fields)
        if clause is not None:
            self.windows.append(clause)
        alias = table.alias or "subquery"
        internal = clause is not None and clause.internal is not None
        span = span_of(table) if clause is None else clause.span
        node = Windowed(scope.source, alias, window, internal, span)
        plan = bind(node, self.catalog)
        # The instant of ISTREAM is that of `ts`, and the answer around has one of its own.
        hidden = scope.hidden | (frozenset() if report_of(table) is None else {AT})
        return Source(alias, scope.stream, scope.fields, plan, hidden, span_of(table))

    def _stream_name(self, table: exp.Table) -> str:
        known = stream_named(table, self.catalog, self.ctes, _READ)
        if known is None:
            what = f"{table.name} is recursive or renames its columns, beside windows of streams"
            refuse(what, table, "write it as a subquery in FROM")
        return known


def _window(clause: WindowClause | None, schema: Schema) -> tuple[StreamWindow, bool]:
    """Return the window of a stream: as written, else all events, or the rows of a relation."""
    if clause is None:
        if schema.key:
            return relation_window(schema), False
        return Unbounded(), False
    return _keyed(clause, schema.visible), clause.internal is not None


def _keyed(clause: WindowClause, fields: list[str]) -> StreamWindow:
    """Return a window with its keys spelled as in its source."""
    window = clause.window
    keys = tuple(resolve(key.text, fields, span=key.span, what="column") for key in clause.keys)
    if isinstance(window, RowsWindow | SessionWindow):
        return replace(window, keys=keys)
    return window


@dataclass
class _Reading:
    """The sources so far, what they are joined to, and the conditions."""

    reader: FromReader
    outer: JoinedScope | None
    sources: list[Source] = field(default_factory=list)
    parts: list[Plan] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    merged: dict[str, Merged] = field(default_factory=dict)
    since: tuple[int, int] = (0, 0)
    """The number of parts and conditions before the last comma, which outer joins do not touch."""

    def scope(self) -> JoinedScope:
        return JoinedScope.over(self.sources, self.merged, self.outer)

    def add(self, source: Source, *, part: bool = True) -> None:
        """Add a source; with `part`, it is a part of its own that is joined later."""
        for other in self.sources:
            if other.alias.lower() == source.alias.lower():
                message = f"two sides of a join are called {source.alias!r}"
                hint = "give one of them another name with AS, as in JOIN … AS other"
                raise BindError(message, span=source.span, hint=hint)
        around = () if self.outer is None else self.outer.sources
        for other in (*self.sources, *around):
            both = sorted({*other.plan.row} & {*source.plan.row})
            if both and other.alias != source.alias:
                message = f"{both[0]} is a column of {other.alias!r} and of {source.alias!r}"
                hint = "give one of them a name without a dot: JOIN … AS other"
                raise BindError(message, span=source.span, hint=hint)
        self.sources.append(source)
        if part:
            self.parts.append(source.plan)

    def join(self, join: exp.Join) -> None:
        method, side, kind = (str(each).upper() for each in (join.method, join.side, join.kind))
        version = join.this.args.get("version")
        if method == "NATURAL":
            refuse("NATURAL JOIN beside windows", join, "name the columns: JOIN … USING (…)")
        if kind in ("SEMI", "ANTI"):
            word = "EXISTS" if kind == "SEMI" else "NOT EXISTS"
            refuse(f"{kind} JOIN beside windows", join, f"write WHERE {word} (SELECT …)")
        as_of = method == "ASOF" or version is not None
        if as_of and side not in ("", "LEFT"):
            refuse(f"{side} JOIN as of a time", join, "write LEFT JOIN, or leave it out")
        bare = not (join.args.get("on") or join.args.get("using"))
        if side and bare:
            refuse(
                f"{side} JOIN without ON", join, "say which rows are partners: ON …, or USING (…)"
            )
        if bare and not (method or kind):
            self.since = len(self.parts), len(self.conditions)
        source = self.reader.source(join.this)
        before = list(self.sources)
        self.add(source, part=not (as_of or side))
        using = list(self.using(join, source, before))
        on = join.args.get("on")
        conditions = [*using, *self.translated(on, "ON")]
        span = union([span_of(join.this), None if on is None else span_of(on)])
        if version is not None:
            self.versioned(join, conditions, source, span)
        elif as_of:
            as_of_join(self.parts, source, conditions, span, outer=side == "LEFT", using=using)
        elif side:
            self.outer_join(source, conditions, side, span)
        else:
            self.conditions += conditions

    def outer_join(
        self, source: Source, conditions: list[Expression], side: str, span: Span | None
    ) -> None:
        """Join everything since the last comma with a source."""
        part, condition = self.since
        known = frozenset(name for each in self.parts[part:] for name in each.row)
        for each in self.conditions[condition:]:
            check_known(each, known, side)
        left = join_all(self.parts[part:], self.conditions[condition:])
        self.parts[part:] = [outer_join((left, source.plan), conditions, side, span)]
        del self.conditions[condition:]
        self.reader.negations.append(Negation(f"{side} JOIN", span))

    def versioned(
        self, join: exp.Join, conditions: list[Expression], source: Source, span: Span | None
    ) -> None:
        """Join a relation as it was: FOR SYSTEM_TIME AS OF t.ts."""
        version = join.this.args["version"]
        moment = version.args.get("expression")
        if str(version.args.get("kind")) != "AS OF" or not isinstance(moment, exp.Column):
            refuse("this version of a relation", version, "write FOR SYSTEM_TIME AS OF t.ts")
        column = StandingTranslator(self.scope(), self.reader.text).translate(moment)
        assert isinstance(column, Column)
        outer = str(join.side).upper() == "LEFT"
        self.conditions += versioned_join(
            self.parts, source, conditions, span, moment=column, outer=outer
        )

    def using(self, join: exp.Join, source: Source, before: list[Source]) -> Iterator[Expression]:
        """Yield the equalities that USING means, and record that it merges two columns."""
        earlier, alone = JoinedScope.over(before, self.merged), JoinedScope.over([source], {})
        for name in join.args.get("using") or ():
            node = exp.Column(this=name.copy())
            node.this.meta.update(name.meta)
            scopes = (earlier, alone)
            pair = tuple(
                StandingTranslator(each, self.reader.text).translate(node) for each in scopes
            )
            self.merged[name.name.lower()] = earlier.merging(node, source, str(join.side).upper())
            yield bind_condition(Call("=", pair, BOOL, span_of(name)), self.row())

    def translated(self, node: exp.Expr | None, place: str) -> Iterator[Expression]:
        """Yield the parts of a condition, bound."""
        translator = StandingTranslator(self.scope(), self.reader.text)
        for part in conjuncts_of(node):
            condition = translator.translate(part)
            refuse_aggregates(condition, place)
            yield from conjuncts(bind_condition(condition, self.row()))

    def row(self) -> Row:
        return self.scope().row
