"""Twins of UNION ALL, DISTINCT, EXCEPT ALL and EXISTS: computed anew at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Values = tuple[Any, ...]
Bag = Counter[Values]

NEVER = 2**63 - 1


@dataclass(frozen=True)
class Lived:
    """A tuple, and when it came and went; `exp` is what was known at its birth."""

    values: Values
    at: int
    exp: int
    gone: int | None = None

    def lives(self, instant: int) -> bool:
        """Whether it is in the window at an instant."""
        end = self.exp if self.gone is None else self.gone
        return self.at <= instant < end


def living(tuples: Iterable[Lived], instant: int) -> Bag:
    """Return what lives at an instant."""
    return Counter(each.values for each in tuples if each.lives(instant))


def merged(bags: Sequence[Bag]) -> Bag:
    """UNION ALL."""
    return sum(bags, Counter())


def distinct(bag: Bag) -> Bag:
    """DISTINCT."""
    return Counter(set(bag))


def difference(left: Bag, right: Bag) -> Bag:
    """EXCEPT ALL."""
    return left - right


def existing(left: Bag, right: Bag, *, negated: bool) -> Bag:
    """EXISTS, or NOT EXISTS, by the first column; null is equal to nothing."""
    keys = {values[0] for values in right if values[0] is not None}
    return Counter(
        {values: count for values, count in left.items() if (values[0] in keys) != negated}
    )
