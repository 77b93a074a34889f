"""Conditions on the state of a match, as instructions, and the machine that runs them.

Most of a condition is computed for whole columns beforehand; what is left for here combines
rows that are known only while a match grows. A match has registers: which rows came first and
last of a set of variables, counts, sums and extremes. Taking a row computes the registers after
it from those before it, so that going back means to forget, never to subtract.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numba
import numpy as np

from eventide.kernels.compiled import Bools, Floats, Int64s
from eventide.kernels.match_tables import NO_ANSWER, OK
from eventide.kernels.sums import two_product, two_sum

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


_PIECE: dict[str, Any] = {"nogil": True, "_nrt": False}
"""Nothing here allocates, so that counting references to arrays is left out: with so many of them
it would take most of the time of compiling."""


def merged(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a piece into the machine code of its caller: it takes too many arrays to call."""
    compiled: Callable[Arguments, Returned] = numba.njit(forceinline=True, **_PIECE)(function)
    return compiled


def called(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a piece that kernels call from several places.

    A callee is optimised again in every piece that calls it: few of them, and not in layers.
    """
    compiled: Callable[Arguments, Returned] = numba.njit(**_PIECE)(function)
    return compiled


def lasting(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a kernel of such pieces and keep the machine code on disk."""
    compiled: Callable[Arguments, Returned]
    try:
        compiled = numba.njit(cache=True, **_PIECE)(function)
    except RuntimeError:  # no folder to keep machine code in can be written to
        compiled = numba.njit(**_PIECE)(function)
    return compiled


class Code(NamedTuple):
    """What the conditions of all variables do, and what taking a row does to registers.

    The program of variable v is the `instructions` from `by_variable[v, PROGRAM]` on, each one
    (operation, four operands). Taking a row as v makes the `updates` from `by_variable[v, UPDATE]`
    on, each one (operation, value column, column of its validity or -1, register, float register,
    second register block or -1, distinct table or -1, width or code column). What conditions
    behind node q can still see are the `keys` from `by_node[q, SEEN]` on, each one (kind,
    register, value column, shift, register of the variable). `registers` are those before the
    first row.
    """

    instructions: Int64s
    updates: Int64s
    keys: Int64s
    by_variable: Int64s
    by_node: Int64s
    registers: Int64s
    float_registers: int
    reads_number: bool
    keeps_distinct: bool


class Tables(NamedTuple):
    """The values conditions read, by column and row; the last row is the one that is not there.

    `valid` has the float columns first, then the others. `codes` number equal values of what is
    counted DISTINCT, `distinct` says where the counts of each such aggregate start. `constants` are
    (value, whether it is one).
    """

    floats: Floats
    ints: Int64s
    valid: Bools
    codes: Int64s
    distinct: Int64s
    constants: Int64s
    constant_floats: Floats


class Work(NamedTuple):
    """Memory of one search.

    Row d of `frames` has the row taken as number d, and where the search stands after d rows: what
    it has tried there, and the registers. It is one array, as every array that a piece of a kernel
    takes costs time to compile.
    """

    frames: Int64s
    float_registers: Floats
    stack: Int64s
    stack_floats: Floats
    stack_valid: Bools
    counts: Int64s
    slots: Int64s
    words: Int64s
    info: Int64s


class Place(NamedTuple):
    """Where a search goes on: the rows of one partition, and what holds from one start row."""

    low: int
    high: int
    known: int
    start: int
    deadline: int
    number: int


# Places in Work.info.
(
    STEPS,
    STATUS,
    WHAT,
    TO,
    DEPTH,
    TIMED,
    FAILED,
    USED,
    BASE,
    WANTED,
    KEEPING,
    MATCHES,
    PENDING,
    KEY_AT,
    HITS,
) = range(15)
KEY = 15

# Columns of Work.frames.
(
    PATH_ROW,
    PATH_NODE,
    PATH_VARIABLE,
    FRAME_NODE,
    FRAME_FROM,
    FRAME_STEP,
    FRAME_ROW,
    FRAME_VIOLATED,
    FRAME_OPEN,
    FRAME_GOOD,
    FRAME_SET,
    TIMED_ROW,
    TIMED_NODE,
    REGISTERS,
) = range(14)

# Columns of Code.by_variable and Code.by_node.
PROGRAM, UPDATE = range(2)
SEEN, REMEMBERED = range(2)

# Instructions: what they take from the stack, what they push. Booleans are 0 and 1.
(
    LOAD_F,  # row register, column, shift, variable register: the value there
    LOAD_I,
    NAMED_F,  # row register, first of the constants by variable, shift, variable register
    CONST_F,  # nothing, constant
    NAMED_I,
    CONST_I,
    NULL,
    NUMBER,  # the match's number
    COUNTED,  # register
    SUM_I,  # registers low, high, count
    AVG_I,  # registers as SUM_I, nothing, constant to divide by
    SUM_F,  # register of the count, float register
    AVG_F,
    DEVIATION,  # register of the count, float registers of sums and squares
    BEST_I,  # registers seen, value
    BEST_F,  # register seen, float register
    ADD_I,
    SUBTRACT_I,
    MULTIPLY_I,
    REMAINDER_I,
    NEGATE_I,
    ABS_I,
    ADD_F,
    SUBTRACT_F,
    MULTIPLY_F,
    DIVIDE_F,
    REMAINDER_F,
    NEGATE_F,
    ABS_F,
    COMPARE_I,  # bits: holds if less 1, equal 2, greater 4
    DISTINCT_I,  # 1 for IS DISTINCT FROM, 0 for IS NOT
    BETTER_I,  # 1 greatest, 0 least
    COMPARE_F,
    DISTINCT_F,
    BETTER_F,
    AND,
    OR,
    NOT,
    IS_NULL_I,
    I_TO_F,
    I_TO_BOOL,
    F_TO_BOOL,
    F_TO_I,  # nothing; 1: null where it fails
    ROUND_DOWN,  # constant: divide, halves away from zero
    BOUND,  # constant: no larger than; 1: null where it fails
    JUMP,  # to
    JUMP_IF_FALSE,  # to, keeping the value
    JUMP_IF_TRUE,
    JUMP_IF_VALID,
    JUMP_UNLESS,  # to, taking the value away
    POP,
) = range(51)

# Updates.
(
    LAST,
    FIRST,
    COUNT,
    ADD_INTS,
    ADD_FLOATS,
    ADD_SQUARES,
    LEAST_I,
    GREATEST_I,
    LEAST_F,
    GREATEST_F,
) = range(10)

# Kinds of what a remembered state consists of.
KEY_REGISTER, KEY_FLOAT, KEY_PRESENT, KEY_LOAD_F, KEY_LOAD_I, KEY_NAMED = range(6)

# Rows that need no register, and how a variable is found without one.
CURRENT, BEGINNING = -1, -2
PLAIN, BY_PATH = -1, -2

_MOST = np.iinfo(np.int64).max
_LEAST = np.iinfo(np.int64).min


@called
def compare_floats(left: float, right: float) -> int:
    """Return -1, 0 or 1; NaN equals itself and is greater than every number."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right:
        return 0
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    if left_nan and right_nan:
        return 0
    return 1 if left_nan else -1


@called
def compare_ints(left: int, right: int) -> int:
    """Return -1, 0 or 1."""
    if left < right:
        return -1
    return 1 if left > right else 0


@called
def product(left: int, right: int) -> tuple[int, bool]:
    """Return a product modulo 2^64, and whether it is an int64."""
    # Unsigned: the optimiser takes it for granted that signed numbers do not wrap around.
    wrapped = int(np.int64(np.uint64(left) * np.uint64(right)))
    near = np.float64(left) * np.float64(right)
    if -9.2e18 < near < 9.2e18:
        return wrapped, True
    # Near the limit, too large a product has wrapped around to the other sign.
    return wrapped, bool(-9.3e18 < near < 9.3e18 and (near < 0.0) == (wrapped < 0))


@called
def integer_remainder(left: int, right: int) -> int:
    """What division leaves, with the sign of the dividend; `right` is not zero."""
    if -1 <= right <= 1:
        return 0
    left_over = left % right
    if left_over != 0 and (left < 0) != (right < 0):
        left_over -= right
    return left_over


@called
def divide_rounded(value: int, divisor: int) -> int:
    """Divide by a power of ten, halves away from zero."""
    quotient = value // divisor
    rest = value - quotient * divisor
    if 2 * rest > divisor or (2 * rest == divisor and value >= 0):
        quotient += 1
    return quotient


@called
def wide_as_float(low: int, high: int) -> float:
    """Return a 128-bit integer as a double."""
    if high == low >> 63:
        return np.float64(low)
    return np.float64(high) * 2.0**64 + np.float64(np.uint64(low))


@called
def deviation(count: int, sums: Floats) -> float:
    """Sample deviation from the sums of values and squares, as `kernels.sums` has it."""
    total_count = np.float64(count)
    mean = (sums[0] + sums[1]) / total_count
    cross, cross_low = two_product(-2.0 * mean, sums[0])
    cross_low += -2.0 * mean * sums[1]
    square, square_low = two_product(mean, mean)
    scaled, scaled_low = two_product(total_count, square)
    scaled_low += total_count * square_low
    total, lost = two_sum(sums[2], cross)
    total, lost_too = two_sum(total, scaled)
    total += lost + lost_too + sums[3] + cross_low + scaled_low
    if not np.isfinite(total):
        return np.nan
    return float(np.sqrt(max(total, 0.0) / (total_count - 1.0)))


@called
def place_of(work: Work, row: int, depth: int) -> int:
    """Return which of the rows taken, up to `depth`, a row is; -1 if it is none."""
    low, high = 0, depth + 1
    while low < high:
        middle = (low + high) // 2
        if work.frames[middle, PATH_ROW] < row:
            low = middle + 1
        else:
            high = middle
    return low if low <= depth and work.frames[low, PATH_ROW] == row else -1


@merged
def row_of(work: Work, place: Place, depth: int, register: int, shift: int, absent: int) -> int:
    """Return the row a register stands for, so many rows on; `absent` if there is none."""
    if register == CURRENT:
        row = work.frames[depth, PATH_ROW]
    elif register == BEGINNING:
        row = work.frames[0, PATH_ROW]
    else:
        row = work.frames[depth + 1, register]
    if row < 0:
        return absent
    row += shift
    return row if place.low <= row < place.high else absent


@merged
def variable_of(work: Work, depth: int, register: int, row: int, none: int) -> int:
    """Return the variable of a row, from the register that keeps it or along the path."""
    if register == BY_PATH:
        at = place_of(work, row, depth)
        return work.frames[at, PATH_VARIABLE] if at >= 0 else none
    variable = work.frames[depth + 1, register]
    return variable if variable >= 0 else none


@called
def _extreme(current: float, value: float, sign: int, seen: int) -> bool:
    """Whether a float takes the place of the extreme so far."""
    return seen == 0 or compare_floats(value, current) * sign > 0


@merged
def _aggregate(
    operation: int, column: int, register: int, first: int, row: int, after: Work, tables: Tables
) -> None:
    """Add the value of a row to an aggregate, in the registers that info[TO] says."""
    registers, floats = after.frames, after.float_registers
    to = after.info[TO]
    if operation == COUNT:
        registers[to, register] += 1
    elif operation == ADD_INTS:
        value = tables.ints[column, row]
        before = registers[to, register]
        total = np.int64(np.uint64(before) + np.uint64(value))
        carry = np.int64(1) if np.uint64(total) < np.uint64(before) else np.int64(0)
        registers[to, register] = total
        registers[to, register + 1] += (value >> 63) + carry
        registers[to, register + 2] += 1
    elif operation <= ADD_SQUARES:
        number = tables.floats[column, row]
        floats[to, first], lost = two_sum(floats[to, first], number)
        floats[to, first + 1] += lost
        registers[to, register] += 1
        if operation == ADD_SQUARES:
            square, square_low = two_product(number, number)
            floats[to, first + 2], lost = two_sum(floats[to, first + 2], square)
            floats[to, first + 3] += lost + square_low
    elif operation <= GREATEST_I:
        value = tables.ints[column, row]
        best = registers[to, register + 1]
        better = value < best if operation == LEAST_I else value > best
        if registers[to, register] == 0 or better:
            registers[to, register + 1] = value
        registers[to, register] = 1
    else:
        number = tables.floats[column, row] + 0.0
        sign = -1 if operation == LEAST_F else 1
        if _extreme(floats[to, first], number, sign, registers[to, register]):
            floats[to, first] = number
        registers[to, register] = 1


@merged
def _chain(code: Code, work: Work, to: int, row: int, variable: int, update: int) -> None:
    """Put a row into the registers of the first or last rows of its kind."""
    registers = work.frames
    register, second = code.updates[update, 3], code.updates[update, 5]
    width = code.updates[update, 7]
    place = np.int64(0)
    if code.updates[update, 0] == LAST:
        for j in range(width - 1, 0, -1):
            registers[to, register + j] = registers[to, register + j - 1]
            if second >= 0:
                registers[to, second + j] = registers[to, second + j - 1]
    else:
        while place < width and registers[to, register + place] >= 0:
            place += 1
    if place < width:
        registers[to, register + place] = row
        if second >= 0:
            registers[to, second + place] = variable


@merged
def take(code: Code, tables: Tables, work: Work, depth: int, row: int, variable: int) -> None:
    """Compute the registers after one more row, the row number `depth` of the match."""
    registers, floats = work.frames, work.float_registers
    to = depth + 1
    for register in range(REGISTERS, registers.shape[1]):
        registers[to, register] = registers[depth, register]
    for register in range(floats.shape[1]):
        floats[to, register] = floats[depth, register]
    work.frames[depth, PATH_ROW] = row
    work.frames[depth, PATH_VARIABLE] = variable
    updates = code.updates
    for each in range(code.by_variable[variable, UPDATE], code.by_variable[variable + 1, UPDATE]):
        if updates[each, 0] <= FIRST:
            _chain(code, work, to, row, variable, each)
            continue
        valid, distinct = updates[each, 2], updates[each, 6]
        if valid >= 0 and not tables.valid[valid, row]:
            continue
        if distinct >= 0:
            at = tables.distinct[distinct] + tables.codes[updates[each, 7], row]
            work.counts[at] += 1
            if work.counts[at] > 1:
                continue
        work.info[TO] = to
        _aggregate(
            updates[each, 0],
            updates[each, 1],
            updates[each, 3],
            updates[each, 4],
            row,
            work,
            tables,
        )


@called
def give_back(code: Code, tables: Tables, work: Work, depth: int) -> None:
    """Undo what registers cannot: the counts of distinct values."""
    variable, row = work.frames[depth, PATH_VARIABLE], work.frames[depth, PATH_ROW]
    updates = code.updates
    for each in range(code.by_variable[variable, UPDATE], code.by_variable[variable + 1, UPDATE]):
        distinct, valid = updates[each, 6], updates[each, 2]
        if distinct >= 0 and (valid < 0 or tables.valid[valid, row]):
            code_of = tables.codes[updates[each, 7], row]
            work.counts[tables.distinct[distinct] + code_of] -= 1


@called
def fail(work: Work, status: int, what: int) -> None:
    """Remember the first error."""
    if work.info[STATUS] == OK:
        work.info[STATUS] = status
        work.info[WHAT] = what


@merged
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


@merged
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


@merged
def _aggregated(
    tables: Tables, work: Work, operation: int, operands: tuple[int, int, int], at: int, top: int
) -> None:
    """Push what an aggregate comes to; `top` is where to."""
    register, first, constant = operands
    to = work.info[TO]
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
        if np.isfinite(total):
            total += floats[first + 1]
        valid[top] = count > 0
        stack_floats[top] = total
        if operation == AVG_F and count > 0:
            stack_floats[top] = total / np.float64(count)
    elif operation == DEVIATION:
        valid[top] = values[register] > 1
        if values[register] > 1:
            stack_floats[top] = deviation(values[register], floats[first : first + 4])
    elif operation == BEST_I:
        valid[top] = values[register] > 0
        stack[top] = values[register + 1]
    else:
        valid[top] = values[register] > 0
        stack_floats[top] = floats[first]


@merged
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


@merged
def _logic(work: Work, operation: int, top: int) -> None:
    """AND and OR with three values of the two on top of the stack."""
    stack, valid = work.stack, work.stack_valid
    decides = np.int64(0) if operation == AND else np.int64(1)
    left = valid[top] and stack[top] == decides
    right = valid[top + 1] and stack[top + 1] == decides
    valid[top] = left or right or (valid[top] and valid[top + 1])
    stack[top] = decides if left or right else 1 - decides


@merged
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


@merged
def _narrowed(
    work: Work, tables: Tables, operation: int, operands: tuple[int, int], at: int, top: int
) -> None:
    """Cast the value on top of the stack to a type that may have no room for it."""
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


@merged
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


@merged
def _jumps(work: Work, operation: int, top: int) -> bool:
    """Whether a jump is made, looking at the value on top of the stack."""
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


@merged
def run(code: Code, tables: Tables, work: Work, place: Place, depth: int, variable: int) -> bool:
    """Whether the condition of a variable is true once row number `depth` is taken."""
    at, end = code.by_variable[variable, PROGRAM], code.by_variable[variable + 1, PROGRAM]
    top = -1
    while at < end:
        operation = code.instructions[at, 0]
        if operation <= NUMBER:
            top += 1
            _loaded(code, tables, work, place, depth, at, top)
        elif operation <= BEST_F:
            top += 1
            operands = (
                code.instructions[at, 1],
                code.instructions[at, 2],
                code.instructions[at, 3],
            )
            work.info[TO] = depth + 1
            _aggregated(tables, work, operation, operands, at, top)
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


@merged
def tested(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, row: int, variable: int
) -> bool:
    """Take a row whose own part of the condition holds; whether the rest of it holds too."""
    take(code, tables, work, depth, row, variable)
    if code.by_variable[variable, PROGRAM] == code.by_variable[variable + 1, PROGRAM]:
        return True
    if run(code, tables, work, place, depth, variable):
        return True
    if code.keeps_distinct:
        give_back(code, tables, work, depth)
    return False


@called
def accepts(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, row: int, variable: int
) -> bool:
    """Do as `tested` does."""
    return tested(code, tables, work, place, depth, row, variable)


@called
def write_key(
    code: Code, tables: Tables, work: Work, place: Place, depth: int, node: int, used: int
) -> int:
    """Append what conditions behind a node can still see to `work.key`; return its new length."""
    variables = len(code.by_variable) - 1
    key = work.info[KEY:]
    # Registers after `depth` rows: row_of looks one row further than the last one taken.
    for each in range(code.by_node[node, SEEN], code.by_node[node + 1, SEEN]):
        kind, register = code.keys[each, 0], code.keys[each, 1]
        column, by = code.keys[each, 2], code.keys[each, 4]
        if kind == KEY_REGISTER:
            key[used] = work.frames[depth, register]
        elif kind == KEY_FLOAT:
            key[used] = np.float64(work.float_registers[depth, register]).view(np.int64)
        elif kind == KEY_PRESENT:
            key[used] = np.int64(work.frames[depth, register] >= 0)
        elif kind == KEY_NAMED:
            key[used] = work.frames[depth, by]
        else:
            absent = tables.valid.shape[1] - 1
            row = row_of(work, place, depth - 1, register, code.keys[each, 3], absent)
            if by != PLAIN:
                column += variable_of(work, depth - 1, by, row, variables)
            if kind == KEY_LOAD_F:
                key[used] = np.float64(tables.floats[column, row]).view(np.int64)
            else:
                key[used] = tables.ints[column, row]
                column += len(tables.floats)
            used += 1
            key[used] = np.int64(tables.valid[column, row])
        used += 1
    return used
