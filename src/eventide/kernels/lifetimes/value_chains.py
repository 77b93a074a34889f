"""Tuples in chains of their values: the data structures of kernels/lifetimes/two_sides.py.

Values and tuples are rows of two tables of integers, with handles; free ones are linked.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, inline
from eventide.kernels.key_table import KeyTable, find, put

DIFFERENCE, ABSENT, PRESENT, ONE, VALUE = 0, 1, 2, 3, 4
LEFT, RIGHT = 0, 1
"""The rules of kernels/lifetimes/two_sides.py, and the sides."""

OF, BEFORE, BEHIND, TUPLE_MARKS, ID, TUPLE_OUT_ID, TUPLE_ROW, EXP, TUPLE_COLUMNS = range(9)
"""Columns of a tuple: its value, its neighbours in the chain, marks, its id and that in the answer,
the number of its row, its expiry. Together they fill one cache line."""
FIRST, SECOND, LEFTS, RIGHTS, HEAD, TAIL, BOUNDARY, INSIDES, LINK = range(9)
VALUE_MARKS, VALUE_OUT_ID, VALUE_ROW, VALUE_COLUMNS = 9, 10, 11, 12
"""Columns of a value: its words and counts, its chain and how much of that is inside, the next
one that has changed or is free, marks, and its id in the answer and row."""

ALIVE, DEAD, OF_RIGHT, INSIDE, EMITTED, CHANGED = 1, 2, 4, 8, 16, 32
"""Marks: in use, gone before it expired, of the right side, among the first ones of its value, in
the answer, to be checked when the instant ends."""

RULE, NAMED, TUPLES_USED, FREE_TUPLES, FREE_TUPLE, VALUES_USED, FREE_VALUES, FREE_VALUE = range(8)
TO_SETTLE, INSERTED, ALL_LEFTS, ALL_RIGHTS, FACTS = range(8, 13)
"""The contents of `facts`: the rule; which sides have tuples that go by their id (1 left, 2 right);
how many handles have ever been used, how many are free, and the first of those; the first value
that has changed; how many left tuples have come among the first ones; how many live in all."""


@inline
def has_changed(values: Int64s, facts: Int64s, value: np.int64) -> None:
    """Note that a value has to be checked when the instant ends."""
    if values[value, VALUE_MARKS] & CHANGED == 0:
        values[value, VALUE_MARKS] |= CHANGED
        values[value, LINK] = facts[TO_SETTLE]
        facts[TO_SETTLE] = value


@inline
def value_of(
    keys: KeyTable, values: Int64s, facts: Int64s, first: np.int64, second: np.int64, row: np.int64
) -> np.int64:
    """Return the handle of a value, a new one if there is none."""
    value = find(keys, first, second)
    if value < 0:
        value = facts[FREE_VALUE]
        if value >= 0:
            facts[FREE_VALUE] = values[value, LINK]
            facts[FREE_VALUES] -= 1
        else:
            value = facts[VALUES_USED]
            facts[VALUES_USED] += 1
        put(keys, first, second, value)
        values[value, FIRST] = first
        values[value, SECOND] = second
        values[value, LEFTS] = 0
        values[value, RIGHTS] = 0
        values[value, INSIDES] = 0
        values[value, HEAD] = -1
        values[value, TAIL] = -1
        values[value, BOUNDARY] = -1
        values[value, VALUE_MARKS] = ALIVE
        values[value, VALUE_ROW] = row
    return np.int64(value)


@inline
def new_tuple(tuples: Int64s, facts: Int64s) -> np.int64:
    """Return the handle of a new tuple."""
    handle = facts[FREE_TUPLE]
    if handle >= 0:
        facts[FREE_TUPLE] = tuples[handle, BEHIND]
        facts[FREE_TUPLES] -= 1
    else:
        handle = facts[TUPLES_USED]
        facts[TUPLES_USED] += 1
    return np.int64(handle)


@inline
def free_tuple(tuples: Int64s, facts: Int64s, handle: np.int64) -> None:
    """Free a handle so that it can be used again."""
    tuples[handle, TUPLE_MARKS] = 0
    tuples[handle, BEHIND] = facts[FREE_TUPLE]
    facts[FREE_TUPLE] = handle
    facts[FREE_TUPLES] += 1


@inline
def chain(
    tuples: Int64s, values: Int64s, inserted: Int64s, facts: Int64s, handle: np.int64
) -> None:
    """Put a left tuple into the chain of its value."""
    value = tuples[handle, OF]
    before, behind = values[value, TAIL], np.int64(-1)
    if facts[RULE] == DIFFERENCE:
        while before >= 0 and (
            tuples[before, EXP] > tuples[handle, EXP]
            or (
                tuples[before, EXP] == tuples[handle, EXP]
                and tuples[before, ID] > tuples[handle, ID]
            )
        ):
            behind = before
            before = tuples[before, BEFORE]
    tuples[handle, BEFORE] = before
    tuples[handle, BEHIND] = behind
    if before >= 0:
        tuples[before, BEHIND] = handle
    else:
        values[value, HEAD] = handle
    if behind < 0:
        values[value, TAIL] = handle
    else:
        tuples[behind, BEFORE] = handle
        if tuples[behind, TUPLE_MARKS] & INSIDE:
            tuples[handle, TUPLE_MARKS] |= INSIDE
            values[value, INSIDES] += 1
            inserted[facts[INSERTED]] = handle
            facts[INSERTED] += 1


@inline
def unchain(tuples: Int64s, values: Int64s, handle: np.int64) -> None:
    """Remove a left tuple from the chain of its value."""
    value = tuples[handle, OF]
    before, behind = tuples[handle, BEFORE], tuples[handle, BEHIND]
    if tuples[handle, TUPLE_MARKS] & INSIDE:
        values[value, INSIDES] -= 1
        if values[value, BOUNDARY] == handle:
            values[value, BOUNDARY] = before
    if before >= 0:
        tuples[before, BEHIND] = behind
    else:
        values[value, HEAD] = behind
    if behind >= 0:
        tuples[behind, BEFORE] = before
    else:
        values[value, TAIL] = before
