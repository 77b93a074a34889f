"""What a repair did, and what is lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.store.upkeep.verify_segment import UnreadablePart, part_text


@dataclass(frozen=True, slots=True)
class Loss:
    """Events that are gone: how many and from when to when, if that is known."""

    what: str
    part: UnreadablePart | None = None

    def __str__(self) -> str:
        return self.what if self.part is None else f"{self.what}: {part_text(self.part)}"


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did, or would do, and what is lost; all empty for a whole stream."""

    steps: tuple[str, ...]
    losses: tuple[Loss, ...]
    hints: tuple[str, ...] = ()
    """What to do next."""


@dataclass(slots=True)
class RepairNotes:
    """The report of a repair so far."""

    steps: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    """The names of damaged files, which are renamed at the end."""

    def step(self, what: str) -> None:
        """Note what is done."""
        self.steps.append(what)

    def loss(self, what: str, part: UnreadablePart | None = None) -> None:
        """Note what is lost."""
        self.losses.append(Loss(what, part))

    def hint(self, what: str) -> None:
        """Note what to do next."""
        self.hints.append(what)

    def repair(self) -> Repair:
        """Return the report."""
        return Repair(tuple(self.steps), tuple(self.losses), tuple(dict.fromkeys(self.hints)))
