"""Answer a plan of several blocks: derived streams first, then windows in brackets and the rest."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eventide.engines.derived import Opener
from eventide.engines.history.answer import Sources, run_block, table_of
from eventide.engines.history.merged import newest_of, run_merged
from eventide.engines.history.weights import Weights
from eventide.engines.standing.choice import best_plan
from eventide.instants import END_OF_TIME_US
from eventide.operators.columns import concat_batches
from eventide.operators.order_events import in_order
from eventide.plan.nodes import DerivedStream, Relational, is_chain
from eventide.plan.standing.nodes import Merge
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.schema import TS, Attribute, Schema, row_schema
from eventide.store import TableSource
from eventide.store.source import EventSource


@dataclass
class ComposedAnswer:
    """Answers a query from the inside; `sources` gains the rows of derived streams."""

    sources: dict[str, EventSource]
    weights: Weights
    opener: Opener
    newest_us: int | None
    """The instant after the newest event of all streams below windows: all share it."""

    @classmethod
    def of(cls, plan: Plan, sources: Sources, weights: Weights) -> ComposedAnswer:
        """Return what answers a plan and all plans inside it."""
        return cls(dict(sources), weights, Opener.of(plan), newest_of(plan, sources))

    def rows(self, plan: Plan) -> pa.Table:
        """Return the rows of a plan."""
        plan = self.opened(plan)
        until_us = latest(newest_of(plan, self.sources), self.newest_us)

        def run(name: str, block: Plan) -> pa.Table:
            if isinstance(block, Merge):
                return pa.concat_tables([run(name, each) for each in block.sources])
            return self.block(block, until_us)

        if isinstance(plan, Relational):
            # Windows in brackets alone do without DuckDB.
            from eventide.engines.history.rest import run_rest
            from eventide.engines.history.situations.joined import run_input

            inputs = {name: run_input(name, source, run) for name, source in plan.inputs}
            return run_rest(plan.duckdb_sql, inputs)
        return run("", plan)

    def block(self, plan: Plan, until_us: int | None) -> pa.Table:
        """Return the rows of a plan over scans."""
        if is_chain(plan):
            return run_block(plan, self.sources, self.weights)
        if windows_of(plan):
            best = best_plan(plan, self.sources)
            return table_of(plan, run_merged(best, self.sources, until_us))
        from eventide.engines.history.algebra.spans import spans_of

        spans = spans_of(plan, self.sources)
        periods = None if isinstance(spans, str) else spans.periods
        # Nothing goes on after the last event.
        rows = run_merged(plan, self.sources, END_OF_TIME_US, periods=periods)
        return table_of(plan, rows)

    def opened(self, plan: Plan) -> Plan:
        """Return a plan over scans alone, having answered the derived streams that it reads."""
        found = self.opener.open(plan)
        for name, stream in found.below.items():
            if name not in self.sources:
                self.sources[name] = source_of(name, stream, self.rows(stream.source))
        return found.plan


def source_of(name: str, stream: DerivedStream, table: pa.Table) -> TableSource:
    """Return the rows of a derived stream as a source, in order."""
    schema = row_schema(stream.row)
    rows = concat_batches(table.to_batches(), schema)
    ordered = in_order(rows, stream.order)
    return TableSource(name, schema_of(stream), pa.Table.from_batches([ordered], schema))


def schema_of(stream: DerivedStream) -> Schema:
    """Return the schema of the rows of a derived stream."""
    attributes = (Attribute(each, kind) for each, kind in stream.row.items() if each != TS)
    return Schema(tuple(attributes), stored=False)


def latest(*instants: int | None) -> int | None:
    """Return the latest of instants, or None if there is none."""
    return max((each for each in instants if each is not None), default=None)
