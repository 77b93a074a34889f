"""The search for all matches: skip_till_any.

One path of (row, variable) can lead to several nodes at once. A frame has them all, so that no path
is found twice; each knows the node it came from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s
from eventide.kernels.patterns.code import (
    BUDGET,
    DEPTH,
    FAILED,
    FRAME_FROM,
    FRAME_GOOD,
    FRAME_OPEN,
    FRAME_ROW,
    FRAME_SET,
    FRAME_STEP,
    FRAME_VIOLATED,
    HELD,
    KEEPING,
    KEY,
    KEY_AT,
    PATH_NODE,
    PATH_ROW,
    PATH_VARIABLE,
    PENDING,
    REMEMBERED,
    SEEN,
    STATUS,
    WANTED,
    Code,
    Place,
    Tables,
    Work,
    called,
    fail,
    lasting,
    merged,
)
from eventide.kernels.patterns.ground import (
    ABSENT,
    AT_END,
    AT_START,
    AWAITED,
    FAILURE,
    FIRST_STEP,
    HELD_UP,
    LATER,
    MATCHED,
    NODE_ABSENT,
    TAKEN,
    TARGET,
    THERE,
    UNDECIDED,
    VARIABLE,
    Automaton,
    KernelRows,
    Out,
    Time,
    begin,
    bounds_of,
    end_holds,
    first_fit,
    holds,
    leave,
    nothing_follows,
    place_from,
    report,
    spend,
    state_of,
    time_of,
    violates,
    was_there,
)
from eventide.kernels.patterns.machine import accepts
from eventide.kernels.patterns.registers import give_back, write_key
from eventide.kernels.patterns.remembered import PATIENCE, forget, remember, slot_of
from eventide.kernels.patterns.tables import OK, OUT_OF_STEPS, Partitions, Rules


class Sets(NamedTuple):
    """The nodes of all frames, one after another, and of each the place of the one before it.

    `alive` are those that a complete match could really be at.
    """

    node: Int64s
    origin: Int64s
    alive: Int64s
    stamp: Int64s


@merged
def _want(work: Work, place: Place) -> None:
    """Note the first start row that further rows could make a match of."""
    if work.info[WANTED] == 0:
        work.info[WANTED] = place.start + 1


@merged
def _step_is_open(
    automaton: Automaton, work: Work, place: Place, time: Time, depth: int, step: int
) -> bool:
    """Whether a way on is not barred by `^` or by a row that should have been absent."""
    if automaton.steps[step, AT_START] and not (
        work.frames[depth, FRAME_FROM] == place.low and time.whole
    ):
        return False
    return bool(automaton.steps[step, ABSENT] & work.frames[depth, FRAME_VIOLATED] == 0)


@called
def _look_around(
    automaton: Automaton, work: Work, sets: Sets, place: Place, time: Time, depth: int
) -> int:
    """Note which variables some way on from a frame takes; return those asked to be absent."""
    asked = np.int64(0)
    found = np.int64(0)
    for each in range(work.frames[depth, FRAME_SET], work.frames[depth + 1, FRAME_SET]):
        node = sets.node[each]
        asked |= automaton.nodes[node, NODE_ABSENT]
        for step in range(automaton.nodes[node, FIRST_STEP], automaton.nodes[node + 1, FIRST_STEP]):
            variable = automaton.steps[step, VARIABLE]
            if variable >= 0 and _step_is_open(automaton, work, place, time, depth, step):
                found |= np.int64(1) << variable
    work.frames[depth, FRAME_OPEN] = found
    return int(asked)


@merged
def _follow(
    automaton: Automaton, work: Work, sets: Sets, place: Place, time: Time, depth: int
) -> None:
    """Write the nodes that the row just taken leads to as the frame behind it."""
    variable = work.frames[depth, PATH_VARIABLE]
    used = work.frames[depth + 1, FRAME_SET]
    sets.stamp[0] += 1
    for each in range(work.frames[depth, FRAME_SET], work.frames[depth + 1, FRAME_SET]):
        node = sets.node[each]
        for step in range(automaton.nodes[node, FIRST_STEP], automaton.nodes[node + 1, FIRST_STEP]):
            target = automaton.steps[step, TARGET]
            if (
                automaton.steps[step, VARIABLE] == variable
                and sets.stamp[target + 1] != sets.stamp[0]
                and _step_is_open(automaton, work, place, time, depth, step)
            ):
                sets.stamp[target + 1] = sets.stamp[0]
                sets.node[used] = target
                sets.origin[used] = each
                used += 1
    work.frames[depth + 2, FRAME_SET] = used
    _stand(work, depth + 1, work.frames[depth, PATH_ROW] + 1)


@merged
def _stand(work: Work, depth: int, row: int) -> None:
    """Start looking at rows from `row` on."""
    work.frames[depth, FRAME_FROM] = row
    work.frames[depth, FRAME_ROW] = row
    work.frames[depth, FRAME_STEP] = 0
    work.frames[depth, FRAME_VIOLATED] = 0
    work.frames[depth, FRAME_OPEN] = -1
    work.frames[depth, FRAME_GOOD] = 0


@merged
def _any_on(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: Sets,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Take the next row as the next variable that fits; FAILURE when rows are used up."""
    variables = len(code.by_variable) - 1
    asked = _look_around(automaton, work, sets, place, time, depth)
    while work.frames[depth, FRAME_OPEN]:
        if work.info[BUDGET] < 0:
            return HELD_UP
        row = work.frames[depth, FRAME_ROW]
        state = state_of(time, place, row)
        if state != THERE:
            if state == AWAITED:
                _want(work, place)
            return FAILURE
        for variable in range(work.frames[depth, FRAME_STEP], variables):
            if not (work.frames[depth, FRAME_OPEN] >> variable) & 1:
                continue
            if spend(time, work, place):
                return FAILURE
            if holds(time.masks, row, variable) and accepts(
                code, tables, work, place, depth, row, variable
            ):
                work.frames[depth, FRAME_STEP] = variable + 1
                return TAKEN
        if depth == 0:
            return FAILURE
        if asked:
            violated = violates(code, tables, work, place, depth, row, asked, time.masks)
            if violated & ~work.frames[depth, FRAME_VIOLATED]:
                work.frames[depth, FRAME_VIOLATED] |= violated
                _look_around(automaton, work, sets, place, time, depth)
        work.frames[depth, FRAME_ROW] = row + 1
        work.frames[depth, FRAME_STEP] = 0
    return FAILURE


