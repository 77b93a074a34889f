"""Which template a query is of, and which row of its constants is its own, by its number."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.sharing.queries import look_up_queries
from eventide.plan.sharing.part_rows import PARTS_FROM

LEAF_BITS = 4
"""An entry of an index is a query's number and, in the last bits, the number of a leaf."""
GONE = -1


class QueryNumbers:
    """Queries by number: the places of their templates, and of their constants there.

    Numbers are handed out ascending, so arrays by number have few gaps.
    """

    def __init__(self) -> None:
        self.first = 0
        self.end = 0
        self.count = 0
        """How many queries there are."""
        self.known: Int32s = np.empty((0, 2), np.int32)
        """The place of the template of each query, and that of its constants, side by side."""

    @property
    def templates(self) -> Int32s:
        """The places of templates."""
        return self.known[:, 0]

    def add(self, numbers: Int64s, template: int, first_row: int) -> None:
        """Note queries of a template whose constants are its rows from `first_row` on."""
        if not len(numbers):
            return
        if self.end == self.first:
            self.first = self.end = int(numbers[0])
        self.reach_back(int(numbers[0]))
        self.reserve(int(numbers[-1]) + 1)
        places = numbers - self.first
        self.count += int((self.templates[places] == GONE).sum())
        self.templates[places] = template
        self.known[places, 1] = np.arange(first_row, first_row + len(numbers), dtype=np.int32)

    def reach_back(self, first: int) -> None:
        """Make room for numbers from `first` on."""
        missing = self.first - first
        if missing > 0:
            self.known = np.concatenate([np.full((missing, 2), GONE, np.int32), self.known])
            self.first = first

    def reserve(self, end: int) -> None:
        """Make room for numbers before `end`."""
        needed = end - self.first
        if needed > len(self.known):
            larger = np.full((max(needed, 2 * len(self.known), 64), 2), GONE, np.int32)
            larger[: len(self.known)] = self.known
            self.known = larger
        self.end = max(self.end, end)

    def drop(self, numbers: Int64s) -> None:
        """Forget queries."""
        places = np.unique(numbers - self.first)
        self.count -= int((self.templates[places] != GONE).sum())
        self.templates[places] = GONE

    def of(self, numbers: Int64s) -> tuple[Int32s, Int32s]:
        """Return the places of templates, and of rows of constants, of queries that are here."""
        templates, rows = (np.empty(len(numbers), np.int32) for _ in range(2))
        look_up_queries(frozen(numbers), self.first, self.known, templates, rows)
        return templates, rows

    def here(self, numbers: Int64s) -> Bools:
        """Return which of any numbers are those of queries that are here."""
        places = numbers - self.first
        known = (places >= 0) & (places < len(self.templates))
        known[known] = self.templates[places[known]] != GONE
        return known

    @property
    def all(self) -> Int64s:
        """The numbers of all queries."""
        return np.flatnonzero(self.templates[: self.end - self.first] != GONE) + self.first

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self.known.nbytes)


class AllNumbers:
    """Queries and the parts that they share, by number."""

    def __init__(self) -> None:
        self.queries = QueryNumbers()
        self.parts = QueryNumbers()

    def add(self, numbers: Int64s, template: int, first_row: int) -> None:
        """Note queries, or else parts, of a template."""
        if len(numbers):
            self.home(int(numbers[0])).add(numbers, template, first_row)

    def home(self, number: int) -> QueryNumbers:
        """Return where a number is noted."""
        return self.parts if number >= PARTS_FROM else self.queries

    def drop(self, numbers: Int64s) -> None:
        """Forget queries and parts."""
        of_parts = numbers >= PARTS_FROM
        self.parts.drop(numbers[of_parts])
        self.queries.drop(numbers[~of_parts])

    def of(self, numbers: Int64s) -> tuple[Int32s, Int32s]:
        """Return the places of templates, and of rows of constants, of what is here."""
        of_parts = numbers >= PARTS_FROM
        if not of_parts.any():
            return self.queries.of(numbers)
        if of_parts.all():
            return self.parts.of(numbers)
        templates, rows = (np.empty(len(numbers), np.int32) for _ in range(2))
        for home, own in ((self.queries, ~of_parts), (self.parts, of_parts)):
            templates[own], rows[own] = home.of(numbers[own])
        return templates, rows

    def here(self, numbers: Int64s) -> Bools:
        """Return which of any numbers are here."""
        return self.queries.here(numbers) | self.parts.here(numbers)

    @property
    def all(self) -> Int64s:
        """The numbers of all queries."""
        return self.queries.all

    @property
    def count(self) -> int:
        """How many queries there are."""
        return self.queries.count

    @property
    def with_parts(self) -> Int64s:
        """The numbers of all queries and parts."""
        return np.concatenate([self.queries.all, self.parts.all])

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return self.queries.nbytes + self.parts.nbytes


def entries(numbers: Int64s, leaf: int) -> Int64s:
    """Return the entries of queries in the index of a leaf's stream."""
    return (numbers << LEAF_BITS) | leaf
