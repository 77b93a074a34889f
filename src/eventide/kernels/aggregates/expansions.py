"""Sums of doubles without rounding, as expansions: doubles that add up to exactly the sum.

This is the slow way for sums that a pair of doubles cannot hold (sums.py). A sum is collected in
digits of 32 bits (exact_sums.py) and written as few doubles, the largest first: the first is the
sum, correctly rounded.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.exact_sums import add_double, read_sum
from eventide.kernels.compiled import Floats, Int64s, inline, kernel

DIGITS = 69
"""Digits for all doubles, and one more for the carry."""
LONGEST = 42
"""An expansion has at most this many doubles: 2,098 bits, and two more beyond the largest."""
LARGEST = 1.7976931348623157e308
NANS, UPPER, LOWER = range(3)
"""How many NaNs, infinities and negative infinities there are."""


@inline
def add_any(digits: Int64s, special: Int64s, value: float, sign: int) -> None:
    """Add a double of any kind to a sum, or take it back."""
    if np.isfinite(value):
        add_double(digits, 0, value, sign)
    elif np.isnan(value):
        special[NANS] += sign
    elif value > 0.0:
        special[UPPER] += sign
    else:
        special[LOWER] += sign


@inline
def write_expansion(digits: Int64s, special: Int64s, spare: Int64s, out: Floats) -> None:
    """Write a sum as an expansion, filled up with zeros; the digits stay as they are."""
    out[:] = 0.0
    if special[NANS] > 0 or (special[UPPER] > 0 and special[LOWER] > 0):
        out[0] = np.nan
        return
    if special[UPPER] > 0 or special[LOWER] > 0:
        out[0] = np.inf if special[UPPER] > 0 else -np.inf
        return
    for i in range(len(spare)):
        spare[i] = digits[i]
    for place in range(len(out)):
        found = read_sum(spare, 0, DIGITS, 0)
        if found == 0.0:
            break
        if not np.isfinite(found):
            # A sum beyond the doubles may come back: it is written as several.
            found = LARGEST if found > 0.0 else -LARGEST
        out[place] = found
        add_double(spare, 0, found, -1)


@kernel
def expand_groups(values: Floats, groups: Int64s, out: Floats) -> None:
    """Write the expansion of each group's sum; the rows of a group lie side by side."""
    digits, spare = np.zeros(DIGITS, np.int64), np.empty(DIGITS, np.int64)
    special = np.zeros(3, np.int64)
    for i in range(len(values)):
        add_any(digits, special, values[i], 1)
        if i + 1 == len(values) or groups[i + 1] != groups[i]:
            write_expansion(digits, special, spare, out[groups[i]])
            digits[:] = 0
            special[:] = 0


@kernel
def expand_frames(
    values: Floats, offsets: Int64s, left: Int64s, right: Int64s, out: Floats
) -> None:
    """Write the expansion of the sum of rows [left, right) of each frame; both bounds ascend.

    Row i is values[offsets[i]:offsets[i + 1]]. What leaves a frame is subtracted, exactly.
    """
    digits, spare = np.zeros(DIGITS, np.int64), np.empty(DIGITS, np.int64)
    special = np.zeros(3, np.int64)
    start = left[0] if len(left) else 0
    end = start
    for frame in range(len(left)):
        if left[frame] >= end:
            digits[:] = 0
            special[:] = 0
            start = left[frame]
            end = start
        while start < left[frame]:
            for i in range(offsets[start], offsets[start + 1]):
                add_any(digits, special, values[i], -1)
            start += 1
        while end < right[frame]:
            for i in range(offsets[end], offsets[end + 1]):
                add_any(digits, special, values[i], 1)
            end += 1
        write_expansion(digits, special, spare, out[frame])
