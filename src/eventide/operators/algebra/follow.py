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
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US
from eventide.kernels.algebra.code import WAITS, Chains
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.ordering import sorting_order
from eventide.operators.algebra.compiler import Compiled, compiled
from eventide.operators.algebra.search import ChainSearch
from eventide.operators.algebra.waiting import WaitingRows
from eventide.operators.checking import require, times_of
from eventide.operators.columns import concat_batches
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.key_parts import KeyOrder
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.algebra.nodes import Carried, Follows, Iterate, attributes
from eventide.plan.tree import Keys
from eventide.schema import MAX_TS_US, MIN_TS_US, START_TS, TS, row_schema

State = KeyLayers[WaitingRows]


@dataclass(frozen=True)
class FollowEvents(Stateful[State]):
    """NEXT, and FOLD if the node iterates."""

    reads_blocks = True

    node: Follows
    output_schema: pa.Schema
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
        self, state: State, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[State, pa.RecordBatch]:
        """Take the events of both sources; return those of the left that were followed."""
        left, left_keys = with_keys(inputs[0], self.node.left_keys)
        right, right_keys = with_keys(in_time(inputs[1]), self.node.right_keys)
        begun, count = self.begun(left), left.num_rows
        columns = [pa.concat_arrays(pair) for pair in zip(left_keys, right_keys, strict=True)]
        taken = state.taken(columns, count + right.num_rows, until_us)
        codes, keys, known = taken.numbered()
        rows = concat_batches([taken.part.rows, begun], self.waiting_schema)
        numbers = np.concatenate([taken.part.codes, codes[:count]])
        waiting = WaitingRows(rows, numbers, tuple(keys), known, self.node)
        if not rows.num_rows or not right.num_rows:
            kept, stayed = waiting.only(self.still_followed(waiting.expires, until_us))
            return taken.put(kept, until_us, stayed), no_rows(self.output_schema)
        search = ChainSearch(
            self.compiled,
            tuple(each.name for each in self.carried),
            waiting,
            right,
            KeyOrder.of(frozen(codes[count:]), known),
            isinstance(self.node, Iterate),
        )
        chains = search.run()
        kept, stayed = self.remaining(search, chains, until_us)
        return taken.put(kept, until_us, stayed), self.results(search, chains)

    def begun(self, left: pa.RecordBatch) -> pa.RecordBatch:
        """Return events of the left source with what chains carry from the first on."""
        arrays = [*left.columns, *(left.column(each.first) for each in self.carried)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.waiting_schema)

    def still_followed(self, expires: Int64s, until_us: int) -> Bools:
        """Return what may be followed by an event at an instant or later."""
        if until_us == END_OF_TIME_US:
            return np.zeros(len(expires), np.bool_)
        return expires >= until_us

    def remaining(
        self, search: ChainSearch, chains: Chains, until_us: int
    ) -> tuple[WaitingRows, Int64s]:
        """Return what still waits, and the keys that it has."""
        waiting, begun = search.waiting, search.waiting.rows.num_rows
        may = self.still_followed(waiting.expires, until_us)
        wanted = (chains.state == WAITS) & may[chains.origin]
        if not wanted[begun:].any():
            return waiting.only(wanted[:begun])
        places = np.flatnonzero(wanted)
        origin = chains.origin[places]
        rows = waiting.rows.take(to_arrow(origin))
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        columns[TS] = to_arrow(chains.end[places]).view(pa.timestamp("us"))
        columns |= search.carried(chains, places)
        rows = pa.RecordBatch.from_arrays(list(columns.values()), schema=self.waiting_schema)
        return waiting.with_rows(rows, waiting.codes[origin])

    def results(self, search: ChainSearch, chains: Chains) -> pa.RecordBatch:
        """Return the chains that were found, in order of time."""
        begun = search.waiting.rows.num_rows
        places = begun + np.argsort(chains.end[begun:], kind="stable")
        left = search.waiting.rows.take(to_arrow(chains.origin[places]))
        right = search.events.take(to_arrow(chains.event[places]))
        columns = {TS: right.column(TS), START_TS: left.column(START_TS)}
        columns |= {name: left.column(name) for name in attributes(self.node.left.row)}
        columns |= search.carried(chains, places)
        columns |= {name: right.column(name) for name in attributes(self.node.right.row)}
        arrays = [columns[name] for name in self.output_schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def size(self, state: State) -> Size:
        """Return the size of the state."""
        return Size(state.weight, state.nbytes)

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


def in_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in order of their ends; a union has those of each arm in order only."""
    order = sorting_order(int64s(rows.column(TS)))
    return rows if order is None else rows.take(to_arrow(order))


def with_keys(rows: pa.RecordBatch, keys: Keys) -> tuple[pa.RecordBatch, list[pa.Array]]:
    """Return rows and their keys, without those of which a key is null: it is equal to nothing."""
    columns = [evaluate(key, rows) for key in keys]
    if not any(column.null_count for column in columns):
        return rows, columns
    present = columns[0].is_valid()
    for column in columns[1:]:
        present = pc.and_(present, column.is_valid())
    return rows.filter(present), [column.filter(present) for column in columns]
