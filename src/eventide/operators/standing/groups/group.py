"""GROUP BY of a standing query: a row for each group, replaced whenever its aggregates change.

    at      0        3        7        9            RANGE 8, COUNT(*)
    in     +a       +a                +b            a comes at 0 and at 3, and goes at 8 and at 11
    out    +a 1     -a 1     at 8:    +b 1          a row that goes is followed by what replaces it
                    +a 2     -a 2
                             +a 1

The kernels are in kernels/aggregates. Sums stay exact when values come and go (exact_sums.py).
Medians, distinct and frequent values come from the sorted values of each group (sorted_blocks.py).
So do extremes, unless it is known when each value goes: then few have to be kept (skyline.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int32s, Int64s
from eventide.kernels.groups.reading import Readers
from eventide.kernels.groups.sliding import EMITTED_ROWS, EMPTIED, PART, PLACE, Progress, fold
from eventide.kernels.groups.tables import OUT_AT, OUT_GROUP, OUT_HEAD, OUT_ID, OUT_SIGN
from eventide.kernels.slabs import BLOCK
from eventide.operators.changes import NEVER, Changes
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.array_state import read_arrays, write_arrays
from eventide.operators.standing.groups.plan import GroupPlan
from eventide.operators.standing.groups.rows import finished
from eventide.operators.standing.groups.state import GroupState
from eventide.operators.standing.row_log import RowLog
from eventide.operators.standing.tuples import GroupedChanges, knows_ends, remembering
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.standing.edges import Edge
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import GroupAggregate

_TEXTS = pa.schema([("text", pa.string())])


@dataclass(frozen=True)
class AggregateGroups(Stateful[GroupState]):
    """Maintains the rows of groups; `edge` says how the tuples of the input will go."""

    node: GroupAggregate
    edge: Edge
    execution: Execution = "aware"

    def __post_init__(self) -> None:
        _ = self.plan  # an aggregate that cannot be maintained is an error now

    @cached_property
    def plan(self) -> GroupPlan:
        """What is kept and read for each group."""
        ends = knows_ends(self.edge, self.execution)
        return GroupPlan.of(self.node.aggregates, knows_ends=ends)

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The columns of the keys."""
        return pa.schema([(key.name, key.type.arrow) for key in self.node.keys])

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.row.items()])

    def initial_state(self) -> GroupState:
        """Return the state before the first instant."""
        plan = self.plan
        tuples = remembering(self.edge, self.execution, len(plan.columns))
        return GroupState.empty(len(plan.parts), plan.width, self.key_schema, tuples)

    def step(
        self, state: GroupState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[GroupState, Changes]:
        """Take changes; return the rows that go and come."""
        changes = inputs[0]
        keys = [one_spelling(evaluate(key.expression, changes.rows)) for key in self.node.keys]
        prints = fingerprints(keys, len(changes))
        named = pa.RecordBatch.from_arrays(keys, schema=self.key_schema)
        of_row, new = state.groups_of(prints, named)
        arrivals = self._arrivals(state, changes, of_row)
        operations, tuples = state.tuples.take(arrivals, until_us)
        count = len(operations.at)
        if count == 0:
            state.forget(new)
            return state, Changes.nothing(self.output_schema)
        out = np.empty((OUT_HEAD + self.plan.width, 2 * count), np.int64)
        progress = Progress.room(count, self.plan.width)
        readers, kinds = self._readers(state), self.plan.kinds
        block = int(state.slabs.facts[BLOCK]) if self.plan.keeps_values else None
        while not fold(
            operations, tuples, kinds, readers, state.groups, state.slabs, block, out, progress
        ):
            place, part = operations.places[progress.facts[PLACE]], int(progress.facts[PART])
            kind, column = self.plan.parts[part]
            owner = int(tuples.groups[place]) * len(kinds) + part
            state.widen(kind, owner, int(tuples.values[column, place]))
        emitted = self._changes(state, out[:, : progress.facts[EMITTED_ROWS]])
        state.forget(np.concatenate([new, progress.emptied[: progress.facts[EMPTIED]]]))
        if self.plan.texts:
            state.forget_texts(self.plan.text_parts)
        return state.trimmed(count, self.plan.kinds[:, 0]), emitted

    def _arrivals(self, state: GroupState, changes: Changes, of_row: Int32s) -> GroupedChanges:
        columns = self.plan.columns
        values = np.empty((len(columns), len(changes)), np.int64)
        valid = np.empty((len(columns), len(changes)), np.bool_)
        for i, column in enumerate(columns):
            values[i], valid[i], found = column.words(changes.rows)
            if i in self.plan.texts:
                present = valid[i]
                texts = found.filter(to_arrow(present)).cast(pa.string())
                state.texts = state.texts.added(values[i][present], texts)
        return GroupedChanges(changes, of_row, values, valid)

    def _readers(self, state: GroupState) -> Readers:
        readers = self.plan.readers
        places = [(reader.kind, reader.part, reader.word) for reader in readers]
        numbers = [(reader.quantile, reader.scale) for reader in readers]
        return Readers(
            np.array([*places, (0, 0, self.plan.width)], np.int64),
            np.array(numbers, np.float64).reshape(-1, 2),
            state.texts.table if self.plan.lists else None,
            state.texts.ranks,
        )

    def _changes(self, state: GroupState, emitted: Int64s) -> Changes:
        arrays: list[pa.Array] = []
        if self.node.keys:
            arrays += state.keys.take(state.numbers[emitted[OUT_GROUP]]).columns
        words = emitted[OUT_HEAD:]
        for place, reader in enumerate(self.plan.readers):
            arrays.append(finished(reader, place, words, state.texts))
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)
        never = np.full(emitted.shape[1], NEVER, np.int64)
        signs = emitted[OUT_SIGN].astype(np.int8)
        return Changes(rows, emitted[OUT_AT], never, signs, emitted[OUT_ID])

    def write(self, state: GroupState) -> bytes:
        """Write the state out, without spare room."""
        name = type(self).__name__
        state = state.compacted(self.plan.kinds[:, 0])
        keys = state.keys
        rows = keys.take(np.arange(keys.start, keys.end))
        texts = pa.RecordBatch.from_arrays([state.texts.texts], schema=_TEXTS)
        return join_parts(
            [
                write_arrays(name, state.written()),
                write_rows(f"{name}, keys", rows, {}),
                write_rows(f"{name}, texts", texts, {}),
            ]
        )

    def read(self, written: bytes) -> GroupState:
        """Read back what `write` wrote."""
        name = type(self).__name__
        first, second, third = parts_of(name, written, 3)
        rows, _ = read_rows(f"{name}, keys", second, self.key_schema)
        texts, _ = read_rows(f"{name}, texts", third, _TEXTS)
        keys = RowLog.empty(self.key_schema).append(rows)
        empty = self.initial_state()
        return empty.read(read_arrays(name, first), self.plan, keys, texts.column("text"))

    def size(self, state: GroupState) -> Size:
        """Return the size of the state."""
        return Size(state.tuples.living, state.nbytes)
