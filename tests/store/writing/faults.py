"""A disk that records its calls, and what may be left of them when the power fails.

`RecordingDisk` does everything for real and records it. From its trace, `crash_images` makes what a
disk may hold after a crash at any moment: what was synced is there; of the rest anything may be
missing, sector by sector and name by name. `FailingDisk` does everything but one call, or two;
`FaultyDisk` records, and does everything but some calls.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeAlias
from unittest.mock import patch

from eventide.store.files.disk import Bytes, Disk

SECTOR = 512
FOLDER = -1
"""Stands in a trace where the number of a file would: the name is one of a folder."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes were written to a file."""

    file: int
    offset: int
    content: bytes

    def on(self, before: bytes) -> bytes:
        """Return the file after it."""
        padded = before.ljust(self.offset, b"\0")
        return padded[: self.offset] + self.content + padded[self.offset + len(self.content) :]


@dataclass(frozen=True, slots=True)
class Truncate:
    """A file was cut."""

    file: int
    size: int

    def on(self, before: bytes) -> bytes:
        """Return the file after it."""
        return before[: self.size].ljust(self.size, b"\0")


@dataclass(frozen=True, slots=True)
class Sync:
    """The bytes of a file became safe."""

    file: int


@dataclass(frozen=True, slots=True)
class LostSync:
    """A sync of a file failed: what was not safe by then never becomes so by another sync."""

    file: int


@dataclass(frozen=True, slots=True)
class Link:
    """A new file or folder got its name."""

    path: Path
    file: int


@dataclass(frozen=True, slots=True)
class Rename:
    """A file or folder got another name."""

    source: Path
    target: Path


@dataclass(frozen=True, slots=True)
class Unlink:
    """A name went."""

    path: Path


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """The names in a folder became safe."""

    path: Path


Change: TypeAlias = Write | Truncate | Sync | LostSync | Link | Rename | Unlink | SyncFolder
Names: TypeAlias = dict[Path, int]
Image: TypeAlias = dict[Path, bytes | None]
"""What a disk holds, by paths below its root: the bytes of files, None for folders."""


@dataclass
class Trace:
    """What a disk held at first, all of it safe, and what happened to it since."""

    start: Image
    names: Names = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, (path, content) in enumerate(sorted(self.start.items())):
            self.names[path] = FOLDER if content is None else number


