"""Time without events: how far streams that fall silent are moved by a wall clock.

    wall time    0 s ─────── 5 s ─────── 10 s ─────── 15 s
    cars         a@08:00:00   nothing more comes          idle 5 s, lateness 2 s
    is moved to               08:00:03   08:00:08    08:00:13

A stream is silent if none of its events has come for `idle` of wall time. Silent streams do not
hold the others back: they are moved to where the others are. If all are silent, time goes on with
the wall clock, from the watermark that was reached when the last event came.

Only differences of wall time count. So event time may lie far behind the wall clock or ahead of it,
and a clock that is set back stands still for a moment. What is decided here are instants by stream:
to move streams to the same instants again gives the same rows, with any clock or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from eventide.errors import PlanError
from eventide.instants import START_OF_TIME_US
from eventide.plan.times import format_duration
from eventide.schema import MAX_TS_US

LOOKS_IN_IDLE = 10
"""While all streams are silent, time is moved so many times in each `idle`."""
SHORTEST_LOOK_US = 10_000
LONGEST_LOOK_US = 1_000_000
"""The least and the most wall time between two such moves."""

Marks = Mapping[str, int]
"""The watermark of each stream that a query waits for."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The watermark of a stream when its last event came, and for how long it has been silent."""

    reached_us: int
    silent_us: int = 0


@dataclass(frozen=True, slots=True)
class Silence:
    """How long the streams of a query have been silent, as of a wall time."""

    idle_us: int
    now_us: int
    """The wall time; only differences count."""
    streams: Mapping[str, Heard]

    def __post_init__(self) -> None:
        check_idle(self.idle_us)

    @classmethod
    def starting(cls, idle_us: int, marks: Marks, now_us: int) -> Self:
        """Return the silence of a query that begins, or goes on after a restart.

        Nobody has listened before, so no stream is silent yet.
        """
        return cls(idle_us, now_us, {name: Heard(reached) for name, reached in marks.items()})

    def at(self, now_us: int) -> Self:
        """Return the silence at a later wall time. A clock that went back counts as standing."""
        passed_us = max(0, now_us - self.now_us)
        streams = {
            name: Heard(heard.reached_us, heard.silent_us + passed_us)
            for name, heard in self.streams.items()
        }
        return replace(self, now_us=now_us, streams=streams)

    def heard(self, streams: Iterable[str], marks: Marks) -> Self:
        """Return the silence after events of some streams, which are at these watermarks now."""
        known = {name: Heard(marks[name]) for name in streams if name in self.streams}
        return replace(self, streams={**self.streams, **known})

    @property
    def silent(self) -> frozenset[str]:
        """The streams that are silent."""
        idle_us = self.idle_us
        return frozenset(n for n, heard in self.streams.items() if heard.silent_us >= idle_us)

    def moves(self, marks: Marks) -> dict[str, int]:
        """Return to which instants streams are to be moved now, from these watermarks."""
        silent = self.silent
        waited_for = [marks[name] for name in self.streams if name not in silent]
        until_us = min(waited_for) if waited_for else self.furthest_us
        return {
            name: until_us for name in self.streams if name in silent and marks[name] < until_us
        }

    @property
    def furthest_us(self) -> int:
        """Where time is if it went on with the wall clock since the last event of each stream."""
        going_on = [
            heard.reached_us + heard.silent_us
            for heard in self.streams.values()
            if heard.reached_us != START_OF_TIME_US
        ]
        # No event is later than this, so there is nothing beyond that could be waited for.
        return min(max(going_on, default=START_OF_TIME_US), MAX_TS_US + 1)

    @property
    def look_again_us(self) -> int | None:
        """The wall time at which streams may have to be moved next, if no event comes before."""
        left_us = [
            self.idle_us - heard.silent_us
            for heard in self.streams.values()
            if heard.silent_us < self.idle_us
        ]
        if left_us:
            return self.now_us + min(left_us)
        if self.furthest_us == START_OF_TIME_US:
            return None
        look_us = min(max(self.idle_us // LOOKS_IN_IDLE, SHORTEST_LOOK_US), LONGEST_LOOK_US)
        return self.now_us + look_us


def check_idle(idle_us: int) -> int:
    """Return how long a stream has to be silent, unless that is no time at all."""
    if idle_us <= 0:
        message = f"idle has to be longer than {format_duration(idle_us)}"
        raise PlanError(message, hint='write idle="5 s": a stream is silent after that long')
    return idle_us
