"""How the tuples of a plan's edges come and go, derived from the plan alone (edges.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eventide.plan.standing.edges import FOREVER, FREE, Circumstances, Edge
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import EdgesBelow, Plan


def pattern_of(plan: Plan, circumstances: Circumstances = FREE) -> Edge:
    """Return the edge that comes out of a node; that of a whole query is its answer."""
    own = plan.circumstances
    if own is not None:
        circumstances = replace(own, kept=circumstances.kept)
    elif _all_internal(plan, circumstances) and not circumstances.kept:
        return replace(FOREVER, internal=True)
    below = EdgesBelow(lambda source: pattern_of(source, circumstances), circumstances)
    return plan.edge(below)


def edges(plan: Plan, *, kept: bool = False) -> list[tuple[int, Plan, Edge]]:
    """Return all edges of a plan with their depths, each above its sources."""
    inside = replace(plan.circumstances or FREE, kept=kept)
    return list(_edges(plan, 0, inside))


def windows_of(plan: Plan) -> tuple[Windowed, ...]:
    """Return all windows of a plan, left to right."""
    if isinstance(plan, Windowed):
        return (plan,)
    return tuple(window for source in plan.children for window in windows_of(source))


def nodes_of(plan: Plan) -> Iterator[Plan]:
    """Yield all nodes of a plan, each before its sources."""
    yield plan
    for source in plan.children:
        yield from nodes_of(source)


def _edges(
    plan: Plan, depth: int, circumstances: Circumstances
) -> Iterator[tuple[int, Plan, Edge]]:
    yield depth, plan, pattern_of(plan, circumstances)
    if not isinstance(plan, Windowed):
        for source in plan.children:
            yield from _edges(source, depth + 1, circumstances)


def _all_internal(plan: Plan, circumstances: Circumstances) -> bool:
    windows = windows_of(plan)
    return bool(windows) and (
        circumstances.all_internal or all(window.internal for window in windows)
    )
