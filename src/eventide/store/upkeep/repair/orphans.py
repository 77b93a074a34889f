"""Segments that no list has: those with events that are nowhere else are taken in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.errors import EventideError
from eventide.store.files.frame import Kind, frames_backwards
from eventide.store.files.mapped import map_file
from eventide.store.files.mapped import stamp_of as segment_stamp
from eventide.store.segments.segment import SEGMENT_NAME, Segment
from eventide.store.upkeep.repair.rebuild import form_in
from eventide.store.upkeep.repair.salvage import leaves_behind, newest_root, rewritten, salvaged
from eventide.store.upkeep.repair.segments import ANY_TIME
from eventide.store.upkeep.repair.turn import RepairTurn
from eventide.store.upkeep.seq_set import SeqSet
from eventide.store.upkeep.verify_segment import UNREADABLE, SegmentCheck


def adopted(turn: RepairTurn) -> Iterator[Segment]:
    """Yield segments that no list has, and that hold events that are nowhere else."""
    if turn.start.is_log_whole:
        return
    offsets = turn.start.offsets
    unplaced: list[SegmentCheck] = []
    first: SegmentCheck | None = None
    for path in unlisted(turn):
        check = orphan(turn, path)
        if check is None or not may_belong(turn, check):
            continue
        fresh = turn.safe.fresh_rows(check)
        has_more = has_leaves_behind(check)
        if fresh == check.segment.rows:
            is_first = first is None and path.name not in offsets and is_from_zero(check)
            if is_first and not has_more and not is_second(turn, check.segment):
                first = check
                turn.safe.remember(check)
            else:
                yield from taken_in(turn, check)
        elif path.name in offsets:
            continue
        elif is_from_zero(check) and not turn.safe.agrees(check, check.segment.rows - fresh):
            unplaced.append(check)
        elif fresh or has_more:
            yield from fresh_part(turn, check)
    yield from placed(turn, first, unplaced)


def unlisted(turn: RepairTurn) -> list[Path]:
    """Return the segment files that no list has.

    The largest come first: a segment merged by compaction has the events of smaller ones.
    """
    listed = turn.start.manifest.files | turn.view.files | set(turn.notes.aside)
    offsets = turn.start.offsets

    def rank(path: Path) -> tuple[int, bool, int, str]:
        name = path.name
        return offsets.get(name, 0), name not in offsets, -path.stat().st_size, name

    found = [path for path in turn.folder.iterdir() if SEGMENT_NAME.fullmatch(path.name)]
    return sorted((path for path in found if path.name not in listed), key=rank)


def orphan(turn: RepairTurn, path: Path) -> SegmentCheck | None:
    """Return a segment that no list has, if it is whole."""
    try:
        content, stamp = map_file(path), segment_stamp(path.name)
        segment = newest_root(content, stamp, path.name, form_in(content, stamp))
    except (*UNREADABLE, EventideError, LookupError, TypeError):
        return None
    if segment is None or (turn.start.is_newest and not has_roots(content, stamp)):
        # Staged for a later commit, or left by a merge: those are written in one go.
        return None
    segment = replace(segment, seq_offset=turn.start.offsets.get(path.name, 0))
    check = SegmentCheck(turn.folder, segment, SeqSet())
    return None if list(check.findings()) else check


def may_belong(turn: RepairTurn, check: SegmentCheck) -> bool:
    """Whether the numbers of a segment's events can belong to the stream."""
    segment = check.segment
    if segment.file in turn.start.offsets:
        # Numbers are given out without holes: an offset that makes one is damaged itself.
        before = np.array([segment.seq_offset - 1])
        return not segment.seq_offset or bool(turn.safe.seen.has(before).all())
    return not turn.start.is_counted or segment.seq_max < turn.view.next_seq


