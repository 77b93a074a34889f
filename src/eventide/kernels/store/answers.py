"""Answers from the summary of an attribute over a period: what the accumulators would finish to.

The summary is a row of words, see descent.py. Sums of floats have to be proven: if one may be
rounded in another way than the sum of the events, there is no answer here.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.proofs import bound_of_absolutes, is_exact, is_unsure
from eventide.kernels.aggregates.sums import co_deviation, rounded_pair
from eventide.kernels.compiled import Bools, Floats, Int64s, inline, kernel
from eventide.kernels.store.descent import (
    COUNT,
    FLOATS,
    KEYS,
    LARGEST,
    LEAST,
    SMALLEST,
    SQUARES,
    SUM,
    WHOLE,
)

FUNCTIONS = ("count", "min", "max", "sum", "avg", "var_pop", "var_samp", "stddev")
"""What can be answered, by the number that a kernel takes; keys have only the first three."""
F_COUNT, F_MIN, F_MAX, F_SUM, F_AVG, F_VAR_POP, _, F_STDDEV = range(len(FUNCTIONS))


@kernel
def answer(
    kind: int, total: Int64s, wanted: Int64s, additions: float, words: Int64s, valid: Bools
) -> bool:
    """Write functions of an attribute as words, doubles where the function gives one.

    `additions` times the sum of absolute values bounds what a sum of floats may have lost. Returns
    false if a sum is not proven, or is of integers and does not fit a word.
    """
    sums, numbers = total.view(np.float64), words.view(np.float64)
    count = total[COUNT]
    for place in range(len(wanted)):
        function = wanted[place]
        valid[place] = count > 0
        if function == F_COUNT:
            words[place], valid[place] = count, True
        elif function == F_MIN:
            words[place] = total[SMALLEST]
        elif function == F_MAX:
            words[place] = total[LARGEST]
        elif function >= F_VAR_POP:
            few = 0 if function == F_VAR_POP else 1
            spread = max_of_zero(deviation(count, sums)) / max(count - few, 1)
            numbers[place] = np.sqrt(spread) if function == F_STDDEV else spread
            valid[place] = count > few
        elif kind == FLOATS:
            if not is_proven(count, sums, additions):
                return False
            mean = rounded_pair(sums[SUM], sums[SUM + 1])[0]
            numbers[place] = mean / max(count, 1) if function == F_AVG else mean
        elif function == F_AVG:
            numbers[place] = rounded_whole(total[WHOLE], total[WHOLE + 1]) / max(count, 1)
        else:
            if total[WHOLE] != total[WHOLE + 1] >> 63:
                return False
            words[place] = total[WHOLE + 1]
    return bool(kind != KEYS or len(wanted) == 0 or np.max(wanted) <= F_MAX)


@inline
def is_proven(count: int, sums: Floats, additions: float) -> bool:
    """Whether a sum of floats is that of the events, rounded once."""
    smallest, largest, high = sums[SMALLEST], sums[LARGEST], sums[SUM]
    if is_exact(count, smallest, largest, sums[LEAST], high):
        return True
    error = additions * bound_of_absolutes(count, smallest, largest, sums[SQUARES])
    return bool(np.isfinite(high) and not is_unsure(high, sums[SUM + 1], error))


@inline
def deviation(count: int, sums: Floats) -> float:
    """Return the sum of the squared deviations from the mean."""
    total = rounded_pair(sums[SUM], sums[SUM + 1])
    squares = rounded_pair(sums[SQUARES], sums[SQUARES + 1])
    return co_deviation(count, total, total, squares)


@inline
def max_of_zero(value: float) -> float:
    """Return zero for what is less; a NaN stays."""
    return 0.0 if value <= 0.0 else value


@inline
def rounded_whole(high: int, low: int) -> float:
    """Return a 128-bit integer as a double."""
    if high == low >> 63:
        return float(low)
    return float(high) * 2.0**64 + float(np.uint64(low))
