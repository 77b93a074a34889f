"""Panes until they expire: in a list of their group, a queue of all groups, or a staircase."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, call_lean, inline, lean_kernel
from eventide.kernels.groups.tables import COUNT, GroupTables
from eventide.kernels.panes.entries import (
    Arrived,
    apply_entry,
    begin_entry,
    joins,
    put_in_entry,
    reserve_digits,
)
from eventide.kernels.panes.lists import STEP, drop_first, has_room, open_entry, place_behind
from eventide.kernels.panes.reading import HIGHEST, LOWEST, ROWS, WIDE, Kept
from eventide.kernels.panes.ring import LAST, NEVER
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START, Slabs, widen

FRONT, END, OFFSET = range(3)
"""The contents of the facts of a queue: the places of its first word and behind its last, and how
many words have been in front of its array before."""
OWNER = 1
"""Where the group stands in an entry of a queue."""


class Queue(NamedTuple):
    """Entries of all groups in order of expiry."""

    words: Int64s
    facts: Int64s


@call_lean
def put_in_pane(slabs: Slabs, first_owner: int, kept: Kept, arrived: Arrived, arrival: int) -> bool:
    """Put an arrival into the pane of its expiry; False, and nothing done, if there is no room."""
    words, notes = slabs.words, slabs.notes
    exp, width = arrived.exp[arrival], kept.entry[WIDE]
    owner = first_owner + len(kept.parts) - 1
    first = notes[owner, START] + notes[owner, BASE]
    place = place_behind(words, first, first + notes[owner, LENGTH], width, exp)
    found = place > first and words[place - width] == exp
    # Values that never expire are never subtracted: only decayed sums are read from their entry.
    if found and (exp == NEVER or joins(words, place - width, kept, arrived, arrival)):
        place -= width
    else:
        room = has_room(words, notes, owner, width)
        if not (room or widen(slabs, owner, notes[owner, ROOM] + width, np.int64(0))):
            return False
        place = notes[owner, START] + notes[owner, BASE] + place - first
        open_entry(words, notes, owner, place, width)
        begin_entry(words, place, kept, exp, arrived.at[arrival])
    put_in_entry(words, place, kept, arrived, arrival)
    return True


@call_lean
def reserve_pane(slabs: Slabs, first_owner: int, kept: Kept, exp: int) -> bool:
    """Give totals the digits to subtract the last entry of a pane; False without room."""
    words, notes, width = slabs.words, slabs.notes, kept.entry[WIDE]
    owner = first_owner + len(kept.parts) - 1
    first = notes[owner, START] + notes[owner, BASE]
    place = place_behind(words, first, first + notes[owner, LENGTH], width, exp)
    group = first_owner // len(kept.parts)
    return reserve_digits(words, place - width, kept, slabs, group)


@call_lean
def put_in_queue(
    queue: Queue, times: Int64s, kept: Kept, arrived: Arrived, arrival: int, since: int
) -> bool:
    """Put an arrival into an entry of its group, or a new one at the end; False without room.

    Entries from `since` on are of this instant: they are added to the totals at its end.
    """
    words, facts = queue
    exp, width = arrived.exp[arrival], kept.entry[WIDE]
    group = int(arrived.groups[arrival])
    done = True
    place = times[group, LAST] - facts[OFFSET]
    found = times[group, LAST] >= since and words[place] == exp
    if not (found and joins(words, place, kept, arrived, arrival)):
        place = facts[END]
        done = bool(place + width <= len(words))
        if done:
            facts[END] += width
            begin_entry(words, place, kept, exp, arrived.at[arrival])
            words[place + OWNER] = group
            times[group, LAST] = place + facts[OFFSET]
    if done:
        put_in_entry(words, place, kept, arrived, arrival)
    return done


@lean_kernel
def settle(kept: Kept, tallies: Int64s, slabs: Slabs, queue: Queue, since: int) -> int:
    """Add the entries from `since` on to the totals; return up to where there was room for it."""
    entries, facts = queue
    place = since - facts[OFFSET]
    while place < facts[END]:
        group = entries[place + OWNER]
        if not reserve_digits(entries, place, kept, slabs, group):
            break
        apply_entry(entries, place, kept, tallies, slabs.words, slabs.notes, group, 1)
        place += kept.entry[WIDE]
    return int(place + facts[OFFSET])


@inline
def drop_endless(queue: Queue, since: int) -> None:
    """Remove the entries from `since` on if they never expire: the totals are enough.

    Then no entry expires. Their places are not reused, because a group knows its last entry by
    place.
    """
    facts = queue.facts
    first = since - facts[OFFSET]
    if first < facts[END] and queue.words[first] == NEVER:
        facts[OFFSET] += facts[END] - first
        facts[END] = first


@call_lean
def drop_steps(
    kept: Kept, words: Int64s, notes: Int64s, group: int, now: int, following: np.int64
) -> np.int64:
    """Remove expired steps of a group's staircases; return when the next goes, or `following`."""
    for part in range(len(kept.parts)):
        if kept.parts[part, 0] in (HIGHEST, LOWEST):
            owner = group * len(kept.parts) + part
            while notes[owner, LENGTH] > 0:
                exp = words[notes[owner, START] + notes[owner, BASE]]
                if exp > now:
                    following = min(following, exp)
                    break
                drop_first(notes, owner, STEP)
    return following


@call_lean
def drop_panes(
    kept: Kept,
    groups: GroupTables,
    words: Int64s,
    notes: Int64s,
    group: int,
    now: int,
    following: np.int64,
) -> np.int64:
    """Subtract the panes of a group's list that expire; return when the next does."""
    owner = group * len(kept.parts) + len(kept.parts) - 1
    while notes[owner, LENGTH] > 0:
        place = notes[owner, START] + notes[owner, BASE]
        if words[place] > now:
            following = min(following, words[place])
            break
        if kept.entry[ROWS] >= 0:
            groups.about[group, COUNT] -= words[place + kept.entry[ROWS]]
        apply_entry(words, place, kept, groups.tallies, words, notes, group, -1)
        drop_first(notes, owner, kept.entry[WIDE])
    return following
