"""Joins over windows: tuples of several sides with equal keys that live at the same time.

A tuple that arrives is joined with the living tuples of all other sides, one side after the other
in the order planned for its own; no intermediate result is kept. A result lives from the latest
arrival of its parts to the earliest expiry. A tuple that goes before it expires takes back its
results, in the same way. The tuples are in kernels/joins/pool.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int64s, inline, lean_kernel
from eventide.kernels.hashing import GOLDEN, mixed
from eventide.kernels.joins.pool import (
    AT,
    BASE,
    EXP,
    ID,
    KEY1,
    KEY2,
    LAPSES,
    LOOKED,
    MASK,
    MATCHED,
    NEXT,
    OLDEST,
    PROBES,
    RINGS,
    ROW,
    SIDE,
    SIGN,
    JoinTables,
    bucket_of,
    expire_rings,
    expire_tuples,
    forget_tuple,
    insert_tuple,
    put_in_ring,
)
from eventide.kernels.key_table import find

Int8s = npt.NDArray[np.int8]

PLACE, DEPTH, MEMBER, END, HANDLE, WRITTEN = 0, 1, 2, 3, 4, 5
"""How far a call has come: the change, the depth of the search, the member of the group that is
written next, where the group ends, the tuple that goes, and how many results are written."""
CURSOR, LOW, HIGH, CHOSEN = 0, 1, 2, 3
"""What stands in `scratch`: by depth the tuple of that side and how long those chosen before live
together, then the chosen tuple by side."""


class JoinRoom(NamedTuple):
    """The output: the row of each side, and the life of the combination."""

    rows: Int64s
    at: Int64s
    exp: Int64s
    id: Int64s
    sign: Int8s


@inline
def begin_change(changes: Int64s, scratch: Int64s, progress: Int64s) -> None:
    """Begin to probe with the next change."""
    place = progress[PLACE]
    progress[END], progress[MEMBER], progress[HANDLE], progress[DEPTH] = place + 1, place, -1, 0
    scratch[LOW, 0], scratch[HIGH, 0] = changes[place, AT], changes[place, EXP]


@inline
def next_partner(
    tuples: Int64s, sides: Int64s, other: int, depth: int, changes: Int64s, place: int,
    scratch: Int64s,
) -> bool:  # fmt: skip
    """Choose the next tuple of a side that lives together with those chosen before, if any."""
    key1, key2 = changes[place, KEY1], changes[place, KEY2]
    before_low, before_high = scratch[LOW, depth], scratch[HIGH, depth]
    base, mask, oldest = sides[other, BASE], sides[other, MASK], sides[other, OLDEST]
    cursor = scratch[CURSOR, depth]
    looked = 0
    while cursor >= oldest:
        looked += 1
        handle = base + (cursor & mask)
        if tuples[handle, KEY1] == key1 and tuples[handle, KEY2] == key2:
            low, high = max(before_low, tuples[handle, AT]), min(before_high, tuples[handle, EXP])
            if low < high:
                scratch[LOW, depth + 1], scratch[HIGH, depth + 1] = low, high
                scratch[CHOSEN, other] = handle
                sides[other, MATCHED] += 1
                break
        cursor = tuples[handle, NEXT]
    scratch[CURSOR, depth] = cursor
    sides[other, LOOKED] += looked
    return bool(cursor >= oldest)


@inline
def write_members(
    tuples: Int64s, sides: Int64s, changes: Int64s, scratch: Int64s, progress: Int64s,
    room: JoinRoom,
) -> bool:  # fmt: skip
    """Write the combination of what is chosen with each of the group; False if the room is full."""
    about = len(sides) - 1
    place = progress[PLACE]
    side, sign = changes[place, SIDE], changes[place, SIGN]
    low, high = scratch[LOW, about - 1], scratch[HIGH, about - 1]
    for member in range(progress[MEMBER], progress[END]):
        at = max(low, changes[member, AT]) if sign > 0 else low
        exp = min(high, changes[member, EXP])
        lapsed = sign < 0 and sides[about, LAPSES] and exp <= changes[member, AT]
        if at >= exp or lapsed:
            continue
        written = progress[WRITTEN]
        if written == len(room.at):
            progress[MEMBER] = member
            return False
        mix = np.uint64(0)
        for each in range(about):
            if each != side:
                number, name = tuples[scratch[CHOSEN, each], ROW], tuples[scratch[CHOSEN, each], ID]
            elif sign > 0:
                number, name = changes[member, ROW], changes[member, ID]
            else:
                number, name = tuples[progress[HANDLE], ROW], changes[member, ID]
            room.rows[written, each] = number
            mix = mixed(mix * GOLDEN + np.uint64(name))
        room.at[written] = at if sign > 0 else changes[member, AT]
        room.exp[written] = exp
        room.id[written] = np.int64(mix)
        room.sign[written] = sign
        progress[WRITTEN] = written + 1
    progress[MEMBER] = place
    return True


@inline
def search(
    tuples: Int64s, sides: Int64s, heads: Int64s, orders: Int64s, changes: Int64s,
    scratch: Int64s, progress: Int64s, room: JoinRoom,
) -> bool:  # fmt: skip
    """Write all combinations with the change that has begun; False if the room is full.

    The depth is the number of sides of which a tuple is chosen; the next side begins with its
    newest tuple.
    """
    place, deepest = progress[PLACE], len(sides) - 2
    order = orders[changes[place, SIDE]]
    bucket = bucket_of(changes[place, KEY1], changes[place, KEY2], heads)
    depth = progress[DEPTH]
    if depth == 0:
        scratch[CURSOR, 0] = heads[order[0], bucket]
        sides[order[0], PROBES] += 1
    while depth >= 0:
        if depth == deepest:
            if not write_members(tuples, sides, changes, scratch, progress, room):
                progress[DEPTH] = depth
                return False
        elif next_partner(tuples, sides, order[depth], depth, changes, place, scratch):
            depth += 1
            if depth < deepest:
                scratch[CURSOR, depth] = heads[order[depth], bucket]
                sides[order[depth], PROBES] += 1
            continue
        # Back to the side before, and on to its next tuple.
        depth -= 1
        if depth >= 0:
            scratch[CURSOR, depth] = tuples[scratch[CHOSEN, order[depth]], NEXT]
    return True


@lean_kernel
def join_changes(
    state: JoinTables, changes: Int64s, scratch: Int64s, progress: Int64s, room: JoinRoom
) -> bool:
    """Join changes with the stored tuples, and store them; return whether all are done.

    Changes come in order of time; expired tuples are removed on the way. A call ends when the room
    is full; the next one goes on where it ended.
    """
    tuples, sides, heads, orders = state.tuples, state.sides, state.heads, state.orders
    ringed = sides[len(sides) - 1, RINGS] != 0
    progress[WRITTEN] = 0
    while progress[PLACE] < len(changes):
        place = progress[PLACE]
        sign = changes[place, SIGN]
        if progress[DEPTH] < 0:
            begin_change(changes, scratch, progress)
            if ringed:
                expire_rings(tuples, sides, changes[place, AT])
            else:
                expire_tuples(state, changes[place, AT])
            if sign < 0:
                handle = find(state.ids, changes[place, ID], changes[place, SIDE])
                progress[HANDLE] = handle
                if handle < 0:
                    progress[PLACE], progress[DEPTH] = progress[END], -1
                    continue
                scratch[LOW, 0] = tuples[handle, AT]
        if not search(tuples, sides, heads, orders, changes, scratch, progress, room):
            return False
        if progress[HANDLE] >= 0:
            forget_tuple(state, progress[HANDLE], False)
        elif sign > 0:
            if ringed:
                put_in_ring(tuples, sides, heads, changes, place)
            else:
                insert_tuple(state, changes, place)
        progress[PLACE], progress[DEPTH] = progress[END], -1
    return True
