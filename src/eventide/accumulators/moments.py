"""Variances and deviations of one column, covariance and correlation of two.

They are computed from exact sums of the values, of their squares and of their products. A sum is
rounded to a double, and what is left of it to another. So the order of merging does not matter.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats, int64s, numbers_column
from eventide.accumulators.contract import Accumulator, Columns, Frames, Groups
from eventide.accumulators.sums import FloatSums
from eventide.arrays import to_arrow
from eventide.kernels.aggregates.sums import co_deviations, products
from eventide.kernels.compiled import Floats, Int64s, frozen

Spread = Literal["stddev", "stddev_pop", "variance", "var_pop"]
Relation = Literal["covar_samp", "covar_pop", "corr", "regr_slope"]
Pair = tuple[Floats, Floats]


@dataclass(frozen=True)
class Moments(Accumulator):
    """An aggregate of several sums over the same rows. Partials: those of the sums."""

    @property
    @abstractmethod
    def sums(self) -> FloatSums:
        """The sums."""

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return self.sums.types

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""
        return self.sums.by_group(partials, groups)

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""
        return self.sums.by_frame(partials, frames)


@dataclass(frozen=True)
class Deviation(Moments):
    """A variance or a standard deviation, from the sums of values and of squares."""

    function: Spread

    @property
    def sums(self) -> FloatSums:
        """The sums of values and of squares."""
        return FloatSums(2, of_products=1)

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone."""
        numbers = floats(values[0])
        counts = values[0].is_valid().cast(pa.int64())
        return self.sums.lift_pairs([(to_arrow(numbers), None), product(numbers, numbers)], counts)

    def finish(self, partials: Columns) -> pa.Array:
        """Return the answers; null for too few values: a sample needs two."""
        sums, squares = self.sums.pairs(partials)
        return spread(self.function, int64s(partials[2]), sums, squares)


@dataclass(frozen=True)
class Covariance(Moments):
    """A covariance, a correlation or a slope, from five sums over rows without a null.

    The sums are those of the first and the second value, of their product, and of their squares.
    """

    function: Relation

    @property
    def sums(self) -> FloatSums:
        """The sums of both values, of their products, and of both squares."""
        return FloatSums(5, of_products=3)

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone."""
        both = [each.is_valid().to_numpy(zero_copy_only=False) for each in values]
        valid = both[0] & both[1]
        first, second = (frozen(np.where(valid, floats(each), 0.0)) for each in values)
        pairs = [(to_arrow(each), None) for each in (first, second)]
        squares = [product(*each) for each in ((first, second), (first, first), (second, second))]
        return self.sums.lift_pairs([*pairs, *squares], to_arrow(valid.astype(np.int64)))

    def finish(self, partials: Columns) -> pa.Array:
        """Return the answers; null where there is none."""
        counts = int64s(partials[2])
        first, second, mixed, squares, other_squares = self.sums.pairs(partials)
        common = deviations(counts, first, second, mixed)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.function == "covar_pop":
                return numbers_column(common / np.maximum(counts, 1), counts > 0)
            if self.function == "covar_samp":
                return numbers_column(common / np.maximum(counts - 1, 1), counts > 1)
            own = deviations(counts, second, second, other_squares)
            if self.function == "regr_slope":
                # The second value is the one that explains the first.
                return numbers_column(common / own, (counts > 0) & (own != 0.0))
            both = np.sqrt(deviations(counts, first, first, squares)) * np.sqrt(own)
            return numbers_column(np.clip(common / both, -1.0, 1.0), (counts > 0) & (both != 0.0))


def product(one: Floats, other: Floats) -> tuple[pa.Array, pa.Array | None]:
    """Return products as pairs of doubles; no second ones if all are zero, as of small integers."""
    high, low = np.empty(len(one)), np.empty(len(one))
    products(one, other, high, low)
    return to_arrow(high), to_arrow(low) if low.any() else None


def deviations(counts: Int64s, first: Pair, second: Pair, mixed: Pair) -> Floats:
    """Return the sum of the products of deviations from both means."""
    found = np.empty(len(counts))
    co_deviations(counts, _frozen(first), _frozen(second), _frozen(mixed), found)
    return found


def _frozen(pair: Pair) -> Pair:
    return frozen(pair[0]), frozen(pair[1])


def spread(function: Spread, counts: Int64s, sums: Pair, squares: Pair) -> pa.Array:
    """Return variances or deviations from the sums of values and of squares."""
    found = np.maximum(deviations(counts, sums, sums, squares), 0.0)
    of_population = function in ("stddev_pop", "var_pop")
    found = found / np.maximum(counts - (0 if of_population else 1), 1)
    if function in ("stddev", "stddev_pop"):
        found = np.sqrt(found)
    return numbers_column(found, counts > (0 if of_population else 1))
