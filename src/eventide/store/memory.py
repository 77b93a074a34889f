"""An Arrow table as an event source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.errors import SchemaError
from eventide.instants import ALL_TIME, TimeRange
from eventide.kernels.compiled import frozen
from eventide.kernels.ordering import ascends, sorting_order
from eventide.schema import SEQ, TS, Schema
from eventide.store.order import Int64s, int64_view
from eventide.store.source import (
    MOST_SLICES,
    NO_TIME,
    TimeSlice,
    Where,
)
from eventide.threads import in_threads

SMALL_CHUNK_ROWS = 1 << 18
SLICE_ROWS = 1 << 20
"""More than the store reads at once: slices of a table are not copied, unless they are joined."""


class TableSource:
    """Events held in memory. The table has the schema's columns; `_seq` may be left out.

    Without `_seq`, arrival order is the order of the rows, which are numbered when a scan asks for
    it. A table in order of (ts, _seq) is used as it is, and scans are slices of it; any other is
    sorted once.

    >>> table = pa.table({"ts": pa.array([20, 10], pa.timestamp("us")), "car": ["b", "a"]})
    >>> source = TableSource("cars", Schema.of({"car": "string"}), table)
    >>> next(source.scan(["_seq", "car"])).to_pydict()
    {'_seq': [1, 0], 'car': ['a', 'b']}
    """

    __slots__ = ("name", "schema", "table")

    def __init__(self, name: str, schema: Schema, table: pa.Table) -> None:
        self.name = name
        self.schema = schema
        self.table = in_order(checked(schema, table))

    def __repr__(self) -> str:
        return f"<TableSource {self.name}: {self.row_count:,} events>"

    @property
    def row_count(self) -> int:
        """How many events there are."""
        rows: int = self.table.num_rows
        return rows

    @property
    def ts(self) -> Int64s:
        """The events' times, ascending."""
        return int64_view(self.table.column(TS))

    @property
    def time_range(self) -> TimeRange:
        """[first ts, last ts + 1), or an empty range if there are no events."""
        if not self.row_count:
            return NO_TIME
        return TimeRange(int(self.ts[0]), int(self.ts[-1]) + 1)

    def scan(
        self,
        columns: Sequence[str],
        time_range: TimeRange = ALL_TIME,
        where: Where | None = None,  # noqa: ARG002 - a table has no index to skip rows by
    ) -> Iterator[pa.RecordBatch]:
        """Yield the events of a time range in order of (ts, _seq), in batches, none empty."""
        self.schema.check_scanned(columns)
        start, end = self.rows_in(time_range)
        part = self.table.slice(start, max(0, end - start))
        if SEQ in columns and SEQ not in part.column_names:
            part = part.append_column(SEQ, to_arrow(np.arange(start, start + part.num_rows)))
        part = part.select(list(columns))
        return (batch for batch in part.to_batches(max_chunksize=SLICE_ROWS) if batch.num_rows)

    def slices(self, time_range: TimeRange, target_rows: int) -> list[TimeSlice]:
        """Cut a time range into disjoint, ordered slices of about `target_rows` rows each."""
        start, end = self.rows_in(time_range)
        if start >= end:
            return []
        covered = time_range.intersect(self.time_range)
        ts = self.ts
        step = max(1, target_rows, (end - start) // MOST_SLICES)
        inner = {int(ts[row]) for row in range(start, end, step)}
        cuts = sorted({covered.start_us, covered.end_us} | inner)
        rows = np.searchsorted(ts, cuts)
        return [
            TimeSlice(TimeRange(begin, finish), int(after - before))
            for begin, finish, before, after in zip(cuts, cuts[1:], rows, rows[1:], strict=False)
        ]

    def rows_in(self, time_range: TimeRange) -> tuple[int, int]:
        """Return the first row in a time range, and the first row after it."""
        start, end = np.searchsorted(self.ts, [time_range.start_us, time_range.end_us])
        return int(start), int(end)


def checked(schema: Schema, table: pa.Table) -> pa.Table:
    """Return the columns in the schema's order, `_seq` only if it is there; refuse wrong ones."""
    expected = schema.arrow
    numbered = SEQ in table.column_names
    names = [name for name in expected.names if numbered or name != SEQ]
    if sorted(table.column_names) != sorted(names):
        message = f"the table has columns {', '.join(table.column_names)}"
        raise SchemaError(message, hint=f"the stream has {', '.join(expected.names)}")
    table = table.select(names)
    for field in table.schema:
        wanted = expected.field(field.name).type
        if field.type != wanted:
            message = f"column {field.name!r} has type {field.type}, not {wanted}"
            raise SchemaError(message, hint="convert it with ingest.coerce.to_events")
    if table.column(TS).null_count or (numbered and table.column(SEQ).null_count):
        message = f"{TS} or {SEQ} is null in some row"
        raise SchemaError(message, hint="every event has a time; drop those rows")
    return joined(table)


def joined(table: pa.Table) -> pa.Table:
    """Return the table in chunks large enough to scan well, `ts` and `_seq` in one chunk."""
    chunks = max(column.num_chunks for column in table.columns)
    if chunks > 1 and table.num_rows < chunks * SMALL_CHUNK_ROWS:
        return table.combine_chunks()
    for index, name in enumerate(table.column_names):
        if name in (TS, SEQ) and table.column(index).num_chunks != 1:
            table = table.set_column(index, name, table.column(index).combine_chunks())
    return table


def in_order(table: pa.Table) -> pa.Table:
    """Return the table sorted by (ts, _seq); the same object if it already is.

    A table without `_seq` that is in order does not get one: the numbers of its rows are known.
    """
    numbered = SEQ in table.column_names
    numbers = int64_view(table.column(SEQ)) if numbered else None
    ts = int64_view(table.column(TS))
    if numbers is None and ascends_in_threads(ts):
        return table
    order = sorting_order(ts, numbers)
    if order is None:
        return table
    rows = to_arrow(order)
    table = table.take(rows)
    return table if numbered else table.append_column(SEQ, rows)


def ascends_in_threads(ts: Int64s) -> bool:
    """Whether times ascend; to look at many takes as long as to read them, in one thread."""
    earlier, later = frozen(ts[:-1]), frozen(ts[1:])
    parts = min(os.cpu_count() or 1, len(later) // SLICE_ROWS)
    if parts < 2:
        return ascends(earlier, later)
    bounds = pairwise(np.linspace(0, len(later), parts + 1).astype(int).tolist())
    return all(in_threads(lambda part: ascends(*within(part, earlier, later)), bounds))


def within(part: tuple[int, int], earlier: Int64s, later: Int64s) -> tuple[Int64s, Int64s]:
    """Return a part of two arrays."""
    first, last = part
    return earlier[first:last], later[first:last]
