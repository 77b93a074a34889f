"""Times on Spark: instants stay instants in every session zone, times without a zone stay so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.spark.types import to_the_border
from eventide.engines.spark.zones import zoneless_columns
from eventide.errors import SchemaError
from eventide.lang.sql import plan_sql
from eventide.schema import SEQ, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# New York skips the hour from 07:00 UTC on, Kolkata is half an hour off.
START = datetime(2024, 3, 10, 4, 10)
HALF_HOURS = [START + timedelta(minutes=30 * step) for step in range(12)]
TYPES = {"car": "string", "speed": "float64", "seen": "timestamp"}
ROWS = [
    {"ts": at, "car": f"c{step % 2}", "speed": float(step), "seen": at - timedelta(minutes=45)}
    for step, at in enumerate(HALF_HOURS)
]
TABLE = pa.Table.from_pylist(
    ROWS,
    schema=pa.schema(
        [
            ("ts", pa.timestamp("us")),
            ("car", pa.string()),
            ("speed", pa.float64()),
            ("seen", pa.timestamp("us")),
        ]
    ),
)


@contextmanager
def in_zone(session: SparkSession, zone: str) -> Iterator[SparkSession]:
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield session
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture(params=["America/New_York", "Asia/Kolkata"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    with in_zone(spark, request.param) as session:
        yield session


@pytest.fixture
def york(spark: SparkSession) -> Iterator[SparkSession]:
    with in_zone(spark, "America/New_York") as session:
        yield session


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", TYPES).append(TABLE)
    return db


def frame_of(session: SparkSession, *zoneless: str) -> DataFrame:
    """The rows as a DataFrame; made of whole numbers, so that no zone is asked on the way."""
    shifted = TABLE.append_column("us", TABLE.column("ts").cast(pa.int64())).select(
        ["us", "car", "speed"]
    )
    back = "- 2700000000"
    rows = session.createDataFrame(shifted)
    names = {"ts": "us", "seen": f"us {back}"}
    columns = []
    for name, micros in names.items():
        # A day and a time of day together: nothing here goes through the session's zone.
        day = f"date_add(date'1970-01-01', cast(floor(({micros}) / 86400000000) AS int))"
        rest = f"make_dt_interval(0, 0, 0, cast(pmod({micros}, 86400000000) AS decimal(18)) / 1e6)"
        wall = f"cast({day} AS timestamp_ntz) + {rest}"
        instant = f"timestamp_micros({micros})"
        columns.append(f"{wall if name in zoneless else instant} AS {name}")
    return rows.selectExpr(columns[0], "car", "speed", columns[1])


def kinds(frame: DataFrame) -> dict[str, str]:
    return {name: kind for name, kind in frame.dtypes if kind.startswith("timestamp")}


def instants(frame: DataFrame) -> list[dict[str, object]]:
    """Rows as they are in UTC, whatever the session calls them."""
    table = frame.toArrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            bare = table.column(place).cast(pa.int64()).cast(pa.timestamp("us"))
            table = table.set_column(place, field.name, bare)
    return sorted(table.to_pylist(), key=repr)


# What Spark would compute in the session's own zone: in and outside of the SQL handed over.
QUERIES = [
    "SELECT ts, car, seen FROM cars",
    "SELECT ts, date_trunc('hour', ts) AS hour, extract(hour FROM ts) AS h FROM cars",
    "SELECT date_trunc('hour', ts) AS hour, count(*) AS n FROM cars GROUP BY 1",
    "SELECT date_trunc('day', seen) AS day, max(ts) AS last FROM cars GROUP BY 1",
    "SELECT ts, CAST(ts AS VARCHAR) AS text FROM cars ORDER BY ts LIMIT 5",
    "SELECT ts FROM cars WHERE ts >= TIMESTAMP '2024-03-10 07:10:00'",
    "SELECT max(ts) AS last FROM cars WHERE seen < TIMESTAMP '2024-03-10 07:10:00'",
    "SELECT a.ts, b.ts AS other FROM cars a JOIN cars b ON a.ts = b.seen + INTERVAL 45 MINUTES",
    "SELECT ts, CAST('2024-03-10 02:30:00' AS TIMESTAMP) AS never FROM cars ORDER BY ts LIMIT 2",
    "SELECT car, window_start, window_end, count(*) AS n FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '1 hour')",
    "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car MEASURES A.ts AS a, LAST(B.ts) AS b "
    "PATTERN (A B) DEFINE B AS speed > PREV(speed))",
    "SELECT car, ts FROM cars [RANGE 2 HOURS]",
]


@pytest.mark.parametrize(("number", "text"), list(enumerate(QUERIES)))
def test_queries_mean_the_same_in_every_zone(
    db: ev.Database, spark: SparkSession, number: int, text: str
) -> None:
    """Over the store, over instants and over times without a zone, in turn: all is one plan."""
    zone = ("America/New_York", "Asia/Kolkata")[number % 2]
    expected = sorted(db.sql(text).to_arrow().to_pylist(), key=repr)
    with in_zone(spark, zone) as session:
        found = ev.spark(session, db.path).sql(text)
        assert instants(found) == expected
        assert set(kinds(found).values()) <= {"timestamp"}
    with in_zone(spark, "America/New_York") as session:
        without = ("ts", "seen") if number % 2 else ()
        given = ev.spark(session).sql(text, cars=frame_of(session, *without))
        assert instants(given) == expected


def test_each_time_keeps_its_kind(york: SparkSession) -> None:
    text = "SELECT ts, seen, seen + INTERVAL 1 HOUR AS later, ts AS at FROM cars"
    found = ev.spark(york).sql(text, cars=frame_of(york, "seen"))
    assert kinds(found) == {
        "ts": "timestamp",
        "seen": "timestamp_ntz",
        "later": "timestamp_ntz",
        "at": "timestamp",
    }


def test_truncated_times_keep_their_kind(york: SparkSession) -> None:
    units = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "microsecond")
    items = ", ".join(
        f"date_trunc('{unit}', {name}) AS {name}_{unit}"
        for name in ("ts", "seen")
        for unit in units
    )
    found = ev.spark(york).sql(f"SELECT DISTINCT {items} FROM cars", cars=frame_of(york, "seen"))
    instants = {f"ts_{unit}": "timestamp" for unit in units}
    assert kinds(found) == instants | {f"seen_{unit}": "timestamp_ntz" for unit in units}


def test_results_join_with_the_columns_they_come_from(
    db: ev.Database, session: SparkSession
) -> None:
    own = frame_of(session).select("ts", "seen")
    assert ev.spark(session, db.path).sql("SELECT ts, car FROM cars").join(own, "ts").count() == 12
    read = session.read.format("eventide").load(str(db.path))
    assert read.join(own, ["ts", "seen"]).count() == 12


def test_what_is_written_reads_back(session: SparkSession, tmp_path: Path) -> None:
    for number, without in enumerate([(), ("ts",), ("seen",)]):
        written = frame_of(session, *without)
        path = str(tmp_path / str(number))
        written.write.format("eventide").option("stream", "s").mode("append").save(path)
        read = session.read.format("eventide").load(path).select(written.columns)
        assert read.schema.simpleString() == written.schema.simpleString()
        assert read.exceptAll(written).count() == written.exceptAll(read).count() == 0
        asked = ev.spark(session, path).sql("SELECT ts, car, speed, seen FROM s")
        assert asked.dtypes == written.dtypes


def test_inserted_through_a_view(york: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    first = frame_of(york)
    first.write.format("eventide").option("stream", "s").mode("append").save(path)
    view = york.read.format("eventide").option("stream", "s").load(path)
    view.createOrReplaceTempView("cars_view")
    assert york.table("cars_view").count() == 12
    first.createOrReplaceTempView("more")
    columns = ", ".join("0L" if name == SEQ else name for name in view.columns)
    york.sql(f"INSERT INTO cars_view SELECT {columns} FROM more")
    assert york.table("cars_view").join(first, ["ts", "seen"]).count() == 24
    assert view.count() == 24


def test_streams_have_instants(db: ev.Database, york: SparkSession, tmp_path: Path) -> None:
    replayed = york.readStream.format("eventide").load(str(db.path))
    text = (
        "SELECT car, window_start, max(ts) AS last FROM cars "
        "GROUP BY car, TUMBLE(ts, INTERVAL '1 hour')"
    )
    found = ev.spark(york).stream(text, cars=replayed)
    assert kinds(found) == {"window_start": "timestamp", "last": "timestamp"}
    marked = found.withWatermark("window_start", "1 hour")
    query = (
        marked.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    rows = instants(york.read.parquet(str(tmp_path / "out")))
    expected = db.sql(text).to_arrow().to_pylist()
    assert rows
    assert all(row in expected for row in rows)


def test_which_columns_have_no_zone() -> None:
    catalog = {"cars": Schema.of(TYPES)}
    cases = {
        "SELECT ts, seen FROM cars": {"ts", "seen"},
        "SELECT car, window_start, max(seen) AS s FROM cars "
        "GROUP BY car, TUMBLE(ts, INTERVAL '1 hour')": {"window_start", "s"},
        "SELECT max(ts) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN INTERVAL '1 hour' "
        "PRECEDING AND CURRENT ROW) AS m, CAST(car AS TIMESTAMP) AS c FROM cars": {"m"},
        "SELECT car, ts FROM cars [RANGE 2 HOURS]": {"ts", "at", "exp"},
    }
    for text, expected in cases.items():
        plan = plan_sql(text, catalog)
        assert zoneless_columns(plan, {"cars": ("ts", "seen")}) == expected, text
        assert zoneless_columns(plan, {"cars": ()}) == frozenset(), text


def test_a_label_is_all_that_is_added() -> None:
    rows = TABLE.to_batches()[0]
    out = to_the_border(rows, {"seen"})
    assert out.schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert out.schema.field("seen").type == pa.timestamp("us")
    assert out.column("ts")[0].as_py() == START.replace(tzinfo=UTC)
    assert out.column("ts").buffers()[1].address == rows.column("ts").buffers()[1].address


def test_the_store_remembers_times_without_a_zone(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    with pytest.raises(SchemaError, match="zoneless names 'car'"):
        db.create_stream("wrong", TYPES, zoneless="car")
    cars = db.create_stream("cars", TYPES, zoneless=["ts", "seen"])
    assert ev.open(tmp_path / "db").stream("cars").options.zoneless == ("ts", "seen")
    cars.drop_attribute("seen")
    assert cars.options.zoneless == ("ts",)
