"""Bring a damaged stream back to something whole, and say what is lost.

What is damaged         What becomes of it
manifest                the newest whole version counts, with the newest log that fits it, and with
                        segments that hold events which are nowhere else
log                     its records up to the damage count. Behind them the open segment may have a
                        later root, and leaves behind that: what they hold is taken in
segment                 its readable leaves are written to a new one. Below a damaged node or root
                        the leaves are found by their frames
missing segment         it is taken off the list
secondary index         it is taken off its segment: answers never depend on it

Everything new is written first; then one manifest, with a higher number than any before, makes it
count. Only then are damaged files given the suffix `.damaged`. So a crash leaves a stream that is
as damaged as before, or repaired, and no file is ever deleted or written over.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.errors import EventideError, StoreError
from eventide.kernels.compiled import Int64s
from eventide.schema import MAX_TS_US, MIN_TS_US, SEQ
from eventide.store.files.disk import DISK, sync_folder, write_atomically
from eventide.store.files.frame import Kind, frames_backwards, read_frame
from eventide.store.files.lock import write_lock
from eventide.store.files.mapped import MAPPED, map_file
from eventide.store.files.mapped import stamp_of as segment_stamp
from eventide.store.order import int64_view
from eventide.store.segments.manifest import (
    Decision,
    Manifest,
    decode_manifest,
    encode_manifest,
    manifest_path,
    versions_in,
)
from eventide.store.segments.segment import SEGMENT_NAME, Segment, SegmentForm
from eventide.store.stream import StoredStream
from eventide.store.upkeep.salvage import leaf_rows, leaves_behind, newest_root, rewritten, salvaged
from eventide.store.upkeep.seq_set import SeqSet
from eventide.store.upkeep.verify import check_memory
from eventide.store.upkeep.verify_segment import UNREADABLE, Part, SegmentCheck, told
from eventide.store.writing.log import (
    DamagedLogError,
    RecordKind,
    create_log,
    read_records,
    stamp_of,
)
from eventide.store.writing.open_stream import OPENED, View

ASIDE = ".damaged"
LISTED = re.compile(
    rb'"file":"(seg-[0-9a-f]{32}\.ev)","bytes":\d+,"root":\d+,"root_length":\d+,"seq_offset":(\d+)'
)
ANY_TIME = Part(0, MIN_TS_US, MAX_TS_US)


@dataclass(frozen=True, slots=True)
class Loss:
    """Events that are gone: how many and from when to when, where that is known."""

    what: str
    part: Part | None = None

    def __str__(self) -> str:
        return self.what if self.part is None else f"{self.what}: {told(self.part)}"


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did, or would do, and what is lost; both empty for a whole stream."""

    steps: tuple[str, ...]
    losses: tuple[Loss, ...]


def repair_stream(stream: StoredStream | Path, *, dry_run: bool = False) -> Repair:
    """Make a stream whole again. With `dry_run` nothing is changed. A second repair does nothing.

    Raises StoreError if no version of the manifest can be read.
    """
    folder = stream if isinstance(stream, Path) else stream.path
    with write_lock(folder):
        opened = OPENED.pop(folder, None)
        if opened is not None:
            opened.close()
        turn = Repairing(folder, dry_run=dry_run)
        turn.run()
    return Repair(tuple(turn.steps), tuple(turn.losses))


