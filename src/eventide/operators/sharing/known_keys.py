"""Numbers of keys: a key keeps its number until the keys that are still needed get new ones.

Partial results are by cell: a key in a synopsis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.growing import longer
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


_CELLS = pa.schema([("synopsis", pa.int64()), ("key", pa.int64())])


class KnownCells:
    """Cells, numbered in order of first sight: each is a key in a synopsis."""

    def __init__(self, schema: pa.Schema) -> None:
        self.keys = KnownKeys(schema)
        self.cells: KnownKeys | None = None
        """The cells, once there are several synopses."""
        self.only = -1
        """The synopsis of all cells, as long as there is one."""
        self._synopsis_of, self._key_of = (np.zeros(16, np.int32) for _ in range(2))

    @property
    def count(self) -> int:
        """How many cells there are."""
        return self.keys.count if self.cells is None else self.cells.count

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return self.keys.nbytes + (0 if self.cells is None else self.cells.nbytes)

    @property
    def synopsis_of(self) -> Int32s:
        """The synopsis of each cell."""
        if self.cells is None:
            return np.full(self.count, self.only, np.int32)
        return self._synopsis_of[: self.count]

    @property
    def key_of(self) -> Int32s:
        """The number of the key of each cell."""
        if self.cells is None:
            return np.arange(self.count, dtype=np.int32)
        return self._key_of[: self.count]

    def numbers(self, synopses: Int64s, of_key: Int64s, columns: Sequence[pa.Array]) -> Int32s:
        """Return the numbers of different cells: of each the synopsis, and which of some keys."""
        count = len(columns[0]) if columns else 1
        keys = self.keys.numbers(columns, count)[of_key]
        if not len(keys):
            return keys
        if self.cells is None and self.only in (-1, int(synopses[0])):
            self.only = int(synopses[0])
            if (synopses == self.only).all():
                return keys
        if self.cells is None:
            self.cells = KnownKeys(_CELLS)
            before = np.arange(self.keys.count)
            self._number(np.full(len(before), self.only), before)
        return self._number(synopses, keys)

    def _number(self, synopses: Int64s, keys: Int32s | Int64s) -> Int32s:
        """Return the numbers of cells, the new ones of which are noted."""
        assert self.cells is not None
        known = self.cells.count
        columns = [to_arrow(synopses.astype(np.int64)), to_arrow(keys.astype(np.int64))]
        numbers = self.cells.numbers(columns, len(keys))
        count = self.cells.count
        self._synopsis_of = longer(self._synopsis_of, count)
        self._key_of = longer(self._key_of, count)
        new = numbers >= known
        self._synopsis_of[numbers[new]], self._key_of[numbers[new]] = synopses[new], keys[new]
        return numbers

    def values(self, cells: Int32s | Int64s) -> list[pa.Array]:
        """Return the columns of the keys of cells with these numbers."""
        return self.keys.values(self.key_of[cells])

    def keep(self, cells: Int64s) -> None:
        """Forget all other cells, and number these anew in this order."""
        synopses, keys = self.synopsis_of[cells], self.key_of[cells]
        if self.cells is None:
            self.keys.keep(cells)
            return
        used, numbers = np.unique(keys, return_inverse=True)
        self.keys.keep(used.astype(np.int64))
        self.cells = KnownKeys(_CELLS)
        self._number(synopses.astype(np.int64), numbers.astype(np.int64))
