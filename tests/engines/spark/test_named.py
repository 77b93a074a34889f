"""Named queries on Spark: the same names, the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventide as ev
from eventide.errors import StoreError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GROUPED = (
    "CREATE STREAM grouped AS SELECT car, MAX(speed) AS top, COUNT(*) AS n FROM fast "
    "GROUP BY car, TUMBLE(ts, INTERVAL '5' SECOND)"
)
RISES = (
    "SELECT * FROM grouped MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES "
    "FIRST(start_ts) AS since, LAST(top) AS top PATTERN (A B) DEFINE B AS top > PREV(top))"
)
QUERIES = [
    "SELECT * FROM fast",
    "SELECT car, top, n, ts, start_ts FROM grouped",
    "SELECT g.car, b.best FROM grouped AS g JOIN best AS b ON b.car = g.car",
    RISES,
]


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", {"car": "string", "speed": "float64"})
    cars.append(
        [{"ts": i * 700_000, "car": "ab"[i % 2], "speed": 40.0 + i * 37 % 50} for i in range(80)]
    )
    return db


def test_names_on_spark(spark: SparkSession, db: ev.Database) -> None:
    on_spark = ev.spark(spark, db.path)
    said = on_spark.sql("CREATE STREAM fast AS SELECT car, speed FROM cars WHERE speed > 50")
    assert [row.asDict() for row in said.collect()] == [
        {"name": "fast", "kind": "stream", "done": "created"}
    ]
    db.sql(GROUPED)
    on_spark.sql("CREATE VIEW best AS SELECT car, MAX(top) AS best FROM grouped GROUP BY car")
    for text in QUERIES:
        rows = [row.asDict() for row in on_spark.sql(text).collect()]
        expected = db.sql(text).rows()
        assert len(expected) >= 3
        assert sorted(rows, key=repr) == sorted(expected, key=repr), text
    assert "Stream fast (named query)" in on_spark.explain("SELECT car FROM fast")
    # A DataFrame hides a query of its name.
    frame = spark.createDataFrame([(1, "z")], "ts long, car string")
    assert [row.asDict() for row in on_spark.sql("SELECT car FROM fast", fast=frame).collect()] == [
        {"car": "z"}
    ]
    with pytest.raises(StoreError, match="fast is read by grouped"):
        on_spark.sql("DROP STREAM fast")
    on_spark.sql("DROP VIEW best")
    assert "best" not in db.streams()


@pytest.mark.parametrize("text", [QUERIES[1], RISES])
def test_names_in_a_spark_stream(
    text: str, spark: SparkSession, db: ev.Database, tmp_path: Path
) -> None:
    """Stored events come again as a stream; its end completes what is open."""
    db.sql("CREATE STREAM fast AS SELECT car, speed FROM cars WHERE speed > 50")
    db.sql(GROUPED)
    replayed = ev.spark(spark, db.path).replay(text, rows_per_batch=30, buckets=2)
    writer = replayed.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(str(tmp_path / "out")).awaitTermination()
    rows = [row.asDict() for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    expected = db.sql(text).rows()
    assert len(expected) >= 3
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


def test_what_spark_refuses(spark: SparkSession, db: ev.Database) -> None:
    with pytest.raises(UnsupportedError, match="Spark does not run the query of a stored stream"):
        ev.spark(spark, db.path).sql("CREATE STORED STREAM fast AS SELECT car FROM cars")
    assert "fast" not in db.streams()
    with pytest.raises(StoreError):
        ev.spark(spark).sql("CREATE STREAM fast AS SELECT car FROM cars")


def test_spark_reads_what_a_query_has_stored(spark: SparkSession, db: ev.Database) -> None:
    db.sql("CREATE STORED STREAM fast AS SELECT car, speed FROM cars WHERE speed > 50")
    on_spark = ev.spark(spark, db.path)
    text = "SELECT car, MAX(speed) AS top FROM fast GROUP BY car"
    rows = [row.asDict() for row in on_spark.sql(text).collect()]
    assert sorted(rows, key=repr) == sorted(db.sql(text).rows(), key=repr)
    assert rows
    frame = on_spark.sql("SELECT ts, start_ts, car, speed FROM fast")
    with pytest.raises(Exception, match="events come from nowhere else"):
        frame.write.format("eventide").option("stream", "fast").mode("append").save(str(db.path))
    on_spark.sql("DROP STREAM fast")
    assert "fast" not in db.streams()
