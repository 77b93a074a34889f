"""Arrow tables as event sources: what is shared, and what is refused."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import SchemaError
from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import Schema
from eventide.store import TableSource, memory

SCHEMA = Schema.of({"speed": "float64"})


def sorted_table(rows: int) -> pa.Table:
    ts = pa.array(np.arange(rows), pa.timestamp("us"))
    return pa.table({"ts": ts, "speed": np.linspace(0.0, 1.0, rows)})


def test_a_sorted_table_is_not_copied() -> None:
    table = sorted_table(2_000_000)
    source = TableSource("cars", SCHEMA, table)
    before = pa.total_allocated_bytes()
    batches = list(source.scan(["speed"], TimeRange(10, 1_900_000)))
    assert pa.total_allocated_bytes() == before
    assert sum(batch.num_rows for batch in batches) == 1_899_990
    start = table.column("speed").chunk(0).buffers()[1].address
    assert batches[0].column(0).buffers()[1].address == start


@pytest.mark.parametrize("place", [None, 1, 4_095, 4_096, 4_097, 20_000, 39_999])
def test_one_time_that_is_out_of_order_is_found_wherever_it_is(place: int | None) -> None:
    ts = np.repeat(np.arange(20_000), 2)
    if place is not None:
        ts[place] = ts[place - 1] - 1
    with patch.object(memory, "SLICE_ROWS", 9_000):
        assert memory.ascends_in_threads(ts) == (place is None)
    assert memory.ascends_in_threads(ts) == (place is None)
    assert memory.ascends_in_threads(ts[:1])
    assert memory.ascends_in_threads(ts[:0])


def test_small_chunks_are_joined_once() -> None:
    table = pa.concat_tables([sorted_table(10).slice(row, 1) for row in range(10)])
    assert [batch.num_rows for batch in TableSource("cars", SCHEMA, table).scan(["speed"])] == [10]


def test_slices_count_rows_exactly() -> None:
    slices = TableSource("cars", SCHEMA, sorted_table(100)).slices(ALL_TIME, 30)
    assert [piece.rows for piece in slices] == [30, 30, 30, 10]
    assert TableSource("cars", SCHEMA, sorted_table(0)).slices(ALL_TIME, 30) == []


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(0, 10), st.integers(0, 10))
def test_rows_without_numbers_have_those_of_their_order(
    times: list[int], start: int, end: int
) -> None:
    ts = pa.array(times, pa.timestamp("us"))
    table = pa.table({"ts": ts, "speed": np.arange(len(times)) * 0.5})
    source = TableSource("cars", SCHEMA, table)
    found = [
        row
        for batch in source.scan(["_seq", "speed", "ts"], TimeRange(start, end))
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    naive = sorted((ts, number) for number, ts in enumerate(times) if start <= ts < end)
    assert [row[0] for row in found] == [number for _, number in naive]
    assert [row[1] for row in found] == [number * 0.5 for _, number in naive]
    batches = source.scan(["speed"], TimeRange(start, end))
    assert [x for batch in batches for x in batch.column(0).to_pylist()] == [r[1] for r in found]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"ts": pa.array([1], pa.timestamp("us"))}), "has columns ts"),
        (sorted_table(1).append_column("x", pa.array([1])), "has columns ts, speed, x"),
        (pa.table({"ts": [1], "speed": [1.0]}), "'ts' has type int64"),
        (
            pa.table({"ts": pa.array([None], pa.timestamp("us")), "speed": [1.0]}),
            "ts or _seq is null",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(table: pa.Table, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        TableSource("cars", SCHEMA, table)


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(SchemaError, match="no attribute 'sped'"):
        TableSource("cars", SCHEMA, sorted_table(1)).scan(["sped"])
