"""Deadlines of periodic queries that are met: by a machine that keeps up, and by one too slow.

Events come at their times, a second of them in a step. The time that a step takes is that of the
processor, so many times longer as the machine is said to be slower. A refresh is on time if it is
there when the next one of its query is due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.engines.live.sharing.many import ManyQueries, ManyRows
from eventide.engines.live.sharing.pace import PeriodPace

Batches = Callable[[int], pa.RecordBatch]
"""The events of a second."""


@dataclass
class SlowedClock:
    """A wall clock that waits for events, and of which steps take longer than they do."""

    slower: float
    stands_us: int
    began_s: float = 0.0
    runs: bool = False

    def now_us(self) -> int:
        """Return what time it is."""
        if not self.runs:
            return self.stands_us
        took_s = (time.process_time() - self.began_s) * self.slower
        return self.stands_us + int(took_s * 1e6)

    def begin(self, arrived_us: int) -> None:
        """Begin a step when events have arrived, and the one before is over."""
        self.stands_us = max(self.stands_us, arrived_us)
        self.began_s, self.runs = time.process_time(), True

    def end(self) -> None:
        """End the step."""
        self.stands_us, self.runs = self.now_us(), False


@dataclass(frozen=True, slots=True)
class Met:
    """What of refreshes was on time, and how far periods were stretched."""

    rows: int
    on_time: int
    behind_s: float
    """How far the last step was behind its events."""
    stretch: int

    @property
    def share(self) -> float:
        """The share of rows on time."""
        return self.on_time / max(self.rows, 1)


def deadlines_met(
    many: ManyQueries,
    slides_s: Sequence[int],
    batches: Batches,
    seconds: range,
    slower: float,
    *,
    stretches: bool,
) -> Met:
    """Return what is on time in some seconds of events, of which the second half counts."""
    clock = SlowedClock(slower, seconds.start * 1_000_000)
    many.turns.now_us = clock.now_us if stretches else None
    many.turns.pace, many.turns.before_us = PeriodPace(), None
    slides = np.array(slides_s, np.int64) * 1_000_000
    rows = on_time = behind_us = 0
    for second in seconds:
        events = batches(second)
        arrived_us = (second + 1) * 1_000_000
        clock.begin(arrived_us)
        periods = slides * many.turns.stretch
        step = many.take({"metrics": events})
        clock.end()
        behind_us = clock.stands_us - arrived_us
        if 2 * second >= seconds.start + seconds.stop:
            found = counted(step.rows, periods, clock.stands_us)
            rows, on_time = rows + found[0], on_time + found[1]
    stretch = many.turns.stretch
    many.turns.now_us = None
    return Met(rows, on_time, behind_us / 1e6, stretch)


def counted(
    found: Iterable[ManyRows], periods: np.ndarray[tuple[int], np.dtype[np.int64]], now_us: int
) -> tuple[int, int]:
    """Return how many rows there are, and how many are of refreshes on time."""
    rows = on_time = 0
    for each in found:
        at = each.rows.column("at").view(pa.int64()).to_numpy()
        rows += len(at)
        on_time += int((at + periods[each.numbers] >= now_us).sum())
    return rows, on_time
