"""Handles in order of expiry: a ring of slots, each for a period.

    slot      0    1    2    3    4          P + 1 slots: the clock is somewhere inside a slot,
            ┌────┬────┬────┬────┬────┐       so what expires in [clock, clock + longest] is in
            │    │ due│  · │ ·· │  · │       at most P + 1 of them
            └────┴────┴────┴────┴────┘
                    ↑ clock

To schedule a handle is to link it into a slot. When the clock enters a slot, its handles become a
heap, `due`, from which they are taken in order. A handle scheduled into the slot that is being
emptied goes into the heap. Before scheduling at an instant, all handles due then have to be taken
out: otherwise two slots of different times would share a place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, call_lean, inline

NEVER = np.int64(2**63 - 1)
WIDTH, CURRENT, DUE, COUNT = 0, 1, 2, 3
"""The contents of `facts`: the width of a slot, the number of the slot that is being emptied, how
many of its handles are left, and how many handles there are in all."""


class Calendar(NamedTuple):
    """The first handle of each slot; then by handle the next one of its slot, and its expiry."""

    heads: Int32s
    links: Int32s
    exps: Int64s
    due: Int32s
    facts: Int64s


def empty_calendar(longest_us: int, partitions: int, capacity: int) -> Calendar:
    """Return a calendar for lifetimes up to `longest_us`, with handles below `capacity`."""
    facts = np.zeros(4, np.int64)
    facts[WIDTH] = max(1, -(-longest_us // partitions))
    facts[CURRENT] = -(2**62)
    return Calendar(
        np.full(partitions + 1, -1, np.int32),
        np.full(capacity, -1, np.int32),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int32),
        facts,
    )


def grown_calendar(calendar: Calendar, capacity: int) -> Calendar:
    """Return the calendar with room for handles below `capacity`: the same one if it has room."""
    held = len(calendar.links)
    if held >= capacity:
        return calendar
    links, exps = np.full(capacity, -1, np.int32), np.zeros(capacity, np.int64)
    due = np.zeros(capacity, np.int32)
    links[:held], exps[:held], due[:held] = calendar.links, calendar.exps, calendar.due
    return Calendar(calendar.heads, links, exps, due, calendar.facts)


@call_lean
def sift_up(due: Int32s, exps: Int64s, place: int) -> None:
    """Move the handle at a place of the heap up above those that expire after it."""
    handle = due[place]
    while place > 0:
        parent = (place - 1) // 2
        if exps[due[parent]] <= exps[handle]:
            break
        due[place] = due[parent]
        place = parent
    due[place] = handle


@call_lean
def sift_down(due: Int32s, exps: Int64s, parent: int, end: int) -> None:
    """Move the handle at a place of the heap down below those that expire before it."""
    handle = due[parent]
    child = 2 * parent + 1
    while child < end:
        if child + 1 < end and exps[due[child + 1]] < exps[due[child]]:
            child += 1
        if exps[handle] <= exps[due[child]]:
            break
        due[parent] = due[child]
        parent = child
        child = 2 * parent + 1
    due[parent] = handle


@inline
def schedule(calendar: Calendar, handle: np.int64, exp: np.int64) -> None:
    """Put a handle into the slot of its expiry; one that never expires is not stored."""
    calendar.exps[handle] = exp
    if exp != NEVER:
        facts = calendar.facts
        number = exp // facts[WIDTH]
        # All expiries lie less than the longest lifetime apart: slots further back are empty.
        facts[CURRENT] = max(facts[CURRENT], number - len(calendar.heads))
        facts[COUNT] += 1
        if number <= facts[CURRENT]:
            calendar.due[facts[DUE]] = handle
            facts[DUE] += 1
            sift_up(calendar.due, calendar.exps, facts[DUE] - 1)
        else:
            slot = number % len(calendar.heads)
            calendar.links[handle] = calendar.heads[slot]
            calendar.heads[slot] = handle


@call_lean
def open_slot(calendar: Calendar, number: int) -> None:
    """Make a slot the one that is being emptied: its handles become a heap."""
    facts = calendar.facts
    facts[CURRENT] = number
    slot = number % len(calendar.heads)
    handle = calendar.heads[slot]
    calendar.heads[slot] = -1
    count = 0
    while handle >= 0:
        calendar.due[count] = handle
        count += 1
        handle = calendar.links[handle]
    facts[DUE] = count
    for place in range(count // 2 - 1, -1, -1):
        sift_down(calendar.due, calendar.exps, place, count)


@inline
def next_due(calendar: Calendar, clock: np.int64) -> np.int64:
    """Take out and return a handle with the smallest expiry, if that is at most `clock`, or -1."""
    facts = calendar.facts
    found = np.int64(-1)
    while facts[COUNT] > 0:
        if facts[DUE] > 0:
            first = calendar.due[0]
            if calendar.exps[first] <= clock:
                facts[DUE] -= 1
                facts[COUNT] -= 1
                calendar.due[0] = calendar.due[facts[DUE]]
                sift_down(calendar.due, calendar.exps, 0, facts[DUE])
                found = np.int64(first)
            break
        if (facts[CURRENT] + 1) * facts[WIDTH] > clock:
            break
        open_slot(calendar, facts[CURRENT] + 1)
    return found
