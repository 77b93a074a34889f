"""A parsed MATCH_RECOGNIZE → the plan node."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.errors import BindError, Span, UnsupportedError
from eventide.lang.sql.expressions import Translator
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.columns import written_name
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.names.written import Item
from eventide.lang.sql.patterns.check import check_clause, never_mapped
from eventide.lang.sql.patterns.clause import MatchClause
from eventide.lang.sql.patterns.hints import hint_before_match
from eventide.lang.sql.patterns.names import MatchTranslator, Variables
from eventide.lang.sql.patterns.pattern import PatternText
from eventide.lang.sql.select_list import refuse_aggregates
from eventide.lang.sql.spans import span_of
from eventide.plan.expressions import (
    ALWAYS,
    At,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    Named,
    OrderKey,
    walk,
)
from eventide.plan.patterns.nodes import TIMED_OUT, MatchRecognize
from eventide.plan.patterns.tree import Absent, Pattern, Skip, VariablesAround, with_late
from eventide.schema import SEQ, TS


def plan_match(clause: MatchClause, scope: Scope, text: str) -> MatchRecognize:
    """Return the node of a clause over the source of `scope`, without types."""
    return _MatchPlanner(clause, scope, text, check_clause(clause)).plan()


@dataclass(frozen=True)
class _MatchPlanner:
    """Turns the parts of one clause into those of the node."""

    clause: MatchClause
    scope: Scope
    text: str
    variables: Variables

    @property
    def pattern(self) -> PatternText:
        assert self.clause.pattern is not None
        return self.clause.pattern

    def plan(self) -> MatchRecognize:
        clause = self.clause
        keys, order = self.keys(), self.order()
        measures = self.measures()
        self.check_columns(keys, measures)
        within = None if clause.within is None else interval_us(clause.within)
        defines = self.defines()
        return MatchRecognize(
            source=self.scope.source,
            keys=keys,
            order=order,
            pattern=self.waiting(defines),
            defines=defines,
            measures=measures,
            subsets=self.subsets(),
            output=clause.output,
            skip=self.skip(),
            within_us=within,
            strategy=clause.strategy,
            timeout_rows=clause.timeout_rows,
            span=clause.span,
        )

    def keys(self) -> tuple[Named, ...]:
        """Return PARTITION BY."""
        return tuple(
            Named(written_name(item, self.scope), self.of_row(item.node, "PARTITION BY"))
            for item in self.clause.keys
        )

    def of_row(self, node: exp.Expr, place: str) -> Expression:
        """Return an expression over the rows of the source, before any match."""
        try:
            expression = Translator(self.scope, self.text).translate(node)
        except UnsupportedError as error:
            hint_before_match(error)
            raise
        hint = "compute it in the subquery that MATCH_RECOGNIZE reads"
        refuse_aggregates(expression, place, hint)
        return expression

    def order(self) -> tuple[OrderKey, ...]:
        """Return ORDER BY; empty where it is the order that events have anyway."""
        found = [self.order_key(item) for item in self.clause.order]
        arrival = [OrderKey(Column(TS)), OrderKey(Column(SEQ))]
        if not self.scope.source.in_order:
            found = found or arrival[:1]
        elif found in ([], arrival[:1], arrival):
            return ()
        if self.clause.within is not None and found[0] != arrival[0]:
            message = "WITHIN measures time, so the rows have to be in order of ts"
            span = span_of(self.clause.order[0])
            hint = "write ORDER BY ts, or leave out WITHIN"
            raise BindError(message, span=span, hint=hint)
        return tuple(found)

    def order_key(self, item: exp.Ordered) -> OrderKey:
        if item.args.get("with_fill") or isinstance(item.this, exp.Var):
            refuse("this ORDER BY", item, "write ORDER BY ts")
        expression = self.of_row(item.this, "ORDER BY")
        if isinstance(expression, Literal):
            message = "ORDER BY a constant puts rows in no order"
            raise BindError(message, span=span_of(item), hint="name a column, as in ORDER BY ts")
        # Every event has a time and a place in arrival order.
        never_null = isinstance(expression, Column) and expression.name in (TS, SEQ)
        nulls_first = bool(item.args.get("nulls_first")) and not never_null
        return OrderKey(expression, bool(item.args.get("desc")), nulls_first)

    def subsets(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return SUBSET, with variables as PATTERN spells them."""
        return tuple(
            (subset.name.text, tuple(self.variables.resolve(each) for each in subset.members))
            for subset in self.clause.subsets
        )

    def skip(self) -> Skip:
        """Return AFTER MATCH SKIP, or the default."""
        skip = self.clause.skip
        if skip is None:
            return Skip("next row") if self.clause.strategy == "skip_till_any" else Skip()
        variable = None if skip.variable is None else self.variables.resolve(skip.variable)
        return Skip(skip.to, variable, skip.span)

    def defines(self) -> tuple[Named, ...]:
        """Return the condition of every variable of the pattern."""
        translator = MatchTranslator(self.scope, self.text, self.variables, "DEFINE")
        conditions = {
            self.variables.resolve(name): translator.translate(node)
            for name, node in self.clause.defines
        }
        never = never_mapped(self.pattern.tree)
        for name, condition in conditions.items():
            for part in walk(condition):
                if isinstance(part, At | MatchAggregate) and part.variable in never - {name}:
                    message = f"{part.variable} stands behind NOT only: a match has no row of it"
                    raise BindError(message, span=part.span, hint="compare with another variable")
        return tuple(Named(name, conditions.get(name, ALWAYS)) for name in self.pattern.variables)

    def waiting(self, defines: tuple[Named, ...]) -> Pattern:
        """Return the pattern, in which each NOT has the variables that it has to wait for."""
        conditions = {item.name: item.expression for item in defines}
        subsets = dict(self.subsets())
        never = never_mapped(self.pattern.tree)

        def late_of(part: Absent, around: VariablesAround) -> frozenset[str]:
            found: set[str] = set()
            for leaf in walk(conditions[part.name]):
                if not isinstance(leaf, At | MatchAggregate) or leaf.variable is None:
                    continue
                names = frozenset(subsets.get(leaf.variable, (leaf.variable,)))
                if part.name in names or names & around.must_before:
                    continue
                if names & around.may_behind and not names & around.may_before:
                    found |= names
                elif names & around.may_behind:
                    raise _unclear(part, leaf)
            return frozenset(found) - never

        return with_late(self.pattern.tree, late_of)

    def measures(self) -> tuple[Named, ...]:
        """Return MEASURES."""
        final = self.clause.output == "one row"
        measures = tuple(
            Named(
                written_name(item, self.scope),
                self.measuring(item, final=final).translate(item.node),
            )
            for item in self.clause.measures
        )
        never = never_mapped(self.pattern.tree)
        for part in (part for item in measures for part in walk(item.expression)):
            if isinstance(part, At | MatchAggregate) and part.variable in never:
                message = f"{part.variable} stands behind NOT only: a match has no row of it"
                raise BindError(message, span=part.span, hint="measure another variable")
        return measures

    def measuring(self, item: Item, *, final: bool) -> MatchTranslator:
        """Return the translator of a measure, which may not use its own name."""
        own = None if item.name is None else item.name.text
        others = tuple(name for name in self.variables.measures if name != own)
        variables = replace(self.variables, measures=others)
        return MatchTranslator(self.scope, self.text, variables, "MEASURES", final)

    def check_columns(self, keys: tuple[Named, ...], measures: tuple[Named, ...]) -> None:
        """Refuse two columns with the same name, and a match without columns."""
        clause = self.clause
        all_rows = clause.output != "one row"
        given = [*zip(keys, clause.keys, strict=True), *zip(measures, clause.measures, strict=True)]
        if not given and not all_rows:
            message = "a match has no columns here"
            hint = "add MEASURES MATCH_NUMBER() AS match, or write ALL ROWS PER MATCH"
            raise BindError(message, span=clause.span, hint=hint)
        seen: set[str] = set()
        taken = {TIMED_OUT} if clause.timeout_rows else set[str]()
        if all_rows:
            taken.update(each.lower() for each in self.scope.fields)
        if all_rows and clause.timeout_rows and self.scope.find(TIMED_OUT) is not None:
            self.twice(TIMED_OUT, clause.seen["TIMEOUT ROWS"])
        for named, item in given:
            itself = named.expression == Column(named.name)
            name = named.name.lower()
            if name in seen or (name in taken and not (itself and all_rows)):
                self.twice(named.name, item.name.span if item.name else span_of(item.node))
            seen.add(name)

    def twice(self, name: str, span: Span | None) -> None:
        message = f"two columns are called {name!r}"
        hint = "rename one with AS"
        if name.lower() == TIMED_OUT and self.clause.timeout_rows:
            hint = f"TIMEOUT ROWS adds a column {TIMED_OUT}: give yours another name"
        elif self.scope.find(name) is not None and self.clause.output != "one row":
            hint = "ALL ROWS PER MATCH has the row's own columns too: rename it with AS"
        raise BindError(message, span=span, hint=hint)


def _unclear(part: Absent, leaf: At | MatchAggregate) -> BindError:
    """Return the error for a NOT that may mean an earlier row, or one that is still to come."""
    name = leaf.variable
    message = f"{name} may have a row before NOT {part.name}, or only behind it"
    hint = f"let {part.name} read what surely comes before the NOT, or what only comes behind it"
    return BindError(message, span=leaf.span, hint=hint)
