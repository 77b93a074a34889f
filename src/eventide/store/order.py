"""Rows in order of (ts, seq); nothing is done where they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.kernels.ordering import sorting_order
from eventide.schema import SEQ, TS

Int64s = npt.NDArray[np.int64]


def int64_view(column: pa.Array | pa.ChunkedArray) -> Int64s:
    """Return a null-free timestamp or integer column as numpy, copying only to join chunks."""
    if isinstance(column, pa.ChunkedArray):
        # combine_chunks copies a single chunk too.
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    values: Int64s = column.view(pa.int64()).to_numpy(zero_copy_only=True)
    return values


def sort_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in order of (ts, seq); the same object where they are."""
    order = sorting_order(int64_view(rows.column(TS)), int64_view(rows.column(SEQ)))
    return rows if order is None else rows.take(pa.array(order))
