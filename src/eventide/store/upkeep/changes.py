"""Changes to how a stream is stored: options, columns, retention, maintenance, backup."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eventide.errors import SchemaError, StoreError, listed
from eventide.instants import moment
from eventide.schema import DELETED, DOCUMENT, Attribute
from eventide.store.files.disk import remove
from eventide.store.index.correlation import choose_indexes
from eventide.store.options import StreamOptions
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.manifest import KEPT_DECISIONS, Decision, Manifest, manifest_path
from eventide.store.segments.segment import Segment
from eventide.store.upkeep.compaction import replaced, sweep, without_expired
from eventide.store.upkeep.maintenance import Job
from eventide.store.writing.flush import flush
from eventide.store.writing.open_stream import OpenStream
from eventide.store.writing.view import StreamView

MOST_CORRELATED = 0.95
"""Above this temporal correlation a secondary index is not worth its cost."""


def noted(manifest: Manifest, what: str) -> Manifest:
    """Return the manifest with one more decision."""
    decisions = (*manifest.decisions, Decision(time.time(), what))
    return replace(manifest, decisions=decisions[-KEPT_DECISIONS:])


def change_options(
    stream: OpenStream, view: StreamView, options: StreamOptions, *, split: bool
) -> StreamView:
    """Commit other options. They hold for the segment that begins next: `split` begins one."""
    options.checked(view.manifest.schema)
    if options.keep_until is not None and any(each.thinned for each in view.manifest.segments):
        message = f"{stream.folder.name} has periods of which only aggregates are left"
        hint = "drop_before drops them; then keep can name an attribute"
        raise StoreError(message, hint=hint)
    if split:
        view = flush(stream, view, everything=True, seal=True)
    return stream.commit_manifest(replace(view, manifest=replace(view.manifest, options=options)))


def add_column(stream: OpenStream, view: StreamView, attribute: Attribute) -> StreamView:
    """Add a nullable column at a segment boundary; events before it have null."""
    schema = view.manifest.schema
    grown = replace(schema, attributes=(*schema.attributes, attribute))
    view.manifest.options.checked(grown)
    view = flush(stream, view, everything=True, seal=True)
    manifest = view.manifest
    following = replace(
        manifest,
        schema=grown,
        column_ids=(*manifest.column_ids, manifest.next_column_id),
        next_column_id=manifest.next_column_id + 1,
    )
    return stream.commit(replace(view, manifest=following))


def drop_column(stream: OpenStream, view: StreamView, name: str) -> StreamView:
    """Remove a column at a segment boundary. Its bytes go with the next compaction."""
    manifest = view.manifest
    if name not in manifest.schema.names:
        message = f"no attribute {name!r}"
        raise SchemaError(message, hint=f"there are {listed(manifest.schema.names)}")
    if name in (*manifest.schema.key, DELETED) and manifest.schema.key:
        message = f"{name!r} belongs to a relation: it tells its rows apart, or that one is gone"
        raise SchemaError(message, hint="create another relation, and copy the rows")
    if name == DOCUMENT and manifest.schema.documents is not None:
        message = f"{name!r} has the documents of the stream"
        raise SchemaError(message, hint="drop_stream deletes it with all of them")
    if name == manifest.options.keep_until:
        message = f"{name!r} says until when events are kept"
        raise SchemaError(message, hint="configure(keep=None) keeps all of them from then on")
    view = flush(stream, view, everything=True, seal=True)
    manifest = view.manifest
    kept = [
        (attribute, identity)
        for attribute, identity in zip(manifest.schema.attributes, manifest.column_ids, strict=True)
        if attribute.name != name
    ]
    following = replace(
        manifest,
        schema=replace(manifest.schema, attributes=tuple(attribute for attribute, _ in kept)),
        column_ids=tuple(identity for _, identity in kept),
        options=manifest.options.without_attribute(name),
    )
    return stream.commit(replace(view, manifest=following))


def choose_by_correlation(stream: OpenStream, view: StreamView) -> StreamView:
    """Add and drop secondary indexes by the correlation of the newest segment (`auto_index`).

    Where values change little from event to event, the minima and maxima of the time index rule
    out most leaves already, and a secondary index would only cost.
    """
    options, segments = view.manifest.options, view.manifest.segments
    if not options.auto_index or not segments:
        return view
    newest = max(segments, key=lambda segment: segment.last_key)
    present = StreamColumns(view.manifest.schema, view.manifest.column_ids)
    measured = {
        name: tc
        for name, tc in newest.correlation
        if name in view.manifest.schema.names and present.stored_in(newest, [name])
    }
    useful = choose_indexes(measured, MOST_CORRELATED).useful
    texts = tuple(name for name in options.indexes if name not in measured)
    chosen = (*texts, *useful)
    if set(chosen) == set(options.indexes):
        return view
    said = {
        name: f"{measured[name]:.3f}" for name in (*options.indexes, *useful) if name in measured
    }
    note = f"secondary indexes are now on {listed(chosen) or 'nothing'}, by correlation {said}"
    manifest = noted(replace(view.manifest, options=replace(options, indexes=chosen)), note)
    return stream.commit_manifest(replace(view, manifest=manifest))


def commit_jobs(
    stream: OpenStream,
    view: StreamView,
    jobs: Sequence[Job],
    results: Sequence[tuple[Segment, ...]],
    *,
    note: str | None = None,
) -> list[Job]:
    """Commit what jobs have written, all at once, and sweep; return the jobs that counted.

    A job whose segments are no longer listed does not count: what it has written is deleted.
    """
    manifest = view.manifest
    counted: list[Job] = []
    for job, come in zip(jobs, results, strict=True):
        listed_now = {segment.file for segment in manifest.segments}
        if all(segment.file in listed_now for segment in job.segments):
            # Another job may have given the same segment another index meanwhile.
            come = merged_indexes(manifest, come)  # noqa: PLW2901
            manifest = replaced(manifest, job.segments, come, time.time())
            counted.append(job)
        else:
            remove_new(stream.folder, come, view)
    if not counted:
        return []
    following = replace(view, manifest=manifest if note is None else noted(manifest, note))
    try:
        done = stream.commit_manifest(following)
    except BaseException:
        if not manifest_path(stream.folder, following.manifest.version + 1).exists():
            remove_new(stream.folder, [each for come in results for each in come], view)
        raise
    sweep(stream.folder, done.files, view.manifest.files, time.time())
    return counted


def merged_indexes(manifest: Manifest, come: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return segments with the indexes that the manifest lists for them as well."""
    known = {segment.file: segment.indexes for segment in manifest.segments}
    return tuple(
        replace(
            segment, indexes=tuple(dict.fromkeys((*known.get(segment.file, ()), *segment.indexes)))
        )
        for segment in come
    )


