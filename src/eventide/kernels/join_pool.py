"""The tuples that a join over windows remembers: a pool, linked by side and bucket.

    heads[side, bucket] ─▶ tuple ─▶ tuple ─▶ …        the newest first

How tuples of a side expire: in order of arrival (FIFO), by the calendar, by looking through all of
them (SWEPT), or not by themselves (KEPT).

What is small and what is looked at for every change stands in few arrays: to hand many of them
from function to function takes longer than what most of these functions do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.calendar_queue import NEVER, Calendar, next_due, schedule
from eventide.kernels.compiled import Int32s, Int64s, allocating_nothing, inlined
from eventide.kernels.key_table import KeyTable, place_of, put, remove

KEY1, KEY2, AT, EXP, ID, ROW, SIDE, NEXT, PREVIOUS, AFTER, BEFORE = range(11)
WORDS = 11
"""What a tuple has: its key, life, id, the number of its values and its side; then the tuples
beside it in its bucket, and in order of arrival. Free ones are a chain by NEXT."""
SIGN = 7
CHANGE_WORDS = 8
"""A change has the same words up to SIDE, and its sign."""
DEAD = -1
"""The side of a tuple that went before its time and waits for the calendar to be freed."""

KEPT, FIFO, CALENDAR, SWEPT = 0, 1, 2, 3

POLICY, BY_ID, FIRST, LAST, COUNT, LEFT, PROBES, LOOKED, MATCHED = range(9)
"""What is known of a side: how its tuples expire, whether they are found by id, the oldest, the
newest, how many there are, and how many were left when they were looked through; how often it was
probed, how many tuples were looked at for that, and how many matched."""
FREE, FREE_COUNT, SWEPT_AT, SWEEP_US, LAPSES, LINKED = range(6)
"""The last row of the sides is about the join: the first free tuple, how many there are, when
tuples were looked through and how much later they are again (if negative, once they are twice as
many), whether what expires is not taken back (everywhere but with negative tuples), and whether
all sides do without calendar and ids."""
SIDE_WORDS = 9
SLACK = 1024
"""So many more tuples than twice those that were left are not worth being looked through."""


class JoinState(NamedTuple):
    """What a join remembers. `orders` says for each side in which order the others are probed."""

    tuples: Int64s
    sides: Int64s
    heads: Int32s
    orders: Int64s
    ids: KeyTable
    calendar: Calendar


@inlined
def bucket_of(key1: np.int64, key2: np.int64, heads: Int32s) -> np.int64:
    """Return the bucket of a key."""
    return place_of(key1, key2, np.int64(heads.shape[1] - 1))


@allocating_nothing
def link(tuples: Int64s, sides: Int64s, heads: Int32s, changes: Int64s, place: int) -> int:
    """Put the tuple of a change into its bucket, and behind the others of its side."""
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
    tuples[handle, PREVIOUS] = -1
    if first >= 0:
        tuples[first, PREVIOUS] = handle
    heads[side, bucket] = handle
    if sides[side, POLICY] != CALENDAR:
        last = sides[side, LAST]
        tuples[handle, AFTER] = -1
        tuples[handle, BEFORE] = last
        if last >= 0:
            tuples[last, AFTER] = handle
        else:
            sides[side, FIRST] = handle
        sides[side, LAST] = handle
    sides[side, COUNT] += 1
    return int(handle)


@allocating_nothing
def unlink(tuples: Int64s, sides: Int64s, heads: Int32s, handle: int) -> None:
    """Take a tuple out of its bucket, and from between the others of its side."""
    side = tuples[handle, SIDE]
    following, before = tuples[handle, NEXT], tuples[handle, PREVIOUS]
    if following >= 0:
        tuples[following, PREVIOUS] = before
    if before >= 0:
        tuples[before, NEXT] = following
    else:
        heads[side, bucket_of(tuples[handle, KEY1], tuples[handle, KEY2], heads)] = following
    if sides[side, POLICY] != CALENDAR:
        after, earlier = tuples[handle, AFTER], tuples[handle, BEFORE]
        if after >= 0:
            tuples[after, BEFORE] = earlier
        else:
            sides[side, LAST] = earlier
        if earlier >= 0:
            tuples[earlier, AFTER] = after
        else:
            sides[side, FIRST] = after
    sides[side, COUNT] -= 1
    tuples[handle, SIDE] = DEAD


@inlined
def set_free(tuples: Int64s, sides: Int64s, handle: np.int64) -> None:
    """Have a tuple to be used again."""
    about = len(sides) - 1
    tuples[handle, NEXT] = sides[about, FREE]
    sides[about, FREE] = handle
    sides[about, FREE_COUNT] += 1


@allocating_nothing
def insert_tuple(state: JoinState, changes: Int64s, place: int) -> None:
    """Remember the tuple of a change; there has to be a free one."""
    handle = link(state.tuples, state.sides, state.heads, changes, place)
    side = changes[place, SIDE]
    if state.sides[side, POLICY] == CALENDAR:
        schedule(state.calendar, np.int64(handle), changes[place, EXP])
    if state.sides[side, BY_ID]:
        put(state.ids, changes[place, ID], side, np.int64(handle))


@allocating_nothing
def forget_tuple(state: JoinState, handle: int, expired: bool) -> None:
    """Forget a tuple, because it expired or before its time."""
    tuples = state.tuples
    side = tuples[handle, SIDE]
    unlink(tuples, state.sides, state.heads, handle)
    if state.sides[side, BY_ID]:
        remove(state.ids, tuples[handle, ID], side)
    scheduled = state.sides[side, POLICY] == CALENDAR and tuples[handle, EXP] != NEVER
    # What the calendar still has is free when its time comes.
    if expired or not scheduled:
        set_free(tuples, state.sides, np.int64(handle))


@allocating_nothing
def expire_first(tuples: Int64s, sides: Int64s, heads: Int32s, clock: int) -> None:
    """Forget what has expired where tuples expire in order of arrival, and are not found by id."""
    for side in range(len(sides) - 1):
        if sides[side, POLICY] == FIFO and not sides[side, BY_ID]:
            first = sides[side, FIRST]
            while first >= 0 and tuples[first, EXP] <= clock:
                unlink(tuples, sides, heads, first)
                set_free(tuples, sides, first)
                first = sides[side, FIRST]


@allocating_nothing
def expire_tuples(state: JoinState, clock: int) -> None:
    """Forget what has expired at `clock`, as far as the sides do that by themselves."""
    tuples, sides = state.tuples, state.sides
    about = len(sides) - 1
    expire_first(tuples, sides, state.heads, clock)
    if sides[about, LINKED]:
        return
    by_time = sides[about, SWEEP_US] >= 0
    swept = by_time and clock >= sides[about, SWEPT_AT] + sides[about, SWEEP_US]
    scheduled = False
    for side in range(about):
        many = not by_time and sides[side, COUNT] > 2 * sides[side, LEFT] + SLACK
        if sides[side, POLICY] == SWEPT and (swept or many):
            handle = sides[side, FIRST]
            while handle >= 0:
                after = tuples[handle, AFTER]
                if tuples[handle, EXP] <= clock:
                    forget_tuple(state, handle, True)
                handle = after
            sides[side, LEFT] = sides[side, COUNT]
        scheduled |= sides[side, POLICY] == CALENDAR
    if swept:
        sides[about, SWEPT_AT] = clock
    while scheduled:
        due = next_due(state.calendar, np.int64(clock))
        if due < 0:
            break
        if tuples[due, SIDE] == DEAD:
            set_free(tuples, sides, due)
        else:
            forget_tuple(state, int(due), True)


@allocating_nothing
def insert_all(state: JoinState, changes: Int64s) -> None:
    """Remember the tuples of changes that all come."""
    for place in range(len(changes)):
        insert_tuple(state, changes, place)


@allocating_nothing
def relink(tuples: Int64s, old: Int32s, heads: Int32s) -> None:
    """Link all living tuples into other buckets, the newest of a bucket first as before."""
    for side in range(old.shape[0]):
        for bucket in range(old.shape[1]):
            # From the oldest on, so that the newest comes to stand first.
            handle = np.int64(old[side, bucket])
            while handle >= 0 and tuples[handle, NEXT] >= 0:
                handle = tuples[handle, NEXT]
            while handle >= 0:
                newer = tuples[handle, PREVIOUS]
                place = bucket_of(tuples[handle, KEY1], tuples[handle, KEY2], heads)
                first = heads[side, place]
                tuples[handle, NEXT] = first
                tuples[handle, PREVIOUS] = -1
                if first >= 0:
                    tuples[first, PREVIOUS] = handle
                heads[side, place] = handle
                handle = newer


@allocating_nothing
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
