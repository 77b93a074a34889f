"""Which times of a result are TIMESTAMP_NTZ: those that come only from such columns.

To operators all times are microseconds in UTC. To Spark they are instants (TIMESTAMP), unless the
user's column has no zone: then times derived from it have none either. An expression over both
kinds is an instant, as in Spark; times without a zone count as UTC.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from eventide.plan.expressions import Column, Expression, PeriodPart, walk
from eventide.plan.nodes import Scan, scans_of
from eventide.plan.standing.nodes import AT, EXP
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import Plan
from eventide.schema import TIMESTAMP, TS, DataType

Zoneless = Mapping[str, Collection[str]]
"""The columns of each stream that are timestamps without a zone."""


def is_time(kind: DataType) -> bool:
    """Whether a column holds times, or lists of them."""
    return TIMESTAMP in (kind, kind.element)


def zoneless_columns(plan: Plan, streams: Zoneless) -> frozenset[str]:
    """Return the columns of a plan's rows that are timestamps without a zone."""
    if isinstance(plan, Scan):
        return frozenset(name for name, _ in plan.columns if name in streams[plan.stream])
    inherited = inherited_times(plan, streams)
    # The bounds of a window, the start of a situation: times that are in no column below.
    own = all(TS in streams[scan.stream] for scan in scans_of(plan))
    computed = {each.name: each.expression for each in plan.computed}
    found = {
        name
        for name, kind in plan.row.items()
        if is_time(kind)
        and (
            is_zoneless(computed[name], inherited, own)
            if name in computed
            else inherited.get(name, own)
        )
    }
    return frozenset(found | {AT, EXP} if windows_of(plan) and own else found)


def inherited_times(plan: Plan, streams: Zoneless) -> dict[str, bool]:
    """Return the timestamps of the plans below a node, and whether they have no zone."""
    prefix = f"{plan.alias}." if isinstance(plan, Windowed) else ""
    found: dict[str, bool] = {}
    for source in plan.children:
        zoneless = zoneless_columns(source, streams)
        for name, kind in source.row.items():
            if is_time(kind):
                known = found.get(prefix + name, True)
                found[prefix + name] = known and name in zoneless
    return found


def is_zoneless(expression: Expression, inherited: Mapping[str, bool], own: bool) -> bool:
    """Whether an expression has times without a zone, and no others."""
    found = [
        inherited.get(part.name, own) if isinstance(part, Column) else own
        for part in walk(expression)
        if is_time(part.type) and isinstance(part, Column | PeriodPart)
    ]
    return bool(found) and all(found)
