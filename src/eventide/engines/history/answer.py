"""Answer a plan over what is stored: each block the cheapest way, then the ordinary rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa

from eventide.engines.history.choice import ways
from eventide.engines.history.weights import DEFAULTS, Weights
from eventide.plan.nodes import is_chain, scans_of
from eventide.plan.tree import Plan
from eventide.schema import row_schema
from eventide.store.source import EventSource

Sources = Mapping[str, EventSource]


class Answering:
    """How many queries over history this process answers now: they go before what can wait."""

    def __init__(self) -> None:
        self.count = 0
        self.changing = Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a query while it is answered."""
        with self.changing:
            self.count += 1
        try:
            yield
        finally:
            with self.changing:
                self.count -= 1

    def any(self) -> bool:
        """Whether one is being answered."""
        return self.count > 0


ANSWERING = Answering()


def run_history(plan: Plan, sources: Sources, weights: Weights = DEFAULTS) -> pa.Table:
    """Return the rows of a plan over all that is stored."""
    with ANSWERING.one():
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
