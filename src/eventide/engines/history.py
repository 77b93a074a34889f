"""Run a plan over stored events: slices of time in parallel threads, then the ordinary rest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from eventide.batch import ALL_TIME, END_OF_TIME_US, Batch
from eventide.engines.build import Pipeline, build_pipeline
from eventide.engines.match_slices import finds_matches, run_match_slice
from eventide.engines.pruning import value_ranges
from eventide.engines.rest import run_rest
from eventide.engines.slices import Slice, slices_of
from eventide.operators.columns import in_blocks
from eventide.plan.nodes import Plan, Relational
from eventide.schema import TS
from eventide.store.source import EventSource

Sources = Mapping[str, EventSource]

SLICE_ROWS = 1_000_000
"""Large enough for a kernel to run long, small enough to stay near the cache."""


def run_history(plan: Plan, sources: Sources) -> pa.Table:
    """Return the rows of a plan over all that is stored."""
    if isinstance(plan, Relational):
        inputs = {name: run_block(source, sources) for name, source in plan.inputs}
        return run_rest(plan.duckdb_sql, inputs)
    return run_block(plan, sources)


def run_block(plan: Plan, sources: Sources) -> pa.Table:
    """Return the rows of a plan over one scan."""
    pipeline = build_pipeline(plan)
    source = sources[pipeline.scan.stream]
    slices = slices_of(plan, pipeline.scan, source, SLICE_ROWS)
    if len(slices) == 1:
        parts = [run_slice(plan, source, slices[0], threads=os.cpu_count() or 1)]
    else:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            parts = list(threads.map(lambda part: run_slice(plan, source, part), slices))
    rows = [batch for part in parts for batch in part]
    return pa.Table.from_batches(rows, pipeline.output_schema)


def run_slice(
    plan: Plan, source: EventSource, part: Slice, threads: int = 1
) -> list[pa.RecordBatch]:
    """Return the rows that one slice owns."""
    pipeline = build_pipeline(plan, part.owned, threads)
    if part.read.is_empty:
        return list(run_pipeline(pipeline, iter(())))
    if part.owned != ALL_TIME and finds_matches(pipeline):
        return run_match_slice(pipeline, source, part.owned, value_ranges(plan))
    names = [name for name, _ in pipeline.scan.columns]
    batches = source.scan(names, part.read, value_ranges(plan))
    if finds_matches(pipeline):
        batches = in_blocks(batches, SLICE_ROWS)
    return list(run_pipeline(pipeline, batches))


def run_pipeline(pipeline: Pipeline, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the results of events that come in order and have an end."""
    states = pipeline.initial_state()
    for rows in batches:
        # More events of the last instant may follow in the next batch.
        watermark_us = rows.column(TS)[-1].cast(pa.int64()).as_py()
        states, results = pipeline.step(states, Batch(rows, watermark_us))
        if results.rows.num_rows:
            yield results.rows
    nothing = pa.RecordBatch.from_pylist([], schema=pipeline.input_schema)
    _, results = pipeline.step(states, Batch(nothing, END_OF_TIME_US))
    if results.rows.num_rows:
        yield results.rows
