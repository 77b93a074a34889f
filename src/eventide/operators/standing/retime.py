"""Round tuples to the refreshes of a sliding query, and announce their ends where needed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.operators.changes import NEVER, Changes
from eventide.operators.checking import (
    LONGEST_US,
    filled,
    require,
    require_ascending,
    require_within,
)
from eventide.operators.operator import Size
from eventide.operators.standing.windows.times import rounded_up
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.schema import MAX_TS_US, MIN_TS_US


@dataclass(frozen=True, slots=True)
class RetimedState:
    """Tuples whose instant has not come yet, and those whose end has not been announced."""

    waiting: Changes
    living: Changes


@dataclass(frozen=True)
class RetimeTuples(Stateful[RetimedState]):
    """Rounds the lives of tuples up to multiples of `slide_us`, and announces their ends.

    It stands above a join as of a time, which needs the true times below it and does not keep
    tuples. With `emits_ends` every end is announced, as negative tuples need it. Nothing is taken
    back below.
    """

    output_schema: pa.Schema
    slide_us: int | None
    emits_ends: bool

    def initial_state(self) -> RetimedState:
        """Return the state before the first instant."""
        nothing = Changes.nothing(self.output_schema)
        return RetimedState(nothing, nothing)

    def step(
        self, state: RetimedState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[RetimedState, Changes]:
        """Emit the changes before `until_us`."""
        (given,) = inputs
        retimed = replace(
            given,
            at=rounded_up(given.at, self.slide_us),
            exp=rounded_up(given.exp, self.slide_us),
        )
        lasting = retimed.take(np.flatnonzero(retimed.at < retimed.exp))
        waiting = Changes.concat([state.waiting, lasting], self.output_schema)
        ready = int(np.searchsorted(waiting.at, until_us))
        emitted = waiting.take(np.arange(ready))
        waiting = waiting.take(np.arange(ready, len(waiting)))
        if not self.emits_ends:
            return RetimedState(waiting, state.living), emitted
        living = Changes.concat([state.living, emitted], self.output_schema)
        ended = living.take(np.flatnonzero((living.exp < until_us) & (living.exp != NEVER)))
        living = living.take(np.flatnonzero((living.exp >= until_us) | (living.exp == NEVER)))
        ends = replace(ended, at=ended.exp, sign=np.full(len(ended), -1, np.int8))
        both = Changes.concat([ends, emitted], self.output_schema)
        return RetimedState(waiting, living), both.take(np.argsort(both.at, kind="stable"))

    def write(self, state: RetimedState) -> bytes:
        """Write the state out."""
        return join_parts([self._dumped(state.waiting), self._dumped(state.living)])

    def read(self, written: bytes) -> RetimedState:
        """Read back what `write` wrote."""
        waiting, living = parts_of("RetimeTuples", written, 2)
        state = RetimedState(self._loaded(waiting), self._loaded(living))
        require_ascending(state.waiting.at, "births of tuples that wait")
        return state

    def size(self, state: RetimedState) -> Size:
        """Return the size of the state."""
        held = (state.waiting, state.living)
        words = sum(4 * each.at.nbytes for each in held)
        return Size(sum(map(len, held)), words + sum(each.rows.nbytes for each in held))

    def _dumped(self, changes: Changes) -> bytes:
        words = [to_arrow(column) for column in (changes.at, changes.exp, changes.id)]
        arrays = [*changes.rows.columns, *words]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._dumped_schema())
        return write_rows("RetimeTuples", rows, {})

    def _loaded(self, dumped: bytes) -> Changes:
        rows, _ = read_rows("RetimeTuples", dumped, self._dumped_schema())
        at, exp, ids = (filled(column, "times of tuples") for column in rows.columns[-3:])
        require_within(at, MIN_TS_US, MAX_TS_US + LONGEST_US, "births of tuples")
        require((at < exp).all(), "a tuple that goes before it comes")
        signs = np.ones(len(at), np.int8)
        return Changes(rows.select(self.output_schema.names), at, exp, signs, ids)

    def _dumped_schema(self) -> pa.Schema:
        own = [pa.field(name, pa.int64()) for name in ("_at", "_exp", "_id")]
        return pa.schema([*self.output_schema, *own])
