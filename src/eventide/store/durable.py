"""Write files so that a crash leaves the old or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"


def sync_file(path: Path) -> None:
    """Return once the file's bytes are on the disk."""
    sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Return once the names in a folder are on the disk."""
    sync(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))


def sync(path: Path, flags: int) -> None:
    """Open, fsync and close."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path`: after a crash the old file is there, or all of the new one.

    An error before the rename leaves the old file. An error after it (only the last fsync is
    left then) leaves the new file, visible but perhaps not yet safe from a power failure.
    """
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - the one call crash tests intercept
    except BaseException:
        remove(temporary)
        raise
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Delete a file nobody refers to. If that fails the next compaction sweeps it."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
