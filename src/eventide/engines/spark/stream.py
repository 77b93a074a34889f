"""Over streaming DataFrames: the live engine as a stateful processor, one state for each bucket.

each stream ─ mapInArrow: pack by leaf and bucket ┐
                                                  ├ union ─ shuffle ─ transformWithState ─ unpack
each stream ─ mapInArrow: pack by leaf and bucket ┘

Every partition sends every bucket the time that its stream has reached. So all buckets agree on the
clock of a micro-batch, to the microsecond and within the batch, exactly as one embedded engine
would: Spark's own watermark is a batch behind and counts milliseconds. A micro-batch is one
arrival. The output is append-only: rows of a standing query have the instant at which they expire,
and only if that is not known a second row, of sign -1, takes one back.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from eventide.engines.buckets import from_bytes, to_bytes
from eventide.engines.build import build_live_tree
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.feeds import feeds_of
from eventide.engines.spark.frames import checked
from eventide.engines.spark.labels import even_labels
from eventide.engines.spark.late_events import counting_late
from eventide.engines.spark.session import ROCKSDB
from eventide.engines.spark.source.stream import CLOCK
from eventide.engines.spark.spread import BLOCK_ROWS, Batches, Spread, plain
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.errors import listed
from eventide.ingest.ordering import in_order_by_block, times
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.operators.columns import BLOCK_BYTES, concat_batches, in_blocks
from eventide.operators.envelope import Owner
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import Scan
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.schema import SEQ, Schema

BUCKETS = 8
COMPLETED = "bucket int, late_events bigint, payload binary"
NO_CLOCK = START_OF_TIME_US
"""Stands where no replay says how far it is; a null would make floats of times in pandas."""
ARRIVED = "bucket int, leaf int, newest_us bigint, clock_us bigint, payload binary"
ARRIVED_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("leaf", pa.int32()),
        ("newest_us", pa.int64()),
        ("clock_us", pa.int64()),
        ("payload", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Going:
    """How time goes on, and how much may be remembered; see `LiveEngine`."""

    lateness_us: int = 0
    max_lag_us: int | None = None
    max_state_bytes: int | None = None
    """How much each bucket may remember."""


def live_by_leaf(plan: Plan, catalog: Mapping[str, Schema], going: Going) -> LiveEngine:
    """Return the live engine of a plan with a feed for each leaf, numbered as those are."""
    tree = build_live_tree(plan, reports_only=True)
    feeds = feeds_of(tree, catalog, by_leaf=True)
    limit = going.max_state_bytes
    return LiveEngine(plan, tree, feeds, going.lateness_us, limit, going.max_lag_us)


def over_streams(
    plan: Plan,
    frames: Mapping[str, DataFrame],
    catalog: Mapping[str, Schema],
    going: Going,
    zoneless: Collection[str],
    buckets: int = BUCKETS,
) -> DataFrame:
    """Return the rows of a query as a streaming DataFrame, each once it is complete."""
    spread = Spread.of(plan, 1 if ends_with_derived(plan, frames) else buckets)
    streams = spread.streams
    read = {name: catalog[name] for name in streams}
    packed = [packed_stream(frames[name], read[name], spread, name) for name in streams]
    session = packed[0].sparkSession
    session.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    unnumbered = frozenset(name for name in streams if SEQ not in frames[name].columns)
    processor = StreamProcessor(plan, read, going, spread.buckets, unnumbered)
    together = reduce(DataFrame.unionAll, packed)
    completed = together.groupBy("bucket").transformWithStateInPandas(
        processor, outputStructType=COMPLETED, outputMode="Append", timeMode="None"
    )
    reported = live_by_leaf(plan, read, going).output_schema
    return mapped(counting_late(completed), unpack, reported, zoneless)


def ends_with_derived(plan: Plan, frames: Mapping[str, DataFrame]) -> bool:
    """Whether all windows stop at the newest derived event: no bucket knows those of the others.

    Only a replay has an end. Before it, time is that of the streams.
    """
    replayed = any(CLOCK in frame.columns for frame in frames.values())
    return replayed and any(not isinstance(each.source, Scan) for each in windows_of(plan))


def packed_stream(frame: DataFrame, schema: Schema, spread: Spread, stream: str) -> DataFrame:
    """Return the arrivals of a stream as blocks, for all leaves over it."""
    leaves = spread.leaves_over(stream)
    names = spread.columns(leaves)
    arrow = pa.schema([(name, schema.type_of(name).arrow) for name in names])
    packing = StreamPacking(spread, leaves, arrow, CLOCK in frame.columns)
    wanted = [name for name in (*names, CLOCK) if name in frame.columns]
    return carried(frame, wanted).mapInArrow(packing.pack, ARRIVED)


@dataclass(frozen=True, slots=True)
class StreamPacking:
    """How the arrivals of one stream become blocks."""

    spread: Spread
    leaves: tuple[int, ...]
    schema: pa.Schema
    has_clock: bool
    """Whether a column says how far a replay is; otherwise the newest event does."""

    def pack(self, batches: Batches) -> Batches:
        """Yield blocks by leaf and bucket, and to every bucket how far the stream is."""
        newest_us, clocks = START_OF_TIME_US, [NO_CLOCK]
        for rows in in_blocks(self.arrivals(batches, clocks), BLOCK_ROWS):
            newest_us = max(newest_us, int(times(rows).max()))
            for leaf in self.leaves:
                own = rows.select(self.spread.columns([leaf]))
                packed = self.spread.blocks_of(own, leaf)
                yield self.labelled(packed.column(0), leaf, (newest_us, NO_CLOCK), packed.column(1))
        if newest_us != START_OF_TIME_US:
            count = self.spread.buckets
            reached = (newest_us, max(clocks))
            everyone = pa.array(np.arange(count, dtype=np.int32))
            nothing = pa.nulls(count, pa.binary())
            for leaf in self.leaves:
                yield self.labelled(everyone, leaf, reached, nothing)

    def arrivals(self, batches: Batches, clocks: list[int]) -> Batches:
        """Yield rows with exact types; where they have no `_seq`, the bucket will number them."""
        for rows in batches:
            if rows.num_rows:
                if self.has_clock:
                    clocks.append(rows.column(CLOCK)[0].as_py())
                whole = rows
                if SEQ not in rows.schema.names:
                    whole = rows.append_column(SEQ, pa.array(np.zeros(rows.num_rows, np.int64)))
                yield checked(from_the_border(whole, self.schema))

    def labelled(
        self, buckets: pa.Array, leaf: int, reached: tuple[int, int], payloads: pa.Array
    ) -> pa.RecordBatch:
        """Return blocks under the labels of their buckets, with how far the stream is."""
        labels = np.array(even_labels(self.spread.buckets), np.int32)[buckets.to_numpy()]
        count = len(labels)
        newest_us, clock_us = reached
        arrays = [
            pa.array(labels),
            pa.array(np.full(count, leaf, np.int32)),
            pa.array(np.full(count, newest_us, np.int64)),
            pa.array(np.full(count, clock_us, np.int64)),
            payloads,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=ARRIVED_ARROW)


@dataclass(frozen=True, slots=True)
class BucketEvents:
    """What has come to a bucket in a micro-batch, by the number of the leaf."""

    blocks: Mapping[int, list[bytes]]
    newest_us: Mapping[int, int]
    clock_us: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class StreamBucketState:
    """What a bucket remembers: the live engine's state, and how many events of each leaf came."""

    live: LiveState
    arrived: tuple[int, ...]


