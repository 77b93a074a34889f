"""How far the periods of periodic queries are stretched: by what their steps took lately.

    load = (what events took + what refreshes took / stretch) / the time that the events were about

Above 1, a machine does not keep up. Then all periods stretch by the same factor, the least power
of two with which it would be well below; once it is so with a smaller one, they shrink again. The
refreshes of a smaller factor are all those of a larger one, and more. Where events alone take too
much, longer periods do not help: they stretch until refreshes take a tenth of that.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST = 64
"""Periods are not stretched further: it would not help."""
FULL = 1.0
WELL = 0.8
"""Loads above which periods stretch, and at which they may shrink."""
LITTLE = 0.1
"""If refreshes take less than this share of what events take, periods need not stretch."""
HORIZON_US = 30_000_000
"""What steps took counts half after so much time of events."""
FEWEST_US = 10_000_000
"""Nothing is known before events of so much time."""
HISTORY = 2.0
"""Events that come so many times as fast as their times say are history: nothing is late."""


@dataclass(frozen=True, slots=True)
class PeriodPace:
    """What was measured of steps, older ones less; refreshes as if no period were stretched."""

    stretch: int = 1
    covered_us: float = 0.0
    """The time that events were about."""
    passed_us: float = 0.0
    """The time on the wall meanwhile."""
    events_us: float = 0.0
    refreshes_us: float = 0.0

    def load(self, stretch: int) -> float:
        """Return how much of the time steps need if periods are stretched like this."""
        took_us = self.events_us + self.refreshes_us / stretch
        return took_us / self.covered_us if self.covered_us else 0.0

    @property
    def is_history(self) -> bool:
        """Whether events come faster than in their own time."""
        return self.covered_us > HISTORY * self.passed_us + FEWEST_US

    def after(
        self, covered_us: int, passed_us: int, events_us: int, refreshes_us: int
    ) -> PeriodPace:
        """Return the pace after a step, and the time until the next one."""
        kept = 0.5 ** (covered_us / HORIZON_US)
        one = PeriodPace(
            self.stretch,
            kept * self.covered_us + covered_us,
            kept * self.passed_us + passed_us,
            kept * self.events_us + events_us,
            kept * self.refreshes_us + refreshes_us * self.stretch,
        )
        return one.stretched(one.wanted)

    def stretched(self, stretch: int) -> PeriodPace:
        """Return the same pace with periods stretched by another factor."""
        return PeriodPace(
            stretch, self.covered_us, self.passed_us, self.events_us, self.refreshes_us
        )

    def is_enough(self, stretch: int) -> bool:
        """Whether with a factor a machine keeps up, or its refreshes are not what it takes."""
        little = self.refreshes_us / stretch <= LITTLE * self.events_us
        return little or self.load(stretch) <= WELL

    @property
    def wanted(self) -> int:
        """The factor by which periods should be stretched."""
        if self.is_history:
            return 1
        if self.covered_us < FEWEST_US:
            return self.stretch
        enough = 1
        while enough < MOST and not self.is_enough(enough):
            enough *= 2
        if enough < self.stretch or self.load(self.stretch) > FULL:
            return enough
        return self.stretch
