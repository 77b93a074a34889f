"""Numbers of keys: a key keeps its number until the keys that are still needed get new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.key_entries import number_further, table_for
from eventide.kernels.key_table import number_keys, roomy
from eventide.operators.fingerprints import fingerprints
from eventide.operators.standing.row_log import RowLog


class KnownKeys:
    """Keys, numbered in order of first sight. Without key columns there is one, number 0."""

    def __init__(self, schema: pa.Schema) -> None:
        self.log = RowLog.empty(schema)
        self.table = table_for(1)

    @property
    def count(self) -> int:
        """How many keys there are."""
        return self.log.end if len(self.log.schema) else 1

    @property
    def nbytes(self) -> int:
        """How many bytes the keys take."""
        return self.log.nbytes + sum(each.nbytes for each in self.table)

    def numbers(self, columns: Sequence[pa.Array], length: int) -> Int32s:
        """Return the numbers of keys that are all different; new ones get the next."""
        numbers = np.zeros(length, np.int32)
        if not columns:
            return numbers
        words = fingerprints(columns, length)
        self.table = roomy(self.table, length)
        fresh = np.empty(length, np.int64)
        known = self.log.end
        count = number_further(self.table, words.first, words.second, known, numbers, fresh)
        if count:
            rows = to_arrow(fresh[:count])
            new = [one_spelling(column.take(rows)) for column in columns]
            batch = pa.RecordBatch.from_arrays(new, schema=self.log.schema)
            self.log = self.log.append(batch)
        return numbers

    def values(self, numbers: Int32s | Int64s) -> list[pa.Array]:
        """Return the columns of keys with these numbers."""
        return list(self.log.take(numbers.astype(np.int64)).columns) if len(self.log.schema) else []

    def keep(self, numbers: Int64s) -> None:
        """Forget all other keys, and number these anew in this order."""
        if not len(self.log.schema):
            return
        self.log = self.log.kept(numbers)
        words = fingerprints(self.values(frozen(np.arange(len(numbers)))), len(numbers))
        self.table = table_for(len(numbers))
        number_keys(self.table, words.first, words.second)
