"""Sync logs a little later, many appends at once."""

from __future__ import annotations

import atexit
import os
import threading
import time
from pathlib import Path

from eventide.store.files import disk
from eventide.store.files.disk import AppendFile


class GroupCommit:
    """One thread that syncs files when they are due."""

    def __init__(self) -> None:
        self.wake = threading.Condition()
        self.due: dict[Path, tuple[float, int]] = {}
        self.failed: set[str] = set()
        self.thread: threading.Thread | None = None

    def later(self, file: AppendFile, within_s: float) -> None:
        """Sync a file within some seconds; a sync that is due sooner covers it."""
        with self.wake:
            if file.path in self.due:
                return
            # A copy: the log may be closed and its number given to another file by then.
            self.due[file.path] = (time.monotonic() + within_s, os.dup(file.descriptor))
            if self.thread is None:
                self.thread = threading.Thread(target=self.run, name="eventide sync", daemon=True)
                self.thread.start()
            self.wake.notify()

    def run(self) -> None:
        """Wait for the next file that is due, and sync it."""
        while True:
            with self.wake:
                while not self.due:
                    self.wake.wait()
                key, (at, copy) = min(self.due.items(), key=lambda item: item[1][0])
                if (left := at - time.monotonic()) > 0:
                    self.wake.wait(left)
                    continue
                del self.due[key]
            self.sync(key, copy)

    def finish(self) -> None:
        """Sync everything that waits."""
        with self.wake:
            copies = [(path, copy) for path, (_, copy) in self.due.items()]
            self.due.clear()
        for path, copy in copies:
            self.sync(path, copy)

    def sync(self, path: Path, copy: int) -> None:
        """Sync a copy of a descriptor; the next writer checks whether that succeeded."""
        try:
            disk.DISK.sync(copy)
        except OSError:
            self.failed.add(str(path))
        finally:
            os.close(copy)


COMMITS = GroupCommit()
atexit.register(COMMITS.finish)


def forget_parent() -> None:
    """A forked child has no thread, and the parent syncs the parent's files."""
    COMMITS.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=forget_parent)


def sync_soon(file: AppendFile, within_s: float) -> None:
    """Sync a file within some seconds, together with what is appended to it until then."""
    COMMITS.later(file, within_s)


def note_lost(path: Path) -> None:
    """Remember that a sync of a file failed: the system forgets what it could not write."""
    COMMITS.failed.add(str(path))


def was_lost(path: Path | str) -> bool:
    """Whether a sync of a file failed, so that syncing it again would only seem to help."""
    return str(path) in COMMITS.failed
