"""Summaries of runs of values, one run at a time, straight from their definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.naive.windows import aggregate, nan_last


def answers(function: str, values: Sequence[Any], bounds: Sequence[int]) -> list[Any]:
    """A function of each run [bounds[i], bounds[i + 1]) of values, nulls included."""
    return [answer(function, list(values[start:end])) for start, end in pairwise(bounds)]


def answer(function: str, values: list[Any]) -> Any:  # noqa: ANN401
    present = [value for value in values if value is not None]
    match function:
        case "var_samp":
            return variance(present, len(present) - 1) if len(present) > 1 else None
        case "var_pop":
            return variance(present, len(present)) if present else None
        case "stddev_pop":
            return math.sqrt(variance(present, len(present))) if present else None
        case "max2":
            return sorted(present, key=nan_last)[-2] if len(present) > 1 else None
        case "min2":
            return sorted(present, key=nan_last)[1] if len(present) > 1 else None
        case "median":
            return median(present) if present else None
    with localcontext(prec=60):
        return aggregate("avg" if function == "average" else function, values)


def variance(values: list[Any], divisor: int) -> float:
    if not all(map(math.isfinite, values)):
        return math.nan
    mean = sum(map(Fraction, values)) / len(values)
    return float(sum((Fraction(value) - mean) ** 2 for value in values) / divisor)


def median(values: list[Any]) -> float:
    ordered = sorted(map(float, values), key=nan_last)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else low / 2 + high / 2
