"""One repair of a stream, from its first step to its last."""

from __future__ import annotations

from pathlib import Path

from eventide.errors import StoreError
from eventide.store.files.lock import write_lock
from eventide.store.stream import StoredStream
from eventide.store.upkeep.repair.commit import commit, move_aside
from eventide.store.upkeep.repair.losses import note_losses
from eventide.store.upkeep.repair.orphans import adopted
from eventide.store.upkeep.repair.report import Repair, RepairNotes
from eventide.store.upkeep.repair.segments import (
    checked,
    newest_segments,
    rewrite,
    without_lost_indexes,
)
from eventide.store.upkeep.repair.start import find_start
from eventide.store.upkeep.repair.turn import RepairTurn, SafeEvents
from eventide.store.upkeep.verify import check_memory
from eventide.store.writing.open_stream import OPENED


def repair_stream(stream: StoredStream | Path, *, dry_run: bool = False) -> Repair:
    """Make a stream whole again. With `dry_run` nothing is changed. A second repair does nothing.

    Raises StoreError if neither a version of the manifest nor a segment has its columns.
    """
    folder = stream if isinstance(stream, Path) else stream.path
    with write_lock(folder):
        opened = OPENED.pop(folder, None)
        if opened is not None:
            opened.close()
        try:
            return repaired(folder, dry_run=dry_run)
        except StoreError:
            raise
        except OSError as error:
            raise cannot_repair(folder, error) from error


def cannot_repair(folder: Path, error: OSError) -> StoreError:
    """Return the error for a disk that fails while a stream is repaired."""
    message = f"cannot repair {folder}: {error}"
    hint = "no file was deleted or written over; check the disk's free space, and try again"
    return StoreError(message, hint=hint)


def repaired(folder: Path, *, dry_run: bool) -> Repair:
    """Find out what to do, and do it."""
    turn = new_turn(folder, dry_run=dry_run)
    checks = [checked(turn, segment) for segment in newest_segments(turn)]
    kept = [without_lost_indexes(turn, check) for check in checks if check.is_sound]
    broken = [check for check in checks if not check.is_sound]
    wrong = [str(finding) for finding in check_memory(turn.view, turn.listed)]
    turn.notes.steps += wrong
    if turn.is_changed or broken or wrong:
        turn.is_changed = True
        for check in checks:
            if check.is_sound:
                turn.safe.remember(check)
        turn.safe.filter_memory()
        for check in broken:
            kept += rewrite(turn, check)
        kept += adopted(turn)
        note_losses(turn)
    if turn.is_changed:
        commit(turn, kept)
    move_aside(turn)
    return turn.notes.repair()


def new_turn(folder: Path, *, dry_run: bool) -> RepairTurn:
    """Return a repair before its first step: what the manifest and the log say."""
    notes = RepairNotes()
    start = find_start(folder, notes)
    view = start.view()
    safe = SafeEvents([*view.tail, *view.queue])
    return RepairTurn(start, notes, dry_run, view, safe, is_changed=not start.is_log_whole)
