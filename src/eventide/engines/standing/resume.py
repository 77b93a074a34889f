"""Resume a live query from a dumped state, with the plan that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from eventide.engines.build import build_live_tree
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.feeds import feeds_of
from eventide.operators.envelope import unseal
from eventide.plan.standing.choose import variants_of
from eventide.plan.standing.execution import EXECUTIONS
from eventide.plan.tree import Plan
from eventide.schema import Schema


def resumed(
    live: LiveEngine, plan: Plan, catalog: Mapping[str, Schema], dumped: bytes
) -> tuple[LiveEngine, LiveState]:
    """Return the engine of the plan that wrote a state, and the state.

    `plan` is the query as bound. `live` runs the plan that seems best now; when the state was
    written, with other events stored, it may have been another one.
    """
    writer = unseal(dumped)[0]
    for execution in dict.fromkeys((live.reporter.execution, *EXECUTIONS)):
        for variant in chain((live.plan,), variants_of(plan)):
            tree = build_live_tree(variant, execution)
            other = replace(live, plan=variant, tree=tree, feeds=feeds_of(tree, catalog))
            if other.owner.digest == writer.digest:
                return other, other.load(dumped)
    raise live.owner.refusal(writer)
