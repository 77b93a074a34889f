"""Values as words of 64 bits, as kernels compare them, and back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import decimal_column, decimal_halves, floats, int64s
from eventide.arrays import to_arrow, to_numpy
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.operators.fingerprints import list_bytes
from eventide.schema import DataType

NUMBERS = ("bool", "int64", "timestamp", "interval")
"""Kinds whose word is the number itself."""
_DIGITS = 18
"""Decimals of so many digits fit into a word."""


def is_word(kind: DataType) -> bool:
    """Whether words of a type compare as its values do; otherwise they are codes.

    Those of doubles are their bits, which have comparisons of their own.
    """
    if kind.kind == "decimal":
        return kind.precision <= _DIGITS
    return kind.kind == "float64" or kind.kind in NUMBERS


@dataclass
class Codes:
    """The codes of values that do not fit into a word: equal values of a type have the same."""

    known: dict[pa.DataType, pa.Array] = field(default_factory=dict)

    def of(self, column: pa.Array) -> Int64s:
        """Return the code of each value; that of a null is any."""
        if pa.types.is_list(column.type):
            column = list_bytes(column)
        encoded = column.dictionary_encode()
        values, known = encoded.dictionary, self.known.get(column.type)
        if known is None:
            self.known[column.type] = values
            codes = np.arange(len(values))
        else:
            found = pc.index_in(values, value_set=known)
            codes = to_numpy(found.fill_null(-1)).astype(np.int64)
            fresh = codes < 0
            if fresh.any():
                codes[fresh] = len(known) + np.arange(int(fresh.sum()))
                new = values.filter(to_arrow(fresh))
                self.known[column.type] = pa.concat_arrays([known, new])
        if not len(codes):
            return frozen(np.zeros(len(column), np.int64))
        return frozen(codes[to_numpy(encoded.indices.fill_null(0))])

    def words(self, column: pa.Array, kind: DataType) -> tuple[Int64s, Bools]:
        """Return the words of a column of a type, and which of its values are not null."""
        valid = to_numpy(column.is_valid())
        if not is_word(kind):
            return self.of(column), valid
        if kind.kind == "float64":
            return floats(column).view(np.int64), valid
        if kind.kind == "decimal":
            return decimal_halves(column)[1], valid
        return int64s(column), valid

    def column(self, words: Int64s, valid: Bools, kind: DataType) -> pa.Array:
        """Return words of a type as a column."""
        if not is_word(kind):
            known = self.known.get(kind.arrow)
            if known is None or not valid.any():
                return pa.nulls(len(words), kind.arrow)
            return known.take(to_arrow(words, valid))
        if kind.kind == "float64":
            return to_arrow(words.view(np.float64), valid)
        if kind.kind == "bool":
            return to_arrow(words != 0, valid)
        if kind.kind == "decimal":
            return decimal_column(words >> 63, words, valid, kind.scale).cast(kind.arrow)
        return to_arrow(words, valid).view(kind.arrow)
