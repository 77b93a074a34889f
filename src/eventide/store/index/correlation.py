"""Temporal correlation: how little an attribute changes from one event to the next.

    tc = 1 - mean |a_k - a_(k-1)| / (max - min)

Near 1, the values of a leaf lie close together, and the minima and maxima of the primary index rule
out most leaves. Near 0, every leaf has nearly all values, and only a secondary index helps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats, validity
from eventide.kernels.store.correlation import sum_steps


@dataclass(frozen=True, slots=True)
class CorrelationPart:
    """What is needed of a run of values to join it to the next; empty by default.

    >>> correlation_of(pa.array([1, 2, None, 5])).value
    0.5
    """

    sum_of_steps: float = 0.0
    steps: int = 0
    low: float = math.inf
    high: float = -math.inf
    first: float = 0.0
    last: float = 0.0

    def merge(self, later: CorrelationPart) -> CorrelationPart:
        """Return the part of both runs, `later` right behind this one."""
        if self.is_empty or later.is_empty:
            return self if later.is_empty else later
        return CorrelationPart(
            self.sum_of_steps + abs(later.first - self.last) + later.sum_of_steps,
            self.steps + 1 + later.steps,
            min(self.low, later.low),
            max(self.high, later.high),
            self.first,
            later.last,
        )

    @property
    def is_empty(self) -> bool:
        """Whether no value was seen."""
        return self.low > self.high

    @property
    def value(self) -> float:
        """The temporal correlation, from 0 to 1; 1 without two different values."""
        if self.steps == 0 or self.low == self.high:
            return 1.0
        # The distance of two doubles can be more than a double holds: then halves are compared.
        # Steps whose sum overflows are as far apart as values can be.
        scale = 0.5 if math.isinf(self.high - self.low) else 1.0
        ratio = self.sum_of_steps / self.steps * scale / (self.high * scale - self.low * scale)
        return max(0.0, 1.0 - ratio)


@dataclass(frozen=True, slots=True)
class IndexChoice:
    """Attributes by what a secondary index would do for them; each is in one of the three sets."""

    useful: tuple[str, ...]
    wasteful: tuple[str, ...]
    unknown: tuple[str, ...]


def correlation_of(column: pa.Array) -> CorrelationPart | None:
    """Return the part of a column in time order; nulls, NaN and infinities are left out.

    None for strings and bytes, which have no distance.
    """
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return None
    found = np.empty(5)
    count = sum_steps(floats(as_number(column)), validity(column), found)
    if count == 0:
        return CorrelationPart()
    total, low, high, first, last = found.tolist()
    return CorrelationPart(total, count - 1, low, high, first, last)


def as_number(column: pa.Array) -> pa.Array:
    """Return times and truth values as integers, other columns as they are."""
    if pa.types.is_temporal(column.type):
        return column.view(pa.int64())
    return column.cast(pa.int64()) if pa.types.is_boolean(column.type) else column


def choose_indexes(correlations: Mapping[str, float | None], threshold: float) -> IndexChoice:
    """Sort attributes by whether a secondary index pays: it does where tc is below `threshold`.

    >>> choose_indexes({"car": None, "speed": 0.99, "lane": 0.4}, 0.9)
    IndexChoice(useful=('lane',), wasteful=('speed',), unknown=('car',))
    """
    known = {name: tc for name, tc in correlations.items() if tc is not None}
    return IndexChoice(
        useful=tuple(name for name, tc in known.items() if tc < threshold),
        wasteful=tuple(name for name, tc in known.items() if tc >= threshold),
        unknown=tuple(name for name in correlations if name not in known),
    )
