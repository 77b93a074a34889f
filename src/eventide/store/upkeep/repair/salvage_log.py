"""Read a damaged log: every whole record counts, also behind a damaged one.

Records of events have the number of their first event, so that lost events show as a gap. A
checkpoint replaces everything before it: behind a whole one, earlier damage does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from eventide.store.segments.manifest import Manifest
from eventide.store.upkeep.verify_segment import MISSING
from eventide.store.writing.log import (
    DamagedLogError,
    Record,
    RecordKind,
    is_old,
    next_record,
    read_records,
    stamp_of,
)
from eventide.store.writing.log_sectors import written_bytes
from eventide.store.writing.old_log import has_header, next_old_record, read_old_records
from eventide.store.writing.view import StreamView

ROW_BYTES = 8
"""An event takes at least as many bytes of a log as its time does."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """What could be read of a log."""

    name: str
    view: StreamView | None = None
    """The stream after the whole records; None if there is none."""
    reason: str | None = None
    """What is wrong with the log, if something is."""
    gaps: tuple[range, ...] = ()
    """Numbers of events that damaged records may have had."""
    end: int = 0
    """Up to where whole records were found."""
    unread: int = 0
    """How many events the bytes behind `end` had at most, if they are damaged."""

    is_first_lost: bool = False
    """Whether the first record is damaged, and no checkpoint replaces it."""

    @property
    def next_seq(self) -> int:
        """From where on numbers are free, as far as is known."""
        return 0 if self.view is None else self.view.next_seq

    @property
    def is_whole(self) -> bool:
        """Whether all of the log could be read."""
        return self.view is not None and self.reason is None


def read_log(folder: Path, manifest: Manifest, name: str) -> LogReading:
    """Read all whole records of a log."""
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        return LogReading(name, reason=MISSING if is_gone else str(error))
    schema = manifest.schema.arrow
    schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
    synced, stamp = manifest.options.durability == "batch", stamp_of(name)
    old = is_old(content) or has_header(content, 0, stamp)
    read, following = (read_old_records, next_old_record) if old else (read_records, next_record)
    view, reason = StreamView(manifest, next_seq=manifest.next_seq), None
    gaps: list[range] = []
    start, number, unread, reached = 0, 0, 0, 0
    is_skipped = is_first_lost = False
    while True:
        place = {"origin": start, "number": number}
        rest = content[start:]
        try:
            for record in read(rest, stamp, schemas, **place, synced=synced):
                after = checked(view, record)
                if record.kind == RecordKind.CHECKPOINT:
                    gaps.clear()
                    is_first_lost = False
                elif is_skipped:
                    gaps.append(range(reached, record.facts["first_seq"]))
                view, is_skipped, reached = after, False, reached_by(record)
                start, number = record.end, number + 1
            break
        except DamagedLogError as error:
            reason = reason or str(error)
            found = following(content, start, stamp, number)
            if found is None:
                rest = content[start:]
                unread = (len(rest) if old else written_bytes(rest, stamp)) // ROW_BYTES
                break
            is_skipped, is_first_lost = True, is_first_lost or number == 0
            start, number = found
    if not view.log_records:
        return LogReading(name, None, reason or "its first record is missing", unread=unread)
    if name == manifest.log and view.log_end < manifest.log_end and not unread:
        # It was cut off at a record's end, or inside one that now looks as if it was torn.
        reason = reason or f"it ends at byte {view.log_end} of {manifest.log_end}"
        gaps.append(range(reached, manifest.next_seq))
    view = replace(view, next_seq=max(view.next_seq, manifest.next_seq))
    lost = tuple(gap for gap in gaps if gap)
    return LogReading(name, view, reason, lost, view.log_end, unread, is_first_lost)


def reached_by(record: Record) -> int:
    """Return from where on numbers were free after a record: the manifest may know more."""
    if record.kind == RecordKind.CHECKPOINT:
        return int(record.facts["next_seq"])
    return int(record.facts["first_seq"]) + int(record.batches[0].num_rows)


def checked(view: StreamView, record: Record) -> StreamView:
    """Return a view after a record, whose rows are what their columns say."""
    try:
        for batch in record.batches:
            batch.validate(full=True)
    except pa.ArrowException as error:
        raise DamagedLogError(str(error)) from error
    return view.after(record)
