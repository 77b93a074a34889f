"""Joins as of a time: each tuple with the rows of a relation, or the past of a stream, then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.joins.as_of import (
    CURSOR,
    NOT_BEGUN,
    WRITTEN,
    join_as_of,
)
from eventide.kernels.joins.join import JoinRoom
from eventide.kernels.joins.pool import AT, SIDE
from eventide.operators.changes import Changes
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import Fingerprints, fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.joins.join import ROOM
from eventide.operators.standing.joins.memory import (
    WORD_SCHEMA,
    JoinMemory,
    Sided,
    SideRule,
    words_of,
)
from eventide.operators.standing.keys import without_null
from eventide.operators.standing.row_log import append_coming
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import Expression


@dataclass(frozen=True)
class JoinAsOf(Stateful[JoinMemory]):
    """Joins tuples of the left input with the rows on the right at that instant.

    With `newest` the right is a stream, and its newest event of each key counts; otherwise it is
    all tuples that have come and not gone. With `strict` they are as before the instant. Later
    changes on the right change nothing, and tuples of the left are not kept: the operator above
    knows from their expiry when they go.
    """

    right_schema: pa.Schema
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    output_schema: pa.Schema
    newest: bool
    strict: bool = False
    outer: bool = False

    def initial_state(self) -> JoinMemory:
        """Return the state before the first instant."""
        return JoinMemory.empty((self.right_schema,), (SideRule("kept", not self.newest),))

    def step(
        self, state: JoinMemory, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[JoinMemory, Changes]:
        """Join the tuples that come from the left."""
        left, right = inputs
        left = left.take(np.flatnonzero(left.sign > 0))
        right, right_keys = without_null(right, self.keys_of(self.right_keys, right))
        numbers, log = append_coming(state.logs[0], right)
        memory = replace(state, logs=(log,), until_us=until_us)
        memory = memory.roomy([len(right)])
        left_keys = self.keys_of(self.left_keys, left)
        changes = self.in_time(left, left_keys, right, right_keys, numbers)
        parts = list(self.joined(memory, changes, left))
        return memory.compact(), Changes.concat(parts, self.output_schema)

    def keys_of(self, keys: tuple[Expression, ...], changes: Changes) -> Fingerprints:
        """Return the keys of changes."""
        return fingerprints([evaluate(key, changes.rows) for key in keys], len(changes))

    def in_time(
        self,
        left: Changes,
        left_keys: Fingerprints,
        right: Changes,
        right_keys: Fingerprints,
        numbers: Int64s,
    ) -> Int64s:
        """Return both sides in the order in which they meet."""
        # A null key equals no fingerprint.
        second = np.where(left_keys.null, -1, left_keys.second)
        held = Sided((right_keys.first, right_keys.second), right, numbers)
        probing = Sided((left_keys.first, second), left, np.arange(len(left)))
        both, _ = words_of((held, probing))  # sides are numbered HELD and PROBING
        side = both[:, SIDE]
        return frozen(both[np.lexsort((-side if self.strict else side, both[:, AT]))])

    def joined(self, memory: JoinMemory, changes: Int64s, left: Changes) -> Iterator[Changes]:
        """Yield results in order of time."""
        at, exp, ids = (np.empty(ROOM, np.int64) for _ in range(3))
        room = JoinRoom(np.empty((ROOM, 2), np.int64), at, exp, ids, np.empty(ROOM, np.int8))
        progress = np.zeros(4, np.int64)
        progress[CURSOR] = NOT_BEGUN
        done = False
        while not done:
            done = join_as_of(memory.state, changes, self.newest, self.outer, progress, room)
            written = int(progress[WRITTEN])
            if written:
                yield self.combined(memory, room, written, left)

    def combined(self, memory: JoinMemory, room: JoinRoom, written: int, left: Changes) -> Changes:
        """Return results as rows."""
        own, other = room.rows[:written, 0].copy(), room.rows[:written, 1].copy()
        rows = left.rows.take(to_arrow(own))
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        met: Bools = other >= 0
        found = memory.logs[0].take(other[met])
        places = pa.array(np.cumsum(met) - 1, mask=~met)
        columns |= {
            name: column.take(places)
            for name, column in zip(found.schema.names, found.columns, strict=True)
        }
        arrays = [columns[name] for name in self.output_schema.names]
        return Changes(
            pa.RecordBatch.from_arrays(arrays, schema=self.output_schema),
            room.at[:written].copy(),
            room.exp[:written].copy(),
            room.sign[:written].copy(),
            room.id[:written].copy(),
        )

    def write(self, state: JoinMemory) -> bytes:
        """Write the state out."""
        facts = {"until_us": state.until_us}
        words = write_rows("JoinAsOf", state.words(0), facts)
        return join_parts([words, write_rows("JoinAsOf", state.values(0), {})])

    def read(self, written: bytes) -> JoinMemory:
        """Read back what `write` wrote."""
        first, second = parts_of("JoinAsOf", written, 2)
        words, facts = read_rows("JoinAsOf", first, WORD_SCHEMA)
        values, _ = read_rows("JoinAsOf", second, self.right_schema)
        memory = self.initial_state().roomy([words.num_rows])
        return memory.with_tuples(0, words, values, facts["until_us"])

    def size(self, state: JoinMemory) -> Size:
        """Return the size of the state."""
        return Size(state.tuples, state.nbytes)
