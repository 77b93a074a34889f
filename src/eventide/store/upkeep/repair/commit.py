"""Make a repaired stream count, and move damaged files out of the way."""

from __future__ import annotations

import time
from dataclasses import replace

from eventide.store.files import disk
from eventide.store.files.disk import sync_folder, write_atomically
from eventide.store.files.mapped import MAPPED
from eventide.store.segments.listing import SegmentList
from eventide.store.segments.manifest import Decision, encode_manifest, manifest_path
from eventide.store.segments.segment import Segment
from eventide.store.upkeep.repair.turn import RepairTurn
from eventide.store.writing.log import RecordKind, create_log
from eventide.store.writing.view import StreamView

ASIDE = ".damaged"


def commit(turn: RepairTurn, segments: list[Segment]) -> None:
    """Write a log with the open end, and the manifest that makes everything count."""
    view = repaired_view(turn, segments)
    if turn.dry_run:
        return
    log = create_log(turn.folder)
    log.append(RecordKind.CHECKPOINT, *view.checkpoint())
    log.file.sync()
    log.file.close()
    sync_folder(turn.folder)
    manifest = turn.start.manifest
    following = replace(
        manifest,
        version=turn.start.highest + 1,
        log=log.file.path.name,
        log_end=log.file.end,
        next_seq=view.next_seq,
        segments=SegmentList(segment for segment in segments if segment != view.segment),
        decisions=(*manifest.decisions, Decision(time.time(), "; ".join(turn.notes.steps))),
    )
    path = manifest_path(turn.folder, following.version)
    write_atomically(path, encode_manifest(following))


def repaired_view(turn: RepairTurn, segments: list[Segment]) -> StreamView:
    """Return the stream with the events of the log, and the next number that is free."""
    view = replace(turn.view, tail=(), queue=())
    if view.segment is not None:
        # Lost indexes may be missing.
        (own,) = (segment for segment in segments if segment.file == view.segment.file)
        view = replace(view, segment=own, closed_ts=max(view.closed_ts, own.ts_max))
    for batch in turn.safe.memory:
        view = view.with_rows(batch)
    ends = [segment.seq_offset + segment.seq_max + 1 for segment in segments]
    ends += [turn.view.next_seq, view.next_seq, turn.start.manifest.next_seq]
    # The numbers of lost events are not given out again.
    return replace(view, next_seq=max(ends) + turn.start.unread)


def move_aside(turn: RepairTurn) -> None:
    """Rename damaged files, so that nothing looks for them."""
    for name in dict.fromkeys(turn.notes.aside):
        path = turn.folder / name
        if not path.exists():
            continue
        turn.notes.step(f"{name}: rename to {name}{ASIDE}")
        if not turn.dry_run:
            disk.DISK.rename(path, path.with_name(name + ASIDE))
            MAPPED.forget(path)
    if not turn.dry_run:
        sync_folder(turn.folder)
