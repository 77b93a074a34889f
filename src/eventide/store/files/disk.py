"""Every change of the store's files, one call for each kind.

All of them go through `DISK`, so that a test can replace it by a disk that loses what was not
synced. Nothing else in this package writes, renames or deletes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, cast

import pyarrow as pa

TEMPORARY_SUFFIX = ".tmp"
BUFFERS_AT_ONCE = 512
"""How many buffers one call of the system may take; the limit is 1,024 on Linux."""
SYNC_FILE_RANGE_WRITE = 2

Bytes: TypeAlias = bytes | pa.Buffer


class Disk:
    """The file system, through calls that can be counted, recorded and made to fail."""

    def open(self, path: Path, *, create: bool) -> int:
        """Return a descriptor for reading and writing; a file to create must not exist."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        return os.open(path, flags, 0o666)

    def write(self, descriptor: int, buffers: Sequence[Bytes], offset: int) -> None:
        """Write all buffers one after the other, beginning at `offset`."""
        for start in range(0, len(buffers), BUFFERS_AT_ONCE):
            views = [memoryview(buffer) for buffer in buffers[start : start + BUFFERS_AT_ONCE]]
            while views:
                written = os.pwritev(descriptor, views, offset)
                offset += written
                views = rest_of(views, written)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.ftruncate(descriptor, size)

    def begin_sync(self, descriptor: int, offset: int, length: int) -> None:
        """Let the system write bytes to the disk from now on; only `sync` makes them safe."""
        begin = write_back()
        if begin is not None:
            begin(descriptor, offset, length, SYNC_FILE_RANGE_WRITE)

    def sync(self, descriptor: int) -> None:
        """Return once the file's bytes, and its length, are on the disk."""
        getattr(os, "fdatasync", os.fsync)(descriptor)

    def sync_folder(self, path: Path) -> None:
        """Return once the names in a folder are on the disk."""
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file or folder another name, replacing a file that has it."""
        os.replace(source, target)  # noqa: PTH105 - beside the other calls of the system

    def unlink(self, path: Path) -> None:
        """Delete a file."""
        path.unlink(missing_ok=True)


DISK = Disk()


@lru_cache(maxsize=1)
def write_back() -> Callable[[int, int, int, int], int] | None:
    """Return the system's call that writes a part of a file back, None if there is no such call.

    An error is not lost: the next sync of the file reports it.
    """
    if sys.platform != "linux":
        return None
    try:
        found = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return cast("Callable[[int, int, int, int], int]", found)


def rest_of(views: list[memoryview], written: int) -> list[memoryview]:
    """Return what is left of the views after some bytes were written."""
    for index, view in enumerate(views):
        if written < view.nbytes:
            return [view.cast("B")[written:], *views[index + 1 :]]
        written -= view.nbytes
    return []


@dataclass(slots=True)
class AppendFile:
    """A file that only grows. `end` is where the next byte goes."""

    path: Path
    descriptor: int
    end: int

    @classmethod
    def create(cls, path: Path) -> AppendFile:
        """Make a new, empty file."""
        return cls(path, DISK.open(path, create=True), 0)

    @classmethod
    def open(cls, path: Path) -> AppendFile:
        """Open a file to add to it, behind everything it holds."""
        descriptor = DISK.open(path, create=False)
        return cls(path, descriptor, os.fstat(descriptor).st_size)

    def append(self, buffers: Sequence[Bytes]) -> int:
        """Write buffers at the end, and return where they begin."""
        start = self.end
        DISK.write(self.descriptor, buffers, start)
        self.end += sum(memoryview(buffer).nbytes for buffer in buffers)
        return start

    def begin_sync(self, start: int) -> None:
        """Let the system write what was appended from a place on, so that `sync` waits less."""
        DISK.begin_sync(self.descriptor, start, self.end - start)

    def cut(self, end: int) -> None:
        """Remove what was written behind `end`, for good.

        It is synced at once: otherwise a power failure could bring the bytes back behind later
        ones.
        """
        DISK.truncate(self.descriptor, end)
        self.end = end
        self.sync()

    def sync(self) -> None:
        """Return once everything written is on the disk."""
        DISK.sync(self.descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path`: after a crash the old file is there, or all of the new one.

    An error before the rename leaves the old file. An error after it (only the last sync is left
    then) leaves the new file, visible but perhaps not yet safe from a power failure.
    """
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    try:
        file = AppendFile.create(temporary)
        try:
            file.append([content])
            file.sync()
        finally:
            file.close()
        DISK.rename(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    DISK.sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Return once the names in a folder are on the disk."""
    DISK.sync_folder(path)


def remove(path: Path) -> None:
    """Delete a file that nothing refers to. If that fails, the next compaction sweeps it."""
    with contextlib.suppress(OSError):
        DISK.unlink(path)
