"""One stream in this process: its newest state, and the way to change it.

What a stream holds is three things: sealed segments, which the manifest lists; the open segment,
whose root the log knows; and events that are only in the log, of which those that came in order
are the *tail*, and those older than the newest leaf are the *queue* of late events. All three are
in a `View`, which never changes; every change makes another.

A small append is one record in the log. When the log is long, or an append is large, the tail is
sorted and written to the open segment as leaves (`flush.py`), and a checkpoint goes to the log.

Several processes may read and write: a writer holds the folder's lock, and first catches up with
what others have logged. Nothing that readers look at is ever overwritten.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.errors import EventideError, StoreError
from eventide.schema import SEQ, TS
from eventide.store.files.disk import AppendFile, remove, sync_folder
from eventide.store.files.lock import write_lock
from eventide.store.files.mapped import damaged
from eventide.store.order import int64_array, int64_view, sort_rows
from eventide.store.segments.manifest import Manifest, is_newest, load_manifest, write_manifest
from eventide.store.segments.segment import Segment
from eventide.store.segments.segment_writer import SegmentWriter, cannot_write
from eventide.store.writing.group_commit import was_lost
from eventide.store.writing.load import LoadMeter
from eventide.store.writing.log import (
    DamagedLogError,
    LogWriter,
    Record,
    RecordKind,
    Rows,
    create_log,
    is_still_there,
    read_records,
    stamp_of,
)

NO_TS = -(2**63)
MOST_BATCHES = 512
REMEMBERED_PRODUCERS = 10_000
# A writer that is just adding a record can make a reader see half of it.
READ_ATTEMPTS = 5


@dataclass(frozen=True)
class Reduced:
    """What the segment that begins next does without, because too much came too fast."""

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
class View:
    """A stream at one moment."""

    manifest: Manifest
    log_end: int = 0
    log_records: int = 0
    log_header: bytes = b""
    """The header of the last record, by which it is told from another in its place."""
    next_seq: int = 0
    closed_ts: int = NO_TS
    """The newest time in a leaf: an event before it is late."""
    segment: Segment | None = None
    reduced: Reduced | None = None
    tail: tuple[pa.RecordBatch, ...] = ()
    queue: tuple[pa.RecordBatch, ...] = ()
    producers: Mapping[str, int] = field(default_factory=dict)
    directories: dict[object, object] = field(default_factory=dict, compare=False, repr=False)
    """What queries have made of the segments' totals; views with the same segments share it."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Every segment, the open one last."""
        sealed = self.manifest.segments
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
    def logged_rows(self) -> int:
        """How many events are only in the log."""
        return sum(int(batch.num_rows) for batch in (*self.tail, *self.queue))

    @cached_property
    def sorted_tail(self) -> pa.RecordBatch:
        """The tail in order of (ts, seq)."""
        return sort_rows(joined(self.tail, self.manifest.schema.arrow))

    @cached_property
    def sorted_queue(self) -> pa.RecordBatch:
        """The late events in order of (ts, seq)."""
        return sort_rows(joined(self.queue, self.manifest.schema.arrow))

    def with_rows(self, rows: pa.RecordBatch) -> View:
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

    def with_producer(self, producer: str | None, sequence: int | None) -> View:
        """Return the view after a producer's batch was taken."""
        if producer is None or sequence is None:
            return self
        others = [(name, last) for name, last in self.producers.items() if name != producer]
        kept = others[-(REMEMBERED_PRODUCERS - 1) :]
        return replace(self, producers=dict([*kept, (producer, sequence)]))

    def checkpoint(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """Return the record that stands for everything before it."""
        facts = {
            "next_seq": self.next_seq,
            "closed_ts": self.closed_ts,
            "segment": None if self.segment is None else self.segment.to_json(),
            "reduced": None if self.reduced is None else self.reduced.to_json(),
            "producers": dict(self.producers),
        }
        schema = self.manifest.schema.arrow
        return facts, [joined(self.tail, schema), joined(self.queue, schema)]

    def after(self, record: Record) -> View:
        """Return the view after one more record of the log, or raise `DamagedLogError`."""
        try:
            return self.with_record(record)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
        except (EventideError, pa.ArrowException) as error:
            reason = str(error)
        message = f"the record at byte {self.log_end} says what cannot be: {reason}"
        raise DamagedLogError(message)

    def with_record(self, record: Record) -> View:
        """Return the view after one more record, which may be wrong."""
        facts = record.facts
        read = replace(
            self,
            log_end=record.end,
            log_records=self.log_records + 1,
            log_header=record.header,
        )
        if record.kind == RecordKind.EVENTS:
            rows = numbered(record.batches[0], whole(facts["first_seq"]), self.manifest)
            producer, sequence = facts["producer"], facts["sequence"]
            if producer is None or sequence is None:
                return read.with_rows(rows)
            return read.with_rows(rows).with_producer(text(producer), whole(sequence))
        segment, reduced = facts["segment"], facts["reduced"]
        return replace(
            read,
            next_seq=max(whole(facts["next_seq"]), self.manifest.next_seq),
            closed_ts=whole(facts["closed_ts"]),
            segment=None if segment is None else Segment.from_json(segment),
            reduced=None if reduced is None else Reduced.from_json(reduced),
            tail=tuple(batch for batch in record.batches[:1] if batch.num_rows),
            queue=tuple(batch for batch in record.batches[1:] if batch.num_rows),
            producers={name: whole(last) for name, last in facts["producers"].items()},
        )


def whole(value: object) -> int:
    """Return a whole number of a log's JSON, refusing anything else."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        message = f"{value!r} is not a whole number"
        raise TypeError(message)
    return value


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
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return pa.concat_batches(batches)


def copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in memory of their own."""
    return rows_in(rows.serialize(), rows.schema)


def rows_in(message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of an Arrow message, in its memory."""
    return pa.ipc.read_record_batch(pa.ipc.read_message(message), schema)


def numbered(events: pa.RecordBatch, first_seq: int, manifest: Manifest) -> pa.RecordBatch:
    """Return events with their `seq`."""
    seq = int64_array(np.arange(first_seq, first_seq + events.num_rows, dtype=np.int64))
    columns = [events.column(0), seq, *events.columns[1:]]
    return pa.RecordBatch.from_arrays(columns, schema=manifest.schema.arrow)


class OpenStream:
    """The newest view of a stream that this process has seen, and the files it writes to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mutex = threading.RLock()
        self.held: View | None = None
        self.log: LogWriter | None = None
        self.writer: SegmentWriter | None = None
        self.meter = LoadMeter()

    def view(self) -> View:
        """Return the stream as it is now."""
        held = self.held
        if held is not None and self.is_current(held):
            return held
        with self.mutex:
            return self.refreshed()

    def is_current(self, view: View) -> bool:
        """Whether nobody has written since."""
        if not is_newest(self.folder, view.manifest.version):
            return False
        try:
            return os.stat(f"{self.folder}/{view.manifest.log}").st_size == view.log_end  # noqa: PTH116
        except FileNotFoundError:
            return False

    def refreshed(self) -> View:
        """Catch up with what is on the disk, and return it."""
        if self.held is not None and self.is_current(self.held):
            return self.held
        for attempt in range(READ_ATTEMPTS):
            try:
                view = self.read(strict=attempt == READ_ATTEMPTS - 1)
            except FileNotFoundError:
                # The log was replaced between the manifest and now, or the stream dropped.
                self.held = None
                continue
            if view is not None and is_newest(self.folder, view.manifest.version):
                self.held = view
                return view
        log = self.folder / load_manifest(self.folder).log
        if not log.exists():
            message = f"{log} is missing"
            raise StoreError(message, hint="`eventide repair` keeps what is in other files")
        message = f"{self.folder} changes faster than it can be read"
        raise StoreError(message, hint="try again; if nobody writes to it, run `eventide verify`")

    def read(self, *, strict: bool) -> View | None:
        """Read the manifest and the log's records; None if a record may be half written."""
        held = self.held
        if held is None or not is_newest(self.folder, held.manifest.version):
            manifest = load_manifest(self.folder)
            if held is None or held.manifest.log != manifest.log:
                held = View(manifest)
            else:
                # The same log under another manifest: only sealed segments have come or gone.
                next_seq = max(held.next_seq, manifest.next_seq)
                held = replace(held, manifest=manifest, next_seq=next_seq)
        path = self.folder / held.manifest.log
        with path.open("rb") as file:
            if held.log_end and not is_still_there(file, held.log_header, held.log_end):
                held = View(held.manifest)
            file.seek(held.log_end)
            content = file.read()
        if not content and held.log_end:
            return held
        schema = held.manifest.schema.arrow
        schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
        try:
            for record in read_records(
                content,
                stamp_of(path.name),
                schemas,
                origin=held.log_end,
                number=held.log_records,
                synced=held.manifest.options.durability == "batch",
            ):
                held = held.after(record)
            if not held.log_records:
                # The first checkpoint is synced before a manifest names the log: it cannot be torn.
                no_checkpoint = "its first record is missing"
                raise DamagedLogError(no_checkpoint)
        except DamagedLogError as error:
            if strict:
                raise damaged(path, str(error)) from error
            return None
        return replace(held, next_seq=max(held.next_seq, held.manifest.next_seq))

    @contextmanager
    def writing(self) -> Iterator[View]:
        """Hold the lock, and lend the newest view. After an error nothing has changed."""
        with self.mutex, write_lock(self.folder):
            view = self.refreshed()
            self.keep_handles_of(view)
            try:
                if was_lost(self.folder / view.manifest.log):
                    # Syncing it again would only seem to help: a new log gets all of it, from here.
                    view = self.commit(view)
                yield view
            except BaseException as error:
                self.close()
                if isinstance(error, OSError) and not isinstance(error, StoreError):
                    raise cannot_write(self.folder, error) from error
                raise

    def keep_handles_of(self, view: View) -> None:
        """Close files that another process has gone on without."""
        log, writer, segment = self.log, self.writer, view.segment
        if log is not None and (
            log.file.path.name != view.manifest.log or log.file.end != view.log_end
        ):
            log.file.close()
            self.log = None
        if writer is not None and (
            segment is None
            or segment.file != writer.file.path.name
            or segment.bytes != writer.file.end
        ):
            writer.close()
            self.writer = None

    def close(self) -> None:
        """Let go of all files; the next write opens them again."""
        if self.log is not None:
            self.log.file.close()
        if self.writer is not None:
            self.writer.close()
        self.log = self.writer = None

    def opened_log(self, view: View) -> LogWriter:
        """Return the log, ready for a record behind the last whole one."""
        if self.log is None:
            file = AppendFile.open(self.folder / view.manifest.log)
            if file.end != view.log_end:
                # Torn by a crash, or written by an append that failed: never acknowledged.
                file.cut(view.log_end)
            self.log = LogWriter(file, view.log_records)
        return self.log

    def record(
        self,
        view: View,
        following: View,
        kind: RecordKind,
        facts: Mapping[str, Any],
        batches: Sequence[Rows],
        *,
        sync: bool,
    ) -> View:
        """Log what leads from one view to the next, and make that the newest."""
        log = self.opened_log(view)
        try:
            log.append(kind, facts, batches)
            if sync:
                log.file.sync()
        except BaseException:
            with suppress(OSError):
                log.file.cut(view.log_end)
            raise
        self.held = replace(
            following, log_end=log.file.end, log_records=log.number, log_header=log.header
        )
        return self.held

    def commit(self, following: View) -> View:
        """Commit a manifest with a new log that holds the whole open end.

        `following.manifest` is the old one with what changed; version and log are set here.
        """
        old_log = following.manifest.log
        log = create_log(self.folder)
        facts, batches = following.checkpoint()
        try:
            log.append(RecordKind.CHECKPOINT, facts, batches)
            log.file.sync()
            # Otherwise a power failure could leave the manifest, and not the log it names.
            sync_folder(self.folder)
            manifest = replace(
                following.manifest,
                version=following.manifest.version + 1,
                log=log.file.path.name,
                next_seq=following.next_seq,
            )
            write_manifest(self.folder, manifest)
        except BaseException:
            log.file.close()
            if not is_listed(self.folder, log.file.path.name):
                remove(log.file.path)
            raise
        if self.log is not None:
            self.log.file.close()
        self.log = log
        self.held = replace(
            following,
            manifest=manifest,
            log_end=log.file.end,
            log_records=log.number,
            log_header=log.header,
        )
        remove(self.folder / old_log)
        return self.held

    def commit_manifest(self, following: View) -> View:
        """Commit a manifest that changes nothing about the open end."""
        # The manifest counts what is in the log, and may say that it is always synced.
        self.opened_log(following).file.sync()
        manifest = replace(
            following.manifest,
            version=following.manifest.version + 1,
            next_seq=following.next_seq,
        )
        write_manifest(self.folder, manifest)
        self.held = replace(following, manifest=manifest)
        return self.held


def is_listed(folder: Path, log: str) -> bool:
    """Whether the newest manifest names a log: once it does, its file must stay."""
    try:
        return load_manifest(folder).log == log
    except StoreError:
        return True


OPENED: dict[Path, OpenStream] = {}
OPENING = threading.Lock()


def forget_parent() -> None:
    """Begin anew in a forked child: a lock that another thread held there is never freed here."""
    global OPENING  # noqa: PLW0603
    OPENED.clear()
    OPENING = threading.Lock()


os.register_at_fork(after_in_child=forget_parent)


def forget(folder: Path) -> None:
    """Close the files of a stream that is dropped."""
    with OPENING:
        gone = OPENED.pop(folder, None)
    if gone is not None:
        with gone.mutex:
            gone.close()


def opened(folder: Path) -> OpenStream:
    """Return the one `OpenStream` of a folder in this process."""
    with OPENING:
        return OPENED.setdefault(folder, OpenStream(folder))
