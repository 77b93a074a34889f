"""Replay stored events through the operators of a plan: slices in parallel threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from eventide.arrays import no_rows
from eventide.engines.build import build_tree
from eventide.engines.history.pruning import value_ranges
from eventide.engines.history.slices import NoEntryError, Slice, slices_of
from eventide.instants import ALL_TIME, END_OF_TIME_US, TimeRange
from eventide.operators.columns import in_blocks
from eventide.operators.tree import OperatorTree, TreeStep
from eventide.plan.nodes import scans_of
from eventide.plan.tree import Plan
from eventide.schema import TS
from eventide.store.source import SCAN_ROWS, EventSource
from eventide.threads import in_threads

SLICE_ROWS = 1_000_000
"""Large enough for a kernel to run long, small enough to stay near the cache."""
SLICES_BACK = 12
"""How many times WITHIN before a slice the beginning of its matches is looked for. Some patterns
have matches everywhere, and then there is no such place."""

Build = Callable[[Plan, TimeRange, int], OperatorTree]
"""Makes the tree of a slice; profiling.py has one that times operators."""


def replay(plan: Plan, source: EventSource, build: Build = build_tree) -> list[pa.RecordBatch]:
    """Return the rows of a plan over one scan; every event is read."""
    (scan,) = scans_of(plan)
    whole = Slice(ALL_TIME, scan.time_range, source.row_count)
    if source.row_count <= SLICE_ROWS:
        return run_slices(plan, source, [whole], build)
    try:
        return run_slices(plan, source, slices_of(plan, scan, source, SLICE_ROWS), build)
    except NoEntryError:
        return run_slices(plan, source, [whole], build)


def run_slices(
    plan: Plan, source: EventSource, slices: Sequence[Slice], build: Build = build_tree
) -> list[pa.RecordBatch]:
    """Return the rows that some slices own, computed in threads.

    Raises `NoEntryError` if one of them would have to read everything before it: then one slice for
    all takes less.
    """
    if len(slices) == 1:
        return run_slice(plan, source, slices[0], os.cpu_count() or 1, build)

    def run(part: Slice) -> list[pa.RecordBatch]:
        return run_slice(plan, source, part, 1, build, SLICES_BACK)

    parts = in_threads(run, slices, os.cpu_count() or 1)
    return [batch for part in parts for batch in part]


def run_slice(
    plan: Plan,
    source: EventSource,
    part: Slice,
    threads: int = 1,
    build: Build = build_tree,
    furthest: int | None = None,
) -> list[pa.RecordBatch]:
    """Return the rows that one slice owns.

    For a pattern, the row to begin at is looked for up to `furthest` times WITHIN before the slice.
    """
    tree = build(plan, part.owned, threads)
    if part.read.is_empty:
        return list(run_chain(tree, iter(())))
    where = value_ranges(plan) if tree.filters else {}
    searches = any(each.reads_blocks for each in tree.operators)
    if searches and part.owned != ALL_TIME:
        # What row patterns and temporal patterns need is not imported without any.
        from eventide.engines.history.patterns.slices import (
            finds_matches,
            matcher_of,
            run_match_slice,
        )
        from eventide.engines.history.situations.slices import rows_of_slice, temporal_matcher

        if finds_matches(tree):
            within_us = matcher_of(tree).node.within_us
            furthest_us = furthest * within_us if furthest and within_us else END_OF_TIME_US
            return run_match_slice(tree, source, part.owned, where, furthest_us)
        temporal = temporal_matcher(tree)
        if temporal is not None:
            rows = rows_of_slice(tree, temporal.node.within_us, source, part.owned, where)
            above = tree.above(len(tree.stateless))
            return list(run_chain(above, in_blocks(rows, SLICE_ROWS)))
    names = [name for name, _ in tree.scan.columns]
    batches = source.scan(names, part.read, where)
    if threads > 1 and part.rows > SCAN_ROWS:
        # Smaller blocks: the threads that share the keys of one do not wait for the next.
        batches = read_ahead(in_blocks(batches, SCAN_ROWS // 2))
    elif searches:
        batches = in_blocks(batches, SLICE_ROWS)
    return list(run_chain(tree, batches))


def read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, each read by a thread while the one before it is in use."""

    def read() -> pa.RecordBatch | None:
        return next(batches, None)

    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(read)
        while (batch := following.result()) is not None:
            following = thread.submit(read)
            yield batch


def run_chain(tree: OperatorTree, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the results of events of the only leaf that come in order and have an end."""
    return tree.run(chain_steps(tree, batches))


def chain_steps(tree: OperatorTree, batches: Iterator[pa.RecordBatch]) -> Iterator[TreeStep]:
    """Yield a step for each batch, and one that ends them."""
    for rows in batches:
        # More events of the last instant may follow in the next batch.
        yield TreeStep((rows,), rows.column(TS)[-1].cast(pa.int64()).as_py())
    nothing = no_rows(tree.input_schema)
    yield TreeStep((nothing,), END_OF_TIME_US)
