"""Add the periods of the situations of a match to the columns of a pattern."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventide.errors import UnsupportedError
from eventide.plan.expressions import Column, Named, Part, PeriodPart
from eventide.plan.nodes import Filter, Project
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.tree import Plan
from eventide.schema import TIMESTAMP


@dataclass(frozen=True, slots=True)
class PeriodColumns:
    """A situation of a pattern, and the columns in which `with_periods` puts its start and end."""

    situation: str
    start: str
    end: str


def pattern_of(plan: Plan) -> TemporalPattern:
    """Return the temporal pattern whose matches are the rows of a plan."""
    match plan:
        case TemporalPattern():
            return plan
        case Project(source=source) | Filter(source=source):
            return pattern_of(source)
    message = "the rows are not the matches of one temporal pattern"
    raise UnsupportedError(message, hint="ask for FROM … DEFINE … PATTERN … by itself")


def period_columns(pattern: TemporalPattern) -> tuple[PeriodColumns, ...]:
    """Return the columns in which `with_periods` puts periods; names that are taken get a dash."""
    taken = set(pattern.row)

    def free(name: str) -> str:
        while name in taken:
            name += "'"
        taken.add(name)
        return name

    return tuple(
        PeriodColumns(item.name, free(f"{item.name}.start"), free(f"{item.name}.end"))
        for item in pattern.situations
    )


def with_periods(plan: Plan) -> Plan:
    """Return the plan with START and END of every situation as columns behind its own.

    before: TemporalPattern …: max(fast.speed) AS top
    after:  TemporalPattern …: max(fast.speed) AS top, start(fast) AS "fast.start", …
    """
    columns = period_columns(pattern_of(plan))
    parts: list[tuple[str, PeriodPart]] = []
    for each in columns:
        for name, part in _edges(each):
            parts.append((name, PeriodPart(each.situation, part)))
    return _add(plan, parts)


def _edges(columns: PeriodColumns) -> tuple[tuple[str, Part], ...]:
    return ((columns.start, "start"), (columns.end, "end"))


def _add(plan: Plan, parts: list[tuple[str, PeriodPart]]) -> Plan:
    match plan:
        case TemporalPattern(returns=returns):
            return replace(plan, returns=(*returns, *(Named(name, part) for name, part in parts)))
        case Project(source=source, items=items):
            passed = tuple(Named(name, Column(name, TIMESTAMP)) for name, _ in parts)
            return replace(plan, source=_add(source, parts), items=(*items, *passed))
        case Filter(source=source):
            return replace(plan, source=_add(source, parts))
    return plan
