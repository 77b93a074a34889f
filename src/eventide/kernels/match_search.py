"""The search for matches of a row pattern: depth first, in order of preference.

From a start row the ways on from a node are tried one after another; a row that is taken leads
one level deeper, a node without a further way on leads back. Going back could visit the same
place again and again: after a few failures in one search, states that failed are remembered. A
state is the row, the node and what conditions further on can still see of the match, so that two
ways of getting there that no condition can tell apart are searched once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.match_code import (
    BASE,
    DEPTH,
    FAILED,
    FRAME_FROM,
    FRAME_GOOD,
    FRAME_NODE,
    FRAME_OPEN,
    FRAME_ROW,
    FRAME_SET,
    FRAME_STEP,
    FRAME_VIOLATED,
    HITS,
    KEEPING,
    KEY,
    KEY_AT,
    MATCHES,
    PATH_NODE,
    PATH_ROW,
    PATH_VARIABLE,
    PENDING,
    PROGRAM,
    REGISTERS,
    REMEMBERED,
    SEEN,
    STATUS,
    STEPS,
    TIMED,
    TIMED_NODE,
    TIMED_ROW,
    USED,
    WANTED,
    WHAT,
    Code,
    Place,
    Tables,
    Work,
    accepts,
    called,
    fail,
    give_back,
    lasting,
    merged,
    tested,
    write_key,
)
from eventide.kernels.match_tables import (
    NEXT_ROW,
    NO_SKIP_TARGET,
    OK,
    OUT_OF_STEPS,
    PAST_LAST,
    SKIP_TILL_ANY,
    SKIP_TO_START,
    TO_FIRST,
    Partitions,
    Rows,
    Rules,
    Steps,
)

MOST_REMEMBERED = 2_000_000
"""States that are remembered at a time."""

_SLOTS = 2**22
_MOST_PLACES = 2**26

PATIENCE = 64
"""Failures in one search before any are remembered: most searches never get there."""


class Found(NamedTuple):
    """Matches: match i took `row[first[i]:first[i + 1]]`, reaching nodes `node[...]`.

    `next` is the first start row of each key that is not decided, `numbers` the matches so far.
    `status` is not 0 when the search was given up, from start row `where`; if because a condition
    has no answer, `what` is its variable and `instruction` the one that has none.
    """

    start: Int64s
    first: Int64s
    row: Int64s
    node: Int64s
    number: Int64s
    timed_out: Bools
    key: Int64s
    next: Int64s
    numbers: Int64s
    status: int
    where: int
    what: int
    instruction: int


class _Automaton(NamedTuple):
    """Steps and nodes as one array each, with sets of variables as int64."""

    steps: Int64s
    nodes: Int64s
    first_masks: int
    may_be_empty: bool


class _Out(NamedTuple):
    """Where matches are written: (start, key, number), where rows start, rows and nodes."""

    about: Int64s
    first: Int64s
    row: Int64s
    node: Int64s


class _KernelRows(NamedTuple):
    """Rows with sets of variables as int64: mixed with uint64 they would turn into floats."""

    ts: Int64s
    masks: Int64s


class _Time(NamedTuple):
    """Rows and how far time has come, as the inner loops look at it."""

    ts: Int64s
    masks: Int64s
    ended: bool
    watermark: int
    last_watermark: int
    most_steps: int
    whole: bool
    seen: int


# Columns of _Automaton.steps and _Automaton.nodes.
VARIABLE, TARGET, AT_START, AT_END, ABSENT = range(5)
FIRST_STEP, NODE_ABSENT = range(2)

FAILURE, TAKEN, MATCHED, UNDECIDED = range(4)
THERE, LATE, OVER, AWAITED = range(4)

_NO_DEADLINE = np.iinfo(np.int64).max


@merged
def _state(time: _Time, place: Place, row: int) -> int:
    """Whether a row can be tested, is too late, will never be, or is still to come."""
    if row < place.high:
        if time.ts[row] > place.deadline:
            return LATE
        return THERE if row < place.known else AWAITED
    if place.deadline == _NO_DEADLINE:
        return OVER if time.ended else AWAITED
    return LATE if time.ended or time.watermark > place.deadline else AWAITED


@merged
def _holds(masks: Int64s, row: int, variable: int) -> bool:
    return bool((masks[row] >> variable) & 1 != 0)


@merged
def _spend(time: _Time, work: Work, place: Place) -> bool:
    """Count a step; whether there was none left."""
    work.info[STEPS] += 1
    if work.info[STEPS] <= time.most_steps:
        return False
    if work.info[STATUS] == OK:
        work.info[STATUS] = OUT_OF_STEPS
        work.info[WHAT] = place.start
    return True


@merged
def _hash(info: Int64s, length: int) -> int:
    mixed = np.uint64(length)
    for each in range(length):
        mixed = (mixed ^ np.uint64(info[KEY + each])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return int(np.int64(mixed >> np.uint64(32)))


@called
def _slot(work: Work, length: int) -> int:
    """Return the slot of the key, or minus one minus the free slot where it would go.

    A slot holds where its key starts in `words`, counted on beyond every clearing: what is not
    above info[BASE] has been forgotten.
    """
    slots, words, base = work.slots, work.words, work.info[BASE]
    size = len(slots) - 1
    slot = _hash(work.info, length) & size
    while slots[slot] > base:
        at = slots[slot] - base - 1
        if words[at] == length:
            same = True
            for each in range(length):
                if words[at + 1 + each] != work.info[KEY + each]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + 1) & size
    return -1 - slot


@called
def _remember(work: Work, length: int, entries: int) -> int:
    """Remember the key in `work.info` if there is room; return the number of states remembered."""
    used = work.info[USED]
    if entries >= len(work.slots) // 2 or used + length + 1 > len(work.words):
        return entries
    slot = _slot(work, length)
    if slot >= 0:
        return entries
    work.slots[-1 - slot] = work.info[BASE] + used + 1
    work.words[used] = length
    for each in range(length):
        work.words[used + 1 + each] = work.info[KEY + each]
    work.info[USED] = used + length + 1
    return entries + 1


@called
def _forget(work: Work) -> None:
    """Forget all states."""
    work.info[BASE] += work.info[USED]
    work.info[USED] = 0
    work.info[KEEPING] = 0


@called
def _key_of(code: Code, tables: Tables, work: Work, place: Place, depth: int) -> int:
    """Write the state of a frame with one node; return its length."""
    node = work.frames[depth, FRAME_NODE]
    work.info[KEY] = work.frames[depth, FRAME_FROM]
    work.info[KEY + 1] = node
    return write_key(code, tables, work, place, depth, node, int(np.int64(2)))


@merged
def _enter(automaton: _Automaton, work: Work, depth: int, node: int, row: int) -> None:
    """Stand at a node with `depth` rows taken, `row` being the next one."""
    work.frames[depth, FRAME_NODE] = node
    work.frames[depth, FRAME_FROM] = row
    work.frames[depth, FRAME_STEP] = automaton.nodes[node, FIRST_STEP]
    work.frames[depth, FRAME_ROW] = -1
    work.frames[depth, FRAME_VIOLATED] = 0


@merged
def _note_timeout(work: Work, depth: int) -> None:
    """Keep the first path that the deadline stopped: it is the preferred one."""
    if depth == 0 or work.info[TIMED] > 0:
        return
    work.info[TIMED] = depth
    for each in range(depth):
        work.frames[each, TIMED_ROW] = work.frames[each, PATH_ROW]
        work.frames[each, TIMED_NODE] = work.frames[each, PATH_NODE]


@merged
def _end_holds(time: _Time, place: Place, at: int) -> int:
    """Whether `$` holds at a place; UNDECIDED if only more time can tell."""
    if at < place.high:
        return FAILURE
    return MATCHED if time.ended else UNDECIDED


@called
def _violates(
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    depth: int,
    row: int,
    asked: int,
    masks: Int64s,
) -> int:
    """Return which of the asked variables a skipped row is."""
    found = np.int64(0)
    for variable in range(len(code.by_variable) - 1):
        if (
            (asked >> variable) & 1
            and _holds(masks, row, variable)
            and accepts(code, tables, work, place, depth, row, variable)
        ):
            found |= np.int64(1) << variable
            if code.keeps_distinct:
                give_back(code, tables, work, depth)
    return int(found)


@called
def _nothing_follows(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, absent: int, time: _Time
) -> int:
    """Whether no row until the deadline is one of the absent variables."""
    row = work.frames[depth, FRAME_FROM]
    while True:
        state = _state(time, place, row)
        if state == AWAITED:
            return UNDECIDED
        if state != THERE:
            return MATCHED
        if _spend(time, work, place):
            return FAILURE
        if _violates(code, tables, work, place, depth, row, absent, time.masks) != 0:
            return FAILURE
        row += 1


@merged
def _contiguous_on(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: _Time,
    depth: int,
) -> int:
    """Try the ways on from a frame that are left: the very next row, or being done."""
    node, row = work.frames[depth, FRAME_NODE], work.frames[depth, FRAME_FROM]
    state = _state(time, place, row)
    at_start = row == place.low and time.whole
    for step in range(work.frames[depth, FRAME_STEP], automaton.nodes[node + 1, FIRST_STEP]):
        variable = automaton.steps[step, VARIABLE]
        if automaton.steps[step, AT_START] and not at_start:
            continue
        if _spend(time, work, place):
            return FAILURE
        if variable < 0:
            ends = _end_holds(time, place, row) if automaton.steps[step, AT_END] else MATCHED
            if ends != FAILURE:
                return ends
        elif state == AWAITED:
            return UNDECIDED
        elif state == LATE:
            _note_timeout(work, depth)
        elif (
            state == THERE
            and _holds(time.masks, row, variable)
            and tested(code, tables, work, place, depth, row, variable)
        ):
            work.frames[depth, FRAME_STEP] = step + 1
            work.frames[depth, PATH_NODE] = automaton.steps[step, TARGET]
            return TAKEN
    return FAILURE


@merged
def _scan(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: _Time,
    depth: int,
) -> int:
    """Find the next row that some way on accepts, for `frame_row`; -2 if there is none."""
    node, row = work.frames[depth, FRAME_NODE], work.frames[depth, FRAME_FROM]
    at_start = row == place.low and time.whole
    work.frames[depth, FRAME_ROW] = -2
    while True:
        state = _state(time, place, row)
        is_open = False
        for step in range(automaton.nodes[node, FIRST_STEP], automaton.nodes[node + 1, FIRST_STEP]):
            variable = automaton.steps[step, VARIABLE]
            if (
                variable < 0
                or (automaton.steps[step, AT_START] and not at_start)
                or automaton.steps[step, ABSENT] & work.frames[depth, FRAME_VIOLATED]
            ):
                continue
            is_open = True
            if state != THERE:
                break
            if _spend(time, work, place):
                return FAILURE
            if _holds(time.masks, row, variable) and accepts(
                code, tables, work, place, depth, row, variable
            ):
                if code.keeps_distinct:
                    give_back(code, tables, work, depth)
                work.frames[depth, FRAME_ROW] = row
                return TAKEN
        if not is_open:
            return FAILURE
        if state != THERE:
            if state == LATE:
                _note_timeout(work, depth)
            return UNDECIDED if state == AWAITED else FAILURE
        if depth == 0:
            return FAILURE
        asked = automaton.nodes[node, NODE_ABSENT]
        if asked:
            work.frames[depth, FRAME_VIOLATED] |= _violates(
                code, tables, work, place, depth, row, asked, time.masks
            )
        row += 1


@merged
def _next_on(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: _Time,
    depth: int,
) -> int:
    """Try the ways on from a frame that are left: the next row that fits, or being done."""
    node, start = work.frames[depth, FRAME_NODE], work.frames[depth, FRAME_FROM]
    at_start = start == place.low and time.whole
    for step in range(work.frames[depth, FRAME_STEP], automaton.nodes[node + 1, FIRST_STEP]):
        variable = automaton.steps[step, VARIABLE]
        if automaton.steps[step, AT_START] and not at_start:
            continue
        if _spend(time, work, place):
            return FAILURE
        absent = automaton.steps[step, ABSENT]
        if variable < 0:
            ends = _end_holds(time, place, start) if automaton.steps[step, AT_END] else MATCHED
            if ends == MATCHED and absent:
                ends = _nothing_follows(code, tables, work, place, depth, absent, time)
            if ends != FAILURE:
                return ends
            continue
        if work.frames[depth, FRAME_ROW] == -1 and (
            _scan(automaton, code, tables, work, place, time, depth) == UNDECIDED
        ):
            return UNDECIDED
        row = work.frames[depth, FRAME_ROW]
        if (
            row >= 0
            and not absent & work.frames[depth, FRAME_VIOLATED]
            and _holds(time.masks, row, variable)
            and accepts(code, tables, work, place, depth, row, variable)
        ):
            work.frames[depth, FRAME_STEP] = step + 1
            work.frames[depth, PATH_NODE] = automaton.steps[step, TARGET]
            return TAKEN
    return FAILURE


_GoOn = Callable[[_Automaton, Code, Tables, Work, Place, _Time, int], int]


@merged
def _begin(automaton: _Automaton, work: Work, place: Place) -> None:
    """Stand at the start of a search."""
    work.info[STEPS] = 0
    work.info[TIMED] = 0
    work.info[DEPTH] = 0
    work.info[FAILED] = 0
    # A search that starts with nothing to find is not held against its memory.
    work.info[HITS] = 0 if work.info[KEEPING] else 1
    _enter(automaton, work, 0, 0, place.start)


@merged
def _unwind(code: Code, tables: Tables, work: Work, depth: int) -> None:
    """Undo the counts of distinct values of all rows taken."""
    if code.keeps_distinct:
        for each in range(depth):
            give_back(code, tables, work, each)


@merged
def _failed_before(code: Code, tables: Tables, work: Work, place: Place, depth: int) -> bool:
    """Whether the state of a frame is known to lead nowhere."""
    if work.info[KEEPING] == 0 or not code.by_node[work.frames[depth, FRAME_NODE], REMEMBERED]:
        return False
    if _slot(work, _key_of(code, tables, work, place, depth)) < 0:
        return False
    work.info[HITS] += 1
    return True


@merged
def _record_failure(code: Code, tables: Tables, work: Work, place: Place, depth: int) -> None:
    """Count a failure, and remember the state once there have been many."""
    work.info[FAILED] += 1
    if work.info[FAILED] < PATIENCE or depth == 0:
        return
    if code.by_node[work.frames[depth, FRAME_NODE], REMEMBERED]:
        length = _key_of(code, tables, work, place, depth)
        work.info[KEEPING] = _remember(work, length, work.info[KEEPING])


@merged
def _preferred(
    go_on: _GoOn,
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: _Time,
) -> int:
    """Search the preferred match from one start row; info[DEPTH] says how many rows it took."""
    _begin(automaton, work, place)
    depth = work.info[DEPTH]
    while True:
        outcome = go_on(automaton, code, tables, work, place, time, depth)
        if work.info[STATUS] != OK:
            return FAILURE
        if outcome == TAKEN:
            depth += 1
            _enter(
                automaton,
                work,
                depth,
                work.frames[depth - 1, PATH_NODE],
                work.frames[depth - 1, PATH_ROW] + 1,
            )
            if not _failed_before(code, tables, work, place, depth):
                continue
        elif outcome == FAILURE:
            _record_failure(code, tables, work, place, depth)
            if depth == 0:
                return FAILURE
        else:
            work.info[DEPTH] = depth
            _unwind(code, tables, work, depth)
            return outcome
        depth -= 1
        if code.keeps_distinct:
            give_back(code, tables, work, depth)


# All matches: one path of (row, variable) can lead to several nodes at once. A frame has them all,
# so that no path is found twice; each knows the node it came from.


class _Sets(NamedTuple):
    """The nodes of all frames, one after another, and of each the place of the one before it."""

    node: Int64s
    origin: Int64s
    stamp: Int64s


@merged
def _want(work: Work, place: Place) -> None:
    """Note the first start row that further rows could make a match of."""
    if work.info[WANTED] == 0:
        work.info[WANTED] = place.start + 1


@merged
def _step_is_open(
    automaton: _Automaton, work: Work, place: Place, time: _Time, depth: int, step: int
) -> bool:
    """Whether a way on is not barred by `^` or by a row that should have been absent."""
    if automaton.steps[step, AT_START] and not (
        work.frames[depth, FRAME_FROM] == place.low and time.whole
    ):
        return False
    return bool(automaton.steps[step, ABSENT] & work.frames[depth, FRAME_VIOLATED] == 0)


@called
def _look_around(
    automaton: _Automaton, work: Work, sets: _Sets, place: Place, time: _Time, depth: int
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
    automaton: _Automaton, work: Work, sets: _Sets, place: Place, time: _Time, depth: int
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
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: _Sets,
    place: Place,
    time: _Time,
    depth: int,
) -> int:
    """Take the next row as the next variable that fits; FAILURE when rows are used up."""
    variables = len(code.by_variable) - 1
    asked = _look_around(automaton, work, sets, place, time, depth)
    while work.frames[depth, FRAME_OPEN]:
        row = work.frames[depth, FRAME_ROW]
        state = _state(time, place, row)
        if state != THERE:
            if state == AWAITED:
                _want(work, place)
            return FAILURE
        for variable in range(work.frames[depth, FRAME_STEP], variables):
            if not (work.frames[depth, FRAME_OPEN] >> variable) & 1:
                continue
            if _spend(time, work, place):
                return FAILURE
            if _holds(time.masks, row, variable) and accepts(
                code, tables, work, place, depth, row, variable
            ):
                work.frames[depth, FRAME_STEP] = variable + 1
                return TAKEN
        if depth == 0:
            return FAILURE
        if asked:
            violated = _violates(code, tables, work, place, depth, row, asked, time.masks)
            if violated & ~work.frames[depth, FRAME_VIOLATED]:
                work.frames[depth, FRAME_VIOLATED] |= violated
                _look_around(automaton, work, sets, place, time, depth)
        work.frames[depth, FRAME_ROW] = row + 1
        work.frames[depth, FRAME_STEP] = 0
    return FAILURE


@merged
def _is_new(
    automaton: _Automaton, work: Work, place: Place, time: _Time, depth: int, step: int
) -> bool:
    """Whether a match that is complete now was not when this was last asked."""
    if automaton.steps[step, AT_END] or work.frames[depth - 1, PATH_ROW] >= time.seen:
        return True
    if not automaton.steps[step, ABSENT]:
        return False
    waited = time.seen < place.high and time.ts[time.seen] <= place.deadline
    return waited or time.last_watermark <= place.deadline


@merged
def _complete(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: _Sets,
    place: Place,
    time: _Time,
    depth: int,
) -> int:
    """Whether the rows taken are a match that is new; its nodes go to `path_node`."""
    for each in range(work.frames[depth, FRAME_SET], work.frames[depth + 1, FRAME_SET]):
        node = sets.node[each]
        for step in range(automaton.nodes[node, FIRST_STEP], automaton.nodes[node + 1, FIRST_STEP]):
            if automaton.steps[step, VARIABLE] >= 0:
                continue
            row = work.frames[depth, FRAME_FROM]
            if automaton.steps[step, AT_START] and not (row == place.low and time.whole):
                continue
            ends = _end_holds(time, place, row) if automaton.steps[step, AT_END] else MATCHED
            absent = automaton.steps[step, ABSENT]
            if ends == MATCHED and absent:
                ends = _nothing_follows(code, tables, work, place, depth, absent, time)
            if ends == UNDECIDED:
                _want(work, place)
            elif ends == MATCHED:
                if not _is_new(automaton, work, place, time, depth, step):
                    return FAILURE
                at = each
                for back in range(depth - 1, -1, -1):
                    work.frames[back, PATH_NODE] = sets.node[at]
                    at = sets.origin[at]
                return MATCHED
    return FAILURE


@merged
def _set_key(code: Code, tables: Tables, work: Work, sets: _Sets, place: Place, depth: int) -> int:
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
def _every(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: _Sets,
    place: Place,
    time: _Time,
    depth: int,
) -> int:
    """Go on from a frame to the next match; FAILURE when there is none from this start row."""
    while True:
        outcome = _any_on(automaton, code, tables, work, sets, place, time, depth)
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
            if length == 0 or _slot(work, length) < 0:
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
                    work.info[KEEPING] = _remember(work, length, work.info[KEEPING])
        depth -= 1
        if code.keeps_distinct:
            give_back(code, tables, work, depth)


@merged
def _next_start(work: Work, rules: Rules, start: int, depth: int) -> int:
    """Return where to look for a match after one; errors go to info[STATUS]."""
    if rules.skip_to <= NEXT_ROW:
        if rules.skip_to == PAST_LAST and depth > 0:
            return int(work.frames[depth - 1, PATH_ROW]) + 1
        return start + 1
    found = -1
    for each in range(depth):
        if (rules.skip_set >> work.frames[each, PATH_VARIABLE]) & 1:
            found = work.frames[each, PATH_ROW]
            if rules.skip_to == TO_FIRST:
                break
    if found < 0:
        work.info[STATUS] = NO_SKIP_TARGET
    elif found == start:
        work.info[STATUS] = SKIP_TO_START
    return max(found, start + 1)


@merged
def _report(out: _Out, work: Work, column: int, depth: int, about: tuple[int, int, int]) -> bool:
    """Write a match of `depth` rows, kept in a column and the one after it; False if it is full."""
    matches = work.info[MATCHES]
    used = out.first[matches]
    if matches + 2 > len(out.first) or used + depth > len(out.row):
        return False
    out.about[matches, 0] = about[0]
    out.about[matches, 1] = about[1]
    out.about[matches, 2] = about[2]
    for each in range(depth):
        out.row[used + each] = work.frames[each, column]
        out.node[used + each] = work.frames[each, column + 1]
    out.first[matches + 1] = used + depth
    work.info[MATCHES] = matches + 1
    return True


@merged
def _first_fit(automaton: _Automaton, time: _Time, start: int, known: int) -> int:
    """Return the first start row that some first step might take."""
    if not automaton.may_be_empty:
        while start < known and not time.masks[start] & automaton.first_masks:
            start += 1
    return start


@merged
def _place(
    rules: Rules, time: _Time, bounds: tuple[int, int, int], start: int, number: int
) -> Place:
    """Return what holds for a search from one start row."""
    low, high, known = bounds
    deadline = _NO_DEADLINE
    if rules.within_us >= 0:
        deadline = time.ts[start] + rules.within_us
    return Place(low, high, known, start, deadline, number)


@merged
def _search_preferred(
    go_on: _GoOn,
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    time: _Time,
    rules: Rules,
    key: int,
    bounds: tuple[int, int, int],
    start: int,
    numbers: Int64s,
    out: _Out,
) -> int:
    """Search one partition for preferred matches; return the next start row.

    When a match no longer fits into `out`, info[PENDING] asks for this to be called again, with
    everything as it was.
    """
    # A state says all there is about what follows, unless the start's time or number do too.
    keeps = rules.within_us < 0 and not code.reads_number
    while True:
        if work.info[PENDING] == 0:
            start = _first_fit(automaton, time, start, bounds[2])
            if start >= bounds[1]:
                break
            # What was of no use to the last search will hardly be to the next ones.
            if work.info[KEEPING] > (len(work.slots) // 4 if keeps and work.info[HITS] else 0):
                _forget(work)
            place = _place(rules, time, bounds, start, numbers[key] + 1)
            outcome = _preferred(go_on, automaton, code, tables, work, place, time)
            if work.info[STATUS] != OK or outcome == UNDECIDED:
                break
            if outcome == MATCHED:
                work.info[PENDING] = PATH_ROW + 1
            elif rules.timeouts and work.info[TIMED] > 0:
                work.info[PENDING] = TIMED_ROW + 1
                work.info[DEPTH] = work.info[TIMED]
            else:
                start += 1
                continue
        depth = work.info[DEPTH]
        column = work.info[PENDING] - 1
        number = int(numbers[key]) + 1 if column == PATH_ROW else 0
        if not _report(out, work, column, depth, (start, key, number)):
            break
        work.info[PENDING] = 0
        if column == PATH_ROW:
            numbers[key] += 1
            following = _next_start(work, rules, start, depth)
            if work.info[STATUS] != OK:
                break
            start = following
        else:
            start += 1
    return start


@merged
def _search_every(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: _Sets,
    time: _Time,
    rules: Rules,
    key: int,
    bounds: tuple[int, int, int],
    start: int,
    numbers: Int64s,
    out: _Out,
) -> int:
    """Search one partition for all new matches; return the next start row.

    info[WANTED] is the first start row, plus one, that further rows could make a match of.
    """
    while True:
        if work.info[PENDING] == 0:
            start = _first_fit(automaton, time, start, bounds[2])
            if start >= bounds[2]:
                break
            _forget(work)
            _begin(automaton, work, _place(rules, time, bounds, start, numbers[key]))
            _stand(work, 0, start)
            sets.node[0] = 0
            work.frames[0, FRAME_SET] = 0
            work.frames[1, FRAME_SET] = 1
        while True:
            depth = work.info[DEPTH]
            if work.info[PENDING]:
                if not _report(out, work, PATH_ROW, depth, (start, key, numbers[key] + 1)):
                    break
                work.info[PENDING] = 0
                numbers[key] += 1
            place = _place(rules, time, bounds, start, numbers[key] + 1)
            if _every(automaton, code, tables, work, sets, place, time, depth) != MATCHED:
                break
            work.info[PENDING] = 1
        if work.info[STATUS] != OK or work.info[PENDING]:
            break
        start += 1
    return start


@merged
def _time_of(rows: _KernelRows, partitions: Partitions, rules: Rules, key: int) -> _Time:
    """Return how the inner loops see the rows of a key."""
    return _Time(
        rows.ts,
        rows.masks,
        rules.ended,
        rules.watermark_us,
        rules.last_watermark_us,
        rules.most_steps,
        partitions.whole[key],
        partitions.seen[key],
    )


@merged
def _bounds(partitions: Partitions, key: int) -> tuple[int, int, int]:
    return partitions.offsets[key], partitions.offsets[key + 1], partitions.known[key]


@merged
def _leave(work: Work, following: Int64s, key: int, start: int) -> bool:
    """Note how far a key has come; whether the search has to stop there."""
    following[key] = start
    work.info[KEY_AT] = key
    if work.info[PENDING] or work.info[STATUS] != OK:
        return True
    if work.info[WANTED]:
        following[key] = work.info[WANTED] - 1
        work.info[WANTED] = 0
    _forget(work)
    work.info[KEY_AT] = key + 1
    return False


# One kernel for each strategy, so that a query compiles no more than it needs. They go on from key
# info[KEY_AT] as long as matches fit into `out`.


@lasting
def _search_contiguous(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    rows: _KernelRows,
    partitions: Partitions,
    rules: Rules,
    work: Work,
    following: Int64s,
    numbers: Int64s,
    out: _Out,
) -> None:
    """Search partitions for preferred matches of consecutive rows."""
    for key in range(work.info[KEY_AT], len(partitions.begin)):
        time = _time_of(rows, partitions, rules, key)
        bounds = _bounds(partitions, key)
        start = _search_preferred(
            _contiguous_on,
            automaton,
            code,
            tables,
            work,
            time,
            rules,
            key,
            bounds,
            following[key],
            numbers,
            out,
        )
        if _leave(work, following, key, start):
            return


@lasting
def _search_next(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    rows: _KernelRows,
    partitions: Partitions,
    rules: Rules,
    work: Work,
    following: Int64s,
    numbers: Int64s,
    out: _Out,
) -> None:
    """Search partitions for preferred matches, rows that do not fit being skipped."""
    for key in range(work.info[KEY_AT], len(partitions.begin)):
        time = _time_of(rows, partitions, rules, key)
        bounds = _bounds(partitions, key)
        start = _search_preferred(
            _next_on,
            automaton,
            code,
            tables,
            work,
            time,
            rules,
            key,
            bounds,
            following[key],
            numbers,
            out,
        )
        if _leave(work, following, key, start):
            return


@lasting
def _search_any(
    automaton: _Automaton,
    code: Code,
    tables: Tables,
    rows: _KernelRows,
    partitions: Partitions,
    rules: Rules,
    work: Work,
    sets: _Sets,
    following: Int64s,
    numbers: Int64s,
    out: _Out,
) -> None:
    """Search partitions for all matches."""
    for key in range(work.info[KEY_AT], len(partitions.begin)):
        time = _time_of(rows, partitions, rules, key)
        bounds = _bounds(partitions, key)
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
        if _leave(work, following, key, start):
            return


def search(
    steps: Steps,
    code: Code,
    tables: Tables,
    rows: Rows,
    partitions: Partitions,
    rules: Rules,
) -> Found:
    """Find the matches of all partitions that can be decided with the rows there are."""
    automaton = _automaton(steps)
    work, sets = _memory(automaton, code, tables, partitions, rules)
    following = np.array(partitions.begin, np.int64)
    numbers = np.array(partitions.numbers, np.int64)
    rules = rules._replace(skip_set=int(np.uint64(rules.skip_set).view(np.int64)))
    words = _KernelRows(rows.ts, rows.masks.view(np.int64))
    out = _more_room(None, 0, 1024 + len(rows.ts) // 8)
    while True:
        asked = (automaton, code, tables, words, partitions, rules, work)
        match rules.strategy:
            case 0:
                _search_contiguous(*asked, following, numbers, out)
            case 1:
                _search_next(*asked, following, numbers, out)
            case _:
                _search_any(*asked, sets, following, numbers, out)
        if not work.info[PENDING] or work.info[STATUS]:
            break
        needed = int(out.first[work.info[MATCHES]] + work.info[DEPTH])
        out = _more_room(out, int(work.info[MATCHES]), 2 * needed)
    matches = int(work.info[MATCHES])
    about, first = out.about[:matches], out.first[: matches + 1]
    status, key, at = (int(work.info[each]) for each in (STATUS, KEY_AT, WHAT))
    return Found(
        start=np.ascontiguousarray(about[:, 0]),
        first=first,
        row=out.row[: first[-1]],
        node=out.node[: first[-1]],
        number=np.ascontiguousarray(about[:, 2]),
        timed_out=about[:, 2] == 0,
        key=np.ascontiguousarray(about[:, 1]),
        next=following,
        numbers=numbers,
        status=status,
        where=int(following[key]) if status else -1,
        what=max(int(np.searchsorted(code.by_variable[:, PROGRAM], at, "right")) - 1, 0),
        instruction=at,
    )


def _more_room(out: _Out | None, matches: int, rows: int) -> _Out:
    """Return room for matches, of which there may be as many as rows, with those found so far."""
    larger = _Out(
        np.empty((rows, 3), np.int64),
        np.zeros(rows + 1, np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
    )
    if out is not None:
        used = out.first[matches]
        larger.about[:matches] = out.about[:matches]
        larger.first[: matches + 1] = out.first[: matches + 1]
        larger.row[:used], larger.node[:used] = out.row[:used], out.node[:used]
    return larger


def _automaton(steps: Steps) -> _Automaton:
    nodes = len(steps.first) - 1
    absent = frozen(steps.absent.view(np.int64))
    node_absent = np.zeros(nodes, np.int64)
    of_node = np.repeat(np.arange(nodes), np.diff(steps.first))
    np.bitwise_or.at(node_absent, of_node, absent)
    starts = steps.variable[: steps.first[1]]
    masks = np.bitwise_or.reduce(np.int64(1) << starts[starts >= 0], initial=0)
    columns = (steps.variable, steps.target, steps.at_start, steps.at_end, absent)
    of_nodes = (steps.first, np.append(node_absent, 0))
    return _Automaton(
        frozen(np.stack([np.asarray(each, np.int64) for each in columns], axis=1)),
        frozen(np.stack(of_nodes, axis=1)),
        int(masks),
        bool(np.any(starts < 0)),
    )


def _memory(
    automaton: _Automaton, code: Code, tables: Tables, partitions: Partitions, rules: Rules
) -> tuple[Work, _Sets]:
    """Allocate for the longest match there could be; what is not used is never really there."""
    lengths = partitions.offsets[1:] - partitions.begin
    depth = int(lengths.max(initial=0)) + 3
    nodes = len(automaton.nodes) - 1
    key_width = int(np.diff(code.by_node[:, SEEN]).max(initial=0))
    stack = len(code.instructions) + 2
    frames = np.empty((depth, REGISTERS + len(code.registers)), np.int64)
    float_registers = np.empty((depth, code.float_registers), np.float64)
    # Nothing changes what holds before the first row.
    frames[0, REGISTERS:] = code.registers
    float_registers[0] = 0.0
    work = Work(
        frames=frames,
        float_registers=float_registers,
        stack=np.empty(stack, np.int64),
        stack_floats=np.empty(stack, np.float64),
        stack_valid=np.empty(stack, np.bool_),
        counts=np.zeros(int(tables.distinct[-1]), np.int64),
        slots=np.zeros(_SLOTS, np.int64),
        words=np.empty(8 * MOST_REMEMBERED, np.int64),
        info=np.zeros(KEY + max(2 * key_width + 2, 4096), np.int64),
    )
    places = min(depth * nodes, _MOST_PLACES) + nodes if rules.strategy == SKIP_TILL_ANY else 0
    sets = _Sets(
        np.empty(places, np.int64), np.empty(places, np.int64), np.zeros(nodes + 1, np.int64)
    )
    return work, sets
