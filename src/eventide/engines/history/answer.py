"""Answer a plan over what is stored: each block the cheapest way, then the ordinary rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from eventide.engines.history.choice import ways
from eventide.engines.history.weights import DEFAULTS, Weights
from eventide.plan.nodes import is_chain, scans_of
from eventide.plan.tree import Plan
from eventide.schema import row_schema
from eventide.store.source import EventSource

Sources = Mapping[str, EventSource]


def run_history(plan: Plan, sources: Sources, weights: Weights = DEFAULTS) -> pa.Table:
    """Return the rows of a plan over all that is stored."""
    if is_chain(plan):
        return run_block(plan, sources, weights)
    # Most queries are one block: they do without DuckDB and standing queries.
    from eventide.engines.history.composed import ComposedAnswer

    return ComposedAnswer.of(plan, sources, weights).rows(plan)


def run_block(plan: Plan, sources: Sources, weights: Weights) -> pa.Table:
    """Return the rows of a plan over one scan, the cheapest way."""
    (scan,) = scans_of(plan)
    rows, _ = ways(plan, sources[scan.stream], weights).best.run()
    return table_of(plan, rows)


def table_of(plan: Plan, rows: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the rows of a block; if there are none, with the columns of its plan."""
    return pa.Table.from_batches(rows, rows[0].schema if rows else row_schema(plan.row))
