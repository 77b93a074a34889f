"""A standing query over history on Spark: one shuffle brings the events of a bucket together.

each stream ─ mapInArrow: pack by window and bucket ┐
                                                    ├ union ─ shuffle ─ mapInArrow: the operators
each stream ─ mapInArrow: pack by window and bucket ┘

Every partition sends every bucket the newest time it has seen, so that all answer as of the same
instant. A query whose operators share no key runs in one bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventide.batch import TimeRange
from eventide.engines.buckets import from_bytes
from eventide.engines.derived import numbered
from eventide.engines.live.engine import within
from eventide.engines.spark.frames import (
    BLOCK_ROWS,
    Batches,
    blocks,
    checked,
    shuffle_partitions,
    with_seq,
)
from eventide.engines.spark.history import slice_rows
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.engines.spark.work import items_in, work_frame
from eventide.engines.standing.build import build_standing
from eventide.engines.standing.history import cut, merged_steps
from eventide.engines.standing.partitioning import Keys, leaf_keys
from eventide.engines.standing.reach import needed_ranges, scan_of
from eventide.ingest.merging import EventCursor
from eventide.ingest.ordering import in_order, in_order_by_block, times
from eventide.operators.columns import BLOCK_BYTES, in_blocks
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.standing.tree import StandingTree, event_schema
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.update_patterns import windows_of
from eventide.schema import TIMESTAMP, TS, DataType, Schema
from eventide.store import Snapshot

PACKED = "bucket int, leaf int, newest_us bigint, payload binary"
PACKED_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("leaf", pa.int32()),
        ("newest_us", pa.int64()),
        ("payload", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class LeafSpread:
    """How the events of the windows of a plan are spread over buckets."""

    plan: Standing
    keys: tuple[Keys, ...]
    buckets: int

    @classmethod
    def of(cls, plan: Standing, buckets: int) -> LeafSpread:
        """Return how a plan is spread; without common keys, into one bucket."""
        keys = leaf_keys(plan)
        count = len(windows_of(plan))
        return cls(plan, keys or ((),) * count, buckets if keys else 1)

    def leaves_over(self, stream: str) -> tuple[int, ...]:
        """Return the numbers of the windows over a stream."""
        windows = enumerate(windows_of(self.plan))
        return tuple(number for number, leaf in windows if scan_of(leaf).stream == stream)

    def columns(self, leaves: Iterable[int]) -> list[str]:
        """Return the columns that some windows read of their stream."""
        windows = windows_of(self.plan)
        names = [name for leaf in leaves for name in event_schema(windows[leaf]).names]
        return list(dict.fromkeys(names))

    def pack(
        self, batches: Batches, leaves: tuple[int, ...], periods: Mapping[int, TimeRange]
    ) -> Batches:
        """Yield blocks by window and bucket, and to every bucket the newest time of them all."""
        newest_us: int | None = None
        for rows in in_blocks(batches, BLOCK_ROWS):
            if not rows.num_rows:
                continue
            newest = int(times(rows).max())
            newest_us = newest if newest_us is None else max(newest_us, newest)
            for leaf in leaves:
                own = in_order(rows.select(self.columns([leaf])))
                packed = self.blocks_of(within(own, periods[leaf]), leaf)
                yield labelled(packed.column(0), leaf, newest, packed.column(1))
        if newest_us is not None:
            everyone = pa.array(np.arange(self.buckets, dtype=np.int32))
            yield labelled(everyone, leaves[0], newest_us, pa.nulls(self.buckets, pa.binary()))

    def blocks_of(self, rows: pa.RecordBatch, leaf: int) -> pa.RecordBatch:
        """Return the events of one window as blocks by bucket."""
        return blocks(rows, [evaluate(key, rows) for key in self.keys[leaf]], self.buckets)


def labelled(buckets: pa.Array, leaf: int, newest_us: int, payloads: pa.Array) -> pa.RecordBatch:
    """Return blocks with the window they are for, and the newest time."""
    count = len(buckets)
    arrays = [
        buckets,
        pa.array(np.full(count, leaf, np.int32)),
        pa.array(np.full(count, newest_us, np.int64)),
        payloads,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ARROW)


def over_standing(
    spark: SparkSession,
    plan: Standing,
    frames: Mapping[str, DataFrame],
    catalog: Mapping[str, Schema],
    snapshots: Mapping[str, Snapshot],
    zoneless: Collection[str],
) -> DataFrame:
    """Return the answer to a standing query, or all its reports, as of the newest event.

    That is the newest of all DataFrames and snapshots; some may be of other parts of the query.
    """
    spread = LeafSpread.of(plan, shuffle_partitions(spark))
    streams = dict.fromkeys(scan_of(leaf).stream for leaf in windows_of(plan))
    known_us = [each.time_range.end_us - 1 for each in snapshots.values() if each.row_count]
    # What is older than the windows of the newest stored event is too old for a newer one, too.
    periods = dict(enumerate(needed_ranges(plan, max(known_us)) if known_us else whole(plan)))
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


def whole(plan: Standing) -> tuple[TimeRange, ...]:
    """Return all that scans allow, where nothing is known of how far streams are."""
    return tuple(scan_of(leaf).time_range for leaf in windows_of(plan))


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


def run_bucket(plan: Standing, batches: Batches, newest_us: int | None) -> Iterator[pa.RecordBatch]:
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
    tree = build_standing(plan)
    ranges = needed_ranges(plan, newest_us)
    cursors = [
        ((leaf,), cursor_over(tree, leaf, payloads.get(leaf, []), ranges[leaf]))
        for leaf in range(len(tree.leaves))
    ]
    state = tree.initial_state()
    for step in merged_steps(tree, cursors, newest_us + 1):
        state, reported = tree.step(state, step.rows, step.until_us)
        if plan.report != "current" and reported.num_rows:
            yield plain(reported)
    if plan.report == "current":
        yield plain(tree.current(state))


def cursor_over(
    tree: StandingTree, leaf: int, payloads: list[bytes], period: TimeRange
) -> EventCursor:
    """Return the events of a window that came as blocks, in order."""
    schema = tree.input_schemas[leaf]
    parts = numbered(from_bytes(payloads), scan_of(tree.leaves[leaf]))
    ordered = in_order_by_block(parts, BLOCK_BYTES)
    return EventCursor(cut(within(rows, period) for rows in ordered), schema)


def answer_schema(plan: Standing) -> pa.Schema:
    """Return the columns of the output of a query over history."""
    return pa.schema([(name, kind.arrow) for name, kind in plan.row.items()])


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in the types that Spark expects: without short integers."""
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = DataType.from_arrow(field.type)
        columns.append(column if kind is None else column.cast(kind.arrow))
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
