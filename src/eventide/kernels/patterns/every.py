"""The search for all matches: skip_till_any.

One path of (row, variable) can lead to several nodes at once. A frame has them all, so that no path
is found twice; each knows the node it came from (`node_sets.py`). When rows are used up, the path
is a match if it can be done there (`completion.py`).
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import inline_lean, lean_kernel
from eventide.kernels.patterns.code import (
    BUDGET,
    DEPTH,
    FAILED,
    FRAME_FROM,
    FRAME_GOOD,
    FRAME_SET,
    HELD,
    KEEPING,
    KEY,
    KEY_AT,
    PATH_ROW,
    PENDING,
    REMEMBERED,
    SEEN,
    STATUS,
    Code,
    Place,
    Tables,
    Work,
    fail,
)
from eventide.kernels.patterns.completion import complete
from eventide.kernels.patterns.ground import (
    FAILURE,
    HELD_UP,
    MATCHED,
    TAKEN,
    Automaton,
    RowSearch,
    Time,
    begin,
    bounds_of,
    first_fit,
    held_up,
    leave,
    place_from,
    report,
    time_of,
)
from eventide.kernels.patterns.node_sets import Sets, any_on, follow, stand
from eventide.kernels.patterns.registers import give_back, write_key
from eventide.kernels.patterns.remembered import PATIENCE, forget, remember, slot_of
from eventide.kernels.patterns.tables import OK, OUT_OF_STEPS


@inline_lean
def _set_key(code: Code, tables: Tables, work: Work, sets: Sets, place: Place, depth: int) -> int:
    """Write the state of a frame with several nodes; 0 if it cannot be remembered."""
    first, end = work.frames[depth, FRAME_SET], work.frames[depth + 1, FRAME_SET]
    work.info[KEY] = work.frames[depth, FRAME_FROM]
    length = int(np.int64(1))
    for each in range(first, end):
        node = sets.node[each]
        width = 2 * (code.by_node[node + 1, SEEN] - code.by_node[node, SEEN]) + 1
        if not code.by_node[node, REMEMBERED] or length + width > len(work.info) - KEY:
            return 0
        work.info[KEY + length] = node
        length = write_key(code, tables, work, place, depth, node, length + 1)
        if length == 0:
            return 0
    return length


@inline_lean
def _every(  # noqa: PLR0912 - one loop over a stack
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: Sets,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Go on from a frame to the next match; FAILURE if there is none from this start row."""
    while True:
        outcome = any_on(automaton, code, tables, work, sets, place, time, depth)
        if outcome == HELD_UP:
            return held_up(work, depth)
        if work.info[STATUS] != OK:
            return FAILURE
        if outcome == TAKEN:
            if work.frames[depth + 1, FRAME_SET] + len(sets.stamp) > len(sets.node):
                fail(work, OUT_OF_STEPS, place.start)
                return FAILURE
            follow(automaton, work, sets, place, time, depth)
            depth += 1
            if work.info[KEEPING] == 0:
                continue
            length = _set_key(code, tables, work, sets, place, depth)
            if length == 0 or slot_of(work, length) < 0:
                continue
        elif depth == 0:
            return FAILURE
        elif work.frames[depth, FRAME_GOOD] < 2:
            # Rows are used up: see once whether the match may end here, then leave the frame.
            good = work.frames[depth, FRAME_GOOD]
            work.frames[depth, FRAME_GOOD] = 2 + good
            if complete(automaton, code, tables, work, sets, place, time, depth) == MATCHED:
                work.frames[depth, FRAME_GOOD] = 3
                work.info[DEPTH] = depth
                return MATCHED
            continue
        if work.frames[depth, FRAME_GOOD] & 1:
            work.frames[depth - 1, FRAME_GOOD] |= 1
        elif outcome != TAKEN:
            work.info[FAILED] += 1
            if work.info[FAILED] >= PATIENCE:
                length = _set_key(code, tables, work, sets, place, depth)
                if length > 0:
                    work.info[KEEPING] = remember(work, length, work.info[KEEPING])
        depth -= 1
        if code.keeps_counts:
            give_back(code, tables, work, depth)


@inline_lean
def _search_every(search: RowSearch, sets: Sets, key: int) -> int:
    """Search one partition for all new matches; return the next start row.

    info[WANTED] is the first start row, plus one, that further rows could complete to a match.
    """
    automaton, code, tables = search.automaton, search.code, search.tables
    rules, work, numbers = search.rules, search.work, search.numbers
    time = time_of(search, key)
    bounds = bounds_of(search.partitions, key)
    start = int(search.following[key])
    while True:
        if work.info[PENDING] == 0 and work.info[HELD] == 0:
            start = first_fit(automaton, time, start, bounds[2])
            if start >= bounds[2]:
                break
            forget(work)
            begin(automaton, work, place_from(code, rules, time, bounds, start, numbers[key]))
            stand(work, 0, start)
            sets.node[0] = 0
            work.frames[0, FRAME_SET] = 0
            work.frames[1, FRAME_SET] = 1
        work.info[HELD] = 0
        while True:
            depth = work.info[DEPTH]
            if work.info[PENDING]:
                if not report(search.out, work, PATH_ROW, depth, (start, key, numbers[key] + 1)):
                    break
                work.info[PENDING] = 0
                numbers[key] += 1
            place = place_from(code, rules, time, bounds, start, numbers[key] + 1)
            if _every(automaton, code, tables, work, sets, place, time, depth) != MATCHED:
                break
            work.info[PENDING] = 1
        if work.info[STATUS] != OK or work.info[PENDING] or work.info[HELD]:
            break
        start += 1
    return start


@lean_kernel
def search_any(search: RowSearch, sets: Sets) -> None:
    """Search partitions for all matches, from key info[KEY_AT] on, as long as they fit."""
    for key in range(search.work.info[KEY_AT], len(search.partitions.begin)):
        search.work.info[BUDGET] -= 1
        if leave(search, key, _search_every(search, sets, key)):
            return
