"""Expressions of DEFINE and RETURN: which situation each of their columns belongs to.

A condition of DEFINE reads one event. In RETURN, `max(fast.speed)` is over the events of a
situation, `START(fast)` is an instant of it, and `COUNT(*)` or `MAX(EPOCH(DURATION(fast)))` is over
all matches of a key that are detected at the same instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError, EventideError, Span, UnsupportedError
from eventide.lang.sql.expressions import Translator, unknown_function
from eventide.lang.sql.functions.aggregates import (
    WrittenAggregate,
    aggregate_name,
    read_aggregate,
)
from eventide.lang.sql.names.scope import column_hint
from eventide.lang.sql.names.written import Name
from eventide.lang.sql.patterns.hints import hint_before_match
from eventide.lang.sql.spans import span_of, written
from eventide.plan.aggregates import AGGREGATES
from eventide.plan.bind import suggestion
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    MatchAggregate,
    Part,
    PeriodPart,
    children,
    walk,
)
from eventide.schema import SEQ, TS

_PARTS: tuple[Part, ...] = ("start", "end", "duration")
_PART_HINTS: Mapping[Part, str] = {
    "start": "every situation has it already: it is the column start_ts",
    "end": "every situation has it already: it is the column end_ts",
    "duration": "every situation has its times: write end_ts - start_ts in the SELECT",
}
_NAVIGATION = ("prev", "next", "classifier", "match_number")
_FRAME_HINT = (
    "compute it below: FROM (SELECT *, AVG(x) OVER (PARTITION BY k ORDER BY ts "
    "ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS mean FROM …)"
)
_ONE_EVENT_HINT = "a condition looks at one event alone, so that it is clear when it holds"


def part_of_period(node: exp.Expr) -> Part | None:
    """Return which of START, END and DURATION a node is."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else None
    return next((part for part in _PARTS if part == name), None)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, with or without FILTER."""
    return aggregate_name(node) is not None


def situation_named(name: Name, known: tuple[Name, ...]) -> str:
    """Return how a situation is spelled; it has to be defined."""
    found = name.among(known)
    if found is None:
        names = [each.text for each in known]
        message = f"no situation {name.text!r}"
        raise BindError(message, span=name.span, hint=suggestion(name.text, names, "situation"))
    return found


def _refuse_star(node: exp.Expr, span: Span | None) -> None:
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        message = "* stands where one value is needed"
        raise BindError(message, span=span, hint="name what is meant, as in max(fast.speed) AS top")


def _name_of(identifier: exp.Expr) -> Name:
    quoted = bool(identifier.args.get("quoted"))
    return Name(identifier.name, quoted, span_of(identifier) or Span(0, 0))


@dataclass(frozen=True)
class ConditionTranslator(Translator):
    """Translates what is computed from one event: conditions, keys, returns of SITUATIONS.

    `place` is the part of the clause it stands in, for errors.
    """

    situations: tuple[Name, ...]
    place: str

    def translate(self, node: exp.Expr) -> Expression:
        """Return our form of an expression over one event."""
        if isinstance(node, exp.Query | exp.Exists) or node.args.get("query") is not None:
            message = f"a subquery stands in {self.place}"
            hint = "compute it first, and write its value"
            raise UnsupportedError(message, span=self.span(node), hint=hint)
        _refuse_star(node, self.span(node))
        if isinstance(node, exp.Window) and self.place != "RETURN":
            message = f"OVER stands in {self.place}, which looks at one event alone"
            raise BindError(message, span=self.span(node), hint=_FRAME_HINT)
        part = part_of_period(node)
        if part is not None and self.place == "RETURN":
            message = f"{part.upper()} belongs to RETURN of TPSTREAM"
            raise BindError(message, span=self.span(node), hint=_PART_HINTS[part])
        if part is not None:
            self._refuse_situation(node, written(node))
        return super().translate(node)

    def column(self, node: exp.Column) -> Expression:
        """Return a column of the event; one of a situation is refused."""
        qualifier = node.args.get("table")
        if isinstance(qualifier, exp.Identifier) and not self._is_stream(qualifier):
            name = _name_of(qualifier).among(self.situations)
            if name is not None:
                self._refuse_situation(node, written(node))
        return super().column(node)

    def beyond(self, node: exp.Expr) -> EventideError:
        """Return the error for an expression that our operators cannot compute."""
        error = super().beyond(node)
        if isinstance(error, UnsupportedError):
            hint_before_match(error)
        return error

    def unknown_function(self, node: exp.Anonymous) -> EventideError:
        """Return the error for an unknown function."""
        if node.name.lower() in _NAVIGATION:
            message = f"{node.name.upper()} belongs to MATCH_RECOGNIZE"
            return BindError(message, span=self.span(node), hint=_ONE_EVENT_HINT)
        return unknown_function(node, self.span(node))

    def _is_stream(self, qualifier: exp.Identifier) -> bool:
        return bool(qualifier.name.lower() == self.scope.alias.lower())

    def _refuse_situation(self, node: exp.Expr, shown: str) -> None:
        if self.place == "RETURN":
            plain = f"write {node.name} alone: every situation is a row of its own"
            message = f"{shown} names a situation"
            raise BindError(message, span=self.span(node), hint=plain)
        message = f"{shown} stands in {self.place}: a condition cannot ask about a situation"
        hint = (
            "it would not be clear which one, and it may still go on; "
            "compare them in a SELECT around: RETURN both values"
        )
        raise BindError(message, span=self.span(node), hint=hint)


@dataclass(frozen=True)
class _EventTranslator(Translator):
    """Translates the argument of an aggregate: columns of one situation's events.

    `used` collects the situation of each column, and its place.
    """

    situations: tuple[Name, ...]
    used: list[tuple[str, exp.Expr]] = field(default_factory=list)

    def column(self, node: exp.Column) -> Expression:
        """Return a column of a situation's events."""
        if isinstance(node.this, exp.Star):
            return super().column(node)
        qualifier = node.args.get("table")
        found = self.scope.find(node.name)
        if not isinstance(qualifier, exp.Identifier):
            raise self._unqualified(node, found)
        self.used.append((self._situation(qualifier), node))
        if found is None:
            message = f"no column {node.name!r} in {self.scope.stream}"
            hint = column_hint(node, self.scope.fields)
            raise BindError(message, span=self.span(node), hint=hint)
        return Column(found, span=self.span(node))

    def _situation(self, qualifier: exp.Identifier) -> str:
        name = _name_of(qualifier)
        streams = (self.scope.alias.lower(), self.scope.stream.lower())
        if name.among(self.situations) is None and name.text.lower() in streams:
            first = self.situations[0].text
            message = f"{name.text} is what TPSTREAM reads, not a situation"
            hint = f"name the situation whose events are meant, as in {first}.x"
            raise BindError(message, span=name.span, hint=hint)
        return situation_named(name, self.situations)

    def _unqualified(self, node: exp.Column, found: str | None) -> BindError:
        situation = _name_of(node.this).among(self.situations)
        if situation is not None:
            field = next((name for name in self.scope.fields if name not in (TS, SEQ)), TS)
            message = f"{node.name} is a situation, not a value"
            hint = (
                f"aggregate a field of it, as in first({situation}.{field}), count its events with "
                f"COUNT({situation}.*), or take START, END or DURATION({situation})"
            )
            return BindError(message, span=self.span(node), hint=hint)
        first = self.situations[0].text
        message = f"{node.name} is of no situation"
        hint = f"say whose events are meant, as in {first}.{found or 'x'}"
        return BindError(message, span=self.span(node), hint=hint)

    def chosen(self, aggregate: exp.Expr) -> str:
        """Return the situation that an aggregate is over; there has to be exactly one."""
        shown = (aggregate_name(aggregate) or "count").upper()
        if not self.used:
            first = self.situations[0].text
            message = f"{written(aggregate)} names no situation"
            hint = f"write {shown}({first}.x); COUNT(*) counts the matches"
            raise BindError(message, span=self.span(aggregate), hint=hint)
        situation, first_node = self.used[0]
        for other, node in self.used[1:]:
            if other != situation:
                one, two = (written(each) for each in (first_node, node))
                message = f"{one} and {two} stand in one {shown}"
                hint = "all columns inside have to be of one situation; split it in two"
                raise BindError(message, span=self.span(node), hint=hint)
        return situation


