"""Patterns from the index on Spark: the driver asks the index, tasks replay spans of time.

The spans are shared out so that each task has about as many rows to read. A task gets the part of
the store that its spans lie in, and reads no other blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eventide.batch import END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.engines.build import build_pipeline
from eventide.engines.intervals.candidates import Spans
from eventide.engines.intervals.replay import Run, SpanReplay, runs_of
from eventide.engines.intervals.ways import IntervalAccess, PatternQuestion
from eventide.engines.spark.types import spark_schema
from eventide.engines.spark.work import items_in, work_frame
from eventide.store.reading.leaves import units_of
from eventide.store.snapshot import Snapshot

TASKS_PER_CORE = 2
SMALLEST_TASK_ROWS = 200_000
"""Below this, starting a task costs more than it saves."""

Item = tuple[Snapshot, Spans, bool]


def over_spans(spark: SparkSession, access: IntervalAccess) -> DataFrame:
    """Return the rows of a pattern whose spans the driver has found."""
    question = access.question
    plan = question.plan
    spans = question.spans(access.chosen)
    runs = runs_of(question.units, question.kept, spans, numbered=question.numbered)
    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    items = [item_of(question, group) for group in balanced(runs, question, tasks)]
    schema = spark_schema(build_pipeline(plan).output_schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, (part, own, by_number) in items_in(batches):
            units = units_of(part)
            numbered = by_number and units.in_order
            read = runs_of(units, np.ones(units.count, np.bool_), own, numbered=numbered)
            yield from SpanReplay(build_pipeline(plan), units, numbered).run(read).results

    if not items:
        return spark.createDataFrame([], schema)
    return work_frame(spark, items).mapInArrow(run, schema)


def balanced(runs: Sequence[Run], question: PatternQuestion, tasks: int) -> Iterator[Sequence[Run]]:
    """Yield groups of neighbouring runs with about as many rows each."""
    counts = [int(question.units.rows[run.first : run.last + 1].sum()) for run in runs]
    most = max(SMALLEST_TASK_ROWS, -(-sum(counts) // max(1, tasks)))
    group: list[Run] = []
    rows = 0
    for run, count in zip(runs, counts, strict=True):
        if group and rows + count > most:
            yield group
            group, rows = [], 0
        group.append(run)
        rows += count
    if group:
        yield group


def item_of(question: PatternQuestion, runs: Sequence[Run]) -> Item:
    """Return what a task needs: the part of the store, and its spans cut to what the map kept."""
    units, matcher = question.units, question.matcher
    parts = [
        run.spans.clipped(int(units.ts_min[run.first]), int(units.ts_max[run.last])) for run in runs
    ]
    first, last = int(units.ts_min[runs[0].first]), int(units.ts_max[runs[-1].last])
    # PREV and NEXT may look at rows of other segments.
    start = START_OF_TIME_US if matcher.reach_back else first
    end = END_OF_TIME_US if matcher.reach_ahead else last + 1
    return question.snapshot.within(TimeRange(start, end)), joined(parts), question.numbered


def joined(parts: Sequence[Spans]) -> Spans:
    """Return the spans of several runs, one after another."""
    names = ("start_us", "end_us", "first", "last", "key")
    return Spans(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
