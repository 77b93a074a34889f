"""Sort rows by (ts, _seq), if they are not in that order already."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.interrupts import SORTED_AT_ONCE, interruptible_if_long
from eventide.kernels.ordering import sorting_order
from eventide.schema import SEQ, TS

Int64s = npt.NDArray[np.int64]


def int64_view(column: pa.Array | pa.ChunkedArray) -> Int64s:
    """Return a null-free timestamp or integer column as numpy, copying only to join chunks."""
    if isinstance(column, pa.ChunkedArray):
        # combine_chunks copies a single chunk too.
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    # Not to_numpy, which imports pandas first if there is one.
    if not len(column):
        return np.empty(0, np.int64)
    return np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)


def is_ascending(values: Int64s) -> bool:
    """Whether no value is smaller than the one before."""
    # Compared, not subtracted: values further apart than 2**63 have a difference that wraps.
    return bool((values[1:] >= values[:-1]).all())


def sort_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in order of (ts, _seq); the same object if they already are."""
    ts, seq = int64_view(rows.column(TS)), int64_view(rows.column(SEQ))
    # A process that only opens a stream need not load compiled code.
    if len(ts) <= SORTED_AT_ONCE and is_ascending(seq) and is_ascending(ts):
        return rows
    return interruptible_if_long(taken_in_order, len(ts), SORTED_AT_ONCE)(rows, ts, seq)


def taken_in_order(rows: pa.RecordBatch, ts: Int64s, seq: Int64s) -> pa.RecordBatch:
    """Return rows, whose times and numbers these are, in order of (ts, _seq)."""
    order = sorting_order(ts, seq)
    return rows if order is None else rows.take(to_arrow(order))
