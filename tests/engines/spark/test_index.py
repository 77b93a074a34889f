"""On Spark, the driver reads the index and tasks replay only periods: the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.build import build_tree
from eventide.engines.history.choice import ways
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.replay import replay
from eventide.engines.history.weights import DEFAULTS
from eventide.lang.sql import plan_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 120_000

PERIODS = """SELECT * FROM s MATCH_RECOGNIZE (
    MEASURES FIRST(ts) AS since, PREV(FIRST(x)) AS before, NEXT(LAST(x)) AS behind
    PATTERN (A T* B) WITHIN INTERVAL '20' SECOND
    DEFINE A AS x < 0.002, B AS x > 0.99 AND x > PREV(x))"""
RISING = """SELECT * FROM s MATCH_RECOGNIZE (
    MEASURES FIRST(ts) AS since, LAST(ts) AS until
    PATTERN (A T* B) WITHIN INTERVAL '20' SECOND
    DEFINE A AS level BETWEEN 0.5 AND 0.51, B AS x > 0.9)"""
NOWHERE = PERIODS.replace("x < 0.002", "x < -1")
WINDOWS = """SELECT window_start, COUNT(*) AS n, MAX(x) AS top FROM s
    GROUP BY HOP(ts, INTERVAL '2' HOUR, INTERVAL '9' HOUR)"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index") / "db"
    stream = ev.open(folder).create_stream("s", {"x": "float64", "level": "float64"}, index=["x"])
    rng = np.random.default_rng(3)
    events = {
        "ts": pa.array(np.arange(ROWS) * 1_000_000).view(pa.timestamp("us")),
        "x": rng.random(ROWS),
        "level": np.arange(ROWS) / ROWS,
    }
    stream.append(pa.table(events))
    ev.open(folder).store.stream("s").flush()
    return folder


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "way"),
    [(PERIODS, "intervals"), (RISING, "map"), (NOWHERE, "map"), (WINDOWS, "index")],
    ids=["periods", "map", "nowhere", "windows"],
)
def test_spark_goes_through_the_index(
    spark: SparkSession, database: Path, text: str, way: str
) -> None:
    db = ev.open(database)
    plan = plan_sql(text, db.catalog())
    source = db.sources(plan)["s"]
    best = ways(plan, source, DEFAULTS).best
    assert best.name == way
    rows = [str(row) for batch in replay(plan, source) for row in batch.to_pylist()]
    assert bool(rows) == (text != NOWHERE)
    answer = ev.spark(spark, database).sql(text).toArrow()
    found = answer.cast(build_tree(plan).output_schema).to_pylist()
    assert sorted(map(str, found)) == sorted(rows)


def test_only_the_blocks_of_periods_are_read(database: Path) -> None:
    db = ev.open(database)
    plan = plan_sql(RISING, db.catalog())
    best = ways(plan, db.sources(plan)["s"], DEFAULTS).best
    assert isinstance(best, IntervalAccess)
    _, cost = best.run()
    assert 0 < cost.blocks < best.question.units.count / 2


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*), SUM(x) AS total, AVG(level) AS a, MIN(x) AS low, MAX(ts) AS t FROM s",
        "SELECT COUNT(*) AS n, MIN(ts) AS t FROM s WHERE ts >= TIMESTAMP '1970-01-01 00:01:00'",
        "SELECT COUNT(*) AS n, MIN(ts) AS t FROM s WHERE ts >= TIMESTAMP '2070-01-01'",
        "SELECT date_trunc('week', ts) AS w, SUM(x) AS total FROM s GROUP BY w ORDER BY w",
        "SELECT date_trunc('hour', ts) AS m, COUNT(*) AS n FROM s GROUP BY m ORDER BY n, m",
        "SELECT * FROM s ORDER BY ts DESC LIMIT 5",
        "SELECT level FROM s ORDER BY ts LIMIT 3 OFFSET 2",
        "SELECT level AS l, ts FROM s WHERE x > 0.9999 ORDER BY ts DESC LIMIT 4 OFFSET 1",
        "SELECT level FROM s WHERE x > 0.9999 ORDER BY ts LIMIT 2",
        "SELECT level FROM s WHERE ts = (SELECT MAX(ts) FROM s)",
    ],
)
def test_the_index_answers_on_the_driver(spark: SparkSession, database: Path, text: str) -> None:
    expected = ev.open(database).sql(text).to_arrow()
    frame = ev.spark(spark, database).sql(text)
    found = frame.toArrow()
    assert found.schema.names == expected.schema.names
    assert found.cast(expected.schema).to_pylist() == expected.to_pylist()
    placed = ev.spark(spark, database).explain(text)
    if "x >" in text:
        assert "looked for in slices of time by tasks" in placed
    elif "hour" not in text:
        assert "answered by the driver from the time index" in placed


@pytest.mark.spark
def test_many_rows_that_only_tasks_should_read_give_the_same_sums(
    spark: SparkSession, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.engines.spark.aggregate.READ_ROWS_HERE", 10)
    text = "SELECT SUM(x) AS total, COUNT(*) AS n FROM s "
    text += "WHERE ts >= TIMESTAMP '1970-01-01 00:00:10' AND ts < TIMESTAMP '1970-01-01 00:02:00'"
    expected = ev.open(database).sql(text).to_arrow().to_pylist()
    assert ev.spark(spark, database).sql(text).toArrow().to_pylist() == expected
