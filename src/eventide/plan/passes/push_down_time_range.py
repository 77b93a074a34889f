"""Move bounds on `ts` into the scan, where the store can skip what lies outside."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from eventide.instants import ALL_TIME, END_OF_TIME_US, TimeRange
from eventide.plan.expressions import Call, Column, Expression, Literal, conjuncts
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.tree import Plan
from eventide.plan.xml.nodes import Witnesses
from eventide.schema import BOOL, TS

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_NEVER = TimeRange(0, 0)


def push_down_time_range(plan: Plan) -> Plan:
    """Filter(ts >= a AND ts < b AND p, Scan) -> Filter(p, Scan from a until b).

    Bounds go through witnesses, which have the times of their documents.
    """
    if isinstance(plan, Filter):
        plan = _through_witnesses(plan)
    plan = plan.with_children(push_down_time_range)
    match plan:
        case Filter(source=Scan() as scan, condition=condition):
            return _push(scan, condition)
    return plan


def _through_witnesses(plan: Filter) -> Plan:
    """Move bounds on `ts` below witnesses, if nothing else is between: documents have the times."""
    parts = list(conjuncts(plan.condition))
    bounds = [part for part in parts if bound_of(part) is not None]
    below = _bounded(plan.source, bounds) if bounds else None
    if below is None:
        return plan
    rest = [part for part in parts if bound_of(part) is None]
    return Filter(below, conjoin(rest)) if rest else below


def _bounded(plan: Plan, bounds: list[Expression]) -> Plan | None:
    match plan:
        case Witnesses(source=source):
            return replace(plan, source=Filter(source, conjoin(bounds)))
        case DerivedStream(source=source):
            below = _bounded(source, bounds)
        case Project(source=source) if plan.origin(TS) == TS:
            below = _bounded(source, bounds)
        case _:
            return None
    return None if below is None else replace(plan, source=below)


def conjoin(conditions: list[Expression]) -> Expression:
    """Return the AND of conditions, the inverse of `conjuncts`."""
    return reduce(lambda left, right: Call("and", (left, right), BOOL), conditions)


def _push(scan: Scan, condition: Expression) -> Plan:
    time_range, rest = scan.time_range, []
    for part in conjuncts(condition):
        bound = bound_of(part)
        if bound is None:
            rest.append(part)
        else:
            time_range = time_range.intersect(bound)
    moved = replace(scan, time_range=_NEVER if time_range.is_empty else time_range)
    return Filter(moved, conjoin(rest)) if rest else moved


def bound_of(condition: Expression) -> TimeRange | None:
    """Return the instants on which a comparison of `ts` with a constant holds, or None.

    Times are whole microseconds, so every comparison is a half-open range.
    """
    match condition:
        case Literal(value=None | False):
            return _NEVER
        case Literal(value=True):
            return ALL_TIME
        case Call(function=name, arguments=(Column(name="ts"), Literal(value=value))):
            return _range(name, value) if name in _MIRRORED else None
        case Call(function=name, arguments=(Literal(value=value), Column(name="ts"))):
            return _range(_MIRRORED[name], value) if name in _MIRRORED else None
    return None


def _range(comparison: str, value: object) -> TimeRange | None:
    if value is None:
        return _NEVER
    assert isinstance(value, int), f"{TS} is compared with {value!r}"
    if value >= END_OF_TIME_US - 1:
        return None
    match comparison:
        case ">=":
            return TimeRange(start_us=value)
        case ">":
            return TimeRange(start_us=value + 1)
        case "<":
            return TimeRange(end_us=value)
        case "<=":
            return TimeRange(end_us=value + 1)
    return TimeRange(value, value + 1)
