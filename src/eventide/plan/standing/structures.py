"""In which structures operators keep the tuples of an edge, given how they come and go."""

from __future__ import annotations

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
from eventide.plan.standing.edges import Circumstances, Edge, UpdatePattern
from eventide.plan.standing.joins import AsOfJoin, WindowJoin
from eventide.plan.standing.nodes import GroupAggregate, Standing
from eventide.plan.standing.update_patterns import nodes_of, pattern_of
from eventide.plan.tree import Plan

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
