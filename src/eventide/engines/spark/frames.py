"""Over DataFrames and stored streams: shuffled once by bucket of keys, then the operators.

spread.py says how rows are packed and unpacked. A query whose operators share no key runs in one
bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventide.engines.build import build_tree
from eventide.engines.explain.placement import MOST_READERS
from eventide.engines.history.pruning import value_ranges
from eventide.engines.history.replay import run_chain
from eventide.engines.live.feeds import within
from eventide.engines.spark.history import slice_rows
from eventide.engines.spark.prefilter import prefiltered, prefiltered_by_time
from eventide.engines.spark.session import cores
from eventide.engines.spark.spread import BLOCK_ROWS, PACKED, Batches, Spread
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.engines.spark.work import items_in, work_frame
from eventide.errors import SchemaError
from eventide.ingest.ordering import in_order, times
from eventide.instants import END_OF_TIME_US, TimeRange
from eventide.operators.columns import in_blocks
from eventide.operators.tree import OperatorTree
from eventide.plan.tree import Plan, remembers
from eventide.schema import SEQ, TIMESTAMP, TS, Schema, row_schema
from eventide.store import Snapshot

SEQ_BITS = 33
"""A row's number within its partition; the partition's number stands above it."""

Periods = Mapping[int, TimeRange]
"""What has to be read for each leaf."""


def over_frame(
    plan: Plan, frame: DataFrame, schema: Schema, zoneless: Collection[str]
) -> DataFrame:
    """Return the rows of a plan over one scan, over the rows of a DataFrame."""
    tree = build_tree(plan)
    wanted = prefiltered(prefiltered_by_time(frame, tree.scan.time_range), plan)
    if remembers(plan):
        spread = Spread.of(plan, shuffle_partitions(frame.sparkSession))
        packed = packed_frame(wanted, schema, spread, (0,), {0: tree.scan.time_range})
        return shuffled(packed, spread, zoneless)
    names = [TS, SEQ, *(name for name in tree.input_schema.names if name not in (TS, SEQ))]
    arrow = pa.schema([(name, schema.type_of(name).arrow) for name in names])

    def run(batches: Batches) -> Batches:
        rows = (checked(from_the_border(each, arrow)) for each in with_seq(batches))
        return row_by_row(tree, (within(in_order(each), tree.scan.time_range) for each in rows))

    return mapped(carried(wanted, names), run, tree.output_schema, zoneless)


def over_store_by_key(
    spark: SparkSession, plan: Plan, source: Snapshot, zoneless: Collection[str]
) -> DataFrame:
    """Return the rows of a plan that cannot be cut in time, over a stored stream.

    On a few cores every task reads all events and keeps those of its own keys: decoding them
    again costs less than moving them. On many cores they are shuffled.
    """
    readers = cores(spark)
    if readers <= MOST_READERS:
        return over_store_by_reader(spark, plan, source, zoneless, readers)
    spread = Spread.of(plan, shuffle_partitions(spark))
    packed = packed_store(spark, source, spread, (0,), {0: spread.tree.scan.time_range})
    return shuffled(packed, spread, zoneless)


def over_store_by_reader(
    spark: SparkSession, plan: Plan, source: Snapshot, zoneless: Collection[str], readers: int
) -> DataFrame:
    """Return the rows of a plan over a stored stream, each task reading for a bucket of keys."""
    spread = Spread.of(plan, readers)
    tree = spread.tree
    where = value_ranges(plan)

    def run(batches: Batches) -> Batches:
        for bucket, part in items_in(batches):
            rows = part.scan(tree.input_schema.names, tree.scan.time_range, where)
            yield from run_chain(spread.above, in_blocks(spread.own(rows, bucket), BLOCK_ROWS))

    work = work_frame(spark, [source.within(tree.scan.time_range)] * spread.buckets)
    return mapped(work, run, tree.output_schema, zoneless)


def over_streams_stored(
    spark: SparkSession,
    plan: Plan,
    frames: Mapping[str, DataFrame],
    catalog: Mapping[str, Schema],
    snapshots: Mapping[str, Snapshot],
    zoneless: Collection[str],
) -> DataFrame:
    """Return the rows of a query over several streams; of windows, as of the newest event.

    That is the newest of all DataFrames and snapshots; some may be of other parts of the query.
    """
    spread = Spread.of(plan, shuffle_partitions(spark))
    known_us = [each.time_range.end_us - 1 for each in snapshots.values() if each.row_count]
    newest_us = max(known_us, default=None)
    # What is older than the windows of the newest stored event is too old for a newer one, too.
    periods = dict(enumerate(spread.periods(newest_us)))
    packed = [
        packed_frame(frames[name], catalog[name], spread, spread.leaves_over(name), periods)
        if name in frames
        else packed_store(spark, snapshots[name], spread, spread.leaves_over(name), periods)
        for name in spread.streams
    ]
    packed += [newest_of(frames[name], spread) for name in frames if name not in spread.streams]
    return shuffled(reduce(DataFrame.unionAll, packed), spread, zoneless, newest_us)


def packed_frame(
    frame: DataFrame, schema: Schema, spread: Spread, leaves: tuple[int, ...], periods: Periods
) -> DataFrame:
    """Return the events of a DataFrame as blocks."""
    names = spread.columns(leaves)
    arrow = pa.schema([(name, schema.type_of(name).arrow) for name in names])

    def pack(batches: Batches) -> Batches:
        rows = (checked(from_the_border(each, arrow)) for each in with_seq(batches))
        return spread.pack(rows, leaves, periods)

    return carried(frame, names).mapInArrow(pack, PACKED)


def newest_of(frame: DataFrame, spread: Spread) -> DataFrame:
    """Return the newest time of a DataFrame that the query does not read, for every bucket."""
    schema = pa.schema([(TS, TIMESTAMP.arrow)])

    def pack(batches: Batches) -> Batches:
        rows = (checked(from_the_border(each, schema)) for each in batches)
        found = [int(times(each).max()) for each in rows if each.num_rows]
        if found:
            yield spread.to_everyone(max(found))

    return frame.select(f"`{TS}`").mapInArrow(pack, PACKED)


def packed_store(
    spark: SparkSession,
    source: Snapshot,
    spread: Spread,
    leaves: tuple[int, ...],
    periods: Periods,
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


def shuffled(
    packed: DataFrame, spread: Spread, zoneless: Collection[str], newest_us: int | None = None
) -> DataFrame:
    """Bring the blocks of each bucket together and compute."""

    def run(batches: Batches) -> Batches:
        return spread.unpack(batches, newest_us)

    together = packed.repartitionById(spread.buckets, f.col("bucket"))
    return mapped(together, run, row_schema(spread.plan.row), zoneless)


def shuffle_partitions(spark: SparkSession) -> int:
    """Return how many buckets rows are spread over."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def row_by_row(tree: OperatorTree, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the results of a tree without state."""
    for rows in batches:
        named = rows.select(tree.input_schema.names)
        _, results = tree.step(tree.initial_state(), (named,), END_OF_TIME_US)
        if results.num_rows:
            yield results


def with_seq(batches: Batches) -> Batches:
    """Yield rows with a `_seq`; where there is none, by partition and place in it."""
    context = TaskContext.get()
    place = (context.partitionId() if context else 0) << SEQ_BITS
    for rows in batches:
        if SEQ in rows.schema.names:
            yield rows
            continue
        seq = pa.array(np.arange(place, place + rows.num_rows, dtype=np.int64))
        place += rows.num_rows
        yield rows.append_column(SEQ, seq)


def checked(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Refuse rows without a time."""
    if rows.column(TS).null_count:
        message = f"the DataFrame has {rows.column(TS).null_count} rows without a ts"
        raise SchemaError(message, hint="df.where('ts is not null')")
    return rows
