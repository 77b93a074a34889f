"""The obvious condition on a value: compare it with both bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eventide.store.index.ranges import ValueRange


@dataclass(frozen=True)
class Ordered:
    """A value that compares as the engines compare it."""

    key: object

    def __lt__(self, other: Ordered) -> bool:
        return bool(self.key < other.key)  # type: ignore[operator]


def order(value: object) -> Ordered:
    """Return a value so that Python compares it as the engines do."""
    if isinstance(value, float):
        return Ordered((1, 0.0) if math.isnan(value) else (0, value))
    return Ordered(value.encode() if isinstance(value, str) else value)


def qualifies(value: object, wanted: ValueRange) -> bool:
    """Whether a value is in a range; None is in no range."""
    if value is None:
        return False
    place = order(value)
    if wanted.low is not None:
        low = order(wanted.low)
        if place < low or (place == low and not wanted.includes_low):
            return False
    if wanted.high is not None:
        high = order(wanted.high)
        if high < place or (place == high and not wanted.includes_high):
            return False
    return True
