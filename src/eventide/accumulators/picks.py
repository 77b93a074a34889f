"""Aggregates that pick one of the values: the smallest, largest, first or last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s, one_spelling, sort_keys, validity
from eventide.accumulators.contract import Accumulator, Columns, Frames, Groups
from eventide.arrays import to_arrow
from eventide.kernels.aggregates.extremes import (
    best_by_frame,
    best_by_group,
    first_by_group,
    last_by_group,
)
from eventide.kernels.aggregates.sums import add_by_group
from eventide.kernels.compiled import Bools, Int64s, frozen


@dataclass(frozen=True)
class Pick(Accumulator):
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

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the values, with one zero and one NaN."""
        return [one_spelling(values[0])]

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

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the values."""
        return [values[0]]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        rows = np.full(groups.count, -1, np.int64)
        (first_by_group if self.first else last_by_group)(groups.of_row, rows)
        return [take_rows(partials[0], rows)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        rows = frames.left if self.first else frames.right - 1
        return [take_rows(partials[0], np.where(frames.left < frames.right, rows, -1))]


@dataclass(frozen=True)
class ChosenFirstOrLast(Accumulator):
    """The value of the first or last event, of those on which a condition holds, null or not.

    Partials: the value, and how many events there were.
    """

    type: pa.DataType
    first: bool

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (self.type, pa.int64())

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the values, and one where the condition holds."""
        value, condition = values
        return [value, to_arrow(holds(condition).astype(np.int64))]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        counts = int64s(partials[1])
        there = np.flatnonzero(counts > 0)
        rows, totals = np.full(groups.count, -1, np.int64), np.zeros(groups.count, np.int64)
        (first_by_group if self.first else last_by_group)(frozen(groups.of_row[there]), rows)
        add_by_group(counts, groups.of_row, totals)
        rows[rows >= 0] = there[rows[rows >= 0]]
        return [take_rows(partials[0], rows), to_arrow(totals)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        counts = int64s(partials[1])
        before = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts > 0, out=before[1:])
        there = np.flatnonzero(counts > 0)
        found = before[frames.right] - before[frames.left]
        place = before[frames.left] if self.first else before[frames.right] - 1
        rows = np.full(len(found), -1, np.int64)
        rows[found > 0] = there[place[found > 0]]
        totals = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=totals[1:])
        many = totals[frames.right] - totals[frames.left]
        return [take_rows(partials[0], rows), to_arrow(many)]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the values."""
        return partials[0]


@dataclass(frozen=True)
class ArgExtreme(Accumulator):
    """A value of the row with the smallest (sign 1) or largest (-1) other value.

    Rows on which one of both is null are left out; of equal ones the first counts. Partials: the
    value, and the other one.
    """

    type: pa.DataType
    other: pa.DataType
    sign: int

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (self.type, self.other)

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return both values; both are null where one is."""
        value, other = values
        both = pc.and_(value.is_valid(), other.is_valid())
        return [
            pc.if_else(both, value, pa.scalar(None, value.type)),
            pc.if_else(both, one_spelling(other), pa.scalar(None, other.type)),
        ]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        best = np.full(groups.count, -1, np.int64)
        keys, valid = sort_keys(partials[1]), validity(partials[1])
        best_by_group(keys, valid, groups.of_row, self.sign, best)
        return [take_rows(part, best) for part in partials]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        best, waiting = np.empty(len(frames.left), np.int64), np.empty(len(partials[0]), np.int64)
        keys, valid = sort_keys(partials[1]), validity(partials[1])
        best_by_frame(keys, valid, frames.left, frames.right, self.sign, waiting, best)
        return [take_rows(part, best) for part in partials]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the values."""
        return partials[0]


def holds(condition: pa.Array) -> Bools:
    """Return where a condition is true; a null is not."""
    found: Bools = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return found


def take_rows(column: pa.Array, rows: Int64s) -> pa.Array:
    """Return the values at row numbers; null at -1."""
    return column.take(to_arrow(rows, rows >= 0))
