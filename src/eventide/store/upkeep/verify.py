"""Read everything a stream holds, and report what is not as it was written.

From the manifest down: its kept versions, the log, and for every segment the head, the root, all
nodes and leaves that it reaches, and the secondary indexes (`verify_segment.py`). The set of event
numbers of the stream is held in memory; it is small (`seq_set.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from eventide.errors import EventideError, StoreError
from eventide.instants import moment
from eventide.schema import SEQ, TS
from eventide.store.files.lock import LOCK_FILE
from eventide.store.order import int64_view
from eventide.store.progress import QUERY_FOLDER
from eventide.store.segments.manifest import (
    LOG_NAME,
    MANIFEST_NAME,
    Manifest,
    decode_manifest,
    load_manifest,
    manifest_path,
    versions_in,
)
from eventide.store.stream import StoredStream
from eventide.store.upkeep.seq_set import SeqSet
from eventide.store.upkeep.verify_segment import (
    MISSING,
    Advance,
    Finding,
    SegmentCheck,
    uncounted,
)
from eventide.store.writing.log import SPARE_NAME, is_old, stamp_of
from eventide.store.writing.log_sectors import written_bytes
from eventide.store.writing.open_stream import OpenStream
from eventide.store.writing.view import StreamView

__all__ = ["Advance", "Finding", "check_view", "not_known", "verify_stream"]

NO_END = 2**63


def verify_stream(stream: StoredStream | Path, advance: Advance = uncounted) -> Iterator[Finding]:
    """Yield what is wrong with a stream, given itself or its folder; `advance` counts rows.

    >>> from tempfile import mkdtemp
    >>> from eventide.schema import Schema
    >>> from eventide.store.store import Store
    >>> cars = Store.open(mkdtemp()).create_stream("cars", Schema.of({"speed": "float64"}))
    >>> list(verify_stream(cars))
    []
    """
    folder = stream if isinstance(stream, Path) else stream.path
    yield from check_manifests(folder)
    try:
        view = StreamView(load_manifest(folder))
        view.manifest.check_listings()
    except StoreError:
        return  # the newest version is damaged, or a listing of it, which was reported
    try:
        view = OpenStream(folder).refreshed(whole=True)
    except StoreError as error:
        yield from check_lost_log(folder, view.manifest, error)
        # Only the log knew which numbers were given out, and which files are needed.
        yield from check_view(folder, replace(view, next_seq=NO_END), advance)
        return
    torn = torn_bytes(folder / view.manifest.log, view)
    if torn > 0:
        what = f"{torn} bytes of a record that was never acknowledged"
        yield Finding(view.manifest.log, view.log_end, what, "info")
    yield from check_view(folder, view, advance)
    yield from check_files(folder, view)


def torn_bytes(path: Path, view: StreamView) -> int:
    """Return how much was written to a log behind its last whole record."""
    with path.open("rb") as file:
        file.seek(view.log_end)
        rest = file.read()
    return len(rest) if is_old(view.log_header) else written_bytes(rest, stamp_of(path.name))


def not_known(folder: Path) -> str | None:
    """Return what cannot be known of a stream that can be opened, as a sentence."""
    try:
        view = OpenStream(folder).view()
    except StoreError:
        return None
    return (
        f"whether events that were appended after version {view.manifest.version} was committed "
        f"were cut off the end of its log, behind byte {view.log_end:,}"
    )


def check_lost_log(folder: Path, manifest: Manifest, error: StoreError) -> Iterator[Finding]:
    """Yield why the log cannot be read, and whether that is because the manifest is too old."""
    if (folder / manifest.log).exists():
        yield Finding(manifest.log, None, error.message)
        return
    yield Finding(manifest.log, None, MISSING)
    others = sorted(path.name for path in folder.iterdir() if LOG_NAME.fullmatch(path.name))
    if others:
        what = f"it does not know {others[0]}: a newer version seems to be missing"
        yield Finding(manifest_path(folder, manifest.version).name, None, what)


def check_manifests(folder: Path) -> Iterator[Finding]:
    """Yield the kept versions of the manifest that are damaged."""
    versions = versions_in(folder)
    if not versions:
        yield Finding(folder.name, None, "no version of the manifest is there")
    for version in versions:
        path = manifest_path(folder, version)
        try:
            manifest = decode_manifest(path.read_bytes(), path)
            manifest.check_listings()
        except FileNotFoundError:
            continue  # a commit has swept it since
        except EventideError as error:
            yield Finding(path.name, None, error.message)
            continue
        if manifest.version != version:
            what = f"it is version {manifest.version} under another name"
            yield Finding(path.name, None, what)


def check_files(folder: Path, view: StreamView) -> Iterator[Finding]:
    """Yield the files that no reader needs."""
    needed = view.files | {LOCK_FILE, QUERY_FOLDER, SPARE_NAME}
    for path in sorted(folder.iterdir()):
        if path.name not in needed and not MANIFEST_NAME.fullmatch(path.name):
            yield Finding(path.name, None, "not part of the stream: staged, or left over", "info")


def check_view(folder: Path, view: StreamView, advance: Advance = uncounted) -> Iterator[Finding]:
    """Yield what is wrong with the segments of a view, and with its events in memory."""
    seqs = SeqSet()
    for segment in view.segments:
        yield from SegmentCheck(folder, segment, seqs, advance).findings()
        if segment.seq_offset + segment.seq_max >= view.next_seq:
            yield Finding(segment.file, None, f"it has numbers from {view.next_seq} on")
    yield from check_memory(view, seqs)
    for batch in (*view.tail, *view.queue):
        advance(batch.num_rows)


def check_memory(view: StreamView, seqs: SeqSet) -> Iterator[Finding]:
    """Yield what is wrong with the events that are only in the log."""
    log, closed = view.manifest.log, view.closed_ts
    if any(not segment.sealed for segment in view.manifest.segments):
        yield Finding(f"manifest version {view.manifest.version}", None, "an open segment")
    if view.segment is not None and (view.segment.sealed or view.segment.ts_max > closed):
        what = f"the open segment is sealed, or goes beyond its end at {moment(closed)}"
        yield Finding(log, None, what)
    for name, batches in (("tail", view.tail), ("queue", view.queue)):
        for batch in batches:
            if batch.schema != view.manifest.schema.arrow:
                yield Finding(log, None, f"the {name} has columns {batch.schema.names}")
                continue
            ts, seq = int64_view(batch.column(TS)), int64_view(batch.column(SEQ))
            if not seqs.add(seq).all():
                yield Finding(log, None, f"numbers of the {name} are in the stream twice")
            if len(seq) and seq.max() >= view.next_seq:
                yield Finding(log, None, f"the {name} has numbers from {view.next_seq} on")
            misplaced = ts < closed if name == "tail" else ts >= closed
            if view.in_order and misplaced.any():
                what = f"the {name} has events on the other side of {moment(closed)}"
                yield Finding(log, None, what)
