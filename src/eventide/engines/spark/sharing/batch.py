"""Many queries over DataFrames and stored streams, in one job.

    each stream ─ mapInArrow: pack by bucket ─ union ─ shuffle ─ mapInArrow: all queries of a bucket

Every stream is read once. Which bucket an event goes to, spread.py says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventide.engines.buckets import from_bytes
from eventide.engines.history.sharing.many import steps_in_order
from eventide.engines.live.feeds import within
from eventide.engines.spark.answer import Given
from eventide.engines.spark.frames import checked, shuffle_partitions, with_seq
from eventide.engines.spark.history import slice_rows
from eventide.engines.spark.session import cores
from eventide.engines.spark.sharing.asked import ManyAsked
from eventide.engines.spark.sharing.spread import ManyRoutes, ManySpread
from eventide.engines.spark.spread import BLOCK_ROWS, PACKED, Batches, labelled
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.engines.spark.work import items_in, work_frame
from eventide.ingest.ordering import in_order, in_order_by_block
from eventide.instants import START_OF_TIME_US
from eventide.operators.columns import BLOCK_BYTES, in_blocks
from eventide.store import Snapshot


def over_history(
    session: SparkSession, asked: ManyAsked, given: Given, zoneless: Collection[str]
) -> DataFrame:
    """Return the rows of the queries that share."""
    spread = ManySpread.of(asked.shares, shuffle_partitions(session), cores(session))
    catalog = {name: each.schema for name, each in given.stored.items()} | given.schemas
    packing = ManyPacking(spread.routes(catalog))
    packed = [
        packing.frame(number, given.frames[name])
        if name in given.frames
        else packing.store(number, session, given.stored[name])
        for number, name in enumerate(packing.routes.streams)
    ]
    together = reduce(DataFrame.unionAll, packed)
    buckets = together.repartitionById(packing.routes.buckets, f.col("bucket"))
    schema = asked.schema
    assert schema is not None
    computed = ManyBuckets(asked, spread, packing.routes, schema)
    return mapped(buckets, computed.run, asked.schema_of(schema), zoneless)


@dataclass(frozen=True, slots=True)
class ManyPacking:
    """How streams become blocks."""

    routes: ManyRoutes

    def frame(self, number: int, frame: DataFrame) -> DataFrame:
        """Return the events of a DataFrame as blocks."""
        names = self.routes.columns([number])
        arrow = self.routes.schemas[self.routes.streams[number]].arrow

        def pack(batches: Batches) -> Batches:
            rows = (checked(from_the_border(each, arrow)) for each in with_seq(batches))
            return self.packed(rows, number)

        return carried(frame, names).mapInArrow(pack, PACKED)

    def store(self, number: int, session: SparkSession, source: Snapshot) -> DataFrame:
        """Return the stored events that can matter as blocks, read by tasks of their own."""
        names = self.routes.columns([number])
        period = self.routes.periods[source.name]
        parts = [] if period.is_empty else source.slices(period, slice_rows(session, source))
        work = [(source.within(each.time_range), each.time_range) for each in parts]

        def pack(batches: Batches) -> Batches:
            for _, (part, own) in items_in(batches):
                yield from self.packed(part.scan(names, own), number)

        return work_frame(session, work).mapInArrow(pack, PACKED)

    def packed(self, batches: Batches, number: int) -> Batches:
        """Yield blocks of events that come in any order."""
        period = self.routes.periods[self.routes.streams[number]]
        for rows in in_blocks(batches, BLOCK_ROWS):
            for block in self.routes.packed(within(in_order(rows), period), number):
                yield labelled(block.column(0), number, START_OF_TIME_US, block.column(1))


@dataclass(frozen=True, slots=True)
class ManyBuckets:
    """What runs behind the shuffle."""

    asked: ManyAsked
    spread: ManySpread
    routes: ManyRoutes
    schema: pa.Schema

    def run(self, batches: Batches) -> Batches:
        """Yield the rows of the queries of one bucket, over the events that came there."""
        payloads: dict[int, list[bytes]] = {}
        bucket = None
        for batch in batches:
            numbers, streams, _, values = (column.to_pylist() for column in batch.columns)
            bucket = numbers[0] if numbers else bucket
            for stream, value in zip(streams, values, strict=True):
                payloads.setdefault(stream, []).append(value)
        return iter(()) if bucket is None else self.rows(bucket, payloads)

    def rows(self, bucket: int, payloads: dict[int, list[bytes]]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the queries of a bucket; a query that fails ends the job."""
        portions = self.spread.portions_of(bucket)
        read = frozenset[str]().union(*(each.template.streams for each in portions))
        catalog = {name: schema for name, schema in self.routes.schemas.items() if name in read}
        batches = {
            name: in_order_by_block(from_bytes(payloads.get(number, [])), BLOCK_BYTES)
            for number, name in enumerate(self.routes.streams)
        }
        for step in steps_in_order(portions, catalog, batches):
            for number, error in step.failed.items():
                error.add_note(f"in the query {self.asked.wanted.keys[number]!r}")
                raise error
            yield from self.asked.rows(step.rows, self.schema)
