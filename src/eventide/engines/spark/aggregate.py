"""Aggregates over periods, answered by the driver from the index; tasks read rows.

The index answers for every segment and every node that lies entirely in a period. The driver looks
these up as the embedded engine does, without starting a task. What is left are rows: of leaves that
a period cuts, and of segments whose index lacks the aggregate. If those are more than
`READ_ROWS_HERE`, their segments are cut into slices, a task each: it returns the partials of the
periods in its slice, and the driver merges them with its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from eventide.engines.buckets import from_bytes, to_bytes
from eventide.engines.spark.history import TASKS_PER_CORE
from eventide.engines.spark.session import cores
from eventide.engines.spark.spread import Batches
from eventide.engines.spark.work import aggregates_named, items_in, register_here, work_frame
from eventide.engines.spark.workers import check_workers
from eventide.instants import TimeRange
from eventide.store.order import Int64s
from eventide.store.reading.aggregate import (
    AggregateCall,
    AggregateQuestion,
    answers_of,
    has_short_periods,
    partials_of_index,
    period_partials,
    question_of,
)
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.listing import SegmentList
from eventide.store.segments.segment import Segment
from eventide.store.snapshot import Snapshot

READ_ROWS_HERE = 4_000_000
"""The driver reads up to this many rows itself: that takes less time than a job."""
SMALLEST_TASK_ROWS = 500_000
PERIOD = "period"
FOUND = "payload binary"
FOUND_ARROW = pa.schema([("payload", pa.binary())])


@dataclass(frozen=True, slots=True)
class SliceItem:
    """A part of a snapshot, and the periods that lie in it or reach into it."""

    source: Snapshot
    calls: tuple[AggregateCall, ...]
    cuts: tuple[int, ...]
    first_period: int


@dataclass(frozen=True, slots=True)
class IndexAnswers:
    """Answers aggregates as store/reading/aggregate.py does, with tasks that read rows."""

    spark: SparkSession

    def __call__(
        self,
        snapshot: Snapshot,
        calls: Sequence[AggregateCall],
        cuts: Sequence[int],
        groups: Int64s | None = None,
    ) -> pa.RecordBatch:
        """Return aggregates of the periods [cuts[i], cuts[i + 1]), one row each or each group."""
        question = question_of(tuple(calls), snapshot.schema)
        partials = self.partials(snapshot, question, cuts)
        return answers_of(snapshot, question, partials, cuts, groups)

    def partials(
        self, snapshot: Snapshot, question: AggregateQuestion, cuts: Sequence[int]
    ) -> pa.RecordBatch:
        """Return the partials of the periods [cuts[i], cuts[i + 1])."""
        reads = rows_to_read(snapshot, question, cuts)
        if sum(reads.values()) <= READ_ROWS_HERE:
            return period_partials(snapshot, question, cuts)
        spread = [segment for segment in snapshot.segments if segment.file in reads]
        return merged(
            question,
            len(cuts) - 1,
            [
                partials_here(without(snapshot, spread), question, cuts),
                *self.partials_of_tasks(only(snapshot, spread), question, cuts),
            ],
        )

    def partials_of_tasks(
        self, source: Snapshot, question: AggregateQuestion, cuts: Sequence[int]
    ) -> list[pa.RecordBatch]:
        """Return partials with the periods they are of, slice by slice."""
        check_workers(self.spark, source.path.parent.parent)
        tasks = TASKS_PER_CORE * cores(self.spark)
        rows = max(SMALLEST_TASK_ROWS, source.row_count // max(1, tasks))
        every = np.unique(np.array(cuts, np.int64))
        slices = source.slices(TimeRange(int(every[0]), int(every[-1])), rows)
        items = [item_of(source, question, cuts, part.time_range) for part in slices]
        aggregates = aggregates_named(call.function for call in question.calls)

        def run(batches: Batches) -> Batches:
            register_here(aggregates)
            for _, item in items_in(batches):
                payload = to_bytes(partials_of(item))
                yield pa.RecordBatch.from_arrays([pa.array([payload])], schema=FOUND_ARROW)

        answered = work_frame(self.spark, items).mapInArrow(run, FOUND).collect()
        return from_bytes(bytes(row["payload"]) for row in answered)


def rows_to_read(
    snapshot: Snapshot, question: AggregateQuestion, cuts: Sequence[int]
) -> dict[str, int]:
    """Return about how many rows of each segment the index cannot answer for, where there are any.

    A cut inside a segment costs a leaf. A thinned segment has no rows to read.
    """
    columns = StreamColumns(snapshot.schema, snapshot.manifest.column_ids)
    every = np.unique(np.array(cuts, np.int64))
    times = TimeRange(int(every[0]), int(every[-1]))
    scans = has_short_periods(snapshot, cuts)
    reads: dict[str, int] = {}
    for segment in snapshot.segments:
        if segment.thinned or not times.overlaps(segment.time_range):
            continue
        if scans or not question.known_to(segment, columns):
            own = segment.time_range
            inside = times.intersect(own)
            share = (inside.end_us - inside.start_us) / (own.end_us - own.start_us)
            reads[segment.file] = max(1, round(segment.rows * share))
        else:
            ends = np.searchsorted(every, [segment.ts_min, segment.ts_max], "right")
            if ends[0] < ends[1]:
                per_leaf = -(-segment.rows // max(1, segment.leaves))
                reads[segment.file] = min(segment.rows, int(ends[1] - ends[0]) * per_leaf)
    return reads


def only(snapshot: Snapshot, segments: Sequence[Segment]) -> Snapshot:
    """Return some segments of a snapshot, without the events that are in none."""
    manifest = replace(snapshot.manifest.bare(), segments=SegmentList(segments))
    view = replace(
        snapshot.view,
        manifest=manifest,
        segment=None,
        tail=(),
        queue=(),
        expiring=None,
        producers={},
    )
    return Snapshot(snapshot.path, view)


def without(snapshot: Snapshot, segments: Sequence[Segment]) -> Snapshot:
    """Return a snapshot without some segments."""
    left_out = {segment.file for segment in segments}
    kept = SegmentList(each for each in snapshot.segments if each.file not in left_out)
    manifest = replace(snapshot.manifest, segments=kept)
    return Snapshot(snapshot.path, replace(snapshot.view, manifest=manifest, segment=None))


def partials_here(
    snapshot: Snapshot, question: AggregateQuestion, cuts: Sequence[int]
) -> pa.RecordBatch:
    """Return the partials of all periods that the driver can compute."""
    if any(segment.thinned for segment in snapshot.segments):
        return with_period_numbers(partials_of_index(snapshot, question, cuts), 0)
    return with_period_numbers(period_partials(snapshot, question, cuts), 0)


def item_of(
    source: Snapshot, question: AggregateQuestion, cuts: Sequence[int], times: TimeRange
) -> SliceItem:
    """Return the work item of one slice."""
    every = np.array(cuts, np.int64)
    first = int(np.searchsorted(every, times.start_us, "right"))
    last = int(np.searchsorted(every, times.end_us, "left"))
    inner = every[first:last].tolist()
    own = (times.start_us, *inner, times.end_us)
    return SliceItem(source.within(times), question.calls, own, first - 1)


def partials_of(item: SliceItem) -> pa.RecordBatch:
    """Return the partials of one slice, with the periods that they are of."""
    question = question_of(item.calls, item.source.schema)
    return with_period_numbers(period_partials(item.source, question, item.cuts), item.first_period)


def with_period_numbers(partials: pa.RecordBatch, first_period: int) -> pa.RecordBatch:
    """Return the partials of consecutive periods that have events, with the periods' numbers."""
    periods = np.arange(first_period, first_period + partials.num_rows, dtype=np.int64)
    whole = partials.append_column(PERIOD, pa.array(periods))
    return whole.filter(pa.array(partials.column("rows").to_numpy() > 0))


def merged(
    question: AggregateQuestion, periods: int, parts: Sequence[pa.RecordBatch]
) -> pa.RecordBatch:
    """Return the partials of every period, from parts that each have some."""
    together = pa.concat_batches(parts)
    of_period = together.column(PERIOD).to_numpy()
    order = np.argsort(of_period, kind="stable")
    bounds = np.searchsorted(of_period[order], np.arange(periods + 1))
    return question.of_entries(together.drop_columns([PERIOD]).take(pa.array(order)), bounds)
