"""A query over several streams on Spark: one shuffle brings the events of a bucket together.

each stream ─ mapInArrow: pack by leaf and bucket ┐
                                                  ├ union ─ shuffle ─ mapInArrow: the operators
each stream ─ mapInArrow: pack by leaf and bucket ┘

Every partition sends every bucket the newest time it has seen, so that all answer as of the same
instant. A query whose operators share no key runs in one bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventide.engines.buckets import from_bytes
from eventide.engines.build import build_tree
from eventide.engines.derived import numbered
from eventide.engines.live.feeds import within
from eventide.engines.spark.frames import (
    Batches,
    checked,
    shuffle_partitions,
    with_seq,
)
from eventide.engines.spark.history import slice_rows
from eventide.engines.spark.spread import PACKED, LeafSpread, labelled
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.engines.spark.work import items_in, work_frame
from eventide.engines.standing.history import cut, merged_steps
from eventide.engines.standing.reach import needed_ranges
from eventide.ingest.merging import EventCursor
from eventide.ingest.ordering import in_order_by_block, times
from eventide.instants import END_OF_TIME_US, TimeRange
from eventide.operators.columns import BLOCK_BYTES
from eventide.operators.tree import TreeLeaf
from eventide.plan.nodes import scans_of
from eventide.plan.standing.nodes import Standing
from eventide.plan.tree import Plan
from eventide.schema import TIMESTAMP, TS, DataType, Schema
from eventide.store import Snapshot


def over_streams_stored(
    spark: SparkSession,
    plan: Plan,
    frames: Mapping[str, DataFrame],
    catalog: Mapping[str, Schema],
    snapshots: Mapping[str, Snapshot],
    zoneless: Collection[str],
) -> DataFrame:
    """Return the rows of a query over several streams; of a standing query, as of the newest event.

    That is the newest of all DataFrames and snapshots; some may be of other parts of the query.
    """
    spread = LeafSpread.of(plan, shuffle_partitions(spark))
    streams = spread.streams
    known_us = [each.time_range.end_us - 1 for each in snapshots.values() if each.row_count]
    # What is older than the windows of the newest stored event is too old for a newer one, too.
    periods = dict(enumerate(periods_of(plan, max(known_us, default=None))))
    packed = [
        packed_frame(frames[name], catalog[name], spread, spread.leaves_over(name), periods)
        if name in frames
        else packed_store(spark, snapshots[name], spread, spread.leaves_over(name), periods)
        for name in streams
    ]
    packed += [newest_of(frames[name], spread) for name in frames if name not in streams]
    together = reduce(DataFrame.unionAll, packed)
    newest_us = max(known_us, default=None)

    def run(batches: Batches) -> Batches:
        return run_bucket(plan, batches, newest_us)

    placed = together.repartitionById(spread.buckets, f.col("bucket"))
    return mapped(placed, run, answer_schema(plan), zoneless)


def periods_of(plan: Plan, newest_us: int | None) -> tuple[TimeRange, ...]:
    """Return what has to be read of each scan, where this much is known of how far streams are."""
    if isinstance(plan, Standing) and newest_us is not None:
        return needed_ranges(plan, newest_us)
    return tuple(scan.time_range for scan in scans_of(plan))


def packed_frame(
    frame: DataFrame,
    schema: Schema,
    spread: LeafSpread,
    leaves: tuple[int, ...],
    periods: Mapping[int, TimeRange],
) -> DataFrame:
    """Return the events of a DataFrame as blocks."""
    names = spread.columns(leaves)
    arrow = pa.schema([(name, schema.type_of(name).arrow) for name in names])

    def pack(batches: Batches) -> Batches:
        rows = (checked(from_the_border(each, arrow)) for each in with_seq(batches))
        return spread.pack(rows, leaves, periods)

    events = carried(frame, names)
    return events.mapInArrow(pack, PACKED)


def newest_of(frame: DataFrame, spread: LeafSpread) -> DataFrame:
    """Return the newest time of a DataFrame that the query does not read, for every bucket."""
    schema = pa.schema([(TS, TIMESTAMP.arrow)])

    def pack(batches: Batches) -> Batches:
        rows = (checked(from_the_border(each, schema)) for each in batches)
        found = [int(times(each).max()) for each in rows if each.num_rows]
        if found:
            everyone = pa.array(np.arange(spread.buckets, dtype=np.int32))
            yield labelled(everyone, 0, max(found), pa.nulls(spread.buckets, pa.binary()))

    return frame.select(f"`{TS}`").mapInArrow(pack, PACKED)


def packed_store(
    spark: SparkSession,
    source: Snapshot,
    spread: LeafSpread,
    leaves: tuple[int, ...],
    periods: Mapping[int, TimeRange],
) -> DataFrame:
    """Return the stored events that can matter as blocks, read by tasks of their own."""
    names = spread.columns(leaves)
    hull = TimeRange(
        min(periods[leaf].start_us for leaf in leaves), max(periods[leaf].end_us for leaf in leaves)
    )
    parts = [] if hull.is_empty else source.slices(hull, slice_rows(spark, source))
    work = [(source.within(each.time_range), each.time_range) for each in parts]

    def pack(batches: Batches) -> Batches:
        for _, (part, period) in items_in(batches):
            yield from spread.pack(part.scan(names, period), leaves, periods)

    return work_frame(spark, work).mapInArrow(pack, PACKED)


def run_bucket(plan: Plan, batches: Batches, newest_us: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the output of a query over the events of one bucket, as of the newest event of all."""
    payloads: dict[int, list[bytes]] = {}
    for batch in batches:
        _, leaves, newest, values = (column.to_pylist() for column in batch.columns)
        newest_us = max([*newest, *([] if newest_us is None else [newest_us])])
        for leaf, value in zip(leaves, values, strict=True):
            if value is not None:
                payloads.setdefault(leaf, []).append(value)
    if not payloads or newest_us is None:
        return
    tree = build_tree(plan)
    ranges = periods_of(plan, newest_us)
    cursors = [
        ((number,), cursor_over(leaf, payloads.get(number, []), ranges[number]))
        for number, leaf in enumerate(tree.leaves)
    ]
    state = tree.initial_state()
    until_us = END_OF_TIME_US if tree.reporter is None else newest_us + 1
    asked = tree.reporter is not None and tree.reporter.report == "current"
    for step in merged_steps(tree, cursors, until_us):
        state, reported = tree.step(state, step.rows, step.until_us)
        if not asked and reported.num_rows:
            yield plain(reported)
    if asked:
        yield plain(tree.current(state))


def cursor_over(leaf: TreeLeaf, payloads: list[bytes], period: TimeRange) -> EventCursor:
    """Return the events of a leaf that came as blocks, in order."""
    parts = numbered(from_bytes(payloads), leaf.scan)
    ordered = in_order_by_block(parts, BLOCK_BYTES)
    rows = (within(each, period).select(leaf.schema.names) for each in ordered)
    return EventCursor(cut(rows), leaf.schema)


def answer_schema(plan: Plan) -> pa.Schema:
    """Return the columns of the output of a query over history."""
    return pa.schema([(name, kind.arrow) for name, kind in plan.row.items()])


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in the types that Spark expects: without short integers."""
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = DataType.from_arrow(field.type)
        columns.append(column if kind is None else column.cast(kind.arrow))
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
