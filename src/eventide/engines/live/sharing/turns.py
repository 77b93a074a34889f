"""The clock of refreshes: how long a step may take, what waits for the next one, what is counted.

step of events [t0, t)       on the wall: as long as t - t0, less while a query is answered
refreshes due before t       in turn, the earliest deadlines first, as long as there is time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from eventide.engines.history.answer import ANSWERING
from eventide.engines.live.sharing.pace import PeriodPace
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.operators.sharing.turns import AT_ONCE, RefreshTurn

SHARE = 0.5
"""Of the time that events are about, a step takes so much, unless more is late."""

NowUs = Callable[[], int]


@dataclass
class RefreshTurns:
    """When the refreshes of a set of periodic queries are computed.

    Without a clock all that is due is computed at once.
    """

    now_us: NowUs | None = None
    goes_before: Callable[[], bool] = ANSWERING.any
    """Whether queries are answered that go before refreshes that can wait."""
    pace: PeriodPace = field(default_factory=PeriodPace)
    nothing_waits: bool = False
    """Whether all that is due is computed, however long it takes."""
    began_us: int = 0
    """When the step began, on the wall."""
    refreshing_us: int = 0
    """What refreshes have taken of the step."""
    refreshing_since_us: int | None = None
    """Since when refreshes are computed, if they are."""
    clock_us: int = START_OF_TIME_US
    """Where time stood before the step."""
    covered_us: int = 0
    """How long the events of the step are about, or of the last one that had any."""
    before_us: int | None = None
    """When the step before began."""

    @contextmanager
    def step(self, clock_us: Callable[[], int]) -> Iterator[None]:
        """Measure a step, before and after which the time of events is `clock_us`."""
        if self.now_us is None:
            yield
            return
        self.clock_us, self.began_us, self.refreshing_us = clock_us(), self.now_us(), 0
        yield
        after_us, now_us = clock_us(), self.now_us()
        known = self.clock_us != START_OF_TIME_US and after_us != END_OF_TIME_US
        if known and self.before_us is not None:
            took_us = now_us - self.began_us
            passed_us = max(self.began_us - self.before_us, took_us)
            events_us = max(took_us - self.refreshing_us, 0)
            self.pace = self.pace.after(
                after_us - self.clock_us, passed_us, events_us, self.refreshing_us
            )
        self.before_us = self.began_us

    @property
    def is_timed(self) -> bool:
        """Whether there is a clock."""
        return self.now_us is not None

    def refreshing(self) -> None:
        """Note that refreshes are computed from now on."""
        if self.now_us is not None:
            self.refreshing_since_us = self.now_us()

    def refreshed(self) -> None:
        """Note that refreshes are computed, if they were, and what came of them."""
        if self.now_us is not None and self.refreshing_since_us is not None:
            self.refreshing_us += self.now_us() - self.refreshing_since_us
            self.refreshing_since_us = None

    @property
    def stretch(self) -> int:
        """By which factor periods are stretched."""
        return self.pace.stretch

    def turn(self, until_us: int, *, may_wait: bool) -> RefreshTurn:
        """Return what is computed in a step to an instant of what is due."""
        now_us = self.now_us
        if now_us is None or until_us == END_OF_TIME_US:
            return AT_ONCE
        if (
            not may_wait
            or self.nothing_waits
            or self.clock_us == START_OF_TIME_US
            or self.pace.is_history
        ):
            return RefreshTurn(self.stretch)
        if until_us > self.clock_us:
            self.covered_us = until_us - self.clock_us
        end_us = self.began_us + int(SHARE * self.covered_us)

        def has_time() -> bool:
            return now_us() < end_us and not self.goes_before()

        return RefreshTurn(self.stretch, until_us + self.covered_us, has_time)
