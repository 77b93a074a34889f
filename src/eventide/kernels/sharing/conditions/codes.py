"""Codes for values that are no words: equal values have the same code while a condition uses it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, lean_kernel
from eventide.kernels.growing import longer
from eventide.kernels.key_table import KeyTable, empty_table, find, put, remove, roomy

CODES, FREE = 0, 1


class ValueCodes(NamedTuple):
    """The fingerprint of each code and how often it is used; `free` are codes to use again.

    `facts` has how many codes there are and how many of them are free.
    """

    table: KeyTable
    first: Int64s
    second: Int64s
    uses: Int64s
    free: Int64s
    facts: Int64s


def no_codes() -> ValueCodes:
    """Return codes of no values."""
    none = np.zeros(0, np.int64)
    return ValueCodes(empty_table(), none, none, none, none, np.zeros(2, np.int64))


def roomy_codes(codes: ValueCodes, more: int) -> ValueCodes:
    """Return codes with room for more: the same ones if there is room."""
    wanted = int(codes.facts[CODES]) + more
    table = roomy(codes.table, more)
    if len(codes.first) >= wanted and table is codes.table:
        return codes
    return ValueCodes(
        table,
        longer(codes.first, wanted),
        longer(codes.second, wanted),
        longer(codes.uses, wanted),
        longer(codes.free, wanted),
        codes.facts,
    )


@lean_kernel
def use_codes(codes: ValueCodes, first: Int64s, second: Int64s, out: Int64s) -> None:
    """Write the code of each fingerprint, a new one if it has none, and count a use of it."""
    for i in range(len(first)):
        code = find(codes.table, first[i], second[i])
        if code < 0:
            if codes.facts[FREE] > 0:
                codes.facts[FREE] -= 1
                code = codes.free[codes.facts[FREE]]
            else:
                code = codes.facts[CODES]
                codes.facts[CODES] += 1
            codes.first[code], codes.second[code] = first[i], second[i]
            codes.uses[code] = 0
            put(codes.table, first[i], second[i], code)
        codes.uses[code] += 1
        out[i] = code


@lean_kernel
def leave_codes(codes: ValueCodes, left: Int64s) -> None:
    """Count a use less of each code; one without a use may stand for another value."""
    for i in range(len(left)):
        code = left[i]
        codes.uses[code] -= 1
        if codes.uses[code] == 0:
            remove(codes.table, codes.first[code], codes.second[code])
            codes.free[codes.facts[FREE]] = code
            codes.facts[FREE] += 1
