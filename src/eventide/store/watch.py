"""Notice that files in some folders have changed, by whichever process."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import sys
import threading
from pathlib import Path

POLL_S = 0.02
"""How often to look where the system does not tell of changes."""

_MODIFY, _MOVED_TO, _CREATE, _GONE = 0x2, 0x80, 0x100, 0x8000
_WHAT = _MODIFY | _MOVED_TO | _CREATE
_EVENT = struct.Struct("iIII")
"""What the system tells: number of the folder, what happened, a cookie, length of the name."""


class FolderWatch:
    """Waits for changes in folders. On Linux the system tells of them; elsewhere one has to look.

    A network file system does not tell what other machines change, so `wait` returns after a while
    in any case.
    """

    def __init__(self) -> None:
        self.folders: dict[Path, int] = {}
        self.woken = threading.Event()
        self.told = inotify()
        self.bell, self.rope = os.pipe() if self.told is not None else (-1, -1)
        self.ringing = threading.Lock()
        """Held while the rope is pulled or cut: its number may be another file's afterwards."""
        if self.told is not None:
            os.set_blocking(self.bell, False)
            os.set_blocking(self.rope, False)

    def watch(self, folders: set[Path]) -> bool:
        """Watch these folders and no others; return whether some of them were not watched."""
        fresh = {each for each in folders if self.folders.get(each, -1) < 0}
        for folder in self.folders.keys() - folders:
            number = self.folders.pop(folder)
            if self.told is not None and number >= 0:
                _libc().inotify_rm_watch(self.told, number)
        begun = bool(folders - self.folders.keys())
        for folder in fresh:
            number = -1
            if self.told is not None:
                number = _libc().inotify_add_watch(self.told, os.fsencode(folder), _WHAT)
            self.folders[folder] = number
            begun |= number >= 0
        return begun

    @property
    def polls(self) -> bool:
        """Whether the system does not tell of changes, at least in one folder."""
        return any(number < 0 for number in self.folders.values())

    def wait(self, timeout_s: float) -> None:
        """Return when a file has changed, after `wake`, or after a time."""
        timeout_s = min(timeout_s, POLL_S) if self.polls else timeout_s
        if self.told is None:
            self.woken.wait(timeout_s)
        else:
            # Not select: it refuses descriptors from 1024 on.
            waiting = select.poll()
            for descriptor in (self.told, self.bell):
                waiting.register(descriptor, select.POLLIN)
            for descriptor, _ in waiting.poll(timeout_s * 1000):
                told = drained(descriptor)
                if descriptor == self.told:
                    self.forget(told)
        self.woken.clear()

    def forget(self, told: bytes) -> None:
        """Forget the folders that are no longer watched: they are gone."""
        at, gone = 0, set[int]()
        while at < len(told):
            number, what, _, length = _EVENT.unpack_from(told, at)
            at += _EVENT.size + length
            if what & _GONE:
                gone.add(number)
        for folder in [each for each, number in self.folders.items() if number in gone]:
            del self.folders[folder]

    def wake(self) -> None:
        """Let `wait` return now."""
        if not self.woken.is_set():
            self.woken.set()
            with self.ringing:
                if self.rope >= 0:
                    os.write(self.rope, b"!")

    def close(self) -> None:
        """Close what is open."""
        with self.ringing:
            for descriptor in (self.told, self.bell, self.rope):
                if descriptor is not None and descriptor >= 0:
                    os.close(descriptor)
            self.told, self.bell, self.rope = None, -1, -1

    def leave_to_parent(self) -> None:
        """Close the copies that this process has of its parent's descriptors."""
        self.ringing = threading.Lock()  # a thread of the parent may have held the other
        self.close()


def inotify() -> int | None:
    """Return a descriptor that tells of changes, None if the system has none."""
    if sys.platform != "linux":
        return None
    try:
        descriptor = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
    return descriptor if descriptor >= 0 else None


def drained(descriptor: int) -> bytes:
    """Read all that waits in a descriptor."""
    parts: list[bytes] = []
    try:
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
