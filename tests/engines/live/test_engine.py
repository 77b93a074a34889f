"""Events go through a query in order of time, and the late ones are found, for any batches."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.instants import END_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.schema import Schema

CATALOG = {"s": Schema.of({"x": "int64"})}
Events = list[tuple[int, int]]


def engine_of(lateness: int) -> LiveEngine:
    """A query whose results are the events themselves."""
    return LiveEngine.of(plan_sql("SELECT ts, _seq FROM s", CATALOG), CATALOG, lateness)


def times_and_numbers(rows: pa.RecordBatch) -> Events:
    times = rows.column("ts").cast(pa.int64()).to_pylist()
    return list(zip(times, rows.column("_seq").to_pylist(), strict=True))


def pushed(
    engine: LiveEngine, state: LiveState, times: list[int], first: int = 0
) -> tuple[LiveState, Events, Events, int]:
    """Push events; return also those that leave, the late ones, and the watermark."""
    rows = [{"ts": ts, "_seq": first + i} for i, ts in enumerate(times)]
    schema = engine.feed_schema("s")
    state, reported = engine.push(state, pa.RecordBatch.from_pylist(rows, schema=schema))
    late = [each for rows in reported.late.values() for each in times_and_numbers(rows)]
    return state, times_and_numbers(reported.rows), late, reported.watermark_us


def test_events_wait_for_the_watermark() -> None:
    #  arrives   a@10 c@30 b@20 | d@27 e@40 | f@24     lateness 5
    #  watermark             25 |        35 |   35
    engine = engine_of(5)
    state, left, _, watermark_us = pushed(engine, engine.initial_state(), [10, 30, 20])
    assert (left, watermark_us) == ([(10, 0), (20, 2)], 25)
    state, left, late, _ = pushed(engine, state, [27, 40], 3)
    assert (left, late) == ([(27, 3), (30, 1)], [])
    state, left, late, _ = pushed(engine, state, [24], 5)
    assert (left, late) == ([], [(24, 5)])
    _, last = engine.finish(state)
    assert (times_and_numbers(last.rows), last.watermark_us) == ([(40, 4)], END_OF_TIME_US)


def test_an_event_at_the_watermark_is_not_late() -> None:
    engine = engine_of(5)
    state, _, _, _ = pushed(engine, engine.initial_state(), [30])
    _, _, late, _ = pushed(engine, state, [25, 24], 1)
    assert late == [(24, 2)]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.integers(-20, 40), max_size=6), max_size=8), st.integers(0, 30))
def test_nothing_is_lost_and_all_is_in_order(batches: list[list[int]], lateness: int) -> None:
    engine = engine_of(lateness)
    state, number = engine.initial_state(), 0
    left: Events = []
    expected_late: Events = []
    found_late: Events = []
    newest: int | None = None
    for batch in batches:
        numbers = range(number, number + len(batch))
        if newest is not None:
            bound = newest - lateness
            expected_late += [(t, n) for t, n in zip(batch, numbers, strict=True) if t < bound]
        state, ready, late, watermark_us = pushed(engine, state, batch, number)
        newest = max([*batch, *([] if newest is None else [newest])], default=None)
        assert all(ts < watermark_us for ts, _ in ready)
        left += ready
        found_late += late
        number += len(batch)
    left += times_and_numbers(engine.finish(state)[1].rows)
    everything = [(t, n) for n, t in enumerate(t for batch in batches for t in batch)]
    assert found_late == expected_late
    assert left == sorted(set(everything) - set(expected_late))
