"""Aggregates of groups over sliding windows: partial results of panes, and the resulting rows.

All tuples of a group that expire at the same refresh are a pane, whenever they came.

running     counts and sums: totals, from which a pane that expires is subtracted. They are exact
            (kernels/aggregates/exact_sums.py), so the row depends only on the present values
staircase   minima and maxima: the partial results that can still become one
fading      decayed sums: a pane has its sum as of its last refresh, and all panes are added up
            at each refresh

If tuples expire in the order in which they come, panes wait in one queue for all groups. Otherwise,
and where panes are added up, each group has a list of its own, and a ring knows which of them are
due.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, call_lean, inline, lean_kernel
from eventide.kernels.groups.sliding import COUNTED, DOUBLES, INTEGERS, SQUARES, widen_part
from eventide.kernels.groups.tables import (
    COUNT,
    EMITTED,
    HEAD,
    SEEN,
    GroupTables,
    emit_row,
    set_row,
)
from eventide.kernels.panes.entries import (
    Arrived,
    add_total,
    apply_entry,
)
from eventide.kernels.panes.lists import (
    STEP,
    climb,
    has_room,
)
from eventide.kernels.panes.reading import (
    HIGHEST,
    LOWEST,
    PANES,
    QUEUED,
    REF,
    ROWS,
    WIDE,
    Kept,
    read_slides,
)
from eventide.kernels.panes.ring import (
    CLOCK,
    DUE,
    LATER,
    LIVING,
    MOVING,
    NEVER,
    NEXT,
    UNTIL,
    WIDTH,
    Ring,
    link,
    next_due,
    schedule,
    unlink,
)
from eventide.kernels.panes.waiting import (
    END,
    FRONT,
    OFFSET,
    OWNER,
    Queue,
    drop_endless,
    drop_panes,
    drop_steps,
    put_in_pane,
    put_in_queue,
    reserve_pane,
    settle,
)
from eventide.kernels.slabs import ROOM, Slabs, release, widen

DONE, NO_ROOM, NO_QUEUE, FULL = range(4)
"""How a fold ends: it is done, or goes on with more room in the pool, in the queue or for rows."""

PLACE, PART, INSTANT, SINCE, SETTLED, TOUCHED, EMITTED_ROWS, EMPTIED, PROGRESS = range(9)
"""The contents of the facts of a progress: the next arrival and its part; the current instant or
never, from where on its entries stand in the queue, and up to where they are in the totals; the
number of groups touched, rows written and groups emptied."""


class Unfolded(NamedTuple):
    """How far arrivals have been applied, and which groups were touched and emptied."""

    facts: Int64s
    touched: Int64s
    emptied: Int64s
    row: Int64s


@call_lean
def empty_group(
    groups: GroupTables, slabs: Slabs, ring: Ring, times: Int64s, group: int, fades: bool
) -> None:
    """Clear the state of a group."""
    groups.about[group, COUNT] = 0
    for part in range(groups.tallies.shape[1]):
        for tally in range(4):
            groups.tallies[group, part, tally] = 0
        release(slabs.words, slabs.notes, slabs.free, group * groups.tallies.shape[1] + part)
    if fades:
        unlink(ring.ends, len(ring.ends) - 1, times, group, LATER)
        ring.facts[LIVING] -= 1


@inline
def after_expiry(
    kept: Kept,
    groups: GroupTables,
    slabs: Slabs,
    ring: Ring,
    times: Int64s,
    group: int,
    now: int,
    done: Unfolded,
) -> None:
    """Mark a group to be read after something of it expired, and forget it if nothing is left."""
    about, facts = groups.about, done.facts
    if times[group, UNTIL] <= now and about[group, SEEN] != 1:
        empty_group(groups, slabs, ring, times, group, kept.entry[REF] >= 0)
        done.emptied[facts[EMPTIED]] = group
        facts[EMPTIED] += 1
    if about[group, SEEN] != 1:
        about[group, SEEN] = 1
        done.touched[facts[TOUCHED]] = group
        facts[TOUCHED] += 1


@inline
def has_lists(kept: Kept) -> bool:
    """Whether panes wait in lists of their groups."""
    return len(kept.parts) > 0 and kept.parts[len(kept.parts) - 1, 0] == PANES


@call_lean
def expire_queue(
    kept: Kept,
    groups: GroupTables,
    slabs: Slabs,
    ring: Ring,
    queue: Queue,
    times: Int64s,
    now: int,
    done: Unfolded,
) -> None:
    """Remove the panes in front of the queue that expire."""
    entries, facts = queue
    words, notes, width = slabs.words, slabs.notes, kept.entry[WIDE]
    place = facts[FRONT]
    while place < facts[END] and entries[place] <= now:
        group = entries[place + OWNER]
        if kept.entry[ROWS] >= 0:
            groups.about[group, COUNT] -= entries[place + kept.entry[ROWS]]
        apply_entry(entries, place, kept, groups.tallies, words, notes, group, -1)
        place += width
    # A group may have several entries of a pane: all have to be subtracted before it is
    # forgotten.
    for gone in range(facts[FRONT], place, width):
        group = entries[gone + OWNER]
        drop_steps(kept, words, notes, group, now, NEVER)
        after_expiry(kept, groups, slabs, ring, times, group, now, done)
    facts[FRONT] = place
    done.facts[SINCE] = done.facts[SETTLED] = facts[END] + facts[OFFSET]


@call_lean
def expire_due(
    kept: Kept,
    groups: GroupTables,
    slabs: Slabs,
    ring: Ring,
    times: Int64s,
    now: int,
    done: Unfolded,
) -> None:
    """Remove what is due now in the groups of the ring."""
    words, notes = slabs.words, slabs.notes
    listed = has_lists(kept)
    group = ring.ends[(now // ring.facts[WIDTH]) & (len(ring.ends) - 2), 0]
    while group >= 0:
        following = times[group, NEXT]
        if times[group, DUE] == now:
            due = times[group, UNTIL] if times[group, UNTIL] > now else NEVER
            due = drop_steps(kept, words, notes, group, now, due)
            if listed:
                due = drop_panes(kept, groups, words, notes, group, now, due)
            schedule(ring.ends, ring.facts, times, group, int(due), now)
            after_expiry(kept, groups, slabs, ring, times, group, now, done)
        group = following


@inline
def put_in_part(
    slabs: Slabs, groups: GroupTables, kept: Kept, arrived: Arrived, arrival: int, part: int
) -> bool:
    """Put an arrival into a part of its group; False, and nothing done, if there is no room."""
    words, notes = slabs.words, slabs.notes
    kind, column = kept.parts[part, 0], kept.parts[part, 1]
    group = int(arrived.groups[arrival])
    first_owner = int(group * len(kept.parts))
    owner = first_owner + part
    done = True
    if kind == PANES:
        # For values that never go, totals are enough.
        if arrived.exp[arrival] != NEVER or kept.entry[REF] >= 0:
            done = put_in_pane(slabs, first_owner, kept, arrived, arrival)
    elif column < 0 or not arrived.valid[column, arrival]:
        done = True
    elif kind in (HIGHEST, LOWEST):
        done = has_room(words, notes, owner, STEP) or widen(
            slabs, owner, notes[owner, ROOM] + STEP, np.int64(0)
        )
        if done:
            word = arrived.values[column, arrival]
            climb(words, notes, owner, arrived.exp[arrival], word if kind == HIGHEST else ~word)
    elif kind in (COUNTED, INTEGERS, DOUBLES, SQUARES) and kept.entry[QUEUED] == 0:
        word = arrived.values[column, arrival]
        tally = groups.tallies[group, part]
        while not add_total(words, notes, owner, tally, kind, word):
            if not widen_part(slabs, owner, None, kind, word):
                done = False
                break
    return done


@inline
def note_arrival(
    about: Int64s,
    kept: Kept,
    ring: Ring,
    times: Int64s,
    group: int,
    exp: int,
    now: int,
    queued: bool,
) -> None:
    """Count an arrival that is in all parts of its group, and schedule its expiry."""
    if about[group, COUNT] == 0:
        times[group, UNTIL] = exp
        if kept.entry[REF] >= 0:
            link(ring.ends, len(ring.ends) - 1, times, group, LATER)
            ring.facts[LIVING] += 1
    # If the number of rows is not needed, it is enough to know that there are some.
    about[group, COUNT] = about[group, COUNT] + 1 if kept.entry[ROWS] >= 0 else 1
    times[group, UNTIL] = max(times[group, UNTIL], exp)
    if exp < times[group, DUE] and not queued:
        schedule(ring.ends, ring.facts, times, group, exp, now)


@inline
def take_arrival(
    slabs: Slabs,
    groups: GroupTables,
    queue: Queue,
    ring: Ring,
    times: Int64s,
    kept: Kept,
    arrived: Arrived,
    done: Unfolded,
) -> int:
    """Put the next arrival into all parts of its group; return what there is no room in."""
    facts, about = done.facts, groups.about
    arrival = facts[PLACE]
    group, exp = int(arrived.groups[arrival]), arrived.exp[arrival]
    for part in range(facts[PART], len(kept.parts)):
        facts[PART] = part
        if not put_in_part(slabs, groups, kept, arrived, arrival, part):
            return NO_ROOM
    facts[PART] = len(kept.parts)
    queued = kept.entry[QUEUED] == 1
    if queued and not put_in_queue(queue, times, kept, arrived, arrival, facts[SINCE]):
        return NO_QUEUE
    subtracted = has_lists(kept) and exp != NEVER
    if subtracted and not reserve_pane(slabs, int(group * len(kept.parts)), kept, exp):
        return NO_ROOM
    facts[PART] = 0
    note_arrival(about, kept, ring, times, group, exp, arrived.at[arrival], queued)
    if about[group, SEEN] != 1:
        about[group, SEEN] = 1
        done.touched[facts[TOUCHED]] = group
        facts[TOUCHED] += 1
    return DONE


@call_lean
def take_arrivals(
    slabs: Slabs,
    groups: GroupTables,
    queue: Queue,
    ring: Ring,
    times: Int64s,
    kept: Kept,
    arrived: Arrived,
    done: Unfolded,
) -> int:
    """Take all arrivals of an instant; return what there is no room in for one of them."""
    facts = done.facts
    while facts[PLACE] < len(arrived.at) and arrived.at[facts[PLACE]] == facts[INSTANT]:
        ended = take_arrival(slabs, groups, queue, ring, times, kept, arrived, done)
        if ended != DONE:
            return ended
        facts[PLACE] += 1
    return DONE


@call_lean
def touch_all(about: Int64s, ring: Ring, times: Int64s, done: Unfolded) -> None:
    """Mark all groups to be read at the end of this instant."""
    group = ring.ends[len(ring.ends) - 1, 0]
    while group >= 0:
        if about[group, SEEN] != 1:
            about[group, SEEN] = 1
            done.touched[done.facts[TOUCHED]] = group
            done.facts[TOUCHED] += 1
        group = times[group, LATER]


@call_lean
def show_touched(
    kept: Kept, groups: GroupTables, slabs: Slabs, ring: Ring, out: Int64s, done: Unfolded
) -> None:
    """Read the groups that were touched, and write the rows that go and come; there is room."""
    about, facts, row = groups.about, done.facts, done.row
    ends, now = facts[EMITTED_ROWS], facts[INSTANT]
    come = 0
    for i in range(facts[TOUCHED]):
        group = done.touched[i]
        about[group, SEEN] = 0
        rows = about[group, COUNT]
        changed = about[group, EMITTED] != (1 if rows > 0 else 0)
        if rows > 0:
            moves = read_slides(
                kept, rows, groups.tallies, slabs.words, slabs.notes, group, now, row
            )
            if moves:
                ring.facts[MOVING] = 1
            for word in range(len(row)):
                changed = changed or row[word] != about[group, HEAD + word]
        if changed and about[group, EMITTED] == 1:
            emit_row(about, group, now, -1, out, ends)
            ends += 1
        if changed:
            set_row(about, group, now, row)
        if changed and rows > 0:
            done.touched[come] = group
            come += 1
    for i in range(come):
        emit_row(about, done.touched[i], now, 1, out, ends)
        ends += 1
    facts[EMITTED_ROWS], facts[TOUCHED] = ends, 0


@inline
def next_instant(
    arrived: Arrived, ring: Ring, queue: Queue, times: Int64s, slide: int, until: int, place: int
) -> np.int64:
    """Return the next instant before `until` at which something comes, goes or fades, or never."""
    facts = ring.facts
    found = arrived.at[place] if place < len(arrived.at) else NEVER
    found = min(found, next_due(ring.ends, facts, times, int(min(found, np.int64(until - 1)))))
    if queue.facts[FRONT] < queue.facts[END]:
        found = min(found, queue.words[queue.facts[FRONT]])
    if facts[MOVING] == 1:
        found = min(found, (facts[CLOCK] // slide + 1) * slide)
    return found if found < until else NEVER


@lean_kernel
def fold_slides(
    arrived: Arrived,
    kept: Kept,
    groups: GroupTables,
    times: Int64s,
    slabs: Slabs,
    ring: Ring,
    queue: Queue,
    out: Int64s,
    done: Unfolded,
    slide: int,
    until: int,
) -> int:
    """Take arrivals and write the rows that come and go before `until`; return how it ended.

    If it is not done, the same call goes on with more room.
    """
    facts, about = done.facts, groups.about
    queued = kept.entry[QUEUED] == 1
    while True:
        if facts[INSTANT] == NEVER:
            now = int(next_instant(arrived, ring, queue, times, slide, until, facts[PLACE]))
            if now == NEVER:
                return DONE
            facts[INSTANT] = now
            if queued:
                expire_queue(kept, groups, slabs, ring, queue, times, now, done)
            else:
                expire_due(kept, groups, slabs, ring, times, now, done)
        now = facts[INSTANT]
        ended = take_arrivals(slabs, groups, queue, ring, times, kept, arrived, done)
        if ended != DONE:
            return ended
        if queued:
            facts[SETTLED] = settle(kept, groups.tallies, slabs, queue, facts[SETTLED])
            if facts[SETTLED] < queue.facts[END] + queue.facts[OFFSET]:
                return NO_ROOM
            drop_endless(queue, facts[SINCE])
        if ring.facts[MOVING] == 1:
            touch_all(about, ring, times, done)
        if facts[EMITTED_ROWS] + 2 * facts[TOUCHED] > out.shape[1]:
            return FULL
        ring.facts[MOVING] = 0
        show_touched(kept, groups, slabs, ring, out, done)
        ring.facts[CLOCK] = now
        facts[INSTANT] = NEVER
