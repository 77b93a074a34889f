"""A live query that goes on from a dumped state: with the plan that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eventide.engines.standing.build import build_standing
from eventide.engines.standing.feeds import feeds_of
from eventide.engines.standing.live import StandingLive, StandingState, facts_of
from eventide.engines.standing.reach import keeps_answer
from eventide.errors import StateError
from eventide.operators.state import split_parts, without_checksum
from eventide.plan.choose_standing import variants_of
from eventide.plan.execution import EXECUTIONS
from eventide.plan.standing import Standing
from eventide.schema import Schema


def resumed(
    live: StandingLive, plan: Standing, catalog: Mapping[str, Schema], dumped: bytes
) -> tuple[StandingLive, StandingState]:
    """Return the engine of the plan that wrote a state, and the state.

    `plan` is the query as bound, of which `live` runs the plan that seems best now: when the state
    was written, with other events stored, another one may have been.
    """
    wanted = facts_of(split_parts(without_checksum(dumped)))["plan"]
    for execution in dict.fromkeys((live.tree.reporter.execution, *EXECUTIONS)):
        for variant in (live.plan, *variants_of(plan)):
            tree = build_standing(variant, execution, keeps_answer=keeps_answer(variant))
            other = replace(live, plan=variant, tree=tree, feeds=feeds_of(tree, catalog))
            if other.digest == wanted:
                return other, other.load(dumped)
    message = "the state was written by another query"
    raise StateError(message, hint="load a state with the text that was subscribed with")
