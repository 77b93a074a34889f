"""Over a streaming DataFrame: the live engine as a stateful processor, one state for each bucket.

    rows ─ mapInArrow: pack by bucket ─ shuffle ─ transformWithState: the live engine ─ unpack

Every partition sends every bucket the newest time it has seen. So all buckets agree on the
watermark of a micro-batch, to the microsecond and within the batch, exactly as one embedded engine
would: Spark's own watermark is a batch behind and counts milliseconds. A micro-batch is one
arrival: see ingest/ordering.py.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from eventide.batch import END_OF_TIME_US
from eventide.engines.buckets import from_bytes, to_bytes
from eventide.engines.build import keys_over_scan
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.spark.frames import BLOCK_ROWS, Batches, blocks, checked
from eventide.engines.spark.session import ROCKSDB
from eventide.engines.spark.source.stream import CLOCK
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.errors import listed
from eventide.ingest.ordering import in_order_by_block, times
from eventide.operators.columns import BLOCK_BYTES, in_blocks
from eventide.operators.envelope import Owner
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import Expression
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import scans_of
from eventide.plan.tree import Plan
from eventide.schema import SEQ, Schema

BUCKETS = 8
ARRIVED = "bucket int, newest_us bigint, payload binary"
COMPLETED = "bucket int, late_events bigint, payload binary"
METRIC = "eventide"
"""The name under which a streaming query's progress reports late events."""
RESULTS: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()
"""How many results of streams a session has."""


def counting_late(completed: DataFrame) -> DataFrame:
    """Report late events under a unique name: Spark refuses a union of two with the same name."""
    session = completed.sparkSession
    number = RESULTS[session] = RESULTS.get(session, 0) + 1
    late = f.coalesce(f.sum("late_events"), f.lit(0)).alias("late_events")
    return completed.observe(METRIC if number == 1 else f"{METRIC}_{number}", late)


def over_stream(
    plan: Plan,
    frame: DataFrame,
    schema: Schema,
    lateness_us: int,
    zoneless: Collection[str],
    buckets: int = BUCKETS,
) -> DataFrame:
    """Return the results of a plan as a streaming DataFrame, each row once it is complete."""
    (scan,) = scans_of(plan)
    engine = LiveEngine.of(plan, {scan.stream: schema}, lateness_us)
    keys = keys_over_scan(plan)
    clock = CLOCK if CLOCK in frame.columns else None
    spread = ArrivalSpread(engine.ordering.schema, keys, buckets if keys else 1, clock)
    frame.sparkSession.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    wanted = [*engine.ordering.schema.names, CLOCK]
    packed = carried(frame, wanted).mapInArrow(spread.pack, ARRIVED)
    completed = packed.groupBy("bucket").transformWithStateInPandas(
        LiveProcessor(engine, spread.buckets, SEQ in frame.columns),
        outputStructType=COMPLETED,
        outputMode="Append",
        timeMode="None",
    )
    return mapped(counting_late(completed), unpack, engine.pipeline.output_schema, zoneless)


@dataclass(frozen=True, slots=True)
class ArrivalSpread:
    """How arrivals are spread over buckets."""

    schema: pa.Schema
    keys: tuple[Expression, ...]
    buckets: int
    clock: str | None = None
    """The column of a replay that says how far it is; otherwise the newest event does."""

    def pack(self, batches: Batches) -> Batches:
        """Yield blocks by bucket, and to every bucket the newest time of this partition."""
        newest_us: int | None = None
        clocks: list[int] = []
        for rows in in_blocks(self.arrivals(batches, clocks), BLOCK_ROWS):
            newest = max(clocks) if clocks else int(times(rows).max())
            newest_us = newest if newest_us is None else max(newest_us, newest)
            packed = blocks(rows, [evaluate(key, rows) for key in self.keys], self.buckets)
            yield self.labelled(packed.column(0).to_numpy(), newest, packed.column(1))
        if newest_us is not None:
            everyone = np.arange(self.buckets)
            yield self.labelled(everyone, newest_us, pa.nulls(self.buckets, pa.binary()))

    def labelled(
        self, buckets: npt.NDArray[np.integer], newest_us: int, payloads: pa.Array
    ) -> pa.RecordBatch:
        """Return blocks under the labels of their buckets, with the newest time."""
        labels = np.array(even_labels(self.buckets), np.int32)[buckets]
        newest = np.full(len(labels), newest_us, np.int64)
        return pa.RecordBatch.from_arrays(
            [pa.array(labels), pa.array(newest), payloads], ["bucket", "newest_us", "payload"]
        )

    def arrivals(self, batches: Batches, clocks: list[int]) -> Batches:
        """Yield rows with exact types; where they have no `_seq`, the bucket will number them."""
        for rows in batches:
            if rows.num_rows:
                whole = rows
                if self.clock is not None:
                    clocks[:] = [rows.column(self.clock)[0].as_py()]
                if SEQ not in rows.schema.names:
                    whole = rows.append_column(SEQ, pa.array(np.zeros(rows.num_rows, np.int64)))
                yield checked(from_the_border(whole, self.schema))


@dataclass(frozen=True, slots=True)
class LiveBucketState:
    """What a bucket remembers: the live engine's state, and how many rows have arrived."""

    live: LiveState
    arrived: int


