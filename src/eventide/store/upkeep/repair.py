"""Bring a damaged stream back to something whole, and say what is lost.

What is damaged         What becomes of it
manifest                the newest whole version counts, with the newest log that fits it, and with
                        segments that hold events which are nowhere else. If there is none, the
                        heads of segments tell the columns (`rebuild.py`)
missing manifest        the same: it shows where an older version names a log that is gone, and
                        another log is there
log                     its whole records count (`salvage_log.py`). The open segment may have a
                        later root than they know, and leaves behind that: those are taken in,
                        also if no log is left that names the segment
segment                 its readable leaves are written to a new one. Below a damaged node or root
                        the leaves are found by their frames
missing segment         it is taken off the list
secondary index         it is taken off its segment: answers never depend on it

Everything new is written first; then one manifest, with a higher number than any before, makes it
count. Only then are damaged files given the suffix `.damaged`. So a crash leaves a stream that is
as damaged as before, or repaired, and no file is ever deleted or written over.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.errors import EventideError, StoreError
from eventide.kernels.compiled import Int64s
from eventide.schema import MAX_TS_US, MIN_TS_US, SEQ, TS
from eventide.store.files import disk
from eventide.store.files.disk import sync_folder, write_atomically
from eventide.store.files.frame import Kind, frames_backwards, read_frame
from eventide.store.files.lock import write_lock
from eventide.store.files.mapped import MAPPED, map_file
from eventide.store.files.mapped import stamp_of as segment_stamp
from eventide.store.order import int64_view
from eventide.store.segments.manifest import (
    LOG_NAME,
    Decision,
    Manifest,
    decode_manifest,
    encode_manifest,
    manifest_path,
    versions_in,
)
from eventide.store.segments.segment import SEGMENT_NAME, Segment
from eventide.store.stream import StoredStream
from eventide.store.upkeep.rebuild import form_in, rebuilt_manifest
from eventide.store.upkeep.salvage import leaf_rows, leaves_behind, newest_root, rewritten, salvaged
from eventide.store.upkeep.salvage_log import LogReading, read_log
from eventide.store.upkeep.seq_set import SeqSet
from eventide.store.upkeep.verify import check_memory
from eventide.store.upkeep.verify_segment import (
    MISSING,
    UNREADABLE,
    SegmentCheck,
    UnreadablePart,
    told,
)
from eventide.store.writing.log import RecordKind, create_log
from eventide.store.writing.open_stream import OPENED
from eventide.store.writing.view import StreamView

ASIDE = ".damaged"
LISTED = re.compile(
    rb'"file":"(seg-[0-9a-f]{32}\.ev)","bytes":\d+,"root":\d+,"root_length":\d+,"seq_offset":(\d+)'
)
FARTHEST = 10**8
"""Among how many numbers lost ones are looked for."""
ANY_TIME = UnreadablePart(0, MIN_TS_US, MAX_TS_US)


@dataclass(frozen=True, slots=True)
class Loss:
    """Events that are gone: how many and from when to when, where that is known."""

    what: str
    part: UnreadablePart | None = None

    def __str__(self) -> str:
        return self.what if self.part is None else f"{self.what}: {told(self.part)}"


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did, or would do, and what is lost; all empty for a whole stream."""

    steps: tuple[str, ...]
    losses: tuple[Loss, ...]
    hints: tuple[str, ...] = ()
    """What to do next."""


def repair_stream(stream: StoredStream | Path, *, dry_run: bool = False) -> Repair:
    """Make a stream whole again. With `dry_run` nothing is changed. A second repair does nothing.

    Raises StoreError if neither a version of the manifest nor a segment tells its columns.
    """
    folder = stream if isinstance(stream, Path) else stream.path
    with write_lock(folder):
        opened = OPENED.pop(folder, None)
        if opened is not None:
            opened.close()
        try:
            turn = Repairing(folder, dry_run=dry_run)
            turn.run()
        except StoreError:
            raise
        except OSError as error:
            raise cannot_repair(folder, error) from error
    return Repair(tuple(turn.steps), tuple(turn.losses), tuple(dict.fromkeys(turn.hints)))


