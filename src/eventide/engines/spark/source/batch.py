"""The store as a Spark data source: `spark.read.format("eventide")`, and writing, batch or stream.

Reading: a partition is a slice of time, cut from the index so that all have about as many rows,
and read by its own worker. All tasks of an execution read one snapshot, the stream as it is when
the first of them begins (agreement.py), not as it was when the DataFrame was made. Options
`stream` (needed if the database has several), `from` and `to` (ISO times or microseconds,
[from, to)), `columns` and `where.<attribute>` (a value, or low..high) prune before anything is
read. Filters are not pushed down: Spark 4.3 keeps what one query has pushed for the next query
over the same DataFrame, which then misses rows. Queries through `eventide.spark` prune by time on
their own.

As a stream, `spark.readStream.format("eventide")`: see stream.py.

Writing: each task stages a segment, and the driver commits all of them at once. In a stream the
query and the batch number make that commit happen exactly once, in a batch job the option
`commit_id` does. A task that fails removes what it has written; what tasks have staged is
discarded when the job fails. Files of a task that was killed, or ran twice, are part of nothing,
and are swept after a day.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql import types as t

from eventide.api.replay.pace import speed_of
from eventide.engines.spark.source.agreement import agreed
from eventide.engines.spark.source.options import (
    REPLAYING,
    check_reading,
    check_writing,
    columns_of,
    has_clock,
    rows_per_batch_of,
    stream_options,
    times_of,
    where_of,
)
from eventide.engines.spark.source.stream import (
    CLOCK,
    ROWS_PER_BATCH,
    ReplayReader,
    ReplayWanted,
    numbered_below,
)
from eventide.engines.spark.types import attributes_of, spark_schema, to_the_border, zoneless_in
from eventide.engines.spark.work import SHARED_HINT
from eventide.errors import StoreError, UnsupportedError, listed
from eventide.ingest.coerce import to_events
from eventide.instants import TimeRange
from eventide.schema import SEQ, Schema
from eventide.store import Snapshot, StagedSegment, Store, StoredStream
from eventide.store.index.ranges import ValueRange
from eventide.store.source import NO_TIME

PARTITION_ROWS = 1_000_000


class EventideSource(ds.DataSource):
    """A stream of a database: option `path` is the database, `stream` the stream."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return "eventide"

    def schema(self) -> t.StructType:
        """Return the columns of the stream."""
        check_reading(self.options, REPLAYING)  # nothing says yet whether it is to be a stream
        stored = self.stored()
        own = stored.schema
        fields = [(name, own.type_of(name).arrow) for name in columns_of(self.options, own)]
        if has_clock(self.options):
            fields.append((CLOCK, pa.int64()))
        rows = spark_schema(pa.schema(fields), stored.options.zoneless)
        self.replay_wanted(rows, own)  # refused now, not when rows are asked for
        return rows

    def reader(self, schema: t.StructType) -> ds.DataSourceReader:
        """Return what reads the stream."""
        check_reading(self.options)
        stored = self.stored()
        where = where_of(self.options, stored.schema)
        wanted = SliceWanted(
            tuple(schema.fieldNames()), times_of(self.options), where, zoneless_in(schema)
        )
        return SliceReader(stored, wanted, uuid.uuid4().hex)

    def streamReader(self, schema: t.StructType) -> ds.DataSourceStreamReader:  # noqa: N802
        """Return what replays the stream."""
        check_reading(self.options, REPLAYING)
        stored = self.stored()
        return ReplayReader(stored, self.replay_wanted(schema, stored.schema))

    def replay_wanted(self, rows: t.StructType, own: Schema) -> ReplayWanted:
        """Return what the options ask for, checked."""
        return ReplayWanted(
            tuple(rows.fieldNames()),
            times_of(self.options),
            where_of(self.options, own),
            rows_per_batch_of(self.options, ROWS_PER_BATCH),
            speed_of(self.options.get("speed")),
            zoneless_in(rows),
        )

    def writer(self, schema: t.StructType, overwrite: bool) -> ds.DataSourceArrowWriter:
        """Return what appends the rows of a batch job."""
        return BatchAppender(self.target(schema, overwrite), self.options.get("commit_id"))

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: t.StructType, overwrite: bool
    ) -> ds.DataSourceStreamArrowWriter:
        """Return what appends the rows of a streaming query."""
        return StreamAppender(self.target(schema, overwrite))

    def database(self, *, create: bool = False) -> Store:
        """Open the database that the options name."""
        if "path" not in self.options:
            message = "no database given"
            raise StoreError(message, hint='.load("folder.ev"), or .option("path", "folder.ev")')
        return Store.open(self.options["path"], create=create)

    def stored(self) -> StoredStream:
        """Return the stream that the options name, or the only one there is."""
        store = self.database()
        if "stream" in self.options:
            return store.stream(self.options["stream"])
        names = store.streams()
        if len(names) != 1:
            message = f"{store.path} has {len(names)} streams, and no option says which to read"
            hint = f'.option("stream", name), with a name of {listed(names)}'
            raise StoreError(message, hint=hint if names else "append to one first")
        return store.stream(names[0])

    def target(self, schema: t.StructType, overwrite: bool) -> StoredStream:
        """Return the stream to append to, created from the rows' schema if it is new."""
        if overwrite:
            message = "a stream is append-only: Spark's overwrite mode does not fit it"
            raise UnsupportedError(message, hint='.mode("append")')
        if "stream" not in self.options:
            message = "no stream given to write to"
            raise StoreError(message, hint='.option("stream", name)')
        check_writing(self.options)
        wanted = stream_options(self.options)
        attributes = attributes_of(schema)
        store, name = self.database(create=True), self.options["stream"]
        store.refuse_derived(name)
        if name in store.streams():
            return store.stream(name)
        kept = replace(wanted, zoneless=tuple(sorted(zoneless_in(schema))))
        return store.create_stream(name, Schema(attributes), kept)


