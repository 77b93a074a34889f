"""Conditions that Spark evaluates before rows cross to Python never change an answer."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.build import build_tree
from eventide.engines.spark.prefilter import prefiltered, prefiltered_by_time
from eventide.engines.spark.types import schema_of
from eventide.lang.sql import plan_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SPEEDS = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, 50.0, 70.0, 1e300]
ROWS = [
    {
        "ts": datetime(2026, 3, 2) + timedelta(seconds=i),
        "car": [None, "a", "B", "ä", ""][i % 5],
        "lane": [None, 1, 2, -3][i % 4],
        "speed": SPEEDS[i % len(SPEEDS)],
        "lit": [None, True, False][i % 3],
    }
    for i in range(60)
]

# (condition, whether Spark is asked anything of it)
CONDITIONS = [
    ("speed > 50", True),
    ("speed >= 70 AND lane = 2", True),
    ("speed = 0", True),
    ("speed < 1e300 AND speed * 2 > 3", True),
    ("car = 'a'", True),
    ("car > 'a' AND lit = true", True),
    ("lane <= 1.5", False),
    ("speed > 50 OR lane = 1", False),
    ("NOT (speed > 50)", False),
    ("lane <> 1", False),
    ("speed IS NULL", False),
]
TIMES = [
    ("ts >= TIMESTAMP '2026-03-02 00:00:30'", True),
    ("ts < TIMESTAMP '2026-03-02 00:00:30' AND ts > TIMESTAMP '2026-03-02 00:00:03'", True),
]
KINDS = ["timestamp", "timestamp_ntz", "bigint"]
# Only conditions on time depend on the type of the time.
CASES = [
    *(("timestamp_ntz", *each) for each in CONDITIONS),
    *((kind, *each) for kind in KINDS for each in TIMES),
]


@pytest.fixture(scope="module")
def frame(spark: SparkSession, request: pytest.FixtureRequest) -> DataFrame:
    schema = "ts timestamp_ntz, car string, lane int, speed double, lit boolean"
    frame = spark.createDataFrame(ROWS, schema)
    # The session is in UTC, so the cast keeps the instant.
    kinds = {"bigint": "unix_micros(cast(ts AS timestamp))", "timestamp": "cast(ts AS timestamp)"}
    return frame.selectExpr(
        f"{kinds.get(request.param, 'ts')} AS ts", "car", "lane", "speed", "lit"
    )


@pytest.mark.parametrize(("frame", "condition", "asked"), CASES, indirect=["frame"])
def test_answers_are_the_same(frame: DataFrame, condition: str, asked: bool) -> None:
    text = f"SELECT ts, car, lane, speed FROM cars WHERE {condition}"
    answer = ev.spark(frame.sparkSession).sql(text, cars=frame).toArrow()
    bare = answer.column("ts").cast(pa.int64()).cast(pa.timestamp("us"))
    found = answer.set_column(0, "ts", bare).to_pylist()
    table = pa.Table.from_pylist(ROWS).set_column(
        0, "ts", pa.array([row["ts"] for row in ROWS], pa.timestamp("us"))
    )
    expected = ev.sql(text, cars=table).rows()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    plan = plan_sql(text, {"cars": schema_of(frame)})
    scanned = build_tree(plan).scan.time_range
    kept = prefiltered(prefiltered_by_time(frame, scanned), plan).count()
    assert (kept < len(ROWS)) == asked


def test_a_row_without_a_time_is_still_an_error(spark: SparkSession) -> None:
    frame = spark.sql("SELECT CAST(NULL AS BIGINT) AS ts, 1.0D AS speed")
    text = "SELECT speed FROM cars WHERE speed > 50 AND ts > TIMESTAMP '2026-01-01'"
    with pytest.raises(Exception, match="without a ts"):
        ev.spark(spark).sql(text, cars=frame).collect()
