"""Spark over the store: what tasks are sent, what is pruned, exactly-once, aggregates, upkeep."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import EventideError, SchemaError, StoreError
from eventide.instants import ALL_TIME, TimeRange
from eventide.store import Snapshot, StoredStream
from eventide.store.upkeep.maintenance import Job, merge_jobs
from tests.engines import engines
from tests.engines.scenarios import QUERIES, SCENARIOS, as_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import WriterCommitMessage

    from eventide.engines.spark.source.batch import EventideSource, SlicePartition
from eventide.engines.spark.types import from_the_border

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000
TYPES = {
    "car": "string",
    "speed": "float64",
    "lane": "int64",
    "lit": "bool",
    "Toll": "decimal(8,2)",
}


def drive(hour: int, count: int, seed: int = 0) -> pa.Table:
    """Return an hour of readings; speeds of different hours do not overlap."""
    choose = np.random.default_rng(hour * 100 + seed)
    ts = np.sort(choose.integers(hour * HOUR, (hour + 1) * HOUR, count))
    toll = [Decimal(cents).scaleb(-2) for cents in choose.integers(0, 900, count).tolist()]
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us")),
            "car": pa.array([f"c{number % 7}" for number in range(count)]),
            "speed": pa.array(choose.random(count) + 10 * hour),
            "lane": pa.array(np.arange(count) % 5),
            "lit": pa.array(np.arange(count) % 2 == 0),
            "Toll": pa.array(toll, pa.decimal128(8, 2)),
        }
    )


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    """Six hours, each a segment, late events in some of them, and events that are in none."""
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", TYPES, split="1 hour", durability="none")
    for hour in range(6):
        cars.append(drive(hour, 3000))
        cars.flush()
    stored = cars.stored
    for hour in (1, 1, 3):
        stored.commit([stored.stage(drive(hour, 400, seed=hour).to_batches())])
    cars.append(drive(6, 2000))
    cars.append(drive(5, 20, seed=9))
    view = cars.snapshot().view
    assert view.segment is not None
    assert view.tail
    assert view.queue
    return db


def source_of(db: ev.Database, **options: str) -> EventideSource:
    from pyspark.sql.datasource import CaseInsensitiveDict

    from eventide.engines.spark.source.batch import EventideSource

    named = {name.replace("__", "."): text for name, text in options.items()}
    return EventideSource(CaseInsensitiveDict({"path": str(db.path), "stream": "cars", **named}))


def partitions_of(db: ev.Database, **options: str) -> list[SlicePartition]:
    source = source_of(db, **options)
    return list(source.reader(source.schema()).partitions())  # type: ignore[arg-type]


def read(db: ev.Database, **options: str) -> pa.Table:
    """Read as Spark would: a pickled reader, and pickled partitions one by one."""
    source = source_of(db, **options)
    reader = source.reader(source.schema())
    lonely = pickle.loads(pickle.dumps(reader))
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]
    names = source.schema().fieldNames()
    types = [db.stream("cars").schema.type_of(name).arrow for name in names]
    schema = pa.schema(list(zip(names, types, strict=True)))
    with pytest.MonkeyPatch.context() as patch:
        name = uuid.uuid4().hex
        patch.setattr("eventide.engines.spark.source.agreement.execution_name", lambda: name)
        batches = [from_the_border(batch, schema) for part in parts for batch in lonely.read(part)]
    return pa.Table.from_batches(batches, schema)


def content(stream: StoredStream | ev.Stream) -> pa.Table:
    snapshot = stream.snapshot()
    return pa.Table.from_batches(snapshot.scan(snapshot.schema.arrow.names), snapshot.schema.arrow)


def files_of(stream: ev.Stream) -> set[str]:
    return {path.name for path in stream.stored.path.glob("seg-*")}


def listed_files(stream: ev.Stream) -> set[str]:
    return {name for name in stream.snapshot().view.files if name.startswith("seg-")}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventide.engines.spark.source.batch.PARTITION_ROWS", 1000)
    monkeypatch.setattr("eventide.engines.spark.history.SMALLEST_SLICE_ROWS", 50)


# What tasks are sent


def test_a_slice_carries_only_what_it_reads(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", TYPES, split="1 hour", durability="none")
    for hour in range(20):
        cars.append(drive(hour, 50_000 if hour < 19 else 30_000))
    snapshot = cars.snapshot()
    tail_bytes = sum(rows.nbytes for rows in snapshot.memory)
    slices = snapshot.slices(ALL_TIME, 100_000)
    parts = [snapshot.within(each.time_range) for each in slices]
    sizes = [len(pickle.dumps(part)) for part in parts]
    whole = len(pickle.dumps(snapshot))
    carrying = [size for part, size in zip(parts, sizes, strict=True) if rows_in_memory(part)]
    assert whole > tail_bytes > 1_000_000
    assert sum(carrying) < 1.1 * tail_bytes + 20_000
    assert all(size < 20_000 for size in sizes if size not in carrying)
    assert len(carrying) < len(sizes) / 2
    scanned = [
        batch
        for part, each in zip(parts, slices, strict=True)
        for batch in pickle.loads(pickle.dumps(part)).scan(["ts", "_seq", "car"], each.time_range)
    ]
    assert pa.Table.from_batches(scanned).equals(content(cars).select(["ts", "_seq", "car"]))


def rows_in_memory(snapshot: Snapshot) -> int:
    return sum(int(rows.num_rows) for rows in snapshot.memory)


def test_readers_and_jobs_are_small(db: ev.Database) -> None:
    from eventide.engines.spark.maintenance import lean

    cars = db.stream("cars")
    source = source_of(db, where__speed="10..20")
    reader = source.reader(source.schema())
    manifest = cars.snapshot().manifest
    jobs = merge_jobs(cars.stored.path, manifest)
    sizes = [len(pickle.dumps(lean(job))) for job in jobs]
    assert len(pickle.dumps(reader)) < 1_000
    for job, size in zip(jobs, sizes, strict=True):
        assert size < 4_000 + 5_000 * len(job.segments)


# Pruning


@pytest.mark.parametrize(
    ("option", "text", "where"),
    [
        ("speed", "10..20.5", {"speed": (10.0, 20.5)}),
        ("speed", "..10.25", {"speed": (None, 10.25)}),
        ("speed", "59.5..", {"speed": (59.5, None)}),
        ("car", "c3", {"car": "c3"}),
        ("car", "c2..c4", {"car": ("c2", "c4")}),
        ("lane", "2", {"lane": 2}),
        ("lit", "TRUE", {"lit": True}),
        ("toll", "3.00..4", {"Toll": (3, 4)}),
        ("lane", "7", {"lane": 7}),
        ("lane", "..", {"lane": (None, None)}),
    ],
)
@pytest.mark.usefixtures("small_parts")
def test_where_reads_what_the_embedded_engine_does(
    db: ev.Database, option: str, text: str, where: dict[str, Any]
) -> None:
    found = read(db, **{f"where__{option}": text, "to": str(6 * HOUR)})
    expected = db.stream("cars").events(end=6 * HOUR, where=where).to_arrow()
    assert found.equals(expected.select(found.column_names))


@pytest.mark.usefixtures("small_parts")
def test_partitions_are_balanced_and_those_that_cannot_qualify_are_left_out(
    db: ev.Database,
) -> None:
    parts = partitions_of(db)
    counts = [rows_read(part) for part in parts]
    assert sum(counts) == len(db.stream("cars"))
    assert len(parts) > 15
    assert max(counts) < 1600
    # Speeds say the hour: only one has any.
    third = partitions_of(db, where__speed="30..30.9")
    assert 1 < len(third) < 6
    for part in third:
        assert TimeRange(3 * HOUR, 4 * HOUR).intersect(part.time_range) == part.time_range
        assert not rows_in_memory(part.source)
    (nothing,) = partitions_of(db, where__speed="30.99..40", where__lane="3", to=str(2 * HOUR))
    assert nothing.time_range.is_empty
    assert not nothing.source.segments


def rows_read(part: SlicePartition) -> int:
    return sum(int(rows.num_rows) for rows in part.source.scan(["ts"], part.time_range))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where__sped": "1"}, "no attribute 'sped'"),
        ({"where__ts": "1"}, "no attribute 'ts'"),
        ({"where__speed": "fast"}, "'fast', which is not a value of type float64"),
        ({"where__lane": "1..2..3"}, "more than once"),
        ({"where__lit": "yes"}, "not a value of type bool"),
        ({"where__lane": "99999999999999999999"}, "not a value of type int64"),
        ({"where__toll": "1.234"}, "not a value of type decimal"),
        ({"columns": "ts, sped"}, "no column 'sped'|no attribute 'sped'|sped"),
        ({"from": "yesterday"}, "not a time"),
        ({"form": "0"}, "no option 'form'"),
        ({"durability": "none"}, "no option 'durability'"),
    ],
)
def test_wrong_options_are_refused(db: ev.Database, options: dict[str, str], message: str) -> None:
    with pytest.raises(EventideError, match=message):
        source_of(db, **options).schema()


def test_spark_reads_with_options(db: ev.Database, spark: SparkSession) -> None:
    reader = (
        spark.read.format("eventide").option("where.Toll", "2..2.5").option("columns", "car,Toll")
    )
    found = reader.load(str(db.path)).toArrow()
    expected = db.stream("cars").events(
        columns=["car", "Toll"], where={"Toll": (2, Decimal("2.5"))}
    )
    order = [("Toll", "ascending"), ("car", "ascending")]
    assert found.num_rows
    assert found.sort_by(order).equals(expected.to_arrow().sort_by(order))
    with pytest.raises(Exception, match="not a value of type int64"):
        spark.read.format("eventide").option("where.lane", "left").load(str(db.path))


# Writing


def staged(stream: StoredStream, hour: int, partition: int = 0) -> WriterCommitMessage:
    from eventide.engines.spark.source.batch import Staged

    rows = stream.stage(drive(hour, 100).to_batches())
    return Staged(rows, partition, "query")


def test_a_batch_id_is_committed_once(db: ev.Database) -> None:
    from eventide.engines.spark.source.batch import BatchAppender, StreamAppender

    cars = db.stream("cars")
    before = len(cars)
    writer = StreamAppender(cars.stored)
    first: list[WriterCommitMessage | None]
    first = [staged(cars.stored, 8, 1), staged(cars.stored, 7, 0), None]
    writer.commit(first, 3)
    assert len(cars) == before + 200
    # The driver died before it could say so: Spark runs the batch again, or only the commit.
    writer.commit(first, 3)
    writer.abort(first, 3)
    writer.commit([staged(cars.stored, 7), staged(cars.stored, 8)], 3)
    assert len(cars) == before + 200
    assert files_of(cars) == listed_files(cars)
    job = BatchAppender(cars.stored, "load 1")
    job.commit([staged(cars.stored, 9)])
    job.commit([staged(cars.stored, 9)])
    assert len(cars) == before + 300
    assert files_of(cars) == listed_files(cars)
    assert content(cars).column("_seq").to_pylist().count(before) == 1


def test_what_is_aborted_leaves_no_files(db: ev.Database) -> None:
    from eventide.engines.spark.source.batch import BatchAppender, StreamAppender

    cars = db.stream("cars")
    before = content(cars)
    StreamAppender(cars.stored).abort([staged(cars.stored, 7), None], 1)
    BatchAppender(cars.stored).abort([None, staged(cars.stored, 8)])
    assert files_of(cars) == listed_files(cars)
    assert content(cars).equals(before)


def test_batch_writes_take_options_and_commit_ids(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 100, 1, 3).selectExpr("id * 1000000 AS ts", "id % 5 AS lane")
    options = {
        "stream": "s",
        "durability": "group",
        "codec": "zstd",
        "split": "1 minute",
        "index": "lane",
        "spare": "0.25",
        "commit_id": "the first load",
    }
    for _ in range(2):
        frame.write.format("eventide").options(**options).mode("append").save(str(tmp_path / "d"))
    stream = ev.open(tmp_path / "d").stream("s")
    assert len(stream) == 100
    kept = stream.options
    assert (kept.durability, kept.codec, kept.indexes) == ("group", "zstd", ("lane",))
    assert (kept.split_us, kept.spare) == (60_000_000, 0.25)
    segments = stream.snapshot().segments
    assert len(segments) == 3
    assert all(segment.indexes for segment in segments)
    assert files_of(stream) == listed_files(stream)
    with pytest.raises(Exception, match="no option 'durabilty'"):
        frame.write.format("eventide").options(stream="s", durabilty="none").mode("append").save(
            str(tmp_path / "d")
        )


def test_a_failed_task_leaves_no_files(db: ev.Database, spark: SparkSession) -> None:
    lanes = db.create_stream("lanes", {"lane": "int64"})
    # The last of many batches is wrong; those before it are in a file by then, or on their way.
    bad = spark.range(0, 300_000, 1, 1).selectExpr("if(id < 299999, id, NULL) AS ts", "id AS lane")
    with pytest.raises(Exception, match="null"):
        bad.write.format("eventide").option("stream", "lanes").mode("append").save(str(db.path))
    assert len(lanes) == 0
    assert not files_of(lanes)


# Aggregates

ASKED: list[dict[str, Any]] = [
    {},
    {"start": HOUR // 2 + 1, "end": 4 * HOUR + 7},
    {"every": "15 min"},
    {"every": timedelta(seconds=20), "start": 2 * HOUR, "end": 3 * HOUR},
    {"by": "hour", "zone": "Asia/Kolkata"},
    {"start": 20 * HOUR},
]
CALLS = [
    "count(*)",
    "avg(speed)",
    "sum(speed)",
    "stddev(speed)",
    "min(car)",
    "sum(Toll)",
    "max2(lane)",
]


@pytest.fixture
def jobs_run(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Callable[[], int]]:
    """Tell how many Spark jobs the test has started."""
    context = spark.sparkContext
    context.setJobGroup(request.node.name, "counted")
    yield lambda: len(context.statusTracker().getJobIdsForGroup(request.node.name))
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def bits(result: ev.Result) -> list[tuple[str, ...]]:
    return as_bag(engines.plain(result.to_arrow()))


def test_aggregates_are_answered_without_a_job(
    db: ev.Database, spark: SparkSession, jobs_run: Callable[[], int]
) -> None:
    on_spark = ev.spark(spark, db.path)
    for asked in ASKED:
        found = on_spark.aggregate("cars", *CALLS, **asked)
        assert bits(found) == bits(db.stream("cars").aggregate(*CALLS, **asked)), asked
    assert jobs_run() == 0
    with pytest.raises(SchemaError, match="sped"):
        on_spark.aggregate("cars", "avg(sped)")
    with pytest.raises(StoreError, match="no database was given"):
        ev.spark(spark).aggregate("cars", "avg(speed)")


def test_rows_are_read_by_tasks(
    db: ev.Database,
    spark: SparkSession,
    jobs_run: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("eventide.engines.spark.aggregate.READ_ROWS_HERE", 0)
    monkeypatch.setattr("eventide.engines.spark.aggregate.SMALLEST_TASK_ROWS", 3000)
    cars = db.stream("cars")
    cars.thin(HOUR)
    cars.configure(summaries=["lane"])
    cars.split()
    cars.append(drive(8, 1500))
    cars.flush()
    on_spark = ev.spark(spark, db.path)
    for asked in ASKED[:3]:
        later = asked | {"start": max(HOUR, asked.get("start", 0))}
        found = on_spark.aggregate("cars", *CALLS, **later)
        assert bits(found) == bits(cars.aggregate(*CALLS, **later)), later
    assert jobs_run() >= 3
    with pytest.raises(StoreError, match="thinned"):
        on_spark.aggregate("cars", "avg(speed)", every="7 s", start=0, end=9 * HOUR)


# Maintenance


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs cannot run in this process; workers are others, and know nothing of this."""

    def refuse(_: Job) -> None:
        message = "a job ran in the driver"
        raise AssertionError(message)

    monkeypatch.setattr(Job, "run", refuse)


