"""The obvious, slow twin of the join over windows: lives of tuples, and all their combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Life:
    """A tuple, when it comes, when it would expire, and when it is taken back, if it is."""

    row: Row
    at: int
    exp: int
    gone: int | None = None

    @property
    def end(self) -> int:
        """When it really goes."""
        return self.exp if self.gone is None else min(self.exp, self.gone)


def lives_of_join(
    sides: Sequence[Sequence[Life]], keys: Sequence[str], condition: Callable[[Row], bool]
) -> list[tuple[Row, int, int]]:
    """Return every combination with equal keys that lives, from when to when."""
    found = []
    for parts in product(*sides):
        values = [part.row[key] for part, key in zip(parts, keys, strict=True)]
        at, end = max(part.at for part in parts), min(part.end for part in parts)
        row = {name: value for part in parts for name, value in part.row.items()}
        if None not in values and len(set(values)) == 1 and at < end and condition(row):
            found.append((row, at, end))
    return found
