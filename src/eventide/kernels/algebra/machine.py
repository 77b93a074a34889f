"""The machine that runs the instructions of conditions on two events that may follow each other."""

from __future__ import annotations

import numpy as np

from eventide.kernels.algebra.answers import place_of
from eventide.kernels.algebra.code import (
    ABS_F,
    ADD_F,
    ADD_I,
    AND,
    ASK,
    ASKED,
    CARRIED,
    COMPARE_F,
    COMPARE_I,
    DISTINCT_I,
    DIVIDE_F,
    FAILED,
    FALSE,
    I_TO_F,
    IS_NULL,
    JUMP,
    JUMP_IF_FALSE,
    JUMP_IF_TRUE,
    JUMP_IF_VALID,
    LEFT,
    MOVE,
    MULTIPLY_F,
    MULTIPLY_I,
    NEGATE_F,
    NEGATE_I,
    NOT,
    OR,
    REMAINDER_F,
    RIGHT,
    SUBTRACT_F,
    SUBTRACT_I,
    TRUE,
    UNKNOWN,
    WHERE,
    Answers,
    BothSides,
    FoundChains,
    Machine,
    Programs,
)
from eventide.kernels.compiled import call_lean, inline_lean
from eventide.kernels.numbers import (
    bits_of,
    compare_floats,
    compare_ints,
    double_of,
    integer_remainder,
    product,
)

_LEAST = np.iinfo(np.int64).min


@inline_lean
def origin_of(sides: BothSides, found: FoundChains, chain: int) -> int:
    """Return the waiting event with which a chain began."""
    waiting = len(sides.end)
    return chain if chain < waiting else int(found.origin[chain - waiting])


@inline_lean
def _loaded(
    programs: Programs,
    sides: BothSides,
    found: FoundChains,
    machine: Machine,
    operation: int,
    to: int,
    column: int,
    chain: int,
    event: int,
) -> None:
    """Load a value of the waiting event, of the one that may follow, or of the chain."""
    if operation == RIGHT:
        machine.words[to] = sides.right[column, event]
        machine.valid[to] = sides.right_valid[column, event]
    elif operation == LEFT:
        row = origin_of(sides, found, chain)
        machine.words[to] = sides.left[column, row]
        machine.valid[to] = sides.left_valid[column, row]
    else:
        _carried(programs, sides, found, machine, to, column, chain)


@inline_lean
def _carried(
    programs: Programs,
    sides: BothSides,
    found: FoundChains,
    machine: Machine,
    to: int,
    number: int,
    chain: int,
) -> None:
    """Load what a chain carries: that of its waiting event, of its last one, or of its own."""
    result = chain - len(sides.end)
    own, repeated = programs.carried[number, 0], programs.carried[number, 1]
    if result < 0:
        machine.words[to] = sides.first[number, chain]
        machine.valid[to] = sides.first_valid[number, chain]
    elif own < 0:
        machine.words[to] = sides.right[repeated, found.event[result]]
        machine.valid[to] = sides.right_valid[repeated, found.event[result]]
    else:
        machine.words[to] = found.carried[result, own]
        machine.valid[to] = found.carried_valid[result, own]


@inline_lean
def _calculated_i(machine: Machine, operation: int, to: int, left: int, right: int) -> bool:
    """Combine two whole numbers; return whether the result fits."""
    one, other = machine.words[left], machine.words[right]
    machine.valid[to] = machine.valid[left] and machine.valid[right]
    if not machine.valid[to]:
        return True
    fits = True
    if operation == ADD_I:
        result = int(np.int64(np.uint64(one) + np.uint64(other)))
        fits = ((one ^ result) & (other ^ result)) >= 0
    elif operation == SUBTRACT_I:
        result = int(np.int64(np.uint64(one) - np.uint64(other)))
        fits = ((one ^ other) & (one ^ result)) >= 0
    elif operation == MULTIPLY_I:
        result, fits = product(one, other)
    elif other == 0:
        result = 0
        machine.valid[to] = False
    else:
        result = integer_remainder(one, other)
    machine.words[to] = result
    return fits


@inline_lean
def _calculated_f(machine: Machine, operation: int, to: int, left: int, right: int) -> None:
    """Combine two doubles."""
    one = double_of(machine.words[left])
    other = double_of(machine.words[right])
    machine.valid[to] = machine.valid[left] and machine.valid[right]
    result = 0.0
    if operation == ADD_F:
        result = one + other
    elif operation == SUBTRACT_F:
        result = one - other
    elif operation == MULTIPLY_F:
        result = one * other
    elif other == 0.0:
        machine.valid[to] = False
    elif operation == DIVIDE_F:
        result = one / other
    else:
        result = np.fmod(one, other)
    machine.words[to] = bits_of(result)


@inline_lean
def _changed(machine: Machine, operation: int, to: int, source: int) -> bool:
    """Change one value; return whether the result fits."""
    word, valid = machine.words[source], machine.valid[source]
    machine.valid[to] = valid
    if operation == NOT:
        machine.words[to] = 1 - word
    elif operation == IS_NULL:
        machine.words[to] = np.int64(not valid)
        machine.valid[to] = True
    elif operation == I_TO_F:
        machine.words[to] = bits_of(np.float64(word))
    elif operation == NEGATE_F:
        machine.words[to] = bits_of(-double_of(word))
    elif operation == ABS_F:
        machine.words[to] = bits_of(abs(double_of(word)))
    else:
        if valid and word == _LEAST:
            return False
        machine.words[to] = -word if operation == NEGATE_I or word < 0 else word
    return True


