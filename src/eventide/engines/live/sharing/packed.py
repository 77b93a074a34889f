"""Constants of many queries: where few values come again and again, each query has a small number.

500 000 limits, 25 of them different    500 000 octets and 25 values, instead of 4 000 000 octets
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow, to_numpy
from eventide.operators.columns import unchecked_take
from eventide.plan.sharing.part_rows import PART_NUMBER

FEWEST = 1024
"""Fewer rows are kept as they are."""


def packed(table: pa.RecordBatch) -> pa.RecordBatch:
    """Return constants with those columns packed that are smaller then."""
    if table.num_rows < FEWEST:
        return table
    columns = [
        column if name == PART_NUMBER else packed_column(column)
        for name, column in zip(table.schema.names, table.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=table.schema.names)


def packed_column(column: pa.Array) -> pa.Array:
    """Return a column as numbers of its different values, if these are few."""
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind):
        return column
    is_float = kind == pa.float64()
    # By its bits, a zero is not the same as a negative one.
    found = (column.view(pa.int64()) if is_float else column).dictionary_encode()
    values = found.dictionary.view(kind) if is_float else found.dictionary
    for width in (np.uint8, np.uint16):
        if len(values) <= np.iinfo(width).max:
            break
    else:
        return column
    valid = None if not column.null_count else column.is_valid()
    numbers = to_numpy(found.indices.fill_null(0)).astype(width)
    small = to_arrow(numbers, None if valid is None else to_numpy(valid))
    smaller = pa.DictionaryArray.from_arrays(small, values)
    return smaller if smaller.nbytes < column.nbytes else column


def unpacked(table: pa.RecordBatch) -> pa.RecordBatch:
    """Return constants as they were."""
    return pa.RecordBatch.from_arrays(
        [plain(column) for column in table.columns], names=table.schema.names
    )


def plain(column: pa.Array) -> pa.Array:
    """Return a column as it was before it was packed, if it was."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def taken(column: pa.Array, places: pa.Array) -> pa.Array:
    """Return the values of a column, which may be packed, at places that are there."""
    return plain(unchecked_take(column, places))


def buffers_of(table: pa.RecordBatch) -> dict[int, int]:
    """Return the size of each buffer of some constants, by its address."""
    columns = [*table.columns]
    columns += [each.dictionary for each in columns if pa.types.is_dictionary(each.type)]
    return {
        buffer.address: int(buffer.size)
        for column in columns
        for buffer in column.buffers()
        if buffer is not None
    }
