"""GROUP BY and aggregates of a standing SELECT."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.block import refuse_aggregates
from eventide.lang.sql.names.columns import fresh
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.scope import StandingTranslator
from eventide.lang.sql.windows.group_by import is_window, meant_key
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    Named,
    NamedAggregate,
    rebuild,
    walk,
)
from eventide.plan.render import render
from eventide.plan.standing.nodes import GroupAggregate
from eventide.plan.tree import Plan


def grouped_by(select: exp.Select, translator: StandingTranslator) -> list[Expression]:
    """Return what GROUP BY names; a number means an item of the SELECT list."""
    group = select.args.get("group")
    if group is None:
        return []
    for extension in ("all", "rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(extension):
            refuse("groups of a standing query have plain keys", group, "list them one by one")
    keys = []
    for node in group.expressions:
        if is_window(node):
            name = node.name.upper()
            hint = "put the window behind the stream: FROM cars [TUMBLE 1 HOUR]"
            message = f"{name}(…) groups a stream without a window in brackets"
            raise BindError(message, span=span_of(node), hint=hint)
        key = translator.translate(meant_key(node, select))
        refuse_aggregates(key, "GROUP BY")
        keys.append(key)
    return keys


def has_aggregate(expression: Expression) -> bool:
    """Whether an aggregate is a part of an expression."""
    return any(isinstance(part, Aggregate) for part in walk(expression))


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys of a GROUP BY, and the aggregates so far."""

    keys: list[Named]
    aggregates: list[NamedAggregate] = field(default_factory=list)

    @classmethod
    def by(cls, expressions: list[Expression], items: list[Named]) -> Grouping:
        """Return groups by some expressions; the SELECT list may name them."""
        keys: list[Named] = []
        for expression in expressions:
            if any(key.expression == expression for key in keys):
                continue
            aliases = (item.name for item in items if item.expression == expression)
            name = expression.name if isinstance(expression, Column) else next(aliases, None)
            used = [key.name for key in keys]
            keys.append(Named(fresh(name or render(expression), used), expression))
        return cls(keys)

    def lift(self, expression: Expression, name: str | None = None) -> Expression:
        """Return the expression over keys and aggregates, which become columns."""
        for key in self.keys:
            if key.expression == expression:
                return Column(key.name, span=expression.span)
        match expression:
            case Aggregate():
                return Column(self._name(expression, name), span=expression.span)
            case Column(name=column, span=span):
                message = f"{column} is neither grouped nor aggregated"
                hint = f"add {column} to GROUP BY, or take min({column}) or max({column})"
                raise BindError(message, span=span, hint=hint)
        return rebuild(expression, self.lift)

    def _name(self, aggregate: Aggregate, wanted: str | None) -> str:
        for part in aggregate.parts:
            refuse_aggregates(part, "an aggregate")
        for known in self.aggregates:
            if known.aggregate == aggregate:
                return known.name
        used = [key.name for key in self.keys] + [item.name for item in self.aggregates]
        name = fresh(wanted or render(aggregate), used)
        self.aggregates.append(NamedAggregate(name, aggregate))
        return name

    def over(self, source: Plan, group: exp.Expr | None) -> GroupAggregate:
        """Return the node that computes the keys and aggregates."""
        span = None if group is None else span_of(group)
        return GroupAggregate(source, tuple(self.keys), tuple(self.aggregates), span)
