"""The written form of the state of many windows: partials, slices, and the table of windows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.errors import StateError
from eventide.kernels.compiled import Int32s, Int64s
from eventide.operators.checking import (
    filled,
    require,
    require_ascending,
    require_instant,
    require_within,
)
from eventide.operators.sharing.slices import SliceRows
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.plan.meaning import digest_of
from eventide.plan.sharing.query_windows import QueryWindows
from eventide.schema import MAX_TS_US, MIN_TS_US

_SLICES = pa.schema([("time", pa.int64()), ("epoch", pa.int64())])
_DUE = pa.schema([("number", pa.int64()), ("due", pa.int64())])
_TABLE = pa.schema(
    [*((name, pa.int64()) for name in ("number", "size", "slide", "since")), ("cover", pa.string())]
)


def write_windows(
    name: str,
    slices: SliceRows,
    cells: tuple[list[pa.Array], Int32s],
    table: QueryWindows,
    facts: dict[str, int],
    due: Mapping[int, int],
) -> bytes:
    """Write slices with the keys and the synopses of their rows, and the windows of queries.

    A synopsis is written as its place among the digests of their conditions. `due` is what is next
    for queries of which the clock does not say it.
    """
    keys, synopses = cells
    digests = digests_of(table)
    ranks = {digest: rank for rank, digest in enumerate(sorted(digests.values()))}
    rank_of = np.zeros(max(digests, default=0) + 1, np.int64)
    for number, digest in digests.items():
        rank_of[number] = ranks[digest]
    of_row = np.repeat(np.arange(len(slices.times)), np.diff(slices.starts))
    names = [*(f"key{i}" for i in range(len(keys))), "synopsis", "slice"]
    numbers = [to_arrow(rank_of[synopses]), to_arrow(of_row)]
    rows = pa.RecordBatch.from_arrays(
        [*keys, *numbers, *slices.partials.columns], [*names, *slices.partials.schema.names]
    )
    bounds = [to_arrow(slices.times), to_arrow(slices.epochs)]
    return join_parts(
        [
            write_rows(name, rows, facts),
            write_rows(name, pa.RecordBatch.from_arrays(bounds, schema=_SLICES), {}),
            write_rows(name, table_rows(table, digests), {}),
            write_rows(name, due_rows(due), {}),
        ]
    )


def digests_of(table: QueryWindows) -> dict[int, str]:
    """Return a short name of what each synopsis counts, by its number."""
    return {number: digest_of(each) for number, each in table.synopses.conditions.items()}


def due_rows(due: Mapping[int, int]) -> pa.RecordBatch:
    """Return what is next for some queries as rows."""
    columns = [pa.array(each, pa.int64()) for each in (list(due), list(due.values()))]
    return pa.RecordBatch.from_arrays(columns, schema=_DUE)


def table_rows(table: QueryWindows, digests: Mapping[int, str]) -> pa.RecordBatch:
    """Return the windows of queries as rows."""
    rows = table.rows
    columns = [
        [row.number for row in rows],
        [row.window.size_us for row in rows],
        [row.window.slide_us for row in rows],
        [row.since_seq for row in rows],
        [",".join(sorted(digests[each] for each in row.cover)) for row in rows],
    ]
    arrays = [pa.array(each, kind) for each, kind in zip(columns, _TABLE.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_TABLE)


def read_windows(
    name: str, written: bytes, schemas: tuple[pa.Schema, pa.Schema], windows: QueryWindows
) -> tuple[SliceRows, tuple[list[pa.Array], Int64s], dict[str, int], dict[int, int]]:
    """Read slices, the keys and the synopses of their rows, facts, and what is next for queries.

    The windows have to be the same as then.
    """
    keys, partials = schemas
    parts = parts_of(name, written, 4)
    numbers = [pa.field(each, pa.int64()) for each in ("synopsis", "slice")]
    schema = pa.schema([*keys, *numbers, *partials])
    rows, facts = read_rows(name, parts[0], schema)
    bounds, _ = read_rows(name, parts[1], _SLICES)
    table, _ = read_rows(name, parts[2], _TABLE)
    digests = digests_of(windows)
    if not table.equals(table_rows(windows, digests)):
        message = f"the state is of {table.num_rows} queries with other windows than these"
        raise StateError(message, hint="add the queries as they were when it was written")
    times, epochs = (filled(bounds.column(each), "slices") for each in ("time", "epoch"))
    of_row = filled(rows.column("slice"), "numbers of slices")
    ranks = filled(rows.column("synopsis"), "numbers of synopses")
    require_ascending(times, "slices")
    require_within(times, MIN_TS_US, MAX_TS_US + 1, "slices")
    require_ascending(of_row, "numbers of slices")
    require_within(ranks, 0, len(digests), "numbers of synopses")
    starts = np.searchsorted(of_row, np.arange(len(times) + 1))
    require_within(of_row, 0, len(times), "numbers of slices")
    require((np.diff(starts) > 0).all(), "a slice without rows")
    require_instant(facts["closed_us"], "the last window that is closed")
    require_instant(facts["newest_us"], "the newest event")
    ordered = sorted(digests, key=digests.__getitem__)
    synopses = np.array(ordered, np.int64)[ranks]
    # Rows of a slice are in order of the numbers that synopses have here.
    order = np.lexsort((synopses, of_row))
    none = np.zeros(rows.num_rows, np.int32)
    rows = rows.take(to_arrow(order))
    columns = rows.columns
    inner = pa.RecordBatch.from_arrays(columns[len(keys) + 2 :], schema=partials)
    found = SliceRows(times, epochs, starts, none, inner)
    return found, (columns[: len(keys)], synopses[order]), facts, read_due(name, parts[3], windows)


def read_due(name: str, written: bytes, windows: QueryWindows) -> dict[int, int]:
    """Read what is next for queries: ends of windows of theirs."""
    rows, _ = read_rows(name, written, _DUE)
    numbers, due = (filled(rows.column(each), "what is next") for each in _DUE.names)
    require_within(due, MIN_TS_US, MAX_TS_US + 1, "what is next")
    require(all(number in windows for number in numbers.tolist()), "what is next of no query")
    slides = windows.slides[windows.places_of(numbers)]
    require(bool((due % slides == 1 % slides).all()), "refreshes that are due between two others")
    return dict(zip(numbers.tolist(), due.tolist(), strict=True))
