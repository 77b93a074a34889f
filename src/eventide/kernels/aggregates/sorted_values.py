"""Values in order in one slab: found by halving, put in and taken out by moving those behind.

Counted values are words of a key and, in the low bits, how often it is there.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, inlined, kernel

COUNT_BITS = 40
"""A counted value is key << 40 | count."""


@inlined
def place_among(words: Int64s, start: int, length: int, value: int) -> int:
    """Return the place of the first of `length` values from `start` on that is not smaller."""
    low = start
    high = start + length
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def place_above(words: Int64s, start: int, length: int, value: int) -> int:
    """Return the place of the first of `length` values from `start` on that is larger."""
    low = start
    high = start + length
    while low < high:
        middle = (low + high) >> 1
        if words[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def open_place(words: Int64s, place: int, end: int, value: int) -> None:
    """Put a value in at a place; there is room."""
    for i in range(end, place, -1):
        words[i] = words[i - 1]
    words[place] = value


@inlined
def close_place(words: Int64s, place: int, end: int) -> None:
    """Take out the value at a place."""
    for i in range(place, end - 1):
        words[i] = words[i + 1]


@kernel
def count_value(words: Int64s, start: int, length: int, key: int, more: int) -> int:
    """Count a key up or down; at zero it goes. Return by how many there are more keys."""
    lowest = np.int64(key) << COUNT_BITS
    place = place_among(words, start, length, int(lowest))
    fresh = place == start + length or words[place] >> COUNT_BITS != key
    if fresh:
        open_place(words, place, start + length, int(lowest))
    words[place] += more
    if words[place] == lowest:
        close_place(words, place, start + length)
        return -1
    return 1 if fresh else 0
