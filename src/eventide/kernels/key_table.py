"""A hash table from a key of two words to a handle: open addressing, always with free places.

Keys are fingerprints of values (operators/fingerprints.py) or ids of tuples, whose second word is
0. A place is found by stepping on from the hash; removing a key closes the gap it leaves, so there
are no marks of removed keys to step over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline, kernel
from eventide.kernels.hashing import GOLDEN, mixed

SMALLEST = 16
COUNT = 0


class KeyTable(NamedTuple):
    """Keys by place, and the handle of each, -1 if a place is empty. `facts` has the count."""

    first: Int64s
    second: Int64s
    handles: Int32s
    facts: Int64s


def empty_table(capacity: int = SMALLEST) -> KeyTable:
    """Return a table without keys; the capacity is a power of two."""
    return KeyTable(
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.full(capacity, -1, np.int32),
        np.zeros(1, np.int64),
    )


def roomy(table: KeyTable, more: int) -> KeyTable:
    """Return a table with room for `more` keys: the same one if it has room."""
    wanted = 2 * (int(table.facts[COUNT]) + more)
    capacity = len(table.handles)
    if wanted <= capacity:
        return table
    while capacity < wanted:
        capacity *= 2
    larger = empty_table(capacity)
    copy_keys(table, larger)
    return larger


@inline
def place_of(first: np.int64, second: np.int64, mask: np.int64) -> np.int64:
    """Return where the search for a key begins."""
    word = np.uint64(first) ^ (np.uint64(second) * GOLDEN)
    return np.int64(mixed(word) & np.uint64(mask))


@inline
def seek(table: KeyTable, first: np.int64, second: np.int64) -> np.int64:
    """Return the place of a key, or the empty place that it would get."""
    mask = np.int64(len(table.handles) - 1)
    place = place_of(first, second, mask)
    while table.handles[place] >= 0:
        if table.first[place] == first and table.second[place] == second:
            break
        place = (place + 1) & mask
    return place


@inline
def find(table: KeyTable, first: np.int64, second: np.int64) -> np.int64:
    """Return the handle of a key, or -1."""
    return np.int64(table.handles[seek(table, first, second)])


@inline
def put(table: KeyTable, first: np.int64, second: np.int64, handle: np.int64) -> None:
    """Set the handle of a key; there has to be room."""
    place = seek(table, first, second)
    if table.handles[place] < 0:
        table.facts[COUNT] += 1
    table.first[place] = first
    table.second[place] = second
    table.handles[place] = handle


@inline
def remove(table: KeyTable, first: np.int64, second: np.int64) -> None:
    """Remove a key, if it is there, and move up those that had to step over it."""
    mask = np.int64(len(table.handles) - 1)
    place = seek(table, first, second)
    if table.handles[place] >= 0:
        table.facts[COUNT] -= 1
        gap = place
        place = (place + 1) & mask
        while table.handles[place] >= 0:
            home = place_of(table.first[place], table.second[place], mask)
            # A key may fill the gap if the gap lies between its home and its place.
            if ((place - home) & mask) >= ((place - gap) & mask):
                table.first[gap] = table.first[place]
                table.second[gap] = table.second[place]
                table.handles[gap] = table.handles[place]
                gap = place
            place = (place + 1) & mask
        table.handles[gap] = -1


@kernel
def put_keys(table: KeyTable, first: Int64s, second: Int64s) -> None:
    """Number keys from 0 on; there has to be room."""
    for i in range(len(first)):
        put(table, first[i], second[i], np.int64(i))


@kernel
def put_handles(table: KeyTable, words: Int64s, handles: Int64s) -> None:
    """Set the handles of keys of one word; there has to be room."""
    for i in range(len(words)):
        put(table, words[i], np.int64(0), handles[i])


@kernel
def copy_keys(table: KeyTable, larger: KeyTable) -> None:
    """Put all keys of a table into another."""
    for place in range(len(table.handles)):
        if table.handles[place] >= 0:
            put(larger, table.first[place], table.second[place], np.int64(table.handles[place]))


@kernel
def number_keys(table: KeyTable, first: Int64s, second: Int64s) -> None:
    """Put keys into a table, with their places as handles; there has to be room."""
    for i in range(len(first)):
        put(table, first[i], second[i], np.int64(i))


@kernel
def look_up(table: KeyTable, first: Int64s, second: Int64s, handles: Int64s) -> None:
    """Write the handle of each key, or -1, where `handles` has none yet."""
    for i in range(len(first)):
        if handles[i] < 0:
            handles[i] = find(table, first[i], second[i])
