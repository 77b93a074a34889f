"""Windows of many queries over the same rows: one operator over slices that all of them share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import Project, Scan
from eventide.plan.sharing.part_rows import is_part
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import INT64, SEQ

WINDOWS = "$windows"
"""Stands for the rows of windows where the rest of a plan reads them."""


@dataclass(frozen=True, slots=True)
class SharedWindows:
    """Windows over rows that are the same for all queries, and that of one query."""

    plan: ManyWindows
    window: Window


def shared_windows(node: Plan) -> SharedWindows | None:
    """WindowAggregate(size, slide, source) -> ManyWindows(source), with the window in a table."""
    if not isinstance(node, WindowAggregate) or not isinstance(node.window, Window):
        return None
    source = with_arrival(node.source)
    if source is None:
        return None
    return SharedWindows(ManyWindows(source, node.keys, node.aggregates), node.window)


def with_arrival(plan: Plan) -> Plan | None:
    """Return a plan whose rows have the numbers of their events; None if they come from several."""
    match plan:
        case Scan() if SEQ in plan.row:
            return plan
        case Scan() if plan.written is None and not is_part(plan):
            return replace(plan, columns=(*plan.columns, (SEQ, INT64)))
        case Project(source=source, items=items):
            below = with_arrival(source)
            if below is None or SEQ in plan.row:
                return None
            return Project(below, (*items, Named(SEQ, Column(SEQ, INT64))))
    return None
