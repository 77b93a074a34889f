"""The machine that runs the instructions of a condition when a row is to be taken."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import call_lean, inline_lean
from eventide.kernels.numbers import (
    compare_floats,
    compare_ints,
    divide_rounded,
    integer_remainder,
    product,
    wide_as_float,
)
from eventide.kernels.patterns.code import (
    ABS_F,
    ABS_I,
    ADD_F,
    ADD_I,
    AND,
    AVG_F,
    AVG_I,
    BEST_F,
    BEST_I,
    BETTER_F,
    BETTER_I,
    COMPARE_F,
    COMPARE_I,
    CONST_F,
    CONST_I,
    COUNTED,
    DISTINCT_I,
    DIVIDE_F,
    F_TO_I,
    FREQUENT,
    I_TO_BOOL,
    I_TO_F,
    IS_NULL_I,
    JUMP,
    JUMP_IF_FALSE,
    JUMP_IF_TRUE,
    JUMP_UNLESS,
    LOAD_F,
    LOAD_I,
    MULTIPLY_F,
    MULTIPLY_I,
    NEGATE_F,
    NEGATE_I,
    NOT,
    NUMBER,
    OR,
    PLAIN,
    POP,
    PROGRAM,
    REMAINDER_F,
    REMAINDER_I,
    ROUND_DOWN,
    STATUS,
    SUBTRACT_F,
    SUBTRACT_I,
    SUM_I,
    VALUES,
    Code,
    Place,
    Tables,
    Work,
    fail,
)
from eventide.kernels.patterns.kept import exact_sum, kept_value
from eventide.kernels.patterns.registers import give_back, row_of, take, variable_of
from eventide.kernels.patterns.tables import NO_ANSWER, OK

_LEAST = np.iinfo(np.int64).min


@inline_lean
def _integer_arithmetic(work: Work, operation: int, top: int, at: int) -> None:
    """Combine the two integers on top of the stack into the lower one."""
    stack, valid = work.stack, work.stack_valid
    left, right = stack[top], stack[top + 1]
    valid[top] = valid[top] and valid[top + 1]
    if not valid[top]:
        return
    fits = True
    if operation == ADD_I:
        result = int(np.int64(np.uint64(left) + np.uint64(right)))
        fits = ((left ^ result) & (right ^ result)) >= 0
    elif operation == SUBTRACT_I:
        result = int(np.int64(np.uint64(left) - np.uint64(right)))
        fits = ((left ^ right) & (left ^ result)) >= 0
    elif operation == MULTIPLY_I:
        result, fits = product(left, right)
    elif right == 0:
        result = 0
        valid[top] = False
    else:
        result = integer_remainder(left, right)
    stack[top] = result
    if not fits:
        fail(work, NO_ANSWER, at)


@inline_lean
def _float_arithmetic(work: Work, operation: int, top: int) -> None:
    """Combine the two floats on top of the stack into the lower one."""
    stack, valid = work.stack_floats, work.stack_valid
    left, right = stack[top], stack[top + 1]
    valid[top] = valid[top] and valid[top + 1]
    if operation == ADD_F:
        stack[top] = left + right
    elif operation == SUBTRACT_F:
        stack[top] = left - right
    elif operation == MULTIPLY_F:
        stack[top] = left * right
    elif right == 0.0:
        valid[top] = False
    elif operation == DIVIDE_F:
        stack[top] = left / right
    else:
        stack[top] = np.fmod(left, right)


@inline_lean
def _aggregated(code: Code, tables: Tables, work: Work, depth: int, at: int, top: int) -> None:
    """Push the value of an aggregate; `top` is the place."""
    operation, register = code.instructions[at, 0], code.instructions[at, 1]
    first, constant = code.instructions[at, 2], code.instructions[at, 3]
    to = depth + 1
    values, floats = work.frames[to], work.float_registers[to]
    stack, stack_floats, valid = work.stack, work.stack_floats, work.stack_valid
    if operation == COUNTED:
        stack[top] = values[register]
        valid[top] = True
    elif operation == SUM_I:
        stack[top] = values[register]
        valid[top] = values[register + 2] > 0
        if values[register + 1] != values[register] >> 63:
            fail(work, NO_ANSWER, at)
    elif operation == AVG_I:
        count = values[register + 2]
        valid[top] = count > 0
        if count > 0:
            total = wide_as_float(values[register], values[register + 1])
            stack_floats[top] = total / tables.constant_floats[constant] / np.float64(count)
    elif operation <= AVG_F:
        count = values[register]
        total = floats[first]
        if values[register + 1] != 0:
            total, _ = exact_sum(code, tables, work, depth, first, int(np.int64(VALUES)))
        elif np.isfinite(total):
            total += floats[first + 1]
        valid[top] = count > 0
        stack_floats[top] = total
        if operation == AVG_F and count > 0:
            stack_floats[top] = total / np.float64(count)
    elif operation == BEST_I:
        valid[top] = values[register] > 0
        stack[top] = values[register + 1]
    elif operation == BEST_F:
        valid[top] = values[register] > 0
        stack_floats[top] = floats[first]
    else:
        kept_value(code, tables, work, depth, at, top)


@inline_lean
def _compared(work: Work, operation: int, option: int, top: int) -> None:
    """Compare the two values on top of the stack, or keep the better of them."""
    stack, floats, valid = work.stack, work.stack_floats, work.stack_valid
    both = valid[top] and valid[top + 1]
    kind = operation
    if operation <= BETTER_I:
        order = compare_ints(stack[top], stack[top + 1])
    else:
        order = compare_floats(floats[top], floats[top + 1])
        kind -= COMPARE_F - COMPARE_I
    if kind == COMPARE_I:
        stack[top] = (option >> (order + 1)) & 1
        valid[top] = both
    elif kind == DISTINCT_I:
        differ = order != 0 if both else valid[top] != valid[top + 1]
        stack[top] = np.int64(differ == (option == 1))
        valid[top] = True
    else:
        wins = order > 0 if option == 1 else order < 0
        if not ((both and wins) or not valid[top + 1]):
            stack[top] = stack[top + 1]
            floats[top] = floats[top + 1]
            valid[top] = valid[top + 1]


@inline_lean
def _logic(work: Work, operation: int, top: int) -> None:
    """AND and OR with three values of the two on top of the stack."""
    stack, valid = work.stack, work.stack_valid
    decides = np.int64(0) if operation == AND else np.int64(1)
    left = valid[top] and stack[top] == decides
    right = valid[top + 1] and stack[top + 1] == decides
    valid[top] = left or right or (valid[top] and valid[top + 1])
    stack[top] = decides if left or right else 1 - decides


@inline_lean
def _changed(work: Work, operation: int, at: int, top: int) -> None:
    """Change the one value on top of the stack."""
    stack, floats, valid = work.stack, work.stack_floats, work.stack_valid
    if operation == NOT:
        stack[top] = 1 - stack[top]
    elif operation == IS_NULL_I:
        stack[top] = np.int64(not valid[top])
        valid[top] = True
    elif operation <= ABS_I:
        if operation == NEGATE_I or stack[top] < 0:
            if valid[top] and stack[top] == _LEAST:
                fail(work, NO_ANSWER, at)
            stack[top] = -stack[top]
    elif operation == NEGATE_F:
        floats[top] = -floats[top]
    elif operation == ABS_F:
        floats[top] = abs(floats[top])
    elif operation == I_TO_F:
        floats[top] = np.float64(stack[top])
    elif operation == I_TO_BOOL:
        stack[top] = np.int64(stack[top] != 0)
    else:
        stack[top] = np.int64(floats[top] != 0.0)


@inline_lean
def _narrowed(
    work: Work, tables: Tables, operation: int, operands: tuple[int, int], at: int, top: int
) -> None:
    """Cast the value on top of the stack to a type that may be too small for it."""
    stack, valid = work.stack, work.stack_valid
    constant, or_null = operands
    fits = True
    if operation == F_TO_I:
        whole = np.rint(work.stack_floats[top])
        fits = -9223372036854775808.0 <= whole < 9223372036854775808.0
        if fits:
            stack[top] = np.int64(whole)
    elif operation == ROUND_DOWN:
        stack[top] = divide_rounded(stack[top], tables.constants[constant, 0])
    else:
        most = tables.constants[constant, 0]
        fits = -most <= stack[top] <= most
    if valid[top] and not fits:
        valid[top] = False
        if or_null == 0:
            fail(work, NO_ANSWER, at)


@inline_lean
def _loaded(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, at: int, top: int
) -> None:
    """Push the value of a column at a row of the match, or of a constant."""
    operation, register = code.instructions[at, 0], code.instructions[at, 1]
    column, shift = code.instructions[at, 2], code.instructions[at, 3]
    by = code.instructions[at, 4]
    variables = len(code.by_variable) - 1
    if operation <= LOAD_I:
        row = row_of(work, place, depth, register, shift, tables.valid.shape[1] - 1)
        if by != PLAIN:
            column += variable_of(work, depth, by, row, variables)
        if operation == LOAD_F:
            work.stack_floats[top] = tables.floats[column, row]
            work.stack_valid[top] = tables.valid[column, row]
        else:
            work.stack[top] = tables.ints[column, row]
            work.stack_valid[top] = tables.valid[len(tables.floats) + column, row]
    elif operation <= CONST_I:
        constant = column
        if by != PLAIN:
            row = row_of(work, place, depth, register, shift, place.low - 1)
            constant += variable_of(work, depth, by, row, variables)
        if operation <= CONST_F:
            work.stack_floats[top] = tables.constant_floats[constant]
        else:
            work.stack[top] = tables.constants[constant, 0]
        work.stack_valid[top] = tables.constants[constant, 1] != 0
    elif operation == NUMBER:
        work.stack[top] = place.number
        work.stack_valid[top] = True
    else:
        work.stack_valid[top] = False


@inline_lean
def _jumps(work: Work, operation: int, top: int) -> bool:
    """Whether a jump is made, depending on the value on top of the stack."""
    if operation == JUMP:
        return True
    holds = bool(work.stack_valid[top] and work.stack[top] != 0)
    if operation == JUMP_IF_TRUE:
        return holds
    if operation == JUMP_UNLESS:
        return not holds
    if operation == JUMP_IF_FALSE:
        return bool(work.stack_valid[top] and work.stack[top] == 0)
    return bool(work.stack_valid[top])


@inline_lean
def run(code: Code, tables: Tables, work: Work, place: Place, depth: int, variable: int) -> bool:
    """Whether the condition of a variable is true once row number `depth` is taken."""
    at, end = code.by_variable[variable, PROGRAM], code.by_variable[variable + 1, PROGRAM]
    top = -1
    while at < end:
        operation = code.instructions[at, 0]
        if operation <= NUMBER:
            top += 1
            _loaded(code, tables, work, place, depth, at, top)
        elif operation <= FREQUENT:
            top += 1
            _aggregated(code, tables, work, depth, at, top)
        elif COMPARE_I <= operation <= BETTER_F:
            top -= 1
            _compared(work, operation, code.instructions[at, 1], top)
        elif AND <= operation <= OR:
            top -= 1
            _logic(work, operation, top)
        elif operation >= JUMP:
            jumps = operation != POP and _jumps(work, operation, top)
            if operation >= JUMP_UNLESS:
                top -= 1
            if jumps:
                at = code.instructions[at, 1]
                continue
        elif ADD_I <= operation <= REMAINDER_I:
            top -= 1
            _integer_arithmetic(work, operation, top, at)
        elif ADD_F <= operation <= REMAINDER_F:
            top -= 1
            _float_arithmetic(work, operation, top)
        elif operation >= F_TO_I:
            option = (code.instructions[at, 1], code.instructions[at, 2])
            _narrowed(work, tables, operation, option, at, top)
        else:
            _changed(work, operation, at, top)
        at += 1
    return bool(work.stack_valid[0] and work.stack[0] != 0 and work.info[STATUS] == OK)


@inline_lean
def tested(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, row: int, variable: int
) -> bool:
    """Take a row whose own part of the condition holds; return whether the rest holds too."""
    take(code, tables, work, depth, row, variable)
    if code.by_variable[variable, PROGRAM] == code.by_variable[variable + 1, PROGRAM]:
        return True
    if run(code, tables, work, place, depth, variable):
        return True
    if code.keeps_counts:
        give_back(code, tables, work, depth)
    return False


@call_lean
def accepts(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, row: int, variable: int
) -> bool:
    """The same as `tested`, as a function that is called."""
    return tested(code, tables, work, place, depth, row, variable)
