"""Events that follow others: each left event with what follows it, alone or in chains that go on.

    left    a1 ──         a2 ─
    right        x ──  y ───   z ──      x follows a1, z follows a2: y began before a2 had ended

The state is the left events, and for chains also those begun, that nothing has followed yet. With
WITHIN, those are forgotten that whatever comes would follow too late.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import Bools, Int64s
from eventide.operators.algebra.compiler import Compiled, compiled
from eventide.operators.algebra.keyed import KeyedEvents, RowsWithKeys
from eventide.operators.algebra.results import FoundRows, Results
from eventide.operators.algebra.search import ChainSearch
from eventide.operators.algebra.waiting import WaitingRows
from eventide.operators.checking import require, times_of
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, has_query, query_place, rows_of
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.algebra.nodes import Carried, Follows, Iterate
from eventide.plan.expressions import Column, Expression, Named, columns_of
from eventide.schema import MAX_TS_US, MIN_TS_US, START_TS, TS, row_schema

State = KeyLayers[WaitingRows]
TIME = pa.timestamp("us")


@dataclass(frozen=True)
class FollowEvents(Stateful[State]):
    """NEXT, and FOLD if the node iterates; filters and a projection right above it.

    Only rows that pass all filters get the columns that nothing but the projection reads.
    """

    reads_blocks = True

    node: Follows
    output_schema: pa.Schema
    kept: tuple[Expression, ...] = ()
    items: tuple[Named, ...] | None = None
    compiled: Compiled = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", compiled(self.node))

    @cached_property
    def carried(self) -> tuple[Carried, ...]:
        """What chains carry."""
        return self.node.carried if isinstance(self.node, Iterate) else ()

    @cached_property
    def waiting_schema(self) -> pa.Schema:
        """The columns of what waits: those of the left source, and what chains carry."""
        row = dict(self.node.left.row)
        return row_schema(row | {each.name: row[each.first] for each in self.carried})

    @cached_property
    def right_schema(self) -> pa.Schema:
        """The columns of the right source."""
        return row_schema(self.node.right.row)

    def initial_state(self) -> State:
        """Return the state before the first step: nothing waits."""
        return KeyLayers.of(WaitingRows.of(no_rows(self.waiting_schema), self.node))

    def step(
        self, state: State, inputs: tuple[pa.RecordBatch, KeyedEvents], until_us: int
    ) -> tuple[State, pa.RecordBatch]:
        """Take the events of both sources; return those of the left that were followed."""
        left, right = RowsWithKeys.of(inputs[0], self.node.left_keys), inputs[1]
        pairs = zip(left.keys, right.keyed.keys, strict=True)
        columns, asked = [pa.concat_arrays(pair) for pair in pairs], left.count + right.keyed.count
        events = left.rows.num_rows + right.num_rows
        taken = state.taken(columns, asked, until_us, events)
        codes, keys, known = taken.numbered()
        rows = concat_batches([taken.part.rows, self.begun(left.rows)], self.waiting_schema)
        numbers = np.concatenate([taken.part.codes, codes[: left.count][left.codes]])
        waiting = WaitingRows(rows, numbers, tuple(keys), known, self.node)
        may = self.still_followed(waiting, until_us)
        if not rows.num_rows or not right.num_rows:
            kept, stayed = waiting.only(may)
            return taken.put(kept, until_us, stayed), no_rows(self.output_schema)
        search = ChainSearch(
            self.compiled,
            tuple(each.name for each in self.carried),
            waiting,
            right,
            codes[left.count :],
            isinstance(self.node, Iterate),
        )
        results = search.run()
        if until_us == END_OF_TIME_US:
            # Nothing comes any more, so nobody waits.
            return self.initial_state(), self.rows(results, waiting, right.keyed.rows)
        kept, stayed = self.remaining(results, waiting, may)
        return taken.put(kept, until_us, stayed), self.rows(results, waiting, right.keyed.rows)

    def begun(self, left: pa.RecordBatch) -> pa.RecordBatch:
        """Return events of the left source with what chains carry from the first on."""
        arrays = [*left.columns, *(left.column(each.first) for each in self.carried)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.waiting_schema)

    def still_followed(self, waiting: WaitingRows, until_us: int) -> Bools:
        """Return what may be followed by an event at an instant or later."""
        if until_us == END_OF_TIME_US:
            return np.zeros(waiting.rows.num_rows, np.bool_)
        if not self.node.is_bounded:
            return np.ones(waiting.rows.num_rows, np.bool_)
        return waiting.expires >= until_us

    def remaining(
        self, results: Results, waiting: WaitingRows, may: Bools
    ) -> tuple[WaitingRows, Int64s]:
        """Return what still waits, and the keys that it has."""
        alone = results.waiting & may
        longer = results.open[may[results.found.origin[results.open]]]
        if not len(longer):
            return waiting.only(alone)
        chains = np.concatenate([np.flatnonzero(alone), len(may) + longer])
        origin = results.origins(chains)
        rows = waiting.rows.take(to_arrow(origin))
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        ends = results.sides.ts[results.found.event[longer]]
        columns[TS] = to_arrow(np.concatenate([results.sides.end[alone], ends])).view(TIME)
        columns |= {
            each.name: results.carried(number, chains) for number, each in enumerate(self.carried)
        }
        rows = pa.RecordBatch.from_arrays(list(columns.values()), schema=self.waiting_schema)
        return waiting.with_rows(rows, waiting.codes[origin])

    def rows(self, results: Results, waiting: WaitingRows, right: pa.RecordBatch) -> pa.RecordBatch:
        """Return the chains that were found, in order of time."""
        numbers = {each.name: number for number, each in enumerate(self.carried)}
        found = FoundRows.of(results, waiting.rows, right, numbers)
        for condition in self.kept:
            found = found.where(condition)
        if self.items is None:
            columns = [found.column(name) for name in self.output_schema.names]
        else:
            rows = found.rows({TS}.union(*(columns_of(each.expression) for each in self.items)))
            columns = [evaluate(each.expression, rows) for each in self.items]
        return pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def size(self, state: State) -> Size:
        """Return the size of the state."""
        return Size(state.weight, state.nbytes)

    def of_keys(self, state: State, wanted: Wanted) -> State:
        """Return the state of the left events of some queries."""
        if self.is_by_query:
            return state.of_keys(query_place(self.node), wanted)
        rows = rows_of(state.whole.rows, wanted)
        return KeyLayers.of(WaitingRows.of(rows, self.node), state.watermark_us)

    def united(self, state: State, other: State) -> State:
        """Return the left events of both."""
        if self.is_by_query:
            return state.united(other)
        rows = concat_batches([state.whole.rows, other.whole.rows], self.waiting_schema)
        return KeyLayers.of(WaitingRows.of(rows, self.node), state.watermark_us)

    @property
    def is_by_query(self) -> bool:
        """Whether the query is a key: it is none if an event follows those of all queries."""
        keys = (key for keys in self.node.compared for key in keys)
        return any(isinstance(key, Column) and has_query(key.name) for key in keys)

    def write(self, state: State) -> bytes:
        """Write the state out."""
        return write_rows(type(self).__name__, state.whole.rows, {})

    def read(self, written: bytes) -> State:
        """Read back what `write` wrote."""
        rows, _ = read_rows(type(self).__name__, written, self.waiting_schema)
        ends, starts = times_of(rows), int64s(rows.column(START_TS))
        require(rows.column(START_TS).null_count == 0, "a null among the starts of events")
        near = (starts >= MIN_TS_US) & (starts <= MAX_TS_US)
        require((near & (starts <= ends)).all(), "events that end before they begin")
        return KeyLayers.of(WaitingRows.of(rows, self.node))
