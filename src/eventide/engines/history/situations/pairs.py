"""The pairs of a join by relation, joined while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from time import perf_counter

import pyarrow as pa

from eventide.operators.situations.period_join import join_periods
from eventide.plan.situations.nodes import PeriodJoin
from eventide.schema import row_schema


class PeriodPairs:
    """The pairs of the rows of two sides: a stream of Arrow batches that can be read again.

    There may be far more pairs than fit into memory, so the first reader gets them batch by batch.
    A query that names them twice, or a recursive one, reads them again: then they are joined once
    more and kept for later readers.
    """

    def __init__(self, node: PeriodJoin, left: pa.Table, right: pa.Table) -> None:
        self.node, self.left, self.right = node, left, right
        self.schema = row_schema(node.row)
        self.seconds = 0.0
        """The time of joining so far."""
        self.rows = 0
        """How many pairs were read."""
        self.failure: BaseException | None = None
        """Our own error if joining failed: the reader of a stream gets only a text."""
        self._was_read = False
        self._kept: pa.Table | None = None
        self._lock = Lock()

    def table(self) -> pa.Table:
        """Return all pairs."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the pairs, in no particular order."""
        with self._lock:  # DuckDB may read from several threads
            if self._was_read and self._kept is None:
                self._kept = pa.Table.from_batches(self._joined(), self.schema)
            self._was_read = True
        yield from self._joined() if self._kept is None else self._kept.to_batches()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a new stream of the pairs; nothing is joined before its first batch is read."""
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _joined(self) -> Iterator[pa.RecordBatch]:
        found = join_periods(self.node, self.left, self.right, self.schema)
        rows = 0
        while True:
            started = perf_counter()
            try:
                batch = next(found, None)
            except BaseException as error:
                self.failure = error
                raise
            self.seconds += perf_counter() - started
            if batch is None:
                return
            rows += batch.num_rows
            self.rows = max(self.rows, rows)
            yield batch
