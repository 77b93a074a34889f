"""The listed segments of a damaged stream: check them, and rewrite what is left of each."""

from __future__ import annotations

from dataclasses import replace

from eventide.errors import StoreError
from eventide.schema import MAX_TS_US, MIN_TS_US
from eventide.store.files.mapped import map_file
from eventide.store.files.mapped import stamp_of as segment_stamp
from eventide.store.segments.segment import Segment
from eventide.store.upkeep.repair.salvage import leaves_behind, newest_root, rewritten, salvaged
from eventide.store.upkeep.repair.turn import RepairTurn
from eventide.store.upkeep.verify_segment import SegmentCheck, UnreadablePart

ANY_TIME = UnreadablePart(0, MIN_TS_US, MAX_TS_US)


def newest_segments(turn: RepairTurn) -> list[Segment]:
    """Return the segments, the open one as of its last root if the log does not know it."""
    segment = turn.view.segment
    if segment is not None and not turn.start.is_log_whole:
        try:
            content, stamp = map_file(turn.folder / segment.file), segment_stamp(segment.file)
            later = newest_root(content, stamp, segment.file, segment.form, segment.root)
        except StoreError:
            later = None
        if later is not None:
            turn.notes.step(f"{segment.file}: take the root at byte {later.root}")
            turn.view = replace(turn.view, segment=later)
    return list(turn.view.segments)


def checked(turn: RepairTurn, segment: Segment) -> SegmentCheck:
    """Read all of a segment."""
    check = SegmentCheck(turn.folder, segment, turn.listed)
    for finding in check.findings():
        turn.notes.step(str(finding))
    is_open = segment is turn.view.segment
    if is_open and not turn.start.is_log_whole and check.content is not None:
        if leaves_behind(check.content, check.stamp, segment.root):
            turn.notes.step(f"{segment.file}: take in the leaves behind its last root")
            check.is_sound = False
            check.lost.append(ANY_TIME)
        elif segment.sealed:
            # The crash came between the seal and the manifest that would have listed it.
            turn.view = replace(turn.view, segment=None)
    return check


def without_lost_indexes(turn: RepairTurn, check: SegmentCheck) -> Segment:
    """Return a segment with the indexes that are whole."""
    if not check.lost_indexes:
        return check.segment
    turn.is_changed = True
    for index in check.lost_indexes:
        turn.notes.step(f"{index.file}: take the index of {index.attribute} off its segment")
        turn.notes.aside.append(index.file)
        turn.notes.hint("run `eventide compact` to build it again")
    whole = tuple(i for i in check.segment.indexes if i not in check.lost_indexes)
    return replace(check.segment, indexes=whole)


def rewrite(turn: RepairTurn, check: SegmentCheck) -> tuple[Segment, ...]:
    """Write what is left of a damaged segment to a new one."""
    segment, notes = check.segment, turn.notes
    is_open = turn.view.segment is not None and turn.view.segment.file == segment.file
    limit = 2**63 if is_open and not turn.start.is_log_whole else segment.root
    leaves = [] if segment.thinned else salvaged(check, turn.safe.seen, limit)
    rows = sum(leaf.rows for leaf in leaves)
    notes.step(f"{segment.file}: write {rows:,} of {segment.rows:,} events anew")
    known = [part for part in check.lost if part is not ANY_TIME]
    if rows < segment.rows and known:
        times = min(part.ts_min for part in known), max(part.ts_max for part in known)
        notes.loss(segment.file, UnreadablePart(segment.rows - rows, *times))
    notes.aside += segment.files
    if is_open:
        turn.view = replace(turn.view, segment=None)
    return () if turn.dry_run or not rows else rewritten(turn.folder, segment, leaves)
