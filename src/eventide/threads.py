"""Threads that share the parts of some work, and are kept from one call to the next.

Whoever asks works too, and whoever is free takes the next part. To begin a thread takes as long as
a small query, and one that only waits for the others has a core to no purpose.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

MOST_HELPERS = max(64, 2 * (os.cpu_count() or 1))
"""No more threads are kept: where work is small, helpers come to it when it is done."""

Part = TypeVar("Part")
Done = TypeVar("Done")


def in_threads(work: Callable[[Part], Done], parts: Iterable[Part], threads: int = 0) -> list[Done]:
    """Return what becomes of each part, computed in threads: one for each part if not said.

    If some parts fail, the error is that of the first of them, and no other part is begun.

    >>> in_threads(len, ["a", "bc", "def"], threads=2)
    [1, 2, 3]
    """
    given = list(parts)
    helpers = min(threads or len(given), len(given)) - 1
    if helpers < 1:
        return [work(each) for each in given]
    shared = SharedWork(work, given)
    try:
        for _ in range(helpers):
            help_with(shared)
        shared.go_on()
        shared.finished.wait()
    finally:
        shared.end()
    return shared.result()


class SharedWork(Generic[Part, Done]):
    """Work of which each thread takes the next part, until there is none left."""

    def __init__(self, work: Callable[[Part], Done], parts: Sequence[Part]) -> None:
        self.work = work
        self.parts = parts
        self.following = 0
        self.busy = 0
        self.lock = threading.Lock()
        self.finished = threading.Event()
        self.done: dict[int, Done] = {}
        self.failures: dict[int, BaseException] = {}

    def go_on(self) -> None:
        """Do parts that nobody has begun, one after another."""
        while (number := self.begun()) is not None:
            try:
                self.done[number] = self.work(self.parts[number])
            except BaseException as failure:
                self.failures[number] = failure
                self.end()
            finally:
                self.leave()

    def begun(self) -> int | None:
        """Return the number of the part that the caller has to do, if any is left."""
        with self.lock:
            if self.following == len(self.parts):
                return None
            self.following += 1
            self.busy += 1
            return self.following - 1

    def leave(self) -> None:
        """Note that a part is done."""
        with self.lock:
            self.busy -= 1
            if not self.busy and self.following == len(self.parts):
                self.finished.set()

    def end(self) -> None:
        """Let nobody begin another part."""
        with self.lock:
            self.following = len(self.parts)

    def result(self) -> list[Done]:
        """Return what became of the parts, or raise the error of the first that failed."""
        if self.failures:
            try:
                raise self.failures[min(self.failures)]
            finally:
                # Or the traceback keeps this frame alive, and the frame the traceback.
                self.failures.clear()
        return [self.done[number] for number in range(len(self.parts))]


class Helper:
    """A thread that helps with one piece of work after another."""

    def __init__(self) -> None:
        self.given: SimpleQueue[SharedWork[Any, Any]] = SimpleQueue()
        # A daemon: a program that was interrupted may end while a kernel still runs.
        threading.Thread(target=self.serve, name="eventide helper", daemon=True).start()
        _made.append(self)

    def serve(self) -> None:
        """Help whoever asks; keep nothing of it."""
        while True:
            shared = self.given.get()
            shared.go_on()
            del shared
            _idle.append(self)


_idle: list[Helper] = []
"""Helpers that wait for work."""
_made: list[Helper] = []
"""All helpers: as many as ever were needed at once, or had not yet seen that they are not."""


def forget_helpers() -> None:
    """Begin without helpers: a child has none of the threads of its parent."""
    _idle.clear()
    _made.clear()


os.register_at_fork(after_in_child=forget_helpers)


def help_with(shared: SharedWork[Any, Any]) -> None:
    """Let a thread help, if one has nothing to do or can be started."""
    try:
        helper = _idle.pop()
    except IndexError:
        if len(_made) >= MOST_HELPERS:
            return  # whoever asks does all parts
        try:
            helper = Helper()
        except RuntimeError:
            return  # no thread can be started any more
    helper.given.put(shared)
