"""Resume a live query from a dumped state, with the plan that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eventide.engines.standing.build import build_standing
from eventide.engines.standing.feeds import feeds_of
from eventide.engines.standing.live import StandingLive, StandingState
from eventide.engines.standing.reach import keeps_answer
from eventide.operators.envelope import unseal
from eventide.plan.standing.choose import variants_of
from eventide.plan.standing.execution import EXECUTIONS
from eventide.plan.standing.nodes import Standing
from eventide.schema import Schema


def resumed(
    live: StandingLive, plan: Standing, catalog: Mapping[str, Schema], dumped: bytes
) -> tuple[StandingLive, StandingState]:
    """Return the engine of the plan that wrote a state, and the state.

    `plan` is the query as bound. `live` runs the plan that seems best now; when the state was
    written, with other events stored, it may have been another one.
    """
    writer, _ = unseal(dumped)
    for execution in dict.fromkeys((live.tree.reporter.execution, *EXECUTIONS)):
        for variant in (live.plan, *variants_of(plan)):
            tree = build_standing(variant, execution, keeps_answer=keeps_answer(variant))
            other = replace(live, plan=variant, tree=tree, feeds=feeds_of(tree, catalog))
            if other.owner.digest == writer.digest:
                return other, other.load(dumped)
    raise live.owner.refusal(writer)
