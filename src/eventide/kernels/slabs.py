"""A pool of slabs: parts of one array, each with its owner and as long as it needs.

The length of a slab is a power of two. An owner that needs more gets a slab twice as long, and the
old one waits, in the list of its length, for its next owner.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, inline, kernel

SHORTEST = 8
CLASSES = 48
BLOCK_WORDS = 512
USED, MISSING, BLOCK = 0, 1, 2
"""The contents of `facts`: how many words have been taken, how many could not be, and how long
blocks of sorted values are (kernels/aggregates/sorted_blocks.py)."""
START, ROOM, LENGTH, BASE = range(4)
"""The notes of an owner: where the slab begins, how long it is, and two of its own."""


class Slabs(NamedTuple):
    """All words, and the notes of each owner.

    `free` has the first waiting slab of each length, whose first word names the next.
    """

    words: Int64s
    notes: Int64s
    free: Int64s
    facts: Int64s


def empty_slabs(block: int = BLOCK_WORDS) -> Slabs:
    """Return a pool without owners, with blocks of this many words: a power of two."""
    notes, facts = np.zeros((0, 4), np.int64), np.array([0, 0, block], np.int64)
    return Slabs(np.zeros(1024, np.int64), notes, np.full(CLASSES, -1), facts)


def with_room(slabs: Slabs) -> Slabs:
    """Return a pool in which the words that were missing can be taken."""
    used = int(slabs.facts[USED])
    larger = np.zeros(2 * (used + int(slabs.facts[MISSING])), np.int64)
    larger[:used] = slabs.words[:used]
    return slabs._replace(words=larger)


@inline
def class_of(room: int) -> int:
    """Return the number of the shortest length that is not below `room`."""
    size_class = 0
    while (SHORTEST << size_class) < room:
        size_class += 1
    return size_class


@kernel
def take_slab(words: Int64s, free: Int64s, facts: Int64s, room: int) -> int:
    """Return where a free slab of this length begins; -1 if there is no room for it."""
    size_class = class_of(room)
    start = free[size_class]
    if start >= 0:
        free[size_class] = words[start]
    elif facts[USED] + room <= len(words):
        start = facts[USED]
        facts[USED] += room
    else:
        facts[MISSING] = room
    return int(start)


@kernel
def give_back(words: Int64s, free: Int64s, start: int, room: int) -> None:
    """Put a slab into the list of free ones of its length."""
    size_class = class_of(room)
    words[start] = free[size_class]
    free[size_class] = start


@kernel
def release(words: Int64s, notes: Int64s, free: Int64s, owner: int) -> None:
    """Take an owner's slab away, and clear its notes."""
    if notes[owner, ROOM] > 0:
        give_back(words, free, notes[owner, START], notes[owner, ROOM])
    for note in range(4):
        notes[owner, note] = 0


@kernel
def widen(slabs: Slabs, owner: int, wanted: int, shift: np.int64) -> bool:
    """Give an owner at least `wanted` words, new ones zero; return whether there were some.

    Its old words stand `shift` words further on. Its own notes stay.
    """
    words, notes, free, facts = slabs
    room = SHORTEST << class_of(wanted)
    start = take_slab(words, free, facts, room)
    if start < 0:
        return False
    words[start : start + room] = 0
    old = notes[owner, START]
    for i in range(notes[owner, ROOM]):
        words[start + shift + i] = words[old + i]
    length, base = notes[owner, LENGTH], notes[owner, BASE]
    release(words, notes, free, owner)
    notes[owner, START] = start
    notes[owner, ROOM] = room
    notes[owner, LENGTH] = length
    notes[owner, BASE] = base
    return True
