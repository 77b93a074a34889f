"""Answer a plan over what is stored: each block the cheapest way, then the ordinary rest."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from eventide.engines.build import build_pipeline
from eventide.engines.choice import ways
from eventide.engines.joined import run_input
from eventide.engines.rest import run_rest
from eventide.engines.weights import DEFAULTS, Weights
from eventide.plan.nodes import Plan, Relational, scans_of
from eventide.store.source import EventSource

Sources = Mapping[str, EventSource]


def run_history(plan: Plan, sources: Sources, weights: Weights = DEFAULTS) -> pa.Table:
    """Return the rows of a plan over all that is stored."""
    if isinstance(plan, Relational):

        def run(_name: str, block: Plan) -> pa.Table:
            return run_block(block, sources, weights)

        inputs = {name: run_input(name, source, run) for name, source in plan.inputs}
        return run_rest(plan.duckdb_sql, inputs)
    return run_block(plan, sources, weights)


def run_block(plan: Plan, sources: Sources, weights: Weights = DEFAULTS) -> pa.Table:
    """Return the rows of a plan over one scan."""
    (scan,) = scans_of(plan)
    rows, _ = ways(plan, sources[scan.stream], weights).best.run()
    return pa.Table.from_batches(rows, build_pipeline(plan).output_schema)
