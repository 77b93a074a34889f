"""The store as a Spark data source: `spark.read.format("eventide")`, and writing, batch or stream.

Reading: a partition is a slice of time, cut from the index so that all have about as many rows,
and read by its own worker from one consistent snapshot. Options `stream` (needed if the database
has several), `from` and `to` (ISO times or microseconds, [from, to)), `columns` and
`where.<attribute>` (a value, or low..high) prune before anything is read. Filters are not pushed
down: Spark 4.3 keeps what one query has pushed for the next query over the same DataFrame, which
then misses rows. Queries through `eventide.spark` prune by time on their own.

As a stream, `spark.readStream.format("eventide")`: see stream_source.py.

Writing: each task stages a segment, and the driver commits all of them at once. In a stream the
query and the batch number make that commit happen exactly once, in a batch job the option
`commit_id` does. A task that fails removes what it has written; what tasks have staged is
discarded when the job fails. Files of a task that was killed, or ran twice, are part of nothing,
and are swept after a day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql import types as t

from eventide.batch import TimeRange
from eventide.engines.spark.options import (
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
from eventide.engines.spark.stream_source import (
    CLOCK,
    ROWS_PER_BATCH,
    ReplayReader,
    ReplayWanted,
)
from eventide.engines.spark.types import attributes_of, spark_schema
from eventide.errors import StoreError, UnsupportedError, listed
from eventide.ingest.coerce import to_events
from eventide.pace import speed_of
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
        own = self.stored().schema
        self.replay_wanted(
            columns_of(self.options, own), own
        )  # refused now, not when rows are asked
        fields = [(name, own.type_of(name).arrow) for name in columns_of(self.options, own)]
        if has_clock(self.options):
            fields.append((CLOCK, pa.int64()))
        return spark_schema(pa.schema(fields))

    def reader(self, schema: t.StructType) -> ds.DataSourceReader:
        """Return what reads a snapshot of the stream."""
        check_reading(self.options)
        snapshot = self.stored().snapshot()
        where = where_of(self.options, snapshot.schema)
        wanted = SliceWanted(tuple(schema.fieldNames()), times_of(self.options), where)
        return SliceReader(snapshot, wanted)

    def streamReader(self, schema: t.StructType) -> ds.DataSourceStreamReader:  # noqa: N802
        """Return what replays the stream."""
        check_reading(self.options, REPLAYING)
        stored = self.stored()
        return ReplayReader(stored, self.replay_wanted(schema.fieldNames(), stored.schema))

    def replay_wanted(self, columns: Sequence[str], own: Schema) -> ReplayWanted:
        """Return what the options ask for, checked."""
        return ReplayWanted(
            tuple(columns),
            times_of(self.options),
            where_of(self.options, own),
            rows_per_batch_of(self.options, ROWS_PER_BATCH),
            speed_of(self.options.get("speed")),
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
        if name in store.streams():
            return store.stream(name)
        return store.create_stream(name, Schema(attributes), wanted)


@dataclass(frozen=True, slots=True)
class SliceWanted:
    """What is read of a stream."""

    columns: tuple[str, ...]
    time_range: TimeRange
    where: Mapping[str, ValueRange]


@dataclass
class SlicePartition(ds.InputPartition):
    """A slice of time for one task, with the part of the snapshot that it touches."""

    source: Snapshot
    time_range: TimeRange


class SliceReader(ds.DataSourceReader):
    """Reads a snapshot in slices of time, each by its own task. No `pushFilters`: see above."""

    def __init__(self, source: Snapshot | None, wanted: SliceWanted) -> None:
        self.source = source
        self.wanted = wanted

    def __reduce__(self) -> tuple[object, ...]:
        # Spark sends the reader to every task: what a task reads is in its partition.
        return SliceReader, (None, self.wanted)

    def partitions(self) -> Sequence[ds.InputPartition]:
        """Cut what is asked for into slices; where nothing can qualify there is none."""
        assert self.source is not None
        times, where = self.wanted.time_range, self.wanted.where
        slices = [part.time_range for part in self.source.slices(times, PARTITION_ROWS, where)]
        # Without any, Spark would make a partition of its own.
        return [SlicePartition(self.source.within(part), part) for part in slices or [NO_TIME]]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one slice."""
        assert isinstance(partition, SlicePartition)
        if not partition.time_range.is_empty:
            asked = self.wanted
            yield from partition.source.scan(asked.columns, partition.time_range, asked.where)


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
