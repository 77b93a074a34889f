"""Replay stored events through the operators of a plan: slices in parallel threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from eventide.batch import ALL_TIME, END_OF_TIME_US, Batch, TimeRange
from eventide.engines.build import Pipeline, build_pipeline
from eventide.engines.history.patterns.slices import (
    NoEntryError,
    finds_matches,
    matcher_of,
    run_match_slice,
)
from eventide.engines.history.pruning import value_ranges
from eventide.engines.history.situations.slices import (
    follows_situations,
    rows_of_slice,
    temporal_matcher,
)
from eventide.engines.history.slices import Slice, slices_of
from eventide.operators.columns import in_blocks
from eventide.plan.tree import Plan
from eventide.schema import TS
from eventide.store.source import EventSource

SLICE_ROWS = 1_000_000
"""Large enough for a kernel to run long, small enough to stay near the cache."""
SLICES_BACK = 12
"""How many times WITHIN before a slice the beginning of its matches is looked for. Some patterns
have matches everywhere, and then there is no such place."""

Build = Callable[[Plan, TimeRange, int], Pipeline]
"""Makes the pipeline of a slice; profiling.py has one that times operators."""


def replay(plan: Plan, source: EventSource, build: Build = build_pipeline) -> list[pa.RecordBatch]:
    """Return the rows of a plan over one scan; every event is read."""
    pipeline = build_pipeline(plan)
    slices = slices_of(plan, pipeline.scan, source, SLICE_ROWS)
    try:
        return run_slices(plan, source, slices, build)
    except NoEntryError:
        whole = Slice(ALL_TIME, pipeline.scan.time_range, source.row_count)
        return run_slices(plan, source, [whole], build)


def run_slices(
    plan: Plan, source: EventSource, slices: Sequence[Slice], build: Build = build_pipeline
) -> list[pa.RecordBatch]:
    """Return the rows that some slices own, computed in threads.

    Raises `NoEntryError` if one of them would have to read everything before it: then one slice for
    all takes less.
    """
    if len(slices) == 1:
        return run_slice(plan, source, slices[0], os.cpu_count() or 1, build)

    def run(part: Slice) -> list[pa.RecordBatch]:
        return run_slice(plan, source, part, 1, build, SLICES_BACK)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        parts = list(threads.map(run, slices))
    return [batch for part in parts for batch in part]


def run_slice(
    plan: Plan,
    source: EventSource,
    part: Slice,
    threads: int = 1,
    build: Build = build_pipeline,
    furthest: int | None = None,
) -> list[pa.RecordBatch]:
    """Return the rows that one slice owns.

    For a pattern, the row to begin at is looked for up to `furthest` times WITHIN before the slice.
    """
    pipeline = build(plan, part.owned, threads)
    if part.read.is_empty:
        return list(run_pipeline(pipeline, iter(())))
    if part.owned != ALL_TIME and finds_matches(pipeline):
        within_us = matcher_of(pipeline).node.within_us
        furthest_us = furthest * within_us if furthest and within_us else END_OF_TIME_US
        return run_match_slice(pipeline, source, part.owned, value_ranges(plan), furthest_us)
    temporal = temporal_matcher(pipeline)
    if part.owned != ALL_TIME and temporal is not None:
        within_us = temporal.node.within_us
        rows = rows_of_slice(pipeline, within_us, source, part.owned, value_ranges(plan))
        above = pipeline.above(len(pipeline.stateless))
        return list(run_pipeline(above, in_blocks(rows, SLICE_ROWS)))
    names = [name for name, _ in pipeline.scan.columns]
    batches = source.scan(names, part.read, value_ranges(plan))
    if finds_matches(pipeline) or follows_situations(pipeline):
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
