"""The minimum of values that expire: keep only those that can become the minimum.

Each value says when it comes how long it lives. It can become the minimum only if no value at least
as small lives at least as long. The remaining values are sorted by expiry and by size at once, and
the first is the minimum:

    7 ┤          ×               5 comes and lives longest: 6 and 7 will never be the minimum
    6 ┤      ×                   any more, and go; 3 stays until it expires
    5 ┤              ●
    3 ┤  ●
      └──┴───┴───┴───┴── expiry

Entries are pairs of words, expiry and value, from place `BASE` of the owner's slab on; `LENGTH`
counts them. For the maximum, values are inverted: `~value`.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, call, inline, kernel
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START


@inline
def place_by_end(words: Int64s, start: int, first: int, last: int, end: int) -> int:
    """Return the first place of [first, last) whose entry ends no earlier; usually none is."""
    if first == last or words[start + 2 * (last - 1)] < end:
        return last
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if words[start + 2 * middle] < end:
            low = middle + 1
        else:
            high = middle
    return low


@call
def move_entries(words: Int64s, start: int, first: int, last: int, to: int | np.int64) -> None:
    """Move the entries [first, last) to begin at a place."""
    if to < first:
        for i in range(2 * (last - first)):
            words[start + 2 * to + i] = words[start + 2 * first + i]
    else:
        for i in range(2 * (last - first) - 1, -1, -1):
            words[start + 2 * to + i] = words[start + 2 * first + i]


@kernel
def put_life(words: Int64s, notes: Int64s, owner: int, value: int, end: int) -> bool:
    """Add a value that lives until `end`; False, and nothing done, if there is no room."""
    start, first = notes[owner, START], notes[owner, BASE]
    last = first + notes[owner, LENGTH]
    behind = place_by_end(words, start, first, last, end)
    if behind < last and words[start + 2 * behind + 1] <= value:
        return True
    place = behind
    while place > first and words[start + 2 * place - 1] >= value:
        place -= 1
    if behind < last and words[start + 2 * behind] == end:
        behind += 1
    if place == behind and 2 * last == notes[owner, ROOM]:
        if 2 * first < last or first == 0:
            return False
        # At least as many have gone as are moved.
        move_entries(words, start, first, last, np.int64(0))
        notes[owner, BASE] = 0
        place, behind, last = place - first, behind - first, last - first
    if behind < last and behind != place + 1:
        move_entries(words, start, behind, last, place + 1)
    words[start + 2 * place] = end
    words[start + 2 * place + 1] = value
    notes[owner, LENGTH] += place + 1 - behind
    return True


@kernel
def drop_ended(words: Int64s, notes: Int64s, owner: int, now: int) -> None:
    """Remove the values that have expired."""
    start, first = notes[owner, START], notes[owner, BASE]
    last = first + notes[owner, LENGTH]
    while first < last and words[start + 2 * first] <= now:
        first += 1
    notes[owner, LENGTH] = last - first
    notes[owner, BASE] = first if first < last else 0
