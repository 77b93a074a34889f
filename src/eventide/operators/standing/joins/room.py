"""Room for the tuples that a join over windows keeps: a pool, and a ring for some sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.kernels.compiled import Int64s
from eventide.kernels.joins.pool import (
    BASE,
    COUNT,
    DEAD,
    END,
    FREE,
    FREE_COUNT,
    MASK,
    NEXT,
    OLDEST,
    POLICY,
    RING,
    SIDE,
    WORDS,
    JoinTables,
)
from eventide.kernels.key_table import roomy
from eventide.kernels.lifetimes.calendar_queue import grown_calendar
from eventide.operators.standing.answer.keeping import power_of_two

FEWEST = 64
MOSTLY_EMPTY = 8
"""A ring that is this many times longer than needed is shortened; buckets are reduced."""


def rows_on_lines(count: int) -> Int64s:
    """Return zeroed tuples, each of which lies in one cache line."""
    words = np.zeros((count + 1) * WORDS, np.int64)
    skipped = -(words.ctypes.data // words.itemsize) % WORDS
    return words[skipped : skipped + count * WORDS].reshape(count, WORDS)


def numbers_in_ring(about: Int64s) -> Int64s:
    """Return the living tuples of a side with a ring, the oldest first."""
    return np.arange(about[OLDEST], about[END])


def with_room(state: JoinTables, more: Sequence[int]) -> JoinTables:
    """Return the state with room for this many more tuples of each side."""
    sides, come = state.sides, np.array(more, np.int64)
    ringed = sides[:-1, POLICY] == RING
    pooled = int(come[~ringed].sum())
    state = state._replace(ids=roomy(state.ids, pooled))
    lacking = pooled - int(sides[-1, FREE_COUNT])
    lengths = np.where(ringed, sides[:-1, MASK] + 1, 0)
    wanted = np.where(ringed, _lengths(lengths, sides[:-1, COUNT] + come), 0)
    if lacking <= 0 and np.array_equal(lengths, wanted):
        return state
    held = len(state.newer)
    return _moved(state, power_of_two(held + lacking) if lacking > 0 else held, wanted)


def _lengths(lengths: Int64s, needed: Int64s) -> Int64s:
    """Return the new lengths of rings, given their lengths and the room they need."""
    least = np.array([power_of_two(max(FEWEST, count)) for count in needed.tolist()], np.int64)
    fitting = (lengths >= needed) & (lengths <= MOSTLY_EMPTY * least)
    return np.where(fitting, lengths, np.maximum(least, np.minimum(2 * least, lengths)))


def _moved(state: JoinTables, pool: int, lengths: Int64s) -> JoinTables:
    """Return the same tuples with a pool and rings of other lengths."""
    sides, held = state.sides, len(state.newer)
    bases = pool + np.cumsum(lengths) - lengths
    tuples = rows_on_lines(pool + int(lengths.sum()))
    tuples[:held] = state.tuples[:held]
    for about, base, length in zip(sides[:-1], bases, lengths, strict=True):
        if about[POLICY] == RING:
            numbers = numbers_in_ring(about)
            old = about[BASE] + (numbers & about[MASK])
            about[BASE], about[MASK] = base, length - 1
            tuples[base + (numbers & about[MASK])] = state.tuples[old]
    newer = np.full(pool, -1, np.int32)
    newer[:held] = state.newer
    if pool > held:
        tuples[held:pool, SIDE] = DEAD
        # The new handles are used first, one after the other.
        tuples[held:pool, NEXT] = np.arange(held + 1, pool + 1)
        tuples[pool - 1, NEXT] = sides[-1, FREE]
        sides[-1, FREE], sides[-1, FREE_COUNT] = held, sides[-1, FREE_COUNT] + pool - held
    calendar = grown_calendar(state.calendar, pool)
    return state._replace(tuples=tuples, newer=newer, calendar=calendar)