@inline_lean
def _compared(
    machine: Machine, operation: int, to: int, operands: tuple[int, int], option: int
) -> None:
    """Compare two values."""
    left, right = operands
    one, other = machine.words[left], machine.words[right]
    both = machine.valid[left] and machine.valid[right]
    if operation in (COMPARE_F, DISTINCT_I + 1):
        order = compare_floats(double_of(one), double_of(other))
    else:
        order = compare_ints(one, other)
    if operation <= COMPARE_F:
        machine.words[to] = (option >> (order + 1)) & 1
        machine.valid[to] = both
    else:
        differ = order != 0 if both else machine.valid[left] != machine.valid[right]
        machine.words[to] = np.int64(differ == (option == 1))
        machine.valid[to] = True


@inline_lean
def _joined(machine: Machine, operation: int, to: int, left: int, right: int) -> None:
    """AND and OR with three values."""
    words, valid = machine.words, machine.valid
    decides = np.int64(0) if operation == AND else np.int64(1)
    one = valid[left] and words[left] == decides
    other = valid[right] and words[right] == decides
    valid[to] = one or other or (valid[left] and valid[right])
    words[to] = decides if one or other else 1 - decides


@inline_lean
def _jumps(machine: Machine, operation: int, register: int) -> bool:
    """Whether a jump is made, depending on a register."""
    if operation == JUMP:
        return True
    valid, holds = machine.valid[register], machine.words[register] != 0
    if operation == JUMP_IF_VALID:
        return bool(valid)
    if operation == JUMP_IF_FALSE:
        return bool(valid and not holds)
    if operation == JUMP_IF_TRUE:
        return bool(valid and holds)
    return not (valid and holds)


@call_lean
def _asked(
    programs: Programs,
    sides: BothSides,
    found: FoundChains,
    answers: Answers,
    machine: Machine,
    at: int,
    chain: int,
    event: int,
) -> bool:
    """Look a value of a function up; if it is not known, ask for it and return False."""
    to, function = programs.instructions[at, 1], programs.instructions[at, 2]
    first, count = programs.instructions[at, 3], programs.instructions[at, 4]
    key, width = machine.key, machine.key.shape[1]
    for number in range(width):
        key[0, number] = 0
    key[0, 0] = function
    for number in range(count):
        side, column = programs.arguments[first + number, 0], programs.arguments[first + number, 1]
        if side == -1:
            key[0, 2 + number] = sides.left_codes[column, origin_of(sides, found, chain)]
        elif side == -2:
            key[0, 2 + number] = sides.right_codes[column, event]
        else:
            _carried(programs, sides, found, machine, to, column, chain)
            if machine.valid[to]:
                key[0, 2 + number] = machine.words[to]
            else:
                key[0, 1] |= 1 << number
    place = place_of(answers, key, 0)
    if answers.used[place]:
        machine.words[to] = answers.words[place]
        machine.valid[to] = answers.valid[place]
        return True
    asked = machine.facts[ASKED]
    if asked < len(machine.asked):
        machine.asked[asked, 0] = function
        machine.asked[asked, 1] = chain
        machine.asked[asked, 2] = event
        for number in range(width):
            machine.asked[asked, 3 + number] = key[0, number]
        machine.facts[ASKED] = asked + 1
    return False


@inline_lean
def run(
    programs: Programs,
    number: int,
    sides: BothSides,
    found: FoundChains,
    answers: Answers,
    machine: Machine,
    chain: int,
    event: int,
) -> int:
    """Run a program on a chain and an event that may follow it; its value is in its register.

    Returns whether the value is true, and UNKNOWN or FAILED if there is none.
    """
    at, end = programs.entries[number], programs.entries[number + 1]
    words, valid = machine.words, machine.valid
    while at < end:
        operation = programs.instructions[at, 0]
        to = programs.instructions[at, 1]
        source, other = programs.instructions[at, 2], programs.instructions[at, 3]
        fits = True
        if operation <= CARRIED:
            _loaded(programs, sides, found, machine, operation, to, source, chain, event)
        elif operation == MOVE:
            words[to], valid[to] = words[source], valid[source]
        elif COMPARE_I <= operation < AND:
            option = programs.instructions[at, 4]
            _compared(machine, operation, to, (source, other), option)
        elif AND <= operation <= OR:
            _joined(machine, operation, to, source, other)
        elif operation >= JUMP:
            if operation == ASK:
                if not _asked(programs, sides, found, answers, machine, at, chain, event):
                    return UNKNOWN
            elif _jumps(machine, operation, to):
                at = source
                continue
        elif operation < ADD_F:
            fits = _calculated_i(machine, operation, to, source, other)
        elif operation <= REMAINDER_F:
            _calculated_f(machine, operation, to, source, other)
        else:
            fits = _changed(machine, operation, to, source)
        if not fits:
            machine.facts[WHERE] = at
            return FAILED
        at += 1
    result = programs.results[number]
    return TRUE if valid[result] and words[result] != 0 else FALSE


@call_lean
def run_apart(
    programs: Programs,
    number: int,
    sides: BothSides,
    found: FoundChains,
    answers: Answers,
    machine: Machine,
    chain: int,
    event: int,
) -> int:
    """The same as `run`, as a function that is called."""
    return run(programs, number, sides, found, answers, machine, chain, event)
