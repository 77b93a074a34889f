"""The ways to answer a block of a plan, and what each costs."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class WorkStep:
    """A part of the work: what it was, how long it took, and its output."""

    name: str
    seconds: float
    rows: int
    rows_in: int | None = None
    """The input, if it is not the output of the part before."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an answer: estimated before, or measured while it ran."""

    seconds: float
    rows: int = 0
    """Events handed to operators."""
    blocks: int = 0
    """Leaves of the store that are read."""
    entries: int = 0
    """Entries of secondary indexes that are read."""
    intervals: int = 0
    """Separate periods that are replayed, or looked up in the index."""
    steps: tuple[WorkStep, ...] = ()
    """How the time was spent, once it ran."""
    notes: tuple[str, ...] = ()
    """What operators report about themselves, once they ran."""


class StopWatch:
    """Records how the time since its creation was spent."""

    def __init__(self) -> None:
        self.started = self.last = perf_counter()
        self.noted: list[WorkStep] = []

    def step(self, name: str, rows: int) -> None:
        """Record a part of the work that has just been done."""
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
        """The expected cost."""
        ...

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        ...

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        ...
