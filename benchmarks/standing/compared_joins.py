"""Joins of windows as they could be, to compare with those of Eventide.

A lazy join takes together all that comes with a step: by key, so that a bucket is looked through
once for all tuples of a key. That pays if buckets hold many keys; with as many buckets as suit,
joining at once is faster. With lazy expiry, tuples that have expired are passed over until the end
of a step. The number of buckets can be fixed (with one, every tuple is looked at), and so can the
orders in which sides are probed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.joins.join import DEPTH, HANDLE, HIGH, LOW, MEMBER, PLACE, WRITTEN, JoinRoom
from eventide.kernels.joins.join import END as GROUP_END
from eventide.kernels.joins.join import search as search_partners
from eventide.kernels.joins.pool import (
    AT,
    EXP,
    ID,
    KEY1,
    KEY2,
    SIDE,
    SIGN,
    JoinTables,
    forget_tuple,
    insert_all,
    insert_tuple,
)
from eventide.kernels.key_table import find
from eventide.kernels.ordering import sort_pairs
from eventide.operators.changes import Changes
from eventide.operators.standing.joins import join
from eventide.operators.standing.joins.join import (
    JoinSide,
    JoinState,
    JoinWindows,
    empty_room,
    in_time,
)
from eventide.operators.standing.joins.memory import JoinMemory, Policy
from eventide.operators.standing.joins.room import with_room

_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
"""As the kernels of joins, but never kept on disk: those it calls may change."""
LOW_BITS = (1 << 22) - 1
"""Of a key, to sort by: two digits of the sort, and more than the keys of a step."""


@dataclass(frozen=True)
class ComparedJoin(JoinWindows):
    """A join with another way to do some of it.

    `lazy` needs sides from which nothing is taken back. `buckets` is a power of two.
    """

    lazy: bool = False
    lazy_expiry: bool = False
    buckets: int | None = None
    orders: tuple[tuple[int, ...], ...] | None = None

    def _policy(self, side: JoinSide) -> Policy:
        policy = super()._policy(side)
        # A calendar needs a clock that goes with the tuples.
        return "swept" if policy == "calendar" and (self.lazy or self.lazy_expiry) else policy

    def empty_memory(self) -> JoinMemory:
        """Return a memory without tuples, with as many buckets as it shall have."""
        memory = super().empty_memory()
        if self.buckets is None:
            return memory
        heads = np.full((len(self.sides), self.buckets), -1, np.int64)
        return replace(memory, state=memory.state._replace(heads=heads))

    def roomy(self, memory: JoinMemory, come: list[int]) -> JoinMemory:
        """Return the memory with room for so many more tuples of each side."""
        if self.buckets is None:
            return super().roomy(memory, come)
        return replace(memory, state=with_room(memory.state, come))

    def initial_state(self) -> JoinState:
        """Return the state before the first instant."""
        state = super().initial_state()
        if self.orders is None:
            return state
        observed = replace(state.observed, orders=self.orders)
        return replace(state, memory=state.memory.with_orders(self.orders), observed=observed)

    def looked(self, state: JoinState) -> JoinState:
        """Return the state with orders as good as what was seen allows, unless they are fixed."""
        return super().looked(state) if self.orders is None else state

    def results(self, memory: JoinMemory, words: Int64s, ends: Int64s) -> list[Changes]:
        """Return what comes of changes, and remember them."""
        if self.lazy:
            together = self.found_together(memory, np.split(words, ends[:-1]))
            return [self.combined(memory, together)]
        if self.lazy_expiry:
            rooms = self.found_lazily(memory, in_time(words, ends), grouped=False)
            return [self.combined(memory, room) for room in rooms]
        return super().results(memory, words, ends)

    def found_together(self, memory: JoinMemory, sided: list[Int64s]) -> JoinRoom:
        """Return all results of a step in order of time: side after side, key after key."""
        rooms: list[JoinRoom] = []
        for changes in map(frozen, sided):
            insert_all(memory.state, changes)
            rooms += self.found_lazily(memory, by_key(changes), grouped=True)
        if not rooms:
            return empty_room(0, len(self.sides))
        joined = JoinRoom._make(map(np.concatenate, zip(*rooms, strict=True)))
        order = places_in_order(joined.at)
        return JoinRoom._make(column[order] for column in joined)

    def found_lazily(
        self, memory: JoinMemory, changes: Int64s, *, grouped: bool
    ) -> Iterator[JoinRoom]:
        """Yield the results of changes, piece by piece, in the order in which they are found."""
        sides = len(self.sides)
        room = empty_room(join.ROOM, sides)
        scratch = np.zeros((4, sides), np.int64)
        progress = np.zeros(6, np.int64)
        progress[DEPTH] = -1
        done = False
        while not done:
            done = join_lazily(memory.state, changes, grouped, scratch, progress, room)
            written = int(progress[WRITTEN])
            if written:
                yield JoinRoom._make(column[:written].copy() for column in room)


@numba.njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def join_lazily(
    state: JoinTables,
    changes: Int64s,
    grouped: bool,
    scratch: Int64s,
    progress: Int64s,
    room: JoinRoom,
) -> bool:
    """Join changes with what is remembered; what has expired is only passed over.

    With `grouped`, changes are of one side in order of their keys, all positive, and remembered
    already. Otherwise they come in order of time, and are remembered. A call ends when the room is
    full; the next one goes on where it ended. Returns whether all are done.
    """
    tuples, sides, heads, orders = state.tuples, state.sides, state.heads, state.orders
    progress[WRITTEN] = 0
    while progress[PLACE] < len(changes):
        place = progress[PLACE]
        sign = changes[place, SIGN]
        if progress[DEPTH] < 0:
            low, high, end = changes[place, AT], changes[place, EXP], place + 1
            while (
                grouped
                and end < len(changes)
                and changes[end, KEY1] == changes[place, KEY1]
                and changes[end, KEY2] == changes[place, KEY2]
            ):
                low, high = min(low, changes[end, AT]), max(high, changes[end, EXP])
                end += 1
            progress[GROUP_END], progress[MEMBER] = end, place
            progress[HANDLE], progress[DEPTH] = -1, 0
            scratch[LOW, 0], scratch[HIGH, 0] = low, high
            if sign < 0:
                handle = find(state.ids, changes[place, ID], changes[place, SIDE])
                progress[HANDLE] = handle
                if handle < 0:
                    progress[PLACE], progress[DEPTH] = progress[GROUP_END], -1
                    continue
                scratch[LOW, 0] = tuples[handle, AT]
        if not search_partners(tuples, sides, heads, orders, changes, scratch, progress, room):
            return False
        if progress[HANDLE] >= 0:
            forget_tuple(state, progress[HANDLE], False)
        elif sign > 0 and not grouped:
            insert_tuple(state, changes, place)
        progress[PLACE], progress[DEPTH] = progress[GROUP_END], -1
    return True


def by_key(changes: Int64s) -> Int64s:
    """Return the changes of a side with those of one key beside each other.

    Others that have the low bits of their keys in common may stand between them. That does no
    harm: they are joined in more than one go.
    """
    return frozen(changes[places_in_order(changes[:, KEY1] & LOW_BITS)])


def places_in_order(numbers: Int64s) -> Int64s:
    """Return where the numbers are in ascending order, equal ones as they stand."""
    ordered, places = np.empty_like(numbers), np.empty_like(numbers)
    sort_pairs(frozen(numbers), frozen(np.arange(len(numbers))), ordered, places)
    return places
