"""Ranks of rows within windows: once a window is complete, its rows are put in order.

    window_end  5  5  5  10  10      PARTITION BY window_end ORDER BY price DESC
    price       3  7  3   2   8
    row_number  2  1  3   2   1
    rank        2  1  2   2   1

The state is the rows of windows that are not complete.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.operators.checking import filled
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.dividing import Wanted, query_place, rows_where
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.operator import Size
from eventide.operators.order_rows import sorted_places
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.windows.nodes import Rank, WindowRanks


@dataclass(frozen=True)
class RankWindowRows(Stateful[pa.RecordBatch]):
    """Every row with its ranks, once the watermark has passed the end of its window."""

    node: WindowRanks
    output_schema: pa.Schema

    @property
    def source_schema(self) -> pa.Schema:
        """The columns of the rows that come."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.source.row.items()])

    def initial_state(self) -> pa.RecordBatch:
        """Return the state before the first row: no rows wait."""
        return no_rows(self.source_schema)

    def step(
        self, state: pa.RecordBatch, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Take rows; return those of windows that end before `until_us`."""
        rows = concat_batches([state, *inputs], self.source_schema)
        if until_us == END_OF_TIME_US:
            return self.initial_state(), self.ranked(rows)
        complete = pc.less(
            evaluate(self.node.end, rows).cast(pa.int64()), pa.scalar(until_us, pa.int64())
        )
        return rows.filter(pc.invert(complete)), self.ranked(rows.filter(complete))

    def ranked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of complete windows with their ranks."""
        keys, _, _ = encode_keys([evaluate(key, rows) for key in self.node.keys], rows.num_rows)
        values = [evaluate(item.expression, rows) for item in self.node.order]
        equal, _, _ = encode_keys(values, rows.num_rows)
        places = sorted_places(values, self.node.order).to_numpy()
        places = places[np.argsort(keys[places], kind="stable")]
        counts = RankCounts.of(keys[places], equal[places])
        columns = [*rows.columns]
        for _, rank in self.node.ranks:
            found = np.empty(rows.num_rows, np.int64)
            found[places] = counts.by(rank)
            columns.append(to_arrow(found))
        return pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def of_keys(self, state: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
        """Return the rows for some queries."""
        key = self.node.keys[query_place(self.node)]
        return rows_where(state, evaluate(key, state), wanted)

    def united(self, state: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of both: windows of different keys."""
        return concat_batches([state, other], self.source_schema)

    def write(self, state: pa.RecordBatch) -> bytes:
        """Write the state out."""
        return write_rows(type(self).__name__, state, {})

    def read(self, written: bytes) -> pa.RecordBatch:
        """Read back what `write` wrote."""
        rows, _ = read_rows(type(self).__name__, written, self.source_schema)
        filled(evaluate(self.node.end, rows), "ends of windows")
        return rows

    def size(self, state: pa.RecordBatch) -> Size:
        """Return the size of the state."""
        return Size(state.num_rows, state.nbytes)


@dataclass(frozen=True, slots=True)
class RankCounts:
    """Rows in order of their keys, then of their ranks: where keys and values change."""

    first_of_key: Int64s
    """For each row, the place of the first one of its key."""
    first_equal: Int64s
    """For each row, the place of the first one of its key with the same values."""
    changes: Int64s
    """How often values have changed up to each row."""

    @classmethod
    def of(cls, keys: np.ndarray, equal: np.ndarray) -> RankCounts:
        """Return what is counted of rows by the codes of their keys and values."""
        count = len(keys)
        new_key, new_value = np.ones(count, np.bool_), np.ones(count, np.bool_)
        new_key[1:] = keys[1:] != keys[:-1]
        new_value[1:] = new_key[1:] | (equal[1:] != equal[:-1])
        places = np.arange(count)
        return cls(
            np.maximum.accumulate(np.where(new_key, places, 0)),
            np.maximum.accumulate(np.where(new_value, places, 0)),
            np.cumsum(new_value),
        )

    def by(self, rank: Rank) -> Int64s:
        """Return the ranks of all rows, from one on."""
        match rank:
            case "row_number":
                return np.arange(len(self.changes)) - self.first_of_key + 1
            case "rank":
                return self.first_equal - self.first_of_key + 1
            case "dense_rank":
                return self.changes - self.changes[self.first_of_key] + 1
