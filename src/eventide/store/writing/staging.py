"""Events in files that are not part of a stream yet: write them, commit them, delete them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from eventide.errors import StoreError
from eventide.schema import Schema
from eventide.store.files.disk import remove
from eventide.store.order import sort_rows
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import Segment, StagedSegment, placed
from eventide.store.segments.segment_writer import SEGMENT_BYTES, SEGMENT_ROWS, write_segments
from eventide.store.writing.rows import checked_rows
from eventide.store.writing.view import StreamView, rows_with_seq

# A retry comes soon after the first try. Ten thousand ids are half a megabyte of manifest.
REMEMBERED_COMMIT_IDS = 10_000


def write_staged(
    folder: Path, manifest: Manifest, events: Iterable[pa.RecordBatch]
) -> StagedSegment:
    """Write events to files beside those of a stream."""
    form = replace(manifest.form, in_order=True)
    segments: list[Segment] = []
    first_seq = 0
    try:
        for chunk in chunks(events, manifest.schema):
            rows = sort_rows(rows_with_seq(chunk, first_seq))
            first_seq += rows.num_rows
            segments += write_segments(folder, form, [rows], manifest.options.indexes)
    except BaseException:
        remove_files(folder, segments)
        raise
    return StagedSegment(tuple(segments))


def chunks(events: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Yield checked events in batches of about a segment's size."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in events:
        checked = checked_rows(pa.Table.from_batches([batch]), schema)
        for start in range(0, checked.num_rows, SEGMENT_ROWS):
            waiting.append(checked.slice(start, SEGMENT_ROWS))
            rows, size = rows + waiting[-1].num_rows, size + waiting[-1].nbytes
            if rows >= SEGMENT_ROWS or size >= SEGMENT_BYTES:
                yield pa.concat_batches(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


def check_staged(folder: Path, staged: Sequence[StagedSegment], manifest: Manifest) -> None:
    """Refuse files that are gone, cut short, in the stream already, or given twice."""
    seen = set(manifest.files)
    for segment in (segment for part in staged for segment in part.segments):
        path = folder / segment.file
        if segment.file in seen:
            message = f"{path} was committed before"
            raise StoreError(message, hint="stage again, or pass a commit_id to retry safely")
        if not path.exists() or path.stat().st_size != segment.bytes:
            message = f"staged file {path} is missing or incomplete"
            raise StoreError(
                message, hint="it was discarded, or staged over a day ago: stage again"
            )
        seen.add(segment.file)


def with_staged(
    view: StreamView, staged: Sequence[StagedSegment], commit_id: str | None
) -> StreamView:
    """Return the view with staged segments in their places; the same one if there is nothing."""
    segments: list[Segment] = []
    next_seq = view.next_seq
    for part in staged:
        for segment in part.segments:
            segments.append(placed(segment, next_seq))
        next_seq += part.rows
    if next_seq == view.next_seq and commit_id is None:
        return view
    ids = view.manifest.commit_ids
    manifest = replace(
        view.manifest,
        segments=view.manifest.segments.with_more(segments),
        commit_ids=ids if commit_id is None else (*ids, commit_id)[-REMEMBERED_COMMIT_IDS:],
    )
    return replace(view, manifest=manifest, next_seq=next_seq)


def remove_unlisted(folder: Path, staged: Sequence[StagedSegment], view: StreamView) -> None:
    """Delete staged files unless they are part of the stream."""
    files = view.manifest.files
    remove_files(folder, [s for part in staged for s in part.segments if s.file not in files])


def remove_files(folder: Path, segments: Iterable[Segment]) -> None:
    """Delete the files of segments that no manifest lists."""
    for segment in segments:
        for name in segment.files:
            remove(folder / name)
