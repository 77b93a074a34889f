"""Replay on Spark: the streaming source by itself, and under a query that is killed half-way."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

import eventide as ev
from eventide.engines.spark.source import stream as stream_source
from eventide.engines.spark.source.batch import EventideSource
from eventide.engines.spark.source.stream import CLOCK, ReplayReader, ReplayWanted
from eventide.errors import EvaluationError, StoreError, UnsupportedError
from eventide.instants import END_OF_TIME_US as END
from eventide.instants import TimeRange
from tests.api.test_replay import FakeClock
from tests.engines import engines
from tests.engines.scenarios import QUERIES, SCENARIOS, SECOND, as_bag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def events(*seconds: float) -> list[dict[str, Any]]:
    return [{"ts": int(s * SECOND), "n": place} for place, s in enumerate(seconds)]


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"n": "int64"}).append(events(0, 1, 1, 1, 2, 5, 6, 9))
    return db


def reader_of(
    db: ev.Database,
    columns: tuple[str, ...] = ("ts", "n"),
    **wanted: Any,  # noqa: ANN401
) -> ReplayReader:
    asked = ReplayWanted(columns, wanted.pop("time_range", TimeRange()), **wanted)
    # As Spark sends it to another process.
    copy = pickle.loads(pickle.dumps(ReplayReader(db.stream("cars").stored, asked)))
    assert isinstance(copy, ReplayReader)
    return copy


def batches_of(
    reader: ReplayReader, limit: ReadLimit, start: dict[str, int] | None = None
) -> list[tuple[int, list[int]]]:
    """The micro-batches until there are no more: where each ends, and what it has."""
    found = []
    offset = start or reader.initialOffset()
    while (following := reader.latestOffset(offset, limit)) != offset:
        found.append((following["ts"], values(reader, offset, following)))
        offset = following
    return found


def values(reader: ReplayReader, start: dict[str, int], end: dict[str, int]) -> list[int]:
    rows = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [n for batch in rows for n in batch.column("n").to_pylist()]


# --- the source by itself --------------------------------------------------------------------


def test_micro_batches_have_so_many_rows_and_part_no_instant(db: ev.Database) -> None:
    #  s   0   1 1 1   2   5   6   9
    #  n   0   1 2 3   4   5   6   7
    reader = reader_of(db, rows_per_batch=2)
    assert reader.getDefaultReadLimit() == ReadMaxRows(2)
    assert batches_of(reader, ReadMaxRows(2)) == [
        (1 * SECOND, [0]),
        (2 * SECOND, [1, 2, 3]),
        (6 * SECOND, [4, 5]),
        (END, [6, 7]),
    ]
    assert batches_of(reader, ReadAllAvailable()) == [(END, list(range(8)))]


def test_a_range_and_conditions(db: ev.Database) -> None:
    reader = reader_of(db, time_range=TimeRange(1 * SECOND, 6 * SECOND), where={"n": (2, None)})
    assert batches_of(reader, ReadMaxRows(3)) == [(5 * SECOND, [2, 3, 4]), (END, [5])]
    assert batches_of(reader_of(db, time_range=TimeRange(SECOND * 20, END)), ReadMaxRows(3)) == []


def test_what_is_appended_after_the_start_is_not_replayed(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even after a restart: the offset says which events there were."""
    reader = reader_of(db)
    start = reader.initialOffset()
    middle = reader.latestOffset(start, ReadMaxRows(4))
    db.stream("cars").append(events(0.5, 3, 20))
    restarted = reader_of(db)
    assert values(restarted, start, middle) == [0, 1, 2, 3]
    assert batches_of(restarted, ReadMaxRows(3), middle) == [(9 * SECOND, [4, 5, 6]), (END, [7])]
    monkeypatch.setattr(stream_source, "SNAPSHOT_S", -1.0)  # a new snapshot each time
    assert batches_of(reader, ReadMaxRows(3), middle) == [(9 * SECOND, [4, 5, 6]), (END, [7])]
    assert restarted.initialOffset() == {"ts": 0, "_seq": 11}


def test_partitions_are_balanced_slices_that_carry_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_source, "PARTITION_ROWS", 1000)
    db = ev.open(tmp_path / "db")
    table = pa.table({"ts": pa.array(range(10_000), pa.timestamp("us")), "n": range(10_000)})
    db.create_stream("cars", {"n": "int64"}).append(table)
    reader = reader_of(db, columns=("n", CLOCK))
    start = reader.initialOffset()
    middle = reader.latestOffset(start, ReadMaxRows(4000))
    parts = [list(reader.read(part)) for part in reader.partitions(start, middle)]
    sizes = [sum(batch.num_rows for batch in part) for part in parts]
    assert sum(sizes) == 4000
    assert len(sizes) == 4
    assert max(sizes) < 1500
    clocks = {
        clock for part in parts for batch in part for clock in batch.column(CLOCK).to_pylist()
    }
    assert clocks == {4000}


