"""Copy a stream as it is at one moment, while writing goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from eventide.errors import StoreError
from eventide.store.files.disk import AppendFile, sync_folder
from eventide.store.segments.listing import SegmentList
from eventide.store.segments.manifest import Manifest, write_manifest
from eventide.store.snapshot import Snapshot
from eventide.store.writing.log import RecordKind, create_log

COPY_BYTES = 16 << 20

Advance = Callable[[int], None]
"""Called with the number of bytes copied since the last call."""


def backup_stream(snapshot: Snapshot, target: Path, advance: Advance = lambda _: None) -> Manifest:
    """Copy what a snapshot sees into a folder without a stream, which is then a stream of its own.

    Files only grow, and those that are replaced stay for an hour, so nothing has to wait: the copy
    has the part of the open segment that the snapshot knows, and a new log.
    """
    target.mkdir(parents=True, exist_ok=True)
    for segment in snapshot.segments:
        copy_part(snapshot.path / segment.file, target / segment.file, segment.bytes, advance)
        for index in segment.indexes:
            end = max((start + length for start, length in index.extents), default=0)
            copy_part(snapshot.path / index.file, target / index.file, end, advance)
    log = create_log(target)
    facts, batches = snapshot.view.checkpoint()
    log.append(RecordKind.CHECKPOINT, facts, batches)
    log.file.sync()
    log.file.close()
    manifest = replace(
        snapshot.manifest,
        version=1,
        log=log.file.path.name,
        log_end=log.file.end,
        next_seq=snapshot.view.next_seq,
        segments=SegmentList(snapshot.manifest.segments),
        retired=(),
    )
    write_manifest(target, manifest)
    sync_folder(target.parent)
    return manifest


def copy_part(source: Path, target: Path, size: int, advance: Advance) -> None:
    """Copy the first bytes of a file, and sync the copy."""
    copy = AppendFile.create(target)
    try:
        with source.open("rb") as content:
            while copy.end < size:
                part = content.read(min(COPY_BYTES, size - copy.end))
                if not part:
                    message = f"{source} has {copy.end} bytes, and {size} were written"
                    raise StoreError(message, hint="run `eventide verify` on the database")
                copy.append([part])
                advance(len(part))
        copy.sync()
    except FileNotFoundError as error:
        message = f"{source} is gone: the snapshot is over an hour old"
        raise StoreError(message, hint="take the backup again") from error
    finally:
        copy.close()
