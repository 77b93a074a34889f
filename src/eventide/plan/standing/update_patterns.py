"""How the tuples of a plan's edges come and go, and in which structures operators keep them.

The pattern of an edge (edges.py) is derived from the plan alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from eventide.plan.aggregates import (
    BY_PANE,
    DECAYED,
    LONGEST_WORD,
    MERGED_WITH_SKETCHES,
    MOST_AGGREGATES,
    MOST_LISTED,
    SKETCHED,
    TAKEN_BACK,
)
from eventide.plan.expressions import Aggregate
from eventide.plan.standing.edges import FOREVER, FREE, Circumstances, Edge, UpdatePattern, slid
from eventide.plan.standing.joins import AsOfJoin, WindowJoin
from eventide.plan.standing.nodes import GroupAggregate, Standing
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import EdgesBelow, Plan


def pattern_of(plan: Plan, circumstances: Circumstances = FREE) -> Edge:
    """Return the edge that comes out of a node; that of a whole query is its answer."""
    match plan:
        case Standing():
            return _answer(plan, kept=circumstances.kept)
    if _all_internal(plan, circumstances) and not circumstances.kept:
        return replace(FOREVER, internal=True)
    below = EdgesBelow(lambda source: pattern_of(source, circumstances), circumstances)
    return plan.edge(below)


def edges(plan: Plan, *, kept: bool = False) -> list[tuple[int, Plan, Edge]]:
    """Return all edges of a plan with their depths, each above its sources."""
    return list(_edges(plan, 0, _inside(plan, kept=kept)))


def _inside(plan: Plan, *, kept: bool) -> Circumstances:
    """Return the circumstances of the edges inside a query, or inside a part of one."""
    match plan:
        case Standing():
            return Circumstances.of(plan, kept=kept)
    return Circumstances(kept=kept)


Structure = Literal[
    "queue",
    "calendar queue",
    "calendar queue with id map",
    "id map",
    "none",
]


def structure_of(edge: Edge) -> Structure:
    """Return the structure in which operators keep the tuples of an edge until they go.

    A calendar with an id map finds what goes early as soon as what goes in time, so strict edges
    need nothing else however many of their tuples go early. Where none expires there is no need
    for a calendar.
    """
    match edge.pattern:
        case UpdatePattern.MONOTONIC:
            return "none"
        case UpdatePattern.STRICT:
            return "id map" if edge.lifetime_us is None else "calendar queue with id map"
        case _:
            return "queue" if edge.in_order else "calendar queue"


def structure_below(node: Plan, source: Plan, circumstances: Circumstances) -> Structure:
    """Return the structure in which the tuples of a source wait at the operator of a node.

    Joins and groups make use of tuples that go in order; the others have one calendar for all.
    """
    structure = structure_of(pattern_of(source, circumstances))
    in_order = isinstance(node, WindowJoin | GroupAggregate)
    return "calendar queue" if structure == "queue" and not in_order else structure


MOST_PANES = 16_384
"""The largest number of panes of a group that are kept in order where tuples expire in any order:
inserting a pane moves those behind it."""


def by_pane(node: GroupAggregate, source: Edge, slide_us: int | None) -> bool:
    """Whether a GROUP BY keeps partial results of panes in place of tuples.

    All tuples that expire at the same refresh go as one; only those that may go early have to be
    kept apart. Values that fade can only be kept by pane.
    """
    functions = {item.aggregate.function for item in node.aggregates}
    if slide_us is None or source.strict or not functions <= {*BY_PANE}:
        return False
    if any(item.aggregate.distinct for item in node.aggregates):
        return False
    few = (source.lifetime_us or 0) <= MOST_PANES * slide_us
    return few or source.in_order or bool(functions & {*DECAYED})


def by_sketch(node: GroupAggregate, source: Edge, slide_us: int | None) -> bool:
    """Whether a GROUP BY keeps sketches of panes: no tuple may go early, and all else merges."""
    functions = {item.aggregate.function for item in node.aggregates}
    known = functions <= {*SKETCHED, *MERGED_WITH_SKETCHES} and bool(functions & {*SKETCHED})
    distinct = any(item.aggregate.distinct for item in node.aggregates)
    return slide_us is not None and known and not distinct and not source.strict


def is_taken_back(node: GroupAggregate) -> bool:
    """Whether a value that goes can be taken back from each aggregate of a GROUP BY."""
    aggregates = [item.aggregate for item in node.aggregates]
    return len(aggregates) <= MOST_AGGREGATES and all(map(_is_taken_back, aggregates))


def _is_taken_back(aggregate: Aggregate) -> bool:
    function, argument = aggregate.function, aggregate.argument
    if function not in TAKEN_BACK or (aggregate.distinct and function != "count"):
        return False
    if argument is None or (function == "count" and not aggregate.distinct):
        return True
    kind = argument.type
    if kind.kind == "decimal" and kind.precision > LONGEST_WORD:
        return False
    if function == "top_k":
        return kind.kind != "binary" and int(aggregate.parameter or 0) <= MOST_LISTED
    return function == "count" or kind.kind not in ("string", "binary")


def windows_of(plan: Plan) -> tuple[Windowed, ...]:
    """Return all windows of a plan, left to right."""
    if isinstance(plan, Windowed):
        return (plan,)
    return tuple(window for source in plan.children for window in windows_of(source))


def feeds_strict_to_as_of(plan: Standing) -> bool:
    """Whether a join as of a time would have to take back results that it joined with the past."""
    circumstances = Circumstances.of(plan, kept=True)
    return any(
        isinstance(node, AsOfJoin)
        and pattern_of(node.left, circumstances).pattern == UpdatePattern.STRICT
        for node in nodes_of(plan)
    )


def only_grows(plan: Standing) -> bool:
    """Whether the answer has more and more rows: those that come never go."""
    edge = pattern_of(plan.source, Circumstances.of(plan))
    return edge.pattern == UpdatePattern.MONOTONIC and plan.output_window is None


def keeps_answer(plan: Standing) -> bool:
    """Whether a live run keeps the answer: not where it only grows and reports do without it."""
    return plan.report not in ("istream", "dstream") or not only_grows(plan)


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


def _answer(plan: Standing, *, kept: bool) -> Edge:
    if plan.output_window is not None:
        return plan.output_window.edge
    edge = pattern_of(plan.source, Circumstances.of(plan, kept=kept))
    return slid(edge, plan.slide_us) if plan.restore else edge
