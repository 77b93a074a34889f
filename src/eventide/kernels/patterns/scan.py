"""Matches of patterns whose conditions read single rows: two passes, no backtracking.

Going backwards over the rows, the first pass notes for every place between two rows from which
nodes of the automaton a match can be completed, and from which some path is still open where the
known rows end (`notes.py`). Going forwards, the second pass takes at each node the first step that
the notes allow (`walk.py`). So the time is at most rows times nodes, for every pattern.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, lean_kernel
from eventide.kernels.patterns.notes import (
    MOST_BITS,
    KeyPlace,
    Notes,
    Predecessors,
    note_bits,
    note_ends,
)
from eventide.kernels.patterns.tables import (
    NEXT_ROW,
    OK,
    OUT_OF_BUDGET,
    PAST_LAST,
    Partitions,
    Rows,
    Rules,
    Steps,
)
from eventide.kernels.patterns.walk import (
    FACTS,
    HEAD,
    NUMBER,
    OWN,
    START,
    Paths,
    Walked,
    WalkRoom,
    walk_key,
)

FEW_ROWS = 1 << 16
"""So many rows need little room."""

# Places in the progress of a scan.
KEY_AT, NOTED, COUNT, ELEMENTS, STATUS, WHERE = range(6)


class Scanned(NamedTuple):
    """Matches as paths that may share their tails.

    A match of `key` begins at row `start` and has a `number`. Its path begins with element `head`
    (-1 for an empty match) and goes on with `next` until -1. The elements made for match m lie
    between own[m] and own[m + 1]. `undecided[k]` is the first start row of key k that is not
    decided yet, `numbers[k]` counts its matches.
    """

    key: Int64s
    start: Int64s
    number: Int64s
    head: Int64s
    own: Int64s
    row: Int64s
    node: Int64s
    next: Int64s
    undecided: Int64s
    numbers: Int64s
    status: int
    where: int


class ScanRoom(NamedTuple):
    """The output of a scan: notes of one key, matches and paths of all, and its progress.

    `progress` has the current key, the first place of that key that is noted (-1 before any is),
    the number of matches and elements, the status and its start row.
    """

    notes: Notes
    walk: WalkRoom
    key: Int64s
    undecided: Int64s
    numbers: Int64s
    progress: Int64s


@lean_kernel
def _scan_on(
    steps: Steps,
    before: Predecessors,
    rows: Rows,
    partitions: Partitions,
    rules: Rules,
    last: int,
    room: ScanRoom,
) -> None:
    """Go on with the scan of the keys before `last`, for about as long as a piece may take."""
    nodes = len(steps.first) - 1
    notes, progress = room.notes, room.progress
    bitwise = len(notes.sure) > 0
    cost = 4 if bitwise else 1 + len(steps.variable)
    budget = rules.piece
    progress[STATUS] = OK
    while progress[KEY_AT] < last:
        k = progress[KEY_AT]
        low, high = partitions.offsets[k], partitions.offsets[k + 1]
        begin, known = partitions.begin[k], partitions.known[k]
        budget -= 1
        if begin > known or begin >= high:
            progress[KEY_AT] += 1
            continue
        place = KeyPlace(low, high, begin, known, partitions.whole[k])
        if progress[NOTED] < 0:
            progress[NOTED] = known + 1
        if progress[NOTED] > begin:
            if budget < 0:
                progress[STATUS] = OUT_OF_BUDGET
                return
            first = max(begin, progress[NOTED] - 1 - budget // cost)
            noted = (first, progress[NOTED])
            budget -= cost * (progress[NOTED] - first)
            if bitwise:
                note_bits(before, rows.masks, place, rules.ended, noted, notes.sure, notes.maybe)
            else:
                note_ends(steps, rows.masks, place, rules.ended, noted, notes.ends, notes.opens)
            progress[NOTED] = first
            if first > begin:
                continue
            if len(room.walk.made):
                room.walk.made[: (known - begin + 1) * nodes] = -1
        first = progress[COUNT]
        before_at, before_elements = room.undecided[k], progress[ELEMENTS]
        so_far = Walked(before_at, first, before_elements, room.numbers[k], OK)
        walked = walk_key(steps, rows, place, rules, notes, room.walk, so_far, budget)
        budget -= walked.at - before_at
        budget -= cost * (walked.elements - before_elements) // nodes
        room.key[first : walked.matches] = k
        room.numbers[k] = walked.number
        room.undecided[k] = walked.at
        progress[COUNT] = walked.matches
        progress[ELEMENTS] = walked.elements
        progress[STATUS] = walked.status
        progress[WHERE] = walked.at
        if walked.status != OK:
            return
        progress[KEY_AT] += 1
        progress[NOTED] = -1


def room_for(partitions: Partitions, first: int, last: int, most: int) -> tuple[int, int]:
    """Return the most places that a key has to be noted at, and how many rows may start a match.

    Of few rows, fewer than `most`, it may be more: that costs less than to look at each key.
    """
    rows = int(partitions.offsets[last] - partitions.offsets[first])
    if rows < min(FEW_ROWS, most):
        return rows + 1, rows
    begin = partitions.begin[first:last]
    longest = int((partitions.known[first:last] - begin).max(initial=-1)) + 1
    starts = int(np.maximum(partitions.offsets[first + 1 : last + 1] - begin, 0).sum())
    return longest, starts


def scan(
    steps: Steps,
    before: Predecessors,
    rows: Rows,
    partitions: Partitions,
    rules: Rules,
    key_range: tuple[int, int],
    most_elements: int,
) -> Scanned:
    """Find the matches of keys [key_range[0], key_range[1]) from their first undecided rows on.

    After about `most_elements` the scan pauses at a start row; called again, it goes on there.
    """
    nodes = len(steps.first) - 1
    longest, starts = room_for(partitions, *key_range, most_elements)
    bitwise = rules.within_us < 0 and nodes <= MOST_BITS
    notes = Notes(
        np.empty(longest if bitwise else 0, np.uint64),
        np.empty(longest if bitwise else 0, np.uint64),
        np.empty(0 if bitwise else longest * nodes, np.int32),
        np.empty(0 if bitwise else longest * nodes, np.bool_),
    )
    # Matches at neighbouring rows run into the same paths: there, each is walked once.
    shares = rules.skip_to == NEXT_ROW and rules.within_us < 0
    # What is not written to costs nothing.
    size = max(min(starts, most_elements), longest)
    if rules.skip_to != PAST_LAST:
        size = max(most_elements, longest)
    paths = Paths(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))
    made = np.empty(longest * nodes if shares else 0, np.int64)
    matches = np.empty((FACTS, starts + 1), np.int64)
    matches[OWN, 0] = 0
    room = ScanRoom(
        notes,
        WalkRoom(matches, paths, made),
        np.empty(starts, np.int64),
        np.array(partitions.begin),
        np.array(partitions.numbers),
        np.array([key_range[0], -1, 0, 0, OUT_OF_BUDGET, 0], np.int64),
    )
    while room.progress[STATUS] == OUT_OF_BUDGET:
        _scan_on(steps, before, rows, partitions, rules, key_range[1], room)
    count, elements = int(room.progress[COUNT]), int(room.progress[ELEMENTS])
    return Scanned(
        room.key[:count],
        matches[START, :count],
        matches[NUMBER, :count],
        matches[HEAD, :count],
        matches[OWN, : count + 1],
        paths.row[:elements],
        paths.node[:elements],
        paths.next[:elements],
        room.undecided,
        room.numbers,
        int(room.progress[STATUS]),
        int(room.progress[WHERE]),
    )
