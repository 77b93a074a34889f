"""Where time is cut into periods: at any instants, or at regular distances.

    listed     |   0   |1|      2      |        at the instants of a list
    even       | 0 |1| 2 |3| 4 |5| 6 |7|        at every k·slide, and `rest` after it

Even cuts are never listed: a period's number is computed from a time, so years that are cut into
milliseconds take no memory, only those periods that have events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.store.leaves import runs_by_cuts, runs_by_slide


class Cuts(Protocol):
    """Periods, numbered in order, that do not overlap and leave no gap in `times`."""

    @property
    def times(self) -> TimeRange:
        """From the first cut to the last."""
        ...

    def periods_of(self, ts: Int64s) -> Int64s:
        """Return the number of the period of each time, which has to be in `times`."""
        ...

    def starts_of(self, periods: Int64s) -> Int64s:
        """Return where periods begin."""
        ...

    def runs(self, ts: Int64s, breaks: Int64s) -> tuple[Int64s, Int64s]:
        """Return where runs of times of the same period begin, and which; also at `breaks`."""
        ...

    def are_asked(self, periods: Int64s) -> Bools:
        """Return which periods are asked for."""
        ...

    def between(self, times: TimeRange) -> int:
        """Return about how many cuts lie inside a time range."""
        ...


@dataclass(frozen=True, eq=False)
class ListedCuts:
    """The periods [cuts[i], cuts[i + 1]) of a list that ascends; empty ones are never found."""

    cuts: Int64s

    @property
    def times(self) -> TimeRange:
        """From the first cut to the last."""
        return TimeRange(int(self.cuts[0]), int(self.cuts[-1]))

    def periods_of(self, ts: Int64s) -> Int64s:
        """Return the number of the period of each time, which has to be in `times`."""
        return np.searchsorted(self.cuts, ts, "right") - 1

    def starts_of(self, periods: Int64s) -> Int64s:
        """Return where periods begin."""
        return self.cuts[periods]

    def runs(self, ts: Int64s, breaks: Int64s) -> tuple[Int64s, Int64s]:
        """Return where runs of times of the same period begin, and which; also at `breaks`."""
        starts, periods = np.empty(len(ts), np.int64), np.empty(len(ts), np.int64)
        found = runs_by_cuts(frozen(ts), frozen(self.cuts), frozen(breaks), starts, periods)
        return starts[:found], periods[:found]

    def are_asked(self, periods: Int64s) -> Bools:
        """Return which periods are asked for: all."""
        return np.ones(len(periods), np.bool_)

    def between(self, times: TimeRange) -> int:
        """Return about how many cuts lie inside a time range."""
        first, last = np.searchsorted(self.cuts, [times.start_us, times.end_us])
        return int(max(0, last - first))


@dataclass(frozen=True, slots=True)
class EvenCuts:
    """Cuts at every k·slide and, with a rest shorter than the slide, at every k·slide + rest.

    Without a rest, period k begins at k·slide. With one, the periods that begin at k·slide have the
    even numbers, the others the odd ones; with `gaps` the odd ones are not asked for.
    """

    slide_us: int
    rest_us: int
    times: TimeRange
    gaps: bool = False

    @classmethod
    def of_windows(cls, size_us: int, slide_us: int, times: TimeRange) -> EvenCuts:
        """Return the fewest cuts such that every window contains periods entirely or not at all.

        >>> EvenCuts.of_windows(10, 4, TimeRange(0, 100)).rest_us  # a window ends where?
        2
        """
        if size_us <= slide_us:
            return cls(slide_us, size_us, times, gaps=size_us < slide_us)
        return cls(slide_us, size_us % slide_us or slide_us, times)

    @property
    def per_slide(self) -> int:
        """How many periods a slide has."""
        return 1 if self.rest_us == self.slide_us else 2

    def periods_of(self, ts: Int64s) -> Int64s:
        """Return the number of the period of each time."""
        turns = ts // self.slide_us
        if self.per_slide == 1:
            return turns
        return 2 * turns + (ts - turns * self.slide_us >= self.rest_us)

    def starts_of(self, periods: Int64s) -> Int64s:
        """Return where periods begin."""
        if self.per_slide == 1:
            return periods * self.slide_us
        return (periods >> 1) * self.slide_us + (periods & 1) * self.rest_us

    def runs(self, ts: Int64s, breaks: Int64s) -> tuple[Int64s, Int64s]:
        """Return where runs of times of the same period begin, and which; also at `breaks`."""
        starts, periods = np.empty(len(ts), np.int64), np.empty(len(ts), np.int64)
        even = (self.slide_us, self.rest_us)
        found = runs_by_slide(frozen(ts), *even, frozen(breaks), starts, periods)
        return starts[:found], periods[:found] >> (2 - self.per_slide)

    def are_asked(self, periods: Int64s) -> Bools:
        """Return which periods are asked for."""
        return (periods & 1) == 0 if self.gaps else np.ones(len(periods), np.bool_)

    def between(self, times: TimeRange) -> int:
        """Return about how many cuts lie inside a time range."""
        inside = times.intersect(self.times)
        return max(0, inside.end_us - inside.start_us) * self.per_slide // self.slide_us
