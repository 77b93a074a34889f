"""Values as words of 64 bits that compare as the values do, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import decimal_halves, floats, int64s
from eventide.kernels.compiled import Bools, Floats, Int64s
from eventide.operators.fingerprints import fingerprints

LOW_63 = np.int64(2**63 - 1)
RELATIVE_ERROR = 0.01
"""How far a value of a bucket may be from the one that represents the bucket."""
GAMMA = (1.0 + RELATIVE_ERROR) / (1.0 - RELATIVE_ERROR)
MIDDLE = 40_000
"""Buckets of values above zero have keys around this one, those below around its negative."""
ENDLESS, NOT_A_NUMBER = 90_000, 100_000


def integer_words(values: pa.Array) -> Int64s:
    """Return integers, times, booleans and short decimals as words; a null becomes zero."""
    return decimal_halves(values)[1] if pa.types.is_decimal(values.type) else int64s(values)


def double_words(values: pa.Array) -> Int64s:
    """Return numbers as words that compare as they do: NaN last, one zero; a null becomes zero."""
    numbers = floats(values) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits: Int64s = numbers.view(np.int64)
    bits ^= (bits >> 63) & LOW_63
    return bits


def as_doubles(words: Int64s) -> Floats:
    """Return the numbers that `double_words` made words of."""
    return (words ^ ((words >> 63) & LOW_63)).view(np.float64)


def text_words(values: pa.Array) -> Int64s:
    """Return a word for each text, equal for equal ones, in no order."""
    return fingerprints([values], len(values)).first


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


def as_values(words: Int64s, kind: pa.DataType, valid: Bools | None = None) -> pa.Array:
    """Return words as values of a type; null where `valid` says no."""
    mask = None if valid is None else ~valid
    if pa.types.is_floating(kind):
        return pa.array(as_doubles(words), mask=mask)
    if pa.types.is_boolean(kind):
        return pa.array(words != 0, mask=mask)
    if pa.types.is_decimal(kind):
        halves = np.empty(2 * len(words), np.int64)
        halves[0::2], halves[1::2] = words, words >> 63
        bits = None if valid is None else pa.array(valid).buffers()[1]
        return pa.Array.from_buffers(kind, len(words), [bits, pa.py_buffer(halves)])
    return pa.array(words, mask=mask).view(kind)