def remove_new(folder: Path, written: Sequence[Segment], view: StreamView) -> None:
    """Delete files that a failed commit would have listed."""
    for segment in written:
        for name in segment.files:
            if name not in view.files:
                remove(folder / name)


def drop_before(
    stream: OpenStream, view: StreamView, before: int, note: str
) -> tuple[StreamView, int]:
    """Drop the segments that end before a time; return how many events that were."""
    gone = [segment for segment in view.manifest.segments if segment.ts_max < before]
    if not gone:
        return view, 0
    manifest = noted(replaced(view.manifest, gone, (), time.time()), note)
    limit = max(before, manifest.dropped_before or before)
    done = stream.commit_manifest(replace(view, manifest=replace(manifest, dropped_before=limit)))
    sweep(stream.folder, done.files, view.manifest.files, time.time())
    return done, sum(segment.rows for segment in gone)


def retain(stream: OpenStream, view: StreamView) -> tuple[StreamView, int]:
    """Drop what the stream's retention no longer keeps: whole segments, the oldest first."""
    view, dropped = drop_expired(stream, view)
    options, segments = view.manifest.options, view.manifest.segments
    border: int | None = None
    if options.keep_us is not None and segments:
        # No event is newer than now: one from the future must not make all others old.
        newest = min(max(segment.ts_max for segment in view.segments), int(time.time() * 1e6))
        border = newest - options.keep_us
    if border is not None:
        note = f"dropped events before {moment(border)}: older than the stream keeps them"
        view, dropped = drop_before(stream, view, border, note)
    if options.keep_bytes is not None:
        oldest = sorted(view.manifest.segments, key=lambda segment: segment.ts_max)
        size = sum(segment.bytes for segment in view.segments)
        while oldest and size > options.keep_bytes:
            size -= oldest[0].bytes
            first = oldest.pop(0)
            note = f"dropped events up to {moment(first.ts_max)}: over {options.keep_bytes:,} bytes"
            view, more = drop_before(stream, view, first.ts_max + 1, note)
            dropped += more
    return view, dropped


def as_of_now(view: StreamView) -> Manifest:
    """Return the manifest for work on segments; it says what time it is if events expire."""
    if view.manifest.options.keep_until is None:
        return view.manifest
    from eventide.store.lifetimes import with_clock

    return with_clock(view)


def drop_expired(stream: OpenStream, view: StreamView) -> tuple[StreamView, int]:
    """Drop the sealed segments of which every event has expired; return how many events."""
    if view.manifest.options.keep_until is None:
        return view, 0
    from eventide.store.lifetimes import gone_segments

    gone = gone_segments(as_of_now(view))
    if not gone:
        return view, 0
    rows = sum(segment.rows for segment in gone)
    note = f"dropped {rows:,} events that had expired, in {len(gone):,} segments"
    manifest = noted(replaced(view.manifest, gone, (), time.time()), note)
    done = stream.commit_manifest(replace(view, manifest=manifest))
    sweep(stream.folder, done.files, view.manifest.files, time.time())
    return done, rows


def trim(stream: OpenStream, view: StreamView) -> StreamView:
    """Forget retired files whose time has come, and sweep."""
    before = view.manifest.files
    trimmed = without_expired(view.manifest, time.time())
    if trimmed is not view.manifest:
        view = stream.commit_manifest(replace(view, manifest=trimmed))
    sweep(stream.folder, view.files, before, time.time())
    return view
