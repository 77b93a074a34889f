"""Programs of conditions: what is tested of an event, and where to go on.

A condition is a tree of AND and OR over tests, for NOT has been pushed into the tests. A test has
one of three outcomes; it passes if its mask allows the outcome. Then the next instruction follows,
otherwise the one that it jumps to. So two values are enough, although the logic has three.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s, Int64s, inline_lean

Octets = npt.NDArray[np.uint8]

TRUE, FALSE, NULL = 1, 2, 4
"""Outcomes of a test, as bits of a mask."""

ACCEPT, EQUAL, LESS, AT_MOST, MORE, AT_LEAST, BETWEEN, ONE_OF, VALID, TEXT = range(10)
"""Instructions. ONE_OF has several constants in order, TEXT the number of a text test."""

OPERATION, MASK, COLUMN, SLOT, COUNT, JUMP = range(6)
"""Fields of an instruction. SLOT and COUNT say which constants of the condition it takes."""
REJECT = -1


_OPERATION, _MASK, _COLUMN = np.uint64(OPERATION), np.uint64(MASK), np.uint64(COLUMN)
_SLOT, _COUNT, _JUMP = np.uint64(SLOT), np.uint64(COUNT), np.uint64(JUMP)
_ONE = np.uint64(1)


class EventWords(NamedTuple):
    """The events of a batch, a row each: words of their columns, and which are not null.

    `verdicts[i, t]` is the place of the value of a text column in `texts`, -1 for none.
    """

    words: Int64s
    valid: Octets
    verdicts: Int32s


NUMBER, PROGRAM, CONSTANTS = range(3)
"""Words of a record: a condition's number, its shape and its first instruction, its constants.

The first instruction of a condition that was dropped is `DROPPED`.
"""
DROPPED = 0
SHAPE_BITS = 32
FIRST_MASK = (1 << SHAPE_BITS) - 1


@inline_lean
def is_one_of(word: int, constants: Int64s, first: int, count: int) -> bool:
    """Whether a word is among constants in order."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) >> 1
        if constants[middle] < word:
            low = middle + 1
        else:
            high = middle
    return bool(low < first + count and constants[low] == word)


@inline_lean
def passes(
    operation: int, word: int, place: int, event: int, marks: Int32s, records: Int64s
) -> bool:
    """Whether a word passes a test whose constants are from a place on; VALID always does."""
    at = np.uint64(place)
    if operation == BETWEEN:
        return bool((records[at] <= word) & (word <= records[at + _ONE]))
    if operation == EQUAL:
        return bool(word == records[at])
    if operation == LESS:
        return bool(word < records[at])
    if operation == AT_MOST:
        return bool(word <= records[at])
    if operation == MORE:
        return bool(word > records[at])
    if operation == AT_LEAST:
        return bool(word >= records[at])
    if operation == TEXT:
        return bool(marks[np.uint64(records[at])] == event)
    return True


@inline_lean
def holds_from(
    first: int,
    event: int,
    record: int,
    words: Int64s,
    valid: Octets,
    marks: Int32s,
    code: Int32s,
    records: Int64s,
) -> bool:
    """Whether a condition is true on an event, from one of its instructions on.

    `marks` has the event at text tests that pass. Indices are without sign, for what has a sign is
    compared with zero each time.
    """
    at = np.uint64(first)
    base, row = record + CONSTANTS, np.uint64(event)
    operation = code[at, _OPERATION]
    while operation != ACCEPT:
        column = np.uint64(code[at, _COLUMN])
        outcome = NULL
        if valid[row, column]:
            place, word = base + code[at, _SLOT], words[row, column]
            if operation == ONE_OF:
                passed = is_one_of(word, records, place, code[at, _COUNT])
            else:
                passed = passes(operation, word, place, event, marks, records)
            outcome = TRUE if passed else FALSE
        if code[at, _MASK] & outcome:
            at += _ONE
        else:
            jump = code[at, _JUMP]
            if jump < 0:
                return False
            at = np.uint64(jump)
        operation = code[at, _OPERATION]
    return True