class Repairing:
    """One turn of repair."""

    def __init__(self, folder: Path, *, dry_run: bool) -> None:
        self.folder = folder
        self.dry_run = dry_run
        self.steps: list[str] = []
        self.losses: list[Loss] = []
        self.aside: list[str] = []
        self.highest, self.manifest, damaged = read_manifests(folder)
        self.is_newest = self.manifest.version == self.highest
        self.aside += damaged
        self.offsets = offsets_in(folder, damaged)
        if not self.is_newest:
            self.steps.append(f"go back from version {self.highest} to {self.manifest.version}")
            self.losses.append(Loss("what only the damaged version of the manifest listed"))
        self.view, self.is_log_whole = self.read_log()
        self.is_changed = not (self.is_newest and self.is_log_whole)
        self.listed = SeqSet()
        """The numbers of events in listed segments, of which each must be there once."""
        self.seen = SeqSet()
        """The numbers of events that are safe."""
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
        if self.is_changed:
            self.commit(kept)
        self.move_aside()

    def read_log(self) -> tuple[View, bool]:
        """Return the stream's open end as far as a log has it, and whether that is all of it."""
        name = self.manifest.log
        view, reason = replayed(self.folder, self.manifest, name)
        if reason is not None and (self.folder / name).exists():
            self.aside.append(name)
        if self.is_newest and view is not None and reason is None:
            return view, True
        if view is None or not self.is_newest:
            others = [path.name for path in self.folder.glob("log-*.log") if path.name != name]
            found = [replayed(self.folder, self.manifest, other)[0] for other in others]
            views = [each for each in (view, *found) if each is not None]
            view = max(views, key=lambda each: each.next_seq, default=None)
        if reason is not None and self.is_newest:
            until = "all of it" if view is None or not view.log_end else f"byte {view.log_end}"
            self.steps.append(f"{name}: {reason}; keep what is before {until}")
            self.losses.append(Loss(f"what only {name} had, behind the damage"))
        if view is None:
            view = View(self.manifest, next_seq=self.manifest.next_seq)
        if view.segment is not None and view.segment.file in self.manifest.files:
            view = replace(view, segment=None)
        return view, False

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
            self.losses.append(Loss(segment.file, Part(segment.rows - rows, *times)))
        self.aside += segment.files
        if is_open:
            self.view = replace(self.view, segment=None)
        return () if self.dry_run or not rows else rewritten(self.folder, segment, leaves)

    def adopted(self) -> Iterator[Segment]:
        """Yield segments that no list has, and that hold events which are nowhere else."""
        if self.is_log_whole:
            return
        listed = self.manifest.files | self.view.files | set(self.aside)
        found = sorted(self.folder.iterdir(), key=lambda path: self.offsets.get(path.name, 0))
        for path in found:
            if SEGMENT_NAME.fullmatch(path.name) and path.name not in listed:
                check = self.orphan(path)
                if check is None or not self.is_missing(check):
                    continue
                self.steps.append(f"{path.name}: take in {check.segment.rows:,} events")
                if check.segment.sealed:
                    yield check.segment
                elif self.view.segment is None:
                    self.view = replace(self.view, segment=check.segment)
                    yield check.segment

    def orphan(self, path: Path) -> SegmentCheck | None:
        """Return a segment that no list has, if it is whole."""
        try:
            content, stamp = map_file(path), segment_stamp(path.name)
            head = json.loads(read_frame(content, 0, stamp).payload.to_pybytes())
            form = SegmentForm.from_json(head["form"])
            segment = newest_root(content, stamp, path.name, form)
        except (*UNREADABLE, EventideError, LookupError, TypeError):
            return None
        if segment is None or (self.is_newest and not has_roots(content, stamp)):
            # Staged for a commit to come, or left by a merge: those are written in one go.
            return None
        segment = replace(segment, seq_offset=self.offsets.get(path.name, 0))
        check = SegmentCheck(self.folder, segment, SeqSet())
        return None if list(check.findings()) else check

    def is_missing(self, check: SegmentCheck) -> bool:
        """Whether all events of a segment belong to the stream and are nowhere else."""
        offset = check.segment.seq_offset
        if check.segment.file in self.offsets:
            # Numbers are given out without holes: an offset that makes one is damaged itself.
            if offset and not self.seen.has(np.array([offset - 1])).all():
                return False
        elif self.view.log_records and check.segment.seq_max >= self.view.next_seq:
            return False
        if any(self.seen.has(seqs).any() for seqs in seqs_of(check)):
            return False
        self.remember(check)
        return True

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
        view = replace(view, next_seq=max(ends))
        sealed = tuple(segment for segment in segments if segment != view.segment)
        if self.dry_run:
            return
        log = create_log(self.folder)
        log.append(RecordKind.CHECKPOINT, *view.checkpoint())
        log.file.sync()
        log.file.close()
        following = replace(
            manifest,
            version=self.highest + 1,
            log=log.file.path.name,
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
                DISK.rename(path, path.with_name(name + ASIDE))
                MAPPED.forget(path)
        if not self.dry_run:
            sync_folder(self.folder)


def read_manifests(folder: Path) -> tuple[int, Manifest, list[str]]:
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
    if newest is None:
        message = f"no version of the manifest in {folder} can be read"
        raise StoreError(message, hint="restore a manifest file from a backup")
    return versions[-1], newest, damaged


def offsets_in(folder: Path, damaged: list[str]) -> dict[str, int]:
    """Return which segments damaged manifests seem to list, and from where on they count."""
    return {
        match[1].decode(): int(match[2])
        for name in damaged
        for match in LISTED.finditer((folder / name).read_bytes())
    }


def replayed(folder: Path, manifest: Manifest, name: str) -> tuple[View | None, str | None]:
    """Return a stream after the whole records of a log, and what is wrong with the log."""
    view = View(manifest)
    schema = manifest.schema.arrow
    schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
    synced = manifest.options.durability == "batch"
    reason = None
    try:
        content = (folder / name).read_bytes()
        for record in read_records(content, stamp_of(name), schemas, synced=synced):
            view = view.after(record)
    except FileNotFoundError:
        reason = "it is missing"
    except DamagedLogError as error:
        reason = str(error)
    if not view.log_records:
        return None, reason or "its first record is missing"
    return replace(view, next_seq=max(view.next_seq, manifest.next_seq)), reason


def has_roots(content: pa.Buffer, stamp: bytes) -> bool:
    """Whether a segment has been open: one that is written in one go has only a seal."""
    return any(frame.kind == Kind.ROOT for frame in frames_backwards(content, stamp))


def seqs_of(check: SegmentCheck) -> Iterator[Int64s]:
    """Yield the numbers of the events in the leaves that could be read."""
    for address in check.leaves:
        frame = read_frame(check.content, address, check.stamp)
        yield int64_view(leaf_rows(frame.payload, check.segment).column(SEQ))
