"""Counts, sums and means: exact, so that they do not depend on the order of merging."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import (
    decimal_column,
    decimal_halves,
    floats,
    int64s,
    low_parts,
    numbers_column,
)
from eventide.accumulators.contract import Accumulator, Columns, Frames, Groups
from eventide.accumulators.sum_rests import (
    REST,
    expanded,
    expanded_frames,
    is_single,
    products_by_frame,
    products_by_group,
    rests,
    rounded_parts,
)
from eventide.arrays import to_arrow
from eventide.errors import EvaluationError, Span
from eventide.kernels.aggregates.sums import (
    add_by_group,
    round_pairs,
    running_integers,
    subtract_integers,
    sum_floats_by_frame,
    sum_floats_by_group,
    sum_integers_by_group,
    sum_pairs_by_group,
    sum_values_by_group,
)
from eventide.kernels.compiled import Bools, Floats, Int64s, frozen


@dataclass(frozen=True)
class Count(Accumulator):
    """The rows on which the argument is not null. Partial: the count."""

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (pa.int64(),)

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return one for each value, zero for each null."""
        return [values[0].is_valid().cast(pa.int64())]

    def of_groups(self, values: Columns, groups: Groups) -> list[pa.Array]:
        """Return the count of each group."""
        if values[0].null_count:
            return super().of_groups(values, groups)
        return [to_arrow(np.bincount(groups.of_row, minlength=groups.count))]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        out = np.zeros(groups.count, np.int64)
        add_by_group(int64s(partials[0]), groups.of_row, out)
        return [to_arrow(out)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        running = np.zeros(len(partials[0]) + 1, np.int64)
        np.cumsum(int64s(partials[0]), out=running[1:])
        return [to_arrow(running[frames.right] - running[frames.left])]

    def finish(self, partials: Columns) -> pa.Array:
        """Return the counts."""
        return partials[0]


COUNT = Count()


@dataclass(frozen=True)
class FloatSums(Accumulator):
    """Sums of one or more columns of floats, each with the same nulls.

    Partials: high and low of the first sum, the count, high and low of each further sum, and then
    the rest of each if sums are exact. An exact sum is high + low + rest, unless it is not finite.
    The rest is null as long as two doubles are enough, which is nearly always, but not for the last
    `of_products` sums, which are of squares or products. Sums that are not exact have about 106
    bits.
    """

    count: int = 1
    of_products: int = 0
    exact: bool = True

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        pair = (pa.float64(), pa.float64())
        rests = [REST] * self.count if self.exact else []
        return (*pair, pa.int64(), *(pair * (self.count - 1)), *rests)

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Yield the columns of each sum: high, low, rest."""
        first_rest = 2 * self.count + 1
        for number in range(self.count):
            high = 2 * number + (1 if number else 0)
            yield high, high + 1, first_rest + number

    def together(
        self, sums: Iterable[tuple[pa.Array, pa.Array, pa.Array | None]], counts: pa.Array
    ) -> list[pa.Array]:
        """Return sums and counts as partial columns."""
        columns: list[pa.Array] = [counts] * len(self.types)
        for (high, low, rest), found in zip(self.places(), sums, strict=True):
            columns[high], columns[low] = found[:2]
            if self.exact:
                columns[rest] = found[2]
        return columns

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the partials of single values: each value with a count of one."""
        assert self.count == 1
        return self.lift_pairs([(to_arrow(floats(values[0])), None)], COUNT.lift(*values)[0])

    def lift_pairs(
        self, pairs: Iterable[tuple[pa.Array, pa.Array | None]], counts: pa.Array
    ) -> list[pa.Array]:
        """Return the partials of single rows; a low part that is left out is zero."""
        rows = len(counts)
        # A null stands for zero, and tells that a whole column is zero.
        zeros, nothing = pa.nulls(rows, pa.float64()), pa.nulls(rows, REST)
        sums = ((high, zeros if low is None else low, nothing) for high, low in pairs)
        return self.together(sums, counts)

    def of_groups(self, values: Columns, groups: Groups) -> list[pa.Array]:
        """Return the partial of each group, of a single sum in one pass over its values."""
        if self.count > 1 or values[0].null_count:
            return super().of_groups(values, groups)
        high, low, doubt = (
            np.zeros(groups.count),
            np.zeros(groups.count),
            np.zeros(groups.count, bool),
        )
        counts = np.zeros(groups.count, np.int64)
        sum_values_by_group(floats(values[0]), groups.of_row, (high, low), counts, doubt)
        if doubt.any():
            return super().of_groups(values, groups)
        parts = (to_arrow(high), to_arrow(low), pa.nulls(groups.count, REST))
        return self.together([parts], to_arrow(counts))

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        sums = (
            products_by_group(pair, rest, groups)
            if rest is not None and self._is_wide(number, pair, rest)
            else _sum_by_group(pair, rest, groups)
            for number, (pair, rest) in enumerate(self._parts(partials))
        )
        return self.together(sums, COUNT.by_group(partials[2:3], groups)[0])

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        sums = (
            products_by_frame(pair, rest, frames)
            if rest is not None and self._is_wide(number, pair, rest)
            else _sum_by_frame(pair, rest, frames)
            for number, (pair, rest) in enumerate(self._parts(partials))
        )
        return self.together(sums, COUNT.by_frame(partials[2:3], frames)[0])

    def _parts(self, partials: Columns) -> Iterator[tuple[Columns, pa.Array | None]]:
        """Yield high and low of each sum, and its rest, None if sums are not exact."""
        for high, low, rest in self.places():
            yield partials[high : low + 1], partials[rest] if self.exact else None

    def _is_wide(self, number: int, pair: Columns, rest: pa.Array) -> bool:
        """Whether a pair hardly holds a sum: it is of products that are not single doubles."""
        return number >= self.count - self.of_products and not is_single(pair, rest)

    def pairs(self, partials: Columns) -> list[tuple[Floats, Floats]]:
        """Return each sum, correctly rounded, and what rounding left out.

        The index keeps no rest: the columns behind its own may be missing.
        """
        found = []
        for high, low, rest in self.places():
            tail = partials[rest] if rest < len(partials) else None
            found.append(_rounded(partials[high], partials[low], tail))
        return found

    def finish(self, partials: Columns) -> pa.Array:
        """Return the first sum; null where there was no value."""
        return numbers_column(self.pairs(partials)[0][0], int64s(partials[2]) > 0)


FLOAT_SUM = FloatSums()


def _sum_by_group(
    pair: Columns, rest: pa.Array | None, groups: Groups
) -> tuple[pa.Array, pa.Array, pa.Array | None]:
    """Return high, low and rest of the sum of each group."""
    high, low, doubt = np.zeros(groups.count), np.zeros(groups.count), np.zeros(groups.count, bool)
    lows = low_parts(pair[1])
    if rest is None:
        sum_pairs_by_group(floats(pair[0]), lows, groups.of_row, high, low)
        return to_arrow(high), to_arrow(low), None
    sum_floats_by_group(floats(pair[0]), lows, groups.of_row, high, low, doubt)
    if rest.null_count < len(rest):
        doubt[groups.of_row[rest.is_valid().to_numpy(zero_copy_only=False)]] = True
    if not doubt.any():
        return to_arrow(high), to_arrow(low), pa.nulls(groups.count, REST)
    chosen, found = expanded((*pair, rest), groups, doubt)
    high[chosen], low[chosen] = found[:, 0], found[:, 1]
    return to_arrow(high), to_arrow(low), rests(found, chosen, groups.count)


def _sum_by_frame(
    pair: Columns, rest: pa.Array | None, frames: Frames
) -> tuple[pa.Array, pa.Array, pa.Array | None]:
    """Return high, low and rest of the sum of each frame."""
    rows, count = len(pair[0]), len(frames.left)
    high, low = np.empty(count), np.empty(count)
    suffix = (np.empty(rows), np.empty(rows))
    pairs = (floats(pair[0]), low_parts(pair[1]))
    doubt = sum_floats_by_frame(pairs, frames.left, frames.right, suffix, (high, low))
    if rest is None:
        return to_arrow(high), to_arrow(low), None
    if not count or (not doubt and rest.null_count == rows):
        return to_arrow(high), to_arrow(low), pa.nulls(count, REST)
    return expanded_frames((*pair, rest), frames)


def _rounded(high: pa.Array, low: pa.Array, rest: pa.Array | None) -> tuple[Floats, Floats]:
    """Return sums, rounded once, and what rounding left out of each."""
    total, left = np.empty(len(high)), np.empty(len(high))
    round_pairs(floats(high), low_parts(low), total, left)
    if rest is None or rest.null_count == len(rest):
        return total, left
    rows = np.flatnonzero(rest.is_valid().to_numpy(zero_copy_only=False))
    found = rounded_parts([part.take(to_arrow(rows)) for part in (high, low, rest)])
    total[rows], left[rows] = found
    return total, left


@dataclass(frozen=True)
class IntegerSum(Accumulator):
    """An exact sum of integers or decimals. Partials: high and low 64 bits, count.

    `described` and `span` are for errors.
    """

    described: str
    span: Span | None = None
    scale: int | None = None

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (pa.int64(), pa.int64(), pa.int64())

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return each value in 128 bits with a count of one."""
        if pa.types.is_decimal(values[0].type):
            high, low = decimal_halves(values[0])
        else:
            low = int64s(values[0])
            high = low >> 63
        return [to_arrow(high), to_arrow(low), *COUNT.lift(*values)]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        high, low = np.zeros(groups.count, np.int64), np.zeros(groups.count, np.int64)
        sum_integers_by_group(int64s(partials[0]), int64s(partials[1]), groups.of_row, high, low)
        return [to_arrow(high), to_arrow(low), *COUNT.by_group(partials[2:], groups)]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        rows, count = len(partials[0]), len(frames.left)
        running = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
        running_integers(int64s(partials[0]), int64s(partials[1]), running[0], running[1])
        high, low = np.empty(count, np.int64), np.empty(count, np.int64)
        subtract_integers(
            frozen(running[0]), frozen(running[1]), frames.left, frames.right, high, low
        )
        return [to_arrow(high), to_arrow(low), *COUNT.by_frame(partials[2:], frames)]

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


@dataclass(frozen=True)
class WideDecimalSum(Accumulator):
    """An exact sum of decimals so long that a few of them exceed 128 bits.

    A sum in floats beside it shows when the exact one has wrapped around. Partials: those of both.
    """

    exact: IntegerSum

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (*self.exact.types, *FLOAT_SUM.types)

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone."""
        return [*self.exact.lift(*values), *FLOAT_SUM.lift(*values)]

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
        if np.any(np.abs(FLOAT_SUM.pairs(partials[3:])[0][0]) > 1.2 * largest):
            raise too_large(self.exact, f"decimal(38,{self.exact.scale})")
        return self.exact.finish(partials[:3])


@dataclass(frozen=True)
class Average(Accumulator):
    """A mean, as the exact sum divided once. Partials: those of the sum."""

    sum: FloatSums | IntegerSum

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return self.sum.types

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone."""
        return self.sum.lift(*values)

    def of_groups(self, values: Columns, groups: Groups) -> list[pa.Array]:
        """Return the partial of each group of rows."""
        return self.sum.of_groups(values, groups)

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        return self.sum.by_group(partials, groups)

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        return self.sum.by_frame(partials, frames)

    def finish(self, partials: Columns) -> pa.Array:
        """Return the means; null where there was no value."""
        counts = int64s(partials[2])
        if isinstance(self.sum, FloatSums):
            totals = self.sum.pairs(partials)[0][0]
        else:
            totals = wide_to_float(int64s(partials[0]), int64s(partials[1]))
            totals = totals / 10.0 ** (self.sum.scale or 0)
        with np.errstate(invalid="ignore"):
            means = totals / np.maximum(counts, 1)
        return numbers_column(means, counts > 0)


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
