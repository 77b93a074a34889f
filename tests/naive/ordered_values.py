"""Sorted values and the smallest living one, as simply as possible."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class OrderedValues:
    """A list in order."""

    values: list[int] = field(default_factory=list)

    def put(self, value: int) -> None:
        insort(self.values, value)

    def take(self, value: int) -> None:
        self.values.remove(value)

    @property
    def distinct(self) -> int:
        return len(set(self.values))


def skyline(lives: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return those (end, value) that no other, at least as small, lives at least as long as."""
    different = set(lives)
    return sorted(
        (end, value)
        for end, value in different
        if not any(
            other != (end, value) and other[0] >= end and other[1] <= value for other in different
        )
    )