class StreamProcessor(StatefulProcessor, Stateful[StreamBucketState]):
    """The live engine of a query, one state for each bucket of keys."""

    def __init__(
        self,
        plan: Plan,
        catalog: Mapping[str, Schema],
        going: Going,
        buckets: int,
        unnumbered: frozenset[str],
    ) -> None:
        self.plan = plan
        self.catalog = catalog
        self.going = going
        self.buckets = buckets
        self.unnumbered = unnumbered
        """The streams whose rows have no `_seq`."""

    @cached_property
    def engine(self) -> LiveEngine:
        """The live engine, built where it runs."""
        return live_by_leaf(self.plan, self.catalog, self.going)

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: the query, with this many buckets."""
        return bucket_owner(
            self.engine.owner,
            self.buckets,
            tuple(sorted({*self.catalog} - self.unnumbered)),
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
        """Take what has arrived in a micro-batch; hand over what is reported."""
        events = events_in(rows)
        held = self.value.get()
        state = self.load(bytes(held[0])) if held is not None else self.initial_state()
        state, results, late = self.push(state, events)
        self.value.update((self.dump(state),))
        if late:
            yield pd.DataFrame({"bucket": [key[0]], "late_events": [late], "payload": [None]})
        for rows_out in results:
            payload = to_bytes(plain(rows_out))
            yield pd.DataFrame({"bucket": [key[0]], "late_events": [0], "payload": [payload]})

    def close(self) -> None:
        """Nothing to release."""

    def push(
        self, state: StreamBucketState, events: BucketEvents
    ) -> tuple[StreamBucketState, list[pa.RecordBatch], int]:
        """Return the state after a micro-batch, its results, and how many events were late."""
        arrived: dict[int, list[pa.RecordBatch]] = {}
        counts = list(state.arrived)
        for leaf, blocks in events.blocks.items():
            parts = from_bytes(blocks)
            if self.engine.feeds[leaf].stream in self.unnumbered:
                parts = numbered_from(parts, counts[leaf])
            counts[leaf] += sum(rows.num_rows for rows in parts)
            arrived[leaf] = parts
        live = self.moved(state.live, events.clock_us)
        live, results, late = self.taken(live, arrived, events)
        if all(held.advanced_us == END_OF_TIME_US for held in live.feeds):
            # A replay says so with its last events: what is open is complete, too.
            live, last = self.engine.finish(live)
            results.append(last.rows)
        found = [each for each in results if each.num_rows]
        return StreamBucketState(live, tuple(counts)), found, late

    def taken(
        self, live: LiveState, arrived: Mapping[int, list[pa.RecordBatch]], events: BucketEvents
    ) -> tuple[LiveState, list[pa.RecordBatch], int]:
        """Take arrivals; return also the results, and how many events were late.

        Of a query over one stream, text that is too long for one column comes in order of time,
        block by block: the watermark stays behind every block that follows, so none is late that
        would not be otherwise.
        """
        results: list[pa.RecordBatch] = []
        late = 0
        if len(self.engine.feeds) == 1 and arrived:
            *earlier, last = list(in_order_by_block(arrived[0], BLOCK_BYTES)) or arrived[0]
            for rows in earlier:
                live, reported = self.engine.take_by_feed(live, {0: rows}, {})
                results.append(reported.rows)
                late += sum(each.num_rows for each in reported.late.values())
            together = {0: last}
        else:
            together = {
                leaf: concat_batches(parts, self.engine.feeds[leaf].schema)
                for leaf, parts in arrived.items()
            }
        live, reported = self.engine.take_by_feed(live, together, events.newest_us)
        late += sum(each.num_rows for each in reported.late.values())
        return live, [*results, reported.rows], late

    def moved(self, live: LiveState, clock_us: Mapping[int, int]) -> LiveState:
        """Return the state with the feeds of a replay as far as it is."""
        feeds = list(live.feeds)
        for leaf, clock in clock_us.items():
            reached = clock if clock == END_OF_TIME_US else clock - self.going.lateness_us
            held = feeds[leaf]
            feeds[leaf] = replace(held, advanced_us=max(held.advanced_us, reached))
        return replace(live, feeds=tuple(feeds))

    def initial_state(self) -> StreamBucketState:
        """Return the state of a bucket before its first row."""
        return StreamBucketState(self.engine.initial_state(), (0,) * len(self.engine.feeds))

    def write(self, state: StreamBucketState) -> bytes:
        """Write a bucket's state out."""
        arrived = struct.pack(f"<{len(state.arrived)}q", *state.arrived)
        return join_parts([arrived, self.engine.write(state.live)])

    def read(self, written: bytes) -> StreamBucketState:
        """Read back what `write` wrote."""
        facts, live = parts_of("the bucket", written, 2)
        arrived = struct.unpack(f"<{len(self.engine.feeds)}q", facts)
        return StreamBucketState(self.engine.read(live), arrived)


def events_in(rows: Iterator[pd.DataFrame]) -> BucketEvents:
    """Return what the rows of a micro-batch say."""
    blocks: dict[int, list[bytes]] = {}
    newest_us: dict[int, int] = {}
    clock_us: dict[int, int] = {}
    for frame in rows:
        table = pa.Table.from_pandas(frame, schema=ARRIVED_ARROW, preserve_index=False)
        for _, leaf, newest, clock, payload in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        ):
            newest_us[leaf] = max(newest, newest_us.get(leaf, newest))
            if clock != NO_CLOCK:
                clock_us[leaf] = max(clock, clock_us.get(leaf, clock))
            if payload is not None:
                blocks.setdefault(leaf, []).append(payload)
    return BucketEvents(blocks, newest_us, clock_us)


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


def unpack(batches: Batches) -> Batches:
    """Yield the result rows of blocks."""
    for batch in batches:
        yield from from_bytes(batch.column("payload").drop_null().to_pylist())
