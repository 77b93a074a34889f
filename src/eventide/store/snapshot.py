"""A stream as it was at one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from eventide.batch import ALL_TIME, TimeRange
from eventide.schema import Schema
from eventide.store.manifest import Manifest
from eventide.store.scan import SegmentReader, scan_segments
from eventide.store.source import NO_TIME, TimeSlice, balanced_slices, check_columns


class Snapshot:
    """An immutable, consistent view of a stream: an `EventSource`.

    Appends do not show in it. Compaction keeps the files it replaced for an hour, so a snapshot
    can be read for at least that long. Pickled, it is the folder's path and the manifest, so
    another process that sees the folder reads exactly the same events.
    """

    __slots__ = ("manifest", "path")

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    def __repr__(self) -> str:
        return f"<Snapshot {self.name} version {self.version}: {self.row_count:,} events>"

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.path.name

    @property
    def version(self) -> int:
        """The number of the commit."""
        return self.manifest.version

    @property
    def schema(self) -> Schema:
        """The stream's schema."""
        return self.manifest.schema

    @property
    def row_count(self) -> int:
        """How many events there are."""
        return sum(segment.rows for segment in self.manifest.segments)

    @property
    def time_range(self) -> TimeRange:
        """[first ts, last ts + 1), or an empty range if there are no events."""
        segments = self.manifest.segments
        if not segments:
            return NO_TIME
        return TimeRange(min(s.min_ts for s in segments), max(s.max_ts for s in segments) + 1)

    def scan(
        self, columns: Sequence[str], time_range: TimeRange = ALL_TIME
    ) -> Iterator[pa.RecordBatch]:
        """Yield the events of a time range in order of (ts, seq), in batches, none empty."""
        check_columns(self.schema, columns)
        reader = SegmentReader(self.path, self.schema, time_range)
        return scan_segments(reader, self.manifest.segments, columns)

    def slices(self, time_range: TimeRange, target_rows: int) -> list[TimeSlice]:
        """Cut a time range into disjoint, ordered slices of about `target_rows` rows each."""
        spans = [
            (block.min_ts, block.max_ts, block.rows)
            for segment in self.manifest.segments
            for block in segment.blocks
        ]
        return balanced_slices(spans, time_range, target_rows)
