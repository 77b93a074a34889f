"""Partial results of slices, which windows share, and of blocks of slices.

    slices    |---|---|-|-|---|---|· ·     complete: in the tree, from which windows are merged
                                    └──    the newest one may get more rows

Slices are numbered. When there are twice as many as were needed when they were numbered last, they
are cut anew: only where a window of a query that is still there begins or ends, of those that are
not closed. Slices that only other windows needed become one, and the oldest are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.accumulators import Groups
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.growing import longer, wider
from eventide.kernels.ordering import ranges
from eventide.kernels.sharing.nodes import (
    BRANCHES,
    LEVELS,
    Covers,
    SliceRuns,
    SliceTree,
    count_rows,
    list_rows,
)
from eventide.kernels.sharing.slices import group_by_slice
from eventide.operators.columns import concat_batches
from eventide.operators.sharing.known_keys import KnownCells
from eventide.operators.sharing.partial_log import PartialLog
from eventide.operators.sharing.partials import Partials

ROWS_AT_ONCE = 4_000_000
"""Windows are merged from about so many rows at a time."""
MOST_WAITING = 32
"""So many batches of the newest slice wait until they are merged."""
FEW_BATCHES = 4
"""A slice of so few batches is not merged: it may have several rows for a key."""
BLOCK_ROWS = 200
"""Blocks are made when they are of so many rows together: to make a few costs as much."""
ANYTIME = -(2**63)
"""The epoch of events that came before any query that is still there."""


@dataclass(frozen=True, slots=True)
class SliceRows:
    """Partials of some slices in order: of each the first time and the epoch, and of each row.

    The rows of a slice are in order of their synopses.
    """

    times: Int64s
    epochs: Int64s
    starts: Int64s
    """Where the rows of each slice begin, and one more."""
    cells: Int32s
    partials: pa.RecordBatch

    def part(self, first: int, last: int) -> SliceRows:
        """Return the slices [first, last)."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        return SliceRows(
            self.times[first:last],
            self.epochs[first:last],
            self.starts[first : last + 1] - begin,
            self.cells[begin:end],
            self.partials.slice(begin, end - begin),
        )


class Scratch:
    """Numbers by cell that a kernel writes; each call writes larger ones than the one before."""

    def __init__(self) -> None:
        self.seen = np.full(16, -1, np.int64)
        self.stamp = 0

    def room(self, cells: int) -> Int64s:
        """Return them for so many cells."""
        if len(self.seen) < cells:
            self.seen = np.full(2 * cells, -1, np.int64)
        return self.seen


