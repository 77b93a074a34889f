"""How fast a replay goes: event time against a clock."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Protocol

from eventide.errors import EvaluationError
from eventide.instants import END_OF_TIME_US

Speed = str | float
"""How much faster than the clock event time goes: 10, or text such as "10x"."""

FASTEST = 1e9
_SPEED = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x?\s*", re.IGNORECASE)


class PaceClock(Protocol):
    """The clock of a paced replay; tests use one that never waits."""

    def now(self) -> float:
        """Return seconds since a fixed moment; they never decrease."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait this many seconds."""
        ...


class WallClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Return seconds since a fixed moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait this many seconds."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Pace:
    """Event time that goes `speed` times as fast as the clock, and was `from_us` at `since_s`.

    >>> Pace(10.0, from_us=0, since_s=5.0).reached_us(now_s=7.0)
    20000000
    """

    speed: float
    from_us: int
    since_s: float

    def reached_us(self, now_s: float) -> int:
        """Return the event time that corresponds to a time of the clock."""
        passed_us = round((now_s - self.since_s) * self.speed * 1_000_000)
        return min(self.from_us + passed_us, END_OF_TIME_US - 1)

    def seconds_until(self, ts_us: int, now_s: float) -> float:
        """Return how many seconds after `now_s` an event time is reached; 0 if it already is."""
        due_s = self.since_s + (ts_us - self.from_us) / (self.speed * 1_000_000)
        return max(0.0, due_s - now_s)


def speed_of(speed: Speed | None) -> float | None:
    """Return a speed as a number; None means as fast as possible.

    >>> speed_of("10x"), speed_of(0.5), speed_of(None)
    (10.0, 0.5, None)
    """
    found: float | None = None
    if isinstance(speed, str):
        written = _SPEED.fullmatch(speed)
        found = None if written is None else float(written[1])
    elif isinstance(speed, int | float) and not isinstance(speed, bool):
        found = float(speed)
    elif speed is None:
        return None
    if found is None or not 0 < found <= FASTEST:
        message = f"{speed!r} is not a speed"
        hint = 'write "10x" or 10 for ten times as fast as it was; leave it out for full speed'
        raise EvaluationError(message, hint=hint)
    return found
