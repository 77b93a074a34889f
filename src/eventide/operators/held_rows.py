"""Rows by key: the state of operators that remember rows, as key layers hold it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.ordering import ranges
from eventide.operators.columns import at_places, concat_batches, rows_at
from eventide.operators.key_parts import KeyOrder


@dataclass(frozen=True)
class HeldRows:
    """Rows, those of a key in order of time, keys in any order.

    `codes` has the number of each row's key, `keys` the columns of the keys, `count` how many there
    are; without columns of keys there is one.
    """

    rows: pa.RecordBatch
    codes: Int32s
    keys: tuple[pa.Array, ...]
    count: int

    @cached_property
    def by_key(self) -> KeyOrder:
        """The rows of each key."""
        return KeyOrder.of(frozen(self.codes), self.count)

    @property
    @abstractmethod
    def due(self) -> Int64s:
        """When each key can be forgotten."""

    @property
    def weight(self) -> int:
        """The number of rows; every key has some."""
        return int(self.rows.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes the rows take."""
        return int(self.rows.nbytes)

    def take(self, keys: Int64s) -> Self:
        """Return the rows of some keys, by number."""
        by_key = self.by_key
        counts = by_key.offsets[1:][keys] - by_key.offsets[keys]
        places = by_key.order[ranges(by_key.offsets[keys], counts)]
        return replace(
            self,
            rows=rows_at(self.rows, places),
            codes=np.repeat(np.arange(len(keys), dtype=np.int32), counts),
            keys=tuple(at_places(key, keys) for key in self.keys),
            count=len(keys),
        )

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these rows, then those of other keys."""
        parts = [self, *others]
        codes, count = [], 0
        for each in parts:
            codes.append(each.codes + np.int32(count))
            count += each.count
        columns = zip(*(each.keys for each in parts), strict=True)
        return replace(
            self,
            rows=concat_batches([each.rows for each in parts], self.rows.schema),
            codes=np.concatenate(codes),
            keys=tuple(map(pa.concat_arrays, columns)),
            count=count,
        )

    def only(self, wanted: Bools) -> tuple[Self, Int64s]:
        """Return some of the rows, and the keys that these have, by number."""
        if wanted.all():
            return self, np.arange(self.count)
        rows, codes = self.rows.filter(to_arrow(wanted)), self.codes[wanted]
        return self.with_rows(rows, codes)

    def with_rows(self, rows: pa.RecordBatch, codes: Int32s) -> tuple[Self, Int64s]:
        """Return other rows of these keys, and the keys that they have, by number."""
        if not self.keys:
            return replace(self, rows=rows, codes=codes), np.arange(self.count)
        has_rows = np.zeros(self.count, np.bool_)
        has_rows[codes] = True
        stayed = np.flatnonzero(has_rows)
        numbers = np.cumsum(has_rows, dtype=np.int32) - np.int32(1)
        chosen = to_arrow(stayed)
        keys = tuple(key.take(chosen) for key in self.keys)
        kept = replace(self, rows=rows, codes=numbers[codes], keys=keys, count=len(stayed))
        return kept, stayed