def cannot_repair(folder: Path, error: OSError) -> StoreError:
    """Return the error of a disk that fails while a stream is repaired."""
    message = f"cannot repair {folder}: {error}"
    hint = "no file was deleted or written over; check the disk's free space, and try again"
    return StoreError(message, hint=hint)


class Repairing:
    """One turn of repair."""

    def __init__(self, folder: Path, *, dry_run: bool) -> None:
        self.folder = folder
        self.dry_run = dry_run
        self.steps: list[str] = []
        self.losses: list[Loss] = []
        self.aside: list[str] = []
        self.hints: list[str] = []
        self.highest, newest, damaged = read_manifests(folder)
        self.manifest = rebuilt_manifest(folder, damaged) if newest is None else newest
        self.aside += damaged
        self.offsets = offsets_in(folder, damaged)
        self.log = read_log(folder, self.manifest, self.manifest.log)
        others = self.other_logs()
        is_behind = (
            newest is not None
            and newest.version == self.highest
            and self.log.reason == MISSING
            and any(other.next_seq >= newest.next_seq for other in others)
        )
        is_there = newest is not None and newest.version == self.highest
        self.is_newest = is_there and not is_behind
        self.say_version(newest, is_behind=is_behind)
        if is_behind:
            # Whoever has read the missing version must not take the next one for it.
            self.highest += 1
        self.view = self.open_end(others)
        is_own = self.log.name == self.manifest.log
        self.is_log_whole = self.is_newest and is_own and self.log.is_whole
        self.is_counted = self.log.is_whole and (is_own or not self.is_newest)
        """Whether the log knows which numbers were given out."""
        self.is_changed = not self.is_log_whole
        self.listed = SeqSet()
        """The numbers of events in listed segments, of which each must be there once."""
        self.seen = SeqSet()
        """The numbers of events that are safe."""
        self.kept: list[SegmentCheck] = []
        """The whole segments that have them."""
        self.memory: list[pa.RecordBatch] = [*self.view.tail, *self.view.queue]

    def run(self) -> None:
        """Find out what to do, and do it."""
        checks = [self.checked(segment) for segment in self.newest_segments()]
        kept = [self.without_lost_indexes(check) for check in checks if check.is_sound]
        broken = [check for check in checks if not check.is_sound]
        wrong = [str(finding) for finding in check_memory(self.view, self.listed)]
        self.steps += wrong
        if self.is_changed or broken or wrong:
            self.is_changed = True
            for check in checks:
                if check.is_sound:
                    self.remember(check)
            self.filter_memory()
            for check in broken:
                kept += self.rewrite(check)
            kept += self.adopted()
            self.say_gaps()
        if self.is_changed:
            self.commit(kept)
        self.move_aside()

    def say_version(self, newest: Manifest | None, *, is_behind: bool) -> None:
        """Say which version of the manifest counts, if that is not the newest."""
        if newest is None:
            self.steps.append("no version of the manifest can be read: make one from the segments")
            self.hints.append("set the options of the stream again: no segment has them")
        elif is_behind:
            log = self.manifest.log
            self.steps.append(
                f"the newest manifest is missing: version {newest.version} names {log}, "
                "which is gone, and another log is there"
            )
        elif not self.is_newest:
            self.steps.append(f"go back from version {self.highest} to {newest.version}")

    def other_logs(self) -> list[LogReading]:
        """Return the logs that the manifest does not name."""
        names = sorted(path.name for path in self.folder.glob("log-*.log"))
        others = [name for name in names if LOG_NAME.fullmatch(name) and name != self.manifest.log]
        found = [read_log(self.folder, self.manifest, name) for name in others]
        return [each for each in found if each.view is not None]

    def open_end(self, others: list[LogReading]) -> StreamView:
        """Return the stream's open end as far as a log has it."""
        own = self.log
        if own.view is None or not self.is_newest:
            readable = [each for each in (own, *others) if each.view is not None]
            self.log = max(readable, key=lambda each: each.next_seq, default=own)
        if own.reason is not None and own is not self.log and self.is_newest:
            self.say_log(own)
        if self.log.reason is not None:
            self.say_log(self.log)
        self.unread = max(own.unread, self.log.unread)
        if own.reason is not None and own is not self.log and (self.folder / own.name).exists():
            self.aside.append(own.name)
        view = self.log.view
        if view is None:
            view = StreamView(self.manifest, next_seq=self.manifest.next_seq)
        if view.segment is not None and view.segment.file in self.manifest.files:
            view = replace(view, segment=None)
        return view

    def say_log(self, log: LogReading) -> None:
        """Say what becomes of a damaged log; which events it lost is known at the end."""
        name, what = log.name, f"{log.name}: {log.reason}"
        if log.reason == MISSING:
            what = f"{name} {MISSING}"
        else:
            self.aside.append(name)
        if log.view is None:
            self.steps.append(f"{what}; nothing of it can be kept")
            self.losses.append(Loss(f"what only {name} had"))
        elif log.unread:
            self.steps.append(f"{what}; keep whole records up to byte {log.end}")
            most = f"at most {log.unread:,} events"
            self.losses.append(Loss(f"what only {name} had behind byte {log.end}: {most}"))
        else:
            self.steps.append(f"{what}; keep the whole records before and behind it")

    def say_unlisted(self) -> None:
        """Say what the lost version of the manifest had that is not found."""
        start = self.manifest.next_seq
        lost = self.unseen(start, min(self.view.next_seq, start + FARTHEST))
        if not self.is_counted:
            self.losses.append(Loss("what only the lost version of the manifest listed"))
        elif len(lost):
            which = f"with numbers from {lost[0]} to {lost[-1]}"
            self.losses.append(Loss(f"{len(lost):,} events {which}, dropped or in no whole file"))
        what = "options and commit ids that only the lost version of the manifest had"
        self.losses.append(Loss(what))

    def say_gaps(self) -> None:
        """Say which numbers damaged records of the log had, if no segment has those events."""
        if not self.is_newest:
            self.say_unlisted()
        if self.log.is_first_lost:
            self.losses.append(Loss(f"what only the first record of {self.log.name} had"))
        for gap in self.log.gaps:
            lost = self.unseen(gap.start, min(gap.stop, gap.start + FARTHEST))
            for run in np.split(lost, np.flatnonzero(np.diff(lost) > 1) + 1):
                if len(run):
                    which = (
                        f"number {run[0]}" if len(run) == 1 else f"numbers {run[0]} to {run[-1]}"
                    )
                    self.losses.append(Loss(f"{self.log.name}: {len(run):,} events, {which}"))

    def newest_segments(self) -> list[Segment]:
        """Return the segments, the open one as its last root has it if the log does not know."""
        segment = self.view.segment
        if segment is not None and not self.is_log_whole:
            try:
                content, stamp = map_file(self.folder / segment.file), segment_stamp(segment.file)
                later = newest_root(content, stamp, segment.file, segment.form, segment.root)
            except StoreError:
                later = None
            if later is not None:
                self.steps.append(f"{segment.file}: take the root at byte {later.root}")
                self.view = replace(self.view, segment=later)
        return list(self.view.segments)

    def checked(self, segment: Segment) -> SegmentCheck:
        """Read all of a segment."""
        check = SegmentCheck(self.folder, segment, self.listed)
        for finding in check.findings():
            self.steps.append(str(finding))
        is_open = segment is self.view.segment
        if is_open and not self.is_log_whole and check.content is not None:
            if leaves_behind(check.content, check.stamp, segment.root):
                self.steps.append(f"{segment.file}: take in the leaves behind its last root")
                check.is_sound = False
                check.lost.append(ANY_TIME)
            elif segment.sealed:
                # The crash came between the seal and the manifest that would have listed it.
                self.view = replace(self.view, segment=None)
        return check

    def remember(self, check: SegmentCheck) -> None:
        """Take in the event numbers of a whole segment."""
        self.kept.append(check)
        for seqs in seqs_of(check):
            self.seen.add(seqs)

    def without_lost_indexes(self, check: SegmentCheck) -> Segment:
        """Return a segment with the indexes that are whole."""
        if not check.lost_indexes:
            return check.segment
        self.is_changed = True
        for index in check.lost_indexes:
            self.steps.append(f"{index.file}: take the index of {index.attribute} off its segment")
            self.aside.append(index.file)
            self.hints.append("run `eventide compact` to build it again")
        whole = tuple(i for i in check.segment.indexes if i not in check.lost_indexes)
        return replace(check.segment, indexes=whole)

    def filter_memory(self) -> None:
        """Leave out of the log's events those that a segment has."""
        for place, batch in enumerate(self.memory):
            fresh = self.seen.add(int64_view(batch.column(SEQ)))
            self.memory[place] = batch.filter(pa.array(fresh))

    def rewrite(self, check: SegmentCheck) -> tuple[Segment, ...]:
        """Write what is left of a damaged segment to a new one."""
        segment = check.segment
        is_open = self.view.segment is not None and self.view.segment.file == segment.file
        limit = 2**63 if is_open and not self.is_log_whole else segment.root
        leaves = [] if segment.thinned else salvaged(check, self.seen, limit)
        rows = sum(leaf.rows for leaf in leaves)
        self.steps.append(f"{segment.file}: write {rows:,} of {segment.rows:,} events anew")
        known = [part for part in check.lost if part is not ANY_TIME]
        if rows < segment.rows and known:
            times = min(part.ts_min for part in known), max(part.ts_max for part in known)
            self.losses.append(Loss(segment.file, UnreadablePart(segment.rows - rows, *times)))
        self.aside += segment.files
        if is_open:
            self.view = replace(self.view, segment=None)
        return () if self.dry_run or not rows else rewritten(self.folder, segment, leaves)

    def adopted(self) -> Iterator[Segment]:
        """Yield segments that no list has, and that hold events which are nowhere else.

        The largest come first: what compactions have merged has the events of smaller ones.
        """
        if self.is_log_whole:
            return
        listed = self.manifest.files | self.view.files | set(self.aside)
        found = [path for path in self.folder.iterdir() if SEGMENT_NAME.fullmatch(path.name)]
        unplaced: list[SegmentCheck] = []
        first: SegmentCheck | None = None
        for path in sorted(found, key=self.turn_of):
            check = self.orphan(path) if path.name not in listed else None
            if check is None or not self.may_belong(check):
                continue
            fresh = self.fresh_rows(check)
            has_more = has_leaves_behind(check)
            if fresh == check.segment.rows:
                is_first = first is None and path.name not in self.offsets and is_from_zero(check)
                is_second = not check.segment.sealed and self.view.segment is not None
                if is_first and not has_more and not is_second:
                    first = check
                    self.remember(check)
                else:
                    yield from self.taken_in(check)
            elif path.name in self.offsets:
                continue
            elif is_from_zero(check) and not self.agrees(check, check.segment.rows - fresh):
                unplaced.append(check)
            elif fresh or has_more:
                yield from self.fresh_part(check)
        yield from self.placed(first, unplaced)

    def turn_of(self, path: Path) -> tuple[int, bool, int, str]:
        """Return by what to order segments that no list has."""
        name = path.name
        return self.offsets.get(name, 0), name not in self.offsets, -path.stat().st_size, name

    def orphan(self, path: Path) -> SegmentCheck | None:
        """Return a segment that no list has, if it is whole."""
        try:
            content, stamp = map_file(path), segment_stamp(path.name)
            segment = newest_root(content, stamp, path.name, form_in(content, stamp))
        except (*UNREADABLE, EventideError, LookupError, TypeError):
            return None
        if segment is None or (self.is_newest and not has_roots(content, stamp)):
            # Staged for a commit to come, or left by a merge: those are written in one go.
            return None
        segment = replace(segment, seq_offset=self.offsets.get(path.name, 0))
        check = SegmentCheck(self.folder, segment, SeqSet())
        return None if list(check.findings()) else check

    def may_belong(self, check: SegmentCheck) -> bool:
        """Whether the events of a segment can be some that the stream has counted."""
        segment = check.segment
        if segment.file in self.offsets:
            # Numbers are given out without holes: an offset that makes one is damaged itself.
            before = np.array([segment.seq_offset - 1])
            return not segment.seq_offset or bool(self.seen.has(before).all())
        return not self.is_counted or segment.seq_max < self.view.next_seq

    def fresh_rows(self, check: SegmentCheck) -> int:
        """Return how many events of a segment are nowhere else."""
        return sum(int((~self.seen.has(seqs)).sum()) for seqs in seqs_of(check))

    def agrees(self, check: SegmentCheck, known: int) -> bool:
        """Whether the events of a segment that are known have the same times elsewhere."""
        keys = [keys_of(rows) for rows in rows_of(check)]
        seq, ts = (np.concatenate(parts) for parts in zip(*keys, strict=True))
        order = np.argsort(seq)
        seq, ts = seq[order], ts[order]
        for batch in (*self.memory, *(rows for each in self.kept for rows in rows_of(each))):
            other_seq, other_ts = keys_of(batch)
            places = np.minimum(np.searchsorted(seq, other_seq), len(seq) - 1)
            is_same = seq[places] == other_seq
            known -= int(is_same.sum())
            if (ts[places[is_same]] != other_ts[is_same]).any():
                return False
        return known == 0

    def taken_in(self, check: SegmentCheck) -> Iterator[Segment]:
        """Yield a segment as it is."""
        segment = check.segment
        is_second = not segment.sealed and self.view.segment is not None
        if is_second or has_leaves_behind(check):
            yield from self.fresh_part(check)
            return
        self.steps.append(f"{segment.file}: take in {segment.rows:,} events")
        self.remember(check)
        self.hint_at_indexes()
        if not segment.sealed:
            self.view = replace(self.view, segment=segment)
        yield segment

    def fresh_part(self, check: SegmentCheck) -> tuple[Segment, ...]:
        """Write the events of a segment that are nowhere else to a new one.

        Those in leaves behind its last whole root too: they were in the log before.
        """
        if has_leaves_behind(check):
            check.lost.append(ANY_TIME)
        leaves = salvaged(check, self.seen, 2**63)
        if not leaves:
            return ()
        self.hint_at_indexes()
        rows = sum(leaf.rows for leaf in leaves)
        what = f"write {rows:,} events anew that are nowhere else"
        self.steps.append(f"{check.segment.file}: {what}")
        return () if self.dry_run else rewritten(self.folder, check.segment, leaves)

    def hint_at_indexes(self) -> None:
        """Say that what was taken in has no indexes."""
        if self.manifest.options.indexes:
            self.hints.append("run `eventide compact` to build the indexes of what was taken in")

    def placed(self, first: SegmentCheck | None, others: list[SegmentCheck]) -> Iterator[Segment]:
        """Yield segments with numbers from 0 on, of which only the `first` can have those.

        The place of staged ones is in no file but the manifest. If together they fill just the
        numbers that no event has, they are taken in in the order in which they were written.
        """
        checks = others if first is None else [first, *others]
        for segment in self.fitting(first, checks) if others else ():
            check = SegmentCheck(self.folder, segment, SeqSet())
            list(check.findings())
            yield from self.taken_in(check)
            others, first = [], None
        if first is not None:
            yield from self.taken_in(first)
        for check in others:
            what = "staged or merged: no list tells which; the file stays"
            self.steps.append(f"{check.segment.file}: {check.segment.rows:,} events, {what}")

    def fitting(self, first: SegmentCheck | None, checks: list[SegmentCheck]) -> list[Segment]:
        """Return segments placed where numbers are free, the oldest first; none if any is left."""
        taken, start = 0, self.manifest.next_seq
        if first is not None:
            taken = start = first.segment.rows
        end = min(self.view.next_seq, start + FARTHEST)
        free = np.append(np.arange(taken, dtype=np.int64), self.unseen(start, end))
        if len(free) != sum(check.segment.rows for check in checks):
            return []
        segments = [check.segment for check in checks]
        found: list[Segment] = []
        place = 0
        for segment in sorted(segments, key=lambda each: self.written_at(each.file)):
            offset, place = int(free[place]), place + segment.rows
            if free[place - 1] - offset != segment.rows - 1:
                return []
            found.append(replace(segment, seq_offset=offset))
        return found

    def written_at(self, name: str) -> float:
        """Return when a file was last written to."""
        return (self.folder / name).stat().st_mtime

    def unseen(self, start: int, end: int) -> Int64s:
        """Return the numbers from one to another that no event has."""
        numbers = np.arange(start, max(start, end), dtype=np.int64)
        unseen: Int64s = numbers[~self.seen.has(numbers)]
        return unseen

    def commit(self, segments: list[Segment]) -> None:
        """Write a log with the open end, and the manifest that makes everything count."""
        manifest, view = self.manifest, replace(self.view, tail=(), queue=())
        if view.segment is not None:
            # Without the indexes that were lost, perhaps.
            (own,) = (segment for segment in segments if segment.file == view.segment.file)
            view = replace(view, segment=own, closed_ts=max(view.closed_ts, own.ts_max))
        for batch in self.memory:
            view = view.with_rows(batch)
        ends = [segment.seq_offset + segment.seq_max + 1 for segment in segments]
        ends += [self.view.next_seq, view.next_seq, manifest.next_seq]
        # Numbers that lost events had are not given out again.
        view = replace(view, next_seq=max(ends) + self.unread)
        sealed = tuple(segment for segment in segments if segment != view.segment)
        if self.dry_run:
            return
        log = create_log(self.folder)
        log.append(RecordKind.CHECKPOINT, *view.checkpoint())
        log.file.sync()
        log.file.close()
        sync_folder(self.folder)
        following = replace(
            manifest,
            version=self.highest + 1,
            log=log.file.path.name,
            log_end=log.file.end,
            next_seq=view.next_seq,
            segments=sealed,
            decisions=(*manifest.decisions, Decision(time.time(), "; ".join(self.steps))),
        )
        path = manifest_path(self.folder, following.version)
        write_atomically(path, encode_manifest(following))

    def move_aside(self) -> None:
        """Give damaged files a name under which nobody looks for them."""
        for name in dict.fromkeys(self.aside):
            path = self.folder / name
            if not path.exists():
                continue
            self.steps.append(f"{name}: rename to {name}{ASIDE}")
            if not self.dry_run:
                disk.DISK.rename(path, path.with_name(name + ASIDE))
                MAPPED.forget(path)
        if not self.dry_run:
            sync_folder(self.folder)


