"""Values as words of 64 bits that compare as the values do, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import decimal_halves, floats, int64s
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Floats, Int64s
from eventide.operators.fingerprints import fingerprints

LOW_63 = np.int64(2**63 - 1)


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
        bits = None if valid is None else to_arrow(valid).buffers()[1]
        return pa.Array.from_buffers(kind, len(words), [bits, pa.py_buffer(halves)])
    return pa.array(words, mask=mask).view(kind)
