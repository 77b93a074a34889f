"""Which manifest and which log of a damaged stream count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eventide.errors import EventideError
from eventide.store.segments.manifest import (
    LOG_NAME,
    Manifest,
    decode_manifest,
    manifest_path,
    versions_in,
)
from eventide.store.upkeep.repair.rebuild import rebuilt_manifest
from eventide.store.upkeep.repair.report import RepairNotes
from eventide.store.upkeep.repair.salvage_log import LogReading, read_log
from eventide.store.upkeep.verify_segment import MISSING
from eventide.store.writing.view import StreamView

LISTED = re.compile(
    rb'"file":"(seg-[0-9a-f]{32}\.ev)","bytes":\d+,"root":\d+,"root_length":\d+,"seq_offset":(\d+)'
)


@dataclass(frozen=True, slots=True)
class RepairStart:
    """The manifest and the log that count."""

    folder: Path
    manifest: Manifest
    highest: int
    """The highest version that any manifest had."""
    is_newest: bool
    """Whether the manifest is the newest that there was."""
    log: LogReading
    unread: int
    """How many events the damaged end of a log had at most."""
    offsets: Mapping[str, int]
    """The segments that damaged manifests seem to list, and the number each begins with."""

    @property
    def is_log_whole(self) -> bool:
        """Whether nothing is wrong with the manifest and its log."""
        return self.is_newest and self.is_own_log and self.log.is_whole

    @property
    def is_counted(self) -> bool:
        """Whether the log knows which numbers were given out."""
        return self.log.is_whole and (self.is_own_log or not self.is_newest)

    @property
    def is_own_log(self) -> bool:
        """Whether the log is the one that the manifest names."""
        return self.log.name == self.manifest.log

    def view(self) -> StreamView:
        """Return the stream as the log has it, or the manifest alone if no log can be read."""
        view = self.log.view
        if view is None:
            return StreamView(self.manifest, next_seq=self.manifest.next_seq)
        if view.segment is not None and view.segment.file in self.manifest.files:
            return replace(view, segment=None)
        return view


def find_start(folder: Path, notes: RepairNotes) -> RepairStart:
    """Read all manifests and logs, and choose."""
    highest, newest, damaged = read_manifests(folder)
    manifest = rebuilt_manifest(folder, damaged) if newest is None else newest
    notes.aside += damaged
    offsets = offsets_in(folder, damaged)
    own = read_log(folder, manifest, manifest.log)
    others = other_logs(folder, manifest)
    is_there = newest is not None and newest.version == highest
    is_behind = (
        is_there
        and own.reason == MISSING
        and any(other.next_seq >= manifest.next_seq for other in others)
    )
    is_newest = is_there and not is_behind
    note_version(notes, newest, highest, is_newest=is_newest, is_behind=is_behind)
    if is_behind:
        # A process that has read the missing version must not take the next one for it.
        highest += 1
    log = own
    if own.view is None or not is_newest:
        readable = [each for each in (own, *others) if each.view is not None]
        log = max(readable, key=lambda each: each.next_seq, default=own)
    note_logs(notes, folder, own, log, is_newest=is_newest)
    unread = max(own.unread, log.unread)
    return RepairStart(folder, manifest, highest, is_newest, log, unread, offsets)


def read_manifests(folder: Path) -> tuple[int, Manifest | None, list[str]]:
    """Return the highest version, the newest whole one, and the names of the damaged."""
    versions, damaged = versions_in(folder), []
    newest: Manifest | None = None
    for version in versions:
        path = manifest_path(folder, version)
        try:
            manifest = decode_manifest(path.read_bytes(), path)
            manifest.check_listings()
        except EventideError:
            damaged.append(path.name)
            continue
        if manifest.version == version:
            newest = manifest
        else:
            damaged.append(path.name)
    return max(versions, default=0), newest, damaged


def offsets_in(folder: Path, damaged: list[str]) -> dict[str, int]:
    """Return the segments that damaged manifests seem to list, and the number each begins with."""
    return {
        match[1].decode(): int(match[2])
        for name in damaged
        for match in LISTED.finditer((folder / name).read_bytes())
    }


def other_logs(folder: Path, manifest: Manifest) -> list[LogReading]:
    """Return the logs that the manifest does not name."""
    names = sorted(path.name for path in folder.glob("log-*.log"))
    others = [name for name in names if LOG_NAME.fullmatch(name) and name != manifest.log]
    found = [read_log(folder, manifest, name) for name in others]
    return [each for each in found if each.view is not None]


def note_version(
    notes: RepairNotes, newest: Manifest | None, highest: int, *, is_newest: bool, is_behind: bool
) -> None:
    """Report which version of the manifest counts, if that is not the newest."""
    if newest is None:
        notes.step("no version of the manifest can be read: make one from the segments")
        notes.hint("set the options of the stream again: no segment has them")
    elif is_behind:
        notes.step(
            f"the newest manifest is missing: version {newest.version} names {newest.log}, "
            "which is gone, and another log is there"
        )
    elif not is_newest:
        notes.step(f"go back from version {highest} to {newest.version}")


def note_logs(
    notes: RepairNotes, folder: Path, own: LogReading, chosen: LogReading, *, is_newest: bool
) -> None:
    """Report what is done with the manifest's log, and with the one that counts."""
    is_replaced = own.reason is not None and own is not chosen
    if is_replaced and is_newest:
        note_log(notes, own)
    if chosen.reason is not None:
        note_log(notes, chosen)
    if is_replaced and (folder / own.name).exists():
        notes.aside.append(own.name)


def note_log(notes: RepairNotes, log: LogReading) -> None:
    """Report what is done with a damaged log; which events it lost is known at the end."""
    name, what = log.name, f"{log.name}: {log.reason}"
    if log.reason == MISSING:
        what = f"{name} {MISSING}"
    else:
        notes.aside.append(name)
    if log.view is None:
        notes.step(f"{what}; nothing of it can be kept")
        notes.loss(f"what only {name} had")
    elif log.unread:
        notes.step(f"{what}; keep whole records up to byte {log.end}")
        most = f"at most {log.unread:,} events"
        notes.loss(f"what only {name} had behind byte {log.end}: {most}")
    else:
        notes.step(f"{what}; keep the whole records before and behind it")
