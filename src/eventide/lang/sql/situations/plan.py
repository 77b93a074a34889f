"""A parsed TPSTREAM or SITUATIONS → the plan node."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import BindError, EventideError, Span, UnsupportedError
from eventide.lang.sql.expressions import Translator
from eventide.lang.sql.names.columns import written_name
from eventide.lang.sql.names.scope import Scope
from eventide.lang.sql.names.written import Name
from eventide.lang.sql.select_list import Grouping
from eventide.lang.sql.situations.check import check_definitions, check_pattern, check_rest
from eventide.lang.sql.situations.clause import SituationClause
from eventide.lang.sql.situations.names import (
    ConditionTranslator,
    ReturnTranslator,
    outside_aggregates,
)
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    Named,
    Over,
    PeriodPart,
    walk,
)
from eventide.plan.nodes import Project
from eventide.plan.render import render
from eventide.plan.situations.nodes import (
    CONFIRMED,
    END_TS,
    SITUATION,
    Situations,
    TemporalPattern,
)
from eventide.plan.situations.parts import Situation
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TS


def plan_situations(clause: SituationClause, scope: Scope, text: str) -> Plan:
    """Return the plan of a clause over the source of `scope`, without types."""
    if not scope.source.in_order:
        message = f"{clause.kind} reads events in order of time, and these rows are not"
        hint = "read a stream, or a SELECT of its events with their ts; store others as a stream"
        raise UnsupportedError(message, span=clause.span, hint=hint)
    planner = _SituationPlanner(clause, scope, text, check_definitions(clause))
    return planner.temporal() if clause.kind == "TPSTREAM" else planner.situations()


@dataclass(frozen=True)
class _SituationPlanner:
    """Turns the parts of one clause into those of the node."""

    clause: SituationClause
    scope: Scope
    text: str
    names: tuple[Name, ...]

    def temporal(self) -> TemporalPattern:
        clause = self.clause
        constraints = check_pattern(clause, self.names)
        check_rest(clause)
        assert clause.within is not None
        keys, conditions = self.keys(), self.conditions()
        translator = ReturnTranslator(
            self.scope, self.text, self.names, tuple(key.name for key in keys)
        )
        returns = tuple(
            Named(written_name(item, self.scope), translator.translate(item.node))
            for item in clause.returns
        )
        self.check_columns([*keys, *returns], [TS, *([CONFIRMED] if clause.confirm else [])])
        node = TemporalPattern(
            source=self.scope.source,
            keys=keys,
            situations=conditions,
            constraints=constraints,
            within_us=clause.within.us,
            returns=returns,
            detection=clause.detection,
            confirm=clause.confirm,
            limit=clause.limit,
            gap_us=None if clause.gap is None else clause.gap.us,
            span=clause.span,
        )
        if node.is_summary:
            self.check_summary(node)
        return node

    def situations(self) -> Plan:
        """Return the node, below a projection if something is computed from its aggregates."""
        keys, conditions = self.keys(), self.conditions()
        translator = ConditionTranslator(self.scope, self.text, self.names, "RETURN")
        items = [
            Named(written_name(item, self.scope), translator.translate(item.node))
            for item in self.clause.returns
        ]
        own = [SITUATION, START_TS, END_TS]
        self.check_columns([*keys, *items], own)
        lifted = _Returned(taken=(*own, *(key.name for key in keys)))
        computed = [Named(item.name, lifted.lift(item.expression, item.name)) for item in items]
        node = Situations(
            source=self.scope.source,
            keys=keys,
            situations=conditions,
            aggregates=tuple(lifted.aggregates),
            gap_us=None if self.clause.gap is None else self.clause.gap.us,
            span=self.clause.span,
        )
        if [item.name for item in lifted.aggregates] == [item.name for item in items]:
            plain = all(item.expression == Column(item.name) for item in computed)
            if plain:
                return node
        shown = [*(key.name for key in keys), *own]
        return Project(node, (*(Named(name, Column(name)) for name in shown), *computed))

    def keys(self) -> tuple[Named, ...]:
        """Return PARTITION BY."""
        return tuple(
            Named(written_name(item, self.scope), self.of_event(item.node, "PARTITION BY"))
            for item in self.clause.keys
        )

    def conditions(self) -> tuple[Situation, ...]:
        """Return DEFINE."""
        return tuple(
            Situation(
                each.name.text,
                self.of_event(each.condition, "DEFINE"),
                0 if each.least is None else each.least.us,
                None if each.most is None else each.most.us,
            )
            for each in self.clause.definitions
        )

    def of_event(self, node: exp.Expr, place: str) -> Expression:
        """Return an expression over one event."""
        expression = ConditionTranslator(self.scope, self.text, self.names, place).translate(node)
        for part in walk(expression):
            if isinstance(part, Aggregate | Over):
                message = f"{render(part)} stands in {place}, which looks at one event alone"
                hint = "aggregates of situations are for RETURN; compute others in a subquery"
                raise BindError(message, span=part.span, hint=hint)
        return expression

    def check_columns(self, columns: list[Named], own: list[str]) -> None:
        """Refuse two columns with the same name, and the names that the output uses itself."""
        items = [*self.clause.keys, *self.clause.returns]
        seen: set[str] = set()
        for named, item in zip(columns, items, strict=True):
            name = named.name.lower()
            whole = Translator(self.scope, self.text).span(item.node)
            span = item.name.span if item.name is not None else whole
            if name in own:
                raise self.reserved(named.name, span)
            if name in seen:
                message = f"two columns are called {named.name!r}"
                raise BindError(message, span=span, hint="rename one with AS")
            seen.add(name)

    def reserved(self, name: str, span: Span | None) -> BindError:
        what = {
            TS: "the moment at which a match is found",
            CONFIRMED: "whether all situations of a match are over",
            SITUATION: "the name of the situation",
            START_TS: "when a situation begins",
            END_TS: "when a situation ends",
        }
        message = f"a column {name!r} is there already: {what[name.lower()]}"
        return BindError(message, span=span, hint="give yours another name with AS")

    def check_summary(self, node: TemporalPattern) -> None:
        """Refuse a value of one match beside aggregates over all matches of an instant."""
        for item in node.returns:
            for part in outside_aggregates(item.expression):
                shown = render(part)
                message = f"{shown} is of one match, beside an aggregate over all of a moment"
                whole = f"max({shown})"
                if isinstance(part, PeriodPart) and part.part == "duration":
                    whole = f"MAX(EPOCH(DURATION({part.variable})))"
                hint = f"aggregate it too, as in {whole}, or leave out the aggregate"
                raise BindError(message, span=part.span, hint=hint)
        if self.clause.confirm:
            message = "CONFIRM cannot stand beside an aggregate over matches"
            hint = "it confirms single matches: leave out one of them"
            raise BindError(message, span=self.clause.seen["CONFIRM"], hint=hint)
        if self.clause.limit is not None:
            message = "LIMIT … PER KEY cannot stand beside an aggregate over matches"
            hint = "it counts single matches: leave out one of them"
            raise BindError(message, span=self.clause.seen["LIMIT"], hint=hint)


class _Returned(Grouping):
    """The aggregates of SITUATIONS, each a column of the node."""

    def alone(self, expression: Column | Over) -> EventideError:
        """Return the error for a value of a single event."""
        if isinstance(expression, Over):
            message, hint = "OVER cannot stand in RETURN", "compute it in a SELECT around this one"
        else:
            column = expression.name
            message = f"{column} has a value for each event of a situation"
            hint = f"take one of them: first({column}), last({column}) or max({column})"
        return BindError(message, span=expression.span, hint=hint)
