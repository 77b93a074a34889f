"""Over the store: a task is a slice of time, opened and computed in its own Python worker.

Raw events never cross into the JVM and nothing is shuffled: the driver names the slices, each
worker reads its segments, runs the embedded operators, and only results leave.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eventide.batch import TimeRange
from eventide.engines.build import build_pipeline
from eventide.engines.history import run_slice
from eventide.engines.slices import Slice, slices_of
from eventide.engines.spark.types import spark_schema
from eventide.plan.nodes import Plan, Scan
from eventide.store.source import EventSource

TASKS_PER_CORE = 2
SMALLEST_SLICE_ROWS = 200_000
"""Below this, starting a task costs more than it saves."""


def over_store(spark: SparkSession, plan: Plan, source: EventSource) -> DataFrame:
    """Return the rows of a plan that can be cut in time, over a stored stream."""
    pipeline = build_pipeline(plan)
    slices = slices_of(plan, pipeline.scan, source, slice_rows(spark, source))

    def run(items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in items:
            for item in batch.column(0).to_pylist():
                yield from run_slice(plan, source, slices[item])

    work = spark.range(0, len(slices), 1, len(slices))
    return work.mapInArrow(run, spark_schema(pipeline.output_schema))


def scanned(spark: SparkSession, scan: Scan, source: EventSource) -> list[Slice]:
    """Return slices that together scan all a plan reads, each row once."""
    parts = source.slices(scan.time_range, slice_rows(spark, source))
    return [Slice(TimeRange(), part.time_range, part.rows) for part in parts]


def slice_rows(spark: SparkSession, source: EventSource) -> int:
    """Return how many rows a task should have: a few tasks for each core."""
    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    return max(SMALLEST_SLICE_ROWS, source.row_count // max(1, tasks))
