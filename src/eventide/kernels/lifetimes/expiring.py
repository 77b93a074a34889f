"""Tuples that expire: by a calendar, by searching a list, or not by themselves.

WAITS      no tuple expires by itself: a change says when it goes
CALENDAR   handles in a calendar queue; one that goes before it expires stays there, dead, until
then
SWEPT      handles in a list in order of arrival, which is searched from end to end whenever
           something in it has expired, and whenever one goes before it expires
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s, call_lean, inline, lean_kernel
from eventide.kernels.lifetimes.calendar_queue import (
    DUE,
    NEVER,
    WIDTH,
    Calendar,
    empty_calendar,
    grown_calendar,
    next_due,
    schedule,
)

WAITS, CALENDAR, SWEPT = 0, 1, 2
PARTITIONS = 256
MODE, LISTED, NEXT = 0, 1, 2
"""The contents of `facts`: which of the three, how many handles are in the list, and the first
expiry among them."""


class Expiring(NamedTuple):
    """The calendar, which has the expiry of each handle in every case, and the list."""

    calendar: Calendar
    listed: Int32s
    facts: Int64s


def empty_expiring(mode: int, longest_us: int) -> Expiring:
    """Return an empty structure for lifetimes up to `span_us`, without room."""
    facts = np.zeros(3, np.int64)
    facts[MODE] = mode
    facts[NEXT] = NEVER
    partitions = PARTITIONS if mode == CALENDAR else 1
    calendar = empty_calendar(max(1, longest_us), partitions, 0)
    return Expiring(calendar, np.zeros(0, np.int32), facts)


def grown_expiring(expiring: Expiring, capacity: int) -> Expiring:
    """Return it with room for handles below `capacity`."""
    listed = expiring.listed
    if expiring.facts[MODE] == SWEPT and len(listed) < capacity:
        listed = np.concatenate((listed, np.zeros(capacity - len(listed), np.int32)))
    return Expiring(grown_calendar(expiring.calendar, capacity), listed, expiring.facts)


def widened(calendar: Calendar, lifetime_us: int, used: Bools | Int64s) -> Calendar:
    """Return the calendar if it has room for this lifetime, or a wider one of the used handles."""
    partitions = len(calendar.heads) - 1
    longest_us = int(calendar.facts[WIDTH]) * partitions
    if lifetime_us <= longest_us:
        return calendar
    wider = empty_calendar(max(lifetime_us, 2 * longest_us), partitions, len(calendar.links))
    schedule_all(wider, np.flatnonzero(used), calendar.exps)
    return wider


def longest_lifetime(at: Int64s, exp: Int64s) -> int:
    """Return the longest lifetime of tuples that expire at all, or 0."""
    lasting = exp != NEVER
    return int((exp - at)[lasting].max()) if lasting.any() else 0


@lean_kernel
def schedule_all(calendar: Calendar, handles: Int64s, exps: Int64s) -> None:
    """Put handles into an empty calendar."""
    # Not by a slice: numba would make room for a copy, in case the two overlap.
    for handle in range(len(exps)):
        calendar.exps[handle] = exps[handle]
    for i in range(len(handles)):
        schedule(calendar, handles[i], exps[handles[i]])


@call_lean
def sweep(expiring: Expiring) -> None:
    """Search the list: handles that expire first are due, the rest moves together."""
    facts, calendar = expiring.facts, expiring.calendar
    instant, following = facts[NEXT], NEVER
    kept = due = 0
    for place in range(facts[LISTED]):
        handle = expiring.listed[place]
        exp = calendar.exps[handle]
        if exp <= instant:
            calendar.due[due] = handle
            due += 1
        else:
            expiring.listed[kept] = handle
            kept += 1
            following = min(following, exp)
    facts[LISTED] = kept
    facts[NEXT] = following
    calendar.facts[DUE] = due


@call_lean
def strike(expiring: Expiring, handle: np.int64) -> None:
    """Search the list for a handle and remove it."""
    facts = expiring.facts
    kept = 0
    for place in range(facts[LISTED]):
        if expiring.listed[place] != handle:
            expiring.listed[kept] = expiring.listed[place]
            kept += 1
    facts[LISTED] = kept


@inline
def remember(expiring: Expiring, handle: np.int64, exp: np.int64) -> None:
    """Add a handle with its expiry."""
    facts = expiring.facts
    if facts[MODE] == CALENDAR:
        schedule(expiring.calendar, handle, exp)
    else:
        expiring.calendar.exps[handle] = exp
        if facts[MODE] == SWEPT:
            expiring.listed[facts[LISTED]] = handle
            facts[LISTED] += 1
            facts[NEXT] = min(facts[NEXT], exp)


@inline
def forget(expiring: Expiring, handle: np.int64) -> bool:
    """Remove a handle before it expires; return whether it may be used again at once."""
    if expiring.facts[MODE] == SWEPT:
        strike(expiring, handle)
    listed = expiring.facts[MODE] == CALENDAR and expiring.calendar.exps[handle] != NEVER
    return not listed


@inline
def next_expired(expiring: Expiring, clock: np.int64) -> np.int64:
    """Take out and return a handle with the smallest expiry, if that is at most `clock`, or -1."""
    facts, calendar = expiring.facts, expiring.calendar
    found = np.int64(-1)
    if facts[MODE] == CALENDAR:
        found = next_due(calendar, clock)
    elif facts[MODE] == SWEPT:
        # The handle that was to expire first may have been removed: then a sweep finds nothing.
        while calendar.facts[DUE] == 0 and facts[NEXT] <= clock:
            sweep(expiring)
        if calendar.facts[DUE] > 0:
            calendar.facts[DUE] -= 1
            found = np.int64(calendar.due[calendar.facts[DUE]])
    return found
