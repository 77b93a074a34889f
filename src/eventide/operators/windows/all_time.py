"""Aggregates of each key over all events: GROUP BY without a window, over history.

The state is one partial for each key. Rows leave when time is over. Without keys there is one row,
also if there was no event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Groups
from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import frozen
from eventide.operators.aggregate import accumulator_of, lift
from eventide.operators.checking import filled, require, require_keys, require_within
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.windows.nodes import WindowAggregate

ROOM = 65_536
"""So many partials more than keys are kept before they are merged."""


@dataclass(frozen=True, slots=True)
class KeptPartials:
    """Partials, of which the first `merged` have different keys."""

    partials: pa.RecordBatch
    merged: int = 0


@dataclass(frozen=True)
class AggregateAllTime(Stateful[KeptPartials]):
    """Computes aggregates of keys over all events, in order of the first event of each key."""

    node: WindowAggregate
    output_schema: pa.Schema
    accumulators: tuple[Accumulator, ...] = field(init=False)
    partial_schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        accumulators = tuple(accumulator_of(item.aggregate) for item in self.node.aggregates)
        fields = [pa.field(f"key{i}", key.type.arrow) for i, key in enumerate(self.node.keys)]
        # A batch without any column would not know how many rows it has.
        fields.append(pa.field("rows", pa.int64()))
        for i, accumulator in enumerate(accumulators):
            fields += [pa.field(f"a{i}_{j}", kind) for j, kind in enumerate(accumulator.types)]
        object.__setattr__(self, "accumulators", accumulators)
        object.__setattr__(self, "partial_schema", pa.schema(fields))

    def initial_state(self) -> KeptPartials:
        """Return the state before the first batch."""
        return KeptPartials(no_rows(self.partial_schema))

    def step(
        self, state: KeptPartials, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[KeptPartials, pa.RecordBatch]:
        """Take events; return the rows once time is over."""
        (rows,) = inputs
        partials = concat_batches([state.partials, self.lifted(rows)], self.partial_schema)
        if until_us == END_OF_TIME_US:
            return self.initial_state(), self.finished(self.reduced(partials))
        merged = state.merged
        if partials.num_rows > 2 * merged + ROOM:
            partials = self.reduced(partials)
            merged = partials.num_rows
        nothing = no_rows(self.output_schema)
        return KeptPartials(partials, merged), nothing

    def lifted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return one partial for each key of a batch."""
        keys = [evaluate(key.expression, rows) for key in self.node.keys]
        columns = [to_arrow(np.ones(rows.num_rows, np.int64))]
        for item, accumulator in zip(self.node.aggregates, self.accumulators, strict=True):
            columns += lift(item.aggregate, accumulator, rows)
        each = pa.RecordBatch.from_arrays([*keys, *columns], schema=self.partial_schema)
        return self.reduced(each) if rows.num_rows else each

    def reduced(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Merge the partials of each key."""
        width = len(self.node.keys)
        codes, keys, count = encode_keys(partials.columns[:width], partials.num_rows)
        groups = Groups(frozen(codes.astype(np.int64)), count)
        sizes = np.bincount(codes, weights=partials.column(width).to_numpy(), minlength=count)
        arrays = [*keys, to_arrow(sizes.astype(np.int64))]
        place = width + 1
        for accumulator in self.accumulators:
            end = place + len(accumulator.types)
            arrays += accumulator.by_group(partials.columns[place:end], groups)
            place = end
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)

    def finished(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of all keys; all of time has no bounds."""
        place = len(self.node.keys)
        arrays = partials.columns[:place]
        arrays += [pa.nulls(partials.num_rows, pa.timestamp("us"))] * 2
        place += 1
        for accumulator in self.accumulators:
            end = place + len(accumulator.types)
            arrays.append(accumulator.finish(partials.columns[place:end]))
            place = end
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def reached(self, state: KeptPartials, until_us: int) -> int:  # noqa: ARG002 - not of rows
        """Return the instant before which all rows have left."""
        return until_us if until_us == END_OF_TIME_US else START_OF_TIME_US

    def size(self, state: KeptPartials) -> Size:
        """Return the size of the state."""
        return Size(state.partials.num_rows, state.partials.nbytes)

    def write(self, state: KeptPartials) -> bytes:
        """Write the state out."""
        return write_rows(type(self).__name__, state.partials, {"merged": state.merged})

    def read(self, written: bytes) -> KeptPartials:
        """Read back what `write` wrote."""
        partials, facts = read_rows(type(self).__name__, written, self.partial_schema)
        merged = facts["merged"]
        require(0 <= merged <= partials.num_rows, f"{merged} of {partials.num_rows} partials")
        sizes = filled(partials.column("rows"), "numbers of events")
        require_within(sizes, 1, 1 << 62, "numbers of events")
        require_keys(partials.slice(0, merged).columns[: len(self.node.keys)], merged)
        return KeptPartials(partials, merged)