@dataclass(frozen=True)
class ReturnTranslator(Translator):
    """Translates RETURN of a TPSTREAM. `keys` are columns of the output in any case."""

    situations: tuple[Name, ...]
    keys: tuple[str, ...] = ()

    def translate(self, node: exp.Expr) -> Expression:
        """Return our form of an expression over a match."""
        _refuse_star(node, self.span(node))
        if is_aggregate(node):
            return self.aggregated(node)
        part = part_of_period(node)
        if part is not None:
            return self.period(node, part)
        if isinstance(node, exp.Window):
            message = "OVER cannot stand in RETURN"
            hint = "compute it in a SELECT around this one"
            raise BindError(message, span=self.span(node), hint=hint)
        if isinstance(node, exp.Query | exp.Exists) or node.args.get("query") is not None:
            message = "a subquery stands in RETURN"
            raise UnsupportedError(
                message, span=self.span(node), hint="put it in the SELECT around"
            )
        return super().translate(node)

    def column(self, node: exp.Column) -> Expression:
        """Refuse a column outside of an aggregate: a situation has many events."""
        shown = written(node)
        if not node.table and node.name.lower() in (key.lower() for key in self.keys):
            message = f"{shown} is a key, which comes out anyway"
            raise BindError(message, span=self.span(node), hint="leave it out of RETURN")
        inner = _EventTranslator(self.scope, self.text, self.situations)
        inner.translate(node)
        message = f"{shown} has a value for each event of {node.table}"
        hint = f"take one of them: first({shown}), last({shown}) or max({shown})"
        raise BindError(message, span=self.span(node), hint=hint)

    def period(self, node: exp.Expr, part: Part) -> PeriodPart:
        """Return START, END or DURATION of a situation."""
        word = part.upper()
        argument = node.expressions[0] if len(node.expressions) == 1 else None
        if not isinstance(argument, exp.Column) or argument.table:
            message = f"{word} takes a situation"
            hint = f"write {word}({self.situations[0].text})"
            raise BindError(message, span=self.span(node), hint=hint)
        situation = situation_named(_name_of(argument.this), self.situations)
        return PeriodPart(situation, part, self.span(node))

    def aggregated(self, node: exp.Expr) -> Expression:
        """Return an aggregate, over the events of a situation or over the matches of an instant."""
        found = read_aggregate(node)
        starred = isinstance(found.argument, exp.Star)
        inside = [] if starred else found.parts
        if starred or any(_of_match(part) for each in inside for part in each.walk()):
            return self.over_matches(node, found)
        return self.over_events(node, found)

    def over_events(self, node: exp.Expr, found: WrittenAggregate) -> MatchAggregate:
        """Return an aggregate over the events of one situation."""
        inner = _EventTranslator(self.scope, self.text, self.situations)
        argument = found.argument
        counted = self._counted(argument) if found.name == "count" else None
        value = None
        if counted is not None and argument is not None:
            inner.used.append((counted, argument))
        elif argument is not None:
            value = inner.translate(argument)
        plain = found.translated(value, inner.translate, self.span(node))
        over = MatchAggregate(
            plain.function,
            value,
            inner.chosen(node),
            span=self.span(node),
            parameter=plain.parameter,
        )
        return over.over(plain)

    def _counted(self, argument: exp.Expr | None) -> str | None:
        """Return the situation whose events COUNT(fast.*) or COUNT(fast) counts."""
        if not isinstance(argument, exp.Column):
            return None
        qualifier = argument.args.get("table")
        if isinstance(argument.this, exp.Star):
            return situation_named(_name_of(qualifier or argument), self.situations)
        alone = argument.this if qualifier is None else None
        return None if alone is None else _name_of(alone).among(self.situations)

    def over_matches(self, node: exp.Expr, found: WrittenAggregate) -> Aggregate:
        """Return an aggregate over the matches of one instant."""
        name, argument = found.name, found.argument
        plain = argument is None or isinstance(argument, exp.Star)
        value = None if plain or argument is None else self.translate(argument)
        if AGGREGATES[name].needs_order:
            message = f"{name.upper()} of matches: those of one moment have no order"
            raise BindError(message, span=self.span(node), hint="take MIN, MAX or AVG")
        aggregate = found.translated(value, self.translate, self.span(node))
        for part in walk(aggregate):
            if isinstance(part, Aggregate) and part is not aggregate:
                message = "an aggregate of matches stands inside another"
                hint = "compute it in a SELECT around this one"
                raise BindError(message, span=part.span, hint=hint)
        if isinstance(value, PeriodPart) and value.part == "duration" and name != "count":
            message = f"{name.upper()} takes no length of time"
            hint = f"write {name.upper()}(EPOCH(DURATION({value.variable}))), in seconds"
            raise BindError(message, span=self.span(node), hint=hint)
        return aggregate


def _of_match(node: exp.Expr) -> bool:
    return is_aggregate(node) or part_of_period(node) is not None


def outside_aggregates(expression: Expression) -> Iterator[MatchAggregate | PeriodPart]:
    """Yield the parts of an expression that read one match, outside of aggregates over matches."""
    if isinstance(expression, MatchAggregate | PeriodPart):
        yield expression
    elif not isinstance(expression, Aggregate):
        for part in children(expression):
            yield from outside_aggregates(part)