class RecordingDisk(Disk):
    """Does what it is told below a folder, and writes it down."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.trace = Trace(held_by(root))
        self.lock = threading.Lock()
        # A group commit syncs through a copy of the descriptor: only the inode is the same.
        self.numbers = {
            (root / path).stat().st_ino: number for path, number in self.trace.names.items()
        }
        self.folders = {path for path, number in self.trace.names.items() if number == FOLDER}
        self.count = len(self.trace.names)

    def below(self, path: Path) -> Path:
        """Return a path as traces have it."""
        return path.relative_to(self.root)

    def number(self, descriptor: int) -> int:
        """Return the number of an open file."""
        return self.numbers[os.fstat(descriptor).st_ino]

    def note(self, change: Change) -> None:
        """Write a change down."""
        self.trace.changes.append(change)

    def open(self, path: Path, *, create: bool) -> int:
        """See `Disk`."""
        with self.lock:
            descriptor = super().open(path, create=create)
            if create:
                for folder in reversed(self.below(path).parents[:-1]):
                    if folder not in self.folders:
                        self.folders.add(folder)
                        self.note(Link(folder, FOLDER))
                self.count += 1
                self.numbers[os.fstat(descriptor).st_ino] = self.count
                self.note(Link(self.below(path), self.count))
            return descriptor

    def write(self, descriptor: int, buffers: Sequence[Bytes], offset: int) -> None:
        """See `Disk`."""
        with self.lock:
            super().write(descriptor, buffers, offset)
            self.note(Write(self.number(descriptor), offset, b"".join(map(bytes, buffers))))

    def truncate(self, descriptor: int, size: int) -> None:
        """See `Disk`."""
        with self.lock:
            super().truncate(descriptor, size)
            self.note(Truncate(self.number(descriptor), size))

    def sync(self, descriptor: int) -> None:
        """See `Disk`."""
        with self.lock:
            super().sync(descriptor)
            # A sync that another stream had due a little later is not our business.
            if os.fstat(descriptor).st_ino in self.numbers:
                self.note(Sync(self.number(descriptor)))

    def sync_folder(self, path: Path) -> None:
        """See `Disk`. What lies above the root is not our business."""
        with self.lock:
            super().sync_folder(path)
            if path.is_relative_to(self.root):
                self.note(SyncFolder(self.below(path)))

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        with self.lock:
            super().rename(source, target)
            self.note(Rename(self.below(source), self.below(target)))

    def unlink(self, path: Path) -> None:
        """See `Disk`. What lies elsewhere is not our business."""
        with self.lock:
            super().unlink(path)
            if path.is_relative_to(self.root):
                self.note(Unlink(self.below(path)))

    def is_synced(self, path: Path) -> bool:
        """Whether everything written to a file so far is safe."""
        number = self.numbers[path.stat().st_ino]
        for change in reversed(self.trace.changes):
            if isinstance(change, Write | Truncate | Sync) and change.file == number:
                return isinstance(change, Sync)
        return True

    def syncs(self) -> int:
        """Return how often a file was synced."""
        return sum(isinstance(change, Sync) for change in self.trace.changes)


class FaultyDisk(RecordingDisk):
    """Records, and raises an error at some calls, which are counted from 1."""

    def __init__(self, root: Path, steps: Collection[int], error: BaseException) -> None:
        super().__init__(root)
        self.steps = steps
        self.error = error
        self.calls = 0

    def let(self, before: Callable[[], object] = lambda: None) -> None:
        """Let a call pass, or fail after it has done some of its work."""
        self.calls += 1
        if self.calls in self.steps:
            before()
            raise self.error

    def open(self, path: Path, *, create: bool) -> int:
        """See `Disk`."""
        self.let()
        return super().open(path, create=create)

    def write(self, descriptor: int, buffers: Sequence[Bytes], offset: int) -> None:
        """See `Disk`."""
        content = b"".join(map(bytes, buffers))
        half = [content[: len(content) // 2]]
        self.let(lambda: RecordingDisk.write(self, descriptor, half, offset))
        super().write(descriptor, buffers, offset)

    def truncate(self, descriptor: int, size: int) -> None:
        """See `Disk`."""
        self.let()
        super().truncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """See `Disk`."""
        self.let(lambda: self.note(LostSync(self.number(descriptor))))
        super().sync(descriptor)

    def sync_folder(self, path: Path) -> None:
        """See `Disk`."""
        self.let()
        super().sync_folder(path)

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        self.let()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        """See `Disk`."""
        self.let()
        super().unlink(path)


class FailingDisk(Disk):
    """Raises an error at the n-th call, and perhaps at one soon after; a write fails half way.

    A dead disk goes on failing.
    """

    def __init__(self, step: int, error: BaseException, *, dead: bool, then: int = 0) -> None:
        self.step = step
        self.then = then
        self.error = error
        self.dead = dead
        self.calls = 0
        self.spared: set[str] = set()
        """The files that could not be deleted because of the error."""

    def count(self, before: Callable[[], object] = lambda: None) -> None:
        """Let a call pass, or fail after it has done some of its work."""
        self.calls += 1
        fails = self.calls in (self.step, self.step + self.then)
        if fails:
            before()
        if fails or (self.dead and self.calls > self.step):
            raise self.error

    def open(self, path: Path, *, create: bool) -> int:
        """See `Disk`."""
        self.count()
        return super().open(path, create=create)

    def write(self, descriptor: int, buffers: Sequence[Bytes], offset: int) -> None:
        """See `Disk`."""
        content = b"".join(map(bytes, buffers))
        self.count(lambda: Disk.write(self, descriptor, [content[: len(content) // 2]], offset))
        super().write(descriptor, buffers, offset)

    def truncate(self, descriptor: int, size: int) -> None:
        """See `Disk`."""
        self.count()
        super().truncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """See `Disk`."""
        self.count()
        super().sync(descriptor)

    def sync_folder(self, path: Path) -> None:
        """See `Disk`."""
        self.count()
        super().sync_folder(path)

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        self.count()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        """See `Disk`."""
        self.count(lambda: self.spared.add(path.name))
        super().unlink(path)


@contextlib.contextmanager
def using(disk: Disk) -> Iterator[None]:
    """Let the store work on another disk."""
    with patch("eventide.store.files.disk.DISK", disk):
        yield


@contextlib.contextmanager
def recorded(root: Path) -> Iterator[RecordingDisk]:
    """Record what the store does below a folder."""
    disk = RecordingDisk(root)
    with using(disk):
        yield disk


def held_by(root: Path) -> Image:
    """Return everything below a folder."""
    return {
        path.relative_to(root): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


def lay_out(image: Image, root: Path) -> None:
    """Put everything below a folder."""
    for path, content in sorted(image.items()):
        if content is None:
            (root / path).mkdir(parents=True, exist_ok=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)


@dataclass
class Remains:
    """A disk at one moment: what is safe, and what is not yet."""

    names: Names
    pending: list[Link | Rename | Unlink]
    versions: dict[int, list[bytes]]
    """Of each file, its safe bytes and then those after each change since."""
    without: dict[int, bytes] = field(default_factory=dict)
    """Of files of which a sync failed, their bytes without what that should have made safe."""


def remains(trace: Trace, upto: int) -> Remains:
    """Return the disk after the first `upto` changes."""
    at = Remains(dict(trace.names), [], {})
    for path, number in trace.names.items():
        content = trace.start[path]
        if content is not None:
            at.versions[number] = [content]
    for change in trace.changes[:upto]:
        match change:
            case Write() | Truncate():
                at.versions[change.file].append(change.on(at.versions[change.file][-1]))
                if change.file in at.without:
                    at.without[change.file] = change.on(at.without[change.file])
            case LostSync():
                at.without.setdefault(change.file, at.versions[change.file][0])
            case Sync():
                newest = at.versions[change.file][-1]
                least = at.without.get(change.file, newest)
                at.versions[change.file] = [newest] if least == newest else [least, newest]
            case SyncFolder():
                safe = [each for each in at.pending if change.path in folders_of(each)]
                at.pending = [each for each in at.pending if change.path not in folders_of(each)]
                at.names = renamed(at.names, safe)
            case _:
                at.pending.append(change)
                if isinstance(change, Link) and change.file != FOLDER:
                    at.versions[change.file] = [b""]
    return at


def folders_of(change: Link | Rename | Unlink) -> list[Path]:
    """Return the folders whose names a change is about."""
    if isinstance(change, Rename):
        return [change.source.parent, change.target.parent]
    return [change.path.parent]


def renamed(names: Names, changes: Sequence[Link | Rename | Unlink]) -> Names:
    """Return names after some changes."""
    names = dict(names)
    for change in changes:
        match change:
            case Link(path, file):
                names[path] = file
            case Unlink(path):
                names.pop(path, None)
            case Rename(source, target):
                for path in [each for each in names if each.is_relative_to(source)]:
                    names[target / path.relative_to(source)] = names.pop(path)
    return names


def whole_renames(
    chosen: Sequence[Link | Rename | Unlink], pending: Sequence[Link | Rename | Unlink]
) -> list[Link | Rename | Unlink]:
    """Let a rename that survives bring its file along, though the file's first name was lost."""
    first = {change.path: change for change in pending if isinstance(change, Link)}
    out: list[Link | Rename | Unlink] = []
    for change in chosen:
        if isinstance(change, Rename) and (link := first.get(change.source)) and link not in chosen:
            out.append(link)
        out.append(change)
    return out


