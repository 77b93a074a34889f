"""Matches of patterns whose conditions look at single rows: two passes, no backtracking.

Going backwards over the rows, the first pass notes for every place between two rows from which
nodes of the automaton a match can be completed, and from which some path is still open where the
known rows end. Going forwards, the second pass takes at each node the first way on that the
notes allow. So the time is rows times nodes at most, whatever the pattern.

Up to 64 nodes, a note is a word of bits. With WITHIN it matters where a match would end, as the
limit is another for each start row: then, and for larger patterns, the earliest end is noted for
each node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int64s, inlined, kernel
from eventide.kernels.patterns.tables import (
    NEXT_ROW,
    NO_SKIP_TARGET,
    OK,
    OUT_OF_BUDGET,
    PAST_LAST,
    PAUSED,
    SKIP_TO_START,
    TO_FIRST,
    Masks,
    Partitions,
    Rows,
    Rules,
    Steps,
)

NEVER = np.int32(2**31 - 1)
NO_MATCH = -1
UNDECIDED = -2
WALKING = -3
_BITS = 64
"""How many nodes a note in bits has room for."""


class Paths(NamedTuple):
    """Elements: a row, the node that taking it leads to, and the element that follows, or -1."""

    row: Int64s
    node: Int64s
    next: Int64s


class Scanned(NamedTuple):
    """Matches as paths that may share their tails.

    A match of `key` is (start row, number, head, own): its path begins with element `head` (-1
    for an empty match) and goes on with `next` until -1. The elements made for it lie between the
    `own` of the match before it and its own. `undecided[k]` is the first start row of key k that
    is not decided yet, `numbers[k]` counts its matches.
    """

    key: Int64s
    matches: Int64s
    row: Int64s
    node: Int64s
    next: Int64s
    undecided: Int64s
    numbers: Int64s
    status: int
    where: int


@inlined
def holds(mask: np.uint64, variable: int) -> bool:
    """Whether a row is a variable."""
    return bool((mask >> np.uint64(variable)) & np.uint64(1))


class Notes(NamedTuple):
    """The notes of one key about the places from `begin` on, in one of two forms.

    As bits: bit n of `sure[i - begin]` says that from node n before row i a match can be
    completed, the same bit of `maybe` that a path from there is open. Else the same is said for
    (i - begin) · nodes + n by `ends`, the earliest end less `begin`, and `opens`.
    """

    sure: Masks
    maybe: Masks
    ends: npt.NDArray[np.int32]
    opens: Bools


class Predecessors(NamedTuple):
    """Which nodes a match can come from, as bits.

    `of[t]` are the nodes with a step to t that any row may take, `first[t]` those with a step
    that only the partition's first row may take too. `of_variable[v]` are the nodes behind a row
    of v. `done` can be completed anywhere, `done_first` at the partition's start as well, and
    `done_last` at its end. `taking` are the nodes with a step that takes a row; `taking_first`
    counts those for the first row too.
    """

    of: Masks
    first: Masks
    of_variable: Masks
    done: np.uint64
    done_first: np.uint64
    done_last: np.uint64
    taking: np.uint64
    taking_first: np.uint64


@kernel
def note_bits(
    before: Predecessors,
    masks: Masks,
    place: tuple[int, int, int, int, int],
    ended: bool,
    noted: tuple[int, int],
    sure: Masks,
    maybe: Masks,
) -> None:
    """Fill the notes of one key as bits; `place` and `noted` as in `note_ends`."""
    low, high, begin, known, whole = place
    zero, one = np.uint64(0), np.uint64(1)
    if noted[1] > known:
        at_start = whole == 1 and known == low
        now = before.done | (before.done_first if at_start else zero)
        open_now = zero
        if ended:
            now |= before.done_last
        else:
            open_now = before.taking | (before.taking_first if at_start else zero)
            if known == high:
                open_now |= before.done_last
        sure[known - begin] = now
        maybe[known - begin] = open_now
    last_mask = zero
    allowed = zero
    top = min(noted[1], known)
    now = sure[top - begin]
    open_now = maybe[top - begin]
    for i in range(top - 1, noted[0] - 1, -1):
        if masks[i] != last_mask:
            last_mask = masks[i]
            allowed = zero
            for variable in range(len(before.of_variable)):
                if holds(last_mask, variable):
                    allowed |= before.of_variable[variable]
        at_start = whole == 1 and i == low
        targets = now & allowed
        open_targets = open_now & allowed
        now = before.done | (before.done_first if at_start else zero)
        open_now = zero
        node = 0
        both = targets | open_targets
        while both != zero:
            if both & one:
                source = before.of[node] | (before.first[node] if at_start else zero)
                if (targets >> np.uint64(node)) & one:
                    now |= source
                if (open_targets >> np.uint64(node)) & one:
                    open_now |= source
            both >>= one
            node += 1
        sure[i - begin] = now
        maybe[i - begin] = open_now


@kernel
def note_ends(
    steps: Steps,
    masks: Masks,
    place: tuple[int, int, int, int, int],
    ended: bool,
    noted: tuple[int, int],
    ends: npt.NDArray[np.int32],
    opens: Bools,
) -> None:
    """Fill the notes of one key for the places [noted[0], noted[1]) of [begin, known].

    `place` is (low, high, begin, known, whole): the key's rows, the first place to note, the
    first row that cannot be tested yet, and whether row `low` is the partition's first. Note
    (i - begin) · nodes + n is about node n before row i; an end e is noted as e - begin. The notes
    from noted[1] on are there already.
    """
    low, high, begin, known, whole = place
    nodes = len(steps.first) - 1
    at = (known - begin) * nodes
    is_end = ended and known == high
    is_start = whole == 1 and known == low
    for node in range(nodes if noted[1] > known else 0):
        ends[at + node] = NEVER
        opens[at + node] = False
        for step in range(steps.first[node], steps.first[node + 1]):
            if steps.at_start[step] and not is_start:
                continue
            if steps.variable[step] >= 0:
                opens[at + node] |= not ended
            elif not steps.at_end[step] or is_end:
                ends[at + node] = np.int32(known - begin)
            elif known == high and not ended:
                opens[at + node] = True
    for i in range(min(noted[1], known) - 1, noted[0] - 1, -1):
        mask = masks[i]
        is_start = whole == 1 and i == low
        here = (i - begin) * nodes
        after = here + nodes
        for node in range(nodes):
            end = NEVER
            opened = False
            for step in range(steps.first[node], steps.first[node + 1]):
                if steps.at_start[step] and not is_start:
                    continue
                variable = steps.variable[step]
                if variable < 0:
                    if not steps.at_end[step]:
                        end = np.int32(i - begin)
                elif holds(mask, variable):
                    target = after + steps.target[step]
                    end = min(end, ends[target])
                    opened |= opens[target]
            ends[here + node] = end
            opens[here + node] = opened


@inlined
def may_start(notes: Notes, place: int, nodes: int) -> bool:
    """Whether a match may start at a place, for all that the notes say."""
    if len(notes.sure):
        return bool((notes.sure[place] | notes.maybe[place]) & np.uint64(1))
    return bool(notes.ends[place * nodes] != NEVER or notes.opens[place * nodes])


@kernel
def walk_key(  # noqa: PLR0912, PLR0915 - a call for each start would cost more than its work
    steps: Steps,
    rows: Rows,
    place: tuple[int, int, int, int, int],
    rules: Rules,
    notes: Notes,
    made: Int64s,
    matches: Int64s,
    paths: Paths,
    so_far: tuple[int, int, int, int],
    budget: int,
) -> tuple[int, int, int, int]:
    """Find the matches of one key whose notes are there.

    `so_far` is (start row, matches in `matches`, elements in `paths`, number of the last match);
    the same comes back, with a status in place of the number. The walk stops early when `paths`
    has no room for another match, or when it has taken `budget` steps.
    """
    low, high, begin, known, whole = place
    at, count, elements, number = so_far
    nodes = len(steps.first) - 1
    limit = high if rules.within_us < 0 else begin
    waits_for_end = steps.at_end.any()
    skip_set = np.uint64(rules.skip_set)
    while at < high and at <= known:
        if budget < 0:
            return at, count, elements, OUT_OF_BUDGET
        budget -= 1
        # Most rows start nothing, and the notes say so at once.
        if not may_start(notes, at - begin, nodes):
            at += 1
            continue
        if elements + known - at > len(paths.row):
            return at, count, elements, PAUSED
        waits = not rules.ended
        if rules.within_us >= 0:
            last_us = rows.ts[at] + rules.within_us
            limit = max(limit, at)
            while limit < high and rows.ts[limit] <= last_us:
                limit += 1
            if limit < high or known < high:
                # Rows beyond the limit are there: none within it will follow.
                waits = waits and known < limit
            elif not waits_for_end:
                waits = waits and rules.watermark_us <= last_us
        # From node to node, always the first way on that leads to an end.
        first = elements
        joined = -1
        i = at
        node = 0
        end = WALKING
        while end == WALKING:
            taken = -1
            end = NO_MATCH
            budget -= steps.first[node + 1] - steps.first[node]
            for step in range(steps.first[node], steps.first[node + 1]):
                if steps.at_start[step] and not (whole == 1 and i == low):
                    continue
                variable = steps.variable[step]
                if variable < 0:
                    if not steps.at_end[step] or (rules.ended and i == high):
                        end = i
                        break
                    if waits and i == high:
                        end = UNDECIDED
                        break
                elif i >= known:
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
                        taken = target
                        end = WALKING
                        break
                    if waits and is_open:
                        end = UNDECIDED
                        break
            if taken < 0:
                break
            i += 1
            node = taken
            if len(made):
                note = (i - begin) * nodes + node
                if made[note] >= 0:
                    joined = made[note]
                    end = i
                    break
                made[note] = elements
            paths.row[elements] = i - 1
            paths.node[elements] = node
            paths.next[elements] = elements + 1
            elements += 1
        if end == UNDECIDED:
            return at, count, first, OK
        if end == NO_MATCH:
            at += 1
            continue
        if elements > first:
            paths.next[elements - 1] = joined
        number += 1
        matches[count, 0] = at
        matches[count, 1] = number
        matches[count, 2] = first if elements > first else joined
        matches[count, 3] = elements
        count += 1
        if rules.skip_to == PAST_LAST:
            at = max(end, at + 1)
        elif rules.skip_to == NEXT_ROW:
            at += 1
        else:
            found = -1
            for element in range(first, elements):
                if holds(skip_set, steps.node_variable[paths.node[element]]):
                    found = paths.row[element]
                    if rules.skip_to == TO_FIRST:
                        break
            if found < 0 or found == at:
                return at, count, elements, NO_SKIP_TARGET if found < 0 else SKIP_TO_START
            at = found
    return at, count, elements, OK


# Places in the progress of a scan.
KEY_AT, NOTED, COUNT, ELEMENTS, STATUS, WHERE = range(6)


class Room(NamedTuple):
    """What a scan writes to: notes of one key, matches and paths of all, and how far it is.

    `progress` has the key it is at, the first place of that key that is noted (-1 before any is),
    how many matches and elements there are, the status and the start row it is of.
    """

    notes: Notes
    made: Int64s
    matches: Int64s
    key: Int64s
    paths: Paths
    undecided: Int64s
    numbers: Int64s
    progress: Int64s


@kernel
def _scan_on(
    steps: Steps,
    before: Predecessors,
    rows: Rows,
    partitions: Partitions,
    rules: Rules,
    last: int,
    room: Room,
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
        place = (low, high, begin, known, 1 if partitions.whole[k] else 0)
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
            if len(room.made):
                room.made[: (known - begin + 1) * nodes] = -1
        first = progress[COUNT]
        so_far = (room.undecided[k], first, progress[ELEMENTS], room.numbers[k])
        where, count, elements, status = walk_key(
            steps, rows, place, rules, notes, room.made, room.matches, room.paths, so_far, budget
        )
        budget -= where - room.undecided[k] + cost * (elements - progress[ELEMENTS]) // nodes
        room.key[first:count] = k
        room.numbers[k] += count - first
        room.undecided[k] = where
        progress[COUNT] = count
        progress[ELEMENTS] = elements
        progress[STATUS] = status
        progress[WHERE] = where
        if status != OK:
            return
        progress[KEY_AT] += 1
        progress[NOTED] = -1


def scan(
    steps: Steps,
    before: Predecessors,
    rows: Rows,
    partitions: Partitions,
    rules: Rules,
    span: tuple[int, int],
    most_elements: int,
) -> Scanned:
    """Find the matches of keys [span[0], span[1]) from their first undecided rows on.

    After about `most_elements` the scan pauses at a start row; called again, it goes on there.
    """
    nodes = len(steps.first) - 1
    keys = slice(*span)
    begin = partitions.begin[keys]
    longest = int((partitions.known[keys] - begin).max(initial=-1)) + 1
    starts = int(np.maximum(partitions.offsets[1:][keys] - begin, 0).sum())
    bitwise = rules.within_us < 0 and nodes <= _BITS
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
    room = Room(
        notes,
        np.empty(longest * nodes if shares else 0, np.int64),
        np.empty((starts, 4), np.int64),
        np.empty(starts, np.int64),
        Paths(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)),
        np.array(partitions.begin),
        np.array(partitions.numbers),
        np.array([span[0], -1, 0, 0, OUT_OF_BUDGET, 0], np.int64),
    )
    while room.progress[STATUS] == OUT_OF_BUDGET:
        _scan_on(steps, before, rows, partitions, rules, span[1], room)
    count, elements = int(room.progress[COUNT]), int(room.progress[ELEMENTS])
    return Scanned(
        room.key[:count],
        room.matches[:count],
        room.paths.row[:elements],
        room.paths.node[:elements],
        room.paths.next[:elements],
        room.undecided,
        room.numbers,
        int(room.progress[STATUS]),
        int(room.progress[WHERE]),
    )
