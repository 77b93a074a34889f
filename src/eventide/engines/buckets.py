"""Rows by bucket of keys, to distribute work where rows of a key are not stored together.

A bucket is a number computed from a row's key, the same on every machine. Rows of one bucket travel
as one block of bytes, so that moving them has no cost for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import decimal_halves, floats, int64s, validity
from eventide.kernels.compiled import Int32s, frozen
from eventide.kernels.grouping import order_by_key
from eventide.kernels.hashing import Hashes, hash_bytes, hash_words


def buckets_of(keys: Sequence[pa.Array], rows: int, count: int) -> Int32s:
    """Return the bucket of each row, one of `count`; without keys, all are in the first."""
    hashes = np.zeros(rows, np.uint64)
    for key in keys:
        mix_column(key, hashes)
    if not keys:
        return frozen(np.zeros(rows, np.int32))
    return frozen((hashes % np.uint64(count)).astype(np.int32))


def mix_column(column: pa.Array, hashes: Hashes) -> None:
    """Mix a key column into the hashes of its rows."""
    valid = validity(column)
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        _, offsets_buffer, data_buffer = column.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32)
        offsets = offsets[column.offset : column.offset + len(column) + 1]
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.empty(0, np.uint8)
        hash_bytes(frozen(offsets), frozen(data), valid, hashes)
    elif pa.types.is_decimal(column.type):
        for half in decimal_halves(column):
            hash_words(half, valid, hashes)
    elif pa.types.is_floating(column.type):
        # -0.0 and 0.0 are one key, and so are all NaNs.
        values = floats(pc.add(column, 0.0)).copy()
        values[np.isnan(values)] = np.nan
        hash_words(frozen(values.view(np.int64)), valid, hashes)
    else:
        hash_words(int64s(column), valid, hashes)


def split_by_bucket(
    rows: pa.RecordBatch, buckets: Int32s, count: int
) -> list[tuple[int, pa.RecordBatch]]:
    """Return the rows of each bucket that has any, in their order."""
    order, offsets = np.empty(len(buckets), np.int64), np.zeros(count + 1, np.int64)
    order_by_key(buckets, offsets, order)
    together = rows.take(pa.array(order))
    return [
        (bucket, together.slice(offsets[bucket], offsets[bucket + 1] - offsets[bucket]))
        for bucket in range(count)
        if offsets[bucket] < offsets[bucket + 1]
    ]


def to_bytes(rows: pa.RecordBatch) -> bytes:
    """Return rows as a block of bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def from_bytes(blocks: Iterable[bytes]) -> list[pa.RecordBatch]:
    """Return the rows of blocks that `to_bytes` made."""
    return [batch for block in blocks for batch in pa.ipc.open_stream(block)]
