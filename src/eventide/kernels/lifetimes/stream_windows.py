"""Windows whose tuples go because of other tuples: the last of each key, and sessions.

A window is a log of tuples in order of arrival; here a tuple is its number there. The tuples of
a key that are in the window are a chain, from the oldest to the newest:

    number   0  1  2  3  4  5         key a: oldest 1, newest 5, count 3
    key      a  a  b  a  b  a         LINK:  1 -> 3 -> 5
    last 3      a     a     a         tuple 0 left when 5 came: DIES is the time of 5

Tuples that leave are listed in LEAVING; the times at which they do only ascend.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline, lean_kernel
from eventide.kernels.key_table import KeyTable, empty_table, find, put, remove, roomy

ID, TS, DIES, LINK, KEY, LEAVING = range(6)
"""The rows of what is known of tuples. Only LEAVING is not by number: it is a list of numbers."""
TUPLE_FACTS = 6
FIRST, SECOND, OLDEST, NEWEST, COUNT = range(5)
"""The rows of what is known of keys."""
KEY_FACTS = 5
NEVER = np.int64(2**63 - 1)


class WindowKeys(NamedTuple):
    """The handles of keys, the state of each key by its handle, and the free handles.

    `free[: spare[0]]` are free. The table has room for as many keys as there are handles.
    """

    table: KeyTable
    facts: Int64s
    free: Int32s
    spare: Int64s


class Arrivals(NamedTuple):
    """Events with the words of their keys; `numbers` is -1 if one only removes another."""

    first: Int64s
    second: Int64s
    ts: Int64s
    numbers: Int64s


def no_keys(capacity: int = 8) -> WindowKeys:
    """Return room for this many keys, a power of two."""
    return WindowKeys(
        empty_table(2 * capacity),
        np.zeros((KEY_FACTS, capacity), np.int64),
        np.arange(capacity - 1, -1, -1, dtype=np.int32),
        np.full(1, capacity, np.int64),
    )


def more_keys(keys: WindowKeys) -> WindowKeys:
    """Return the keys with twice the room; call it when there is none left."""
    capacity = keys.facts.shape[1]
    larger = no_keys(2 * capacity)
    larger.facts[:, :capacity] = keys.facts
    larger.spare[0] = capacity  # the first half of the stack: the handles that are new
    return larger._replace(table=roomy(keys.table, capacity))


@inline
def come(number: np.int64, handle: np.int64, tuples: Int64s, keys: WindowKeys) -> None:
    """Put a tuple at the end of the chain of its key."""
    if keys.facts[COUNT, handle] == 0:
        keys.facts[OLDEST, handle] = number
    else:
        tuples[LINK, keys.facts[NEWEST, handle]] = number
    keys.facts[NEWEST, handle] = number
    keys.facts[COUNT, handle] += 1
    tuples[KEY, number] = handle


@inline
def handle_of(first: np.int64, second: np.int64, keys: WindowKeys) -> np.int64:
    """Return the handle of a key, a free one if it is new; -1 if there is none left."""
    handle = find(keys.table, first, second)
    if handle < 0 and keys.spare[0] > 0:
        keys.spare[0] -= 1
        handle = np.int64(keys.free[keys.spare[0]])
        put(keys.table, first, second, handle)
        keys.facts[FIRST, handle] = first
        keys.facts[SECOND, handle] = second
    return handle


@inline
def leave_all(
    handle: np.int64, time: np.int64, tuples: Int64s, keys: WindowKeys, leaving: int
) -> int:
    """Let all tuples of a key leave, and remove the key; return how many are leaving."""
    number = keys.facts[OLDEST, handle]
    for _ in range(keys.facts[COUNT, handle]):
        tuples[DIES, number] = time
        tuples[LEAVING, leaving] = number
        leaving += 1
        number = tuples[LINK, number]
    remove(keys.table, keys.facts[FIRST, handle], keys.facts[SECOND, handle])
    keys.facts[:, handle] = 0
    keys.free[keys.spare[0]] = handle
    keys.spare[0] += 1
    return leaving


@lean_kernel
def keep_last(
    arrivals: Arrivals, start: int, count: int, tuples: Int64s, keys: WindowKeys, leaving: int
) -> tuple[int, int]:
    """Keep the last `count` tuples of each key, from the arrival `start` on.

    Return the first arrival that found no room for its key, or -1, and how many are leaving.
    """
    for i in range(start, len(arrivals.ts)):
        number, time = arrivals.numbers[i], arrivals.ts[i]
        if number < 0:
            handle = find(keys.table, arrivals.first[i], arrivals.second[i])
            if handle >= 0:
                leaving = leave_all(handle, time, tuples, keys, leaving)
            continue
        handle = handle_of(arrivals.first[i], arrivals.second[i], keys)
        if handle < 0:
            return i, leaving
        if keys.facts[COUNT, handle] == count:
            oldest = keys.facts[OLDEST, handle]
            tuples[DIES, oldest] = time
            tuples[LEAVING, leaving] = oldest
            leaving += 1
            keys.facts[OLDEST, handle] = tuples[LINK, oldest]
            keys.facts[COUNT, handle] -= 1
        come(number, handle, tuples, keys)
    return -1, leaving


@lean_kernel
def keep_sessions(
    arrivals: Arrivals,
    start: int,
    bounds: tuple[int, int, int],
    tuples: Int64s,
    keys: WindowKeys,
    leaving: int,
    watched: int,
) -> tuple[int, int, int]:
    """Keep the tuples of each key's session, and go on to an instant.

    `bounds` are the gap of a session, that instant, and the number of tuples at the end. Sessions
    end in the order of their last tuples: so it is enough to watch one tuple, in order of arrival.
    When a gap has passed since it came, and no other of its key came, the session ends. Return the
    first arrival that found no room for its key, or -1, how many are leaving, and the watched
    tuple.
    """
    gap, until, total = bounds
    for i in range(start, len(arrivals.ts) + 1):
        before, there = until, total
        if i < len(arrivals.ts):
            before, there = arrivals.ts[i] + 1, arrivals.numbers[i]
        while watched < there:
            came = tuples[TS, watched]
            ends = NEVER if came > NEVER - gap else came + gap
            if ends >= before:
                break
            if tuples[DIES, watched] == NEVER:
                handle = tuples[KEY, watched]
                if keys.facts[NEWEST, handle] == watched:
                    leaving = leave_all(handle, ends, tuples, keys, leaving)
            watched += 1
        if i < len(arrivals.ts):
            handle = handle_of(arrivals.first[i], arrivals.second[i], keys)
            if handle < 0:
                return i, leaving, watched
            come(arrivals.numbers[i], handle, tuples, keys)
    return -1, leaving, watched
