"""The written form of the state of many windows: partials, slices, and the table of windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.errors import StateError
from eventide.operators.checking import (
    filled,
    require,
    require_ascending,
    require_instant,
    require_within,
)
from eventide.operators.sharing.slices import SliceRows
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.plan.sharing.query_windows import WindowRow
from eventide.schema import MAX_TS_US, MIN_TS_US

_SLICES = pa.schema([("time", pa.int64()), ("epoch", pa.int64())])
_TABLE = pa.schema([(name, pa.int64()) for name in ("number", "size", "slide", "since")])


def write_windows(
    name: str,
    slices: SliceRows,
    keys: list[pa.Array],
    windows: Sequence[WindowRow],
    facts: dict[str, int],
) -> bytes:
    """Write slices with the keys of their rows, and the windows of queries."""
    of_row = np.repeat(np.arange(len(slices.times)), np.diff(slices.starts))
    names = [*(f"key{i}" for i in range(len(keys))), "slice", *slices.partials.schema.names]
    rows = pa.RecordBatch.from_arrays([*keys, to_arrow(of_row), *slices.partials.columns], names)
    bounds = [to_arrow(slices.times), to_arrow(slices.epochs)]
    return join_parts(
        [
            write_rows(name, rows, facts),
            write_rows(name, pa.RecordBatch.from_arrays(bounds, schema=_SLICES), {}),
            write_rows(name, table_rows(windows), {}),
        ]
    )


def table_rows(windows: Sequence[WindowRow]) -> pa.RecordBatch:
    """Return the windows of queries as rows."""
    columns = [
        [row.number for row in windows],
        [row.window.size_us for row in windows],
        [row.window.slide_us for row in windows],
        [row.since_seq for row in windows],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(each, pa.int64()) for each in columns], schema=_TABLE
    )


def read_windows(
    name: str,
    written: bytes,
    schemas: tuple[pa.Schema, pa.Schema],
    windows: Sequence[WindowRow],
) -> tuple[SliceRows, list[pa.Array], dict[str, int]]:
    """Read slices, the keys of their rows, and facts; the windows have to be the same as then."""
    keys, partials = schemas
    parts = parts_of(name, written, 3)
    schema = pa.schema([*keys, pa.field("slice", pa.int64()), *partials])
    rows, facts = read_rows(name, parts[0], schema)
    bounds, _ = read_rows(name, parts[1], _SLICES)
    table, _ = read_rows(name, parts[2], _TABLE)
    if not table.equals(table_rows(windows)):
        message = f"the state is of {table.num_rows} queries with other windows than these"
        raise StateError(message, hint="add the queries as they were when it was written")
    times, epochs = (filled(bounds.column(each), "slices") for each in ("time", "epoch"))
    of_row = filled(rows.column("slice"), "numbers of slices")
    require_ascending(times, "slices")
    require_within(times, MIN_TS_US, MAX_TS_US + 1, "slices")
    require_ascending(of_row, "numbers of slices")
    starts = np.searchsorted(of_row, np.arange(len(times) + 1))
    require_within(of_row, 0, len(times), "numbers of slices")
    require((np.diff(starts) > 0).all(), "a slice without rows")
    require_instant(facts["closed_us"], "the last window that is closed")
    none = np.zeros(rows.num_rows, np.int32)
    columns = rows.columns
    inner = pa.RecordBatch.from_arrays(columns[len(keys) + 1 :], schema=partials)
    return SliceRows(times, epochs, starts, none, inner), columns[: len(keys)], facts