RANGE_OF = ev.register_aggregate(
    ev.UserAggregate.from_functions(
        "range_of",
        lambda value: (value, value),
        lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lambda a: a[1] - a[0],
        {"low": pa.float64(), "high": pa.float64()},
        pa.float64(),
    )
)


@pytest.mark.usefixtures("elsewhere")
def test_maintenance_runs_as_tasks(db: ev.Database, spark: SparkSession) -> None:
    cars, on_spark = db.stream("cars"), ev.spark(spark, db.path)
    before = content(cars)
    answer = bits(cars.aggregate("avg(speed)", "range_of(speed)", by="hour"))
    assert on_spark.compact("cars") >= 5
    assert not merge_jobs(cars.stored.path, cars.snapshot().manifest)
    assert content(cars).equals(before)
    # Two indexes of the same segments, built side by side.
    cars.stored.add_index("lane", "split")
    cars.stored.add_index("car", "split")
    segments = len(cars.snapshot().segments)
    assert on_spark.rebuild_indexes("cars") >= 2 * (segments - 1)
    assert all(len(s.indexes) == 2 for s in cars.snapshot().manifest.segments)
    assert len(cars.events(where={"lane": 3})) == before.column("lane").to_pylist().count(3)
    cars.stored.add_aggregate("range_of", "speed", "split")
    assert on_spark.backfill("cars") >= 6
    assert all(s.form.aggregates for s in cars.snapshot().manifest.segments)
    assert content(cars).equals(before)
    assert bits(cars.aggregate("avg(speed)", "range_of(speed)", by="hour")) == answer
    assert on_spark.thin("cars", 3 * HOUR) == 3
    assert bits(cars.aggregate("avg(speed)", "range_of(speed)", by="hour")) == answer
    with pytest.raises(ev.EventideError, match="thinned to aggregates"):
        cars.events(end=3 * HOUR)


