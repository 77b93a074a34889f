"""The rows that the end of a period cuts: leaves, whose columns are kept decoded, and memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import validity
from eventide.kernels.compiled import Floats, Int64s, frozen
from eventide.kernels.store.descent import (
    FLOATS,
    KEYS,
    summarise_float_part,
    summarise_integer_part,
)
from eventide.schema import TS
from eventide.store.files.mapped import MAPPED, Decoded, damaged
from eventide.store.index.attribute_summaries import raw_floats, raw_integers
from eventide.store.order import int64_view
from eventide.store.reading.heads import Heads
from eventide.store.segments.segment import Segment


class SortedRows(Protocol):
    """Rows in order of their times."""

    @property
    def times(self) -> Int64s:
        """The times of all rows."""
        ...

    def column(self, name: str, kind: int) -> Decoded:
        """Return a column as numbers, and which are not null; empty if all."""
        ...


@dataclass(frozen=True, slots=True)
class LeafRows:
    """The rows of a leaf whose segment is in order of time."""

    folder: Path
    path: Path
    segment: Segment
    address: int
    length: int
    rows: int

    @property
    def times(self) -> Int64s:
        """The times of all rows."""
        return self.column(TS, KEYS)[0].view(np.int64)

    def column(self, name: str, kind: int) -> Decoded:
        """Return a column as numbers, and which are not null; empty if all."""
        return MAPPED.column(self.path, self.address, name, partial(self.decoded, name, kind))

    def decoded(self, name: str, kind: int) -> Decoded:
        """Read a column. It is copied: what was checked once must not change in the file."""
        where = [np.array([each]) for each in (self.address, self.length, self.rows)]
        heads = Heads.of(self.folder, self.segment, [TS, name], where)
        if heads is None:
            raise damaged(self.path, f"the leaf at byte {self.address} has no whole head")
        return numbers_of(heads.column(0, 1), kind, copy=True)


@dataclass(frozen=True, slots=True)
class RowsInMemory:
    """Sorted rows that are in no segment yet."""

    rows: pa.RecordBatch

    @property
    def times(self) -> Int64s:
        """The times of all rows."""
        return int64_view(self.rows.column(TS))

    def column(self, name: str, kind: int) -> Decoded:
        """Return a column as numbers, and which are not null; empty if all."""
        return numbers_of(self.rows.column(name), kind, copy=False)


def numbers_of(column: pa.Array, kind: int, *, copy: bool) -> Decoded:
    """Return a column as numbers, any where it is null."""
    valid = validity(column)
    if kind == FLOATS:
        doubles = raw_floats(column)
        return frozen(doubles.copy()) if copy else doubles, valid
    integers = raw_integers(column)
    return frozen(integers.copy()) if copy else integers, valid


def add_part(
    rows: SortedRows, bounds: tuple[int, int], name: str, kind: int, words: Int64s
) -> None:
    """Write the summary of an attribute over some of the rows."""
    values, valid = rows.column(name, kind)
    if kind == FLOATS:
        summarise_float_part(cast(Floats, values), valid, *bounds, words)
    else:
        summarise_integer_part(cast(Int64s, values), valid, *bounds, kind, words)
