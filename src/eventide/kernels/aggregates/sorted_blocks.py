"""Any number of sorted values, in blocks, so that adding one moves few others.

The first values of an owner stand in one slab. When there are more than a block holds, its slab
becomes a directory, longer than any block, and each block is a slab of its own:

    word 0    the number of blocks
    LOWS      the first value of each
    STARTS    where its slab begins
    COUNTS    how many values it has
    SUMS      of the counts, as a binary indexed tree: it finds the block of a rank

A full block is split. One that is nearly empty is merged with its neighbour, and when only one is
left it is the slab of the owner again. `LENGTH` of the notes counts the values, `BASE` the
different ones.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.sorted_values import (
    close_place,
    open_place,
    place_above,
    place_among,
)
from eventide.kernels.compiled import Int64s, call, inline, kernel
from eventide.kernels.slabs import (
    BASE,
    BLOCK,
    LENGTH,
    ROOM,
    START,
    Slabs,
    give_back,
    take_slab,
    widen,
)

LOWS, STARTS, COUNTS, SUMS = range(4)
HEADER = 4
"""The columns of a directory begin here; each is a quarter of the rest."""


@kernel
def block_of(words: Int64s, notes: Int64s, owner: int, value: int) -> int:
    """Return the number of the last block that begins with no larger value; 0 if there is none.

    If the value exists it is in this block, and if not, it belongs there.
    """
    lows = notes[owner, START] + HEADER
    blocks = words[notes[owner, START]]
    return int(max(place_above(words, lows, blocks, value) - lows - 1, 0))


@call
def recount(words: Int64s, notes: Int64s, owner: int, number: int, more: np.int64) -> None:
    """Update the number of values of a block, and its first value."""
    lows, width = notes[owner, START] + HEADER, ((notes[owner, ROOM] - HEADER) >> 2)
    words[lows + number] = words[words[lows + STARTS * width + number]]
    words[lows + COUNTS * width + number] += more
    blocks, place = words[notes[owner, START]], number + 1
    while place <= blocks:
        words[lows + SUMS * width + place - 1] += more
        place += place & -place


@inline
def sum_up(words: Int64s, directory: int, width: int) -> None:
    """Recompute the sums from the counts."""
    blocks = words[directory]
    counts = directory + HEADER + COUNTS * width
    sums = counts + width
    for number in range(blocks):
        words[sums + number] = words[counts + number]
    for place in range(1, blocks + 1):
        above = place + (place & -place)
        if above <= blocks:
            words[sums + above - 1] += words[sums + place - 1]


@kernel
def put_in(words: Int64s, notes: Int64s, owner: int, block: int, value: int) -> bool:
    """Add a value; False, and nothing done, if there is no room."""
    start, count, room = notes[owner, START], notes[owner, LENGTH], notes[owner, ROOM]
    many, number = room > block, 0
    if many:
        number = block_of(words, notes, owner, value)
        starts, room = start + HEADER + STARTS * ((room - HEADER) >> 2), block
        start, count = (
            words[starts + number],
            words[starts + ((notes[owner, ROOM] - HEADER) >> 2) + number],
        )
    if count == room:
        return False
    place = place_among(words, start, count, value)
    if place == start + count or words[place] != value:
        notes[owner, BASE] += 1
    open_place(words, place, start + count, value)
    notes[owner, LENGTH] += 1
    if many:
        recount(words, notes, owner, number, np.int64(1))
    return True


@inline
def join_neighbour(
    words: Int64s, notes: Int64s, free: Int64s, owner: int, block: int, number: int
) -> None:
    """Merge a block with a neighbour, if there is room to spare; an empty one always."""
    directory, width = notes[owner, START], ((notes[owner, ROOM] - HEADER) >> 2)
    lows = directory + HEADER
    starts, counts = lows + STARTS * width, lows + COUNTS * width
    left = number - 1
    if left < 0 or (
        number + 1 < words[directory] and words[counts + number + 1] < words[counts + left]
    ):
        left = number
    count, more = words[counts + left], words[counts + left + 1]
    if words[counts + number] == 0 or count + more <= block - (block >> 2):
        start, moved = words[starts + left], words[starts + left + 1]
        for i in range(more):
            words[start + count + i] = words[moved + i]
        give_back(words, free, moved, block)
        words[directory] -= 1
        for column in range(SUMS):
            first = lows + column * width
            for place in range(first + left + 1, first + words[directory]):
                words[place] = words[place + 1]
        words[counts + left] = count + more
        words[lows + left] = words[start]
        sum_up(words, directory, width)
        if words[directory] == 1:
            give_back(words, free, directory, notes[owner, ROOM])
            notes[owner, START] = start
            notes[owner, ROOM] = block


@kernel
def take_out(
    words: Int64s, notes: Int64s, free: Int64s, owner: int, block: int, value: int
) -> None:
    """Remove one of the values equal to this, if there is one."""
    start, count = notes[owner, START], notes[owner, LENGTH]
    many, number, before = notes[owner, ROOM] > block, 0, -1
    if many:
        width = (notes[owner, ROOM] - HEADER) >> 2
        number = block_of(words, notes, owner, value)
        named = start + HEADER + STARTS * width + number
        start, count = words[named], words[named + width]
        if number > 0:
            before = int(words[named - 1] + words[named + width - 1] - 1)
    place = place_among(words, start, count, value)
    # Another operator may take back a value that only a wrong state has let through.
    if place == start + count or words[place] != value:
        return
    close_place(words, place, start + count)
    only = place == start + count - 1 or words[place] != value
    if only and (place > start or before < 0 or words[before] != value):
        notes[owner, BASE] -= 1
    notes[owner, LENGTH] -= 1
    if many:
        recount(words, notes, owner, number, np.int64(-1))
        if count - 1 < block >> 2:
            join_neighbour(words, notes, free, owner, block, number)


@kernel
def make_room(slabs: Slabs, owner: int, value: int) -> bool:
    """Make room for a value that did not fit, in one step; return whether there were words for it.

    The value may still not fit then, so this is called until it does.
    """
    words, notes, _, facts = slabs
    room, block = notes[owner, ROOM], facts[BLOCK]
    if room < block:
        return widen(slabs, owner, room + 1, np.int64(0))
    if room == block or words[notes[owner, START]] == ((room - HEADER) >> 2):
        return widen_directory(slabs, owner)
    return split(slabs, owner, block_of(words, notes, owner, value))


@call
def widen_directory(slabs: Slabs, owner: int) -> bool:
    """Give an owner a longer directory, or one for its only slab; return whether there was room."""
    words, notes, free, facts = slabs
    old_start, old_room = notes[owner, START], notes[owner, ROOM]
    start = take_slab(words, free, facts, 2 * old_room)
    if start < 0:
        return False
    notes[owner, START], notes[owner, ROOM] = start, 2 * old_room
    lows, width, old_width = (
        start + HEADER,
        (((2 * old_room) - HEADER) >> 2),
        ((old_room - HEADER) >> 2),
    )
    if old_room == facts[BLOCK]:
        words[start] = 1
        words[lows] = words[old_start]
        words[lows + STARTS * width] = old_start
        words[lows + COUNTS * width] = notes[owner, LENGTH]
        words[lows + SUMS * width] = notes[owner, LENGTH]
        return True
    words[start] = words[old_start]
    for column in range(SUMS + 1):
        for number in range(words[start]):
            old = words[old_start + HEADER + column * old_width + number]
            words[lows + column * width + number] = old
    give_back(words, free, old_start, old_room)
    return True


@call
def split(slabs: Slabs, owner: int, number: int) -> bool:
    """Move half of a block into a new one behind it; return whether there was room."""
    words, notes, free, facts = slabs
    fresh = take_slab(words, free, facts, facts[BLOCK])
    if fresh < 0:
        return False
    directory, width = notes[owner, START], ((notes[owner, ROOM] - HEADER) >> 2)
    lows = directory + HEADER
    start, count = words[lows + STARTS * width + number], words[lows + COUNTS * width + number]
    half = count >> 1
    for i in range(count - half):
        words[fresh + i] = words[start + half + i]
    words[lows + COUNTS * width + number] = half
    behind = (words[fresh], fresh, count - half)
    for column in range(SUMS):
        first = lows + column * width
        open_place(words, first + number + 1, first + words[directory], behind[column])
    words[directory] += 1
    sum_up(words, directory, width)
    return True


@kernel
def word_at(words: Int64s, notes: Int64s, owner: int, block: int, rank: int | np.int64) -> int:
    """Return the value at a rank."""
    start, room = notes[owner, START], notes[owner, ROOM]
    if room <= block:
        return int(words[start + rank])
    blocks, sums = words[start], start + HEADER + SUMS * ((room - HEADER) >> 2)
    number, step = np.int64(0), np.int64(1)
    while 2 * step <= blocks:
        step *= 2
    while step > 0:
        further = number + step
        if further <= blocks and words[sums + further - 1] <= rank:
            number = further
            rank -= words[sums + further - 1]
        step >>= 1
    return int(words[words[start + HEADER + STARTS * ((room - HEADER) >> 2) + number] + rank])


@kernel
def count_of(words: Int64s, notes: Int64s, owner: int, value: int) -> int:
    """Return how often a value occurs, in one or more blocks of an owner that has some."""
    starts = notes[owner, START] + HEADER + STARTS * ((notes[owner, ROOM] - HEADER) >> 2)
    counts = starts + ((notes[owner, ROOM] - HEADER) >> 2)
    number = block_of(words, notes, owner, value)
    start, count = words[starts + number], words[counts + number]
    place = place_among(words, start, count, value)
    found = place_above(words, start, count, value) - place
    while place == start and number > 0:
        number -= 1
        start, count = words[starts + number], words[counts + number]
        place = place_among(words, start, count, value)
        found += start + count - place
    return int(found)
