"""Panes of a group in order of expiry, in slabs: lists that shrink in front and grow behind.

A list is entries of some words, the first of which is the expiry. Its notes are counted in words:
BASE are free in front, LENGTH are in use behind them.

A staircase has the largest values: an entry stays as long as no other is both larger and later. So
values fall from the first entry to the last, the first is the maximum, and the first of those that
expire after an instant is the maximum of all that do.

    value   9 ┤▇▇▇            expires at 30, 50, 80: 9, 6, 2. A 7 until 60 takes the 6 away,
            6 ┤▇▇▇▇▇▇         a 5 until 40 comes too late to matter.
            2 ┤▇▇▇▇▇▇▇▇▇
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.sums import two_sum
from eventide.kernels.compiled import Int64s, call_lean, inline, lean_kernel
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START

STEP = 2
"""The words of an entry of a staircase: expiry and value."""


@inline
def has_room(words: Int64s, notes: Int64s, owner: int, width: int) -> bool:
    """Whether one more entry has room behind the others; they may be moved to the front for it."""
    start, base, length = notes[owner, START], notes[owner, BASE], notes[owner, LENGTH]
    free = bool(base + length + width <= notes[owner, ROOM])
    # Moving pays if a good part of the room is free in front.
    if not free and base > 0 and 4 * base >= notes[owner, ROOM]:
        for i in range(length):
            words[start + i] = words[start + base + i]
        notes[owner, BASE] = 0
        free = True
    return free


@inline
def place_behind(words: Int64s, first: int, end: int, width: int, exp: int) -> int:
    """Return the place behind the last entry of [first, end) that expires at `exp` or before."""
    place = end
    if end > first and words[end - width] > exp:
        low = 0
        high = (end - first) // width
        while low < high:
            middle = (low + high) >> 1
            if words[first + middle * width] <= exp:
                low = middle + 1
            else:
                high = middle
        place = first + low * width
    return place


@inline
def open_entry(words: Int64s, notes: Int64s, owner: int, place: int, width: int) -> None:
    """Make room for an entry at a place by moving those behind it."""
    end = notes[owner, START] + notes[owner, BASE] + notes[owner, LENGTH]
    for i in range(end - 1, place - 1, -1):
        words[i + width] = words[i]
    notes[owner, LENGTH] += width


@inline
def drop_first(notes: Int64s, owner: int, width: int) -> None:
    """Remove the first entry."""
    notes[owner, BASE] += width
    notes[owner, LENGTH] -= width
    if notes[owner, LENGTH] == 0:
        notes[owner, BASE] = 0


@call_lean
def climb(words: Int64s, notes: Int64s, owner: int, exp: int, value: np.int64) -> None:
    """Put a value into a staircase; there is room."""
    first = notes[owner, START] + notes[owner, BASE]
    end = first + notes[owner, LENGTH]
    place = place_behind(words, first, end, STEP, exp)
    later = place < end and words[place + 1] >= value
    same = place > first and words[place - STEP] == exp and words[place - STEP + 1] >= value
    if not (later or same):
        low = place
        while low > first and words[low - STEP + 1] <= value:
            low -= STEP
        if low == place:
            open_entry(words, notes, owner, place, STEP)
        else:
            # One of those that go is replaced, those behind them move up to it.
            gap = place - low - STEP
            if gap > 0:
                for i in range(place, end):
                    words[i - gap] = words[i]
                notes[owner, LENGTH] -= gap
        words[low] = exp
        words[low + 1] = value


@inline
def grown(high: float, middle: float, low: float, value: float) -> tuple[float, float, float, bool]:
    """Return three doubles whose sum is exactly that of the given ones and a value, if possible."""
    top, rest = two_sum(high, value)
    center, rest = two_sum(middle, rest)
    bottom, rest = two_sum(low, rest)
    whole = bool(rest == 0.0 and np.isfinite(top))
    top, center = two_sum(top, center)
    center, bottom = two_sum(center, bottom)
    return top, center, bottom, whole


@lean_kernel
def close_up(words: Int64s, notes: Int64s, owners: Int64s) -> None:
    """Move the entries of lists to the front of their slabs."""
    for i in range(len(owners)):
        owner = owners[i]
        start, base = notes[owner, START], notes[owner, BASE]
        for k in range(notes[owner, LENGTH]):
            words[start + k] = words[start + base + k]
        notes[owner, BASE] = 0
