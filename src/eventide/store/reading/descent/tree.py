"""The index of a segment as flat arrays, as far as it was visited."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from threading import RLock

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.kernels.store.descent import (
    ADDRESS,
    CHILD,
    LENGTH,
    NOTHING_MISSING,
    PLACES,
    ROWS,
    TS_MAX,
    TS_MIN,
    WORDS,
    descend,
)
from eventide.store.reading.descent.words import fill_words
from eventide.store.reading.leaves import SegmentPlace
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place

COLUMNS = (
    (TS_MIN, "ts_min"),
    (TS_MAX, "ts_max"),
    (ROWS, "rows"),
    (ADDRESS, "address"),
    (LENGTH, "length"),
)
ROOM = 256
CACHED_TREES = 1024


class FlatTree:
    """The nodes of an index that were visited, in that order, and the words of their entries.

    Arrays have room for more; what is in them does not change, but for the children of entries.
    If one is full, larger ones take the place of both, so that a reader, who needs no lock, never
    sees a child in `places` that is not in its `nodes`. Who holds the smaller ones meanwhile finds
    a child missing, and visits it again.
    """

    def __init__(self, folder: Path, segment: Segment) -> None:
        self.tree = segment.tree(folder)
        self.path = self.tree.path
        self.lock = RLock()
        self.parts: list[pa.RecordBatch] = []
        self.arrays = np.zeros((ROOM, 3), np.int64), np.zeros((ROOM, PLACES), np.int64)
        self.words: dict[str, Int64s] = {}
        self.filled: dict[str, int] = {}
        self.entries = 0
        for level, entries in enumerate(self.tree.levels):
            self.add(entries, level)
        self.roots = len(self.parts)

    def add(self, entries: pa.RecordBatch, level: int) -> None:
        """Add a node."""
        node, start = len(self.parts), self.entries
        end = start + entries.num_rows
        nodes, places = self.arrays
        if node == len(nodes) or end > len(places):
            nodes, places = grown(nodes, node + 1), grown(places, end)
            self.arrays = nodes, places
        rows = places[start:end]
        for column, name in COLUMNS:
            rows[:, column] = place(entries, name)
        rows[:, CHILD] = -1
        nodes[node] = start, end, level
        self.parts.append(entries)
        self.entries = end

    def find(self, start_us: int, end_us: int, counts: Int64s) -> Int64s:
        """Return the entries within a period and those it cuts, as `descend` does."""
        while True:
            nodes, places = self.arrays
            found = np.empty(len(places), np.int64)
            floor = self.tree.floor
            missing = descend(nodes, self.roots, places, floor, start_us, end_us, found, counts)
            if missing == NOTHING_MISSING:
                return found
            self.visit(missing)

    def visit(self, entry: int) -> None:
        """Read the node of an entry."""
        with self.lock:
            nodes, places = self.arrays
            if places[entry, CHILD] >= 0:
                return
            node = int(np.searchsorted(nodes[: len(self.parts), 0], entry, "right")) - 1
            row = entry - int(nodes[node, 0])
            entries = self.tree.child(self.parts[node], row)
            self.add(entries, int(nodes[node, 2]) - 1)
            # Last, because readers do not wait; into the arrays that have the child.
            self.arrays[1][entry, CHILD] = len(self.parts) - 1

    def leaf(self, entry: int) -> tuple[int, int, int]:
        """Return the address and the length of a leaf, and how many rows it has."""
        address, length, rows = self.arrays[1][entry, [ADDRESS, LENGTH, ROWS]].tolist()
        return address, length, rows

    def words_of(self, attribute: str, kind: int) -> Int64s:
        """Return the summaries of an attribute, a row for each entry that was visited."""
        if self.filled.get(attribute, 0) < len(self.parts):
            with self.lock:
                self.fill(attribute, kind)
        return self.words[attribute]

    def fill(self, attribute: str, kind: int) -> None:
        """Write the summaries of the nodes that were visited lately."""
        words = self.words.get(attribute)
        if words is None or len(words) < self.entries:
            words = grown(np.empty((0, WORDS), np.int64) if words is None else words, self.entries)
        count = len(self.parts)
        for node in range(self.filled.get(attribute, 0), count):
            start, end, _ = self.arrays[0][node]
            fill_words(words[start:end], self.parts[node], attribute, kind)
        self.words[attribute] = words
        self.filled[attribute] = count


def grown(array: Int64s, rows: int) -> Int64s:
    """Return an array with room for more rows than these."""
    room = np.zeros((max(ROOM, rows + rows // 2), array.shape[1]), np.int64)
    room[: len(array)] = array
    return room


@lru_cache(maxsize=CACHED_TREES)
def _flat_tree(where: SegmentPlace) -> FlatTree:
    return FlatTree(where.folder, where.segment)


def flat_tree(folder: Path, segment: Segment) -> FlatTree:
    """Return the index of a segment; the same one for the same root."""
    return _flat_tree(SegmentPlace.of(folder, segment))
