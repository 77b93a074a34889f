"""Conversion between Arrow columns and the arrays of kernels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow, to_numpy, to_scalar
from eventide.kernels.compiled import Bools, Floats, Int64s, Numbers, frozen

ZERO, NAN = to_arrow(np.array([0.0, np.nan]))


def int64s(column: pa.Array) -> Int64s:
    """Return an integer, timestamp or boolean column as int64; a null becomes zero."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int64())
    return frozen(to_numpy(without_nulls(column, 0)))


def floats(column: pa.Array) -> Floats:
    """Return a numeric column as float64; a null becomes zero."""
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    return frozen(to_numpy(without_nulls(column, 0.0)))


def without_nulls(column: pa.Array, instead: float) -> pa.Array:
    """Return the column with nulls replaced, itself if it has none."""
    if column.null_count == 0:
        return column
    return pc.fill_null(column, to_scalar(instead, column.type))


def validity(column: pa.Array) -> Bools:
    """Return which rows are not null; empty if all are, as kernels take it."""
    if column.null_count == 0:
        return frozen(np.empty(0, np.bool_))
    return frozen(to_numpy(column.is_valid()))


def sort_keys(column: pa.Array) -> Numbers:
    """Return numbers that compare as the values of the column do; nulls get any number."""
    if pa.types.is_floating(column.type):
        return floats(column)
    if pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
        return int64s(column)
    if pa.types.is_boolean(column.type):
        return int64s(column)
    return int64s(pc.rank(column, tiebreaker="dense").cast(pa.int64()))


def decimal_halves(column: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the high and low 64 bits of a decimal128 column; a null becomes zero."""
    column = pc.fill_null(column, pa.scalar(0, column.type)) if column.null_count else column
    words = np.frombuffer(column.buffers()[1], np.int64)
    words = words[2 * column.offset : 2 * (column.offset + len(column))]
    return frozen(words[1::2]), frozen(words[0::2])


def decimal_column(high: Int64s, low: Int64s, valid: Bools, scale: int) -> pa.Array:
    """Build a decimal128(38, scale) column from its halves."""
    words = np.empty(2 * len(high), np.int64)
    words[1::2], words[0::2] = high, low
    bits = to_arrow(valid).buffers()[1]
    buffers = [bits, pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(high), buffers)


def numbers_column(values: Numbers, valid: Bools) -> pa.Array:
    """Build a column of numbers with nulls where `valid` says no."""
    return to_arrow(values, valid)


def list_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of lists without nulls: kernels take their values as they are."""
    return pa.list_(pa.field("item", kind, nullable=False))


def one_spelling(column: pa.Array) -> pa.Array:
    """Return floats with one zero and one NaN, so that no answer depends on which came first.

    NaNs may differ in bits that no comparison sees: one that was read differs from 0/0.
    """
    if not pa.types.is_floating(column.type):
        return column
    if not column.null_count:
        values = to_numpy(column)
        # The least of values with a NaN is NaN.
        has_nan = len(values) and np.isnan(values.min())
        if not has_nan and not ((values == 0.0) & np.signbit(values)).any():
            return column
    return pc.if_else(pc.is_nan(column), NAN, pc.add(column, ZERO))


def low_parts(column: pa.Array) -> Floats:
    """Return the low parts of sums; none if all are null, which is zero."""
    return floats(column) if column.null_count < len(column) else frozen(np.empty(0))
