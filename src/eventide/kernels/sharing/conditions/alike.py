"""Conditions with the same program, tested together: each test of all of them at a time.

Conditions that are found by the same key stand side by side. Which of them pass a test is hard to
predict for one at a time; so a loop goes over all of them without a branch, and keeps those that
pass at the front.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline_lean
from eventide.kernels.sharing.conditions.programs import (
    ACCEPT,
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    COLUMN,
    CONSTANTS,
    COUNT,
    EQUAL,
    FALSE,
    FIRST_MASK,
    JUMP,
    LESS,
    MASK,
    MORE,
    NULL,
    ONE_OF,
    OPERATION,
    PROGRAM,
    SLOT,
    TRUE,
    Octets,
    is_one_of,
    passes,
)

FEWEST_ALIKE = 8
"""Fewer conditions are tested one by one."""


@inline_lean
def end_of_alike(tried: Int32s, first: int, end: int, records: Int64s) -> int:
    """Return where the records that have the program of the first one end."""
    program = records[tried[first] + PROGRAM]
    last = first + 1
    while last < end and records[tried[last] + PROGRAM] == program:
        last += 1
    return last


@inline_lean
def keep_alike(
    event: int,
    tried: Int32s,
    first: int,
    end: int,
    words: Int64s,
    valid: Octets,
    marks: Int32s,
    code: Int32s,
    records: Int64s,
) -> tuple[int, int]:
    """Move those of some records to the front whose condition may be true on an event.

    They are [first, end) and have one program. Returns the end of those that are left, and the
    instruction from which on each has to be looked at by itself.
    """
    at = int(records[tried[first] + PROGRAM] & FIRST_MASK)
    # Behind an OR, each goes its own way.
    while end - first >= FEWEST_ALIKE and code[at, OPERATION] != ACCEPT and code[at, JUMP] < 0:
        column, mask = code[at, COLUMN], code[at, MASK]
        if not valid[event, column]:
            if not mask & NULL:
                return first, at
        elif mask & (TRUE | FALSE) == 0:
            return first, at
        elif mask & (TRUE | FALSE) != TRUE | FALSE:
            end = keep_passing(
                (code[at, OPERATION], code[at, SLOT], code[at, COUNT], bool(mask & TRUE)),
                words[event, column], event, tried, first, end, marks, records,
            )  # fmt: skip
        at += 1
    return end, at


@inline_lean
def keep_passing(
    test: tuple[int, int, int, bool],
    word: int,
    event: int,
    tried: Int32s,
    first: int,
    end: int,
    marks: Int32s,
    records: Int64s,
) -> int:
    """Move the records to the front that pass a test, or that fail it; return their end.

    The test is an operation, the slot of its constants, how many there are, and whether it has to
    pass.
    """
    operation, slot, count, wanted = test
    offset, kept = CONSTANTS + slot, first
    if operation == BETWEEN and wanted:
        kept = keep_compared(AT_LEAST, word, offset, tried, first, end, records)
        kept = keep_compared(AT_MOST, word, offset + 1, tried, first, kept, records)
    elif operation == EQUAL:
        for i in range(first, end):
            record = tried[i]
            tried[kept] = record
            kept += (records[np.uint64(record + offset)] == word) == wanted
    elif operation in (LESS, AT_MOST, MORE, AT_LEAST):
        if not wanted:  # the opposite: they are numbered like the ends of a row
            operation = LESS + AT_LEAST - operation
        kept = keep_compared(operation, word, offset, tried, first, end, records)
    else:
        for i in range(first, end):
            record = tried[i]
            place = int(record + offset)
            if operation == ONE_OF:
                passed = is_one_of(word, records, place, count)
            else:
                passed = passes(operation, word, place, event, marks, records)
            tried[kept] = record
            kept += passed == wanted
    return kept


@inline_lean
def keep_compared(
    operation: int, word: int, offset: int, tried: Int32s, first: int, end: int, records: Int64s
) -> int:
    """Move the records to the front whose constant a word is above or below; return their end."""
    kept = first
    if operation in (LESS, AT_LEAST):
        below = operation == LESS
        for i in range(first, end):
            record = tried[i]
            tried[kept] = record
            kept += (word < records[np.uint64(record + offset)]) == below
    else:
        not_above = operation == AT_MOST
        for i in range(first, end):
            record = tried[i]
            tried[kept] = record
            kept += (word <= records[np.uint64(record + offset)]) == not_above
    return kept
