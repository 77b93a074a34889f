"""The store as a Spark data source, and what Spark sessions see of Eventide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.errors import BindError, SchemaError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TYPES = {
    "car": "string",
    "speed": "float64",
    "gear": "int64",
    "toll": "decimal(12,2)",
    "seen": "timestamp",
    "lit": "bool",
    "tag": "binary",
}


def reading(second: int, **values: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"ts": second * 1_000_000, "car": f"c{second % 3}", "speed": float(second)} | values


FULL = reading(
    5, gear=3, toll=Decimal("1.25"), seen=datetime(2024, 3, 10, 2, 30), lit=True, tag=b"\0\1"
)


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", TYPES)
    cars.append([reading(second) for second in range(10)] + [FULL])
    return db


@pytest.fixture(params=["UTC", "America/New_York"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session in two zones: times must mean the same in both."""
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_reads_every_type(db: ev.Database, session: SparkSession) -> None:
    frame = session.read.format("eventide").load(str(db.path))
    found = frame.toArrow().cast(db.stream("cars").schema.arrow)
    expected = pa.Table.from_batches(db.stream("cars").snapshot().scan(["ts", "_seq", *TYPES]))
    assert found.sort_by("_seq").equals(expected.sort_by("_seq"))


@pytest.mark.parametrize("pushed", ["true", "false"])
def test_filters_of_one_query_do_not_reach_the_next(
    db: ev.Database, spark: SparkSession, pushed: str
) -> None:
    """Spark 4.3 keeps pushed filters with the DataFrame; a source that takes none is safe."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
    cars = spark.read.format("eventide").option("stream", "cars").load(str(db.path))
    two = "timestamp_ntz'1970-01-01 00:00:02'"
    for condition, count in [
        (f"ts > {two}", 8),
        ("true", 11),
        (f"ts <= {two}", 3),
        (f"ts > {two} OR car = 'c0'", 9),
    ]:
        assert cars.where(condition).count() == count, condition
    both = cars.where(f"ts > {two}").union(cars.where(f"ts <= {two}"))
    assert both.count() == 11
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_options_prune(db: ev.Database, spark: SparkSession) -> None:
    options = {"from": "1970-01-01T00:00:03", "to": "7000000", "columns": "speed, car"}
    cars = spark.read.format("eventide").options(**options).load(str(db.path))
    assert cars.columns == ["speed", "car"]
    assert sorted(row.speed for row in cars.collect()) == [3.0, 4.0, 5.0, 5.0, 6.0]


def test_an_empty_stream_reads_as_no_rows(tmp_path: Path, spark: SparkSession) -> None:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", TYPES)
    assert spark.read.format("eventide").load(str(db.path)).count() == 0
    assert ev.spark(spark, db.path).sql("SELECT car FROM cars").count() == 0


def test_writes_create_the_stream_and_append(
    db: ev.Database, session: SparkSession, tmp_path: Path
) -> None:
    cars = session.read.format("eventide").load(str(db.path))
    target = str(tmp_path / "copy")
    for _ in range(2):
        writer = cars.repartition(3).write.format("eventide").option("stream", "copied")
        writer.mode("append").save(target)
    copy = ev.open(target)
    assert copy.streams() == ("copied",)
    assert copy.stream("copied").schema == db.stream("cars").schema
    twice = copy.sql("SELECT ts, car, speed, gear, toll, seen, lit, tag FROM copied").to_arrow()
    once = db.sql("SELECT ts, car, speed, gear, toll, seen, lit, tag FROM cars").to_arrow()
    order = [("ts", "ascending"), ("gear", "ascending")]
    assert twice.sort_by(order).equals(pa.concat_tables([once, once]).sort_by(order))
    seqs = copy.sql("SELECT _seq FROM copied").to_arrow().column("_seq").to_pylist()
    assert sorted(seqs) == list(range(22))


def test_a_zoned_timestamp_is_stored_in_utc(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.sql("SELECT timestamp'2024-07-01 12:00:00' AS ts, 1.5 AS speed")
        frame.write.format("eventide").option("stream", "s").mode("append").save(
            str(tmp_path / "d")
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    (row,) = ev.open(tmp_path / "d").sql("SELECT ts FROM s").rows()
    assert row["ts"] == datetime(2024, 7, 1, 16)


def test_a_failed_write_leaves_nothing(db: ev.Database, spark: SparkSession) -> None:
    before = db.stream("cars").snapshot().row_count
    bad = spark.sql("SELECT CAST(NULL AS BIGINT) AS ts, 'x' AS car")
    with pytest.raises(Exception, match="ts"):
        bad.write.format("eventide").option("stream", "cars").mode("append").save(str(db.path))
    assert db.stream("cars").snapshot().row_count == before


def test_overwriting_is_refused(db: ev.Database, spark: SparkSession) -> None:
    cars = spark.read.format("eventide").load(str(db.path))
    with pytest.raises(Exception, match="append-only"):
        cars.write.format("eventide").option("stream", "cars").mode("overwrite").save(str(db.path))


def test_streaming_writes_happen_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        rows = [reading(10 * number + second) for second in range(4)]
        table = pa.Table.from_pylist(rows)
        pq.write_table(table, tmp_path / f"{number}.parquet")
    arriving = (
        spark.readStream.schema("ts long, car string, speed double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "*.parquet"))
    )
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        writer = arriving.writeStream.format("eventide").option("stream", "cars")
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "db"))
        query.awaitTermination()

    run()
    # Forget that the last batch was committed: the restarted query runs it once more.
    for commit in (checkpoint / "commits").glob("*2*"):
        commit.unlink()
    run()
    stream = ev.open(tmp_path / "db").stream("cars")
    assert len(stream) == 12
    # What the second run of the batch had staged is gone.
    written = {path.name for path in stream.stored.path.glob("seg-*")}
    assert written <= stream.snapshot().manifest.files


def test_ordinary_sql_around_our_operators_runs_on_spark(
    db: ev.Database, spark: SparkSession
) -> None:
    text = """
        WITH per_car AS (
          SELECT car, window_start, AVG(speed) AS mean FROM cars
          GROUP BY car, TUMBLE(ts, INTERVAL '5' SECOND)
        )
        SELECT a.car, a.mean / NULLIF(b.mean, 0) AS growth
        FROM per_car a JOIN per_car b ON a.car = b.car AND a.window_start > b.window_start
        ORDER BY a.car LIMIT 2
    """
    frame = ev.spark(spark, db.path).sql(text)
    assert [row.asDict() for row in frame.collect()] == db.sql(text).rows()
    assert not spark.catalog.tableExists("eventide_0")


def test_a_frame_and_a_stored_stream_join(db: ev.Database, spark: SparkSession) -> None:
    owners = spark.createDataFrame([(0, "c1", "Ada")], "ts long, car string, owner string")
    text = """SELECT owners.owner, COUNT(*) AS n FROM cars JOIN owners ON cars.car = owners.car
              GROUP BY owners.owner"""
    assert [tuple(row) for row in ev.spark(spark, db.path).sql(text, owners=owners).collect()] == [
        ("Ada", 3)
    ]


def test_errors_are_those_of_the_embedded_engine(db: ev.Database, spark: SparkSession) -> None:
    with pytest.raises(BindError, match="no column 'sped'"):
        ev.spark(spark, db.path).sql("SELECT sped FROM cars")
    with pytest.raises(SchemaError, match="no column 'ts'"):
        ev.spark(spark).sql("SELECT a FROM s", s=spark.range(3))
    arriving = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    with pytest.raises(UnsupportedError, match="ordinary SQL"):
        ev.spark(spark).stream("SELECT value FROM s ORDER BY value", s=arriving)
    with pytest.raises(UnsupportedError, match="is not a stream"):
        ev.spark(spark).stream(
            "SELECT car FROM cars", cars=spark.read.format("eventide").load(str(db.path))
        )


def test_periods_keep_their_start_when_they_get_a_time(spark: SparkSession) -> None:
    periods = spark.sql(
        """SELECT n, timestamp(start_ts) AS start_ts, timestamp(end_ts) AS end_ts FROM VALUES
           (1, '2026-01-01 00:00:00', '2026-01-01 02:00:00'),
           (2, '2026-01-01 01:00:00', '2026-01-01 03:00:00') AS p(n, start_ts, end_ts)"""
    )
    text = "SELECT a.n, b.n AS other FROM p a JOIN p b ON a OVERLAPS b"
    with pytest.raises(SchemaError, match="no column 'ts'") as caught:
        ev.spark(spark).sql(text, p=periods)
    assert caught.value.hint == "df.withColumn('ts', df['start_ts'])"
    # What the hint says is what works.
    timed = periods.withColumn("ts", periods["start_ts"])
    assert [tuple(row) for row in ev.spark(spark).sql(text, p=timed).collect()] == [(1, 2)]
