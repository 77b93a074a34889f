"""What the names in one SELECT mean: its stream, columns of that, and the SELECT's own aliases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import NoReturn

from sqlglot import exp

from eventide.errors import BindError, Span, UnsupportedError
from eventide.lang.sql.spans import span_of, written
from eventide.plan.bind import suggestion
from eventide.plan.expressions import Column, Expression
from eventide.plan.nodes import Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.tree import Plan
from eventide.schema import SEQ, Schema

NO_CTE = "no_cte"
"""The key under which a table remembers that it is not the CTE of its name."""
_READ = frozenset({"this", "alias", "joins"})
_VERSION_HINT = "put a window behind the stream beside it, as in orders [RANGE UNBOUNDED] AS o"
_VERY_NEAR = 0.85
"""How similar a name in double quotes is to a column if it may be a misspelling of it."""


@dataclass(frozen=True)
class Scope:
    """The source of a block, and the names that its SELECT list gives.

    `stream` is the source's name, for errors; `source` is its plan: a scan, or the matches of a
    pattern. `pseudo` are columns that exist beside the stream's: the bounds of a window.
    """

    stream: str
    alias: str
    fields: list[str]
    source: Plan
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    windows: dict[str, exp.Window] = field(default_factory=dict)
    pseudo: frozenset[str] = frozenset()
    meanings: Mapping[str, Expression] = field(default_factory=dict)
    """The expressions of columns that a SELECT in brackets computes from the rows of `source`."""
    hidden: frozenset[str] = frozenset()
    """The fields that `*` leaves out: the times of a derived row that its query does not show."""

    @property
    def starred(self) -> list[str]:
        """The columns that `*` means."""
        one_row = isinstance(self.source, MatchRecognize) and not self.source.all_rows
        if one_row or isinstance(self.source, Situations | TemporalPattern):
            return self.fields
        return [name for name in self.fields if name != SEQ and name not in self.hidden]

    def star(self, table: str) -> list[exp.Column]:  # noqa: ARG002 - there is one source
        """Return the columns that `*` means, or that of a table."""
        return [exp.column(name, quoted=True) for name in self.starred]

    def means(self, name: str) -> Expression:
        """Return the expression over the rows of `source` that a field stands for."""
        return self.meanings.get(name, Column(name))

    def with_aliases(self, aliases: dict[str, exp.Expr]) -> Scope:
        """Return the scope with other aliases."""
        return replace(self, aliases=aliases)

    def of_select(self, select: exp.Select) -> Scope:
        """Return the scope with the names that a SELECT gives to its items and windows."""
        aliases = {
            item.alias.lower(): item.this
            for item in select.expressions
            if isinstance(item, exp.Alias)
        }
        windows = {each.name.lower(): each for each in select.args.get("windows") or ()}
        return replace(self, aliases=aliases, windows=windows)

    def owns(self, column: exp.Column) -> bool:
        """Whether a column belongs to this stream, by its qualifier and its name."""
        qualifier = column.table
        if qualifier and qualifier.lower() != self.alias.lower():
            return False
        return self.find(column.name) is not None

    def find(self, name: str) -> str | None:
        """Return how the schema spells a name, or None; case does not matter."""
        folded = name.lower()
        return next((each for each in self.fields if each.lower() == folded), None)

    def resolve(self, column: exp.Column) -> str | exp.Expr:
        """Return the name of a column, or the expression an alias stands for."""
        name, qualifier = column.name, column.table
        if qualifier and qualifier.lower() != self.alias.lower():
            message = f"no stream {qualifier!r} in this FROM"
            raise BindError(
                message, span=span_of(column), hint=f"its columns are {self.alias}.…, or plain"
            )
        found = self.find(name)
        if name.lower() in self.pseudo:
            if qualifier and found is not None:
                message = f"{found} of {self.stream} is hidden by the bound of the window"
                hint = f"without {qualifier}. it is the attribute in aggregates, GROUP BY and WHERE"
                raise BindError(message, span=span_of(column), hint=hint)
            if not qualifier:
                return name.lower()
        aliased = None if qualifier else self.aliases.get(name.lower())
        if found is not None and (aliased is None or found not in self.hidden):
            return found
        if aliased is not None:
            return aliased
        message = f"no column {name!r} in {self.stream}"
        known = [*self.fields, *sorted(self.pseudo)]
        raise BindError(message, span=span_of(column), hint=column_hint(column, known))


def column_hint(column: exp.Column, known: list[str]) -> str:
    """Return the hint for an unknown column; text in the wrong quotes may be meant."""
    name = column.name
    if column.table or not column.this.args.get("quoted"):
        return suggestion(name, known, "column")
    text = name.replace("'", "''")
    hint = f"text stands in single quotes: '{text}'"
    folded = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), folded, n=1, cutoff=_VERY_NEAR)
    return f"{hint}; or did you mean the column {folded[near[0]]!r}?" if near else hint


def stream_named(
    table: exp.Table, catalog: Mapping[str, Schema], ctes: Set[str], read: Set[str] = frozenset()
) -> str | None:
    """Return the stream a table names, None for a CTE; anything else is an error.

    `read` are the parts of a table, beside its name and alias, that the caller handles.
    """
    if not isinstance(table.this, exp.Identifier):
        what = f"{written(table)} is not a stream"
        refuse(what, table, "FROM takes streams, CTEs and subqueries")
    name = table.name
    if not table.db and name.lower() in ctes and not table.meta.get(NO_CTE):
        return None
    folded = {stream.lower(): stream for stream in catalog}
    known = name if name in catalog else folded.get(name.lower())
    if known is None or table.db:
        shown = f"{table.db}.{name}" if table.db else name
        message = f"no stream {shown!r}"
        hint = suggestion(name, [*catalog, *sorted(ctes)], "stream")
        raise BindError(message, span=span_of(table.this), hint=hint)
    _refuse_extras(table, _READ | read)
    return known


def _refuse_extras(table: exp.Table, read: Set[str]) -> None:
    """Refuse parts of a table that would be lost with it: samples, pivots, renamings."""
    extras = {key for key, value in table.args.items() if value} - read
    alias = table.args.get("alias")
    if "version" in extras:
        refuse("FOR SYSTEM_TIME in a query without windows", table, _VERSION_HINT)
    if extras:
        what = f"{min(extras).strip('_').upper()} on a stream"
        refuse(what, table, "leave it out, or use it on a subquery")
    if alias is not None and alias.columns:
        refuse("renaming a stream's columns in FROM", alias, "rename them in the SELECT list")


def scope_of(table: exp.Table, stream: str, schema: Schema) -> Scope:
    """Return the scope of a query that reads one stream."""
    fields = schema.visible
    return Scope(stream, table.alias or stream, fields, Scan(stream, span=span_of(table)))


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the sources of a SELECT: its FROM and its joins."""
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this
        yield from (join.this for join in from_.this.args.get("joins") or ())
    for join in select.args.get("joins") or ():
        yield join.this


def refuse(what: str, node: exp.Expr, hint: str, *, span: Span | None = None) -> NoReturn:
    """Raise the error for syntax that our own operators cannot do."""
    raise UnsupportedError(what, span=span_of(node) or span, hint=hint)
