"""The summaries of periods: whole segments, entries of their indexes, and rows at the ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from eventide.kernels.compiled import Int64s
from eventide.kernels.store.descent import WORDS, add_entries
from eventide.store.reading.descent.columns import LeafRows, RowsInMemory, SortedRows, add_part
from eventide.store.reading.descent.table import SegmentTable, table_of
from eventide.store.reading.descent.words import no_words
from eventide.store.reading.periods import thinned_away
from eventide.store.snapshot import Snapshot

Attributes = tuple[tuple[str, int], ...]
"""Names, and their kinds of summaries."""


@dataclass(frozen=True, slots=True)
class Totals:
    """How many rows each period has, and the summary of each attribute over it."""

    rows: Int64s
    words: tuple[Int64s, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows that the end of a period cuts, and which of them it has."""

    rows: SortedRows
    bounds: tuple[int, int]


class UnknownError(Exception):
    """The index of a segment does not have an attribute, or its leaves are in no order."""


def totals_of(snapshot: Snapshot, attributes: Attributes, cuts: Sequence[int]) -> Totals | None:
    """Return the totals of the periods between cuts, None if rows have to be read in other ways."""
    search = PeriodDescent(snapshot, table_of(snapshot), attributes)
    found = Totals(
        np.zeros(len(cuts) - 1, np.int64), tuple(no_words(len(cuts) - 1) for _ in attributes)
    )
    try:
        for period, (start_us, end_us) in enumerate(pairwise(cuts)):
            if start_us < end_us:
                totals = [words[period] for words in found.words]
                found.rows[period] = search.add(start_us, end_us, totals)
    except UnknownError:
        return None
    return found


@dataclass(frozen=True, slots=True)
class PeriodDescent:
    """Goes down the indexes of a snapshot's segments."""

    snapshot: Snapshot
    table: SegmentTable
    attributes: Attributes

    def add(self, start_us: int, end_us: int, totals: Sequence[Int64s]) -> int:
        """Add everything in a period to totals, one for each attribute; return how many rows."""
        counts = np.empty(3, np.int64)
        found = self.table.find(start_us, end_us, counts)
        whole, cut, rows = counts.tolist()
        if whole or cut:
            columns = self.snapshot.columns
            for (name, kind), total in zip(self.attributes, totals, strict=True):
                words = self.table.words_of(columns, name, kind)
                if words is None:
                    raise UnknownError
                add_entries(kind, words, found[:whole], total)
        for number in found[len(found) - cut :].tolist() if cut else ():
            rows += self.add_segment(number, start_us, end_us, totals)
        for each in self.snapshot.memory:
            if each.num_rows:
                rows += self.add_cut(cut_of(RowsInMemory(each), start_us, end_us), totals)
        return rows

    def add_segment(self, number: int, start_us: int, end_us: int, totals: Sequence[Int64s]) -> int:
        """Add what a segment has in a period that cuts it."""
        tree, counts = self.table.tree(self.snapshot.path, number), np.empty(3, np.int64)
        found = tree.find(start_us, end_us, counts)
        whole, cut, rows = counts.tolist()
        if whole:
            for (name, kind), total in zip(self.attributes, totals, strict=True):
                add_entries(kind, tree.words_of(name, kind), found[:whole], total)
        if cut:
            # From the end of the array, which was filled from there.
            for rows_cut in self.leaves(number, found[: len(found) - cut - 1 : -1].tolist()):
                rows += self.add_cut(cut_of(rows_cut, start_us, end_us), totals)
        return rows

    def leaves(self, number: int, entries: Sequence[int]) -> Iterator[LeafRows]:
        """Yield the leaves that entries stand for."""
        segment = self.table.segment(number)
        tree = self.table.tree(self.snapshot.path, number)
        if segment.thinned:
            raise thinned_away(self.snapshot.name, segment)
        if not segment.form.in_order:
            raise UnknownError
        for entry in entries:
            yield LeafRows(self.snapshot.path, tree.path, segment, *tree.leaf(entry))

    def add_cut(self, cut: Cut, totals: Sequence[Int64s]) -> int:
        """Add rows, and return how many."""
        start, end = cut.bounds
        if start >= end:
            return 0
        part = np.empty((1, WORDS), np.int64)
        for (name, kind), total in zip(self.attributes, totals, strict=True):
            add_part(cut.rows, cut.bounds, name, kind, part[0])
            add_entries(kind, part, ONLY, total)
        return end - start


ONLY = np.zeros(1, np.int64)


def cut_of(rows: SortedRows, start_us: int, end_us: int) -> Cut:
    """Return rows, and which of them are in a period."""
    times = rows.times
    return Cut(rows, (int(times.searchsorted(start_us)), int(times.searchsorted(end_us))))
