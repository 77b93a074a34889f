"""Over the store: a task is a slice of time, opened and computed in its own Python worker.

Raw events never cross into the JVM and no events are shuffled: the driver names the slices, each
worker reads its segments, runs the embedded operators, and only results leave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eventide.engines.build import build_tree
from eventide.engines.history.replay import run_slice
from eventide.engines.history.slices import slices_of
from eventide.engines.spark.session import cores
from eventide.engines.spark.types import mapped
from eventide.engines.spark.work import items_in, work_frame
from eventide.instants import START_OF_TIME_US, TimeRange
from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import (
    EndRows,
    Project,
    Scan,
    match_of,
    situations_of,
)
from eventide.plan.tree import Plan
from eventide.schema import INT64, SEQ, TIMESTAMP, TS
from eventide.store import Snapshot

TASKS_PER_CORE = 2
SMALLEST_SLICE_ROWS = 200_000
"""Below this, starting a task costs more than it saves."""
HIDDEN = {"eventide_ts": Column(TS, TIMESTAMP), "eventide_seq": Column(SEQ, INT64)}
"""The order of events, where Spark has to put them in order."""


def over_store(
    spark: SparkSession, plan: Plan, source: Snapshot, zoneless: Collection[str]
) -> DataFrame:
    """Return the rows of a plan that can be cut in time, over a stored stream."""
    tree = build_tree(plan)
    slices = slices_of(plan, tree.scan, source, slice_rows(spark, source))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, (part, own) in items_in(batches):
            yield from run_slice(plan, part, own)

    # A slice of a pattern may have to look far back for where its matches begin.
    looks_back = match_of(plan) is not None or situations_of(plan) is not None
    reads = [
        TimeRange(START_OF_TIME_US if looks_back else each.read.start_us, each.read.end_us)
        for each in slices
    ]
    work = work_frame(
        spark, [(source.within(read), each) for read, each in zip(reads, slices, strict=True)]
    )
    return mapped(work, run, tree.output_schema, zoneless)


def over_ends(
    spark: SparkSession, node: EndRows, source: Snapshot, zoneless: Collection[str]
) -> DataFrame:
    """Return the first or last events that meet a condition; Spark puts them in order."""
    rows = node.source
    assert isinstance(rows, Project)
    hidden = tuple(Named(name, column) for name, column in HIDDEN.items())
    below = numbered(rows.source)
    frame = over_store(
        spark, replace(rows, source=below, items=(*rows.items, *hidden)), source, zoneless
    )
    order = [frame[name].desc() if node.last else frame[name].asc() for name in HIDDEN]
    return frame.orderBy(*order).offset(node.offset).limit(node.count).drop(*HIDDEN)


def numbered(plan: Plan) -> Plan:
    """Return a plan over one scan that also reads the numbers of events."""
    if isinstance(plan, Scan):
        others = tuple(column for column in plan.columns if column[0] != SEQ)
        return replace(plan, columns=(*others, (SEQ, INT64)))
    return plan.with_children(numbered)


def slice_rows(spark: SparkSession, source: Snapshot) -> int:
    """Return how many rows a task should have: a few tasks for each core."""
    tasks = TASKS_PER_CORE * cores(spark)
    return max(SMALLEST_SLICE_ROWS, source.row_count // max(1, tasks))
