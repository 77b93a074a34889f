"""Sums of squares and products, as four doubles that add up to exactly the sum.

A product of two doubles has up to 106 bits, so a pair holds hardly any sum of them (sums.py). Four
doubles have about 212 bits. If they cannot hold a sum, the kernel says so, and the sum is computed
again in digits (expansions.py).
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.sums import exact_pair
from eventide.kernels.compiled import Bools, Floats, Int64s, inline, kernel

WIDTH = 4
SURELY_FINITE = 2.0**1000
"""Four doubles that begin with less do not add up to more than the largest double."""
PASSES = 8
"""More than it takes until four doubles do not overlap."""

Parts = tuple[Floats, Floats, Floats, Floats]
"""Up to four doubles of each row, which add up to its value; an empty array is zero."""


Four = tuple[float, float, float, float]


@inline
def add_first(sums: Four, value: float) -> tuple[Four, bool]:
    """Return four doubles and one together, and whether something may be lost."""
    one, rest = exact_pair(sums[0], value)
    two, rest = exact_pair(sums[1], rest)
    three, rest = exact_pair(sums[2], rest)
    four, gone = exact_pair(sums[3], rest)
    # What is not finite gives a NaN, which is not zero.
    return (one, two, three, four), gone != 0.0


@inline
def add_pair(sums: Four, pair: tuple[float, float]) -> tuple[Four, bool]:
    """Return four doubles and a pair together, and whether something may be lost."""
    (one, two, three, four), lost = add_first(sums, pair[0])
    two, rest = exact_pair(two, pair[1])
    three, rest = exact_pair(three, rest)
    four, gone = exact_pair(four, rest)
    return (one, two, three, four), lost or gone != 0.0


@inline
def add_row(sums: Four, parts: Parts, row: int) -> tuple[Four, bool]:
    """Return a sum and the doubles of a row together, and whether something may be lost."""
    low = parts[1][row] if len(parts[1]) > 0 else 0.0
    (one, two, three, four), lost = add_pair(sums, (parts[0][row], low))
    if len(parts[2]) > 0:
        three, rest = exact_pair(three, parts[2][row])
        four, gone = exact_pair(four, rest)
        lost |= gone != 0.0
        four, gone = exact_pair(four, parts[3][row])
        lost |= gone != 0.0
    return (one, two, three, four), lost


@kernel
def sum_wide_by_group(parts: Parts, groups: Int64s, out: Floats, doubt: Bools) -> None:
    """Add the doubles of each row to the four of its group.

    `doubt[g]` becomes true if the four of group g may have lost something.
    """
    for i in range(len(groups)):
        group = groups[i]
        before = (out[group, 0], out[group, 1], out[group, 2], out[group, 3])
        sums, lost = add_row(before, parts, i)
        out[group, 0], out[group, 1], out[group, 2], out[group, 3] = sums
        if lost:
            doubt[group] = True


@kernel
def sum_wide_by_frame(
    parts: Parts, left: Int64s, right: Int64s, suffix: Parts, out: Floats
) -> bool:
    """Write the sum of rows [left, right) for each frame; neither bound ever decreases.

    Nothing is ever subtracted: see `sum_floats_by_frame`. Return whether something may be lost.
    """
    middle = 0
    end = 0
    back = (0.0, 0.0, 0.0, 0.0)
    doubt = False
    for frame in range(len(left)):
        start = left[frame]
        if start >= middle:
            back = (0.0, 0.0, 0.0, 0.0)
            for i in range(right[frame] - 1, start - 1, -1):
                back, lost = add_row(back, parts, i)
                doubt |= lost
                suffix[0][i], suffix[1][i], suffix[2][i], suffix[3][i] = back
            middle = max(right[frame], start)
            end = middle
            back = (0.0, 0.0, 0.0, 0.0)
        while end < right[frame]:
            back, lost = add_row(back, parts, end)
            doubt |= lost
            end += 1
        sums = back
        if start < middle:
            sums, lost = add_row(back, suffix, start)
            doubt |= lost
        out[frame, 0], out[frame, 1], out[frame, 2], out[frame, 3] = sums
    return doubt


@inline
def apart(
    first: float, second: float, third: float, fourth: float
) -> tuple[float, float, float, float]:
    """Return four doubles with the same sum, each at most half a step of the one before."""
    for _ in range(PASSES):
        third, fourth = exact_pair(third, fourth)
        second, third = exact_pair(second, third)
        first, second = exact_pair(first, second)
        if first + second == first and second + third == second and third + fourth == third:
            break
    return first, second, third, fourth


@inline
def is_halfway(first: float, second: float, third: float) -> bool:
    """Whether `second` is just half a step, and `third` goes on in its direction."""
    if second == 0.0 or third == 0.0 or (second > 0.0) != (third > 0.0):
        return False
    return first + 2.0 * second - first == 2.0 * second


@inline
def round_four(first: float, second: float, third: float, fourth: float) -> tuple[float, float]:
    """Return the sum of four doubles, correctly rounded, and the rest of it, correctly rounded."""
    if not np.isfinite(first):
        return first, 0.0
    first, second, third, fourth = apart(first, second, third, fourth)
    if is_halfway(first, second, third):
        first += 2.0 * second
        second, third, fourth, _ = apart(-second, third, fourth, 0.0)
    if is_halfway(second, third, fourth):
        second += 2.0 * third
    return first, second


@kernel
def round_wide(parts: Parts, total: Floats, left: Floats) -> None:
    """Write each sum, correctly rounded, and what rounding left out, correctly rounded.

    Of a sum that is not finite nothing is left out. All parts are given.
    """
    for i in range(len(total)):
        total[i], left[i] = round_four(parts[0][i], parts[1][i], parts[2][i], parts[3][i])