def test_by_the_clock(db: ev.Database) -> None:
    #  2x, looked at every second of the clock:  0 | 1 1 1 2 |  | 5 6 |  | 9
    reader = reader_of(db, speed=2.0)
    clock = reader.clock = FakeClock()
    assert reader.getDefaultReadLimit() == ReadAllAvailable()
    offset, told = reader.initialOffset(), []
    for _ in range(6):
        following = reader.latestOffset(offset, ReadAllAvailable())
        told.append(values(reader, offset, following))
        offset = following
        clock.sleep(1.0)
    assert told == [[0], [1, 2, 3, 4], [], [5, 6], [], [7]]
    assert offset["ts"] == END


def test_by_the_clock_until_all_is_done(db: ev.Database) -> None:
    """Under availableNow, to say that nothing is due would end the query: it waits instead."""
    reader = reader_of(db, speed=2.0)
    clock = reader.clock = FakeClock()
    reader.prepareForTriggerAvailableNow()
    found = batches_of(reader, ReadAllAvailable())
    assert [rows for _, rows in found] == [[0], [1, 2, 3], [4], [5], [6], [7]]
    assert clock.now_s - 1000 == pytest.approx(4.5)


def test_after_a_restart_the_clock_goes_on_from_the_offset(db: ev.Database) -> None:
    reader = reader_of(db, speed=1.0)
    reader.clock = FakeClock()
    start = {"ts": 5 * SECOND, "_seq": 8}
    assert values(reader, start, reader.latestOffset(start, ReadAllAvailable())) == [5]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"speed": "fast"}, "is not a speed"),
        ({"rows_per_batch": "0"}, "not a number of rows"),
        ({"rows_per_batch": "many"}, "not a number of rows"),
        ({"clock": "yes"}, "option 'clock'"),
        ({"sped": "1x"}, "no option 'sped'"),
    ],
)
def test_options_are_checked(db: ev.Database, options: dict[str, str], told: str) -> None:
    with pytest.raises((StoreError, EvaluationError), match=told):
        EventideSource({"path": str(db.path), **options}).schema()


def test_a_batch_job_has_no_speed(db: ev.Database) -> None:
    source = EventideSource({"path": str(db.path), "speed": "2x"})
    with pytest.raises(StoreError, match="no option 'speed'"):
        source.reader(source.schema())


# --- under a query ---------------------------------------------------------------------------


@pytest.mark.spark
def test_a_replay_that_dies_half_way_goes_on_and_ends_with_the_same_answer(
    tmp_path: Path, spark: SparkSession
) -> None:
    scenario, text = SCENARIOS["mixed"](), QUERIES["tumbling"].text
    db = engines.stored(scenario, tmp_path)
    answer = as_bag(engines.plain(db.sql(text).to_arrow()))
    told: dict[int, list[Any]] = {}
    died: list[int] = []

    def take(frame: DataFrame, batch: int) -> None:
        rows = engines.collected(frame)
        if batch == 1 and not died:
            died.append(batch)
            message = "killed between the work and its commit"
            raise RuntimeError(message)
        told[batch] = rows

    def run() -> BaseException | None:
        replayed = ev.spark(spark, db.path).replay(text, rows_per_batch=250)
        checkpoint = str(tmp_path / "checkpoint")
        writer = replayed.writeStream.option("checkpointLocation", checkpoint)
        query = writer.foreachBatch(take).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except Exception as error:
            return error
        return None

    assert "killed between" in str(run())
    assert sorted(told) == [0]
    # Late, in the batch that is tried again, and new: none of them is part of this replay.
    db.stream("cars").append(
        [{"ts": ts * SECOND, "car": "x", "speed": 1.0} for ts in (0, 90, 9999)]
    )
    assert run() is None
    assert sorted(told) == [0, 1]
    assert as_bag([row for batch in sorted(told) for row in told[batch]]) == answer


@pytest.mark.spark
def test_the_source_is_a_stream_like_any_other(
    db: ev.Database, tmp_path: Path, spark: SparkSession
) -> None:
    replayed = ev.spark(spark, db.path)  # registers the source
    cars = (
        spark.readStream.format("eventide")
        .options(**{"from": "1970-01-01T00:00:01", "rows_per_batch": "4"})
        .load(str(db.path))
    )
    assert cars.columns == ["ts", "_seq", "n"]
    query = (
        cars.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    assert [progress["numInputRows"] for progress in query.recentProgress] == [4, 3]
    found = spark.read.parquet(str(tmp_path / "out")).orderBy("_seq").collect()
    assert [row.n for row in found] == list(range(1, 8))
    with pytest.raises(UnsupportedError, match="ordinary SQL"):
        replayed.replay("SELECT n FROM cars ORDER BY n LIMIT 1")
    with pytest.raises(StoreError, match="database"):
        ev.spark(spark).replay("SELECT n FROM cars")
