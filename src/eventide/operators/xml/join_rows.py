"""Rows: what queries have in common that go the same way and select the same nodes.

    row  node  selected    queries
    0    8     0, 3        7 (within 2 days), 4 (1 day), 9 (1 hour)
    1    8     0, 1, 3     5 (1 day)

Queries of the same row differ in how far apart documents may be, and in the document from which on
they count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s
from eventide.kernels.growing import longer, wider
from eventide.kernels.xml.document_log import NONE
from eventide.kernels.xml.joined_rows import QUERY, SINCE, WITHIN
from eventide.operators.xml.tries import JoinTrie, grown, unlink

_FEWEST = 16
_FREE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class JoinRow:
    """The end of a way, and what is selected of it."""

    node: int
    ordered: bool
    turned: bool
    """Whether the newer document is the one on the left."""
    selected: tuple[int, ...]
    is_exact: bool
    """Whether all nodes are selected: then no two matches give the same row."""


class JoinRows:
    """Rows by number, and the queries of each. A number that is free is used again."""

    def __init__(self) -> None:
        self.following: Int32s = np.full(_FEWEST, NONE, np.int32)
        """The next row at the same node."""
        self.exact: Bools = np.zeros(_FEWEST, np.bool_)
        self.turned: Bools = np.zeros(_FEWEST, np.bool_)
        self._shortest: Int64s = np.zeros(_FEWEST, np.int64)
        self._selected: Int32s = np.full((0, _FEWEST), NONE, np.int32)
        self._numbers: dict[JoinRow, int] = {}
        self._rows: dict[int, JoinRow] = {}
        self._uses = [0] * _FEWEST
        self._free = list(range(_FEWEST))[::-1]
        self._asked: Int64s = np.full((_FEWEST, 4), _FREE, np.int64)
        self._free_asked = list(range(_FEWEST))[::-1]

    def __len__(self) -> int:
        return len(self._rows)

    def ask(self, row: JoinRow, trie: JoinTrie, within_us: int, since: int, query: int) -> int:
        """Add a query to a row, which may be new; return the place to leave."""
        number = self._numbers.get(row)
        if number is None:
            number = self._add(row, trie)
        self._uses[number] += 1
        if not self._free_asked:
            count = len(self._asked)
            self._asked = longer(self._asked, 2 * count)
            self._asked[count:] = _FREE
            self._free_asked = list(range(count, 2 * count))[::-1]
        place = self._free_asked.pop()
        self._asked[place] = number, -within_us, since, query
        self._changed()
        return place

    def leave(self, place: int, trie: JoinTrie) -> None:
        """Take a query from its row; without any the row goes."""
        number = int(self._asked[place, 0])
        row = self._rows[number]
        self._asked[place] = _FREE
        self._free_asked.append(place)
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._rows[number], self._numbers[row]
            self._free.append(number)
            unlink(trie.first_row, row.node, self.following, number)
        trie.leave(row.node)
        self._changed()

    def _add(self, row: JoinRow, trie: JoinTrie) -> int:
        if not self._free:
            count = len(self._uses)
            self._free = list(range(count, 2 * count))[::-1]
            self._uses += [0] * count
            self.following = grown(self.following, 2 * count)
            self._selected = wider(self._selected, 2 * count)
            for name in ("exact", "turned", "_shortest"):
                setattr(self, name, longer(getattr(self, name), 2 * count))
        number = self._free.pop()
        self._numbers[row], self._rows[number] = number, row
        self.following[number] = trie.first_row[row.node]
        trie.first_row[row.node] = number
        self.exact[number], self.turned[number] = row.is_exact, row.turned
        self._shortest[number] = int(row.ordered)
        more = len(row.selected) - len(self._selected)
        if more > 0:
            empty = np.full((more, self._selected.shape[1]), NONE, np.int32)
            self._selected = np.concatenate([self._selected, empty])
        self._selected[:, number] = NONE
        self._selected[: len(row.selected), number] = row.selected
        return number

    def _changed(self) -> None:
        for name in ("asking", "selected"):
            self.__dict__.pop(name, None)

    @cached_property
    def selected(self) -> Int32s:
        """By row: the nodes that it selects, and -1 behind them."""
        return np.ascontiguousarray(self._selected.T)

    @cached_property
    def asking(self) -> tuple[Int64s, Int64s]:
        """Where the queries of each row begin, and the queries, the longest time first."""
        rows, withins, sinces, queries = self._asked.T
        order = np.lexsort((queries, withins, rows))[: len(self._asked) - len(self._free_asked)]
        asking = np.empty((len(order), 3), np.int64)
        asking[:, WITHIN], asking[:, SINCE] = -withins[order], sinces[order]
        asking[:, QUERY] = queries[order]
        return np.searchsorted(rows[order], np.arange(len(self._uses) + 1)), asking

    @property
    def bounds(self) -> Int64s:
        """By row: the shortest and the longest time between documents; none if it is free."""
        starts, asking = self.asking
        bounds = np.full((len(self._uses), 2), (1, 0), np.int64)
        there = starts[:-1] < starts[1:]
        bounds[there, 0] = self._shortest[there]
        bounds[there, 1] = asking[starts[:-1][there], WITHIN]
        return bounds
