"""A standing query over streaming DataFrames: its live engine as a stateful processor.

each stream ─ mapInArrow: pack by window and bucket ┐
                                                    ├ union ─ shuffle ─ transformWithState ─ unpack
each stream ─ mapInArrow: pack by window and bucket ┘

Every partition sends every bucket the time that its stream has reached, so all buckets have the
same clock. The output is append-only: rows have the instant at which they expire, and only if that
is not known a second row, of sign -1, takes one back.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from eventide.batch import END_OF_TIME_US, START_OF_TIME_US
from eventide.engines.buckets import from_bytes, to_bytes
from eventide.engines.spark.frames import BLOCK_ROWS, Batches, checked
from eventide.engines.spark.session import ROCKSDB
from eventide.engines.spark.source.stream import CLOCK
from eventide.engines.spark.standing.history import LeafSpread, plain
from eventide.engines.spark.stream import (
    BUCKETS,
    COMPLETED,
    bucket_owner,
    counting_late,
    even_labels,
    unpack,
)
from eventide.engines.spark.types import carried, from_the_border, mapped
from eventide.engines.standing.build import build_standing
from eventide.engines.standing.feeds import feeds_of
from eventide.engines.standing.live import StandingLive, StandingState
from eventide.engines.standing.reach import scan_of
from eventide.ingest.ordering import times
from eventide.operators.columns import concat_batches, in_blocks
from eventide.operators.envelope import Owner
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.update_patterns import windows_of
from eventide.schema import SEQ, Schema

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
    """How time goes on, and how much may be remembered; see `StandingLive`."""

    lateness_us: int = 0
    idle_us: int | None = None
    max_state_bytes: int | None = None
    """How much each bucket may remember."""


def live_by_leaf(plan: Standing, catalog: Mapping[str, Schema], going: Going) -> StandingLive:
    """Return the live engine of a plan with a feed for each window, numbered as those are."""
    tree = build_standing(plan, keeps_answer=False)
    feeds = feeds_of(tree, catalog, by_leaf=True)
    limit = going.max_state_bytes
    return StandingLive(plan, tree, feeds, going.lateness_us, limit, going.idle_us)


def over_streams(
    plan: Standing,
    frames: Mapping[str, DataFrame],
    catalog: Mapping[str, Schema],
    going: Going,
    zoneless: Collection[str],
    buckets: int = BUCKETS,
) -> DataFrame:
    """Return what a standing query reports as a streaming DataFrame."""
    spread = LeafSpread.of(plan, buckets)
    streams = dict.fromkeys(scan_of(leaf).stream for leaf in windows_of(plan))
    read = {name: catalog[name] for name in streams}
    packed = [packed_stream(frames[name], read[name], spread, name) for name in streams]
    session = packed[0].sparkSession
    session.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    unnumbered = frozenset(name for name in streams if SEQ not in frames[name].columns)
    processor = StandingProcessor(plan, read, going, spread.buckets, unnumbered)
    together = reduce(DataFrame.unionAll, packed)
    completed = together.groupBy("bucket").transformWithStateInPandas(
        processor, outputStructType=COMPLETED, outputMode="Append", timeMode="None"
    )
    reported = live_by_leaf(plan, read, going).output_schema
    return mapped(counting_late(completed), unpack, reported, zoneless)


def packed_stream(frame: DataFrame, schema: Schema, spread: LeafSpread, stream: str) -> DataFrame:
    """Return the arrivals of a stream as blocks, for all windows over it."""
    leaves = spread.leaves_over(stream)
    names = spread.columns(leaves)
    arrow = pa.schema([(name, schema.type_of(name).arrow) for name in names])
    packing = StreamPacking(spread, leaves, arrow, CLOCK in frame.columns)
    wanted = [name for name in (*names, CLOCK) if name in frame.columns]
    return carried(frame, wanted).mapInArrow(packing.pack, ARRIVED)


@dataclass(frozen=True, slots=True)
class StreamPacking:
    """How the arrivals of one stream become blocks."""

    spread: LeafSpread
    leaves: tuple[int, ...]
    schema: pa.Schema
    has_clock: bool
    """Whether a column says how far a replay is; otherwise the newest event does."""

    def pack(self, batches: Batches) -> Batches:
        """Yield blocks by window and bucket, and to every bucket how far the stream is."""
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
    """What has come to a bucket in a micro-batch, by the number of the window."""

    blocks: Mapping[int, list[bytes]]
    newest_us: Mapping[int, int]
    clock_us: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class StandingBucketState:
    """What a bucket remembers: the live engine's state, and how many events of each window came."""

    live: StandingState
    arrived: tuple[int, ...]


