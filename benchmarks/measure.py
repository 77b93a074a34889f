"""Warm up, then time all ways of a case in turn, in one process, the collector off."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

from benchmarks.cases import Case, Duel
from benchmarks.guard import MismatchError
from benchmarks.setting import Setting
from benchmarks.ways import Way

MOST_ROUNDS = 5
LEAST_ROUNDS = 3
JVM_WARM_UPS = 6
CASE_SECONDS = 120.0
"""A case whose rounds would take longer than this has fewer of them."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds of every round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one, which ratios are made of."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The shortest."""
        return min(self.seconds)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A duel and its times."""

    case: Case
    duel: Duel
    events: int
    eventide: Timing
    rival: Timing | None

    @property
    def ratio(self) -> float | None:
        """The rival's time over Eventide's."""
        return None if self.rival is None else self.rival.median / self.eventide.median

    @property
    def met(self) -> bool | None:
        """Whether the target is met, if there is one."""
        if self.duel.least is None or self.ratio is None:
            return None
        return self.ratio >= self.duel.least


def measure(case: Case, setting: Setting) -> list[Outcome]:
    """Return the times of a case; every round runs every way once."""
    everybody = case.ways()
    warm_up(case, setting)
    # One run does not warm a JVM: its compiler would still be making Spark SQL faster, and the
    # ratios would flatter whoever works in Python.
    for _ in range(JVM_WARM_UPS if case.spark else 0):
        for way in everybody:
            way.work(setting)
    first = {way: timed(way, setting) for way in everybody}
    rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(CASE_SECONDS / sum(first.values()))))
    seconds: dict[Way, list[float]] = {way: [spent] for way, spent in first.items()}
    for _ in range(rounds - 1):
        for way in everybody:
            seconds[way].append(timed(way, setting))
    timings = {way: Timing(tuple(rounds)) for way, rounds in seconds.items()}
    return [
        Outcome(
            case,
            duel,
            setting.count,
            timings[duel.eventide],
            None if duel.rival is None else timings[duel.rival],
        )
        for duel in case.duels
    ]


def warm_up(case: Case, setting: Setting) -> None:
    """Run every way once; refuse to time ways that do not give equally many rows."""
    counts: dict[str, int] = {}
    for way in case.ways():
        result = way.work(setting)
        if isinstance(result, pa.Table):
            counts[way.name] = result.num_rows
        elif way.count is not None:
            counts[way.name] = way.count(setting)
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        message = f"{case.name}: rows over all {setting.count:,} events differ: {found}"
        raise MismatchError(message)


def timed(way: Way, setting: Setting) -> float:
    """Return the seconds one run takes; letting go of its result is not counted."""
    with collector_off():
        start = time.perf_counter()
        result = way.work(setting)
        seconds = time.perf_counter() - start
        del result
    return seconds


@contextmanager
def collector_off() -> Iterator[None]:
    """Clean up first, then leave the collector off for a while."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
