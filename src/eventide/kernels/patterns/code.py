"""Conditions on the state of a match as instructions, and the data of the machine that runs them.

Most of a condition is computed for whole columns beforehand; the rest combines rows that are known
only while a match grows. This module has what the others share: the instructions and the values
they read, and the memory of one search. numbers.py has the arithmetic of conditions, registers.py
the registers of a match, machine.py the machine that runs instructions.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Bools, Floats, Int64s, call_lean
from eventide.kernels.patterns.tables import OK


class Code(NamedTuple):
    """The conditions of all variables, and how taking a row changes registers.

    The program of variable v is the `instructions` from `by_variable[v, PROGRAM]` on, each one
    (operation, four operands). Taking a row as v does the `updates` from `by_variable[v, UPDATE]`
    on, each one (operation, value column, column of its validity or -1, register, float register,
    second register block, register of the picked row, second value column or -1, distinct table or
    -1, width or code column, tree or -1, code column of the tree). The `keys` from
    `by_node[q, SEEN]` on are what conditions behind node q can still read, each one (kind,
    register, value column, shift, register of the variable). `registers` are those before the first
    row; `of_registers` and `of_floats` say which variables each of them belongs to. Between two
    `thresholds` the number of a match makes no difference to any condition.
    """

    instructions: Int64s
    updates: Int64s
    keys: Int64s
    by_variable: Int64s
    by_node: Int64s
    registers: Int64s
    of_registers: Int64s
    of_floats: Int64s
    thresholds: Int64s
    float_registers: int
    keeps_counts: bool


class Tables(NamedTuple):
    """The values conditions read, by column and row; the last row stands for a missing row.

    `valid` has the float columns first, then the others. `codes` number equal values of aggregates
    that count each value; `starts` says where the counts of each such aggregate start. Some of them
    are trees, with codes in the order of values: then `ranked` has the value of each code, from the
    same place on. `constants` are (value, whether it is not null).
    """

    floats: Floats
    ints: Int64s
    valid: Bools
    codes: Int64s
    starts: Int64s
    ranked: Int64s
    constants: Int64s
    constant_floats: Floats


class Work(NamedTuple):
    """Memory of one search.

    Row d of `frames` has the row taken as number d, and the state of the search after d rows: what
    it has tried there, and the registers. It is one array, because every array that a function of a
    kernel takes costs time to compile.
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
    level: int


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
    BUDGET,
    HELD,
    GAP,
    LATE_SET,
) = range(19)
KEY = 19

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
    FRAME_AT,
    TIMED_ROW,
    TIMED_NODE,
    REGISTERS,
) = range(15)

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
    BEST_I,  # registers seen, value
    BEST_F,  # register seen, float register
    MOMENT,  # registers of the count and of losses, float registers of sums and products, form
    SHARE,  # register of the count, tree, constant, form
    FREQUENT,  # register of the count, tree, nothing, 1 if the value is no float
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
) = range(53)

# Updates.
(
    LAST,
    FIRST,
    COUNT,
    COUNT_RANKS,  # in a tree of sums
    COUNT_EQUALS,  # in a tree of maxima
    ADD_INTS,
    ADD_FLOATS,
    ADD_SQUARES,
    ADD_PRODUCTS,
    LEAST_I,
    GREATEST_I,
    LEAST_F,
    GREATEST_F,
) = range(13)

# Forms of moments and of shares.
STDDEV, STDDEV_POP, VARIANCE, VAR_POP, COVAR_SAMP, COVAR_POP, CORR, REGR_SLOPE = range(8)
BETWEEN, ONE_FLOAT, ONE_INTEGER, BUCKET = range(4)

# What sums are of: a value, a second value, their product, the square of each.
VALUES, SECONDS, PRODUCTS, SQUARES, SECOND_SQUARES = range(5)

# Kinds of what a remembered state consists of.
(
    KEY_REGISTER,
    KEY_FLOAT,
    KEY_PRESENT,
    KEY_LOAD_F,
    KEY_LOAD_I,
    KEY_NAMED,
    KEY_COUNT,  # a count, as far as it makes a difference: up to what stands for the column
    KEY_LEVEL,  # the number of the match, as far as it makes a difference
    KEY_LABEL,  # the variable of the row a register stands for, so many rows on
    KEY_EXACT,  # nothing, if the register is 0; otherwise the state cannot be remembered
) = range(10)

# The row that needs no register, and how a variable is found without one.
CURRENT = -1
PLAIN, BY_PATH = -1, -2


@call_lean
def fail(work: Work, status: int, what: int) -> None:
    """Remember the first error."""
    if work.info[STATUS] == OK:
        work.info[STATUS] = status
        work.info[WHAT] = what