class LiveProcessor(StatefulProcessor, Stateful[LiveBucketState]):
    """The live engine, one state for each bucket of keys."""

    def __init__(self, engine: LiveEngine, buckets: int, rows_are_numbered: bool) -> None:
        self.engine = engine
        self.buckets = buckets
        self.rows_are_numbered = rows_are_numbered

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: the query, with this many buckets."""
        return bucket_owner(
            self.engine.owner, self.buckets, self.engine.streams if self.rows_are_numbered else ()
        )

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: one value of bytes."""
        self.value = handle.getValueState("state", "value binary")

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name and types
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Take what has arrived in a micro-batch; hand over what is complete."""
        blocks: list[bytes] = []
        newest_us: int | None = None
        for frame in rows:
            newest = int(frame["newest_us"].max())
            newest_us = newest if newest_us is None else max(newest_us, newest)
            blocks += [block for block in frame["payload"] if block is not None]
        held = self.value.get()
        state = self.load(bytes(held[0])) if held is not None else self.initial_state()
        state, results, late = self.push(state, blocks, newest_us)
        self.value.update((self.dump(state),))
        if late:
            yield pd.DataFrame({"bucket": [key[0]], "late_events": [late], "payload": [None]})
        for rows_out in results:
            payload = to_bytes(rows_out)
            yield pd.DataFrame({"bucket": [key[0]], "late_events": [0], "payload": [payload]})

    def close(self) -> None:
        """Nothing to release."""

    def push(
        self, state: LiveBucketState, blocks: list[bytes], newest_us: int | None
    ) -> tuple[LiveBucketState, list[pa.RecordBatch], int]:
        """Return the state after a micro-batch, its results, and how many events were late.

        Text that is too long for one column comes in order of time, block by block: the watermark
        stays behind every block that follows, so none is late that would not be otherwise.
        """
        parts = from_bytes(blocks)
        if not self.rows_are_numbered:
            parts = numbered_from(parts, state.arrived)
        nothing = pa.RecordBatch.from_pylist([], schema=self.engine.ordering.schema)
        ordered = list(in_order_by_block(parts, BLOCK_BYTES)) or [nothing]
        ended = newest_us == END_OF_TIME_US
        live, results, late = state.live, list[pa.RecordBatch](), 0
        for rows in ordered:
            reached = int(times(rows)[-1]) if rows is not ordered[-1] else newest_us
            live, arrival = self.engine.push(
                live, rows, None if reached == END_OF_TIME_US else reached
            )
            results.append(arrival.results)
            late += arrival.late.num_rows
        if ended:
            # A replay says so with its last events: what is open is complete, too.
            live, last = self.engine.finish(live)
            results.append(last.results)
        arrived = state.arrived + sum(rows.num_rows for rows in parts)
        return LiveBucketState(live, arrived), [each for each in results if each.num_rows], late

    def initial_state(self) -> LiveBucketState:
        """Return the state of a bucket before its first row."""
        return LiveBucketState(self.engine.initial_state(), 0)

    def write(self, state: LiveBucketState) -> bytes:
        """Write a bucket's state out."""
        return join_parts([struct.pack("<q", state.arrived), self.engine.write(state.live)])

    def read(self, written: bytes) -> LiveBucketState:
        """Read back what `write` wrote."""
        facts, live = parts_of("the bucket", written, 2)
        (arrived,) = struct.unpack("<q", facts)
        return LiveBucketState(self.engine.read(live), arrived)


def bucket_owner(live: Owner, buckets: int, numbered: tuple[str, ...]) -> Owner:
    """Return the owner of the state of a bucket: a live query with this many buckets of keys.

    `numbered` are the streams whose rows come with their numbers.
    """
    facts = {**live.facts, "buckets": str(buckets), "numbered rows": listed(numbered) or "none"}
    return Owner(live.name, digest_of(live.digest, buckets, numbered), facts)


def numbered_from(parts: Sequence[pa.RecordBatch], first: int) -> list[pa.RecordBatch]:
    """Return rows numbered in the order they came."""
    found = []
    for rows in parts:
        seq = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
        found.append(rows.set_column(rows.schema.get_field_index(SEQ), SEQ, seq))
        first += rows.num_rows
    return found


@cache
def even_labels(buckets: int) -> tuple[int, ...]:
    """Return a number for each bucket, so that Spark spreads them evenly over its partitions.

    Spark places rows by a hash of their key, and puts 3 of the numbers 0 to 7 on one of two
    partitions and 5 on the other. These hash to every remainder once. They depend only on the
    number of buckets, because they are the keys of the state.
    """
    found: dict[int, int] = {}
    label = 0
    while len(found) < buckets:
        found.setdefault(spark_hash(label) % buckets, label)
        label += 1
    return tuple(found[remainder] for remainder in range(buckets))


def spark_hash(number: int) -> int:
    """Return Spark's `hash` of an int: Murmur3 in 32 bits, with 42 as its seed.

    >>> spark_hash(0), spark_hash(1)
    (933211791, -559580957)
    """
    mixed = rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    mixed = rotated(42 ^ (mixed & 0xFFFFFFFF), 13) * 5 + 0xE6546B64
    mixed = (mixed ^ 4) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed


def rotated(word: int, bits: int) -> int:
    """Return the low 32 bits of a word, rotated to the left."""
    word &= 0xFFFFFFFF
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF


def unpack(batches: Batches) -> Batches:
    """Yield the result rows of blocks."""
    for batch in batches:
        yield from from_bytes(batch.column("payload").drop_null().to_pylist())
