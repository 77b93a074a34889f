"""FROM fast → FROM (SELECT …) AS fast, where fast is the name of a query."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.functions.of_flink import apply_flink_functions
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.names.lists import read_short_lists
from eventide.lang.sql.names.scope import NO_CTE, refuse
from eventide.lang.sql.parse import parse
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import report_of, window_of_table
from eventide.lang.sql.statement import Statement, read_statement
from eventide.lang.sql.windows.table_functions import apply_window_tables
from eventide.plan.named import NamedQuery
from eventide.schema import TIMESTAMP, TS

_READ = frozenset({"this", "alias", "joins", "stream_window"})


def with_named(query: exp.Query, texts: NamedTexts, catalog: Collection[str]) -> exp.Query:
    """Replace names of queries in FROM by these queries, in brackets; return the query.

    A name in the catalog is a stream that is there already: its query runs elsewhere.
    """
    if texts.named:
        _Inliner(texts, frozenset(name.lower() for name in catalog)).inline(query)
    return query


def names_read(query: str | Statement, params: object = None) -> frozenset[str]:
    """Return the names in FROM of a query, in lower case, without those of its CTEs.

    >>> sorted(names_read("WITH x AS (SELECT * FROM cars) SELECT * FROM x JOIN Trucks ON TRUE"))
    ['cars', 'trucks']
    """
    parsed = parse(read_statement(query) if isinstance(query, str) else query, params)
    apply_window_tables(parsed)
    tables = (each for each in parsed.find_all(exp.Table) if not is_shadowed(each))
    return frozenset(_called(each) for each in tables)


def _called(table: exp.Table) -> str:
    """Return the name of a table in lower case, also in FROM cars(a, b)."""
    call = table.this
    name = str(call.this) if isinstance(call, exp.Anonymous) else table.name
    return name.lower()


@dataclass
class _Inliner:
    """Replaces names; `open` are those of the definitions around, outermost first."""

    texts: NamedTexts
    streams: frozenset[str]
    """The names that are streams, in lower case."""
    open: tuple[str, ...] = ()
    known: dict[str, exp.Query] = field(default_factory=dict)
    """Definitions that were read before, by name."""

    def inline(self, query: exp.Query) -> None:
        apply_flink_functions(query)
        apply_window_tables(query)
        named = self.texts.named
        read_short_lists(query, {name: each.schema for name, each in named.items()})
        for table in list(query.find_all(exp.Table)):
            name = table.name.lower()
            called = isinstance(table.this, exp.Identifier) and not table.db
            if not called or name not in named or is_shadowed(table):
                continue
            # The columns of a stream begin with `ts`.
            as_it_is = name in self.streams and named[name].columns[:1] == ((TS, TIMESTAMP),)
            if not as_it_is:
                table.replace(self.brackets(table, named[name]))

    def brackets(self, table: exp.Table, named: NamedQuery) -> exp.Subquery:
        """Return the query of a name as what stands in FROM in the place of a table."""
        _refuse_extras(table)
        alias = table.args.get("alias")
        if alias is None:
            alias = exp.TableAlias(this=table.this.copy())
        if named.name.lower() in self.streams:
            found = in_brackets(_listed(exp.Table(this=table.this.copy()), named), alias)
        else:
            query = self.definition(named, span_of(table.this))
            if named.kind == "stream":
                inside = exp.TableAlias(this=identifier(named.name))
                query = _listed(in_brackets(query, inside), named)
            found = in_brackets(query, alias)
        found.set("joins", table.args.get("joins"))
        found.set("stream_window", window_of_table(table))
        return found

    def definition(self, named: NamedQuery, span: Span | None) -> exp.Query:
        """Return the parsed query of a name, without names of queries in it."""
        name = named.name.lower()
        if name in self.open:
            circle = [*self.open[self.open.index(name) :], name]
            shown = " → ".join(self.texts.named[each].name for each in circle)
            message = f"{named.name} would read itself: {shown}"
            raise BindError(message, span=span, hint="leave one of these names out")
        if name not in self.known:
            query = parse(read_statement(self.texts.placed(name)))
            inner = _Inliner(self.texts, self.streams, (*self.open, name), self.known)
            inner.inline(query)
            for table in query.find_all(exp.Table):
                # Where the query goes, CTEs may be visible that have nothing to do with it.
                if not is_shadowed(table):
                    table.meta[NO_CTE] = True
            self.known[name] = query
        return self.known[name].copy()


def is_shadowed(table: exp.Table) -> bool:
    """Whether a table names a CTE."""
    if table.db or table.meta.get(NO_CTE):
        return False
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        with_ = parent if isinstance(parent, exp.With) else parent.args.get("with_")
        if isinstance(with_, exp.With) and child is not with_:
            for cte in with_.expressions:
                if cte is child and not with_.args.get("recursive"):
                    break
                if cte.alias.lower() == _called(table):
                    return True
        child, parent = parent, parent.parent
    return False


def _listed(source: exp.Expr, named: NamedQuery) -> exp.Select:
    """Return the SELECT of all columns of a stream, also of the times that its query hides."""
    columns: list[exp.Expr] = [exp.column(identifier(name)) for name, _ in named.columns]
    select = exp.Select(expressions=columns)
    select.set("from_", exp.From(this=source))
    return select


def in_brackets(query: exp.Query, alias: exp.TableAlias) -> exp.Subquery:
    """Return a query as what stands in FROM."""
    if isinstance(query, exp.Subquery) and report_of(query) is not None:
        query.set("alias", alias)
        return query
    return exp.Subquery(this=query, alias=alias)


def _refuse_extras(table: exp.Table) -> None:
    """Refuse parts of a table that would be lost with it."""
    extras: Collection[str] = {key for key, value in table.args.items() if value} - _READ
    if extras:
        what = f"{min(extras).strip('_').upper()} on the name of a query"
        refuse(what, table, "leave it out, or use it on a subquery")