@dataclass(slots=True)
class Slices:
    """Complete slices, and the rows of blocks of them, which are added when they are needed."""

    partials: Partials
    log: PartialLog
    cells: Int32s = field(default_factory=lambda: np.zeros(0, np.int32))
    """The cell of each row."""
    begins: Int64s = field(default_factory=lambda: np.zeros((LEVELS, 16), np.int64))
    ends: Int64s = field(default_factory=lambda: np.zeros((LEVELS, 16), np.int64))
    times: Int64s = field(default_factory=lambda: np.zeros(16, np.int64))
    epochs: Int64s = field(default_factory=lambda: np.zeros(16, np.int64))
    count: int = 0
    blocks: Int64s = field(default_factory=lambda: np.zeros(LEVELS, np.int64))
    """How many nodes each level above the slices has."""
    oldest: int = ANYTIME
    """All slices are of this epoch or a later one."""
    scratch: Scratch = field(default_factory=Scratch)

    @classmethod
    def empty(cls, partials: Partials) -> Slices:
        """Return no slices."""
        return cls(partials, PartialLog(partials.schema))

    @property
    def tree(self) -> SliceTree:
        """What kernels read of it."""
        return SliceTree(self.begins, self.ends, self.blocks, self.cells, self.epochs)

    def append(self, rows: SliceRows) -> None:
        """Add slices that are complete."""
        first, count = self.count, len(rows.times)
        if not count:
            return
        self.oldest = min(self.oldest if first else int(rows.epochs[0]), int(rows.epochs.min()))
        self.count = first + count
        self.times, self.epochs = longer(self.times, self.count), longer(self.epochs, self.count)
        self.times[first : self.count] = rows.times
        self.epochs[first : self.count] = rows.epochs
        self._add_nodes(0, first, rows.starts, rows.cells, rows.partials)

    def _add_nodes(
        self, level: int, first: int, starts: Int64s, cells: Int32s, partials: pa.RecordBatch
    ) -> None:
        """Add nodes to a level, with their rows one behind another."""
        last, end = first + len(starts) - 1, self.log.end
        self.begins, self.ends = wider(self.begins, last), wider(self.ends, last)
        self.begins[level, first:last] = starts[:-1] + end
        self.ends[level, first:last] = starts[1:] + end
        self.cells = longer(self.cells, end + len(cells))
        self.cells[end : end + len(cells)] = cells
        self.log.append(partials)

    def grow(self, known: KnownCells) -> None:
        """Add the blocks that have become complete, if they pay."""
        width = BRANCHES
        for level in range(1, LEVELS):
            first, last = int(self.blocks[level]), self.count // width
            if not last:
                break
            if self._rows_of(first * width, last * width) >= BLOCK_ROWS:
                left = np.arange(first, last) * width
                every = SliceRuns(left, left + width, np.full(len(left), ANYTIME), 0 * left)
                for part in self.parts(every, everything(known), level - 1):
                    merged, run_of, cells = self.merged(part, everything(known), level - 1)
                    order = by_synopsis(run_of, cells, known)
                    if order is not None:
                        merged, cells = merged.take(to_arrow(order)), cells[order]
                    starts = np.searchsorted(run_of, np.arange(len(part.left) + 1))
                    self._add_nodes(level, int(self.blocks[level]), starts, cells, merged)
                    self.blocks[level] += len(part.left)
            width *= BRANCHES

    def _rows_of(self, first: int, last: int) -> int:
        """Return how many rows the slices [first, last) have, and the blocks made meanwhile."""
        return int(self.ends[0, last - 1] - self.begins[0, first]) if first < last else 0

    def parts(self, every: SliceRuns, covers: Covers, top: int = LEVELS - 1) -> Iterator[SliceRuns]:
        """Yield runs of slices, as many at a time as have a limited number of rows."""
        counts = np.empty(len(every.left), np.int64)
        count_rows(every, self.tree, covers, top, self.oldest, counts)
        total = np.cumsum(counts)
        first = 0
        while first < len(total):
            before = total[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(total, before + ROWS_AT_ONCE, "right")))
            yield SliceRuns(*(each[first:last] for each in every))
            first = last

    def merged(
        self, runs: SliceRuns, covers: Covers, top: int = LEVELS - 1
    ) -> tuple[pa.RecordBatch, Int64s, Int32s]:
        """Return the partials of runs by key, which run each is of, and a cell with the key."""
        counts = np.empty(len(runs.left), np.int64)
        count_rows(runs, self.tree, covers, top, self.oldest, counts)
        length = int(counts.sum())
        rows, of_row, run_of = (np.empty(length, np.int64) for _ in range(3))
        cells = np.empty(length, np.int32)
        scratch = self.scratch
        limits = (top, self.oldest, scratch.stamp)
        seen = scratch.room(len(covers.key_of))
        found = list_rows(runs, self.tree, covers, limits, seen, rows, of_row, run_of, cells)
        scratch.stamp += found
        partials = self.log.take(rows)
        if found < length:
            partials = self.partials.merged(partials, Groups(frozen(of_row), found))
        return partials, run_of[:found], cells[:found]

    def all_rows(self) -> SliceRows:
        """Return the rows of all slices."""
        return self.from_slice(0)

    def from_slice(self, first: int) -> SliceRows:
        """Return the rows of the slices from one on."""
        begins, ends = (each[0, first : self.count] for each in (self.begins, self.ends))
        numbers = ranges(begins, ends - begins)
        starts = np.zeros(len(begins) + 1, np.int64)
        np.cumsum(ends - begins, out=starts[1:])
        return SliceRows(
            self.times[first : self.count],
            self.epochs[first : self.count],
            starts,
            self.cells[numbers],
            self.log.take(numbers),
        )