@dataclass(frozen=True, slots=True)
class SliceWanted:
    """What is read of a stream; `zoneless` are its times that Spark knows without a zone."""

    columns: tuple[str, ...]
    time_range: TimeRange
    where: Mapping[str, ValueRange]
    zoneless: frozenset[str]


@dataclass
class SlicePartition(ds.InputPartition):
    """A part for one task: a slice of time, and what the snapshot had there when it was planned."""

    number: int
    parts: int
    source: Snapshot
    time_range: TimeRange
    planned: list[int]
    """What tells the snapshot from others; see `identity`."""


class SliceReader(ds.DataSourceReader):
    """Reads a stream in slices of time, each by its own task. No `pushFilters`: see above."""

    def __init__(self, stored: StoredStream, wanted: SliceWanted, name: str) -> None:
        self.stored = stored
        self.wanted = wanted
        self.name = name
        """Tells what its tasks agree on from what those of other readers do."""

    def partitions(self) -> Sequence[ds.InputPartition]:
        """Cut what is asked for into slices; where nothing can qualify there is one all the same.

        Spark asks once, and keeps the answer for as long as the DataFrame lives.
        """
        source = self.stored.snapshot()
        slices = self.slices(source) or [NO_TIME]
        return [
            SlicePartition(number, len(slices), source.within(part), part, identity(source))
            for number, part in enumerate(slices)
        ]

    def slices(self, source: Snapshot) -> list[TimeRange]:
        """Return slices of time that have about as many rows each, and all that qualify."""
        times, where = self.wanted.time_range, self.wanted.where
        return [part.time_range for part in source.slices(times, PARTITION_ROWS, where)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part, of the snapshot that this execution has agreed on."""
        assert isinstance(partition, SlicePartition)
        found = self.identity_agreed_on(partition)
        rows = (
            self.planned(partition) if found == partition.planned else self.grown(partition, found)
        )
        return (to_the_border(batch, self.wanted.zoneless) for batch in rows)

    def identity_agreed_on(self, partition: SlicePartition) -> list[int]:
        """Return which snapshot all tasks of this execution read."""
        stored = self.stored
        try:
            found: list[int] = agreed(
                database_of(stored),
                stored.stream_id,
                choose=lambda: identity(stored.snapshot()),
            )
        except OSError as error:
            if not stored.path.exists():
                message = f"there is no folder {stored.path} on {socket.gethostname()}"
                raise StoreError(message, hint=SHARED_HINT) from error
            if identity(stored.snapshot()) == partition.planned:
                return partition.planned
            message = f"{stored.name!r} has changed since this DataFrame was first used"
            folder = database_of(stored)
            hint = f"load it again; or let workers write to {folder}, to agree on a snapshot"
            raise StoreError(message, hint=hint) from error
        return found

    def planned(self, partition: SlicePartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice of a stream that is as it was when slices were cut."""
        if not partition.time_range.is_empty:
            asked = self.wanted
            yield from partition.source.scan(asked.columns, partition.time_range, asked.where)

    def grown(self, partition: SlicePartition, found: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield a share of the rows of a stream that has changed since slices were cut.

        What came after the snapshot agreed on is left out by its number.
        """
        _, before_seq, *now_us = found
        # Every task leaves out what had expired at the same time.
        source = self.stored.snapshot_at(*now_us) if now_us else self.stored.snapshot()
        slices: list[list[int]] = agreed(
            database_of(self.stored),
            self.name,
            choose=lambda: [[part.start_us, part.end_us] for part in self.slices(source)],
        )
        first, end = (
            len(slices) * number // partition.parts
            for number in (partition.number, partition.number + 1)
        )
        columns = list(self.wanted.columns)
        numbered = columns if SEQ in columns else [*columns, SEQ]
        for start_us, end_us in slices[first:end]:
            for batch in source.scan(numbered, TimeRange(start_us, end_us), self.wanted.where):
                yield numbered_below(batch, before_seq).select(columns)


def identity(source: Snapshot) -> list[int]:
    """Return what tells a snapshot of a stream from all others of it."""
    now_us = source.view.now_us
    return [source.version, source.view.next_seq, *([] if now_us is None else [now_us])]


def database_of(stored: StoredStream) -> Path:
    """Return the folder of the database that a stream is in."""
    return stored.path.parent.parent


@dataclass
class Staged(ds.WriterCommitMessage):
    """What a task has written, not yet visible."""

    segments: StagedSegment
    partition: int
    query: str


def stage(stream: StoredStream, rows: Iterator[pa.RecordBatch]) -> Staged:
    """Write the rows of one task."""
    context = TaskContext.get()
    assert context is not None
    query = context.getLocalProperty("sql.streaming.queryId") or ""
    events = (
        batch for each in rows for batch in to_events(without_seq(each), stream.schema).to_batches()
    )
    return Staged(stream.stage(events), context.partitionId(), query)


def without_seq(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Leave a `_seq` column out: the store numbers events as they are committed."""
    return rows.drop_columns([SEQ]) if SEQ in rows.schema.names else rows


def in_task_order(messages: Sequence[ds.WriterCommitMessage | None]) -> list[Staged]:
    """Return what was staged, so that arrival order follows the order of partitions."""
    staged = [message for message in messages if isinstance(message, Staged)]
    return sorted(staged, key=lambda each: each.partition)


class BatchAppender(ds.DataSourceArrowWriter):
    """Appends the rows of a batch job, all or none; with a commit id, once."""

    def __init__(self, stream: StoredStream, commit_id: str | None = None) -> None:
        self.stream = stream
        self.commit_id = commit_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Stage the rows of one task."""
        return stage(self.stream, iterator)

    def commit(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Make the rows of all tasks visible at once, unless an earlier try already has."""
        staged = [each.segments for each in in_task_order(messages)]
        self.stream.commit(staged, self.commit_id)

    def abort(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Remove what was staged."""
        self.stream.discard([each.segments for each in in_task_order(messages)])


class StreamAppender(ds.DataSourceStreamArrowWriter):
    """Appends the rows of a streaming query, each micro-batch exactly once."""

    def __init__(self, stream: StoredStream) -> None:
        self.stream = stream

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Stage the rows of one task."""
        return stage(self.stream, iterator)

    def commit(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the rows of a micro-batch visible, unless an earlier try already has."""
        staged = in_task_order(messages)
        if staged:
            self.stream.commit([each.segments for each in staged], f"{staged[0].query}/{batchId}")

    def abort(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Remove what was staged."""
        self.stream.discard([each.segments for each in in_task_order(messages)])
