"""Sums that do not depend on the order of adding, by group and by frame.

Floats are summed as an unevaluated pair high + low (Knuth's two-sum), which has about 106 bits: so
dividing the rows into batches or slices differently gives the same double. Integers are summed in
128 bits, as a signed high and an unsigned low half, so that only a final result that does not fit
is an error.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Floats, Int64s, inline, kernel

SPLITTER = 134217729.0  # 2^27 + 1, splits a double into two halves of 26 bits


@inline
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum of two doubles and what rounding lost."""
    total = a + b
    if not np.isfinite(total):
        return total, 0.0
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inline
def two_product(a: float, b: float) -> tuple[float, float]:
    """Return the rounded product of two doubles and what rounding lost."""
    product = a * b
    spread_a = SPLITTER * a
    spread_b = SPLITTER * b
    if not (np.isfinite(product) and np.isfinite(spread_a) and np.isfinite(spread_b)):
        return product, 0.0
    high_a = spread_a - (spread_a - a)
    high_b = spread_b - (spread_b - b)
    low_a = a - high_a
    low_b = b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


@kernel
def add_by_group(counts: Int64s, groups: Int64s, out: Int64s) -> None:
    """out[g] += the counts of group g."""
    for i in range(len(groups)):
        out[groups[i]] += counts[i]


@kernel
def sum_floats_by_group(
    high: Floats, low: Floats, groups: Int64s, out_high: Floats, out_low: Floats
) -> None:
    """Add the pair (high, low) of each row to the pair of its group."""
    for i in range(len(groups)):
        group = groups[i]
        out_high[group], lost = two_sum(out_high[group], high[i])
        out_low[group] += lost + low[i]


@kernel
def sum_integers_by_group(
    high: Int64s, low: Int64s, groups: Int64s, out_high: Int64s, out_low: Int64s
) -> None:
    """Add the 128-bit integer of each row to that of its group."""
    for i in range(len(groups)):
        group = groups[i]
        before = np.uint64(out_low[group])
        after = before + np.uint64(low[i])
        carry = np.int64(1) if after < before else np.int64(0)
        out_high[group] += high[i] + carry
        out_low[group] = np.int64(after)


@kernel
def squares(values: Floats, high: Floats, low: Floats) -> None:
    """Write each value's square as a pair."""
    for i in range(len(values)):
        high[i], low[i] = two_product(values[i], values[i])


@kernel
def sum_floats_by_frame(
    pairs: tuple[Floats, Floats],
    left: Int64s,
    right: Int64s,
    suffix: tuple[Floats, Floats],
    out: tuple[Floats, Floats],
) -> None:
    """Write the sum of rows [left, right) for each frame; neither bound ever decreases.

    Nothing is ever subtracted: a huge value, an infinity or a NaN leaves no trace when it leaves
    the frame. `suffix` holds the sums of [i, middle) and the running sum covers [middle, end); when
    the left bound passes the middle, the suffixes are computed anew. Every row is added at most
    twice.
    """
    high, low = pairs
    suffix_high, suffix_low = suffix
    middle = 0
    end = 0
    back_high, back_low = 0.0, 0.0
    for frame in range(len(left)):
        start = left[frame]
        if start >= middle:
            total, rest = 0.0, 0.0
            for i in range(right[frame] - 1, start - 1, -1):
                total, lost = two_sum(total, high[i])
                rest += lost + low[i]
                suffix_high[i] = total
                suffix_low[i] = rest
            middle = max(right[frame], start)
            end = middle
            back_high, back_low = 0.0, 0.0
        while end < right[frame]:
            back_high, lost = two_sum(back_high, high[end])
            back_low += lost + low[end]
            end += 1
        if start < middle:
            total, lost = two_sum(suffix_high[start], back_high)
            out[0][frame] = total
            out[1][frame] = suffix_low[start] + back_low + lost
        else:
            out[0][frame] = back_high
            out[1][frame] = back_low


@kernel
def running_integers(high: Int64s, low: Int64s, out_high: Int64s, out_low: Int64s) -> None:
    """out[i] = the 128-bit sum of rows [0, i), so that a frame's sum is a difference."""
    total_high, total_low = np.int64(0), np.uint64(0)
    for i in range(len(low)):
        out_high[i] = total_high
        out_low[i] = np.int64(total_low)
        after = total_low + np.uint64(low[i])
        carry = np.int64(1) if after < total_low else np.int64(0)
        total_high += high[i] + carry
        total_low = after
    out_high[len(low)] = total_high
    out_low[len(low)] = np.int64(total_low)


@kernel
def subtract_integers(
    high: Int64s, low: Int64s, left: Int64s, right: Int64s, out_high: Int64s, out_low: Int64s
) -> None:
    """Write running[right] - running[left] for each frame, in 128 bits."""
    for frame in range(len(left)):
        upper = np.uint64(low[right[frame]])
        lower = np.uint64(low[left[frame]])
        borrow = np.int64(1) if upper < lower else np.int64(0)
        out_low[frame] = np.int64(upper - lower)
        out_high[frame] = high[right[frame]] - high[left[frame]] - borrow


@kernel
def sample_variance(
    counts: Int64s, sums: tuple[Floats, Floats], square_sums: tuple[Floats, Floats], out: Floats
) -> None:
    """Write the sample variance of groups of two or more values.

    Sum (x - m)² = Q - 2mS + nm² holds for any m; with the rounded mean as m and pairs throughout,
    the cancelling terms have 106 bits, so large means with small spreads stay exact.
    """
    for group in range(len(counts)):
        count = float(counts[group])
        if counts[group] < 2:
            out[group] = np.nan
            continue
        mean = (sums[0][group] + sums[1][group]) / count
        cross, cross_low = two_product(-2.0 * mean, sums[0][group])
        cross_low += -2.0 * mean * sums[1][group]
        square, square_low = two_product(mean, mean)
        scaled, scaled_low = two_product(count, square)
        scaled_low += count * square_low
        total, lost = two_sum(square_sums[0][group], cross)
        total, lost_too = two_sum(total, scaled)
        total += lost + lost_too + square_sums[1][group] + cross_low + scaled_low
        out[group] = max(total, 0.0) / (count - 1.0) if np.isfinite(total) else np.nan
