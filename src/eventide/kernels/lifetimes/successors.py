"""One living tuple for each value, and one to follow it when it expires.

The successor is the tuple that lives longest of those that came since: no other one is needed,
for as long as any of them lives it does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s, allocating_nothing
from eventide.kernels.growing import longer
from eventide.kernels.key_table import KeyTable, empty_table, find, put, remove, roomy
from eventide.kernels.lifetimes.calendar_queue import (
    NEVER,
    Calendar,
    empty_calendar,
    grown_calendar,
    next_due,
    schedule,
)
from eventide.kernels.lifetimes.emitted import Arriving, Emitted, emit, is_full
from eventide.kernels.lifetimes.expiring import PARTITIONS, stretched

USED, FREE, FOLLOWED = 0, 1, 2
"""What stands in `facts`: how many handles have ever been used, how many of those are free, and
how many values have a successor."""


class Shown(NamedTuple):
    """By handle of a value: its words, the tuple that is shown, and the one to follow.

    The calendar has the expiry of the one that is shown. There is none to follow if its expiry is
    not later.
    """

    keys: KeyTable
    calendar: Calendar
    first: Int64s
    second: Int64s
    ids: Int64s
    rows: Int64s
    next_exps: Int64s
    next_ids: Int64s
    next_rows: Int64s
    alive: Bools
    free: Int32s
    facts: Int64s


def nothing_shown(span_us: int) -> Shown:
    """Return a state without values, for lifetimes up to `span_us`."""
    none = np.zeros(0, np.int64)
    return Shown(
        empty_table(),
        empty_calendar(max(1, span_us), PARTITIONS, 0),
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        np.zeros(0, np.bool_),
        np.zeros(0, np.int32),
        np.zeros(3, np.int64),
    )


def roomy_shown(shown: Shown, more: int, lifetime_us: int) -> Shown:
    """Return the state with room for so many more values, whose tuples live so long."""
    wanted = int(shown.facts[USED] - shown.facts[FREE]) + more
    columns: dict[str, Any] = {
        name: longer(getattr(shown, name), wanted) for name in Shown._fields[2:-1]
    }
    calendar = grown_calendar(shown.calendar, len(columns["first"]))
    calendar = stretched(calendar, lifetime_us, columns["alive"])
    return shown._replace(calendar=calendar, keys=roomy(shown.keys, more), **columns)


@allocating_nothing
def follow_shown(
    shown: Shown, source: Arriving, until: int, progress: Int64s, out: Emitted
) -> bool:
    """Take in tuples that come, and what expires before `until`, in order of time.

    Whether it is done; if not there was no room left, and it goes on when called again.
    `progress` says how far the tuples are read.
    """
    facts, exps = shown.facts, shown.calendar.exps
    while not is_full(out):
        place = progress[0]
        arrival = source.at[place] if place < len(source.at) else NEVER
        handle = next_due(shown.calendar, min(arrival, np.int64(until - 1)))
        if handle >= 0:
            instant = exps[handle]
            if shown.next_exps[handle] <= instant:
                remove(shown.keys, shown.first[handle], shown.second[handle])
                shown.alive[handle] = False
                shown.free[facts[FREE]] = handle
                facts[FREE] += 1
                continue
            exp = shown.next_exps[handle]
            shown.ids[handle] = shown.next_ids[handle]
            shown.rows[handle] = shown.next_rows[handle]
            facts[FOLLOWED] -= 1
        elif arrival == NEVER:
            return True
        else:
            progress[0] += 1
            instant, exp = arrival, source.exp[place]
            handle = find(shown.keys, source.first[place], source.second[place])
            if handle >= 0:
                followed = shown.next_exps[handle] > exps[handle]
                if exp > exps[handle] and (not followed or exp > shown.next_exps[handle]):
                    facts[FOLLOWED] += not followed
                    shown.next_exps[handle] = exp
                    shown.next_ids[handle] = source.id[place]
                    shown.next_rows[handle] = source.rows[place]
                continue
            if facts[FREE] > 0:
                facts[FREE] -= 1
                handle = np.int64(shown.free[facts[FREE]])
            else:
                handle = facts[USED]
                facts[USED] += 1
            put(shown.keys, source.first[place], source.second[place], handle)
            shown.alive[handle] = True
            shown.first[handle] = source.first[place]
            shown.second[handle] = source.second[place]
            shown.ids[handle] = source.id[place]
            shown.rows[handle] = source.rows[place]
        shown.next_exps[handle] = exp
        schedule(shown.calendar, handle, exp)
        emit(out, instant, exp, 1, shown.ids[handle], shown.rows[handle])
    return False
