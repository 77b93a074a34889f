"""Wall clocks: what time it is, and who waits for a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Lock, Thread
from typing import Protocol

from eventide.errors import EvaluationError
from eventide.plan.times import Duration, duration_us, format_duration

Wake = Callable[[], None]

log = logging.getLogger("eventide.live")


class Clock(Protocol):
    """A wall clock, in microseconds since a moment of its own: only differences count."""

    def now_us(self) -> int:
        """Return what time it is."""
        ...

    def wake_at(self, at_us: int, wake: Wake) -> None:
        """Call `wake` once, when this time has come."""
        ...


class Waiters:
    """Who waits for which time; who waits longest for the same time comes first."""

    def __init__(self) -> None:
        self.numbers = count()
        self.heap: list[tuple[int, int, Wake]] = []

    def add(self, at_us: int, wake: Wake) -> None:
        """Let someone wait for a time."""
        heappush(self.heap, (at_us, next(self.numbers), wake))

    @property
    def next_us(self) -> int | None:
        """The earliest time that someone waits for."""
        return self.heap[0][0] if self.heap else None

    def take(self, now_us: int) -> Wake | None:
        """Return who waits for a time that has come, if there is one, and forget him."""
        if self.heap and self.heap[0][0] <= now_us:
            return heappop(self.heap)[2]
        return None


class SystemClock:
    """The clock of this machine: it never goes back, and on most systems does not count sleep.

    One thread wakes all who wait; it ends when nobody does.
    """

    def __init__(self) -> None:
        self.waiting = Waiters()
        self.changed = Condition()
        self.thread: Thread | None = None

    def now_us(self) -> int:
        """Return microseconds since some moment before the process began."""
        return time.monotonic_ns() // 1_000

    def wake_at(self, at_us: int, wake: Wake) -> None:
        """Call `wake` in the thread of the clock, when this time has come."""
        with self.changed:
            self.waiting.add(at_us, wake)
            # A process that was forked has no thread of its parent.
            if self.thread is None or not self.thread.is_alive():
                self.thread = Thread(target=self.run, name="eventide clock", daemon=True)
                self.thread.start()
            self.changed.notify()

    def run(self) -> None:
        """Wake who waits, until nobody does."""
        while True:
            with self.changed:
                next_us = self.waiting.next_us
                if next_us is None:
                    self.thread = None
                    return
                wake = self.waiting.take(self.now_us())
                if wake is None:
                    self.changed.wait((next_us - self.now_us()) / 1_000_000)
                    continue
            try:
                wake()
            except Exception:
                # Nobody is there to catch it, and the others go on.
                log.exception("a live query could not be moved on")
            wake = None  # what is woken may be forgotten while the clock waits


SYSTEM_CLOCK = SystemClock()


class ManualClock:
    """A wall clock that stands still until `advance` moves it: for tests, and to try things out.

    >>> clock = ManualClock()
    >>> clock.wake_at(5_000_000, lambda: print("five seconds"))
    >>> clock.advance("3 s")
    >>> clock.advance("3 s")
    five seconds
    >>> clock.now_us()
    6000000
    """

    def __init__(self) -> None:
        self.waiting = Waiters()
        self.changing = Lock()
        self.passed_us = 0

    def now_us(self) -> int:
        """Return the microseconds that have passed."""
        return self.passed_us

    def wake_at(self, at_us: int, wake: Wake) -> None:
        """Call `wake` when time has been advanced so far."""
        with self.changing:
            self.waiting.add(at_us, wake)

    def advance(self, by: Duration) -> None:
        """Let time pass. Whoever waited for it has gone on when this returns."""
        by_us = duration_us(by)
        if by_us < 0:
            message = f"time cannot be advanced by {format_duration(by_us)}"
            raise EvaluationError(message, hint='write clock.advance("5 s"): time only goes on')
        with self.changing:
            self.passed_us += by_us
        while (wake := self.taken()) is not None:
            wake()

    def taken(self) -> Wake | None:
        """Return who is to be woken next."""
        with self.changing:
            return self.waiting.take(self.passed_us)

    def __repr__(self) -> str:
        return f"<ManualClock: {format_duration(self.passed_us)} have passed>"
