"""Joins as of a time: arriving tuples are joined with the tuples of another side at that time.

Only the other side is kept, in the structures of kernels/joins/join.py: its newest tuple of each
key, or all its tuples of the key.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, call_lean, lean_kernel
from eventide.kernels.hashing import GOLDEN, mixed
from eventide.kernels.joins.join import JoinRoom
from eventide.kernels.joins.pool import (
    AT,
    EXP,
    ID,
    KEY1,
    KEY2,
    NEXT,
    ROW,
    SIDE,
    SIGN,
    JoinTables,
    bucket_of,
    forget_tuple,
    insert_tuple,
)
from eventide.kernels.key_table import find

HELD, PROBING = 0, 1
"""The sides of changes: the one that is kept, and the one that probes it."""
PLACE, CURSOR, MET, WRITTEN = 0, 1, 2, 3
"""How far a call has come: the change, its next partner (or NOT_BEGUN), whether it has had any, and
how many results are written."""
NOT_BEGUN = -2


@call_lean
def hold(state: JoinTables, changes: Int64s, place: int, newest: bool) -> None:
    """Take a change of the side that is kept; with `newest` it replaces others."""
    if changes[place, SIGN] < 0:
        handle = find(state.ids, changes[place, ID], np.int64(HELD))
        if handle >= 0:
            forget_tuple(state, int(handle), False)
        return
    if newest:
        key1, key2 = changes[place, KEY1], changes[place, KEY2]
        handle = np.int64(state.heads[HELD, bucket_of(key1, key2, state.heads)])
        while handle >= 0:
            following = state.tuples[handle, NEXT]
            if state.tuples[handle, KEY1] == key1 and state.tuples[handle, KEY2] == key2:
                forget_tuple(state, int(handle), False)
            handle = following
    insert_tuple(state, changes, place)


@lean_kernel
def join_as_of(
    state: JoinTables,
    changes: Int64s,
    newest: bool,
    outer: bool,
    progress: Int64s,
    room: JoinRoom,
) -> bool:
    """Join changes with the tuples held at their place in the order; return whether all are done.

    Results are the number of the arriving row and that of its partner, or -1. A call ends when the
    room is full; the next one goes on where it ended.
    """
    tuples = state.tuples
    progress[WRITTEN] = 0
    while progress[PLACE] < len(changes):
        place = progress[PLACE]
        if changes[place, SIDE] == HELD:
            hold(state, changes, place, newest)
            progress[PLACE] = place + 1
            continue
        key1, key2 = changes[place, KEY1], changes[place, KEY2]
        if progress[CURSOR] == NOT_BEGUN:
            progress[CURSOR] = state.heads[HELD, bucket_of(key1, key2, state.heads)]
            progress[MET] = 0
        while True:
            handle = progress[CURSOR]
            while handle >= 0 and not (
                tuples[handle, KEY1] == key1 and tuples[handle, KEY2] == key2
            ):
                handle = tuples[handle, NEXT]
            progress[CURSOR] = handle
            if handle < 0 and (progress[MET] == 1 or not outer):
                break
            written = progress[WRITTEN]
            if written == len(room.at):
                return False
            name = tuples[handle, ID] if handle >= 0 else np.int64(0)
            room.rows[written, 0] = changes[place, ROW]
            room.rows[written, 1] = tuples[handle, ROW] if handle >= 0 else -1
            room.at[written], room.exp[written] = changes[place, AT], changes[place, EXP]
            room.id[written] = np.int64(
                mixed(np.uint64(changes[place, ID]) * GOLDEN + np.uint64(name))
            )
            room.sign[written] = 1
            progress[WRITTEN] = written + 1
            progress[MET] = 1
            if handle < 0:
                break
            progress[CURSOR] = tuples[handle, NEXT]
        progress[PLACE], progress[CURSOR] = place + 1, NOT_BEGUN
    return True
