"""A stream at one moment: what is in segments, and what is only in the log.

A stream consists of three parts: sealed segments, which the manifest lists; the open segment, whose
root the log knows; and events that are only in the log. Of these, events that came in order are the
*tail*, and those older than the newest leaf are the *queue* of late events. A view has all three
and never changes; every change makes another view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow
from eventide.errors import EventideError
from eventide.instants import START_OF_TIME_US
from eventide.schema import SEQ, TS
from eventide.store.files.json_text import whole
from eventide.store.order import int64_view, sort_rows
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import Segment
from eventide.store.writing.log import DamagedLogError, Record, RecordKind

if TYPE_CHECKING:
    from eventide.store.reading.expiring import ExpiringSegments

MOST_BATCHES = 512
SEQ_FIELD = pa.field(SEQ, pa.int64())
REMEMBERED_PRODUCERS = 10_000


@dataclass(frozen=True)
class Reduced:
    """What the next segment leaves out, because too much came too fast."""

    in_order: bool
    indexes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        return {"in_order": self.in_order, "indexes": list(self.indexes)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Reduced:
        """Read what `to_json` wrote."""
        return cls(bool(entry["in_order"]), tuple(map(str, entry["indexes"])))


@dataclass(frozen=True)
class StreamView:
    """A stream at one moment."""

    manifest: Manifest
    log_end: int = 0
    log_records: int = 0
    log_start: int = 0
    """Where the log's last checkpoint ends: what lies behind it has come since."""
    log_header: bytes = b""
    """The header of the last record, which tells it from another in its place."""
    next_seq: int = 0
    closed_ts: int = START_OF_TIME_US
    """The newest time in a leaf: an event before it is late."""
    segment: Segment | None = None
    reduced: Reduced | None = None
    tail: tuple[pa.RecordBatch, ...] = ()
    queue: tuple[pa.RecordBatch, ...] = ()
    producers: Mapping[str, int] = field(default_factory=dict)
    expiring: ExpiringSegments | None = None
    """Segments of which some events are gone by now; they are in no other list then."""
    now_us: int | None = None
    """The time at which these events are there, if each names until when it is."""
    directories: dict[object, object] = field(default_factory=dict, compare=False, repr=False)
    """What queries have computed from the segments' totals; views with the same segments share it.
    """

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Every segment, the open one last."""
        sealed = self.manifest.segments.every
        return sealed if self.segment is None else (*sealed, self.segment)

    @property
    def files(self) -> frozenset[str]:
        """Every file that readers of this view or an older one may need."""
        own = () if self.segment is None else self.segment.files
        return self.manifest.files | frozenset(own)

    @property
    def in_order(self) -> bool:
        """Whether leaves are written in order of time now."""
        if self.segment is not None:
            return self.segment.form.in_order
        if self.reduced is not None:
            return self.reduced.in_order
        return self.manifest.options.order == "time"

    @property
    def log_growth(self) -> int:
        """How many bytes of the log have come since its last checkpoint.

        Its length would not do: the totals of a segment may have texts that alone are longer than a
        log should be, and are written with every checkpoint.
        """
        return self.log_end - self.log_start

    @property
    def logged_rows(self) -> int:
        """How many events are only in the log."""
        return sum(int(batch.num_rows) for batch in (*self.tail, *self.queue))

    @cached_property
    def sorted_tail(self) -> pa.RecordBatch:
        """The tail in order of (ts, _seq)."""
        return sort_rows(joined(self.tail, self.manifest.schema.arrow))

    @cached_property
    def sorted_queue(self) -> pa.RecordBatch:
        """The late events in order of (ts, _seq)."""
        return sort_rows(joined(self.queue, self.manifest.schema.arrow))

    def with_rows(self, rows: pa.RecordBatch) -> StreamView:
        """Return the view after events have come: late ones in the queue, others in the tail."""
        if not rows.num_rows:
            return self
        next_seq = int(int64_view(rows.column(SEQ))[-1]) + 1
        ts = int64_view(rows.column(TS))
        if not self.in_order or int(ts.min()) >= self.closed_ts:
            # Joined now and then, or each of many small appends would copy a longer tuple.
            held = self.tail if len(self.tail) < MOST_BATCHES else (pa.concat_batches(self.tail),)
            return replace(self, next_seq=next_seq, tail=(*held, rows))
        late = ts < self.closed_ts
        timely = rows.filter(pa.array(~late))
        tail = (*self.tail, timely) if timely.num_rows else self.tail
        queue = (*self.queue, rows.filter(pa.array(late)))
        return replace(self, next_seq=next_seq, tail=tail, queue=queue)

    def with_producer(self, producer: str | None, sequence: int | None) -> StreamView:
        """Return the view after a producer's batch was taken."""
        if producer is None or sequence is None:
            return self
        others = [(name, last) for name, last in self.producers.items() if name != producer]
        kept = others[-(REMEMBERED_PRODUCERS - 1) :]
        return replace(self, producers=dict([*kept, (producer, sequence)]))

    def checkpoint(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """Return the record that replaces everything before it."""
        facts = {
            "next_seq": self.next_seq,
            "closed_ts": self.closed_ts,
            "segment": None if self.segment is None else self.segment.to_json(),
            "reduced": None if self.reduced is None else self.reduced.to_json(),
            "producers": dict(self.producers),
        }
        schema = self.manifest.schema.arrow
        return facts, [joined(self.tail, schema), joined(self.queue, schema)]

    def after(self, record: Record) -> StreamView:
        """Return the view after one more record of the log, or raise `DamagedLogError`."""
        try:
            return self.with_record(record)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
        except (EventideError, pa.ArrowException) as error:
            reason = str(error)
        message = f"the record at byte {self.log_end} says what cannot be: {reason}"
        raise DamagedLogError(message)

    def with_record(self, record: Record) -> StreamView:
        """Return the view after one more record, which may be wrong."""
        facts = record.facts
        read = replace(
            self,
            log_end=record.end,
            log_records=self.log_records + 1,
            log_header=record.header,
        )
        if record.kind == RecordKind.EVENTS:
            rows = rows_with_seq(record.batches[0], whole(facts["first_seq"]))
            producer, sequence = facts["producer"], facts["sequence"]
            if producer is None or sequence is None:
                return read.with_rows(rows)
            return read.with_rows(rows).with_producer(text(producer), whole(sequence))
        segment, reduced = facts["segment"], facts["reduced"]
        return replace(
            read,
            log_start=record.end,
            next_seq=max(whole(facts["next_seq"]), self.manifest.next_seq),
            closed_ts=whole(facts["closed_ts"]),
            segment=None if segment is None else Segment.from_json(segment),
            reduced=None if reduced is None else Reduced.from_json(reduced),
            tail=tuple(batch for batch in record.batches[:1] if batch.num_rows),
            queue=tuple(batch for batch in record.batches[1:] if batch.num_rows),
            producers={name: whole(last) for name, last in facts["producers"].items()},
        )


def text(value: object) -> str:
    """Return a text of a log's JSON, refusing anything else."""
    if not isinstance(value, str):
        message = f"{value!r} is not a text"
        raise TypeError(message)
    return value


def joined(batches: tuple[pa.RecordBatch, ...], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of several batches as one."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else no_rows(schema)


def copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in memory of their own."""
    return rows_in(rows.serialize(), rows.schema)


def rows_in(message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of an Arrow message, in its memory."""
    return pa.ipc.read_record_batch(pa.ipc.read_message(message), schema)


def rows_with_seq(events: pa.RecordBatch, first_seq: int) -> pa.RecordBatch:
    """Return events with their `_seq`."""
    seq = to_arrow(np.arange(first_seq, first_seq + events.num_rows, dtype=np.int64))
    return events.add_column(1, SEQ_FIELD, seq)
