"""Whether the rows that a search for all matches has taken are a match, and a new one."""

from __future__ import annotations

from eventide.kernels.compiled import inline_lean
from eventide.kernels.patterns.code import (
    FRAME_FROM,
    FRAME_SET,
    PATH_NODE,
    PATH_ROW,
    PATH_VARIABLE,
    Code,
    Place,
    Tables,
    Work,
)
from eventide.kernels.patterns.ground import (
    ABSENT,
    AT_END,
    AT_START,
    FAILURE,
    FIRST_STEP,
    LATER,
    MATCHED,
    TARGET,
    UNDECIDED,
    VARIABLE,
    Automaton,
    Time,
    end_holds,
    nothing_follows,
    was_there,
)
from eventide.kernels.patterns.node_sets import Sets, step_is_open, want


@inline_lean
def is_new(
    automaton: Automaton, work: Work, place: Place, time: Time, depth: int, step: int
) -> bool:
    """Whether a match that is complete now was not complete at the last check."""
    if automaton.steps[step, AT_END] or work.frames[depth - 1, PATH_ROW] >= time.seen:
        return True
    if not automaton.steps[step, ABSENT]:
        return False
    waited = time.seen < place.high and time.ts[time.seen] <= place.deadline
    return waited or time.last_watermark <= place.deadline


@inline_lean
def survive(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: Sets,
    place: Place,
    time: Time,
    depth: int,
) -> None:
    """Note which nodes a complete match can be at when its skipped rows are checked again."""
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
                    or not step_is_open(automaton, work, place, time, gap, step)
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


@inline_lean
def complete(
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

    There may be several ways to complete it. The match is as old as the first of them: another one
    that opens only at the deadline does not make it new again.
    """
    found = -1
    if automaton.asks_later:
        survive(automaton, code, tables, work, sets, place, time, depth)
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
                want(work, place)
            elif ends == MATCHED:
                if not is_new(automaton, work, place, time, depth, step):
                    return FAILURE
                if found < 0:
                    found = each
    if found < 0:
        return FAILURE
    for back in range(depth - 1, -1, -1):
        work.frames[back, PATH_NODE] = sets.node[found]
        found = sets.origin[found]
    return MATCHED
