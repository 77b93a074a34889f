"""Aggregates that pick one of the values: the smallest, largest, first or last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling, sort_keys, validity
from eventide.accumulators.contract import Columns, Frames, Groups
from eventide.kernels.aggregates.extremes import (
    best_by_frame,
    best_by_group,
    first_by_group,
    last_by_group,
)
from eventide.kernels.compiled import Int64s


@dataclass(frozen=True)
class Pick:
    """An aggregate whose partial is the value it has picked so far."""

    type: pa.DataType

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (self.type,)

    def finish(self, partials: Columns) -> pa.Array:
        """Return the values."""
        return partials[0]


@dataclass(frozen=True)
class Extreme(Pick):
    """The smallest (sign 1) or largest (sign -1) value that is not null."""

    sign: int

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return the values, with one zero and one NaN."""
        return [one_spelling(values)]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        best = np.full(groups.count, -1, np.int64)
        values, valid = sort_keys(partials[0]), validity(partials[0])
        best_by_group(values, valid, groups.of_row, self.sign, best)
        return [take_rows(partials[0], best)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        best, waiting = np.empty(len(frames.left), np.int64), np.empty(len(partials[0]), np.int64)
        values, valid = sort_keys(partials[0]), validity(partials[0])
        best_by_frame(values, valid, frames.left, frames.right, self.sign, waiting, best)
        return [take_rows(partials[0], best)]


@dataclass(frozen=True)
class FirstOrLast(Pick):
    """The value of the first or last event in order of (ts, _seq), null or not."""

    first: bool

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return the values."""
        return [values]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        rows = np.full(groups.count, -1, np.int64)
        (first_by_group if self.first else last_by_group)(groups.of_row, rows)
        return [take_rows(partials[0], rows)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        rows = frames.left if self.first else frames.right - 1
        return [take_rows(partials[0], np.where(frames.left < frames.right, rows, -1))]


def take_rows(column: pa.Array, rows: Int64s) -> pa.Array:
    """Return the values at row numbers; null at -1."""
    return column.take(pa.array(rows, mask=rows < 0))
