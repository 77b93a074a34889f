"""Windows of many queries over one stream: one operator over slices that all of them share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventide.plan.expressions import ALWAYS, Call, Column, Expression, substituted
from eventide.plan.failing import can_fail
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.sharing.part_rows import is_part
from eventide.plan.sharing.refreshes import PeriodicGroups
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import BOOL, INT64, SEQ, TIMESTAMP, TS

WINDOWS = "$windows"
"""Stands for the rows of windows where the rest of a plan reads them."""


@dataclass(frozen=True, slots=True)
class SharedWindows:
    """Windows over a stream, and what is one query's own: its window, and what it counts."""

    plan: ManyWindows
    window: Window
    condition: Expression


@dataclass(frozen=True, slots=True)
class EventsRead:
    """The events of a stream on which a condition is true, and columns made of theirs."""

    scan: Scan
    condition: Expression
    meaning: dict[str, Expression]


def shared_windows(node: Plan) -> SharedWindows | None:
    """WindowAggregate(size, slide, Filter(p, x)) -> ManyWindows(x), with window and p in a table.

    A condition that may fail would end all queries: theirs run apart.
    """
    if not isinstance(node, WindowAggregate | PeriodicGroups):
        return None
    if not isinstance(node.window, Window):
        return None
    found = events_read(node.source)
    if found is None or can_fail(found.condition):
        return None

    def meant(expression: Expression, _: object) -> Expression:
        return substituted(expression, found.meaning)

    own = node.with_expressions(meant)
    many = ManyWindows(
        found.scan, own.keys, own.aggregates, refreshes=isinstance(node, PeriodicGroups)
    )
    return SharedWindows(many, node.window, found.condition)


def events_read(plan: Plan) -> EventsRead | None:
    """Return what a plan reads of one stream; None if it does more than choose and compute."""
    match plan:
        case Scan(written=None) if not is_part(plan):
            columns = plan.columns if SEQ in plan.row else (*plan.columns, (SEQ, INT64))
            meaning: dict[str, Expression] = {name: Column(name, kind) for name, kind in columns}
            return EventsRead(replace(plan, columns=columns), ALWAYS, meaning)
        case Filter(source=source, condition=condition):
            below = events_read(source)
            if below is None:
                return None
            own = substituted(condition, below.meaning)
            both = own if below.condition == ALWAYS else Call("and", (below.condition, own), BOOL)
            return replace(below, condition=both)
        case Project(source=source, items=items):
            below = events_read(source)
            if below is None:
                return None
            meaning = {each.name: substituted(each.expression, below.meaning) for each in items}
            fails = any(can_fail(each, overflows=False) for each in meaning.values())
            if fails or meaning.get(TS) != Column(TS, TIMESTAMP):
                return None
            return replace(below, meaning=meaning)
    return None
