"""Values as words of 64 bits that compare as the values do, and the places of texts."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s, lean_kernel
from eventide.kernels.key_table import KeyTable, find, put
from eventide.kernels.sharing.conditions.programs import Octets

NAN_WORD = 0x7FF8000000000000
_ALL_BUT_SIGN = 0x7FFFFFFFFFFFFFFF


@lean_kernel
def order_floats(bits: Int64s, words: Int64s) -> None:
    """Write words that compare as doubles do, from their bits: one zero, NaN above all."""
    for i in range(len(bits)):
        word = bits[i]
        magnitude = word & _ALL_BUT_SIGN
        if magnitude == 0:
            word = np.int64(0)
        elif magnitude > 0x7FF0000000000000:
            word = np.int64(NAN_WORD)
        elif word < 0:
            word ^= _ALL_BUT_SIGN
        words[i] = word


@lean_kernel
def fill_column(values: Int64s, present: Bools, words: Int64s, valid: Octets, column: int) -> None:
    """Put a column into the rows of events; an empty `present` means that none is null."""
    for i in range(len(values)):
        words[i, column] = values[i]
        valid[i, column] = len(present) == 0 or present[i]


@lean_kernel
def place_values(
    table: KeyTable,
    first: Int64s,
    second: Int64s,
    null: Bools,
    next_place: int,
    verdicts: Int32s,
    column: int,
    fresh: Int32s,
) -> int:
    """Write the place of each value, -1 for null; new ones get places from `next_place` on.

    Returns how many are new; `fresh` has a row of each.
    """
    count = 0
    for i in range(len(first)):
        place = np.int64(-1)
        if not null[i]:
            place = find(table, first[i], second[i])
            if place < 0:
                place = np.int64(next_place + count)
                put(table, first[i], second[i], place)
                fresh[count] = i
                count += 1
        verdicts[i, column] = place
    return count
