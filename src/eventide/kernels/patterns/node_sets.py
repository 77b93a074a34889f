"""Sets of nodes, for the search for all matches: all nodes where one path of rows can be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, call_lean, inline_lean
from eventide.kernels.patterns.code import (
    BUDGET,
    FRAME_FROM,
    FRAME_GOOD,
    FRAME_OPEN,
    FRAME_ROW,
    FRAME_SET,
    FRAME_STEP,
    FRAME_VIOLATED,
    PATH_ROW,
    PATH_VARIABLE,
    WANTED,
    Code,
    Place,
    Tables,
    Work,
)
from eventide.kernels.patterns.ground import (
    ABSENT,
    AT_START,
    AWAITED,
    FAILURE,
    FIRST_STEP,
    HELD_UP,
    NODE_ABSENT,
    TAKEN,
    TARGET,
    THERE,
    VARIABLE,
    Automaton,
    Time,
    holds,
    spend,
    state_of,
    violates,
)
from eventide.kernels.patterns.machine import accepts


class Sets(NamedTuple):
    """The nodes of all frames, one after another, and for each the place of the one before it.

    `alive` are those that a complete match can really be at.
    """

    node: Int64s
    origin: Int64s
    alive: Int64s
    stamp: Int64s


@inline_lean
def want(work: Work, place: Place) -> None:
    """Note the first start row that further rows could complete to a match."""
    if work.info[WANTED] == 0:
        work.info[WANTED] = place.start + 1


@inline_lean
def step_is_open(
    automaton: Automaton, work: Work, place: Place, time: Time, depth: int, step: int
) -> bool:
    """Whether a step is not barred by `^` or by a skipped row that had to be absent."""
    if automaton.steps[step, AT_START] and not (
        work.frames[depth, FRAME_FROM] == place.low and time.whole
    ):
        return False
    return bool(automaton.steps[step, ABSENT] & work.frames[depth, FRAME_VIOLATED] == 0)


@call_lean
def look_around(
    automaton: Automaton, work: Work, sets: Sets, place: Place, time: Time, depth: int
) -> int:
    """Note which variables the steps from a frame take; return those that have to be absent."""
    asked = np.int64(0)
    found = np.int64(0)
    for each in range(work.frames[depth, FRAME_SET], work.frames[depth + 1, FRAME_SET]):
        node = sets.node[each]
        asked |= automaton.nodes[node, NODE_ABSENT]
        for step in range(automaton.nodes[node, FIRST_STEP], automaton.nodes[node + 1, FIRST_STEP]):
            variable = automaton.steps[step, VARIABLE]
            if variable >= 0 and step_is_open(automaton, work, place, time, depth, step):
                found |= np.int64(1) << variable
    work.frames[depth, FRAME_OPEN] = found
    return int(asked)


@inline_lean
def follow(
    automaton: Automaton, work: Work, sets: Sets, place: Place, time: Time, depth: int
) -> None:
    """Write the nodes that the row just taken leads to as the next frame."""
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
                and step_is_open(automaton, work, place, time, depth, step)
            ):
                sets.stamp[target + 1] = sets.stamp[0]
                sets.node[used] = target
                sets.origin[used] = each
                used += 1
    work.frames[depth + 2, FRAME_SET] = used
    stand(work, depth + 1, work.frames[depth, PATH_ROW] + 1)


@inline_lean
def stand(work: Work, depth: int, row: int) -> None:
    """Start looking at rows from `row` on."""
    work.frames[depth, FRAME_FROM] = row
    work.frames[depth, FRAME_ROW] = row
    work.frames[depth, FRAME_STEP] = 0
    work.frames[depth, FRAME_VIOLATED] = 0
    work.frames[depth, FRAME_OPEN] = -1
    work.frames[depth, FRAME_GOOD] = 0


@inline_lean
def any_on(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    sets: Sets,
    place: Place,
    time: Time,
    depth: int,
) -> int:
    """Take the next row as the next variable that fits; FAILURE if rows are used up."""
    variables = len(code.by_variable) - 1
    asked = look_around(automaton, work, sets, place, time, depth)
    while work.frames[depth, FRAME_OPEN]:
        if work.info[BUDGET] < 0:
            return HELD_UP
        row = work.frames[depth, FRAME_ROW]
        state = state_of(time, place, row)
        if state != THERE:
            if state == AWAITED:
                want(work, place)
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
                look_around(automaton, work, sets, place, time, depth)
        work.frames[depth, FRAME_ROW] = row + 1
        work.frames[depth, FRAME_STEP] = 0
    return FAILURE
