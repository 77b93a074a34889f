"""Put events in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.kernels.ordering import sorting_order
from eventide.schema import SEQ, TS


def in_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in order of (ts, _seq)."""
    order = sorting_order(times(rows), rows.column(SEQ).to_numpy())
    return rows if order is None else rows.take(pa.array(order))


def in_order_by_block(parts: Sequence[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all parts in order of (ts, _seq), in blocks of about `most_bytes`.

    The parts together may have more text than one column can hold.
    """
    runs = [in_order(part) for part in parts if part.num_rows]
    if sum(run.nbytes for run in runs) <= most_bytes:
        if runs:
            yield runs[0] if len(runs) == 1 else in_order(pa.concat_batches(runs))
        return
    ts = np.concatenate([times(run) for run in runs])
    seq = np.concatenate([run.column(SEQ).to_numpy() for run in runs])
    order = np.lexsort((seq, ts))
    # Each run is in order, so the rows of a block lie side by side in it.
    block = np.empty(len(order), np.int64)
    sizes = np.concatenate([row_bytes(run) for run in runs])
    block[order] = np.cumsum(sizes[order]) // most_bytes
    starts = np.cumsum([0, *(run.num_rows for run in runs)])
    numbers = np.unique(block)
    bounds = [
        np.searchsorted(block[first:last], [*numbers, numbers[-1] + 1])
        for first, last in pairwise(starts)
    ]
    for place in range(len(numbers)):
        yield in_order(
            pa.concat_batches(
                [
                    run.slice(bound[place], bound[place + 1] - bound[place])
                    for run, bound in zip(runs, bounds, strict=True)
                ]
            )
        )


def row_bytes(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return about how many bytes each row takes."""
    size = np.full(rows.num_rows, 8 * rows.num_columns, np.int64)
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            size += pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return size


def times(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the times of rows in microseconds."""
    return words_of(rows.column(TS))


def words_of(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the memory of a column of times or whole numbers without nulls."""
    if not len(column):
        return np.empty(0, np.int64)
    return np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
