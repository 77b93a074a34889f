"""Rewrites of a plan, one a file, in the order below. None of them changes an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eventide.plan.check import check_plan
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
    merge_filters,  # so that one look at a filter finds all bounds
    push_down_time_range,  # lets the store skip segments
    prune_columns,  # last, because moved bounds no longer need their columns
)


def narrowed(plan: Plan) -> Plan:
    """Return a bound plan whose scans have the period that its conditions leave."""
    return push_down_time_range(merge_filters(fold_constants(plan)))


def optimise(plan: Plan, passes: Sequence[Pass] = PASSES) -> Plan:
    """Return the plan after all passes, checked after each."""
    plan = check_plan(plan, after="bind")
    for rewrite in passes:
        plan = check_plan(rewrite(plan), after=getattr(rewrite, "__name__", str(rewrite)))
    return plan
