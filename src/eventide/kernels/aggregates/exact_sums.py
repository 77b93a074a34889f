"""Sums of doubles without any rounding, so that a value that is subtracted leaves no trace.

A sum is an integer number of 2^-1088 in digits of 32 bits, as many as its values need. Adding or
subtracting a double touches three digits and carries nothing: a digit has 64 bits to grow in.
Reading carries, and rounds once: the sum depends only on the values in it, neither on their order
nor on earlier values.
"""

from __future__ import annotations

import math

import numpy as np

from eventide.kernels.compiled import Int64s, call, inline
from eventide.kernels.slabs import BASE, ROOM, Slabs, widen

LOW_BITS = np.int64(0xFFFFFFFF)
HALF_DIGIT = np.int64(2**31)
MANTISSA = np.int64(2**52)
LOWEST = 1088
"""The lowest digit counts multiples of 2^-1088: less than the smallest double, and on the grid."""


@inline
def digit_of(value: float) -> np.int64:
    """Return the number of the lowest digit that a finite double touches, on the common grid."""
    exponent = (np.float64(value).view(np.int64) >> 52) & np.int64(0x7FF)
    return (max(exponent, np.int64(1)) + 13) >> 5


@call
def cover(slabs: Slabs, owner: int, digit: int) -> bool:
    """Give an owner the digits [digit, digit + 3]; return whether there was room.

    Doubles end in the low 20 bits of the third: sums of 2^43 of them end in the fourth.
    """
    base, room = slabs.notes[owner, BASE], slabs.notes[owner, ROOM]
    if room == 0:
        base = np.int64(digit - 2)
        high = np.int64(digit + 4)
    else:
        high = max(base + room, np.int64(digit + 4))
    low = min(base, np.int64(digit))
    done = widen(slabs, owner, int(high - low), base - low)
    if done:
        slabs.notes[owner, BASE] = low
    return done


@call
def add_double(words: Int64s, first: int, value: float, sign: int) -> None:
    """Add a finite double to a sum, or subtract it; digit 0 of the grid would stand at `first`."""
    bits = np.float64(value).view(np.int64)
    exponent = (bits >> 52) & np.int64(0x7FF)
    mantissa = bits & (MANTISSA - 1)
    if exponent == 0:
        exponent = np.int64(1)
    else:
        mantissa |= MANTISSA
    shift = (exponent + 13) & 31
    place = first + ((exponent + 13) >> 5)
    way = np.int64(sign) if bits >= 0 else np.int64(-sign)
    rest = mantissa >> (32 - shift)
    words[place] += way * ((mantissa << shift) & LOW_BITS)
    words[place + 1] += way * (rest & LOW_BITS)
    words[place + 2] += way * (rest >> 32)


@call
def read_sum(words: Int64s, start: int, room: int, base: int) -> float:
    """Return the sum, rounded once.

    Carrying leaves digits in [-2^31, 2^31): the sign of a number is that of its first digit.
    """
    carry = np.int64(0)
    top = np.int64(-1)
    for i in range(room):
        digit = words[start + i] + carry
        carry = (digit + HALF_DIGIT) >> 32
        digit -= carry << 32
        words[start + i] = digit
        if digit != 0:
            top = np.int64(i)
    if top < 0:
        return 0.0
    first = np.float64(words[start + top]) * 2.0**64
    second = np.float64(words[start + top - 1]) * 2.0**32 if top > 0 else 0.0
    high = first + second
    low = second - (high - first)
    if top > 1:
        low += np.float64(words[start + top - 2])
    # To the rounded sum only the sign of the digits below matters: it decides in the middle.
    sign = 0.0
    for i in range(top - 3, -1, -1):
        if words[start + i] != 0:
            sign = 0.25 if words[start + i] > 0 else -0.25
            break
    total = high + (low + sign)
    return math.ldexp(total, int(32 * (base + top - 2) - LOWEST))


@call
def read_rest(words: Int64s, start: int, room: int, base: int, total: float) -> float:
    """Return what is left of a sum without `total`, the finite sum rounded once; rounded once."""
    first = int(start - base)
    _add_digits(words, first, total, -1)
    rest = read_sum(words, start, room, base)
    _add_digits(words, first, total, 1)
    return rest


@inline
def _add_digits(words: Int64s, first: int, value: float, sign: int) -> None:
    """Add a double as `add_double` does, except digits that are zero: they may be missing."""
    bits = np.float64(value).view(np.int64)
    exponent = (bits >> 52) & np.int64(0x7FF)
    mantissa = bits & (MANTISSA - 1)
    if exponent == 0:
        exponent = np.int64(1)
    else:
        mantissa |= MANTISSA
    shift = (exponent + 13) & 31
    place = first + ((exponent + 13) >> 5)
    way = np.int64(sign) if bits >= 0 else np.int64(-sign)
    low, rest = (mantissa << shift) & LOW_BITS, mantissa >> (32 - shift)
    if low != 0:
        words[place] += way * low
    if rest & LOW_BITS != 0:
        words[place + 1] += way * (rest & LOW_BITS)
    if rest >> 32 != 0:
        words[place + 2] += way * (rest >> 32)
