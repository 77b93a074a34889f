"""Rewrites of a plan, one a file, in the order below. None of them changes an answer.

Each is about some nodes and expressions. What a plan has is found in one walk, and a plan without
them does not go through the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from eventide.plan.algebra.nodes import Iterate, Sequence
from eventide.plan.check import check_plan
from eventide.plan.expressions import Call, Cast, walk
from eventide.plan.nodes import DerivedStream, Filter
from eventide.plan.passes.bound_lengths import bound_lengths
from eventide.plan.passes.divide_conditions import divide_conditions
from eventide.plan.passes.drop_order import drop_order
from eventide.plan.passes.fold_constants import fold_constants
from eventide.plan.passes.merge_filters import merge_filters
from eventide.plan.passes.prune_columns import prune_columns
from eventide.plan.passes.push_down_time_range import push_down_time_range
from eventide.plan.tree import Plan

Pass = Callable[[Plan], Plan]

PASSES: tuple[Pass, ...] = (
    drop_order,  # before others, which stop at a derived stream
    fold_constants,  # so that `ts > TIMESTAMP '…' - INTERVAL '1' DAY` is seen as a bound
    divide_conditions,  # leaves filters below sequences for the passes that follow
    bound_lengths,  # needs the bounds that were among the conditions
    merge_filters,  # so that one look at a filter finds all bounds
    push_down_time_range,  # lets the store skip segments
    prune_columns,  # last, because moved bounds no longer need their columns
)

IN_ORDER = tuple(each for each in PASSES if each is not drop_order)
"""Those of a plan whose rows are read in order, also at its top."""
_ABOUT: Mapping[Pass, frozenset[type]] = {
    drop_order: frozenset({DerivedStream}),
    fold_constants: frozenset({Call, Cast, Filter}),
    divide_conditions: frozenset({Sequence, Iterate}),
    bound_lengths: frozenset({Sequence, Iterate}),
    merge_filters: frozenset({Filter}),
    push_down_time_range: frozenset({Filter}),
}
"""The nodes and expressions without which a pass changes nothing."""


def narrowed(plan: Plan) -> Plan:
    """Return a bound plan whose scans have the period that its conditions leave."""
    return push_down_time_range(merge_filters(fold_constants(plan)))


def optimise(plan: Plan, passes: tuple[Pass, ...] = PASSES) -> Plan:
    """Return the plan after all passes, checked after each."""
    plan = check_plan(plan, after="bind")
    kinds = frozenset(_kinds(plan))
    for rewrite in passes:
        if rewrite in _ABOUT and kinds.isdisjoint(_ABOUT[rewrite]):
            continue
        plan = check_plan(rewrite(plan), after=getattr(rewrite, "__name__", str(rewrite)))
    return plan


def _kinds(plan: Plan) -> Iterator[type]:
    """Yield the kinds of nodes and expressions that a plan has."""
    yield type(plan)
    for expression, _ in plan.expressions:
        yield from map(type, walk(expression))
    for child in plan.children:
        yield from _kinds(child)
