"""Shrink arrays that have become too large, and renumber what is left in them.

An operator grows with its largest step, and numbers its tuples or groups. When only few of the
numbers are left in use they are assigned anew from 0 on, in the same order.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s
from eventide.kernels.key_table import COUNT, SMALLEST, KeyTable, copy_keys, empty_table
from eventide.kernels.lifetimes.calendar_queue import DUE, Calendar

SLACK = 1024
"""Arrays up to this size are never shrunk."""


def is_too_roomy(room: int, needed: int) -> bool:
    """Whether so much of the room is spare that copying the rest pays."""
    return room > 4 * needed + SLACK


def new_numbers(kept: Int64s, room: int) -> Int32s:
    """Return the new number of each old one below `room`; -1 for those that are not kept."""
    numbers = np.full(room, -1, np.int32)
    numbers[kept] = np.arange(len(kept))
    return numbers


def renumbered(handles: Int32s, numbers: Int32s) -> Int32s:
    """Return handles with their new numbers; missing ones stay missing."""
    found = np.full(len(handles), -1, np.int32)
    some = handles >= 0
    found[some] = numbers[handles[some]]
    return found


def compact_table(table: KeyTable, numbers: Int32s | None = None) -> KeyTable:
    """Return a table as small as possible, with new numbers of its handles if they are given."""
    capacity = SMALLEST
    while capacity < 2 * int(table.facts[COUNT]):
        capacity *= 2
    smaller = empty_table(capacity)
    handles = table.handles if numbers is None else renumbered(table.handles, numbers)
    copy_keys(table._replace(handles=handles), smaller)
    return smaller


def compact_calendar(calendar: Calendar, kept: Int64s, numbers: Int32s) -> Calendar:
    """Return the calendar of the handles that are kept; these have to include all handles in it."""
    due = np.zeros(len(kept), np.int32)
    count = int(calendar.facts[DUE])
    due[:count] = numbers[calendar.due[:count]]
    return Calendar(
        renumbered(calendar.heads, numbers),
        renumbered(calendar.links[kept], numbers),
        calendar.exps[kept],
        due,
        calendar.facts.copy(),
    )
