"""One writer at a time: an advisory lock on a file, freed by the system if its holder dies.

The file has a note of the newest version, so that a folder of thousands of files need not be
listed: the version, and when the folder had last changed by then, as in "7 1763582400123456789".
Nothing depends on it. It counts only while the folder has not changed since, and the next version
is not there. So it need not be synced, and a crash, a copy or a repair cannot make it wrong.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from eventide.errors import BusyError, StoreError

if sys.platform != "win32":
    import fcntl

LOCK_FILE = "lock"
WAIT_S = 10.0
POLL_S = 0.005
LONGEST_NOTE = 64


@contextlib.contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's write lock, waiting for another writer up to `WAIT_S` seconds."""
    if sys.platform == "win32":
        message = f"cannot write to {folder}: Windows has no flock to keep other writers out"
        raise StoreError(message, hint="write from Linux, macOS or WSL; reading works anywhere")
    try:
        # As text: a Path for each append would cost more than the call.
        descriptor = os.open(f"{folder}/{LOCK_FILE}", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror}"
        raise StoreError(message, hint="check that the folder exists and is writable") from error
    try:
        acquire(descriptor, folder)
        check_same_file(descriptor, folder)
        owner = os.getpid()
        try:
            yield
        finally:
            # Closing would free it as well, unless a forked child still holds the descriptor. Such
            # a child has a copy of this frame, and must not free what its parent holds.
            if os.getpid() == owner:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether someone holds the folder's write lock now."""
    if sys.platform == "win32" or not (folder / LOCK_FILE).exists():
        return False
    descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def check_same_file(descriptor: int, folder: Path) -> None:
    """Refuse a lock that protects nothing: its folder was dropped, and perhaps made anew."""
    try:
        named = os.stat(f"{folder}/{LOCK_FILE}")  # noqa: PTH116
        same = os.path.samestat(os.fstat(descriptor), named)
    except FileNotFoundError:
        same = False
    if not same:
        message = f"{folder} was dropped while this writer waited for it"
        raise StoreError(message, hint="open the stream again")


def acquire(descriptor: int, folder: Path) -> None:
    """Take the lock, or raise an error that says why not."""
    if is_free(descriptor, folder):
        return
    deadline = time.monotonic() + WAIT_S
    with waiting_first(folder, deadline) as waits_first:
        if waits_first and locked_until(descriptor, deadline):
            return
    message = f"another writer has held {folder / LOCK_FILE} for {WAIT_S:g} s"
    hint = "try again when it is done; a lock dies with the process that holds it"
    raise BusyError(message, hint=hint)


def is_free(descriptor: int, folder: Path) -> bool:
    """Take the lock if nobody has it or waits for it; return whether that was so."""
    if sys.platform == "win32":
        return False
    gate = -1
    try:
        gate = os.open(folder, os.O_RDONLY)
        fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        if gate >= 0:
            os.close(gate)
    return True


@contextlib.contextmanager
def waiting_first(folder: Path, deadline: float) -> Iterator[bool]:
    """Wait in a queue, so that a writer that has just written waits as well.

    Without it a writer that writes again and again leaves others only moments to find the lock
    free, and on a loaded machine they may miss every one. The folder itself is locked for this.
    """
    with contextlib.ExitStack() as held:
        try:
            gate = os.open(folder, os.O_RDONLY)
            held.callback(os.close, gate)
            first = locked_until(gate, deadline)
            held.callback(fcntl.flock, gate, fcntl.LOCK_UN)
        except OSError:
            first = True  # some file systems lock files only: then the order is random
        yield first


def locked_until(descriptor: int, deadline: float) -> bool:
    """Lock an open file or folder; return whether that was possible before the deadline."""
    if sys.platform == "win32":
        return False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        else:
            return True


def changed_ns(folder: Path) -> int:
    """Return when a name in a folder last came or went."""
    return os.stat(folder).st_mtime_ns  # noqa: PTH116


def note_newest(folder: Path, version: int, at_ns: int) -> None:
    """Note the newest version of a folder that last changed at a time; its lock is held."""
    text = f"{version} {at_ns}\n".encode().ljust(LONGEST_NOTE)
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{folder}/{LOCK_FILE}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, text, 0)
        finally:
            os.close(descriptor)


def noted_newest(folder: Path) -> int | None:
    """Return the version that was noted, None if the folder has changed since."""
    try:
        with open(f"{folder}/{LOCK_FILE}", "rb") as file:  # noqa: PTH123
            version, at_ns = map(int, file.read(LONGEST_NOTE).split())
        return version if changed_ns(folder) == at_ns else None
    except (OSError, ValueError):
        return None
