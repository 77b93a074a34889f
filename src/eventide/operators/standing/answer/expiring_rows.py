"""An answer whose rows know when they expire, for queries that do not report when each row left.

Rows stay as they came, batch behind batch; nothing is done when one expires. Only when half of a
run has expired, it is copied without the expired rows. So at most about twice the living rows are
held, and a row is copied about once in its life.

    run         ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇│▇▇▇▇▇▇▇▇│▇▇▇▇
    expired      ×× × ×  ××   ×     ×              half of the first: time to copy it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.operators.changes import Changes
from eventide.operators.checking import filled, require_lengths, require_living
from eventide.operators.columns import concat_batches
from eventide.operators.operator import Size
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful

LONG = 1 << 14
"""A run of this many rows is long enough: it is not merged with others."""
SAMPLED = 8
"""One row in this many is sampled to know when about half of a run has expired."""

_ENDS = pa.schema([("exp", pa.int64())])


@dataclass(frozen=True, slots=True)
class ExpiringRun:
    """Consecutive rows, when they expire, and when about half of them have."""

    rows: pa.RecordBatch
    exps: Int64s
    half_us: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, exps: Int64s) -> ExpiringRun:
        """Return rows as a run; there is at least one."""
        some = exps[::SAMPLED]
        middle = len(some) // 2
        return cls(rows, exps, int(np.partition(some, middle)[middle]))

    def __len__(self) -> int:
        return len(self.exps)

    def living(self, now_us: int) -> pa.RecordBatch:
        """Return the rows that have not expired."""
        return self.rows.take(to_arrow(np.flatnonzero(self.exps > now_us)))

    def trimmed(self, now_us: int) -> ExpiringRun | None:
        """Return the run without expired rows if they are half of it; None without any row."""
        if self.half_us > now_us:
            return self
        left = np.flatnonzero(self.exps > now_us)
        return (
            ExpiringRun.of(self.rows.take(to_arrow(left)), self.exps[left]) if len(left) else None
        )


def put_together(runs: Sequence[ExpiringRun]) -> tuple[ExpiringRun, ...]:
    """Return the same rows in few runs: each is at least twice as long as the next, or long enough.

    So a row is copied a few times until it is in a long run.
    """
    merged: list[ExpiringRun] = []
    for each in runs:
        run = each
        while merged and len(merged[-1]) < min(LONG, 2 * len(run)):
            before = merged.pop()
            rows = concat_batches([before.rows, run.rows], run.rows.schema)
            run = ExpiringRun.of(rows, np.concatenate([before.exps, run.exps]))
        merged.append(run)
    return tuple(merged)


@dataclass(frozen=True, slots=True)
class ExpiringState:
    """Rows in the order in which they came, and the end of the last step."""

    runs: tuple[ExpiringRun, ...]
    until_us: int


@dataclass(frozen=True, slots=True)
class ExpiringRows(Stateful[ExpiringState]):
    """The living rows of an answer from which no row goes before it expires."""

    schema: pa.Schema

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self.schema

    def initial_state(self) -> ExpiringState:
        """Return an answer without rows."""
        return ExpiringState((), START_OF_TIME_US)

    def step(self, state: ExpiringState, changes: Changes, until_us: int) -> ExpiringState:
        """Take the changes before `until_us`, all of which come."""
        kept = [each.trimmed(until_us - 1) for each in state.runs]
        runs = [each for each in kept if each is not None]
        if len(changes):
            runs.append(ExpiringRun.of(changes.rows, changes.exp))
        return ExpiringState(put_together(runs), until_us)

    def current(self, state: ExpiringState, sooner_us: int = 0) -> pa.RecordBatch:
        """Return the rows that live at the last instant, in the order in which they came.

        With `sooner_us`, as if all expired that much sooner.
        """
        living = [each.living(state.until_us - 1 + sooner_us) for each in state.runs]
        return concat_batches(living, self.schema)

    def write(self, state: ExpiringState) -> bytes:
        """Write the living rows out."""
        exps = [each.exps[each.exps >= state.until_us] for each in state.runs]
        ends = to_arrow(np.concatenate([np.zeros(0, np.int64), *exps]))
        facts = {"until_us": state.until_us}
        rows = write_rows("Answer", self.current(state), facts)
        return join_parts([rows, write_rows("Ends", pa.record_batch([ends], schema=_ENDS), {})])

    def read(self, written: bytes) -> ExpiringState:
        """Read back what `write` wrote."""
        values, kept = parts_of("the answer", written, 2)
        rows, facts = read_rows("Answer", values, self.schema)
        ends, _ = read_rows("Ends", kept, _ENDS)
        exps = filled(ends["exp"], "ends of rows")
        require_lengths(rows.num_rows, (exps,), "rows and their ends")
        require_living(exps, facts["until_us"])
        runs = (ExpiringRun.of(rows, exps),) if rows.num_rows else ()
        return ExpiringState(runs, facts["until_us"])

    def size(self, state: ExpiringState) -> Size:
        """Return the size of the state."""
        living = sum(np.count_nonzero(each.exps >= state.until_us) for each in state.runs)
        held = sum(each.rows.nbytes + each.exps.nbytes for each in state.runs)
        return Size(int(living), held)
