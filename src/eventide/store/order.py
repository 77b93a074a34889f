"""Sort rows by (ts, seq), doing nothing where they are sorted already."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.schema import SEQ, TS

Int64s = npt.NDArray[np.int64]

CHECKED_ROWS = 1 << 16


def int64_view(column: pa.Array | pa.ChunkedArray) -> Int64s:
    """Return a null-free timestamp or integer column as numpy, copying only to join chunks."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values: Int64s = column.view(pa.int64()).to_numpy(zero_copy_only=True)
    return values


def sort_order(ts: Int64s, seq: Int64s | None = None) -> Int64s | None:
    """Return the row numbers in order of (ts, seq), or None if the rows are in order.

    Without `seq`, rows of equal `ts` stay in the order they have.

    >>> sort_order(np.array([3, 1, 2])).tolist()
    [1, 2, 0]
    >>> sort_order(np.array([1, 1, 2]), np.array([5, 6, 0])) is None
    True
    """
    if is_ordered(ts, seq):
        return None
    # Stable sorting of 64-bit numbers is timsort: on a few sorted runs it is a plain merge.
    order = np.argsort(ts, kind="stable")
    if seq is not None and not is_ordered(ts[order], seq[order]):
        return np.lexsort((seq, ts))
    return order


def is_ordered(ts: Int64s, seq: Int64s | None = None) -> bool:
    """Whether rows ascend by `ts`, and by `seq` among equal `ts`."""
    # A part at a time stays in the cache, and stops at the first part out of order.
    return all(
        part_is_ordered(ts[start : start + CHECKED_ROWS + 1], seq, start)
        for start in range(0, len(ts) - 1, CHECKED_ROWS)
    )


def part_is_ordered(ts: Int64s, seq: Int64s | None, start: int) -> bool:
    """Whether some rows ascend; `seq` is that of all rows, `start` the place of `ts[0]` there."""
    if not np.all(ts[1:] >= ts[:-1]):
        return False
    tied = ts[1:] == ts[:-1]
    if seq is None or not tied.any():
        return True
    part = seq[start : start + len(ts)]
    return not np.any(tied & (part[1:] < part[:-1]))


def sort_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in order of (ts, seq); the same object where they are."""
    order = sort_order(int64_view(rows.column(TS)), int64_view(rows.column(SEQ)))
    return rows if order is None else rows.take(pa.array(order))
