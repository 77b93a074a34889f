"""Rows of partial results, found by number: most are numbers, which stand in arrays that grow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.arrays import to_arrow, to_numpy
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.growing import longer
from eventide.operators.standing.row_log import RowLog


class NumberLog:
    """A column of numbers or instants, with nulls or without."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.stored = pa.int64() if pa.types.is_temporal(kind) else kind
        self.values: npt.NDArray[np.generic] = np.zeros(16, self.stored.to_pandas_dtype())
        self.valid: Bools | None = None

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.values.nbytes + (0 if self.valid is None else self.valid.nbytes)

    def append(self, column: pa.Array, end: int) -> None:
        """Add values behind the first `end`."""
        more = end + len(column)
        self.values = longer(self.values, more)
        if column.null_count and self.valid is None:
            self.valid = np.ones(len(self.values), np.bool_)
        if self.valid is not None:
            self.valid = longer(self.valid, more)
            self.valid[end:more] = to_numpy(column.is_valid())
        # Below a null is any number.
        plain = column if self.kind == self.stored else column.view(self.stored)
        self.values[end:more] = to_numpy(plain)

    def take(self, numbers: Int64s) -> pa.Array:
        """Return the values at some places."""
        valid = None if self.valid is None else self.valid[numbers]
        found = to_arrow(self.values[numbers], valid)
        return found if self.kind == self.stored else found.view(self.kind)


class OtherLog:
    """A column of anything else; nothing is kept as long as all of it is null."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.log = RowLog.empty(pa.schema([("value", kind)]))

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.log.nbytes

    def append(self, column: pa.Array, end: int) -> None:
        """Add values behind the first `end`."""
        missing = end - self.log.end
        if missing and column.null_count < len(column):
            self.log = self.log.append(self.rows(pa.nulls(missing, self.kind)))
        if self.log.end == end and (end or column.null_count < len(column)):
            self.log = self.log.append(self.rows(column))

    def rows(self, column: pa.Array) -> pa.RecordBatch:
        """Return a column as rows."""
        return pa.RecordBatch.from_arrays([column], schema=self.log.schema)

    def take(self, numbers: Int64s) -> pa.Array:
        """Return the values at some places."""
        if not self.log.end:
            return pa.nulls(len(numbers), self.kind)
        return self.log.take(numbers).column(0)


class PartialLog:
    """Rows numbered in the order in which they come."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.end = 0
        """How many rows there are."""
        self.columns = [
            NumberLog(kind) if is_number(kind) else OtherLog(kind) for kind in schema.types
        ]

    @property
    def nbytes(self) -> int:
        """How many bytes the rows take."""
        return sum(column.nbytes for column in self.columns)

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows behind the others."""
        for log, column in zip(self.columns, rows.columns, strict=True):
            log.append(column, self.end)
        self.end += rows.num_rows

    def take(self, numbers: Int64s) -> pa.RecordBatch:
        """Return the rows with these numbers, in that order."""
        arrays = [column.take(numbers) for column in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type stand in an array."""
    instant = pa.types.is_temporal(kind) and kind.bit_width == np.iinfo(np.int64).bits
    return bool(kind in (pa.int64(), pa.float64()) or instant)
