"""Blocks whose periods are joined by relation: their names, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from eventide.engines.derived import parts_of
from eventide.engines.history.situations.pairs import PeriodPairs
from eventide.plan.nodes import Relational
from eventide.plan.situations.nodes import PeriodJoin
from eventide.plan.tree import Plan

RunBlock = Callable[[str, Plan], pa.Table]
"""Returns the rows of a block; its name comes first."""
JoinTables = Callable[[PeriodJoin, pa.Table, pa.Table], PeriodPairs]


def named_blocks(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the plans over one scan that a plan consists of, with their names in the query."""
    for name, source in named_inputs(plan):
        yield from ((name, part) for part in parts_of(source))


def named_inputs(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the inputs of the rest, and the sides of joins, with their names; or the plan itself.

    Each is a block, or UNION ALL of several.
    """
    if not isinstance(plan, Relational):
        yield "", plan
        return
    for name, source in plan.inputs:
        yield from sides_of(name, source)


def sides_of(name: str, plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the blocks of one input of the rest; the sides of a join have the query's names."""
    if not isinstance(plan, PeriodJoin):
        yield name, plan
        return
    yield from sides_of(left_name(name, plan), plan.left)
    yield right_name(name, plan), plan.right


def left_name(name: str, join: PeriodJoin) -> str:
    """Return the name of the left side of a join; more joins belong to the same input."""
    return name if isinstance(join.left, PeriodJoin) else f"{join.first.name} of {name}"


def right_name(name: str, join: PeriodJoin) -> str:
    """Return the name of the right side of a join, which is a block."""
    return f"{join.second.name} of {name}"


def joins_of(plan: Plan) -> Iterator[PeriodJoin]:
    """Yield the joins of periods of a plan, in the order in which they are done."""
    match plan:
        case Relational(inputs=inputs):
            for _, source in inputs:
                yield from joins_of(source)
        case PeriodJoin(left=left):
            yield from joins_of(left)
            yield plan


def run_input(
    name: str, plan: Plan, run: RunBlock, join: JoinTables = PeriodPairs
) -> pa.Table | PeriodPairs:
    """Return the rows of an input of the rest: of a block, or of several that are joined.

    The last join is done while its pairs are read; earlier joins are sides, which are tables.
    """
    if not isinstance(plan, PeriodJoin):
        return run(name, plan)
    left = run_input(left_name(name, plan), plan.left, run, join)
    table = left.table() if isinstance(left, PeriodPairs) else left
    return join(plan, table, run(right_name(name, plan), plan.right))


def describe_join(node: PeriodJoin) -> str:
    """Return how the pairs of a join are found."""
    by = f"by {node.equal_text}, then " if node.keys else ""
    return f"{node.related_text}: looked up {by}by search among sorted bounds"
