"""Time several ways in turn, and say how one compares with another: what the store's cases give."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

import pyarrow as pa

from benchmarks.guard import MismatchError
from benchmarks.measure import Timing, collector_off

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Target:
    """What a ratio, or a number of seconds, has to be."""

    bound: float
    is_least: bool

    def __str__(self) -> str:
        return f"{'≥' if self.is_least else '≤'} {self.bound:g}"

    def met_by(self, value: float) -> bool:
        """Whether a value is on the right side."""
        return value >= self.bound if self.is_least else value <= self.bound

    def shown(self, value: float, digits: int, kind: Literal["f", "g"]) -> str:
        """Return a value with as many digits as show on which side of the bound it is."""
        while True:
            text = f"{value:.{digits}{kind}}"
            if self.met_by(float(text)) == self.met_by(value):
                return text
            digits += 1


def at_least(bound: float) -> Target:
    """Return the target of a ratio that has to be this much."""
    return Target(bound, is_least=True)


def at_most(bound: float) -> Target:
    """Return the target of a ratio that may be this much."""
    return Target(bound, is_least=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table: Eventide's seconds (or megabytes) and somebody's, and the ratio.

    A target that is a least one is of the rival's over Eventide's: higher is better. One that is
    a most is of Eventide's over the rival's, or of the seconds where there is no rival.
    """

    eventide: str
    ours: float
    rival: str = ""
    theirs: float | None = None
    target: Target | None = None
    events: int | None = None
    case: str = ""

    @property
    def ratio(self) -> float | None:
        """The ratio that the target is about."""
        if self.theirs is None:
            return None
        is_least = self.target is None or self.target.is_least
        return self.theirs / self.ours if is_least else self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether the target is met, if there is one."""
        if self.target is None:
            return None
        return self.target.met_by(self.ours if self.ratio is None else self.ratio)

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        if self.ratio is not None and self.target is not None:
            ratio = self.target.shown(self.ratio, 2, "f")
        return (
            self.case,
            self.eventide,
            f"{self.ours:.3g}",
            "" if self.events is None else f"{self.events / self.ours / 1e6:.2f}",
            self.rival,
            "" if self.theirs is None else f"{self.theirs:.3g}",
            ratio,
            "" if self.target is None else str(self.target),
            {True: "✓", False: "✗", None: ""}[self.met],
        )


def race(
    ways: Mapping[str, Callable[[], object]],
    rounds: int = ROUNDS,
    after: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Return the median seconds of each way; every round runs every way once, in turn.

    Before each run everything that others have written is on the disk, so that nobody pays for
    somebody else's pages. `after` cleans up, and is not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            os.sync()
            seconds[name].append(timed(work))
            after()
    return {name: Timing(tuple(spent)).median for name, spent in seconds.items()}


def timed(work: Callable[[], object]) -> float:
    """Return the seconds one run takes; letting go of its result is not counted."""
    with collector_off():
        start = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - start
        del result
    return seconds


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median seconds of something short, warm: its first run is not counted."""
    work()
    with collector_off():
        return median(timed_alone(work) for _ in range(repeats))


def timed_alone(work: Callable[[], object]) -> float:
    """Return the seconds of one run, where the collector is off already."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def check_same(who: str, found: Iterable[pa.RecordBatch], expected: Iterable[pa.Table]) -> None:
    """Compare two sequences of rows, bit by bit, a part at a time."""
    rest = iter(found)
    held: list[pa.RecordBatch] = []
    for number, part in enumerate(expected):
        while sum(batch.num_rows for batch in held) < part.num_rows:
            batch = next(rest, None)
            if batch is None:
                break
            held.append(batch)
        rows = pa.Table.from_batches(held, schema=part.schema) if held else part.slice(0, 0)
        if not rows.slice(0, part.num_rows).equals(part):
            message = f"{who}: part {number} of the rows differs from what was written"
            raise MismatchError(message)
        held = rows.slice(part.num_rows).to_batches()
    if sum(batch.num_rows for batch in [*held, *rest]):
        message = f"{who}: there are more rows than were written"
        raise MismatchError(message)


def check_close(what: str, found: Mapping[str, float], expected: Mapping[str, float]) -> None:
    """Compare numbers by name; the last bits are free."""
    for name, value in expected.items():
        if abs(found[name] - value) > 1e-9 * max(1.0, abs(value)):
            message = f"{what}: {name} is {found[name]!r}, not {value!r}"
            raise MismatchError(message)
