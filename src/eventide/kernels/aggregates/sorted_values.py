"""Sorted values in one slab: binary search, and moves of the values behind.

Counted values are words with a key and, in the low bits, its count.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, call, inline

COUNT_BITS = 40
"""A counted value is key << 40 | count."""


@inline
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


@inline
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


@inline
def open_place(words: Int64s, place: int, end: int, value: int) -> None:
    """Insert a value at a place; there is room."""
    for i in range(end, place, -1):
        words[i] = words[i - 1]
    words[place] = value


@inline
def close_place(words: Int64s, place: int, end: int) -> None:
    """Remove the value at a place."""
    for i in range(place, end - 1):
        words[i] = words[i + 1]


@call
def count_value(words: Int64s, start: int, length: int, key: int, more: int) -> int:
    """Count a key up or down, and remove it at zero. Return the change in the number of keys."""
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
