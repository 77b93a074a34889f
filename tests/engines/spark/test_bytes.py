"""Blocks on Spark are cut by bytes as well: a bucket may get more than a column holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.buckets import to_bytes
from eventide.engines.live.engine import LiveEngine
from eventide.engines.spark import spread as spread_module
from eventide.engines.spark import stream
from eventide.engines.spark.spread import Spread
from eventide.engines.spark.stream import BucketEvents, Going, StreamProcessor
from eventide.ingest.ordering import times
from eventide.lang.sql import plan_sql
from eventide.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = Schema.of({"car": "string", "speed": "float64", "note": "string"})
PATTERN = """
    SELECT * FROM cars MATCH_RECOGNIZE (
      PARTITION BY car ORDER BY ts MEASURES A.note AS a, LAST(B.note) AS b, COUNT(*) AS n
      PATTERN (A B+) DEFINE B AS speed > PREV(speed))
"""
FRAMES = """
    SELECT ts, car, note, SUM(speed) OVER (
      PARTITION BY car ORDER BY ts RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT ROW
    ) AS total FROM cars
"""
TEXTS = [PATTERN, FRAMES]


def events(rows: int, length: int) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "ts": pa.array(rng.permutation(rows) * 1_000_000, pa.timestamp("us")),
            "car": pa.array([f"c{number % 3}" for number in range(rows)]),
            "speed": pa.array(rng.random(rows)),
            "note": pa.array([f"{number}".ljust(length, "·") for number in range(rows)]),
        }
    )


def ordered(rows: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("text", TEXTS)
def test_a_bucket_in_many_blocks_answers_the_same(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(spread_module, "BLOCK_BYTES", 3_000)
    table = events(400, 100)
    numbered = table.append_column("_seq", pa.array(range(400), pa.int64()))
    spread = Spread.of(plan_sql(text, {"cars": SCHEMA}), 1)
    rows = numbered.select(spread.columns([0])).to_batches(max_chunksize=50)
    packed = list(spread.pack(iter(rows), (0,), dict(enumerate(spread.periods(None)))))
    found = [row for batch in spread.unpack(iter(packed)) for row in batch.to_pylist()]
    assert ordered(found) == ordered(ev.sql(text, cars=table).to_arrow().to_pylist())


def test_a_window_in_many_blocks_answers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_module, "BLOCK_BYTES", 3_000)
    text = "SELECT car, note FROM cars [RANGE 100 SECONDS]"
    table = events(400, 100)
    numbered = table.append_column("_seq", pa.array(range(400), pa.int64()))
    plan = plan_sql(text, {"cars": SCHEMA})
    spread = Spread.of(plan, 1)
    rows = numbered.select(spread.columns([0])).to_batches(max_chunksize=50)
    packed = spread.pack(iter(rows), (0,), dict(enumerate(spread.periods(None))))
    found = [row for batch in spread.unpack(packed) for row in batch.to_pylist()]
    assert ordered(found) == ordered(ev.sql(text, cars=table).to_arrow().to_pylist())


@pytest.mark.parametrize("is_numbered", [True, False])
@pytest.mark.parametrize("most_bytes", [1, 3_000, 10**9])
def test_a_micro_batch_in_many_blocks_is_one_arrival(
    monkeypatch: pytest.MonkeyPatch, is_numbered: bool, most_bytes: int
) -> None:
    """Whatever the blocks, the same results and the same late events."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", most_bytes)
    plan, catalog = plan_sql(FRAMES, {"cars": SCHEMA}), {"cars": SCHEMA}
    engine = LiveEngine.of(plan, catalog, 20_000_000)
    unnumbered = frozenset[str]() if is_numbered else frozenset({"cars"})
    processor = StreamProcessor(plan, catalog, Going(20_000_000), 1, unnumbered)
    table = events(300, 50).append_column("_seq", pa.array(range(300), pa.int64()))
    rows = table.select(engine.feed_schema("cars").names).to_batches(max_chunksize=10)
    state, results, late = processor.initial_state(), [], 0
    direct, expected, expected_late = engine.initial_state(), [], 0
    for batches in (rows[:9], rows[9:13], rows[13:13], rows[13:]):
        newest = max([0, *(int(times(batch).max()) for batch in batches)])
        blocks = {0: [to_bytes(each) for each in batches]} if batches else {}
        state, came, missed = processor.push(state, BucketEvents(blocks, {0: newest}, {}))
        results += [row for batch in came for row in batch.to_pylist()]
        late += missed
        if batches:
            direct, arrival = engine.push(direct, pa.concat_batches(batches), newest)
            expected += arrival.rows.to_pylist()
            expected_late += sum(each.num_rows for each in arrival.late.values())
    assert late == expected_late > 0
    assert results == expected
    assert state.arrived == (300,)


def test_patterns_over_long_texts_on_spark(spark: SparkSession) -> None:
    table = events(60, 1_000_000)
    text = PATTERN.replace("A.note AS a, LAST(B.note) AS b", "length(LAST(B.note)) AS b")
    found = ev.spark(spark).sql(text, cars=spark.createDataFrame(table)).toArrow().to_pylist()
    assert ordered(found) == ordered(ev.sql(text, cars=table).to_arrow().to_pylist())