@merged
def _is_new(
    automaton: Automaton, work: Work, place: Place, time: Time, depth: int, step: int
) -> bool:
    """Whether a match that is complete now was not when this was last asked."""
    if automaton.steps[step, AT_END] or work.frames[depth - 1, PATH_ROW] >= time.seen:
        return True
    if not automaton.steps[step, ABSENT]:
        return False
    waited = time.seen < place.high and time.ts[time.seen] <= place.deadline
    return waited or time.last_watermark <= place.deadline


@merged
def _survive(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: Sets,
    place: Place,
    time: Time,
    depth: int,
) -> None:
    """Note which nodes a complete match is at if rows that it skipped are looked at again."""
    sets.alive[work.frames[0, FRAME_SET]] = 1
    for gap in range(depth):
        first, end = work.frames[gap + 1, FRAME_SET], work.frames[gap + 2, FRAME_SET]
        for each in range(first, end):
            sets.alive[each] = 0
        for each in range(work.frames[gap, FRAME_SET], first):
            node = sets.node[each]
            if not sets.alive[each]:
                continue
            for step in range(
                automaton.nodes[node, FIRST_STEP], automaton.nodes[node + 1, FIRST_STEP]
            ):
                if (
                    automaton.steps[step, VARIABLE] != work.frames[gap, PATH_VARIABLE]
                    or not _step_is_open(automaton, work, place, time, gap, step)
                    or (
                        automaton.steps[step, LATER]
                        and was_there(automaton, code, tables, work, place, time, depth, gap, step)
                    )
                ):
                    continue
                for target in range(first, end):
                    if (
                        sets.node[target] == automaton.steps[step, TARGET]
                        and not sets.alive[target]
                    ):
                        sets.alive[target] = 1
                        sets.origin[target] = each


