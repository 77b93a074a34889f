"""The base of all searches for matches.

The automaton and the rows as kernels see them, how far time has come, what skipped rows may not be,
where a search begins and where its matches are written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, apart_lean, call_lean, inline_lean
from eventide.kernels.patterns.code import (
    BUDGET,
    DEPTH,
    FAILED,
    FRAME_AT,
    FRAME_FROM,
    FRAME_NODE,
    FRAME_ROW,
    FRAME_STEP,
    FRAME_VIOLATED,
    GAP,
    HELD,
    HITS,
    KEEPING,
    KEY_AT,
    LATE_SET,
    MATCHES,
    PATH_ROW,
    PENDING,
    REGISTERS,
    STATUS,
    STEPS,
    TIMED,
    WANTED,
    WHAT,
    Code,
    Place,
    Tables,
    Work,
)
from eventide.kernels.patterns.machine import tested
from eventide.kernels.patterns.registers import give_back
from eventide.kernels.patterns.remembered import forget
from eventide.kernels.patterns.tables import OK, OUT_OF_STEPS, Partitions, Rules


class Automaton(NamedTuple):
    """Steps and nodes as one array each, with sets of variables as int64."""

    steps: Int64s
    nodes: Int64s
    first_masks: int
    may_be_empty: bool
    asks_later: bool


class Out(NamedTuple):
    """Where matches are written: (start, key, number), where rows start, rows and nodes."""

    about: Int64s
    first: Int64s
    row: Int64s
    node: Int64s


class KernelRows(NamedTuple):
    """Rows with sets of variables as int64: mixed with uint64 they would turn into floats."""

    ts: Int64s
    masks: Int64s


class Time(NamedTuple):
    """Rows and how far time has come, as the inner loops see it."""

    ts: Int64s
    masks: Int64s
    ended: bool
    watermark: int
    last_watermark: int
    most_steps: int
    whole: bool
    seen: int


class RowSearch(NamedTuple):
    """What a search reads, the memory it works in, and where it writes.

    `following` is the next start row of each key, `numbers` how many matches it had.
    """

    automaton: Automaton
    code: Code
    tables: Tables
    rows: KernelRows
    partitions: Partitions
    rules: Rules
    work: Work
    following: Int64s
    numbers: Int64s
    out: Out


# Columns of Automaton.steps and Automaton.nodes.
VARIABLE, TARGET, AT_START, AT_END, ABSENT, LATER, LATE = range(7)
FIRST_STEP, NODE_ABSENT = range(2)

FAILURE, TAKEN, MATCHED, UNDECIDED, HELD_UP = range(5)
THERE, TOO_LATE, OVER, AWAITED = range(4)

_NO_DEADLINE = np.iinfo(np.int64).max


@inline_lean
def state_of(time: Time, place: Place, row: int) -> int:
    """Whether a row can be tested, is too late, will never exist, or is still to come."""
    if row < place.high:
        if time.ts[row] > place.deadline:
            return TOO_LATE
        return THERE if row < place.known else AWAITED
    if place.deadline == _NO_DEADLINE:
        return OVER if time.ended else AWAITED
    return TOO_LATE if time.ended or time.watermark > place.deadline else AWAITED


@inline_lean
def holds(masks: Int64s, row: int, variable: int) -> bool:
    """Whether a row's own values allow it to be a variable."""
    return bool((masks[row] >> variable) & 1 != 0)


@inline_lean
def spend(time: Time, work: Work, place: Place) -> bool:
    """Count a step; return whether there was none left."""
    work.info[BUDGET] -= 1
    work.info[STEPS] += 1
    if work.info[STEPS] <= time.most_steps:
        return False
    if work.info[STATUS] == OK:
        work.info[STATUS] = OUT_OF_STEPS
        work.info[WHAT] = place.start
    return True


@inline_lean
def enter(automaton: Automaton, work: Work, depth: int, node: int, row: int) -> None:
    """Go to a node with `depth` rows taken; `row` is the next one."""
    work.frames[depth, FRAME_NODE] = node
    work.frames[depth, FRAME_FROM] = row
    work.frames[depth, FRAME_STEP] = automaton.nodes[node, FIRST_STEP]
    work.frames[depth, FRAME_ROW] = -1
    work.frames[depth, FRAME_VIOLATED] = 0
    work.frames[depth, FRAME_AT] = row


@inline_lean
def begin(automaton: Automaton, work: Work, place: Place) -> None:
    """Go to the start of a search."""
    work.info[STEPS] = 0
    work.info[TIMED] = 0
    work.info[DEPTH] = 0
    work.info[FAILED] = 0
    # A search that starts with nothing to find is not held against its memory.
    work.info[HITS] = 0 if work.info[KEEPING] else 1
    enter(automaton, work, 0, 0, place.start)


@inline_lean
def held_up(work: Work, depth: int) -> int:
    """Pause a search at a depth: called again, it goes on there."""
    work.info[DEPTH] = depth
    work.info[HELD] = 1
    return HELD_UP


