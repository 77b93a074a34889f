"""Numbers in buckets that are 2 % wide: quantiles of them are at most 1 % off."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats
from eventide.kernels.compiled import Floats, Int64s

RELATIVE_ERROR = 0.01
"""How far a value of a bucket may be from the one that represents the bucket."""
GAMMA = (1.0 + RELATIVE_ERROR) / (1.0 - RELATIVE_ERROR)
MIDDLE = 40_000
"""Buckets of values above zero have keys around this one, those below around its negative."""
ENDLESS, NOT_A_NUMBER = 90_000, 100_000


def bucket_keys(values: pa.Array) -> Int64s:
    """Return the bucket of each number, in their order; a bucket ends 2 % above where it begins."""
    numbers = floats(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.ceil(np.log(np.abs(numbers)) / np.log(GAMMA))
    exponent = np.where(np.isfinite(exponent), exponent, 0.0)
    keys = np.where(np.isinf(numbers), ENDLESS, exponent.astype(np.int64) + MIDDLE)
    keys = np.where(numbers == 0.0, 0, np.where(numbers < 0.0, -keys, keys))
    return np.where(np.isnan(numbers), NOT_A_NUMBER, keys)


def bucket_values(keys: Int64s) -> Floats:
    """Return the number that represents each bucket."""
    sizes = np.abs(keys)
    with np.errstate(over="ignore"):
        middle = np.exp((sizes - MIDDLE) * np.log(GAMMA)) * (2.0 / (GAMMA + 1.0))
    middle = np.where(sizes == ENDLESS, np.inf, middle)
    found = np.where(keys == 0, 0.0, np.where(keys < 0, -middle, middle))
    return np.where(keys == NOT_A_NUMBER, np.nan, found)
