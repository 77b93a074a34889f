"""One stream of a database: append, stage and commit, snapshot, compact."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.errors import SchemaError, StoreError, listed
from eventide.kernels.ordering import sorting_order
from eventide.schema import MAX_TS_US, MIN_TS_US, SEQ, TS, Schema
from eventide.store.compaction import (
    merge_segments,
    messy_runs,
    replaced,
    small_run,
    sweep,
    without_expired,
)
from eventide.store.durable import remove
from eventide.store.lock import write_lock
from eventide.store.manifest import Manifest, load_manifest, manifest_path, write_manifest
from eventide.store.order import int64_view
from eventide.store.segment import (
    SEGMENT_BYTES,
    SEGMENT_ROWS,
    Segment,
    StagedSegment,
    write_segments,
)
from eventide.store.snapshot import Snapshot

# A retry comes soon after the first try. Ten thousand ids are half a megabyte of manifest.
REMEMBERED_COMMIT_IDS = 10_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Appended:
    """What a commit added: `rows` events, numbered from `first_seq`."""

    rows: int
    first_seq: int


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream in a folder. Holds no state of its own: every call reads the newest manifest."""

    name: str
    schema: Schema
    path: Path

    def append(self, events: pa.Table) -> Appended:
        """Add events, in any order of time; `seq` numbers follow the order of the rows.

        The events are `ts` and the attributes, with exactly the schema's types. When this
        returns they are on the disk; if it raises, none of them is visible.
        """
        staged = self.stage(events.to_batches() or [pa.RecordBatch.from_pylist([], events.schema)])
        try:
            return self.commit([staged])
        except BaseException:
            with contextlib.suppress(StoreError):
                self.remove_unlisted([staged], self.current())
            raise

    def stage(self, events: Iterable[pa.RecordBatch]) -> StagedSegment:
        """Write events to files that are not part of the stream until `commit`.

        The result can be pickled, or sent as JSON, to the process that commits. What is neither
        committed nor discarded is swept after a day.
        """
        segments: list[Segment] = []
        try:
            for chunk in self.chunks(events):
                segments += write_segments(self.path, numbered_and_sorted(chunk, self.schema))
        except BaseException:
            self.remove_files(segments)
            raise
        return StagedSegment(tuple(segments))

    def commit(self, staged: Sequence[StagedSegment], commit_id: str | None = None) -> Appended:
        """Add staged events in the order given, all at once.

        A `commit_id` that the stream has seen among its last 10,000 adds nothing: the staged
        files are discarded, and the result has no rows. That makes retries safe.
        """
        with write_lock(self.path):
            manifest = self.current()
            if commit_id is not None and commit_id in manifest.commit_ids:
                self.remove_unlisted(staged, manifest)
                return Appended(0, manifest.next_seq)
            self.check_staged(staged, manifest)
            following = with_staged(manifest, staged, commit_id)
            if following != manifest:
                self.publish(following, [s for part in staged for s in part.segments])
                self.merge_small(following)
            return Appended(following.next_seq - manifest.next_seq, manifest.next_seq)

    def discard(self, staged: Sequence[StagedSegment]) -> None:
        """Delete staged files. Files that were committed after all stay."""
        with write_lock(self.path):
            self.remove_unlisted(staged, self.current())

    def snapshot(self) -> Snapshot:
        """Return the stream as it is now."""
        return Snapshot(self.path, self.current())

    def compact(self) -> int:
        """Merge small and overlapping segments, and delete files nobody needs any more.

        Returns how many segments were merged into others. Readers are not disturbed; see
        compaction.py for how long they can count on the replaced files.
        """
        with write_lock(self.path):
            manifest = self.current()
            before = manifest.files
            merged = 0
            for run in messy_runs(manifest.segments):
                if len(run) > 1:
                    manifest = self.merge_run(manifest, run)
                    merged += len(run)
            trimmed = without_expired(manifest, time.time())
            if trimmed != manifest:
                write_manifest(self.path, trimmed)
            sweep(self.path, trimmed, before, time.time())
        return merged

    def current(self) -> Manifest:
        """Read the newest manifest, making sure that it is still the same stream."""
        manifest = load_manifest(self.path)
        if manifest.schema != self.schema:
            message = f"stream {self.name!r} was dropped and created with another schema"
            raise StoreError(message, hint="open the stream again")
        return manifest

    def chunks(self, events: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield checked events in tables of about a segment's size."""
        expected = pa.schema([field for field in self.schema.arrow if field.name != SEQ])
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in events:
            check_events(batch, expected)
            for start in range(0, batch.num_rows, SEGMENT_ROWS):
                waiting.append(batch.slice(start, SEGMENT_ROWS))
                rows, size = rows + waiting[-1].num_rows, size + waiting[-1].nbytes
                if rows >= SEGMENT_ROWS or size >= SEGMENT_BYTES:
                    yield pa.Table.from_batches(waiting, expected)
                    waiting, rows, size = [], 0, 0
        if waiting:
            yield pa.Table.from_batches(waiting, expected)

    def check_staged(self, staged: Sequence[StagedSegment], manifest: Manifest) -> None:
        """Refuse files that are gone, cut short, or in the stream already."""
        for segment in (segment for part in staged for segment in part.segments):
            path = self.path / segment.file
            if segment.file in manifest.files:
                message = f"{path} was committed before"
                raise StoreError(message, hint="stage again, or pass a commit_id to retry safely")
            if not path.exists() or path.stat().st_size != segment.bytes:
                message = f"staged file {path} is missing or incomplete"
                raise StoreError(
                    message, hint="it was discarded, or staged over a day ago: stage again"
                )

    def publish(self, manifest: Manifest, written: Sequence[Segment]) -> None:
        """Commit a version; if that fails, delete the files it would have added."""
        try:
            write_manifest(self.path, manifest)
        except BaseException:
            # Once the manifest is there its files must stay, even if the last fsync failed.
            if not manifest_path(self.path, manifest.version).exists():
                self.remove_files(written)
            raise

    def merge_run(self, manifest: Manifest, run: Sequence[Segment]) -> Manifest:
        """Merge some segments, commit, sweep, and return the new version."""
        merged = merge_segments(self.path, self.schema, run)
        following = replaced(manifest, run, merged, time.time())
        self.publish(following, merged)
        sweep(self.path, following, manifest.files, time.time())
        return following

    def merge_small(self, manifest: Manifest) -> None:
        """Merge small segments where many have piled up. The events are safe either way."""
        try:
            while run := small_run(manifest.segments):
                manifest = self.merge_run(manifest, run)
        except OSError as error:
            log.warning("stream %s could not be compacted: %s", self.name, error)

    def remove_unlisted(self, staged: Sequence[StagedSegment], manifest: Manifest) -> None:
        """Delete staged files unless they are part of the stream."""
        self.remove_files(
            [s for part in staged for s in part.segments if s.file not in manifest.files]
        )

    def remove_files(self, segments: Iterable[Segment]) -> None:
        """Delete segment files that no manifest lists."""
        for segment in segments:
            remove(self.path / segment.file)


def with_staged(
    manifest: Manifest, staged: Sequence[StagedSegment], commit_id: str | None
) -> Manifest:
    """Return the next version, with staged segments numbered; the same one if there is nothing."""
    segments = list(manifest.segments)
    next_seq = manifest.next_seq
    for segment in (segment for part in staged for segment in part.segments):
        segments.append(replace(segment, first_seq=next_seq))
        next_seq += segment.rows
    commit_ids = manifest.commit_ids if commit_id is None else (*manifest.commit_ids, commit_id)
    if next_seq == manifest.next_seq and commit_id is None:
        return manifest
    return replace(
        manifest,
        version=manifest.version + 1,
        next_seq=next_seq,
        segments=tuple(segments),
        commit_ids=commit_ids[-REMEMBERED_COMMIT_IDS:],
    )


def check_events(batch: pa.RecordBatch, expected: pa.Schema) -> None:
    """Refuse rows that do not fit the stream."""
    if batch.schema != expected:
        found = listed([f"{field.name} {field.type}" for field in batch.schema])
        message = f"the events have {found}"
        wanted = listed([f"{field.name} {field.type}" for field in expected])
        raise SchemaError(message, hint=f"the stream takes {wanted}, in this order")
    if batch.column(TS).null_count:
        message = "ts is null in some row"
        raise SchemaError(message, hint="every event has a time")
    ts = int64_view(batch.column(TS))
    if len(ts) and not (ts.min() >= MIN_TS_US and ts.max() <= MAX_TS_US):
        message = "ts lies outside the years 0001 to 9999 in some row"
        raise SchemaError(message, hint="ts counts microseconds since 1970-01-01 UTC")


def numbered_and_sorted(events: pa.Table, schema: Schema) -> list[pa.RecordBatch]:
    """Add `seq` from 0 in the order of the rows, then sort by time."""
    seq = np.arange(events.num_rows, dtype=np.int64)
    events = events.add_column(1, SEQ, pa.array(seq)).cast(schema.arrow)
    order = sorting_order(int64_view(events.column(TS)))
    if order is not None:
        events = events.take(pa.array(order))
    batches: list[pa.RecordBatch] = events.combine_chunks().to_batches()
    return batches
