"""Values of any type as words of 64 bits, which kernels compare."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import decimal_halves, floats, int64s
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.key_table import look_up
from eventide.kernels.sharing.conditions.codes import (
    ValueCodes,
    leave_codes,
    no_codes,
    roomy_codes,
    use_codes,
)
from eventide.kernels.sharing.conditions.words import order_floats
from eventide.operators.fingerprints import Fingerprints, fingerprints
from eventide.schema import DataType

_NUMBERS = ("bool", "int64", "timestamp", "interval")
_DIGITS = 18
"""Decimals of so many digits fit into a word."""


def has_order(kind: DataType) -> bool:
    """Whether words of a type are in the order of its values; otherwise they are codes."""
    if kind.kind == "decimal":
        return kind.precision <= _DIGITS
    return kind.kind == "float64" or kind.kind in _NUMBERS


def words_in_order(column: pa.Array, kind: DataType) -> Int64s:
    """Return the words of values whose words are in order; that of a null is any."""
    if kind.kind == "float64":
        values = floats(column)
        words = np.empty(len(values), np.int64)
        order_floats(frozen(values.view(np.int64)), words)
        return words
    if kind.kind == "decimal":
        return decimal_halves(column)[1]
    return int64s(column)


class Coder:
    """Codes of the values that conditions compare with, of types whose values are no words."""

    def __init__(self) -> None:
        self.codes: ValueCodes = no_codes()

    @property
    def nbytes(self) -> int:
        """How much memory the codes take."""
        return sum(each.nbytes for each in (*self.codes.table, *self.codes[1:]))

    def use(self, column: pa.Array) -> Int64s:
        """Return the codes of constants, which are used once more each."""
        found = fingerprints([column], len(column))
        self.codes = roomy_codes(self.codes, len(found))
        codes = np.empty(len(found), np.int64)
        use_codes(self.codes, found.first, found.second, codes)
        return codes

    def leave(self, codes: Int64s) -> None:
        """Give codes back that were used once each."""
        leave_codes(self.codes, frozen(codes))

    def look_up(self, found: Fingerprints) -> Int64s:
        """Return the codes of values of events, -1 for those that no condition compares with."""
        codes = np.full(len(found), -1, np.int64)
        look_up(self.codes.table, found.first, found.second, codes)
        return codes
