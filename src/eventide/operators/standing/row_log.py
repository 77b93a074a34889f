"""The values of an operator's tuples: rows in the order in which they came, found by number."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow
from eventide.kernels.compiled import Int64s
from eventide.operators.changes import Changes
from eventide.operators.columns import concat_batches

_SLACK = 1024
_FEW = 8
"""If less than one in this many rows is taken, each chunk is searched by itself."""


def is_sparse(held: int, living: int) -> bool:
    """Whether so many rows are kept beside the living ones that copying those pays."""
    return held > 2 * living + _SLACK


@dataclass(frozen=True)
class RowLog:
    """Rows numbered from the first ever; the oldest may be dropped.

    They stand in chunks, each at least twice as long as the next, so that adding a batch copies a
    row only a few times in its life and there are never many chunks.
    """

    schema: pa.Schema
    start: int = 0
    chunks: tuple[pa.RecordBatch, ...] = ()

    @classmethod
    def empty(cls, schema: pa.Schema) -> RowLog:
        """Return a log without rows."""
        return cls(schema)

    @property
    def size(self) -> int:
        """How many rows are held."""
        return sum(chunk.num_rows for chunk in self.chunks)

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self.start + self.size

    @property
    def nbytes(self) -> int:
        """How many bytes the rows take."""
        return sum(chunk.nbytes for chunk in self.chunks)

    @cached_property
    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.chunks, self.schema)

    def append(self, rows: pa.RecordBatch) -> RowLog:
        """Return the log with rows behind the others."""
        if not rows.num_rows:
            return self
        chunks = [*self.chunks, rows]
        while len(chunks) > 1 and chunks[-2].num_rows < 2 * chunks[-1].num_rows:
            last = chunks.pop()
            chunks[-1] = concat_batches([chunks[-1], last], self.schema)
        return RowLog(self.schema, self.start, tuple(chunks))

    def take(self, numbers: Int64s) -> pa.RecordBatch:
        """Return the rows with these numbers, in that order."""
        if len(self.chunks) == 1:
            return self.chunks[0].take(to_arrow(numbers - self.start))
        if not len(numbers):
            return no_rows(self.schema)
        if _FEW * len(numbers) < self.size:
            return self._taken_by_chunk(numbers - self.start)
        taken = self.table.take(to_arrow(numbers - self.start)).combine_chunks()
        return taken.to_batches()[0]

    def _taken_by_chunk(self, places: Int64s) -> pa.RecordBatch:
        """Return a few rows; Arrow would first concatenate all chunks to find them."""
        ends = np.cumsum([chunk.num_rows for chunk in self.chunks])
        of_place = np.searchsorted(ends, places, "right")
        order = np.argsort(of_place, kind="stable")
        starts = np.searchsorted(of_place[order], np.arange(len(ends) + 1))
        parts = [
            chunk.take(to_arrow(places[order[starts[i] : starts[i + 1]]] - (ends[i] - len(chunk))))
            for i, chunk in enumerate(self.chunks)
            if starts[i] < starts[i + 1]
        ]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return concat_batches(parts, self.schema).take(to_arrow(back))

    def kept(self, numbers: Int64s) -> RowLog:
        """Return a log of only these rows, numbered from 0 in that order."""
        return RowLog.empty(self.schema).append(self.take(numbers))

    def drop_before(self, number: int) -> RowLog:
        """Return the log without the rows before a number, as far as that is cheap."""
        if number <= self.start:
            return self
        ends = np.cumsum([chunk.num_rows for chunk in self.chunks]) + self.start
        whole = bisect_right(ends.tolist(), number)
        chunks = list(self.chunks[whole:])
        start = int(ends[whole - 1]) if whole else self.start
        if chunks and is_sparse(chunks[0].num_rows, chunks[0].num_rows - (number - start)):
            # A slice alone would keep the memory of the rows before it.
            rows = chunks[0].slice(number - start)
            chunks[0] = rows.take(to_arrow(np.arange(rows.num_rows)))
            start = number
        return RowLog(self.schema, start, tuple(chunks))


def append_coming(log: RowLog, changes: Changes) -> tuple[Int64s, RowLog]:
    """Append the rows of tuples that come; return their numbers, -1 for others, and the log."""
    coming = changes.sign > 0
    numbers = np.where(coming, np.cumsum(coming) - 1 + log.end, -1)
    rows = changes.rows
    return numbers, log.append(rows if coming.all() else rows.filter(to_arrow(coming)))
