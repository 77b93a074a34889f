"""Over any DataFrame: shuffled once, in blocks by bucket of keys, then the embedded operators.

    rows ─ mapInArrow: filter, pack by bucket ─ shuffle ─ mapInArrow: unpack, sort, operators

Row-local operators run before the shuffle, and windows whose aggregates do not depend on order are
reduced to partials there too. A block holds the rows of one bucket, so the shuffle moves a few
large values instead of many small rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventide.engines.buckets import buckets_of, from_bytes, split_by_bucket, to_bytes
from eventide.engines.build import build_tree, keeps_state, keys_over_scan
from eventide.engines.derived import numbered
from eventide.engines.explain.placement import MOST_READERS
from eventide.engines.history.pruning import value_ranges
from eventide.engines.history.replay import run_chain
from eventide.engines.live.feeds import within
from eventide.engines.spark.history import scanned
from eventide.engines.spark.prefilter import prefiltered, prefiltered_by_time
from eventide.engines.spark.session import cores
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.engines.spark.work import items_in, work_frame
from eventide.errors import SchemaError
from eventide.ingest.ordering import in_order, in_order_by_block
from eventide.instants import END_OF_TIME_US
from eventide.operators.columns import BLOCK_BYTES, concat_batches, in_blocks
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.tree import OperatorTree
from eventide.operators.windows.by_time import AggregateWindows
from eventide.plan.expressions import Expression
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS, Schema
from eventide.store import Snapshot

BLOCK_ROWS = 1_000_000
PACKED = "bucket int, payload binary"
PACKED_ARROW = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])
SEQ_BITS = 33
"""A row's number within its partition; the partition's number stands above it."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Spread:
    """How a plan's rows are distributed: what runs before the shuffle, by which keys, into what."""

    tree: OperatorTree
    keys: tuple[Expression, ...]
    buckets: int

    @classmethod
    def of(cls, plan: Plan, buckets: int) -> Spread:
        """Return how a plan is spread; rows that belong together go into one bucket."""
        keys = keys_over_scan(plan)
        return cls(build_tree(plan), keys, buckets if keys else 1)

    @property
    def windows(self) -> AggregateWindows | None:
        """The window operator, if it can be fed with partials."""
        match self.tree.operators[len(self.tree.filters)]:
            case AggregateWindows(merges_in_any_order=True) as windows:
                return windows
        return None

    def pack(self, batches: Batches) -> Batches:
        """Yield the blocks of rows that come in any order."""
        for block in in_blocks(batches, BLOCK_ROWS):
            rows = self.passing(block)
            if self.windows is None:
                keys = [evaluate(key, rows) for key in self.keys]
                yield blocks(rows, keys, self.buckets)
            else:
                partials = self.windows.lift(in_order(rows))
                yield blocks(partials, partials.columns[: len(self.keys)], self.buckets)

    def own(self, batches: Batches, bucket: int) -> Batches:
        """Yield the rows of one bucket, after what is done row by row."""
        for block in batches:
            rows = self.passing(block)
            if self.buckets > 1:
                keys = [evaluate(key, rows) for key in self.keys]
                mine = buckets_of(keys, rows.num_rows, self.buckets) == bucket
                rows = rows.filter(pa.array(mine))
            if rows.num_rows:
                yield rows

    def passing(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that pass the conditions right above the scan."""
        for operator in self.tree.filters:
            _, rows = operator.step(None, (rows,), END_OF_TIME_US)
        return rows

    def unpack(self, batches: Batches) -> Batches:
        """Yield the results of the blocks of one partition."""
        payloads = (value for batch in batches for value in batch.column(1).to_pylist())
        parts = from_bytes(payloads)
        if not parts:
            return
        if self.windows is None:
            parts = numbered(parts, self.tree.scan)
        below = len(self.tree.filters)
        if self.windows is None:
            names = self.tree.input_schema.names
            ordered = (rows.select(names) for rows in in_order_by_block(parts, BLOCK_BYTES))
            yield from run_chain(self.tree.above(below), ordered)
            return
        rest = self.tree.above(below + 1)
        rows = self.windows.combine(concat_batches(parts, parts[0].schema))
        _, results = rest.step(rest.initial_state(), (rows,), END_OF_TIME_US)
        if results.num_rows:
            yield results


def over_frame(
    plan: Plan, frame: DataFrame, schema: Schema, zoneless: Collection[str]
) -> DataFrame:
    """Return the rows of a plan over one scan, over the rows of a DataFrame."""
    tree = build_tree(plan)
    names = columns_read(tree)
    wanted = prefiltered(prefiltered_by_time(frame, tree.scan.time_range), plan)
    events = carried(wanted, names)
    arrow = pa.schema([(name, schema.type_of(name).arrow) for name in names])

    def read(batches: Batches) -> Batches:
        for rows in with_seq(batches):
            yield within(in_order(checked(from_the_border(rows, arrow))), tree.scan.time_range)

    if not keeps_state(plan):
        return mapped(
            events,
            lambda batches: row_by_row(tree, read(batches)),
            tree.output_schema,
            zoneless,
        )
    spread = Spread.of(plan, shuffle_partitions(frame.sparkSession))
    packed = events.mapInArrow(lambda batches: spread.pack(read(batches)), PACKED)
    return shuffled(packed, spread, zoneless)


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
    names = columns_read(spread.tree)

    def pack(batches: Batches) -> Batches:
        for _, (part, times) in items_in(batches):
            yield from spread.pack(part.scan(names, times))

    work = work_frame(spark, scanned(spark, spread.tree.scan, source))
    return shuffled(work.mapInArrow(pack, PACKED), spread, zoneless)


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
            yield from run_chain(
                tree.above(len(tree.filters)),
                in_blocks(spread.own(rows, bucket), BLOCK_ROWS),
            )

    work = work_frame(spark, [source.within(tree.scan.time_range)] * spread.buckets)
    return mapped(work, run, tree.output_schema, zoneless)


def shuffled(packed: DataFrame, spread: Spread, zoneless: Collection[str]) -> DataFrame:
    """Bring the blocks of each bucket together and compute."""
    together = packed.repartitionById(spread.buckets, f.col("bucket"))
    return mapped(together, spread.unpack, spread.tree.output_schema, zoneless)


def shuffle_partitions(spark: SparkSession) -> int:
    """Return how many buckets rows are spread over."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def row_by_row(tree: OperatorTree, batches: Batches) -> Batches:
    """Yield the results of a tree without state."""
    for rows in batches:
        named = rows.select(tree.input_schema.names)
        _, results = tree.step(tree.initial_state(), (named,), END_OF_TIME_US)
        if results.num_rows:
            yield results


def columns_read(tree: OperatorTree) -> list[str]:
    """Return the columns to read: what the plan scans, and the order of rows."""
    scanned_names = tree.input_schema.names
    return [TS, SEQ, *(name for name in scanned_names if name not in (TS, SEQ))]


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


def blocks(rows: pa.RecordBatch, keys: list[pa.Array], count: int) -> pa.RecordBatch:
    """Return one block of bytes for each bucket that has rows."""
    parts = split_by_bucket(rows, buckets_of(keys, rows.num_rows, count), count)
    arrays = [
        pa.array([bucket for bucket, _ in parts], pa.int32()),
        pa.array([to_bytes(part) for _, part in parts], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ARROW)
