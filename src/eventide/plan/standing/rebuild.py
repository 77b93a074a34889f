"""The sources and expressions of the nodes of standing queries, and how they are replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from eventide.plan.expressions import Expression, Named, rebuild_aggregate
from eventide.plan.standing.nodes import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    OuterJoin,
    Standing,
    StandingNode,
    Top,
    Windowed,
    WindowJoin,
)
from eventide.plan.tree import Plan


def standing_sources(plan: StandingNode) -> tuple[Plan, ...]:
    """Return the plans directly below a node."""
    match plan:
        case Merge(sources=sources) | WindowJoin(sources=sources) | OuterJoin(sources=sources):
            return sources
        case AsOfJoin() | Difference() | Existence():
            return (plan.left, plan.right)
        case _:
            return (plan.source,)


def rebuild_standing_sources(plan: StandingNode, change: Callable[[Plan], Plan]) -> StandingNode:
    """Return the node with `change` applied to each plan directly below it."""
    match plan:
        case Merge(sources=sources) | WindowJoin(sources=sources) | OuterJoin(sources=sources):
            return replace(plan, sources=tuple(map(change, sources)))
        case AsOfJoin() | Difference() | Existence():
            return replace(plan, left=change(plan.left), right=change(plan.right))
        case _:
            return replace(plan, source=change(plan.source))


def rebuild_standing_expressions(
    plan: StandingNode, change: Callable[[Expression], Expression]
) -> StandingNode:
    """Return the node with `change` applied to each of its own expressions."""

    def each(expressions: tuple[Expression, ...]) -> tuple[Expression, ...]:
        return tuple(map(change, expressions))

    match plan:
        case Windowed() | Merge() | Distinct() | Difference() | Standing():
            return plan
        case (
            WindowJoin(keys=keys, condition=condition, band=band)
            | OuterJoin(keys=keys, condition=condition, band=band)
        ):
            return replace(
                plan,
                keys=tuple(map(each, keys)),
                condition=None if condition is None else change(condition),
                band=band and replace(band, left=change(band.left), right=change(band.right)),
            )
        case AsOfJoin(left_keys=left, right_keys=right):
            return replace(plan, left_keys=each(left), right_keys=each(right))
        case Existence(left_keys=left, right_keys=right):
            return replace(plan, left_keys=each(left), right_keys=each(right))
        case GroupAggregate(keys=keys, aggregates=aggregates):
            return replace(
                plan,
                keys=tuple(Named(key.name, change(key.expression)) for key in keys),
                aggregates=tuple(
                    replace(item, aggregate=rebuild_aggregate(item.aggregate, change))
                    for item in aggregates
                ),
            )
        case Top(order=order):
            ordered = tuple(replace(item, expression=change(item.expression)) for item in order)
            return replace(plan, order=ordered, keys=tuple(map(change, plan.keys)))
    assert_never(plan)
