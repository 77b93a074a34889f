"""Rows in the order of ORDER BY: instant by instant if it begins with `ts`, else all at the end.

If the order begins with `ts`, the rows of an instant leave once the watermark has passed it.
Another order needs all rows, so it works only over history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s, one_spelling
from eventide.accumulators.kept import opened_lists, ranked
from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.operators.checking import filled
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, rows_of
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import Column, OrderKey
from eventide.schema import TS


def begins_with_time(order: tuple[OrderKey, ...]) -> bool:
    """Whether rows in this order are in order of `ts`."""
    match order:
        case (OrderKey(expression=Column(name="ts"), descending=False), *_):
            return True
    return False


def sorted_places(
    values: Sequence[pa.Array | pa.ChunkedArray], order: Sequence[OrderKey]
) -> pa.Array:
    """Return the places of rows in the order of the values of keys; equal rows stay as they are."""
    keys: list[tuple[str, str]] = []
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for place, (column, key) in enumerate(zip(values, order, strict=True)):
        # Arrow puts nulls in one place for all keys; an extra key says where they go.
        columns[f"null {place}"] = pc.is_null(column)
        columns[f"value {place}"] = _ranked_lists(column) if _is_list(column.type) else column
        keys.append((f"null {place}", "descending" if key.nulls_first else "ascending"))
        keys.append((f"value {place}", "descending" if key.descending else "ascending"))
    columns["came"] = to_arrow(np.arange(len(values[0])))
    keys.append(("came", "ascending"))
    return pc.sort_indices(pa.table(columns), sort_keys=keys)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind))


def _ranked_lists(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return bytes that compare as lists do, value by value; a null is smaller than all values."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values, bounds = opened_lists(column)
    ranks = np.zeros(len(values), ">u4")
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    ranks[valid] = ranked(one_spelling(values.drop_null()))[0] + 1
    offsets = pa.py_buffer((4 * bounds).astype(np.int32))
    buffers = [None, offsets, pa.py_buffer(ranks.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(column), buffers)


@dataclass(frozen=True, slots=True)
class OrderRows(Stateful[pa.RecordBatch]):
    """Sorts rows; equal rows stay as they came.

    If the order is `in_time`, it begins with `ts`, and no row before the watermark will follow.
    """

    order: tuple[OrderKey, ...]
    output_schema: pa.Schema
    in_time: bool = True

    def initial_state(self) -> pa.RecordBatch:
        """Return the state before the first batch: no rows."""
        return no_rows(self.output_schema)

    def step(
        self, state: pa.RecordBatch, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Take rows; return those whose place is certain."""
        rows = concat_batches([state, *inputs], self.output_schema)
        if until_us == END_OF_TIME_US:
            return self.initial_state(), self.sorted(rows)
        if not self.in_time:
            return rows, self.initial_state()
        ready = to_arrow(int64s(rows.column(TS)) < until_us)
        return rows.filter(pc.invert(ready)), self.sorted(rows.filter(ready))

    def reached(self, state: pa.RecordBatch, until_us: int) -> int:  # noqa: ARG002 - not of rows
        """Return the instant before which all rows have left."""
        return until_us if self.in_time or until_us == END_OF_TIME_US else START_OF_TIME_US

    def sorted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows in order."""
        if rows.num_rows < 2:
            return rows
        values = [evaluate(key.expression, rows) for key in self.order]
        return rows.take(sorted_places(values, self.order))

    def of_keys(self, state: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
        """Return the rows for some queries."""
        return rows_of(state, wanted)

    def united(self, state: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of both; those of a query stay as they came."""
        return concat_batches([state, other], self.output_schema)

    def write(self, state: pa.RecordBatch) -> bytes:
        """Write the state out."""
        return write_rows(type(self).__name__, state, {})

    def size(self, state: pa.RecordBatch) -> Size:
        """Return the size of the state."""
        return Size(state.num_rows, state.nbytes)

    def read(self, written: bytes) -> pa.RecordBatch:
        """Read back what `write` wrote."""
        rows, _ = read_rows(type(self).__name__, written, self.output_schema)
        if self.in_time:
            filled(rows.column(TS), "times of rows")
        return rows
