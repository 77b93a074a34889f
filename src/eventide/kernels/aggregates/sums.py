"""Sums that do not depend on the order of adding, by group and by frame.

Floats are summed as an unevaluated pair high + low (Knuth's two-sum), which has about 106 bits. If
a pair cannot hold a sum exactly, the kernel says so, and the sum is computed again from the rows
without any rounding (expansions.py). Integers are summed in 128 bits, as a signed high and an
unsigned low half, so that only a final result that does not fit is an error.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Floats, Int64s, inline, kernel, lean_kernel

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
def exact_pair(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum of two doubles and what rounding lost; a NaN if it is not finite."""
    total = a + b
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
    high: Floats, low: Floats, groups: Int64s, out_high: Floats, out_low: Floats, doubt: Bools
) -> None:
    """Add the pair (high, low) of each row to the pair of its group.

    `doubt[g]` becomes true if the pair of group g may have lost something. An empty `low` is zero.
    """
    no_low = len(low) == 0
    for i in range(len(groups)):
        group = groups[i]
        total, lost = exact_pair(out_high[group], high[i])
        rest, gone = exact_pair(out_low[group], lost)
        if not no_low:
            rest, more = exact_pair(rest, low[i])
            gone = gone if gone != 0.0 else more
        out_high[group] = total
        out_low[group] = rest
        # What is not finite gives a NaN here.
        if gone != 0.0:
            doubt[group] = True


@lean_kernel
def sum_values_by_group(
    values: Floats, groups: Int64s, out: tuple[Floats, Floats], counts: Int64s, doubt: Bools
) -> None:
    """Add each value to the pair of its group, and count it there.

    `doubt[g]` becomes true if the pair of group g may have lost something.
    """
    high, low = out
    for i in range(len(groups)):
        group = groups[i]
        total, lost = exact_pair(high[group], values[i])
        rest, gone = exact_pair(low[group], lost)
        high[group] = total
        low[group] = rest
        counts[group] += 1
        # What is not finite gives a NaN here.
        if gone != 0.0:
            doubt[group] = True


@kernel
def sum_pairs_by_group(
    high: Floats, low: Floats, groups: Int64s, out_high: Floats, out_low: Floats
) -> None:
    """Add the pair (high, low) of each row to the pair of its group, with about 106 bits."""
    no_low = len(low) == 0
    for i in range(len(groups)):
        group = groups[i]
        out_high[group], lost = two_sum(out_high[group], high[i])
        out_low[group] += lost if no_low else lost + low[i]


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
def products(values: Floats, others: Floats, high: Floats, low: Floats) -> None:
    """Write the product of two values as a pair, for each row."""
    for i in range(len(values)):
        high[i], low[i] = two_product(values[i], others[i])


@inline
def add_to_pair(
    high: float, low: float, more_high: float, more_low: float
) -> tuple[float, float, bool]:
    """Return the sum of two pairs, and whether it may have lost something."""
    total, lost = exact_pair(high, more_high)
    rest, gone = exact_pair(low, lost)
    rest, more = exact_pair(rest, more_low)
    return total, rest, gone != 0.0 or more != 0.0


@kernel
def sum_floats_by_frame(
    pairs: tuple[Floats, Floats],
    left: Int64s,
    right: Int64s,
    suffix: tuple[Floats, Floats],
    out: tuple[Floats, Floats],
) -> bool:
    """Write the sum of rows [left, right) for each frame; neither bound ever decreases.

    Nothing is ever subtracted. `suffix` holds the sums of [i, middle) and the running sum covers
    [middle, end); when the left bound passes the middle, the suffixes are computed anew. Every row
    is added at most twice. An empty low part of `pairs` is zero. Return whether a pair may have
    lost something.
    """
    high, low = pairs
    no_low = len(low) == 0
    suffix_high, suffix_low = suffix
    middle = 0
    end = 0
    back_high, back_low = 0.0, 0.0
    doubt = False
    for frame in range(len(left)):
        start = left[frame]
        if start >= middle:
            total, rest = 0.0, 0.0
            for i in range(right[frame] - 1, start - 1, -1):
                more = 0.0 if no_low else low[i]
                total, rest, lost = add_to_pair(total, rest, high[i], more)
                doubt = doubt or lost
                suffix_high[i] = total
                suffix_low[i] = rest
            middle = max(right[frame], start)
            end = middle
            back_high, back_low = 0.0, 0.0
        while end < right[frame]:
            more = 0.0 if no_low else low[end]
            back_high, back_low, lost = add_to_pair(back_high, back_low, high[end], more)
            doubt = doubt or lost
            end += 1
        if start < middle:
            total, rest, lost = add_to_pair(
                suffix_high[start], suffix_low[start], back_high, back_low
            )
            doubt = doubt or lost
            out[0][frame] = total
            out[1][frame] = rest
        else:
            out[0][frame] = back_high
            out[1][frame] = back_low
    return doubt


@inline
def rounded_pair(high: float, low: float) -> tuple[float, float]:
    """Return a pair as its rounded sum, and what rounding left out."""
    return two_sum(high, low) if np.isfinite(high) else (high, 0.0)


@kernel
def round_pairs(high: Floats, low: Floats, total: Floats, left: Floats) -> None:
    """Write each pair as its rounded sum, and what rounding left out; an empty `low` is zero.

    Of a sum that is not finite nothing is left out.
    """
    no_low = len(low) == 0
    for i in range(len(high)):
        total[i], left[i] = rounded_pair(high[i], 0.0 if no_low else low[i])


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


@inline
def co_deviation(
    count: int,
    first: tuple[float, float],
    second: tuple[float, float],
    products: tuple[float, float],
) -> float:
    """Return the sum of (x - mean of x)(y - mean of y); x and y may be the same.

    Sum (x - m)(y - k) = P - mY - kX + nmk for any m and k, with the sums X, Y and P of x, y and
    xy. With the rounded means and pairs throughout, the terms that cancel have 106 bits, so large
    means with small deviations lose nothing. It is a NaN where a sum is not finite.
    """
    rows = float(max(count, 1))
    mean = (first[0] + first[1]) / rows
    other = (second[0] + second[1]) / rows
    one, one_low = two_product(-mean, second[0])
    one_low += -mean * second[1]
    two, two_low = two_product(-other, first[0])
    two_low += -other * first[1]
    square, square_low = two_product(mean, other)
    scaled, scaled_low = two_product(rows, square)
    scaled_low += rows * square_low
    total, lost = two_sum(products[0], one)
    total, lost_too = two_sum(total, two)
    total, lost_again = two_sum(total, scaled)
    lost += lost_too + lost_again
    total += lost + products[1] + one_low + two_low + scaled_low
    return total if np.isfinite(total) else np.nan


@kernel
def co_deviations(
    counts: Int64s,
    first: tuple[Floats, Floats],
    second: tuple[Floats, Floats],
    products: tuple[Floats, Floats],
    out: Floats,
) -> None:
    """Write the sum of (x - mean of x)(y - mean of y) of each group."""
    for group in range(len(counts)):
        out[group] = co_deviation(
            counts[group],
            (first[0][group], first[1][group]),
            (second[0][group], second[1][group]),
            (products[0][group], products[1][group]),
        )
