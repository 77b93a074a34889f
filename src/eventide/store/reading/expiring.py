"""Segments of which some events have expired and others have not.

A stream may keep each event until a time that the event itself names. What has expired is in no
answer, but its bytes are freed later, with a whole file. Segments that are entirely alive are read
as in any other stream. Of the others the index says nothing certain: they are read, and events that
are gone are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import no_rows
from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import SEQ, TS
from eventide.store.order import int64_view, sort_rows
from eventide.store.reading.scan import StreamColumns, Wanted, scan_parts
from eventide.store.segments.segment import Segment

NO_EVENTS = (0, 0, 0)


def alive(rows: pa.RecordBatch, attribute: str, now_us: int) -> pa.RecordBatch:
    """Return the rows that are not gone: a row is gone at the very time that it names.

    >>> times = pa.array([4, 5, 6, None], pa.timestamp("us"))
    >>> alive(pa.record_batch({"until": times}), "until", 5).num_rows
    2
    """
    until = rows.column(attribute)
    lasts = pc.fill_null(pc.greater(until, pa.scalar(now_us, until.type)), True)
    return rows if pc.all(lasts).as_py() is not False else rows.filter(lasts)


@dataclass(frozen=True)
class ExpiringSegments:
    """Some segments, read without what is gone at a time."""

    folder: Path
    columns: StreamColumns
    attribute: str
    now_us: int
    segments: tuple[Segment, ...]
    earlier: pa.RecordBatch | None = None
    """What was left of some of them at an earlier time, with all columns, in order."""
    unread: tuple[Segment, ...] = ()
    """Those of them whose events are not in `earlier`."""

    def __reduce__(self) -> tuple[object, ...]:
        # Without the events that were read: whoever gets it reads what it needs.
        fields = (self.folder, self.columns, self.attribute, self.now_us, self.segments)
        return ExpiringSegments, fields

    def among(self, segments: Sequence[Segment]) -> ExpiringSegments | None:
        """Return the same of some of its segments; None if there are none."""
        if len(segments) == len(self.segments):
            return self
        return replace(self, segments=tuple(segments), earlier=None) if segments else None

    def later(self, now_us: int, segments: tuple[Segment, ...]) -> ExpiringSegments:
        """Return the same at a later time, when more segments have begun to expire.

        Those of its segments that are not among them have no events any more.
        """
        after = replace(self, now_us=now_us, segments=segments)
        rows = self.__dict__.get("rows")
        if rows is None:
            return replace(after, earlier=None)
        known = {segment.file for segment in self.segments}
        unread = tuple(each for each in segments if each.file not in known)
        return replace(after, earlier=rows, unread=unread)

    def scan(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield the wanted events that are not gone, in order, in batches."""
        return scan_parts(self.folder, (), (), wanted, self)

    def left(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are not gone."""
        return alive(rows, self.attribute, self.now_us)

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """All events that are not gone, in order, with all columns."""
        schema = self.columns.schema.arrow
        wanted = Wanted(self.columns, tuple(schema.names), ALL_TIME, {})
        if self.earlier is None:
            return pa.concat_batches([no_rows(schema), *self.scan(wanted)])
        # Each event that comes ends some others: what is left is not read again for that.
        left = self.left(self.earlier)
        if not self.unread:
            return left
        begun = replace(self, segments=self.unread, earlier=None)
        return sort_rows(pa.concat_batches([left, *begun.scan(wanted)]))

    @cached_property
    def extent(self) -> tuple[int, int, int]:
        """How many events are not gone, and the times of the first and the last of them."""
        if self.earlier is not None:
            ts = int64_view(self.rows.column(TS))
            return (len(ts), int(ts[0]), int(ts[-1])) if len(ts) else NO_EVENTS
        count = first = last = 0
        for rows in self.scan(Wanted(self.columns, (TS, SEQ), ALL_TIME, {})):
            if rows.num_rows:
                ts = int64_view(rows.column(TS))
                first, last = (first if count else int(ts[0])), int(ts[-1])
                count += rows.num_rows
        return (count, first, last) if count else NO_EVENTS

    @property
    def row_count(self) -> int:
        """How many events are not gone."""
        return self.extent[0]

    def touching(self, time_range: TimeRange) -> ExpiringSegments | None:
        """Return the same of the segments that touch a time range; None if none does."""
        return self.among([s for s in self.segments if time_range.overlaps(s.time_range)])
