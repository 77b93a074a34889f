"""The steps that a query has taken since its checkpoint, as they are written down.

Stored derived streams and durable queries keep them so: what is taken again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from eventide.store.progress import Checkpoint, Journal, TakenStep, read_steps, write_checkpoint


class JournaledSteps:
    """The journal of a checkpoint, and how much there is behind it."""

    def __init__(self, folder: Path, number: int, end: int) -> None:
        self.folder = folder
        self.number = number
        """The number of the checkpoint that the journal follows."""
        self.journal = Journal(folder, number, end)
        self.steps = self.events = 0
        """How many steps and events there are behind the checkpoint."""

    def taken(self, events: int) -> None:
        """Count a step."""
        self.steps += 1
        self.events += events

    def many(self, steps: int, events: int) -> bool:
        """Whether there are so many steps, or events, that a checkpoint is due."""
        return self.steps >= steps or self.events >= events

    def of_others(self) -> tuple[TakenStep, ...]:
        """Return the steps that another process has written behind those that are known."""
        steps, end = read_steps(self.journal.path, self.journal.end)
        # Opened again, the file shows what a crash of the other process has left behind.
        self.journal.close()
        self.journal.end = end
        return steps

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; the journal begins anew."""
        write_checkpoint(self.folder, checkpoint)
        self.journal.close()
        self.number = checkpoint.number
        self.journal = Journal(self.folder, checkpoint.number, 0)
        self.steps = self.events = 0


def ends_of(steps: Iterable[TakenStep]) -> dict[str, int]:
    """Return the numbers behind the last events of some steps, by stream."""
    ends: dict[str, int] = {}
    for step in steps:
        ends |= step.until
    return ends
