"""The rows of a query as events: in order of their time, and numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow, to_numpy
from eventide.kernels.compiled import Bools
from eventide.operators.checking import filled, require
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, rows_of, undivided
from eventide.operators.operator import Size
from eventide.operators.order_rows import sorted_places
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import Column, OrderKey
from eventide.schema import SEQ, TS


@dataclass(frozen=True, slots=True)
class EventsState:
    """Rows whose time has not come, and how many have left."""

    waiting: pa.RecordBatch
    left: int


@dataclass(frozen=True)
class OrderEvents(Stateful[EventsState]):
    """Sorts rows by `ts`, then by the columns of `order`, nulls first; equal rows as they came.

    A row leaves when the input is complete before a later instant. If it is `numbered`, a row gets
    its place among all of them as `_seq`.
    """

    order: tuple[str, ...]
    source_schema: pa.Schema
    numbered: bool = False

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        if not self.numbered or SEQ in self.source_schema.names:
            return self.source_schema
        return self.source_schema.append(pa.field(SEQ, pa.int64()))

    def initial_state(self) -> EventsState:
        """Return the state before the first row."""
        return EventsState(no_rows(self.source_schema), 0)

    def step(
        self, state: EventsState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[EventsState, pa.RecordBatch]:
        """Take rows; return those before `until_us`, in order."""
        rows = in_order(concat_batches([state.waiting, *inputs], self.source_schema), self.order)
        ready = int(np.searchsorted(int64s(rows.column(TS)), until_us))
        leaving = rows.slice(0, ready)
        after = EventsState(rows.slice(ready), state.left + ready)
        if not self.numbered:
            return after, leaving
        numbers = to_arrow(np.arange(state.left, state.left + ready))
        place = self.output_schema.get_field_index(SEQ)
        columns = [*leaving.columns]
        columns[place : place + 1] = [numbers]
        return after, pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def of_keys(self, state: EventsState, wanted: Wanted) -> EventsState:
        """Return the rows for some queries. How many have left counts only if rows are numbered."""
        self.check_not_numbered()
        return EventsState(rows_of(state.waiting, wanted), state.left)

    def united(self, state: EventsState, other: EventsState) -> EventsState:
        """Return the rows of both; a step puts them in order, those of a query as they came."""
        self.check_not_numbered()
        waiting = concat_batches([state.waiting, other.waiting], self.source_schema)
        return EventsState(waiting, max(state.left, other.left))

    def check_not_numbered(self) -> None:
        """Refuse rows that are numbered: their numbers count the rows of all keys."""
        if self.numbered:
            raise undivided(type(self).__name__, "rows are numbered among those of all keys")

    def write(self, state: EventsState) -> bytes:
        """Write the state out."""
        return write_rows(type(self).__name__, state.waiting, {"left": state.left})

    def read(self, written: bytes) -> EventsState:
        """Read back what `write` wrote."""
        rows, facts = read_rows(type(self).__name__, written, self.source_schema)
        filled(rows.column(TS), "times of rows")
        require(0 <= facts["left"] < 2**62, f"{facts['left']} rows have left")
        return EventsState(rows, facts["left"])

    def size(self, state: EventsState) -> Size:
        """Return the size of the state."""
        return Size(state.waiting.num_rows, state.waiting.nbytes)


def in_order(rows: pa.RecordBatch, order: tuple[str, ...]) -> pa.RecordBatch:
    """Return rows in order of `ts`, then of some columns, nulls first."""
    if are_in_order([rows.column(name) for name in (TS, *order)]):
        return rows
    names = (TS, *order)
    keys = tuple(OrderKey(Column(name), nulls_first=True) for name in names)
    return rows.take(sorted_places([rows.column(name) for name in names], keys))


def are_in_order(columns: Sequence[pa.Array]) -> bool:
    """Whether rows are certainly in the order of some columns: most often they are.

    To compare neighbours takes a fraction of the time of sorting by many columns.
    """
    count = len(columns[0])
    open_pairs = np.ones(max(count - 1, 0), np.bool_)
    for column in columns:
        if not open_pairs.any():
            return True
        if column.null_count:
            return False
        falls, same = compared(column)
        if (falls & open_pairs).any():
            return False
        open_pairs &= same
    return True


def compared(column: pa.Array) -> tuple[Bools, Bools]:
    """Return which values without nulls may be greater than the next one, and which are the same.

    Lists, and numbers beside NaN, may always be greater.
    """
    kind = column.type
    if pa.types.is_nested(kind):
        nothing = np.zeros(len(column) - 1, np.bool_)
        return ~nothing, nothing
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind):
        values = int64s(column) if pa.types.is_timestamp(kind) else to_numpy(column)
        earlier, later = values[:-1], values[1:]
        return ~(earlier <= later), earlier == later
    earlier, later = column.slice(0, len(column) - 1), column.slice(1)
    return to_numpy(pc.greater(earlier, later)), to_numpy(pc.equal(earlier, later))
