"""The wall time of a live query: it moves streams on that have been silent for a while."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import WeakMethod, ref

from eventide.api.live.clocks.clock import Clock
from eventide.engines.live.silence import Silence, check_idle
from eventide.errors import PlanError
from eventide.plan.times import Duration, duration_us

if TYPE_CHECKING:
    from eventide.api.live.query import LiveQuery

ReadMarks = Callable[[], Mapping[str, int] | None]
"""Returns the watermark of each stream that a query waits for; None when the query is over."""
Move = Callable[[Mapping[str, int]], None]
"""Moves streams to instants."""


class Mover(Protocol):
    """What can move the streams below a query."""

    def move(self, query: LiveQuery, until_us: Mapping[str, int]) -> None:
        """Move streams to instants, also below the derived streams that a query reads."""
        ...


class WallTime:
    """Listens to the streams of a query, and moves the silent ones.

    `heard` is called after a step that took events, whichever thread took it. The clock calls
    `look` when a stream may have fallen silent, and again and again while all are silent.
    """

    def __init__(self, clock: Clock, idle_us: int, marks: ReadMarks, move: Move) -> None:
        self.clock = clock
        self.marks = marks
        self.move = move
        self.silence = Silence.starting(idle_us, marks() or {}, clock.now_us())
        self.changing = Lock()
        self.waking_us: int | None = None
        """When the clock will wake it next."""
        self.look()

    def heard(self, stream: str) -> None:
        """Note that events of a stream have come; move silent streams to where it is now."""
        if stream not in self.silence.streams:
            return
        marks = self.marks()
        if marks is not None:
            with self.changing:
                self.silence = self.silence.at(self.clock.now_us()).heard([stream], marks)
            self.look()

    def look(self) -> None:
        """Move silent streams, and let the clock wake it when they may have to be moved again."""
        marks = self.marks()
        if marks is None:
            return
        with self.changing:
            self.silence = self.silence.at(self.clock.now_us())
            moves = self.silence.moves(marks)
            self.wake_in_time()
        if moves:
            self.move(moves)

    def wake_in_time(self) -> None:
        """Let the clock wake it, unless it will do so early enough."""
        again_us = self.silence.look_again_us
        if again_us is None or (self.waking_us is not None and self.waking_us <= again_us):
            return
        self.waking_us = again_us
        # The clock does not keep a query alive that nobody holds any more.
        found = WeakMethod(self.woken)

        def wake() -> None:
            woken = found()
            if woken is not None:
                woken(again_us)

        self.clock.wake_at(again_us, wake)

    def woken(self, at_us: int) -> None:
        """Look, because the clock says that a time has come."""
        with self.changing:
            if self.waking_us == at_us:
                self.waking_us = None
        self.look()


def marks_below(query: LiveQuery) -> dict[str, int] | None:
    """Return the watermark of each stored stream that a query waits for, None if it is over.

    A stream below a derived stream counts like one that the query reads itself: rows of a derived
    stream may be rare, that says nothing of its events.
    """
    if query.finished:
        return None
    found: dict[str, int] = {}
    readers = [query]
    while readers:
        reader = readers.pop()
        readers += reader.sources.values()
        for stream, mark_us in reader.engine.marks(reader.state).items():
            if stream not in reader.sources:
                found[stream] = min(mark_us, found.get(stream, mark_us))
    return found


def listen(query: LiveQuery, clock: Clock, idle_us: int, mover: Mover) -> None:
    """Let a query that has begun listen to its streams, and move them when they are silent."""
    # The query has its wall time, which must not keep the query.
    found = ref(query)

    def marks() -> Mapping[str, int] | None:
        here = found()
        return None if here is None else marks_below(here)

    def move(until_us: Mapping[str, int]) -> None:
        here = found()
        if here is not None:
            mover.move(here, until_us)

    query.wall_time = WallTime(clock, idle_us, marks, move)


def checked_idle(idle: Duration | None, clock: Clock | None) -> int | None:
    """Return after how much wall time a stream is silent; None if no wall clock counts."""
    if idle is not None:
        return check_idle(duration_us(idle))
    if clock is not None:
        message = "a clock only moves streams that are silent, and idle says when they are"
        raise PlanError(message, hint='write idle="5 s": a stream is silent after that long')
    return None
