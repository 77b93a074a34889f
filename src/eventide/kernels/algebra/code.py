"""Conditions on two events as instructions, and the data of the machine that runs them.

All values are words of 64 bits: whole numbers, times, truth values, the bits of doubles, and codes
of what does not fit into a word, such as text. Equal values of a type have equal codes.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Bools, Int32s, Int64s

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
    of the left side), (-2, one of the right side), or the number of a carried value twice. A value
    that is carried is (its column in `FoundChains`, -1), or (-1, the right column that it repeats).
    """

    instructions: Int64s
    entries: Int64s
    results: Int64s
    arguments: Int64s
    carried: Int64s


class BothSides(NamedTuple):
    """The values of waiting events and of those that may follow, by column and row.

    The events that may follow the waiting event i, which ended at `end[i]`, are `order[k]`, in
    order of `ts`, with k in [low[key[i]], high[key[i]]). Up to `expires[i]` something
    may follow it; without any `expires`, for ever. `first` is what each carries, by number. `codes`
    are arguments of functions, as codes.
    """

    left: Int64s
    left_valid: Bools
    left_codes: Int64s
    right: Int64s
    right_valid: Bools
    right_codes: Int64s
    first: Int64s
    first_valid: Bools
    key: Int32s
    end: Int64s
    expires: Int64s
    low: Int64s
    high: Int64s
    order: Int64s
    ts: Int64s
    start: Int64s


class FoundChains(NamedTuple):
    """What was found. Each result is a chain that began with a waiting event, `origin`.

    Its last event is `event`, number `place` in the order by key. Chains have numbers: first the
    waiting events alone, then the results. Those of `waiting_on` and `waits` are followed by
    nothing yet. `carried` are values of results that are no columns.
    """

    waiting_on: Bools
    origin: Int32s
    event: Int32s
    place: Int32s
    waits: Bools
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

    Constants have registers. `key` is one row: the key that is looked up. `open` are chains that
    are not settled: (chain, place of the event to go on with, instant of those that follow it, or
    NOT_YET). `begin` is, for each key, where those begin that may follow the waiting event that was
    looked at last.
    """

    words: Int64s
    valid: Bools
    asked: Int64s
    key: Int64s
    open: Int64s
    begin: Int64s
    facts: Int64s


# Places in Machine.facts.
FIRST, NEWEST, COUNT, OPEN, ASKED, AHEAD, WHERE = range(7)
"""The waiting event and the result to look at next, how many results there are, how many chains are
not settled, how many values are asked for, how far to look ahead when one is, and the instruction
that failed."""

NOT_YET = -(2**63)
"""No instant."""
