"""The materialised answer of a standing query: its living rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.lifetimes.view import Incoming
from eventide.operators.changes import Changes
from eventide.operators.checking import (
    filled,
    require,
    require_ascending,
    require_lengths,
    require_living,
)
from eventide.operators.operator import Size
from eventide.operators.standing.answer.keeping import (
    Deaths,
    Keeping,
    Structure,
    arrived,
    new_keeping,
)
from eventide.operators.standing.row_log import RowLog
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import Execution

_KEPT = pa.schema([("exp", pa.int64()), ("id", pa.int64())])


def structure_for(edge: Edge, execution: Execution) -> Structure:
    """Return how to keep what comes over an edge."""
    if execution != "aware":
        return "list" if execution == "direct" else "ids"
    if edge.pattern == UpdatePattern.MONOTONIC:
        return "append"
    if edge.pattern == UpdatePattern.STRICT:
        return "calendar and ids"
    return "ring" if edge.in_order else "calendar"


@dataclass(slots=True)
class ViewState:
    """The values of rows, which of them live, and the first instant not yet taken in."""

    log: RowLog
    keeping: Keeping
    until_us: int


@dataclass(frozen=True, slots=True)
class View(Stateful[ViewState]):
    """The living rows of an answer.

    `partitions` is into how many slots a calendar divides the time in which rows expire; by
    default as many as keep slots short.
    """

    schema: pa.Schema
    structure: Structure
    partitions: int | None = None

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self.schema

    def initial_state(self) -> ViewState:
        """Return an answer without rows."""
        keeping = new_keeping(self.structure, self.partitions)
        return ViewState(RowLog.empty(self.schema), keeping, START_OF_TIME_US)

    def step(self, state: ViewState, changes: Changes, until_us: int) -> tuple[ViewState, Deaths]:
        """Take the changes before `until_us`; return also the rows that left, and when.

        The rows that came have the numbers from the end of the log on. The values of those that
        left can be taken from the log until it is `tidied`.
        """
        came = changes.sign > 0
        rows = changes.rows if came.all() else changes.rows.filter(to_arrow(came))
        at, exp, ids = frozen(changes.at), frozen(changes.exp), frozen(changes.id)
        incoming = Incoming(at, exp, frozen(changes.sign), ids, state.log.end)
        deaths = state.keeping.take(incoming, until_us - 1)
        return ViewState(state.log.append(rows), state.keeping, until_us), deaths

    def tidied(self, state: ViewState) -> ViewState:
        """Return the state without the values of rows that left, when they are many."""
        return replace(state, log=state.keeping.tidy(state.log))

    def living(self, state: ViewState) -> Int64s:
        """Return the numbers of the rows that live, in the order in which they came."""
        return state.keeping.kept().numbers

    def current(self, state: ViewState) -> pa.RecordBatch:
        """Return the rows that live at the last instant taken in, in the order they came."""
        return state.log.take(self.living(state))

    def write(self, state: ViewState) -> bytes:
        """Write the living rows out."""
        kept = state.keeping.kept()
        known = pa.RecordBatch.from_arrays([to_arrow(kept.exps), to_arrow(kept.ids)], schema=_KEPT)
        rows = state.log.take(kept.numbers)
        facts = {"until_us": state.until_us}
        return join_parts([write_rows("Answer", rows, facts), write_rows("Kept", known, {})])

    def read(self, written: bytes) -> ViewState:
        """Read back what `write` wrote."""
        values, kept = parts_of("the answer", written, 2)
        rows, facts = read_rows("Answer", values, self.schema)
        known, _ = read_rows("Kept", kept, _KEPT)
        exps, ids = filled(known["exp"], "ends of rows"), filled(known["id"], "ids of rows")
        require_lengths(rows.num_rows, (exps, ids), "rows and their ends")
        require_living(exps, facts["until_us"])
        if self.structure == "ring":
            require_ascending(exps, "ends of rows")
        if self.structure in ("calendar and ids", "ids"):
            require(len(np.unique(ids)) == len(ids), "two rows with one id")
        incoming = arrived(exps, ids)
        keeping = new_keeping(self.structure, self.partitions)
        if rows.num_rows:
            keeping.take(incoming, int(incoming.at[0]))
        return ViewState(RowLog.empty(self.schema).append(rows), keeping, facts["until_us"])

    def size(self, state: ViewState) -> Size:
        """Return the size of the state."""
        return Size(state.keeping.count, state.log.nbytes + state.keeping.nbytes)
