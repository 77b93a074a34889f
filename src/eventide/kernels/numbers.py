"""Numbers in conditions: how they compare, and arithmetic that detects overflows."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import call_lean


@call_lean
def compare_floats(left: float, right: float) -> int:
    """Return -1, 0 or 1; NaN equals itself and is greater than every number."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right:
        return 0
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    if left_nan and right_nan:
        return 0
    return 1 if left_nan else -1


@call_lean
def compare_ints(left: int, right: int) -> int:
    """Return -1, 0 or 1."""
    if left < right:
        return -1
    return 1 if left > right else 0


@call_lean
def product(left: int, right: int) -> tuple[int, bool]:
    """Return a product modulo 2^64, and whether it is an int64."""
    # Unsigned: the optimiser takes it for granted that signed numbers do not wrap around.
    wrapped = int(np.int64(np.uint64(left) * np.uint64(right)))
    near = np.float64(left) * np.float64(right)
    if -9.2e18 < near < 9.2e18:
        return wrapped, True
    # Near the limit, too large a product has wrapped around to the other sign.
    return wrapped, bool(-9.3e18 < near < 9.3e18 and (near < 0.0) == (wrapped < 0))


@call_lean
def integer_remainder(left: int, right: int) -> int:
    """The remainder of a division, with the sign of the dividend; `right` is not zero."""
    if -1 <= right <= 1:
        return 0
    left_over = left % right
    if left_over != 0 and (left < 0) != (right < 0):
        left_over -= right
    return left_over


@call_lean
def divide_rounded(value: int, divisor: int) -> int:
    """Divide by a power of ten, halves away from zero."""
    quotient = value // divisor
    rest = value - quotient * divisor
    if 2 * rest > divisor or (2 * rest == divisor and value >= 0):
        quotient += 1
    return quotient


@call_lean
def wide_as_float(low: int, high: int) -> float:
    """Return a 128-bit integer as a double."""
    if high == low >> 63:
        return np.float64(low)
    return np.float64(high) * 2.0**64 + np.float64(np.uint64(low))


@call_lean
def double_of(word: int) -> float:
    """Return the double that has these bits."""
    return np.int64(word).view(np.float64)


@call_lean
def bits_of(value: float) -> int:
    """Return the bits of a double."""
    return int(np.float64(value).view(np.int64))