@inline_lean
def end_holds(time: Time, place: Place, at: int) -> int:
    """Whether `$` holds at a place; UNDECIDED if only more time can tell."""
    if at < place.high:
        return FAILURE
    return MATCHED if time.ended else UNDECIDED


@inline_lean
def violates(
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    depth: int,
    row: int,
    asked: int,
    masks: Int64s,
) -> int:
    """Return which of the given variables a skipped row is."""
    found = np.int64(0)
    for variable in range(len(code.by_variable) - 1):
        if (
            (asked >> variable) & 1
            and holds(masks, row, variable)
            and tested(code, tables, work, place, depth, row, variable)
        ):
            found |= np.int64(1) << variable
            if code.keeps_counts:
                give_back(code, tables, work, depth)
    return int(found)


@apart_lean
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
    """The same, as a function that is called: for rows behind a match, and behind its gaps."""
    return violates(code, tables, work, place, depth, row, asked, masks)


@call_lean
def nothing_follows(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, absent: int, time: Time
) -> int:
    """Whether no row until the deadline is one of the absent variables."""
    row = work.frames[depth, FRAME_FROM]
    while True:
        state = state_of(time, place, row)
        if state == AWAITED:
            return UNDECIDED
        if state != THERE:
            return MATCHED
        if spend(time, work, place):
            return FAILURE
        if time.masks[row] & absent and _violates(
            code, tables, work, place, depth, row, absent, time.masks
        ):
            return FAILURE
        row += 1


@inline_lean
def was_there(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: Time,
    depth: int,
    gap: int,
    step: int,
) -> bool:
    """Whether a row skipped before row number `gap` of a complete match is one that may not be.

    Its condition sees the match as it was there, but all rows of the variables that only come
    later. So its registers are those after `gap` rows, or else after all of them.
    """
    asked, late = automaton.steps[step, LATER], automaton.steps[step, LATE]
    bare = depth + 1
    # No row that anyone asks for, and behind all that were taken.
    work.frames[depth, PATH_ROW] = place.high
    for register in range(len(code.of_registers)):
        of = gap if code.of_registers[register] & ~late else depth
        work.frames[bare, REGISTERS + register] = work.frames[of, REGISTERS + register]
    for register in range(len(code.of_floats)):
        of = gap if code.of_floats[register] & ~late else depth
        work.float_registers[bare, register] = work.float_registers[of, register]
    work.info[GAP], work.info[LATE_SET] = gap + 1, late
    found = False
    for row in range(work.frames[gap, FRAME_FROM], work.frames[gap, PATH_ROW]):
        found = spend(time, work, place) or bool(
            time.masks[row] & asked
            and _violates(code, tables, work, place, bare, row, asked, time.masks)
        )
        if found:
            break
    work.info[GAP] = 0
    return found


@inline_lean
def report(out: Out, work: Work, column: int, depth: int, about: tuple[int, int, int]) -> bool:
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


@inline_lean
def first_fit(automaton: Automaton, time: Time, start: int, known: int) -> int:
    """Return the first start row that some first step might take."""
    if not automaton.may_be_empty:
        while start < known and not time.masks[start] & automaton.first_masks:
            start += 1
    return start


@inline_lean
def place_from(
    code: Code, rules: Rules, time: Time, bounds: tuple[int, int, int], start: int, number: int
) -> Place:
    """Return what holds for a search from one start row."""
    low, high, known = bounds
    deadline = _NO_DEADLINE
    if rules.within_us >= 0:
        deadline = time.ts[start] + rules.within_us
    level = number
    if len(code.thresholds):
        level = int(np.int64(0))
        while level < len(code.thresholds) and code.thresholds[level] <= number:
            level += 1
    return Place(low, high, known, start, deadline, number, level)


@inline_lean
def time_of(search: RowSearch, key: int) -> Time:
    """Return how the inner loops see the rows of a key."""
    rows, partitions, rules = search.rows, search.partitions, search.rules
    return Time(
        rows.ts,
        rows.masks,
        rules.ended,
        rules.watermark_us,
        rules.last_watermark_us,
        rules.most_steps,
        partitions.whole[key],
        partitions.seen[key],
    )


@inline_lean
def bounds_of(partitions: Partitions, key: int) -> tuple[int, int, int]:
    """Return the first row of a key, its end, and the first row that cannot be tested yet."""
    return partitions.offsets[key], partitions.offsets[key + 1], partitions.known[key]


@inline_lean
def leave(search: RowSearch, key: int, start: int) -> bool:
    """Note how far a key has come; return whether the search has to stop there."""
    work, following = search.work, search.following
    following[key] = start
    work.info[KEY_AT] = key
    if work.info[PENDING] or work.info[STATUS] != OK or work.info[HELD]:
        return True
    if work.info[WANTED]:
        following[key] = work.info[WANTED] - 1
        work.info[WANTED] = 0
    forget(work)
    work.info[KEY_AT] = key + 1
    return False
