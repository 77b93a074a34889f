"""Arrow columns from NumPy arrays, and the other way round, without pandas.

The conversions of pyarrow import pandas if it is installed, to see whether they were given one of
its objects. That takes longer than the first query; it is left to users who have such objects.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bools = npt.NDArray[np.bool_]

NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64()),
)
ARROW_TYPES = {np.dtype(kind.to_pandas_dtype()): kind for kind in (pa.bool_(), *NUMBERS)}
# By number: types of Arrow are slow to look up.
ARRAY_TYPES = {kind.id: dtype for dtype, kind in ARROW_TYPES.items()}
BOOL, INT64, FLOAT64 = (kind.id for kind in (pa.bool_(), pa.int64(), pa.float64()))
TEXT, INSTANT, LENGTH = (kind.id for kind in (pa.string(), pa.timestamp("us"), pa.duration("us")))


def to_arrow(values: npt.NDArray[Any], valid: Bools | None = None) -> pa.Array:
    """Return numbers or booleans as a column, without a copy; null where `valid` says no.

    >>> to_arrow(np.array([1, 2, 3]), np.array([True, False, True])).to_pylist()
    [1, None, 3]
    """
    bits = None if valid is None else packed(valid)
    content = packed(values) if values.dtype == np.bool_ else buffer_of(values)
    return pa.Array.from_buffers(ARROW_TYPES[values.dtype], len(values), [bits, content])


def to_numpy(column: pa.Array) -> npt.NDArray[Any]:
    """Return a column of numbers or booleans without nulls as an array, numbers without a copy.

    >>> to_numpy(pa.array([True, False, True]).slice(1)).tolist()
    [False, True]
    """
    start, count, number = column.offset, len(column), column.type.id
    kind = ARRAY_TYPES[number]
    if not count:
        return np.empty(0, kind)
    content = column.buffers()[1]
    if number == BOOL:
        octets = np.frombuffer(content, np.uint8)
        return np.unpackbits(octets, count=start + count, bitorder="little")[start:].view(np.bool_)
    return np.frombuffer(content, kind, count, kind.itemsize * start)


def to_scalar(value: object, kind: pa.DataType) -> pa.Scalar:
    """Return a value of Python as one of Arrow.

    >>> to_scalar(0.5, pa.float64()), to_scalar("a", pa.string()), to_scalar(None, pa.string())
    (<pyarrow.DoubleScalar: 0.5>, <pyarrow.StringScalar: 'a'>, <pyarrow.StringScalar: None>)
    """
    if value is None:
        return pa.nulls(1, kind)[0]
    number = kind.id
    if number == TEXT and isinstance(value, str):
        text = value.encode()
        ends = buffer_of(np.array([0, len(text)], np.int32))
        return pa.Array.from_buffers(kind, 1, [None, ends, pa.py_buffer(text)])[0]
    if number == BOOL and isinstance(value, bool):
        return to_arrow(np.array([value]))[0]
    if number == FLOAT64 and isinstance(value, float):
        return to_arrow(np.array([value], np.float64))[0]
    if number in (INT64, INSTANT, LENGTH) and type(value) is int and fits_int64(value):
        return to_arrow(np.array([value], np.int64)).view(kind)[0]
    return pa.scalar(value, kind)


def fits_int64(value: int) -> bool:
    """Whether a number fits 64 bits."""
    return -(2**63) <= value < 2**63


@lru_cache(maxsize=256)
def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows; it is slow to make for thousands of columns."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)


def packed(values: Bools) -> pa.Buffer:
    """Return booleans as bits."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def buffer_of(values: npt.NDArray[Any]) -> pa.Buffer:
    """Return the bytes of an array, without a copy if it is contiguous."""
    return pa.py_buffer(np.ascontiguousarray(values))
