"""The steps from a node in searches for preferred matches: take the next row, or complete.

One function for each strategy: the very next row (contiguous), or the next row that fits
(skip_till_next).
"""

from __future__ import annotations

from eventide.kernels.compiled import inline_lean
from eventide.kernels.patterns.code import (
    BUDGET,
    FRAME_AT,
    FRAME_FROM,
    FRAME_NODE,
    FRAME_ROW,
    FRAME_STEP,
    FRAME_VIOLATED,
    PATH_NODE,
    PATH_ROW,
    TIMED,
    TIMED_NODE,
    TIMED_ROW,
    Code,
    Place,
    Tables,
    Work,
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
    TOO_LATE,
    UNDECIDED,
    VARIABLE,
    Automaton,
    Time,
    end_holds,
    holds,
    nothing_follows,
    spend,
    state_of,
    violates,
    was_there,
)
from eventide.kernels.patterns.machine import accepts, tested
from eventide.kernels.patterns.registers import give_back


@inline_lean
def note_timeout(work: Work, depth: int) -> None:
    """Keep the first path that the deadline stopped: it is the preferred one."""
    if depth == 0 or work.info[TIMED] > 0:
        return
    work.info[TIMED] = depth
    for each in range(depth):
        work.frames[each, TIMED_ROW] = work.frames[each, PATH_ROW]
        work.frames[each, TIMED_NODE] = work.frames[each, PATH_NODE]


@inline_lean
def contiguous_on(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Try the remaining steps of a frame: take the very next row, or complete the match."""
    node, row = work.frames[depth, FRAME_NODE], work.frames[depth, FRAME_FROM]
    state = state_of(time, place, row)
    at_start = row == place.low and time.whole
    for step in range(work.frames[depth, FRAME_STEP], automaton.nodes[node + 1, FIRST_STEP]):
        variable = automaton.steps[step, VARIABLE]
        if automaton.steps[step, AT_START] and not at_start:
            continue
        if spend(time, work, place):
            return FAILURE
        if variable < 0:
            ends = end_holds(time, place, row) if automaton.steps[step, AT_END] else MATCHED
            if ends != FAILURE:
                return ends
        elif state == AWAITED:
            return UNDECIDED
        elif state == TOO_LATE:
            note_timeout(work, depth)
        elif (
            state == THERE
            and holds(time.masks, row, variable)
            and tested(code, tables, work, place, depth, row, variable)
        ):
            work.frames[depth, FRAME_STEP] = step + 1
            work.frames[depth, PATH_NODE] = automaton.steps[step, TARGET]
            return TAKEN
    return FAILURE


@inline_lean
def next_row(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Find the next row that some step accepts, for `frame_row`; -2 if there is none.

    Called again after HELD_UP, it goes on where it was.
    """
    node, row = work.frames[depth, FRAME_NODE], work.frames[depth, FRAME_AT]
    at_start = work.frames[depth, FRAME_FROM] == place.low and time.whole
    work.frames[depth, FRAME_ROW] = -2
    while True:
        if work.info[BUDGET] < 0 and row > work.frames[depth, FRAME_AT]:
            work.frames[depth, FRAME_AT] = row
            work.frames[depth, FRAME_ROW] = -1
            return HELD_UP
        state = state_of(time, place, row)
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
            if spend(time, work, place):
                return FAILURE
            if holds(time.masks, row, variable) and accepts(
                code, tables, work, place, depth, row, variable
            ):
                if code.keeps_counts:
                    give_back(code, tables, work, depth)
                work.frames[depth, FRAME_ROW] = row
                return TAKEN
        if not is_open:
            return FAILURE
        if state != THERE:
            if state == TOO_LATE:
                note_timeout(work, depth)
            return UNDECIDED if state == AWAITED else FAILURE
        if depth == 0:
            return FAILURE
        asked = automaton.nodes[node, NODE_ABSENT]
        if asked:
            work.frames[depth, FRAME_VIOLATED] |= violates(
                code, tables, work, place, depth, row, asked, time.masks
            )
        row += 1


@inline_lean
def stands(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Whether no row skipped by a complete match turns out to be wrong now."""
    for gap in range(1, depth):
        step = work.frames[gap, FRAME_STEP] - 1
        if automaton.steps[step, LATER] and was_there(
            automaton, code, tables, work, place, time, depth, gap, step
        ):
            return FAILURE
    return MATCHED


@inline_lean
def next_on(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Try the remaining steps of a frame: take the next row that fits, or complete the match."""
    node, start = work.frames[depth, FRAME_NODE], work.frames[depth, FRAME_FROM]
    at_start = start == place.low and time.whole
    for step in range(work.frames[depth, FRAME_STEP], automaton.nodes[node + 1, FIRST_STEP]):
        variable = automaton.steps[step, VARIABLE]
        if automaton.steps[step, AT_START] and not at_start:
            continue
        if spend(time, work, place):
            return FAILURE
        absent = automaton.steps[step, ABSENT]
        if variable < 0:
            ends = end_holds(time, place, start) if automaton.steps[step, AT_END] else MATCHED
            if ends == MATCHED and absent:
                ends = nothing_follows(code, tables, work, place, depth, absent, time)
            if ends == MATCHED and automaton.asks_later:
                ends = stands(automaton, code, tables, work, place, time, depth)
            if ends != FAILURE:
                return ends
            continue
        if work.frames[depth, FRAME_ROW] == -1:
            outcome = next_row(automaton, code, tables, work, place, time, depth)
            if outcome >= UNDECIDED:
                work.frames[depth, FRAME_STEP] = step
                return outcome
        row = work.frames[depth, FRAME_ROW]
        if (
            row >= 0
            and not absent & work.frames[depth, FRAME_VIOLATED]
            and holds(time.masks, row, variable)
            and accepts(code, tables, work, place, depth, row, variable)
        ):
            work.frames[depth, FRAME_STEP] = step + 1
            work.frames[depth, PATH_NODE] = automaton.steps[step, TARGET]
            return TAKEN
    return FAILURE
