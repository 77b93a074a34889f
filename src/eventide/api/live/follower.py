"""One thread of the process that lets live queries take what is stored, by whichever process."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Protocol

from eventide.store.watch import FolderWatch

LOOK_S = 0.5
"""A look after this time in any case: not every file system tells of changes."""
REST_S = 0.002
LONGEST_REST_S = 0.02
"""The least time between two looks, which doubles while they find nothing: this process appends
then, and hands the events over itself. It is not to be slowed down."""

log = logging.getLogger("eventide.live")


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look has found."""

    found: bool
    """Whether there were events to take."""
    again_s: float | None = None
    """In how many seconds to look again, if that is known."""


class Followed(Protocol):
    """What follows the store: the live queries of a database."""

    def folders(self) -> set[Path]:
        """Return the folders whose changes matter now; none if nothing is to be followed."""
        ...

    def look(self) -> Looked:
        """Take what is stored."""
        ...

    def receives(self) -> bool:
        """Return whether someone receives what comes of it."""
        ...

    def close(self) -> None:
        """Hand over what waits, and end."""
        ...

    def leave_to_parent(self) -> None:
        """Do nothing more: this process is a copy of the one that follows."""
        ...


class Follower:
    """Looks after all that follows a store in this process.

    It holds on to what has a receiver. What has none, and nobody else holds, is not followed any
    more.
    """

    def __init__(self) -> None:
        self.changing = Lock()
        self.followed: weakref.WeakSet[Followed] = weakref.WeakSet()
        self.kept: set[Followed] = set()
        self.watch: FolderWatch | None = None

    def follow(self, each: Followed) -> None:
        """Look after something more, from now on."""
        with self.changing:
            self.followed.add(each)
            if each.receives():
                self.kept.add(each)
            if self.watch is None:
                watch = FolderWatch()
                Thread(target=self.run, args=(watch,), name="eventide live", daemon=True).start()
                self.watch = watch
        self.wake()

    def follows(self, each: Followed) -> bool:
        """Return whether something is looked after."""
        with self.changing:
            return each in self.followed

    def wake(self) -> None:
        """Look now."""
        watch = self.watch
        if watch is not None:
            watch.wake()

    def run(self, watch: FolderWatch) -> None:
        """Look whenever something has changed, until nothing is to be followed."""
        wait_s, rest_s = 0.0, REST_S
        while True:
            watch.wait(wait_s)
            started = monotonic()
            wait_s, found = LOOK_S, False
            folders: set[Path] = set()
            with self.changing:
                followed = list(self.followed)
            while followed:
                each = followed.pop()
                # What fails is logged: nobody is there to catch it, and the others go on.
                try:
                    looked = each.look()
                    found |= looked.found
                    wait_s = wait_s if looked.again_s is None else min(wait_s, looked.again_s)
                    with self.changing:
                        own = each.folders()
                        if not own:
                            self.followed.discard(each)
                        keep = self.kept.add if own and each.receives() else self.kept.discard
                        keep(each)
                    folders |= own
                except BaseException:
                    log.exception("live queries could not be brought up to date")
                del each  # or it would live until the next look
            if watch.watch(folders):
                wait_s = 0.0  # something may have changed before the folder was watched
            with self.changing:
                if not self.followed:
                    self.watch = None
                    watch.close()
                    return
            rest_s = REST_S if found else min(2 * rest_s, LONGEST_REST_S)
            sleep(max(0.0, rest_s - (monotonic() - started)))

    def end_all(self) -> None:
        """End everything when the interpreter ends: rows that wait are handed over."""
        with self.changing:
            found = list(self.followed)
        for each in found:
            try:
                each.close()
            except Exception:
                log.exception("live queries could not be ended properly")

    def leave_to_parent(self) -> None:
        """Follow nothing: this process is a copy, without the threads, of one that goes on."""
        for each in list(self.followed):
            each.leave_to_parent()
        if self.watch is not None:
            self.watch.leave_to_parent()
        self.changing = Lock()
        self.followed, self.kept, self.watch = weakref.WeakSet(), set(), None


FOLLOWER = Follower()
atexit.register(FOLLOWER.end_all)
os.register_at_fork(after_in_child=FOLLOWER.leave_to_parent)
