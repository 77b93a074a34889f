"""A stream as it was at one moment."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from eventide.errors import StoreError
from eventide.instants import ALL_TIME, TimeRange, moment
from eventide.kernels.compiled import Int64s
from eventide.schema import TS, Schema
from eventide.store.index.ranges import ValueRange, checked
from eventide.store.order import int64_view
from eventide.store.reading.scan import StreamColumns, Wanted, chosen, scan_parts, wanted_leaves
from eventide.store.segments.listing import SegmentList
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place, touching
from eventide.store.source import NO_TIME, TimeSlice, Where, balanced_slices
from eventide.store.writing.open_stream import opened
from eventide.store.writing.view import StreamView

FINEST = 4
"""Slices are cut from parts of the index that have a fourth of the rows of a slice, or fewer."""
MEMORY_PERIOD_ROWS = 4096
T = TypeVar("T")


class Snapshot:
    """An immutable, consistent view of a stream: an `EventSource`.

    It has everything that was appended before it was taken: sealed segments, the open one, and
    events that are only in the log. Later appends are not in it. Files that compaction replaces
    stay for an hour, so a snapshot can be read for at least that long. Pickled, another process
    that sees the folder reads exactly the same events.
    """

    __slots__ = ("path", "view")

    def __init__(self, path: Path, view: StreamView) -> None:
        self.path = path
        self.view = view

    def __reduce__(self) -> tuple[object, ...]:
        tail, queue = self.view.sorted_tail, self.view.sorted_queue
        # Whoever gets it reads the index itself.
        view = replace(self.view, tail=(tail,), queue=(queue,), directories={})
        return Snapshot, (self.path, view)

    def __repr__(self) -> str:
        return f"<Snapshot {self.name} version {self.version}: {self.row_count:,} events>"

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.path.name

    @property
    def manifest(self) -> Manifest:
        """The manifest behind it."""
        return self.view.manifest

    @property
    def version(self) -> int:
        """The number of the manifest."""
        return self.manifest.version

    @property
    def schema(self) -> Schema:
        """The stream's schema."""
        return self.manifest.schema

    @property
    def columns(self) -> StreamColumns:
        """The columns, with the identities that tell them apart in segments."""
        return StreamColumns(self.schema, self.manifest.column_ids)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, the open one last; without those of which some events have expired."""
        return self.view.segments

    @property
    def expiring(self) -> tuple[Segment, ...]:
        """The segments of which some events have expired, and others have not."""
        return () if self.view.expiring is None else self.view.expiring.segments

    @property
    def memory(self) -> tuple[pa.RecordBatch, ...]:
        """The events that are in none of these segments, in memory, each part in order."""
        held = (self.view.sorted_tail, self.view.sorted_queue)
        return held if self.view.expiring is None else (*held, self.view.expiring.rows)

    @property
    def row_count(self) -> int:
        """How many events there are."""
        view = self.view
        open_rows = 0 if view.segment is None or view.segment.thinned else view.segment.rows
        expiring = 0 if view.expiring is None else view.expiring.row_count
        return self.manifest.segments.rows + open_rows + view.logged_rows + expiring

    @property
    def time_range(self) -> TimeRange:
        """[first ts, last ts + 1), or an empty range if there are no events."""
        periods = [(s.ts_min, s.ts_max) for s in self.segments if not s.thinned]
        for rows in (self.view.sorted_tail, self.view.sorted_queue):
            if rows.num_rows:
                ts = int64_view(rows.column(TS))
                periods.append((int(ts[0]), int(ts[-1])))
        if self.view.expiring is not None and self.view.expiring.row_count:
            periods.append(self.view.expiring.extent[1:])
        if not periods:
            return NO_TIME
        return TimeRange(min(low for low, _ in periods), max(high for _, high in periods) + 1)

    @property
    def size(self) -> int:
        """How many bytes the events take on disk, with their indexes."""
        logged = self.view.log_end if self.view.logged_rows else 0
        stored = (*self.segments, *self.expiring)
        indexed = sum(
            max((start + length for start, length in index.extents), default=0)
            for segment in stored
            for index in segment.indexes
        )
        return sum(segment.bytes for segment in stored) + indexed + logged

    @property
    def known_range(self) -> TimeRange:
        """Like `time_range`, with the periods of which only aggregates are left."""
        periods = [segment.time_range for segment in self.segments if segment.thinned]
        if not self.time_range.is_empty:
            periods.append(self.time_range)
        if not periods:
            return NO_TIME
        return TimeRange(min(s.start_us for s in periods), max(s.end_us for s in periods))

    def rows_in(self, time_range: TimeRange) -> int:
        """Return about how many events a time range has, if segments are evenly filled."""
        total = 0.0
        for segment in (*self.segments, *self.expiring):
            own = segment.time_range
            inside = own.intersect(time_range)
            share = max(0, inside.end_us - inside.start_us) / (own.end_us - own.start_us)
            total += 0 if segment.thinned else segment.rows * share
        return round(total) + self.view.logged_rows

    def check_whole(self, time_range: TimeRange) -> None:
        """Refuse to read events of a period that has been thinned to aggregates."""
        for segment in self.segments:
            if segment.thinned and time_range.overlaps(segment.time_range):
                message = f"events of {self.name} in this period were thinned to aggregates"
                hint = (
                    f"ask for events after {moment(segment.ts_max)}, with a condition on ts or "
                    "`start`; stream.aggregate still answers for the others"
                )
                raise StoreError(message, hint=hint)

    def scan(
        self,
        columns: Sequence[str],
        time_range: TimeRange = ALL_TIME,
        where: Where | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the events of a time range in order of (ts, _seq), in batches, none empty.

        With `where`, only those whose attributes meet every condition; leaves that cannot have
        such events are not read.
        """
        self.schema.check_scanned(columns)
        self.check_whole(time_range)
        wanted = self.wanted(columns, time_range, where or {})
        if where:
            opened(self.path).meter.ask(where)
        logged = (self.view.sorted_tail, self.view.sorted_queue)
        return scan_parts(self.path, self.segments, logged, wanted, self.view.expiring)

    def wanted(self, columns: Sequence[str], time_range: TimeRange, where: Where) -> Wanted:
        """Return what a scan asks for, checked against the schema."""
        return Wanted(self.columns, tuple(columns), time_range, self.conditions(where))

    def conditions(self, where: Where) -> dict[str, ValueRange]:
        """Check conditions against the schema."""
        return {
            name: checked(ValueRange.of(condition), self.schema.type_of(name))
            for name, condition in where.items()
        }

    def within(self, time_range: TimeRange) -> Snapshot:
        """Return the snapshot restricted to a time range.

        It answers the same there, and is small when it is pickled: a task is sent only the segments
        that it reads, and only its own part of the events that are in none yet.
        """
        touched = [each for each in self.segments if time_range.overlaps(each.time_range)]
        sealed = tuple(each for each in touched if each is not self.view.segment)
        logged = (self.view.sorted_tail, self.view.sorted_queue)
        tail, queue = (copied_within(rows, time_range) for rows in logged)
        expiring = self.view.expiring
        view = replace(
            self.view,
            manifest=replace(self.manifest.bare(), segments=SegmentList(sealed)),
            segment=self.view.segment if len(sealed) < len(touched) else None,
            tail=(tail,),
            queue=(queue,),
            expiring=None if expiring is None else expiring.touching(time_range),
            producers={},
        )
        return Snapshot(self.path, view)

    def since(self, seq: int) -> Snapshot:
        """Return the snapshot without segments that have only events numbered below `seq`."""
        recent = [each for each in self.segments if each.seq_offset + each.seq_max >= seq]
        sealed = tuple(each for each in recent if each is not self.view.segment)
        view = replace(
            self.view,
            manifest=replace(self.manifest, segments=SegmentList(sealed)),
            segment=self.view.segment if len(sealed) < len(recent) else None,
        )
        return Snapshot(self.path, view)

    def found(self, question: Hashable, find: Callable[[], T]) -> T:
        """Return the result of `find`; later calls return the same until the stream has grown."""
        asked = (self.manifest.stream_id, question)
        return opened(self.path).findings.get(asked, self.row_count, find)

    def slices(
        self, time_range: TimeRange, target_rows: int, where: Where | None = None
    ) -> list[TimeSlice]:
        """Cut a time range into disjoint, ordered slices of about `target_rows` rows each.

        With `where`, count rows in leaves that may meet it; a slice without such leaves is left
        out.
        """
        wanted = self.wanted((TS,), time_range, where or {})
        periods: list[tuple[int, int, int]] = []
        for segment in self.segments:
            if segment.thinned or not time_range.overlaps(segment.time_range):
                continue
            if where:
                leaves = wanted_leaves(self.path, segment, wanted)
                periods += [(each.first_key[0], each.last_key[0], each.rows) for each in leaves]
            else:
                periods += segment_periods(self.path, segment, time_range, target_rows // FINEST)
        for segment in self.expiring:
            if time_range.overlaps(segment.time_range):
                periods += segment_periods(self.path, segment, time_range, target_rows // FINEST)
        for rows in (self.view.sorted_tail, self.view.sorted_queue):
            found = chosen(rows, wanted, (TS,), cut=True) if where else rows
            if found.num_rows:
                periods += memory_periods(int64_view(found.column(TS)))
        return balanced_slices(periods, time_range, target_rows)


def copied_within(rows: pa.RecordBatch, time_range: TimeRange) -> pa.RecordBatch:
    """Return the rows of a time range, copied: a slice would be pickled with the whole array."""
    bounds = [time_range.start_us, time_range.end_us]
    start, end = np.searchsorted(int64_view(rows.column(TS)), bounds)
    if start == 0 and end == rows.num_rows:
        return rows
    return rows.take(pa.array(np.arange(start, max(start, end))))


def segment_periods(
    folder: Path, segment: Segment, time_range: TimeRange, fine_rows: int
) -> list[tuple[int, int, int]]:
    """Return (first ts, last ts, rows) of parts of a segment, read no deeper than needed."""
    tree = segment.tree(folder)
    periods: list[tuple[int, int, int]] = []
    waiting = [(entries, level) for level, entries in enumerate(tree.levels)]
    while waiting:
        entries, level = waiting.pop()
        parts = zip(
            touching(entries, time_range).tolist(),
            *(place(entries, name).tolist() for name in ("ts_min", "ts_max", "rows")),
            strict=True,
        )
        for row, (touches, ts_min, ts_max, rows) in enumerate(parts):
            if not touches:
                continue
            if level and rows > fine_rows:
                waiting.append((tree.child(entries, row), level - 1))
            else:
                periods.append((ts_min, ts_max, rows))
    return periods


def memory_periods(ts: Int64s) -> list[tuple[int, int, int]]:
    """Return (first ts, last ts, rows) of runs of sorted times."""
    starts = np.arange(0, len(ts), MEMORY_PERIOD_ROWS)
    ends = np.append(starts[1:], len(ts))
    return [
        (int(ts[start]), int(ts[end - 1]), int(end - start))
        for start, end in zip(starts, ends, strict=True)
    ]