@merged
def _complete(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: Sets,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Whether the rows taken are a match that is new; its nodes go to `path_node`.

    There may be several ways to be done. The match is as old as the first that was open: another
    that opens only at the deadline does not make it new again.
    """
    found = -1
    if automaton.asks_later:
        _survive(automaton, code, tables, work, sets, place, time, depth)
    for each in range(work.frames[depth, FRAME_SET], work.frames[depth + 1, FRAME_SET]):
        node = sets.node[each]
        for step in range(automaton.nodes[node, FIRST_STEP], automaton.nodes[node + 1, FIRST_STEP]):
            if automaton.steps[step, VARIABLE] >= 0:
                continue
            if automaton.asks_later and not sets.alive[each]:
                continue
            row = work.frames[depth, FRAME_FROM]
            if automaton.steps[step, AT_START] and not (row == place.low and time.whole):
                continue
            ends = end_holds(time, place, row) if automaton.steps[step, AT_END] else MATCHED
            absent = automaton.steps[step, ABSENT]
            if ends == MATCHED and absent:
                ends = nothing_follows(code, tables, work, place, depth, absent, time)
            if ends == UNDECIDED:
                _want(work, place)
            elif ends == MATCHED:
                if not _is_new(automaton, work, place, time, depth, step):
                    return FAILURE
                if found < 0:
                    found = each
    if found < 0:
        return FAILURE
    for back in range(depth - 1, -1, -1):
        work.frames[back, PATH_NODE] = sets.node[found]
        found = sets.origin[found]
    return MATCHED


@merged
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
    return length


@merged
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
    """Go on from a frame to the next match; FAILURE when there is none from this start row."""
    while True:
        outcome = _any_on(automaton, code, tables, work, sets, place, time, depth)
        if outcome == HELD_UP:
            work.info[DEPTH] = depth
            work.info[HELD] = 1
            return HELD_UP
        if work.info[STATUS] != OK:
            return FAILURE
        if outcome == TAKEN:
            if work.frames[depth + 1, FRAME_SET] + len(sets.stamp) > len(sets.node):
                fail(work, OUT_OF_STEPS, place.start)
                return FAILURE
            _follow(automaton, work, sets, place, time, depth)
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
            if _complete(automaton, code, tables, work, sets, place, time, depth) == MATCHED:
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
        if code.keeps_distinct:
            give_back(code, tables, work, depth)


@merged
def _search_every(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: Sets,
    time: Time,
    rules: Rules,
    key: int,
    bounds: tuple[int, int, int],
    start: int,
    numbers: Int64s,
    out: Out,
) -> int:
    """Search one partition for all new matches; return the next start row.

    info[WANTED] is the first start row, plus one, that further rows could make a match of.
    """
    while True:
        if work.info[PENDING] == 0 and work.info[HELD] == 0:
            start = first_fit(automaton, time, start, bounds[2])
            if start >= bounds[2]:
                break
            forget(work)
            begin(automaton, work, place_from(code, rules, time, bounds, start, numbers[key]))
            _stand(work, 0, start)
            sets.node[0] = 0
            work.frames[0, FRAME_SET] = 0
            work.frames[1, FRAME_SET] = 1
        work.info[HELD] = 0
        while True:
            depth = work.info[DEPTH]
            if work.info[PENDING]:
                if not report(out, work, PATH_ROW, depth, (start, key, numbers[key] + 1)):
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


@lasting
def search_any(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    rows: KernelRows,
    partitions: Partitions,
    rules: Rules,
    work: Work,
    sets: Sets,
    following: Int64s,
    numbers: Int64s,
    out: Out,
) -> None:
    """Search partitions for all matches, from key info[KEY_AT] on, as long as they fit."""
    for key in range(work.info[KEY_AT], len(partitions.begin)):
        work.info[BUDGET] -= 1
        time = time_of(rows, partitions, rules, key)
        bounds = bounds_of(partitions, key)
        start = _search_every(
            automaton,
            code,
            tables,
            work,
            sets,
            time,
            rules,
            key,
            bounds,
            following[key],
            numbers,
            out,
        )
        if leave(work, following, key, start):
            return