def read_manifests(folder: Path) -> tuple[int, Manifest | None, list[str]]:
    """Return the highest version, the newest whole one, and the names of the damaged."""
    versions, damaged = versions_in(folder), []
    newest: Manifest | None = None
    for version in versions:
        path = manifest_path(folder, version)
        try:
            manifest = decode_manifest(path.read_bytes(), path)
        except EventideError:
            damaged.append(path.name)
            continue
        if manifest.version == version:
            newest = manifest
        else:
            damaged.append(path.name)
    return max(versions, default=0), newest, damaged


def offsets_in(folder: Path, damaged: list[str]) -> dict[str, int]:
    """Return which segments damaged manifests seem to list, and from where on they count."""
    return {
        match[1].decode(): int(match[2])
        for name in damaged
        for match in LISTED.finditer((folder / name).read_bytes())
    }


def has_roots(content: pa.Buffer, stamp: bytes) -> bool:
    """Whether a segment has been open: one that is written in one go has only a seal."""
    return any(frame.kind == Kind.ROOT for frame in frames_backwards(content, stamp))


def has_leaves_behind(check: SegmentCheck) -> bool:
    """Whether a segment that no list has goes on behind its last whole root."""
    segment = check.segment
    return not segment.sealed and leaves_behind(check.content, check.stamp, segment.root)


def rows_of(check: SegmentCheck) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the leaves that could be read."""
    for address in check.leaves:
        frame = read_frame(check.content, address, check.stamp)
        yield leaf_rows(frame.payload, check.segment)


def seqs_of(check: SegmentCheck) -> Iterator[Int64s]:
    """Yield the numbers of the events in the leaves that could be read."""
    for rows in rows_of(check):
        yield int64_view(rows.column(SEQ))


def keys_of(rows: pa.RecordBatch) -> tuple[Int64s, Int64s]:
    """Return the numbers and the times of events."""
    return int64_view(rows.column(SEQ)), int64_view(rows.column(TS))


def is_from_zero(check: SegmentCheck) -> bool:
    """Whether a segment has numbers of its own from 0 on, as a staged one has."""
    segment = check.segment
    return segment.seq_max == segment.rows - 1