class NewestSlice:
    """The slice that may get more rows: a few batches of partials."""

    def __init__(self, partials: Partials, first: SliceRows) -> None:
        self.partials = partials
        self.time, self.epoch = int(first.times[0]), int(first.epochs[0])
        self.batches = [first]

    @property
    def rows(self) -> int:
        """How many partials it has."""
        return sum(len(batch.cells) for batch in self.batches)

    def add(self, rows: SliceRows, known: KnownCells) -> None:
        """Add partials of rows behind the others."""
        self.batches.append(rows)
        if len(self.batches) >= MOST_WAITING:
            self._merge(1, known)
            # A batch is merged with the ones before only when it is not much smaller than they are.
            if 2 * len(self.batches[1].cells) >= len(self.batches[0].cells):
                self._merge(0, known)

    def _merge(self, first: int, known: KnownCells) -> None:
        """Merge the batches from one on."""
        if len(self.batches) == first + 1:
            return
        one = one_slice(self.batches[first:], self.partials.schema)
        self.batches[first:] = [regrouped(one, self.partials, np.zeros(1, np.bool_), known)]

    def whole(self, known: KnownCells) -> SliceRows:
        """Return all of it as one slice."""
        if len(self.batches) > FEW_BATCHES or (len(self.batches) > 1 and known.cells is not None):
            self._merge(0, known)
        return one_slice(self.batches, self.partials.schema)


def one_slice(batches: Sequence[SliceRows], schema: pa.Schema) -> SliceRows:
    """Return batches of rows of one slice as one; a cell may have several rows."""
    first = batches[0]
    if len(batches) == 1:
        return first
    cells = np.concatenate([batch.cells for batch in batches])
    partials = concat_batches([batch.partials for batch in batches], schema)
    return SliceRows(first.times, first.epochs, np.array([0, len(cells)]), cells, partials)


def regrouped(rows: SliceRows, partials: Partials, cuts: Bools, known: KnownCells) -> SliceRows:
    """Return slices put together: one begins with each that is marked, and with the first."""
    count = len(rows.cells)
    row_cuts = np.zeros(count, np.bool_)
    row_cuts[rows.starts[:-1][cuts]] = True
    found = grouped(row_cuts, rows.cells, known.count, known.synopsis_of)
    first = np.searchsorted(rows.starts, found.first_row, "right") - 1
    return SliceRows(
        rows.times[first],
        rows.epochs[first],
        found.starts,
        found.code_of.astype(np.int32),
        partials.merged(rows.partials, found.groups),
    )


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows by slice and code: groups of a slice stand together, in order of their synopses."""

    groups: Groups
    code_of: Int64s
    first_row: Int64s
    """The first row of each slice."""
    starts: Int64s
    """Where the groups of each slice begin, and one more."""


def grouped(cuts: Bools, codes: Int32s, count: int, synopsis_of: Int32s) -> Grouped:
    """Group rows by slice and code; a slice begins with the first row, and with each marked one.

    Codes are below `count`, and each has a synopsis.
    """
    rows = len(codes)
    groups, slice_of, code_of, first_row = (np.empty(rows, np.int64) for _ in range(4))
    seen = np.full(count, -1, np.int64)
    slices, found = group_by_slice(cuts, frozen(codes), seen, groups, slice_of, code_of, first_row)
    slice_of, code_of = slice_of[:found], code_of[:found]
    if found and synopsis_of.min() < synopsis_of.max():
        order = np.lexsort((synopsis_of[code_of], slice_of))
        places = np.empty(found, np.int64)
        places[order] = np.arange(found)
        groups, code_of = places[groups], code_of[order]
    starts = np.searchsorted(slice_of, np.arange(slices + 1))
    return Grouped(Groups(frozen(groups), found), code_of, first_row[:slices], starts)


def by_synopsis(run_of: Int64s, cells: Int32s, known: KnownCells) -> Int64s | None:
    """Return the order of rows by run, then by synopsis; None if they are."""
    if known.cells is None:
        return None
    return np.lexsort((known.synopsis_of[cells], run_of))


def everything(known: KnownCells) -> Covers:
    """Return the cover of one place that reads all rows."""
    return Covers(np.zeros(0, np.int64), np.zeros(2, np.int64), known.synopsis_of, known.key_of)


def together(parts: Sequence[SliceRows], schema: pa.Schema) -> SliceRows:
    """Return slices one behind another."""
    shifts = np.cumsum([0, *(len(part.cells) for part in parts)])
    starts = [part.starts[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
    return SliceRows(
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.epochs for part in parts]),
        np.concatenate([*starts, shifts[-1:]]),
        np.concatenate([part.cells for part in parts]),
        concat_batches([part.partials for part in parts], schema),
    )
