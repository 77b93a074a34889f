"""Windows of time: RANGE, TUMBLE, SINCE, and all events. A tuple's end is known when it comes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.kernels.lifetimes.stream_windows import DIES
from eventide.operators.changes import Changes
from eventide.operators.operator import Size
from eventide.operators.standing.row_log import is_sparse
from eventide.operators.standing.windows.leaf import LeafWindow
from eventide.operators.standing.windows.log import TupleLog
from eventide.operators.standing.windows.times import TimeWindow, expiries, members, rounded_up
from eventide.operators.stateful import Stateful
from eventide.plan.standing.windows import PeriodWindow, RangeWindow
from eventide.schema import TS


@dataclass(frozen=True)
class TimeWindowRows(LeafWindow, Stateful[TupleLog]):
    """Emits each event once, with its expiry, and keeps nothing.

    With negative tuples, events are kept until they expire, which is announced as well. If the
    query slides, they are also kept until its next refresh.
    """

    @property
    def window(self) -> TimeWindow:
        """The window."""
        assert isinstance(self.node.window, TimeWindow)
        return self.node.window

    @property
    def stays(self) -> bool:
        """Whether an event is kept until it expires."""
        expires = isinstance(self.node.window, RangeWindow | PeriodWindow)
        return self.execution == "negative" and expires

    def initial_state(self) -> TupleLog:
        """Return the state before the first instant."""
        return TupleLog.empty(self.value_schema, stays=self.stays, slide_us=self.slide_us)

    def step(
        self, state: TupleLog, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[TupleLog, Changes]:
        """Take the events at instants before `until_us`."""
        (rows,) = inputs
        ts = int64s(rows.column(TS))
        exp = rounded_up(expiries(self.window, ts), self.slide_us)
        inside = members(self.window, ts)
        if self.slide_us is not None:
            lasting = rounded_up(ts, self.slide_us) < exp
            inside = lasting if inside is None else inside & lasting
        values, ids = self.values(rows, inside), self.ids(rows)
        if inside is not None:
            ts, exp, ids = ts[inside], exp[inside], ids[inside]
        if not self.stays and self.slide_us is None:
            sign = np.ones(len(ts), np.int8)
            return state, Changes(self.with_answer_exp(values, exp), ts, exp, sign, ids)
        log = state.append(values, ids, ts, exp)
        if self.stays:
            log = log.leave_in_order(state.count)
        log, emitted = log.emit(until_us)
        changes = self.changes(log, emitted, log.facts[DIES, emitted.numbers])
        return (log.compacted()[0] if is_sparse(log.count, log.living) else log), changes

    def write(self, state: TupleLog) -> bytes:
        """Write the state out."""
        return state.write(self.label)

    def read(self, written: bytes) -> TupleLog:
        """Read back what `write` wrote."""
        return self.initial_state().read(self.label, written)

    def size(self, state: TupleLog) -> Size:
        """Return the size of the state."""
        return Size(state.living, state.nbytes)
