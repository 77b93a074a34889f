"""Counts and sequences of the events of other rules, as queries.

All kinds say at which events of a group the correlation *holds*, looking back over the timespan. An
alert is the first of them: at no event of the group within the timespan before did it hold. So an
attack that goes on is one alert, and a query forgets a group after twice the timespan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sigma.correlations import (
    CorrelationConditionAND,
    CorrelationConditionNOT,
    CorrelationConditionOR,
    SigmaCorrelationConditionOperator,
    SigmaCorrelationRule,
    SigmaCorrelationType,
    SigmaExtendedCorrelationCondition,
    SigmaRuleReference,
)

from eventide.errors import RuleError
from eventide.rules.sigma.legs import VALUE, Leg, Part, gathered, leg_name, mark
from eventide.rules.texts import all_of, any_of, quoted

COMPARISONS = {
    SigmaCorrelationConditionOperator.LT: "<",
    SigmaCorrelationConditionOperator.LTE: "<=",
    SigmaCorrelationConditionOperator.GT: ">",
    SigmaCorrelationConditionOperator.GTE: ">=",
    SigmaCorrelationConditionOperator.EQ: "=",
    SigmaCorrelationConditionOperator.NEQ: "<>",
}
COUNTS = {
    SigmaCorrelationType.EVENT_COUNT: "COUNT(*)",
    SigmaCorrelationType.VALUE_COUNT: f"COUNT(DISTINCT {VALUE})",
}
COUNT = "count"
"""The column of an alert that says how many events or values there were."""


@dataclass(frozen=True, slots=True)
class CorrelationText:
    """A query in parts: those of WITH, and the SELECT behind them."""

    parts: tuple[Part, ...]
    select: str

    def __str__(self) -> str:
        named = ", ".join(f"{name} AS ({text})" for name, text in self.parts)
        return f"WITH {named} {self.select}" if named else self.select


@dataclass(frozen=True, slots=True)
class CorrelationGroup:
    """What a correlation groups by, and how far it looks back."""

    names: tuple[str, ...]
    seconds: int

    @property
    def columns(self) -> list[str]:
        """The columns of the group, as SQL."""
        return [quoted(name) for name in self.names]

    @property
    def span(self) -> str:
        """The timespan as SQL."""
        return f"INTERVAL '{self.seconds}' SECOND"

    @property
    def frame(self) -> str:
        """The events of the group within the timespan up to an event."""
        keys = f"PARTITION BY {', '.join(self.columns)} " if self.names else ""
        return f"OVER ({keys}ORDER BY ts RANGE BETWEEN {self.span} PRECEDING AND CURRENT ROW)"

    def first(self, holding: str, count: str | None) -> str:
        """Return the SELECT of the alerts: the first instants at which it holds."""
        counted = [] if count is None else [count]
        found = ", ".join(
            [*self.columns, f"MAX({count}) AS {count}" if count else 'COUNT(*) AS "$n"']
        )
        shown = ", ".join(["ts", *self.columns, *counted])
        instants = f"CEL (AT INSTANT{{{found}}} {holding})"
        marked = f'SELECT {shown}, MIN(ts) {self.frame} AS "$first" FROM {instants}'
        return f'SELECT {shown} FROM ({marked}) WHERE "$first" = ts'


def group_of(rule: SigmaCorrelationRule) -> CorrelationGroup:
    """Return the group of a correlation."""
    return CorrelationGroup(tuple(rule.group_by or ()), rule.timespan.seconds)


def correlation_text(
    rule: SigmaCorrelationRule, legs: Mapping[str, Leg], prefix: str
) -> CorrelationText:
    """Return the query of a correlation over the legs of its rules, by their references."""
    group, listed = group_of(rule), list(legs.values())
    if rule.type in COUNTS:
        return counting(rule, group, listed, prefix)
    if rule.type is SigmaCorrelationType.TEMPORAL:
        return together(rule, group, legs, prefix)
    if rule.type is SigmaCorrelationType.TEMPORAL_ORDERED:
        return in_order(rule, group, listed, prefix)
    message = f"Eventide has no query for the correlation {rule.type.name.lower()}"
    hint = "event_count, value_count, temporal and temporal_ordered work"
    raise RuleError(message, hint=hint)


def counting(
    rule: SigmaCorrelationRule, group: CorrelationGroup, legs: Sequence[Leg], prefix: str
) -> CorrelationText:
    """Return the query of event_count and value_count: so many within the timespan."""
    parts, events = gathered(legs, group.names, prefix, marked=False)
    count = quoted(count_name(group))
    shown = ", ".join(["ts", *group.columns])
    counted = f"SELECT {shown}, {COUNTS[rule.type]} {group.frame} AS {count} FROM {events}"
    holds = f"{count} {compared(rule.condition)}"
    held = quoted(f"${prefix}held")
    parts.append((held, f"SELECT {shown}, {count} FROM ({counted}) WHERE {holds}"))
    return CorrelationText(tuple(parts), group.first(held, count))


def count_name(group: CorrelationGroup) -> str:
    """Return the name of the column with the count: none of the group's."""
    name = COUNT
    while name in group.names:
        name += "_"
    return name