@pytest.mark.usefixtures("elsewhere")
def test_a_failed_job_leaves_the_stream_as_it_was(db: ev.Database, spark: SparkSession) -> None:
    cars, on_spark = db.stream("cars"), ev.spark(spark, db.path)
    jobs = merge_jobs(cars.stored.path, cars.snapshot().manifest)
    assert len(jobs) > 1
    hurt = cars.stored.path / jobs[-1].segments[0].file
    whole = hurt.read_bytes()
    middle = len(whole) // 2
    hurt.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    files, version = files_of(cars), cars.snapshot().version
    with pytest.raises(StoreError, match="is damaged"):
        on_spark.compact("cars")
    assert (files_of(cars), cars.snapshot().version) == (files, version)
    hurt.write_bytes(whole)
    before = content(cars)
    assert on_spark.compact("cars")
    assert content(cars).equals(before)


# Agreement over a store that has seen everything


@pytest.fixture(scope="module", params=["time", "arrival"])
def worn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ev.Database:
    return engines.worn_store(SCENARIOS["mixed"](), tmp_path_factory.mktemp("worn"), request.param)


@pytest.fixture
def session(spark: SparkSession, small_parts: None) -> SparkSession:  # noqa: ARG001
    return spark


@pytest.mark.parametrize("query", QUERIES)
def test_ways_agree_over_a_worn_store(query: str, worn: ev.Database, session: SparkSession) -> None:
    text, events = QUERIES[query].text, SCENARIOS["mixed"]().events()
    expected = as_bag(engines.run_table(text, events))
    assert as_bag(engines.plain(worn.sql(text).to_arrow())) == expected
    assert as_bag(engines.collected(ev.spark(session, worn.path).sql(text))) == expected
    if query in ("tumbling", "rows"):
        frame = session.read.format("eventide").load(str(worn.path))
        assert as_bag(engines.collected(ev.spark(session).sql(text, cars=frame))) == expected


def test_ways_agree_after_compaction_by_spark(worn: ev.Database, session: SparkSession) -> None:
    events = SCENARIOS["mixed"]().events()
    assert ev.spark(session, worn.path).compact("cars")
    for query in QUERIES.values():
        expected = as_bag(engines.run_table(query.text, events))
        assert as_bag(engines.plain(worn.sql(query.text).to_arrow())) == expected
