"""Groups by the refresh at which their next pane expires: a ring of slots.

    slot      0    1    2    3    4          each group stands in one slot at most: that of the
            ┌────┬────┬────┬────┬────┐       first of its panes to expire
            │    │ ba │    │ c  │    │
            └────┴────┴────┴────┴────┘
               ↑ current

All ends lie on multiples of the slide. As long as the ring has a slot for each of them, the groups
of a slot are due together; in a longer window several refreshes share a slot, and its groups are
searched for those that are due. Groups of one refresh are taken in the order in which they were put
there, no matter how often the ring is rebuilt.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, inline, lean_kernel

NEVER = np.int64(2**63 - 1)
FEWEST, MOST = 16, 4096
"""How many slots a ring has; both are powers of two."""

DUE, UNTIL, NEXT, BEFORE, LATER, EARLIER, LAST, TIMES = range(8)
"""The columns of `times` of a group: when its next pane expires, when its last one does; its
neighbours in the slot, and among all groups with rows if these are needed; its last entry in a
queue."""

WIDTH, CURRENT, SCHEDULED, CLOCK, MOVING, LIVING = range(6)
"""The contents of the facts: the width of a slot in time, the current slot, how many groups are in
slots, the last instant, whether values change with every refresh, and how many groups are in the
list of all."""


class Ring(NamedTuple):
    """First and last group of each slot, behind them those of the list of all; -1 for none."""

    ends: Int64s
    facts: Int64s


def empty_ring(slide_us: int, panes: int = 1) -> Ring:
    """Return a ring for lives of this many slides."""
    slots = FEWEST
    while slots < min(panes + 2, MOST):
        slots *= 2
    facts = np.zeros(6, np.int64)
    facts[WIDTH] = slide_us * -(-panes // (slots - 2))
    facts[CURRENT] = facts[CLOCK] = -(2**62)
    return Ring(np.full((slots + 1, 2), -1, np.int64), facts)


def covered_us(ring: Ring) -> int:
    """Return the longest life for which a ring has slots."""
    return int(ring.facts[WIDTH]) * (len(ring.ends) - 3)


@inline
def link(ends: Int64s, slot: int, times: Int64s, group: int, column: int) -> None:
    """Put a group behind the others of a list."""
    last = ends[slot, 1]
    times[group, column] = -1
    times[group, column + 1] = last
    if last >= 0:
        times[last, column] = group
    else:
        ends[slot, 0] = group
    ends[slot, 1] = group


@inline
def unlink(ends: Int64s, slot: int, times: Int64s, group: int, column: int) -> None:
    """Remove a group from a list."""
    following, before = times[group, column], times[group, column + 1]
    if before >= 0:
        times[before, column] = following
    else:
        ends[slot, 0] = following
    if following >= 0:
        times[following, column + 1] = before
    else:
        ends[slot, 1] = before


@inline
def schedule(ends: Int64s, facts: Int64s, times: Int64s, group: int, due: int, now: int) -> None:
    """Move a group to the slot of another instant, or of none; all due groups are taken out."""
    slots = len(ends) - 1
    if times[group, DUE] != NEVER:
        unlink(ends, (times[group, DUE] // facts[WIDTH]) & (slots - 1), times, group, NEXT)
        facts[SCHEDULED] -= 1
    times[group, DUE] = due
    if due != NEVER:
        slot = due // facts[WIDTH]
        # After a load the current slot is that of the first group that is due.
        facts[CURRENT] = min(max(facts[CURRENT], now // facts[WIDTH]), slot)
        link(ends, slot & (slots - 1), times, group, NEXT)
        facts[SCHEDULED] += 1


@inline
def next_due(ends: Int64s, facts: Int64s, times: Int64s, clock: int) -> np.int64:
    """Return the first instant at which groups are due, if that is at most `clock`, or never."""
    found = NEVER
    slots = len(ends) - 1
    while facts[SCHEDULED] > 0:
        group = ends[facts[CURRENT] & (slots - 1), 0]
        while group >= 0:
            found = min(found, times[group, DUE])
            group = times[group, NEXT]
        if found != NEVER or (facts[CURRENT] + 1) * facts[WIDTH] > clock:
            break
        facts[CURRENT] += 1
    return found if found <= clock else NEVER


@lean_kernel
def listed(ring: Ring, times: Int64s, out: Int64s) -> int:
    """Write the groups of all slots, those of a slot in order; return how many."""
    count = 0
    for slot in range(len(ring.ends) - 1):
        group = ring.ends[slot, 0]
        while group >= 0:
            out[count] = group
            count += 1
            group = times[group, NEXT]
    return count


@lean_kernel
def living(ring: Ring, times: Int64s, out: Int64s) -> None:
    """Write the groups that have rows, in the order in which they came."""
    group = ring.ends[len(ring.ends) - 1, 0]
    count = 0
    while group >= 0:
        out[count] = group
        count += 1
        group = times[group, LATER]


@lean_kernel
def link_all(ring: Ring, times: Int64s, due: Int64s, alive: Int64s) -> None:
    """Put groups into the slots of an empty ring by their times, and into the list of all."""
    ends, facts = ring
    slots = len(ends) - 1
    for i in range(len(due)):
        link(ends, (times[due[i], DUE] // facts[WIDTH]) & (slots - 1), times, due[i], NEXT)
    for i in range(len(alive)):
        link(ends, slots, times, alive[i], LATER)