def together(
    rule: SigmaCorrelationRule, group: CorrelationGroup, legs: Mapping[str, Leg], prefix: str
) -> CorrelationText:
    """Return the query of temporal: events of these rules within the timespan, in any order."""
    parts, events = gathered(list(legs.values()), group.names, prefix, marked=True)
    marks = {name: mark(place) for place, name in enumerate(legs, 1)}
    shown = ", ".join(["ts", *group.columns])
    seen = ", ".join(f"BOOL_OR({each}) {group.frame} AS {each}" for each in marks.values())
    holds = combined(rule.condition, marks)
    held = quoted(f"${prefix}held")
    recent = f"SELECT {shown}, {seen} FROM {events}"
    parts.append((held, f"SELECT {shown} FROM ({recent}) WHERE {holds}"))
    return CorrelationText(tuple(parts), group.first(held, None))


def combined(condition: Any, marks: Mapping[str, str]) -> str:  # noqa: ANN401
    """Return the condition over the rules that were seen."""
    if isinstance(condition, SigmaExtendedCorrelationCondition):
        return expression(condition.parsed, marks)
    if condition.op is SigmaCorrelationConditionOperator.GTE and condition.count == len(marks):
        return all_of(marks.values())
    seen = " + ".join(f"CASE WHEN {each} THEN 1 ELSE 0 END" for each in marks.values())
    return f"{seen} {compared(condition)}"


def expression(node: Any, marks: Mapping[str, str]) -> str:  # noqa: ANN401
    """Return a condition with and, or, not over rules."""
    if isinstance(node, SigmaRuleReference):
        return marks[node.reference]
    parts = [expression(each, marks) for each in node.args]
    if isinstance(node, CorrelationConditionAND):
        return all_of(parts)
    if isinstance(node, CorrelationConditionOR):
        return str(any_of(parts))
    assert isinstance(node, CorrelationConditionNOT)
    return f"NOT {parts[0]}"


def compared(condition: Any) -> str:  # noqa: ANN401
    """Return a comparison with the number of a condition."""
    return f"{COMPARISONS[condition.op]} {condition.count!r}"


def in_order(
    rule: SigmaCorrelationRule, group: CorrelationGroup, legs: Sequence[Leg], prefix: str
) -> CorrelationText:
    """Return the query of temporal_ordered: one after the other, all within the timespan."""
    condition: Any = rule.condition
    some = isinstance(condition, SigmaExtendedCorrelationCondition)
    if some or COMPARISONS[condition.op] != ">=" or condition.count != len(legs):
        message = "a sequence of some of the rules has no query"
        raise RuleError(
            message, hint="leave the condition out: then each rule follows the one before"
        )
    parts = [
        (leg_name(prefix, place), leg.select(group.names, leg.condition))
        for place, leg in enumerate(legs, 1)
    ]
    same = [f"$1.{column} = $2.{column}" for column in group.columns]
    follows = " AND ".join([*same, f"DUR <= {group.span}"])
    kept = ", ".join(group.columns) or '"$any"'
    chain = parts[0][0]
    for name, _ in parts[1:]:
        chain = f"(SELECT {kept} FROM ({chain} NEXT{{{follows}}} {name}))"
    return CorrelationText(tuple(parts), group.first(chain, None))
