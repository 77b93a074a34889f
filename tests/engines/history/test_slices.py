"""Cutting a run in time changes nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.engines.explain.placement import describe_spark, describe_state, undivided
from eventide.engines.history import replay as history
from eventide.engines.history.slices import Halo, Slice, halo_of, slices_of
from eventide.engines.partitioning import bucket_keys
from eventide.instants import TimeRange
from eventide.lang.sql import plan_sql
from eventide.plan.expressions import Column
from eventide.schema import STRING, Schema
from eventide.store import TableSource

SCHEMA = Schema.of({"car": "string", "lane": "int64", "speed": "float64"})

QUERIES = [
    "SELECT ts, car FROM cars WHERE speed > 2",
    "SELECT car, window_start, AVG(speed) a, COUNT(*) n FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '7 us')",
    "SELECT window_end, SUM(speed) s, FIRST(lane) f FROM cars "
    "GROUP BY HOP(ts, INTERVAL '3 us', INTERVAL '8 us')",
    "SELECT window_end, SUM(speed) s FROM cars GROUP BY HOP(ts, INTERVAL '9 us', INTERVAL '4 us')",
    "SELECT ts, _seq, SUM(speed) OVER (PARTITION BY car ORDER BY ts "
    "RANGE BETWEEN INTERVAL '6 us' PRECEDING AND CURRENT ROW) s FROM cars",
    "SELECT ts, _seq, MAX(speed) OVER (PARTITION BY car ORDER BY ts, _seq "
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) m, COUNT(*) OVER (ORDER BY ts "
    "RANGE BETWEEN INTERVAL '2 us' PRECEDING AND CURRENT ROW) n FROM cars",
    "SELECT ts, _seq, SUM(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN INTERVAL '3 us' "
    "PRECEDING AND CURRENT ROW) s, COUNT(*) OVER (PARTITION BY car, lane ORDER BY ts "
    "RANGE BETWEEN INTERVAL '5 us' PRECEDING AND CURRENT ROW) n FROM cars "
    "WHERE ts >= TIMESTAMP '1970-01-01 00:00:00.000010'",
    "SELECT car, window_start, SUM(speed) s FROM cars GROUP BY car, HOP(ROWS, 2, 3)",
]

events = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-40, 80),
            "car": st.sampled_from(["a", "b", None]),
            "lane": st.sampled_from([1, 2]),
            "speed": st.none() | st.integers(0, 9).map(float),
        }
    ),
    max_size=40,
)


def source_of(rows: list[dict[str, Any]]) -> TableSource:
    numbered = [{**row, "_seq": number} for number, row in enumerate(rows)]
    return TableSource("cars", SCHEMA, pa.Table.from_pylist(numbered, schema=SCHEMA.arrow))


@pytest.mark.parametrize("text", QUERIES)
@settings(deadline=None, max_examples=60)
@given(rows=events, target=st.integers(1, 20))
def test_slices_together_are_the_whole(text: str, rows: list[dict[str, Any]], target: int) -> None:
    source, plan = source_of(rows), plan_sql(text, {"cars": SCHEMA})
    scan = build_tree(plan).scan
    cut = [
        row
        for part in slices_of(plan, scan, source, target)
        for batch in history.run_slice(plan, source, part)
        for row in batch.to_pylist()
    ]
    whole = Slice(TimeRange(), scan.time_range, source.row_count)
    together = [
        row for batch in history.run_slice(plan, source, whole) for row in batch.to_pylist()
    ]
    assert sorted(map(repr, cut)) == sorted(map(repr, together))


@given(rows=events, target=st.integers(1, 20))
def test_slices_own_all_of_time_once(rows: list[dict[str, Any]], target: int) -> None:
    source, plan = source_of(rows), plan_sql(QUERIES[2], {"cars": SCHEMA})
    slices = slices_of(plan, build_tree(plan).scan, source, target)
    assert slices[0].owned.start_us == TimeRange().start_us
    assert slices[-1].owned.end_us == TimeRange().end_us
    for one, other in pairwise(slices):
        assert one.owned.end_us == other.owned.start_us


@pytest.mark.parametrize(
    ("query", "halo"),
    [
        (0, Halo()),
        (1, Halo(0, 0, 7)),
        (2, Halo(0, 5, 3)),
        (3, Halo(0, 0, 9)),
        (4, Halo(6)),
        (5, None),
        (6, Halo(8)),
        (7, None),
    ],
)
def test_halos(query: int, halo: Halo | None) -> None:
    assert halo_of(plan_sql(QUERIES[query], {"cars": SCHEMA})) == halo


@pytest.mark.parametrize(
    ("query", "keys"), [(0, ()), (1, ("car",)), (2, ()), (5, ()), (6, ("car",)), (7, ("car",))]
)
def test_rows_are_spread_by_the_keys_that_all_operators_share(
    query: int, keys: tuple[str, ...]
) -> None:
    found = bucket_keys(plan_sql(QUERIES[query], {"cars": SCHEMA}))
    assert found == ((tuple(Column(key, STRING) for key in keys),) if keys else None)


def test_a_frame_above_another_sees_the_events_of_the_halo() -> None:
    rows = [{"ts": ts, "car": "a", "lane": 1, "speed": 1.0} for ts in range(100)]
    source, plan = source_of(rows), plan_sql(QUERIES[6], {"cars": SCHEMA})
    slices = slices_of(plan, build_tree(plan).scan, source, 10)
    assert len(slices) > 2
    counts = {
        row["ts"]: row["n"]
        for part in slices
        for batch in history.run_slice(plan, source, part)
        for row in batch.set_column(0, "ts", batch.column("ts").cast(pa.int64())).to_pylist()
    }
    assert counts == {ts: min(ts - 9, 6) for ts in range(10, 100)}


def test_windows_by_count_are_not_cut_in_time_and_say_so() -> None:
    plan = plan_sql(QUERIES[7], {"cars": SCHEMA})
    assert undivided(plan) == "in one slice, for the rows of a window are counted from the first"
    assert describe_state(plan).startswith("remembering how many events came, and one partial")
    assert "keeping its own car" in describe_spark(plan, frozenset(), cores=2)
    assert "shuffled once by car" in describe_spark(plan, frozenset({"cars"}), cores=2)
