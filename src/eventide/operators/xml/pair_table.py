"""A table of pairs of numbers for Python and, after its changes were taken over, for kernels."""

from __future__ import annotations

import numpy as np

from eventide.kernels.key_table import KeyTable, empty_table, roomy
from eventide.kernels.xml.trie_tables import change_table

Pair = tuple[int, int]


class PairTable:
    """A number for each pair. Changes wait until a kernel is to look pairs up."""

    def __init__(self) -> None:
        self._numbers: dict[Pair, int] = {}
        self._changes: list[tuple[int, int, int]] = []
        self._table = empty_table()

    def __len__(self) -> int:
        return len(self._numbers)

    def get(self, pair: Pair) -> int | None:
        """Return the number of a pair."""
        return self._numbers.get(pair)

    def put(self, pair: Pair, number: int) -> None:
        """Give a pair a number."""
        self._numbers[pair] = number
        self._changes.append((*pair, number))

    def remove(self, pair: Pair) -> None:
        """Take a pair out."""
        del self._numbers[pair]
        self._changes.append((*pair, -1))

    @property
    def table(self) -> KeyTable:
        """The pairs for kernels."""
        if self._changes:
            self._table = roomy(self._table, len(self._changes))
            change_table(self._table, np.array(self._changes, np.int64))
            self._changes.clear()
        return self._table
