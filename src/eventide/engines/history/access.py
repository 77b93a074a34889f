"""The ways to answer a block of a plan, and what each takes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class WorkStep:
    """A part of the work: what it was, how long it took, and what came out."""

    name: str
    seconds: float
    rows: int
    rows_in: int | None = None
    """What went in, where that is not what came out of the part before."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What an answer takes: estimated before, or counted while it ran."""

    seconds: float
    rows: int = 0
    """Events handed to operators."""
    blocks: int = 0
    """Leaves of the store that are read."""
    entries: int = 0
    """Entries of secondary indexes that are read."""
    intervals: int = 0
    """Separate periods that are replayed, or asked of the index."""
    steps: tuple[WorkStep, ...] = ()
    """What the time went to, once it ran."""
    notes: tuple[str, ...] = ()
    """What operators have to tell of themselves, once they ran."""


class StopWatch:
    """Notes what the time since it was made went to."""

    def __init__(self) -> None:
        self.started = self.last = perf_counter()
        self.noted: list[WorkStep] = []

    def step(self, name: str, rows: int) -> None:
        """Note a part of the work that has just been done."""
        now = perf_counter()
        self.noted.append(WorkStep(name, now - self.last, rows))
        self.last = now

    @property
    def steps(self) -> tuple[WorkStep, ...]:
        """The parts so far."""
        return tuple(self.noted)

    @property
    def total(self) -> float:
        """The seconds up to the last part."""
        return self.last - self.started


class Access(Protocol):
    """One way to answer a block: a plan over one scan."""

    @property
    def name(self) -> str:
        """What kind of way it is: replay, index, map or intervals."""
        ...

    @property
    def estimate(self) -> Cost:
        """What it is expected to take."""
        ...

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        ...

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and what they took."""
        ...
