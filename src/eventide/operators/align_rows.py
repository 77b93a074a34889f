"""Events of several edges that are not equally far: rows wait until all edges have come so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.operators.checking import filled, require_ascending, require_instant
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, merged_by, rows_of
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.schema import TS


@dataclass(frozen=True, slots=True)
class AlignedState:
    """Rows that wait for other edges, and the newest time of all of them."""

    waiting: pa.RecordBatch
    newest_us: int = START_OF_TIME_US


@dataclass(frozen=True)
class AlignRows(Stateful[AlignedState]):
    """Passes on the rows of its first input that are before what all its inputs have reached.

    When the events have ended, time goes on to the newest of all rows and stays there: an answer
    that holds at every instant is that of the newest event.
    """

    output_schema: pa.Schema

    def initial_state(self) -> AlignedState:
        """Return the state before the first row."""
        return AlignedState(no_rows(self.output_schema))

    def step(
        self, state: AlignedState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[AlignedState, pa.RecordBatch]:
        """Take rows; return those of the first input before `until_us`."""
        own = inputs[0].select(self.output_schema.names)
        rows = concat_batches([state.waiting, own], self.output_schema)
        lasts = [int64s(each.column(TS))[-1] for each in inputs if each.num_rows]
        newest_us = int(max([state.newest_us, *lasts]))
        ready = rows.num_rows
        if until_us != END_OF_TIME_US:
            ready = int(np.searchsorted(int64s(rows.column(TS)), until_us))
        return AlignedState(rows.slice(ready), newest_us), rows.slice(0, ready)

    def knowing(self, state: AlignedState, newest_us: int) -> AlignedState:
        """Return the state that knows a newest time, also of rows that are elsewhere."""
        return replace(state, newest_us=max(state.newest_us, newest_us))

    def reached(self, state: AlignedState, until_us: int) -> int:
        """Return how far all inputs have come; at the end, right behind the newest row."""
        if until_us != END_OF_TIME_US:
            return until_us
        return max(state.newest_us, START_OF_TIME_US + 1) + 1

    def of_keys(self, state: AlignedState, wanted: Wanted) -> AlignedState:
        """Return the rows for some queries. The newest time is that of all, as that of all inputs.

        It only says where the answer of a standing query above stops, and these are not divided.
        """
        return replace(state, waiting=rows_of(state.waiting, wanted))

    def united(self, state: AlignedState, other: AlignedState) -> AlignedState:
        """Return the rows of both, in order of time, and the newest time of both."""
        waiting = merged_by(state.waiting, other.waiting)
        return AlignedState(waiting, max(state.newest_us, other.newest_us))

    def write(self, state: AlignedState) -> bytes:
        """Write the state out."""
        return write_rows(type(self).__name__, state.waiting, {"newest_us": state.newest_us})

    def read(self, written: bytes) -> AlignedState:
        """Read back what `write` wrote."""
        rows, facts = read_rows(type(self).__name__, written, self.output_schema)
        require_ascending(filled(rows.column(TS), "times of rows"), "times of rows")
        require_instant(facts["newest_us"], "the newest time")
        return AlignedState(rows, facts["newest_us"])

    def size(self, state: AlignedState) -> Size:
        """Return the size of the state."""
        return Size(state.waiting.num_rows, state.waiting.nbytes)
