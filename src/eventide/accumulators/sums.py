"""Counts, sums, means and deviations: exact, so that they do not depend on the order of merging."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import (
    decimal_column,
    decimal_halves,
    floats,
    int64s,
    numbers_column,
)
from eventide.accumulators.contract import Columns, Frames, Groups
from eventide.errors import EvaluationError, Span
from eventide.kernels.aggregates.sums import (
    add_by_group,
    running_integers,
    sample_variance,
    squares,
    subtract_integers,
    sum_floats_by_frame,
    sum_floats_by_group,
    sum_integers_by_group,
)
from eventide.kernels.compiled import Bools, Floats, Int64s, frozen


@dataclass(frozen=True, slots=True)
class Count:
    """The rows on which the argument is not null. Partial: the count."""

    types: tuple[pa.DataType, ...] = (pa.int64(),)

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return one for each value, zero for each null."""
        return [values.is_valid().cast(pa.int64())]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        out = np.zeros(groups.count, np.int64)
        add_by_group(int64s(partials[0]), groups.of_row, out)
        return [pa.array(out)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        running = np.zeros(len(partials[0]) + 1, np.int64)
        np.cumsum(int64s(partials[0]), out=running[1:])
        return [pa.array(running[frames.right] - running[frames.left])]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the counts."""
        return partials[0]


COUNT = Count()


@dataclass(frozen=True, slots=True)
class FloatSum:
    """A sum of floats that does not depend on the order of adding. Partials: high, low, count."""

    types: tuple[pa.DataType, ...] = (pa.float64(), pa.float64(), pa.int64())

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return each value as a pair with a count of one."""
        zeros = pa.array(np.zeros(len(values)))
        return [pa.array(floats(values)), zeros, *COUNT.lift(values)]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        high, low = np.zeros(groups.count), np.zeros(groups.count)
        sum_floats_by_group(floats(partials[0]), floats(partials[1]), groups.of_row, high, low)
        return [pa.array(high), pa.array(low), *COUNT.by_group(partials[2:], groups)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        rows, count = len(partials[0]), len(frames.left)
        out = (np.empty(count), np.empty(count))
        pairs = (floats(partials[0]), floats(partials[1]))
        suffix = (np.empty(rows), np.empty(rows))
        sum_floats_by_frame(pairs, frames.left, frames.right, suffix, out)
        return [pa.array(out[0]), pa.array(out[1]), *COUNT.by_frame(partials[2:], frames)]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the sums; null where there was no value."""
        return numbers_column(rounded_sum(partials), int64s(partials[2]) > 0)


FLOAT_SUM = FloatSum()


@dataclass(frozen=True, slots=True)
class IntegerSum:
    """An exact sum of integers or decimals. Partials: high and low 64 bits, count.

    `described` and `span` are for errors.
    """

    described: str
    span: Span | None = None
    scale: int | None = None
    types: tuple[pa.DataType, ...] = (pa.int64(), pa.int64(), pa.int64())

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return each value in 128 bits with a count of one."""
        if pa.types.is_decimal(values.type):
            high, low = decimal_halves(values)
        else:
            low = int64s(values)
            high = low >> 63
        return [pa.array(high), pa.array(low), *COUNT.lift(values)]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        high, low = np.zeros(groups.count, np.int64), np.zeros(groups.count, np.int64)
        sum_integers_by_group(int64s(partials[0]), int64s(partials[1]), groups.of_row, high, low)
        return [pa.array(high), pa.array(low), *COUNT.by_group(partials[2:], groups)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        rows, count = len(partials[0]), len(frames.left)
        running = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
        running_integers(int64s(partials[0]), int64s(partials[1]), running[0], running[1])
        high, low = np.empty(count, np.int64), np.empty(count, np.int64)
        subtract_integers(
            frozen(running[0]), frozen(running[1]), frames.left, frames.right, high, low
        )
        return [pa.array(high), pa.array(low), *COUNT.by_frame(partials[2:], frames)]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the sums; null where there was no value."""
        high, low, valid = int64s(partials[0]), int64s(partials[1]), int64s(partials[2]) > 0
        if self.scale is not None:
            return self.checked_decimals(decimal_column(high, low, valid, self.scale))
        if np.any(high != low >> 63):
            raise too_large(self, "int64")
        return numbers_column(low, valid)

    def checked_decimals(self, sums: pa.Array) -> pa.Array:
        """Refuse sums of more than 38 digits."""
        try:
            sums.validate(full=True)
        except pa.ArrowInvalid as error:
            raise too_large(self, str(sums.type)) from error
        return sums


@dataclass(frozen=True, slots=True)
class WideDecimalSum:
    """An exact sum of decimals so long that a few of them exceed 128 bits.

    A sum in floats beside it shows when the exact one has wrapped around. Partials: those of both.
    """

    exact: IntegerSum
    types: tuple[pa.DataType, ...] = (pa.int64(), pa.int64(), pa.int64(), *FLOAT_SUM.types)

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone."""
        return [*self.exact.lift(values), *FLOAT_SUM.lift(values)]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        rough = FLOAT_SUM.by_group(partials[3:], groups)
        return [*self.exact.by_group(partials[:3], groups), *rough]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        rough = FLOAT_SUM.by_frame(partials[3:], frames)
        return [*self.exact.by_frame(partials[:3], frames), *rough]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the sums; null where there was no value."""
        largest = 10.0 ** (38 - (self.exact.scale or 0))
        # Between 38 digits and what wraps around 128 bits lies a factor of 1.7: room for rounding.
        if np.any(np.abs(rounded_sum(partials[3:])) > 1.2 * largest):
            raise too_large(self.exact, f"decimal(38,{self.exact.scale})")
        return self.exact.finish(partials[:3])


@dataclass(frozen=True, slots=True)
class Average:
    """A mean, as the exact sum divided once. Partials: those of the sum."""

    sum: FloatSum | IntegerSum

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return self.sum.types

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone."""
        return self.sum.lift(values)

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        return self.sum.by_group(partials, groups)

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        return self.sum.by_frame(partials, frames)

    def finish(self, partials: Columns) -> pa.Array:
        """Return the means; null where there was no value."""
        counts = int64s(partials[2])
        if isinstance(self.sum, FloatSum):
            totals = rounded_sum(partials)
        else:
            totals = wide_to_float(int64s(partials[0]), int64s(partials[1]))
            totals = totals / 10.0 ** (self.sum.scale or 0)
        with np.errstate(invalid="ignore"):
            means = totals / np.maximum(counts, 1)
        return numbers_column(means, counts > 0)


@dataclass(frozen=True, slots=True)
class StandardDeviation:
    """The sample standard deviation. Partials: those of the sums of values and of squares."""

    types: tuple[pa.DataType, ...] = (*FLOAT_SUM.types, *FLOAT_SUM.types[:2])

    def lift(self, values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone."""
        high, low = np.empty(len(values)), np.empty(len(values))
        squares(floats(values), high, low)
        return [*FLOAT_SUM.lift(values), pa.array(high), pa.array(low)]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        square_sums = FLOAT_SUM.by_group((*partials[3:], partials[2]), groups)
        return [*FLOAT_SUM.by_group(partials[:3], groups), *square_sums[:2]]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        square_sums = FLOAT_SUM.by_frame((*partials[3:], partials[2]), frames)
        return [*FLOAT_SUM.by_frame(partials[:3], frames), *square_sums[:2]]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the deviations; null for fewer than two values."""
        counts = int64s(partials[2])
        sums = (floats(partials[0]), floats(partials[1]))
        square_sums = (floats(partials[3]), floats(partials[4]))
        variance = np.empty(len(counts))
        sample_variance(counts, sums, square_sums, variance)
        with np.errstate(invalid="ignore"):
            return numbers_column(np.sqrt(variance), counts > 1)


def rounded_sum(partials: Columns) -> Floats:
    """Return high + low, or high alone where it is not finite."""
    high, low = floats(partials[0]), floats(partials[1])
    return np.where(np.isfinite(high), high + low, high)


def wide_to_float(high: Int64s, low: Int64s) -> Floats:
    """Return 128-bit integers as doubles, rounded."""
    fits: Bools = high == low >> 63
    wide = high.astype(np.float64) * 2.0**64 + low.view(np.uint64).astype(np.float64)
    return np.where(fits, low.astype(np.float64), wide)


def too_large(total: IntegerSum, type_name: str) -> EvaluationError:
    """Return the error for a sum that its type cannot hold."""
    message = f"{total.described} does not fit {type_name}"
    hint = "cast the argument to double, which is not exact but has room"
    return EvaluationError(message, span=total.span, hint=hint)