def crash_images(trace: Trace, upto: int, rng: Random, several: int = 2) -> Iterator[Image]:
    """Yield what a disk may hold if everything stops after `upto` changes, or during the next.

    First what is left when only the process dies. Then the least that a power failure leaves, and
    `several` times three others, drawn by lot: names as they should be, a first part of the
    changes of names, and any of them; each with any sectors of what was not synced.
    """
    at = remains(trace, upto)
    yield image(renamed(at.names, at.pending), lambda file: at.versions[file][-1])
    under_way = trace.changes[upto] if upto < len(trace.changes) else None
    if isinstance(under_way, Write):
        cut = rng.randrange(len(under_way.content))
        part = Write(under_way.file, under_way.offset, under_way.content[:cut])
        at.versions[under_way.file].append(part.on(at.versions[under_way.file][-1]))
        yield image(renamed(at.names, at.pending), lambda file: at.versions[file][-1])
        at.versions[under_way.file][-1] = under_way.on(at.versions[under_way.file][-2])
    yield image(at.names, lambda file: at.versions[file][0])
    if isinstance(under_way, Link | Rename | Unlink):
        at.pending.append(under_way)
        if isinstance(under_way, Link):
            at.versions[under_way.file] = [b""]
    for _ in range(several):
        prefix = at.pending[: rng.randint(0, len(at.pending))]
        some = [change for change in at.pending if rng.random() < 0.5]
        for chosen in (at.pending, prefix, whole_renames(some, at.pending)):
            torn = {file: torn_bytes(held, rng) for file, held in at.versions.items()}
            yield image(renamed(at.names, chosen), torn.__getitem__)


def image(names: Names, content_of: Callable[[int], bytes]) -> Image:
    """Return the files that can be reached: those whose folders are there as well."""
    return {
        path: None if file == FOLDER else content_of(file)
        for path, file in names.items()
        if all(names.get(folder) == FOLDER for folder in list(path.parents)[:-1])
    }


def torn_bytes(versions: Sequence[bytes], rng: Random) -> bytes:
    """Return a file each of whose sectors, and whose length, is as it was at some moment."""
    if len(versions) == 1:
        return versions[0]
    longest, shortest = max(map(len, versions)), min(map(len, versions))
    length = rng.choice([len(versions[-1]), len(rng.choice(versions)), longest, shortest])
    if rng.random() < 0.3:
        length = rng.randint(shortest, longest)
    survival = rng.choice([0.2, 0.5, 0.9])
    sectors = []
    for start in range(0, length, SECTOR):
        held = versions[-1] if rng.random() < survival else rng.choice(versions)
        sectors.append(held[start : start + SECTOR].ljust(SECTOR, b"\0"))
    return b"".join(sectors)[:length]
