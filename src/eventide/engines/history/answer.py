"""Answer a plan over what is stored: each block the cheapest way, then the ordinary rest."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from eventide.engines.build import build_pipeline
from eventide.engines.history.choice import ways
from eventide.engines.history.rest import run_rest
from eventide.engines.history.situations.joined import run_input, standing_blocks
from eventide.engines.history.weights import DEFAULTS, Weights
from eventide.engines.standing.history import run_standing, until_of
from eventide.plan.nodes import Relational, scans_of
from eventide.plan.standing.nodes import Standing
from eventide.plan.tree import Plan
from eventide.store.source import EventSource

Sources = Mapping[str, EventSource]


def run_history(plan: Plan, sources: Sources, weights: Weights = DEFAULTS) -> pa.Table:
    """Return the rows of a plan over all that is stored."""
    until_us = until_of(standing_blocks(plan), sources)

    def run(_name: str, block: Plan) -> pa.Table:
        if isinstance(block, Standing):
            return run_standing(block, sources, until_us)
        return run_block(block, sources, weights)

    if isinstance(plan, Relational):
        inputs = {name: run_input(name, source, run) for name, source in plan.inputs}
        return run_rest(plan.duckdb_sql, inputs)
    return run("", plan)


def run_block(plan: Plan, sources: Sources, weights: Weights = DEFAULTS) -> pa.Table:
    """Return the rows of a plan over one scan."""
    (scan,) = scans_of(plan)
    rows, _ = ways(plan, sources[scan.stream], weights).best.run()
    return pa.Table.from_batches(rows, build_pipeline(plan).output_schema)
