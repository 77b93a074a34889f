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
def holds(
    event: int,
    record: int,
    words: Int64s,
    valid: Octets,
    marks: Int32s,
    code: Int32s,
    records: Int64s,
) -> bool:
    """Whether a condition is true on an event; `marks` has the event at text tests that pass."""
    at = records[record + PROGRAM] & FIRST_MASK
    base = record + CONSTANTS
    while at >= 0:
        operation = code[at, OPERATION]
        if operation == ACCEPT:
            return True
        column = code[at, COLUMN]
        outcome = NULL
        if valid[event, column]:
            place = base + code[at, SLOT]
            word = words[event, column]
            if operation == BETWEEN:
                passes = records[place] <= word <= records[place + 1]
            elif operation == EQUAL:
                passes = word == records[place]
            elif operation == LESS:
                passes = word < records[place]
            elif operation == AT_MOST:
                passes = word <= records[place]
            elif operation == MORE:
                passes = word > records[place]
            elif operation == AT_LEAST:
                passes = word >= records[place]
            elif operation == ONE_OF:
                passes = is_one_of(word, records, place, code[at, COUNT])
            elif operation == TEXT:
                passes = marks[records[place]] == event
            else:
                passes = True
            outcome = TRUE if passes else FALSE
        if code[at, MASK] & outcome:
            at += 1
        else:
            at = code[at, JUMP]
    return False
