"""Events in order as they arrive, and the late ones found, for any batches."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.batch import END_OF_TIME_US
from eventide.ingest.ordering import Ordering, in_order, in_order_by_block, row_bytes
from eventide.operators.columns import BLOCK_BYTES, in_blocks

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("_seq", pa.int64())])


def arrivals(times: list[int], first_seq: int = 0) -> pa.RecordBatch:
    rows = [{"ts": ts, "_seq": first_seq + i} for i, ts in enumerate(times)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def times_and_numbers(rows: pa.RecordBatch) -> list[tuple[int, int]]:
    times = rows.column("ts").cast(pa.int64()).to_pylist()
    return list(zip(times, rows.column("_seq").to_pylist(), strict=True))


def test_events_wait_for_the_watermark() -> None:
    #  arrives   a@10 c@30 b@20 | d@27 e@40 | f@24     lateness 5
    #  watermark             25 |        35 |   35
    ordering = Ordering(SCHEMA, 5)
    state, first, _ = ordering.step(ordering.initial_state(), arrivals([10, 30, 20]))
    assert (times_and_numbers(first.rows), first.watermark_us) == ([(10, 0), (20, 2)], 25)
    state, second, late = ordering.step(state, arrivals([27, 40], 3))
    assert (times_and_numbers(second.rows), late.num_rows) == ([(27, 3), (30, 1)], 0)
    state, third, late = ordering.step(state, arrivals([24], 5))
    assert (third.rows.num_rows, times_and_numbers(late)) == (0, [(24, 5)])
    _, last = ordering.finish(state)
    assert (times_and_numbers(last.rows), last.watermark_us) == ([(40, 4)], END_OF_TIME_US)


def test_an_event_at_the_watermark_is_not_late() -> None:
    ordering = Ordering(SCHEMA, 5)
    state, _, _ = ordering.step(ordering.initial_state(), arrivals([30]))
    _, _, late = ordering.step(state, arrivals([25, 24], 1))
    assert times_and_numbers(late) == [(24, 2)]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.integers(-20, 40), max_size=6), max_size=8), st.integers(0, 30))
def test_nothing_is_lost_and_all_is_in_order(batches: list[list[int]], lateness: int) -> None:
    ordering = Ordering(SCHEMA, lateness)
    state, number = ordering.initial_state(), 0
    left: list[tuple[int, int]] = []
    expected_late: list[tuple[int, int]] = []
    found_late: list[tuple[int, int]] = []
    newest: int | None = None
    for batch in batches:
        numbers = range(number, number + len(batch))
        if newest is not None:
            bound = newest - lateness
            expected_late += [(t, n) for t, n in zip(batch, numbers, strict=True) if t < bound]
        state, ready, late = ordering.step(state, arrivals(batch, number))
        newest = max([*batch, *([] if newest is None else [newest])], default=None)
        assert all(ts < ready.watermark_us for ts, _ in times_and_numbers(ready.rows))
        left += times_and_numbers(ready.rows)
        found_late += times_and_numbers(late)
        number += len(batch)
    left += times_and_numbers(ordering.finish(state)[1].rows)
    everything = [(t, n) for n, t in enumerate(t for batch in batches for t in batch)]
    assert found_late == expected_late
    assert left == sorted(set(everything) - set(expected_late))


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
