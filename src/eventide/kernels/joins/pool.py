"""The tuples that a join over windows keeps, linked by side and bucket, the newest first.

    heads[side, bucket] ─▶ tuple ─▶ tuple ─▶ …

Tuples that expire in the order in which they come stand in a RING of their side; their handle is
the number of tuples that came before them. Expiring them moves the begin of the living ones: links
to earlier tuples are not followed. All others stand in a pool that the sides share. They expire by
the calendar, by searching all of them (SWEPT), or not by themselves (KEPT).

    tuples   │ pool ···· │ ring of side 0   ··▇▇▇▇▇·· │ ring of side 1   ▇▇·····▇ │
                                              ↑    ↑ END
                                              OLDEST

Small data that every change needs stands in few arrays: passing many of them from function to
function takes longer than the work of most of these functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s, Int64s, call_lean, inline, lean_kernel
from eventide.kernels.key_table import KeyTable, place_of, put, remove
from eventide.kernels.lifetimes.calendar_queue import NEVER, Calendar, next_due, schedule

Int8s = npt.NDArray[np.int8]

KEY1, KEY2, AT, EXP, ID, ROW, SIDE, NEXT = range(8)
WORDS = 8
"""The words of a tuple, which is as long as a cache line: its key, life, id, the number of its
values and its side; then the one before it in its bucket. Free tuples of the pool are a chain by
NEXT."""
SIGN = 7
CHANGE_WORDS = 8
"""A change has the same words up to SIDE, and its sign."""
DEAD = -1
"""The side of a tuple that was removed before it expired and is freed by the calendar."""

KEPT, RING, CALENDAR, SWEPT = 0, 1, 2, 3

POLICY, BY_ID, BASE, MASK, OLDEST, END, COUNT, LEFT, PROBES, LOOKED, MATCHED = range(11)
"""The state of a side: how its tuples expire, whether they are found by id; where its ring is, its
length less one, the first living tuple and how many ever came (a side in the pool has a mask that
leaves handles as they are); how many there are, and how many were left after the last search; how
often it was probed, how many tuples were compared for that, and how many matched."""
FREE, FREE_COUNT, SWEPT_AT, SWEEP_US, LAPSES, RINGS = range(6)
"""The last row of the sides is about the join: the first free tuple of the pool, how many there
are, when tuples were searched and how much later they are again (if negative, once they are twice
as many), whether expired results are not taken back (always but with negative tuples), and whether
all sides have rings."""
SIDE_WORDS = 11
SLACK = 1024
"""This many tuples more than twice those that were left are not worth a search."""


class JoinTables(NamedTuple):
    """The state of a join. `orders` has for each side the order in which the others are probed.

    `newer` has for each tuple of the pool the one behind it in its bucket.
    """

    tuples: Int64s
    newer: Int32s
    sides: Int64s
    heads: Int64s
    orders: Int64s
    ids: KeyTable
    calendar: Calendar


@inline
def bucket_of(key1: np.int64, key2: np.int64, heads: Int64s) -> np.int64:
    """Return the bucket of a key."""
    return place_of(key1, key2, np.int64(heads.shape[1] - 1))


@inline
def put_in_ring(tuples: Int64s, sides: Int64s, heads: Int64s, changes: Int64s, place: int) -> None:
    """Put the tuple of a change behind the others of its side; there has to be room."""
    side = changes[place, SIDE]
    number = sides[side, END]
    handle = sides[side, BASE] + (number & sides[side, MASK])
    for word in range(SIDE + 1):
        tuples[handle, word] = changes[place, word]
    bucket = bucket_of(changes[place, KEY1], changes[place, KEY2], heads)
    tuples[handle, NEXT] = heads[side, bucket]
    heads[side, bucket] = number
    sides[side, END] = number + 1
    sides[side, COUNT] += 1


@inline
def expire_rings(tuples: Int64s, sides: Int64s, clock: int) -> None:
    """Move on to the first tuple of each ring that has not expired."""
    for side in range(len(sides) - 1):
        if sides[side, POLICY] == RING:
            base, mask, end = sides[side, BASE], sides[side, MASK], sides[side, END]
            oldest = sides[side, OLDEST]
            while oldest < end and tuples[base + (oldest & mask), EXP] <= clock:
                oldest += 1
            sides[side, OLDEST], sides[side, COUNT] = oldest, end - oldest


@lean_kernel
def link(state: JoinTables, changes: Int64s, place: int) -> int:
    """Put the tuple of a change into the pool and its bucket."""
    tuples, sides, heads = state.tuples, state.sides, state.heads
    about = len(sides) - 1
    handle = sides[about, FREE]
    sides[about, FREE] = tuples[handle, NEXT]
    sides[about, FREE_COUNT] -= 1
    for word in range(SIDE + 1):
        tuples[handle, word] = changes[place, word]
    side = changes[place, SIDE]
    bucket = bucket_of(changes[place, KEY1], changes[place, KEY2], heads)
    first = heads[side, bucket]
    tuples[handle, NEXT] = first
    state.newer[handle] = -1
    if first >= 0:
        state.newer[first] = handle
    heads[side, bucket] = handle
    sides[side, COUNT] += 1
    return int(handle)


@lean_kernel
def unlink(state: JoinTables, handle: int) -> None:
    """Remove a tuple of the pool from its bucket."""
    tuples, heads = state.tuples, state.heads
    side = tuples[handle, SIDE]
    before, behind = tuples[handle, NEXT], state.newer[handle]
    if before >= 0:
        state.newer[before] = behind
    if behind >= 0:
        tuples[behind, NEXT] = before
    else:
        heads[side, bucket_of(tuples[handle, KEY1], tuples[handle, KEY2], heads)] = before
    state.sides[side, COUNT] -= 1
    tuples[handle, SIDE] = DEAD


@inline
def set_free(tuples: Int64s, sides: Int64s, handle: np.int64) -> None:
    """Free a tuple so that it can be used again."""
    about = len(sides) - 1
    tuples[handle, NEXT] = sides[about, FREE]
    sides[about, FREE] = handle
    sides[about, FREE_COUNT] += 1


@lean_kernel
def insert_tuple(state: JoinTables, changes: Int64s, place: int) -> None:
    """Store the tuple of a change; there has to be room for it."""
    side = changes[place, SIDE]
    if state.sides[side, POLICY] == RING:
        put_in_ring(state.tuples, state.sides, state.heads, changes, place)
        return
    handle = link(state, changes, place)
    if state.sides[side, POLICY] == CALENDAR:
        schedule(state.calendar, np.int64(handle), changes[place, EXP])
    if state.sides[side, BY_ID]:
        put(state.ids, changes[place, ID], side, np.int64(handle))


@lean_kernel
def forget_tuple(state: JoinTables, handle: int, expired: bool) -> None:
    """Remove a tuple of the pool, because it expired or before that."""
    tuples = state.tuples
    side = tuples[handle, SIDE]
    unlink(state, handle)
    if state.sides[side, BY_ID]:
        remove(state.ids, tuples[handle, ID], side)
    scheduled = state.sides[side, POLICY] == CALENDAR and tuples[handle, EXP] != NEVER
    # A tuple that the calendar still has becomes free when it would have expired.
    if expired or not scheduled:
        set_free(tuples, state.sides, np.int64(handle))


@call_lean
def look_through(state: JoinTables, clock: int) -> None:
    """Remove expired tuples of sides whose tuples are searched for that, if it is time."""
    tuples, sides = state.tuples, state.sides
    about = len(sides) - 1
    by_time = sides[about, SWEEP_US] >= 0
    due = by_time and clock >= sides[about, SWEPT_AT] + sides[about, SWEEP_US]
    for side in range(about):
        many = not by_time and sides[side, COUNT] > 2 * sides[side, LEFT] + SLACK
        if sides[side, POLICY] == SWEPT and (due or many):
            for handle in range(len(state.newer)):
                if tuples[handle, SIDE] == side and tuples[handle, EXP] <= clock:
                    forget_tuple(state, handle, True)
            sides[side, LEFT] = sides[side, COUNT]
    if due:
        sides[about, SWEPT_AT] = clock


@lean_kernel
def expire_tuples(state: JoinTables, clock: int) -> None:
    """Remove tuples that have expired at `clock`, of sides whose tuples expire by themselves."""
    tuples, sides = state.tuples, state.sides
    about = len(sides) - 1
    expire_rings(tuples, sides, clock)
    if sides[about, RINGS]:
        return
    look_through(state, clock)
    scheduled = False
    for side in range(about):
        scheduled |= sides[side, POLICY] == CALENDAR
    while scheduled:
        due = next_due(state.calendar, np.int64(clock))
        if due < 0:
            break
        if tuples[due, SIDE] == DEAD:
            set_free(tuples, sides, due)
        else:
            forget_tuple(state, int(due), True)


@lean_kernel
def insert_all(state: JoinTables, changes: Int64s) -> None:
    """Store the tuples of changes that all come."""
    for place in range(len(changes)):
        insert_tuple(state, changes, place)


@lean_kernel
def relink(state: JoinTables, heads: Int64s) -> None:
    """Link all living tuples into other buckets, the newest of a bucket first as before."""
    for side in range(len(heads)):
        if state.sides[side, POLICY] == RING:
            relink_ring(state.tuples, state.sides, side, heads)
        else:
            relink_pool(state, side, heads)


@call_lean
def relink_ring(tuples: Int64s, sides: Int64s, side: int, heads: Int64s) -> None:
    """Link the tuples of a ring into other buckets."""
    for number in range(sides[side, OLDEST], sides[side, END]):
        handle = sides[side, BASE] + (number & sides[side, MASK])
        place = bucket_of(tuples[handle, KEY1], tuples[handle, KEY2], heads)
        tuples[handle, NEXT] = heads[side, place]
        heads[side, place] = number


@call_lean
def relink_pool(state: JoinTables, side: int, heads: Int64s) -> None:
    """Link the tuples of a side in the pool into other buckets."""
    tuples = state.tuples
    for bucket in range(state.heads.shape[1]):
        # From the oldest on, so that the newest is first at the end.
        handle = state.heads[side, bucket]
        while handle >= 0 and tuples[handle, NEXT] >= 0:
            handle = tuples[handle, NEXT]
        while handle >= 0:
            behind = np.int64(state.newer[handle])
            place = bucket_of(tuples[handle, KEY1], tuples[handle, KEY2], heads)
            first = heads[side, place]
            tuples[handle, NEXT] = first
            state.newer[handle] = -1
            if first >= 0:
                state.newer[first] = handle
            heads[side, place] = handle
            handle = behind


@lean_kernel
def write_words(
    side: int, columns: tuple[Int64s, ...], row: Int64s, sign: Int8s, words: Int64s
) -> None:
    """Write the changes of a side; `columns` are their keys, lives and ids."""
    key1, key2, at, exp, name = columns
    for i in range(len(words)):
        words[i, KEY1], words[i, KEY2], words[i, AT], words[i, EXP] = (
            key1[i],
            key2[i],
            at[i],
            exp[i],
        )
        words[i, ID], words[i, ROW], words[i, SIDE], words[i, SIGN] = name[i], row[i], side, sign[i]


@lean_kernel
def merge_in_time(changes: Int64s, cursors: Int64s, merged: Int64s) -> None:
    """Merge the changes of all sides, each in order of time; at one instant the first side leads.

    `cursors` has where each side begins among the changes and where it ends.
    """
    for place in range(len(merged)):
        best = -1
        for side in range(len(cursors)):
            cursor = cursors[side, 0]
            if cursor < cursors[side, 1] and (
                best < 0 or changes[cursor, AT] < changes[cursors[best, 0], AT]
            ):
                best = side
        for word in range(changes.shape[1]):
            merged[place, word] = changes[cursors[best, 0], word]
        cursors[best, 0] += 1
