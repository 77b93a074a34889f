"""One living tuple for each value, and a successor for when it expires.

The successor is the tuple that lives longest of those that came since. No other one is needed: it
lives as long as any of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s, lean_kernel
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
from eventide.kernels.lifetimes.expiring import PARTITIONS, widened

USED, FREE, FOLLOWED = 0, 1, 2
"""The contents of `facts`: how many handles have ever been used, how many of those are free, and
how many values have a successor."""


class Representatives(NamedTuple):
    """By handle of a value: its words, the tuple in the answer, and its successor.

    The calendar has the expiry of the tuple in the answer. There is no successor if its expiry is
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


def no_representatives(longest_us: int) -> Representatives:
    """Return a state without values, for lifetimes up to `longest_us`."""
    none = np.zeros(0, np.int64)
    return Representatives(
        empty_table(),
        empty_calendar(max(1, longest_us), PARTITIONS, 0),
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


def with_room(chosen: Representatives, more: int, lifetime_us: int) -> Representatives:
    """Return the state with room for this many more values, for tuples that live this long."""
    wanted = int(chosen.facts[USED] - chosen.facts[FREE]) + more
    columns: dict[str, Any] = {
        name: longer(getattr(chosen, name), wanted) for name in Representatives._fields[2:-1]
    }
    calendar = grown_calendar(chosen.calendar, len(columns["first"]))
    calendar = widened(calendar, lifetime_us, columns["alive"])
    return chosen._replace(calendar=calendar, keys=roomy(chosen.keys, more), **columns)


@lean_kernel
def follow_representatives(
    chosen: Representatives, source: Arriving, until: int, progress: Int64s, out: Emitted
) -> bool:
    """Take tuples that come, and expiries before `until`, in order of time.

    Return whether it is done; if not, there was no room left, and it goes on when called again.
    `progress` has how far the tuples are read.
    """
    facts, exps = chosen.facts, chosen.calendar.exps
    while not is_full(out):
        place = progress[0]
        arrival = source.at[place] if place < len(source.at) else NEVER
        handle = next_due(chosen.calendar, min(arrival, np.int64(until - 1)))
        if handle >= 0:
            instant = exps[handle]
            if chosen.next_exps[handle] <= instant:
                remove(chosen.keys, chosen.first[handle], chosen.second[handle])
                chosen.alive[handle] = False
                chosen.free[facts[FREE]] = handle
                facts[FREE] += 1
                continue
            exp = chosen.next_exps[handle]
            chosen.ids[handle] = chosen.next_ids[handle]
            chosen.rows[handle] = chosen.next_rows[handle]
            facts[FOLLOWED] -= 1
        elif arrival == NEVER:
            return True
        else:
            progress[0] += 1
            instant, exp = arrival, source.exp[place]
            handle = find(chosen.keys, source.first[place], source.second[place])
            if handle >= 0:
                followed = chosen.next_exps[handle] > exps[handle]
                if exp > exps[handle] and (not followed or exp > chosen.next_exps[handle]):
                    facts[FOLLOWED] += not followed
                    chosen.next_exps[handle] = exp
                    chosen.next_ids[handle] = source.id[place]
                    chosen.next_rows[handle] = source.rows[place]
                continue
            if facts[FREE] > 0:
                facts[FREE] -= 1
                handle = np.int64(chosen.free[facts[FREE]])
            else:
                handle = facts[USED]
                facts[USED] += 1
            put(chosen.keys, source.first[place], source.second[place], handle)
            chosen.alive[handle] = True
            chosen.first[handle] = source.first[place]
            chosen.second[handle] = source.second[place]
            chosen.ids[handle] = source.id[place]
            chosen.rows[handle] = source.rows[place]
        chosen.next_exps[handle] = exp
        schedule(chosen.calendar, handle, exp)
        emit(out, instant, exp, 1, chosen.ids[handle], chosen.rows[handle])
    return False
