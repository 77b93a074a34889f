"""Variances, covariances and the like, from sums that are exact because they are fractions.

A sum is rounded to a double, and what is left of it to another (docs/aggregates.md). Only the last
step, from the rounded sums to the answer, is that of the accumulators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

import numpy as np
import pyarrow as pa

from eventide.accumulators.moments import Covariance, Deviation, Relation, Spread
from eventide.kernels.aggregates.sums import products
from eventide.kernels.compiled import frozen

Numbers = Sequence[float | None]


def spread(function: str, values: Numbers) -> float | None:
    """A variance or a deviation."""
    present = [value for value in values if value is not None]
    known: Spread = next(each for each in get_args(Spread) if each == function)
    columns = [*rounded(present, None), count(present), *rounded(present, present)]
    return answer(Deviation(function=known).finish(columns))


def relation(function: str, values: Numbers, others: Numbers) -> float | None:
    """A covariance, a correlation or a slope."""
    both = [pair for pair in zip(values, others, strict=True) if None not in pair]
    first = [float(one or 0.0) for one, _ in both]
    second = [float(other or 0.0) for _, other in both]
    known: Relation = next(each for each in get_args(Relation) if each == function)
    columns = [*rounded(first, None), count(first), *rounded(second, None)]
    for one, other in ((first, second), (first, first), (second, second)):
        columns += rounded(one, other)
    return answer(Covariance(function=known).finish(columns))


def answer(found: pa.Array) -> float | None:
    (value,) = found.to_pylist()
    return None if value is None else float(value)


def count(values: Sequence[float]) -> pa.Array:
    return pa.array([len(values)], pa.int64())


def rounded(values: Sequence[float], others: Sequence[float] | None) -> list[pa.Array]:
    """Return the sum of values, or of products, as a double and what is left of it."""
    parts = [*values]
    if others is not None:
        high, low = np.empty(len(values)), np.empty(len(values))
        one, other = (frozen(np.array(each, np.float64)) for each in (values, others))
        products(one, other, high, low)
        parts = [*high.tolist(), *low[np.isfinite(high)].tolist()]
    endless = [part for part in parts if not math.isfinite(part)]
    total = sum(map(Fraction, parts), Fraction(0)) if not endless else Fraction(0)
    try:
        first = sum(endless) if endless else float(total)
    except OverflowError:
        first = math.inf if total > 0 else -math.inf
    left = float(total - Fraction(first)) if math.isfinite(first) else 0.0
    return [pa.array([first], pa.float64()), pa.array([left], pa.float64())]
