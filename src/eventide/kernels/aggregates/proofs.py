"""Which sums of floats are exact as pairs of doubles.

The least of some values is the smallest absolute value that is not zero, infinite if there is none.
Every double is a multiple of the last bit of the least, which is larger than 2^-53 of it, and so
is everything that adding up a pair gives. The second half of a pair is exact as long as it is less
than 2^53 such bits. c values of at most M have sums of at most c M; adding them, in whatever
groups, adds to the second half at most 4 c times, each time at most 2^-53 of a sum. So it is enough
if 8 c c M / least <= 2^53: 8 instead of 4 makes up for the rounding of sums and of the test itself.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Floats, Int64s, inline, kernel

ENOUGH = 2.0**50
PAIR = 2
"""So many values are a pair themselves."""
WITHOUT_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)
ONE = np.uint64(1)
ENDLESS = np.uint64(0x7FF0000000000000) - ONE
SURE_SQUARES = 2.0**-900
"""Smaller sums of squares may have lost what a double is too small for."""


@kernel
def find_least(
    values: Floats,
    valid: Bools,
    starts: Int64s,
    ends: Int64s,
    extremes: Floats,
    out: Floats,
) -> None:
    """Write the least of each run [starts[r], ends[r]) of values, whose extremes are known.

    Values are looked at only if the extremes do not have the same sign. An empty `valid` means that
    none is null.
    """
    words = values.view(np.uint64)
    all_valid = len(valid) == 0
    for run in range(len(out)):
        if extremes[0, run] > 0.0:
            out[run] = extremes[0, run]
            continue
        if extremes[1, run] < 0.0:
            out[run] = -extremes[1, run]
            continue
        # Absolute values are in the order of their bits. One less, and zero is the largest of all:
        # so a loop without a test finds the least. Unsigned places need no test either.
        found = ENDLESS
        first, last = np.uint64(starts[run]), np.uint64(ends[run])
        if all_valid:
            for i in range(first, last):
                found = min(found, (words[i] & WITHOUT_SIGN) - ONE)
        else:
            for i in range(first, last):
                if valid[i]:
                    found = min(found, (words[i] & WITHOUT_SIGN) - ONE)
        out[run] = np.uint64(found + ONE).view(np.float64)


@inline
def is_exact(count: int, smallest: float, largest: float, least: float, high: float) -> bool:
    """Whether the pair of a sum has lost nothing; of an empty sum, extremes are arbitrary."""
    if count == 0:
        return True
    exact = count <= PAIR
    if not exact and least > 0.0:
        # What is not finite gives a NaN, or an infinity.
        exact = float(count) * float(count) * (max(-smallest, largest) / least) <= ENOUGH
    return bool(exact and np.isfinite(high))


@inline
def bound_of_absolutes(count: int, smallest: float, largest: float, squares: float) -> float:
    """Return a bound of the sum of absolute values, a NaN or infinite if none is known."""
    by_extremes = count * max(-smallest, largest)
    by_squares = np.inf
    if squares > SURE_SQUARES:
        by_squares = np.sqrt(float(count)) * np.sqrt(squares) * (1.0 + 2.0**-20)
    # A NaN is no bound.
    return by_squares if not by_extremes <= by_squares else by_extremes


@kernel
def bound_absolutes(
    counts: Int64s, extremes: tuple[Floats, Floats], squares: Floats, out: Floats
) -> None:
    """Write a bound of the sum of absolute values of each row."""
    for i in range(len(counts)):
        out[i] = bound_of_absolutes(counts[i], extremes[0][i], extremes[1][i], squares[i])


@inline
def is_unsure(high: float, low: float, error: float) -> bool:
    """Whether high + low does not round to the same double anywhere within an error."""
    least = high + np.nextafter(low - error, -np.inf)
    most = high + np.nextafter(low + error, np.inf)
    return bool(least != most and error > 0.0)


@kernel
def mark_exact(
    counts: Int64s, extremes: tuple[Floats, Floats], least: Floats, high: Floats, out: Bools
) -> bool:
    """Write which pairs of sums lost nothing, and return whether all are such.

    `extremes` are the smallest and the largest of the values. Where one is null, its count is zero.
    """
    smallest, largest = extremes
    every = True
    for i in range(len(counts)):
        out[i] = is_exact(counts[i], smallest[i], largest[i], least[i], high[i])
        every = every and out[i]
    return every


@kernel
def merge_least(counts: Int64s, least: Floats, bounds: Int64s, out: Floats) -> None:
    """Write the least of each run of entries."""
    for run in range(len(out)):
        found = np.inf
        for i in range(bounds[run], bounds[run + 1]):
            if counts[i] > 0 and least[i] < found:
                found = least[i]
        out[run] = found
