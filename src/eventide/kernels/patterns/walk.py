"""The walk over the rows of one key: at each node, the first step that the notes allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, inline, inline_lean
from eventide.kernels.patterns.notes import KeyPlace, Notes, holds, may_start
from eventide.kernels.patterns.tables import (
    NEXT_ROW,
    NO_SKIP_TARGET,
    OK,
    OUT_OF_BUDGET,
    PAST_LAST,
    PAUSED,
    SKIP_TO_START,
    TO_FIRST,
    Rows,
    Rules,
    Steps,
)

NO_MATCH, UNDECIDED, WALKING = -1, -2, -3
"""Instead of the end of a match: there is none, only later rows can tell, and it goes on."""
NOWHERE = -1
# What is known of a match; OWN has one place more, the first of which is zero.
START, NUMBER, HEAD, OWN = range(4)
FACTS = 4


class Paths(NamedTuple):
    """Elements: a row, the node that taking it leads to, and the element that follows, or -1."""

    row: Int64s
    node: Int64s
    next: Int64s


class WalkRoom(NamedTuple):
    """The output of a walk: matches, their paths, and elements of paths by note.

    Matches are arrays of start rows, numbers, heads and own, as in `Scanned`. `made` is empty
    unless matches at neighbouring rows share their paths.
    """

    matches: Int64s
    paths: Paths
    made: Int64s


class Walked(NamedTuple):
    """The progress of a walk: its start row, and how many matches and elements there are.

    `number` is the number of the key's last match; `status` says why the walk stopped.
    """

    at: int
    matches: int
    elements: int
    number: int
    status: int


@inline
def limit_from(rows: Rows, at: int, high: int, limit: int, last_us: int) -> int:
    """Return the first row from a limit on that is later than `last_us`."""
    limit = max(limit, at)
    while limit < high and rows.ts[limit] <= last_us:
        limit += 1
    return limit


@inline
def may_wait(place: KeyPlace, rules: Rules, limit: int, last_us: int, waits_for_end: bool) -> bool:
    """Whether later rows can still belong to a match that has to end by `last_us`."""
    if limit < place.high or place.known < place.high:
        # Rows beyond the limit are there: none within it will follow.
        return place.known < limit
    return waits_for_end or rules.watermark_us <= last_us


@inline
def way_on(
    steps: Steps, rows: Rows, place: KeyPlace, ended: bool, notes: Notes, node: int, i: int,
    limit: int, waits: bool,
) -> tuple[int, int]:  # fmt: skip
    """Return the first step from a node before row i: the node it leads to, and WALKING.

    Otherwise NOWHERE, and where the match ends, NO_MATCH or UNDECIDED.
    """
    taken, end = NOWHERE, NO_MATCH
    nodes, begin = len(steps.first) - 1, place.begin
    for step in range(steps.first[node], steps.first[node + 1]):
        if steps.at_start[step] and not (place.whole and i == place.low):
            continue
        variable = steps.variable[step]
        if variable < 0:
            if not steps.at_end[step] or (ended and i == place.high):
                end = i
                break
            if waits and i == place.high:
                end = UNDECIDED
                break
        elif i >= place.known:
            if waits:
                end = UNDECIDED
                break
        elif i < limit and holds(rows.masks[i], variable):
            target = steps.target[step]
            if len(notes.sure):
                sure = holds(notes.sure[i + 1 - begin], target)
                is_open = holds(notes.maybe[i + 1 - begin], target)
            else:
                note = (i + 1 - begin) * nodes + target
                sure = notes.ends[note] <= limit - begin
                is_open = notes.opens[note]
            if sure:
                taken, end = target, WALKING
                break
            if waits and is_open:
                end = UNDECIDED
                break
    return taken, end


@inline
def walk_path(
    steps: Steps, rows: Rows, place: KeyPlace, rules: Rules, notes: Notes, room: WalkRoom,
    at: int, limit: int, waits: bool, elements: int, budget: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Go from node to node, from the first one before row `at`, and write the path.

    Returns where the match ends, NO_MATCH or UNDECIDED; the element of another path that it runs
    into, or -1; how many elements there are; and what is left of the budget.
    """
    begin, paths, made = place.begin, room.paths, room.made
    nodes = len(steps.first) - 1
    joined, i, node, end = -1, at, 0, WALKING
    while end == WALKING:
        budget -= steps.first[node + 1] - steps.first[node]
        taken, end = way_on(steps, rows, place, rules.ended, notes, node, i, limit, waits)
        if taken < 0:
            break
        i += 1
        node = taken
        if len(made):
            note = (i - begin) * nodes + node
            if made[note] >= 0:
                joined, end = made[note], i
                break
            made[note] = elements
        paths.row[elements] = i - 1
        paths.node[elements] = node
        paths.next[elements] = elements + 1
        elements += 1
    return end, joined, elements, budget


@inline
def skip_target(steps: Steps, paths: Paths, rules: Rules, first: int, elements: int) -> int:
    """Return the first or last row of a match that belongs to a variable to skip to, -1 if none."""
    found = -1
    skip_set = np.uint64(rules.skip_set)
    for element in range(first, elements):
        if holds(skip_set, steps.node_variable[paths.node[element]]):
            found = paths.row[element]
            if rules.skip_to == TO_FIRST:
                break
    return found


@inline_lean
def walk_key(
    steps: Steps, rows: Rows, place: KeyPlace, rules: Rules, notes: Notes, room: WalkRoom,
    so_far: Walked, budget: int,
) -> Walked:  # fmt: skip
    """Find the matches of one key whose notes exist.

    The walk stops early when there is no room for the path of another match, or when it has taken
    `budget` steps.
    """
    begin, known, high = place.begin, place.known, place.high
    at, count, elements, number, status = so_far
    matches, paths = room.matches, room.paths
    nodes = len(steps.first) - 1
    limit = high if rules.within_us < 0 else begin
    waits_for_end = bool(steps.at_end.any())
    while at < high and at <= known:
        if budget < 0:
            return Walked(at, count, elements, number, OUT_OF_BUDGET)
        budget -= 1
        # Most rows start nothing, and the notes say so at once.
        if not may_start(notes, at - begin, nodes):
            at += 1
            continue
        if elements + known - at > len(paths.row):
            return Walked(at, count, elements, number, PAUSED)
        waits = not rules.ended
        if rules.within_us >= 0:
            last_us = rows.ts[at] + rules.within_us
            limit = limit_from(rows, at, high, limit, last_us)
            waits = waits and may_wait(place, rules, limit, last_us, waits_for_end)
        first = elements
        end, joined, elements, budget = walk_path(
            steps, rows, place, rules, notes, room, at, limit, waits, elements, budget
        )
        if end == UNDECIDED:
            return Walked(at, count, first, number, OK)
        if end == NO_MATCH:
            at += 1
            continue
        if elements > first:
            paths.next[elements - 1] = joined
        number += 1
        matches[START, count] = at
        matches[NUMBER, count] = number
        matches[HEAD, count] = first if elements > first else joined
        matches[OWN, count + 1] = elements
        count += 1
        if rules.skip_to == PAST_LAST:
            at = max(end, at + 1)
        elif rules.skip_to == NEXT_ROW:
            at += 1
        else:
            found = skip_target(steps, paths, rules, first, elements)
            if found < 0 or found == at:
                status = NO_SKIP_TARGET if found < 0 else SKIP_TO_START
                return Walked(at, count, elements, number, status)
            at = found
    return Walked(at, count, elements, number, OK)
