"""What the names in a standing SELECT mean: `a.src` is the column `a.src` of the joined rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import BindError, EventideError, Span, UnsupportedError
from eventide.lang.sql.expressions import AROUND_HINT, Translator
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.scope import Scope, column_hint
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.frequent import frequent_call, read_frequent
from eventide.plan.aggregates import DECAYED
from eventide.plan.bind import suggestion
from eventide.plan.expressions import Aggregate, Call, Column, Expression, Over
from eventide.plan.times import parse_duration
from eventide.plan.tree import Plan, Row
from eventide.schema import SEQ, TS


@dataclass(frozen=True)
class Source:
    """One source of a FROM: the columns `alias.field` of its plan, which is bound.

    `stream` is its name, for errors; `hidden` are the fields that `*` leaves out.
    """

    alias: str
    stream: str
    fields: list[str]
    plan: Plan
    hidden: frozenset[str] = frozenset({SEQ})
    span: Span | None = None

    @property
    def starred(self) -> list[str]:
        """The fields that `*` means."""
        return [name for name in self.fields if name not in self.hidden]

    def find(self, name: str) -> str | None:
        """Return the column that a name means, or None; case does not matter."""
        folded = name.lower()
        return next((self.column(each) for each in self.fields if each.lower() == folded), None)

    def column(self, name: str) -> str:
        """Return what a field is called in the plan."""
        return f"{self.alias}.{name}"


@dataclass(frozen=True, slots=True)
class Merged:
    """A column that USING makes of several: these columns, and the expression it stands for.

    The expression does not use a side of an outer join that may be null. For FULL JOIN it is the
    first of both that is not null.
    """

    meaning: str | exp.Expr
    columns: tuple[str, ...]


@dataclass(frozen=True)
class JoinedScope(Scope):
    """The sources of a FROM. `merged` has the columns that USING merges, by name.

    `outer` is the scope of the SELECT around, for the query of an EXISTS.
    """

    sources: tuple[Source, ...] = ()
    merged: Mapping[str, Merged] = field(default_factory=dict)
    outer: JoinedScope | None = None

    @classmethod
    def over(
        cls,
        sources: Iterable[Source],
        merged: Mapping[str, Merged],
        outer: JoinedScope | None = None,
    ) -> JoinedScope:
        """Return the scope of some sources, without names of a SELECT list."""
        found = tuple(sources)
        fields = list(dict.fromkeys(name for each in found for name in each.fields))
        shown = " or ".join(dict.fromkeys(each.stream for each in found))
        first = found[0]
        return cls(
            shown,
            first.alias,
            fields,
            first.plan,
            sources=found,
            merged=merged,
            outer=outer,
        )

    @property
    def row(self) -> Row:
        """All columns that may be named, with those of the SELECT around."""
        around = {} if self.outer is None else self.outer.row
        own = {name: kind for each in self.sources for name, kind in each.plan.row.items()}
        return {**around, **own}

    def star(self, table: str) -> list[exp.Column]:
        """Return the columns that a star means; those that USING merges come once, at the first."""
        merged = {} if table else self.merged
        columns = []
        for source in self.sources:
            if table and source.alias.lower() != table.lower():
                continue
            for name in source.starred:
                own = source.column(name)
                one = merged.get(name.lower(), Merged(own, (own,)))
                if own in one.columns[1:]:
                    continue
                # A column that USING merges has no source.
                owner = source.alias if own == one.meaning or own not in one.columns else None
                columns.append(exp.column(name, table=owner, quoted=True))
        return columns

    def owns(self, column: exp.Column) -> bool:
        """Whether a column belongs to one of these sources."""
        return self._merged(column) is not None or bool(self._candidates(column))

    def merging(self, column: exp.Column, source: Source, side: str) -> Merged:
        """Return the merged column that USING makes of one of these sources and one of another."""
        before, other = self._merged(column), source.find(column.name)
        left = self.resolve(column)
        assert other is not None
        both = (*(before.columns if before is not None else (str(left),)), other)
        if side == "RIGHT":
            return Merged(other, both)
        if side != "FULL":
            return Merged(left, both)
        parts = (self._qualified(column, left), exp.column(column.name, table=source.alias))
        return Merged(exp.Coalesce(this=parts[0], expressions=[parts[1]]), both)

    def _qualified(self, column: exp.Column, meaning: str | exp.Expr) -> exp.Expr:
        """Return the expression of a column, qualified so that it is never ambiguous."""
        if isinstance(meaning, exp.Expr):
            return meaning.copy()
        owner = next(each for each in self.sources if each.find(column.name) == meaning)
        return exp.column(column.name, table=owner.alias)

    def _merged(self, column: exp.Column) -> Merged | None:
        return None if column.table else self.merged.get(column.name.lower())

    def resolve(self, column: exp.Column) -> str | exp.Expr:
        """Return the name of a column of the joined rows, or the expression of an alias."""
        name, qualifier = column.name, column.table
        merged = self._merged(column)
        if merged is not None:
            return merged.meaning
        found = self._candidates(column)
        aliased = None if qualifier else self.aliases.get(name.lower())
        if len(found) == 1:
            return found[0]
        if aliased is not None:
            return aliased
        if found:
            owners = [each.rpartition(".")[0] for each in found]
            message = f"{name!r} is a column of {' and of '.join(owners)}"
            hint = f"say which, as in {owners[0]}.{name}"
            raise BindError(message, span=span_of(column), hint=hint)
        if self.outer is not None and self.outer.owns(column):
            return self.outer.resolve(column)
        raise self._unknown(column)

    def _candidates(self, column: exp.Column) -> list[str]:
        name, qualifier = column.name, column.table
        meant = [
            each
            for each in self.sources
            if not qualifier or each.alias.lower() == qualifier.lower()
        ]
        found = (each.find(name) for each in meant)
        return [each for each in found if each is not None]

    def _unknown(self, column: exp.Column) -> BindError:
        around = () if self.outer is None else self.outer.sources
        known = (*self.sources, *around)
        meant = [each for each in known if each.alias.lower() == column.table.lower()]
        if column.table and not meant:
            message = f"no stream {column.table!r} in this FROM"
            hint = suggestion(column.table, [each.alias for each in known], "stream")
            return BindError(message, span=span_of(column), hint=hint)
        looked_in = meant or known
        streams = " or ".join(dict.fromkeys(each.stream for each in looked_in))
        fields = list(dict.fromkeys(name for each in looked_in for name in each.fields))
        message = f"no column {column.name!r} in {streams}"
        return BindError(message, span=span_of(column), hint=column_hint(column, fields))


@dataclass(frozen=True)
class StandingTranslator(Translator):
    """Translates the expressions of a standing SELECT, with the aggregates that only it has."""

    def translate(self, node: exp.Expr) -> Expression:
        """Return our form of an expression."""
        frequent = frequent_call(node)
        if frequent is not None:
            return read_frequent(node, frequent, self.translate, self.span(node))
        if isinstance(node, exp.Anonymous) and node.name.lower() in DECAYED:
            return self._decayed(node, node.name.lower())
        return super().translate(node)

    def column(self, node: exp.Column) -> Expression:
        """Return a column, or what an alias of the SELECT list stands for."""
        if isinstance(node.this, exp.Star):
            return super().column(node)
        found = self.scope.resolve(node)
        if isinstance(found, str):
            return Column(found, span=self.span(node))
        # An alias may not be used in its own definition, nor may two define each other.
        others = {key: item for key, item in self.scope.aliases.items() if item is not found}
        return replace(self, scope=self.scope.with_aliases(others)).translate(found)

    def over(self, node: exp.Window) -> Over:
        """Refuse a frame: the window of a standing query stands behind its stream."""
        message = "OVER cannot stand in a standing query"
        raise UnsupportedError(message, span=self.span(node), hint=AROUND_HINT)

    def beyond(self, node: exp.Expr) -> EventideError:
        """Return the error for an expression that our operators cannot compute."""
        if isinstance(node, exp.Exists | exp.In):
            message = f"{'EXISTS' if isinstance(node, exp.Exists) else 'IN'} over a query here"
            hint = "it stands in WHERE by itself, joined to other conditions by AND"
            return UnsupportedError(message, span=self.span(node), hint=hint)
        return super().beyond(node)

    def predicate(self, node: exp.Expr) -> Expression:
        """Return LIKE, IN, BETWEEN or IS."""
        if isinstance(node, exp.In) and node.args.get("query"):
            raise self.beyond(node)
        return super().predicate(node)

    def _decayed(self, node: exp.Anonymous, name: str) -> Aggregate:
        """Return an aggregate whose values age from the time of the youngest event of a row."""
        *values, half_life = node.expressions or [None]
        length = _length(half_life)
        if length is None or length <= 0 or len(values) != (0 if name == "decayed_count" else 1):
            value = "" if name == "decayed_count" else "x, "
            message = f"{name.upper()} takes {'a value and ' if value else ''}a half-life"
            hint = f"write {name.upper()}({value}'10 s'): a value of 10 s ago counts half"
            raise BindError(message, span=self.span(node), hint=hint)
        assert isinstance(self.scope, JoinedScope)
        times: list[Expression] = []
        for source in self.scope.sources:
            found = source.find(TS)
            if found is None:
                message = f"{name.upper()} needs the time of events, and {source.alias} has no ts"
                hint = f"select ts in the query behind {source.alias}"
                raise BindError(message, span=self.span(node), hint=hint)
            times.append(Column(found, span=self.span(node)))
        time = times[0] if len(times) == 1 else Call("greatest", tuple(times))
        argument = self.translate(values[0]) if values else None
        return Aggregate(name, argument, span=self.span(node), parameter=length, time=time)


def _length(node: exp.Expr | None) -> int | None:
    """Return a length of time in microseconds, written as text or as an interval."""
    if isinstance(node, exp.Interval):
        return interval_us(node)
    if isinstance(node, exp.Literal) and node.is_string:
        return parse_duration(node.name)
    return None