class StandingProcessor(StatefulProcessor, Stateful[StandingBucketState]):
    """The live engine of a standing query, one state for each bucket of keys."""

    def __init__(
        self,
        plan: Standing,
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
        self.engine = live_by_leaf(self.plan, self.catalog, self.going)

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
        state, reported, late = self.push(state, events)
        self.value.update((self.dump(state),))
        if reported.num_rows or late:
            payload = to_bytes(plain(reported)) if reported.num_rows else None
            yield pd.DataFrame({"bucket": [key[0]], "late_events": [late], "payload": [payload]})

    def close(self) -> None:
        """Nothing to release."""

    def push(
        self, state: StandingBucketState, events: BucketEvents
    ) -> tuple[StandingBucketState, pa.RecordBatch, int]:
        """Return the state after a micro-batch, what is reported, and how many were late."""
        arrived: dict[int, pa.RecordBatch] = {}
        counts = list(state.arrived)
        for leaf, blocks in events.blocks.items():
            feed = self.engine.feeds[leaf]
            rows = concat_batches(from_bytes(blocks), feed.schema)
            if feed.stream in self.unnumbered:
                seq = np.arange(counts[leaf], counts[leaf] + rows.num_rows, dtype=np.int64)
                rows = rows.set_column(rows.schema.get_field_index(SEQ), SEQ, pa.array(seq))
            counts[leaf] += rows.num_rows
            arrived[leaf] = rows
        live = self.moved(state.live, events.clock_us)
        live, reported = self.engine.take_by_feed(live, arrived, events.newest_us)
        found = reported.rows
        if all(held.advanced_us == END_OF_TIME_US for held in live.feeds):
            # A replay says so with its last events: the newest one is all there is to wait for.
            live, last = self.engine.finish(live)
            found = concat_batches([found, last.rows], found.schema)
        late = sum(rows.num_rows for rows in reported.late.values())
        return StandingBucketState(live, tuple(counts)), found, late

    def moved(self, live: StandingState, clock_us: Mapping[int, int]) -> StandingState:
        """Return the state with the feeds of a replay as far as it is."""
        feeds = list(live.feeds)
        for leaf, clock in clock_us.items():
            reached = clock if clock == END_OF_TIME_US else clock - self.going.lateness_us
            held = feeds[leaf]
            feeds[leaf] = replace(held, advanced_us=max(held.advanced_us, reached))
        return replace(live, feeds=tuple(feeds))

    def initial_state(self) -> StandingBucketState:
        """Return the state of a bucket before its first row."""
        return StandingBucketState(self.engine.initial_state(), (0,) * len(self.engine.feeds))

    def write(self, state: StandingBucketState) -> bytes:
        """Write a bucket's state out."""
        arrived = struct.pack(f"<{len(state.arrived)}q", *state.arrived)
        return join_parts([arrived, self.engine.write(state.live)])

    def read(self, written: bytes) -> StandingBucketState:
        """Read back what `write` wrote."""
        facts, live = parts_of("the bucket", written, 2)
        arrived = struct.unpack(f"<{len(self.engine.feeds)}q", facts)
        return StandingBucketState(self.engine.read(live), arrived)


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
