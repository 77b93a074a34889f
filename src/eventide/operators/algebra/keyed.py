"""Events by key, as those that may follow others are looked up.

All sequences of a query that read the same events by the same key share this: see TreeBuilder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.ordering import sorting_order
from eventide.operators.columns import encode_keys
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.filter_project import Stateless
from eventide.operators.key_parts import KeyOrder
from eventide.plan.tree import Keys
from eventide.schema import TS


@dataclass(frozen=True, slots=True)
class RowsWithKeys:
    """Rows whose keys are not null, the number of each one's key, and the keys by number."""

    rows: pa.RecordBatch
    codes: Int32s
    keys: Sequence[pa.Array]
    count: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, keys: Keys) -> Self:
        """Number the keys of rows; a row of which a key is null is equal to nothing."""
        columns = [evaluate(key, rows) for key in keys]
        if any(column.null_count for column in columns):
            present = columns[0].is_valid()
            for column in columns[1:]:
                present = pc.and_(present, column.is_valid())
            rows = rows.filter(present)
            columns = [column.filter(present) for column in columns]
        return cls(rows, *encode_keys(columns, rows.num_rows))


@dataclass(frozen=True, slots=True)
class KeyedEvents:
    """Rows in order of time, by key."""

    keyed: RowsWithKeys
    by_key: KeyOrder

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.keyed.rows.num_rows)

    def bounds(self, numbers: Int32s, count: int) -> tuple[Int64s, Int64s]:
        """Return where the rows of each of `count` keys are in the order by key.

        `numbers` are those of the keys that there are rows of.
        """
        low, high = np.zeros(count, np.int64), np.zeros(count, np.int64)
        low[numbers], high[numbers] = self.by_key.offsets[:-1], self.by_key.offsets[1:]
        return frozen(low), frozen(high)


@dataclass(frozen=True)
class KeyEvents(Stateless):
    """Puts the events that may follow others in order of time, and by key."""

    keys: Keys
    output_schema: pa.Schema

    def step(
        self,
        state: None,
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, KeyedEvents]:
        """Return the events."""
        keyed = RowsWithKeys.of(in_time(inputs[0]), self.keys)
        return state, KeyedEvents(keyed, KeyOrder.of(keyed.codes, keyed.count))


def in_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in order of their ends; a union has those of each arm in order only."""
    order = sorting_order(int64s(rows.column(TS)))
    return rows if order is None else rows.take(to_arrow(order))
