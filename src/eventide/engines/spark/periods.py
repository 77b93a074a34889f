"""Patterns from the index on Spark: the driver reads the index, tasks replay periods.

The periods are distributed so that each task has about as many rows to read. A task gets the part
of the store that its periods lie in, and reads no other blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eventide.engines.build import build_tree
from eventide.engines.history.patterns.candidates import FARTHEST, Periods
from eventide.engines.history.patterns.question import PatternQuestion
from eventide.engines.history.patterns.replay import Intervals, PeriodReplay, intervals_of
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.spark.session import cores
from eventide.engines.spark.types import mapped, spark_schema
from eventide.engines.spark.work import items_in, work_frame
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.schema import TS
from eventide.store.order import int64_view
from eventide.store.reading.leaves import units_of
from eventide.store.reading.rows import NumberedRows
from eventide.store.snapshot import Snapshot

TASKS_PER_CORE = 2
SMALLEST_TASK_ROWS = 200_000
"""Below this, starting a task costs more than it saves."""
ROWS_AN_INTERVAL = 2_000
"""Finding an interval and reading its leaf takes as long as matching about this many rows."""

Item = tuple[Snapshot, Periods]


def over_periods(
    spark: SparkSession, access: IntervalAccess, zoneless: Collection[str]
) -> DataFrame:
    """Return the rows of a pattern whose periods the driver has found."""
    question = access.question
    # Events that are gone would silently not be found.
    question.snapshot.check_whole(question.time_range)
    plan = question.plan
    intervals = question.intervals(question.periods(access.chosen))
    tasks = TASKS_PER_CORE * cores(spark)
    items = [item_of(question, part) for part in balanced(intervals, tasks)]
    schema = build_tree(plan).output_schema

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, (part, times) in items_in(batches):
            units = units_of(part)
            tree = build_tree(plan)
            own = intervals_of(
                units,
                np.ones(units.count, np.bool_),
                times,
                tree.scan.time_range,
                numbered=units.in_order,
            )
            yield from PeriodReplay(tree, units).run(own).results

    if not items:
        return spark.createDataFrame([], spark_schema(schema, zoneless))
    return mapped(work_frame(spark, items), run, schema, zoneless)


def balanced(intervals: Intervals, tasks: int) -> Iterator[Intervals]:
    """Yield neighbouring intervals with about as much work each."""
    if not len(intervals):
        return
    work = np.cumsum(intervals.end - intervals.start + ROWS_AN_INTERVAL)
    count = max(1, min(tasks, int(work[-1]) // SMALLEST_TASK_ROWS))
    cuts = np.searchsorted(work, np.linspace(0, int(work[-1]), count + 1)[1:-1])
    for first, last in pairwise(np.unique([0, *cuts, len(intervals)]).tolist()):
        yield Intervals(intervals.start[first:last], intervals.end[first:last])


def item_of(question: PatternQuestion, intervals: Intervals) -> Item:
    """Return what a task needs: the part of the store, and its intervals as periods.

    The rows of a part have new numbers, so intervals are given by times, and by the numbers of
    events where these count rows.
    """
    schema = pa.schema([question.snapshot.schema.arrow.field(TS)])
    stored = NumberedRows(question.units)
    ends = np.concatenate([intervals.start, intervals.end - 1])
    start, end = np.split(int64_view(stored.take(ends, schema).column(TS)), 2)
    anywhere = np.full(len(start), FARTHEST, np.int64)
    first, last = -anywhere, anywhere
    if question.numbered:
        first, last = (rows + question.units.first_seq for rows in (intervals.start, intervals.end))
        last = last - 1
    periods = Periods(start, end, first, last, np.zeros_like(start))
    # PREV and NEXT may read rows of other segments.
    matcher = question.matcher
    from_us = START_OF_TIME_US if matcher.reach_back else int(start[0])
    to_us = END_OF_TIME_US if matcher.reach_ahead else int(end[-1]) + 1
    return question.snapshot.within(TimeRange(from_us, to_us)), periods
