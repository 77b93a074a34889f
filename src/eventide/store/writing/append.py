"""Append events: a few go to the log, many at once to the open segment."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pyarrow as pa

from eventide.errors import StoreError
from eventide.store.reading.scan import StreamColumns
from eventide.store.upkeep.settling import settle
from eventide.store.writing.flush import LOG_BYTES, flush
from eventide.store.writing.group_commit import sync_soon
from eventide.store.writing.log import RecordKind
from eventide.store.writing.open_stream import OpenStream
from eventide.store.writing.rows import checked_rows, with_present_columns
from eventide.store.writing.view import StreamView, rows_in, rows_with_seq

MOST_LOG_BYTES = 4 * LOG_BYTES
BULK_BYTES = LOG_BYTES // 4
"""An append of this size goes to the segment at once: the log would only carry it twice."""

log = logging.getLogger("eventide.store")


@dataclass(frozen=True, slots=True)
class Appended:
    """What a commit added: `rows` events, numbered from `first_seq`."""

    rows: int
    first_seq: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an append: what readers see of it, and what went wrong after that."""

    appended: Appended
    events: pa.RecordBatch
    """The added events as they are stored, without their numbers."""
    error: BaseException | None = None
    """Why they may not be as safe as the stream's durability says, if something failed."""


@dataclass(frozen=True, slots=True)
class Producer:
    """The sender of a batch, and the batch's number: one that was stored is not stored again."""

    name: str | None = None
    sequence: int | None = None

    def __post_init__(self) -> None:
        check_producer(self.name, self.sequence)

    def has_stored(self, view: StreamView) -> bool:
        """Whether the batch, or a later one of the producer, is in the stream."""
        if self.name is None or self.sequence is None:
            return False
        return self.sequence <= view.producers.get(self.name, -1)


def check_producer(producer: object, sequence: object) -> None:
    """Refuse half an identity."""
    hint = 'append(batch, producer="sensor 7", sequence=41)'
    if (producer is None) != (sequence is None):
        message = "a producer and a sequence go together"
        raise StoreError(message, hint=hint)
    if producer is not None and not isinstance(producer, str):
        message = f"a producer is named by text, not by {producer!r}"
        raise StoreError(message, hint=hint)
    whole = isinstance(sequence, int) and not isinstance(sequence, bool)
    if sequence is not None and not (whole and sequence in range(2**63)):
        message = f"a sequence is a whole number from 0 up, not {sequence!r}"
        raise StoreError(message, hint=hint)


def append_events(
    stream: OpenStream,
    found: StreamView,
    events: pa.Table,
    columns: StreamColumns | None,
    producer: Producer,
) -> Outcome:
    """Store events, and say what went wrong once they were visible; raise what did before.

    `columns` are those that the events were made for, if others may have come or gone since.
    """
    view = found
    present = StreamColumns(view.manifest.schema, view.manifest.column_ids)
    rows = with_present_columns(checked_rows(events, (columns or present).schema), columns, present)
    is_empty = not rows.num_rows and producer.name is None
    if is_empty or producer.has_stored(view):
        return Outcome(Appended(0, view.next_seq), rows.slice(0, 0))
    if view.log_growth >= MOST_LOG_BYTES:
        # Earlier appends could not make segments of it: better refused than ever slower.
        view = flush(stream, view)
    appended = Appended(rows.num_rows, view.next_seq)
    try:
        add(stream, view, rows, producer)
    except BaseException as error:
        stream.close()
        if not stream.shows(view.next_seq):
            raise
        return Outcome(appended, rows, error)
    return Outcome(appended, rows)


def add(stream: OpenStream, view: StreamView, events: pa.RecordBatch, producer: Producer) -> None:
    """Store checked events: many at once in the segment, a few in the log."""
    stream.meter.observe(events)
    # Asking each column for its size takes longer than all the rest of a small append.
    if pa.ipc.get_record_batch_size(events) >= BULK_BYTES and events.nbytes >= BULK_BYTES:
        rows = rows_with_seq(events, view.next_seq)
        following = view.with_rows(rows).with_producer(producer.name, producer.sequence)
        settle(stream, view, flush(stream, following))
        return
    done = add_to_log(stream, view, events, producer)
    if done.log_growth >= LOG_BYTES:
        try:
            settle(stream, view, flush(stream, done))
        except Exception as error:
            # The events are in the log. The next append tries again, and in the end refuses.
            log.warning("stream %s could not be written to segments: %s", stream.folder.name, error)
            stream.close()


def add_to_log(
    stream: OpenStream, view: StreamView, events: pa.RecordBatch, producer: Producer
) -> StreamView:
    """Write events to the log, as safely as the stream's durability says."""
    # What stays in memory is what goes to the log: the caller may write into its own arrays.
    message = events.serialize()
    rows = rows_with_seq(rows_in(message, events.schema), view.next_seq)
    following = view.with_rows(rows).with_producer(producer.name, producer.sequence)
    facts = {
        "first_seq": view.next_seq,
        "producer": producer.name,
        "sequence": producer.sequence,
    }
    options = view.manifest.options
    synced = options.durability == "batch"
    done = stream.record(view, following, RecordKind.EVENTS, facts, [message], sync=synced)
    if options.durability == "group" and stream.log is not None:
        sync_soon(stream.log.file, options.commit_interval_ms / 1000)
    return done
