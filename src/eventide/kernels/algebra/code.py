"""Conditions on two events as instructions, and the data of the machine that runs them.

All values are words of 64 bits: whole numbers, times, truth values, the bits of doubles, and codes
of what does not fit into a word, such as text. Equal values of a type have equal codes.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Bools, Int64s

# Instructions: the register they write, then what they read.
(
    LEFT,  # to, column: a value of the event that waits
    RIGHT,  # to, column: of the event that may follow
    CARRIED,  # to, number: of the chain
    MOVE,  # to, register
    ADD_I,  # to, register, register
    SUBTRACT_I,
    MULTIPLY_I,
    REMAINDER_I,
    ADD_F,
    SUBTRACT_F,
    MULTIPLY_F,
    DIVIDE_F,
    REMAINDER_F,
    NEGATE_I,  # to, register
    ABS_I,
    NEGATE_F,
    ABS_F,
    COMPARE_I,  # to, register, register, bits: holds if less 1, equal 2, greater 4
    COMPARE_F,
    DISTINCT_I,  # to, register, register, 1 for IS DISTINCT FROM, 0 for IS NOT
    DISTINCT_F,
    AND,  # to, register, register
    OR,
    NOT,  # to, register
    IS_NULL,
    I_TO_F,
    JUMP,  # nothing, place
    JUMP_IF_FALSE,  # register, place
    JUMP_IF_TRUE,
    JUMP_UNLESS,  # register, place: unless it is true
    JUMP_IF_VALID,
    ASK,  # to, number of the function, first of its arguments, how many
) = range(32)

CONDITION, PROCEED, NEXT = range(3)
"""The programs of a node; those of carried values follow."""

TRUE, FALSE, UNKNOWN, FAILED, STOPS = range(5)
"""What is said of two events; STOPS: the second follows, and the chain does not go on."""


class Programs(NamedTuple):
    """The programs of a node: number n is instructions [entries[n], entries[n + 1]).

    `results` are the registers of their values. An argument of a function is (-1, column of codes
    of the left side), (-2, one of the right side), or the number of a carried value twice.
    """

    instructions: Int64s
    entries: Int64s
    results: Int64s
    arguments: Int64s


class BothSides(NamedTuple):
    """The values of waiting events and of those that may follow, by column and row.

    The events that may follow the waiting event i are `order[k]`, in order of `ts`, with k in
    [offsets[key[i]], offsets[key[i] + 1]). Up to `expires[i]` something may follow it. `codes` are
    arguments of functions, as codes.
    """

    left: Int64s
    left_valid: Bools
    left_codes: Int64s
    right: Int64s
    right_valid: Bools
    right_codes: Int64s
    key: Int64s
    expires: Int64s
    offsets: Int64s
    order: Int64s
    ts: Int64s
    start: Int64s


class Chains(NamedTuple):
    """Events that wait, then chains that begin with them, in the order in which they were found.

    A chain began with the waiting event `origin`, its last event is `event` (-1: it has only the
    first), and it ended at `end`. It has been compared with its candidates up to `cursor` (-1: with
    none), and followed at the instant `followed` (NOT_YET).
    """

    origin: Int64s
    event: Int64s
    end: Int64s
    cursor: Int64s
    followed: Int64s
    state: Int64s
    carried: Int64s
    carried_valid: Bools


class Answers(NamedTuple):
    """A hash table of values of functions: keys are (function, which arguments are null, them)."""

    keys: Int64s
    used: Bools
    words: Int64s
    valid: Bools


class Machine(NamedTuple):
    """Registers, and what is asked for: (function, chain, event), then the key of the answer.

    Constants have registers. `key` is one row: the key that is looked up.
    """

    words: Int64s
    valid: Bools
    asked: Int64s
    key: Int64s
    facts: Int64s


# Places in Machine.facts.
FIRST, COUNT, ASKED, AHEAD, WHERE = range(5)
"""The first chain that is not settled, how many there are, how many values are asked for, how far
to look ahead when one is, and the instruction that failed."""

OPEN, WAITS, ENDED = range(3)
"""The state of a chain: it has candidates left, it waits for others, it needs no more."""

NOT_YET = -(2**63)
"""No instant."""