def taken_in(turn: RepairTurn, check: SegmentCheck) -> Iterator[Segment]:
    """Yield a segment as it is."""
    segment = check.segment
    if is_second(turn, segment) or has_leaves_behind(check):
        yield from fresh_part(turn, check)
        return
    turn.notes.step(f"{segment.file}: take in {segment.rows:,} events")
    turn.safe.remember(check)
    hint_at_indexes(turn)
    if not segment.sealed:
        turn.view = replace(turn.view, segment=segment)
    yield segment


def fresh_part(turn: RepairTurn, check: SegmentCheck) -> tuple[Segment, ...]:
    """Write the events of a segment that are nowhere else to a new one.

    This includes leaves behind its last whole root: they were in the log before.
    """
    if has_leaves_behind(check):
        check.lost.append(ANY_TIME)
    leaves = salvaged(check, turn.safe.seen, 2**63)
    if not leaves:
        return ()
    hint_at_indexes(turn)
    rows = sum(leaf.rows for leaf in leaves)
    turn.notes.step(f"{check.segment.file}: write {rows:,} events anew that are nowhere else")
    return () if turn.dry_run else rewritten(turn.folder, check.segment, leaves)


def placed(
    turn: RepairTurn, first: SegmentCheck | None, others: list[SegmentCheck]
) -> Iterator[Segment]:
    """Yield segments with numbers from 0 on, of which only the `first` can have those.

    Only the manifest has the place of staged segments. If together they fill exactly the numbers
    that no event has, they are taken in the order in which they were written.
    """
    checks = others if first is None else [first, *others]
    for segment in fitting(turn, first, checks) if others else ():
        check = SegmentCheck(turn.folder, segment, SeqSet())
        list(check.findings())
        yield from taken_in(turn, check)
        others, first = [], None
    if first is not None:
        yield from taken_in(turn, first)
    for check in others:
        what = "staged or merged: no list tells which; the file stays"
        turn.notes.step(f"{check.segment.file}: {check.segment.rows:,} events, {what}")


def fitting(
    turn: RepairTurn, first: SegmentCheck | None, checks: list[SegmentCheck]
) -> list[Segment]:
    """Return segments placed where numbers are free, the oldest first; none if one does not fit."""
    taken, start = 0, turn.start.manifest.next_seq
    if first is not None:
        taken = start = first.segment.rows
    unseen = turn.safe.unseen(start, turn.view.next_seq)
    free = np.append(np.arange(taken, dtype=np.int64), unseen)
    if len(free) != sum(check.segment.rows for check in checks):
        return []
    found: list[Segment] = []
    place = 0
    for check in sorted(checks, key=written_at):
        offset, place = int(free[place]), place + check.segment.rows
        if free[place - 1] - offset != check.segment.rows - 1:
            return []
        found.append(replace(check.segment, seq_offset=offset))
    return found


def written_at(check: SegmentCheck) -> float:
    """Return when the file of a segment was last written to."""
    return (check.folder / check.segment.file).stat().st_mtime


def hint_at_indexes(turn: RepairTurn) -> None:
    """Report that segments taken in have no indexes."""
    if turn.start.manifest.options.indexes:
        turn.notes.hint("run `eventide compact` to build the indexes of what was taken in")


def is_second(turn: RepairTurn, segment: Segment) -> bool:
    """Whether a segment is open while the stream has another open one."""
    return not segment.sealed and turn.view.segment is not None


def is_from_zero(check: SegmentCheck) -> bool:
    """Whether a segment has numbers of its own from 0 on, as a staged one has."""
    segment = check.segment
    return segment.seq_max == segment.rows - 1


def has_roots(content: pa.Buffer, stamp: bytes) -> bool:
    """Whether a segment has been open: one that is written in one go has only a seal."""
    return any(frame.kind == Kind.ROOT for frame in frames_backwards(content, stamp))


def has_leaves_behind(check: SegmentCheck) -> bool:
    """Whether a segment that no list has goes on behind its last whole root."""
    segment = check.segment
    return not segment.sealed and leaves_behind(check.content, check.stamp, segment.root)
