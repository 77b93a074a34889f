"""The file of a log that is no longer needed, kept to write the next log over it.

Its blocks are on the disk already: a sync of an append need not note new ones, which takes about as
long as the append itself, and no file is deleted and made for every 16 MiB of small appends.

A spare belongs to the process that made it. Only this process knows that no log was begun in it
and given up: two logs of one stamp in a file could not be told apart. The spare of a process that
is gone is replaced by the next one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from eventide.store.files import disk
from eventide.store.files.disk import AppendFile, remove
from eventide.store.writing.log import SPARE_NAME, LogWriter, log_name
from eventide.store.writing.log_sectors import next_stamp

LEAST_BYTES = 4 << 20
MOST_BYTES = 64 << 20
"""How long a log has to be, and may be, to be kept: short ones save little, long ones take room."""


@dataclass(frozen=True, slots=True)
class SpareLog:
    """A spare, and the stamp of the log that may be written over it."""

    file: AppendFile
    """Open, so that no other file gets the number by which this one is known again."""
    stamp: bytes

    def begin(self) -> LogWriter | None:
        """Begin a log in the file; None if another process has replaced it."""
        path = self.file.path
        try:
            if not os.path.samestat(os.fstat(self.file.descriptor), path.stat()):
                return None
            target = path.with_name(log_name(self.stamp))
            disk.DISK.rename(path, target)
        except OSError:
            return None
        finally:
            self.file.close()
        try:
            # Opened anew: what failed before through the descriptor of the old log is not ours.
            return LogWriter(AppendFile(target, disk.DISK.open(target, create=False), 0), 0)
        except BaseException:
            remove(target)
            raise

    def discard(self) -> None:
        """Delete the file, unless that was done."""
        with suppress(OSError):
            if os.path.samestat(os.fstat(self.file.descriptor), self.file.path.stat()):
                remove(self.file.path)
        self.file.close()


def kept_as_spare(log: LogWriter) -> SpareLog | None:
    """Make a spare of a log that nothing refers to, or delete it."""
    path, following = log.file.path, next_stamp(log.stamp)
    spare = path.with_name(SPARE_NAME)
    try:
        size = os.fstat(log.file.descriptor).st_size
        if following is not None and LEAST_BYTES <= size <= MOST_BYTES:
            disk.DISK.rename(path, spare)
            return SpareLog(AppendFile(spare, os.dup(log.file.descriptor), 0), following)
    except OSError:
        pass
    remove(path)
    return None
