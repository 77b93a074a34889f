"""Rows in order of time, in blocks of some size."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.ingest.ordering import in_order, in_order_by_block, row_bytes
from eventide.operators.columns import BLOCK_BYTES, in_blocks

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("_seq", pa.int64())])


def arrivals(times: list[int], first_seq: int = 0) -> pa.RecordBatch:
    rows = [{"ts": ts, "_seq": first_seq + i} for i, ts in enumerate(times)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def times_and_numbers(rows: pa.RecordBatch) -> list[tuple[int, int]]:
    times = rows.column("ts").cast(pa.int64()).to_pylist()
    return list(zip(times, rows.column("_seq").to_pylist(), strict=True))


NOTED = pa.schema([*SCHEMA, ("note", pa.string())])


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=8), max_size=6),
    st.integers(1, 200),
)
def test_blocks_in_order_are_the_rows_in_order(
    parts: list[list[tuple[int, int]]], most_bytes: int
) -> None:
    number, batches = 0, []
    for part in parts:
        rows = [
            {"ts": ts, "_seq": number + place, "note": None if length == 7 else "x" * length}
            for place, (ts, length) in enumerate(part)
        ]
        number += len(part)
        batches.append(pa.RecordBatch.from_pylist(rows, schema=NOTED))
    blocks = list(in_order_by_block(batches, most_bytes))
    expected = in_order(pa.concat_batches(batches)) if number else None
    assert all(block.num_rows for block in blocks)
    assert [row for block in blocks for row in block.to_pylist()] == (
        expected.to_pylist() if expected else []
    )
    # Only a row that is longer by itself makes a block longer.
    for block in blocks:
        assert block.num_rows == 1 or row_bytes(block)[:-1].sum() <= 2 * most_bytes


def test_more_text_than_a_column_holds_is_put_in_order() -> None:
    """Four rows of 600 MB: one long text in memory, seen through four batches."""
    text = pa.array(["x" * 600_000_000])
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array([ts], pa.timestamp("us")), pa.array([place]), text], schema=NOTED
        )
        for place, ts in enumerate([3, 1, 2, 0])
    ]
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        pa.concat_batches(batches)
    blocks = list(in_order_by_block(batches, BLOCK_BYTES))
    assert [times_and_numbers(block) for block in blocks] == [
        [(0, 3)],
        [(1, 1)],
        [(2, 2)],
        [(3, 0)],
    ]
    assert [block.num_rows for block in in_blocks(batches, 1_000_000)] == [1, 1, 1, 1]
