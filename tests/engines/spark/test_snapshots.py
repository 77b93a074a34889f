"""What a DataFrame over a stored stream shows: the stream as it is when a query begins."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.spark.source import agreement
from eventide.engines.spark.source import batch as spark_source
from eventide.engines.spark.source.batch import SlicePartition, SliceReader, SliceWanted
from eventide.errors import StoreError
from eventide.instants import ALL_TIME, TimeRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rows(start: int, end: int) -> list[dict[str, object]]:
    return [{"ts": second * 1_000_000, "speed": float(second)} for second in range(start, end)]


@pytest.fixture
def cars(tmp_path: Path) -> ev.Stream:
    cars = ev.open(tmp_path / "db").create_stream("cars", {"speed": "float64"})
    cars.append(rows(0, 10))
    return cars


def test_a_frame_and_a_view_show_what_was_appended_since(
    cars: ev.Stream, tmp_path: Path, spark: SparkSession
) -> None:
    frame = spark.read.format("eventide").load(str(tmp_path / "db"))
    frame.createOrReplaceTempView("shown")
    fast = frame.where("speed >= 5").select("speed")
    assert (frame.count(), fast.count(), spark.table("shown").count()) == (10, 5, 10)
    cars.append(rows(10, 15))
    assert (frame.count(), fast.count(), spark.table("shown").count()) == (15, 10, 15)
    assert sorted(row.speed for row in fast.collect()) == [float(each) for each in range(5, 15)]
    cars.append(rows(-2, 0))
    cars.split()
    cars.compact()
    assert len(frame.rdd.collect()) == frame.count() == 17


def test_one_execution_reads_one_snapshot(
    cars: ev.Stream, tmp_path: Path, spark: SparkSession
) -> None:
    """The subquery ends, and has appended, before the rows around it are read."""
    path = str(tmp_path / "db")
    frame = spark.read.format("eventide").load(path)

    def append(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = sum(batch.num_rows for batch in batches)
        ev.open(path).stream("cars").append([{"ts": 0, "speed": 0.0}])
        yield pa.RecordBatch.from_pydict({"n": [count]})

    frame.mapInArrow(append, "n bigint").createOrReplaceTempView("counted")
    # Loaded apart, and yet the same snapshot.
    spark.read.format("eventide").load(path).createOrReplaceTempView("counted_around")
    text = (
        "SELECT count(*) AS n FROM counted_around WHERE speed < (SELECT 100 * sum(n) FROM counted)"
    )
    assert [row.n for row in spark.sql(text).collect()] == [10]
    assert len(cars) == 11
    assert [row.n for row in spark.sql(text).collect()] == [11]


def test_where_tasks_cannot_agree_a_changed_stream_is_an_error(
    cars: ev.Stream, tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "db" / agreement.READS).write_text("not a folder")
    frame = spark.read.format("eventide").load(str(tmp_path / "db"))
    assert frame.count() == frame.count() == 10
    cars.append(rows(10, 11))
    with pytest.raises(Exception, match="has changed since this DataFrame was first used"):
        frame.count()
    assert spark.read.format("eventide").load(str(tmp_path / "db")).count() == 11


@pytest.fixture
def execution(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of the execution that tasks believe they are in."""
    name = ["first"]
    monkeypatch.setattr(agreement, "execution_name", lambda: name[0])
    monkeypatch.setattr(spark_source, "PARTITION_ROWS", 20_000)
    return name


def test_all_parts_together_are_the_snapshot_agreed_on(
    tmp_path: Path, execution: list[str]
) -> None:
    cars = ev.open(tmp_path / "db").create_stream("cars", {"speed": "float64"}, durability="none")
    cars.append(table(0, 100_000))
    wanted = SliceWanted(("speed",), TimeRange(5_000_000, ALL_TIME.end_us), {}, frozenset())
    reader = SliceReader(cars.stored, wanted, "reader")
    parts = reader.partitions()
    assert len(parts) > 3
    assert speeds(reader, parts) == list(range(5, 100_000))
    execution[0] = "second"
    cars.append(table(100_000, 250_000))
    found = speeds(reader, parts[:1])
    # Appended while tasks run, late and in time: for the next execution only.
    cars.append(table(0, 50))
    cars.append(table(300_000, 300_050))
    cars.compact()
    found += speeds(reader, parts[1:])
    assert sorted(found) == list(range(5, 250_000))
    execution[0] = "third"
    late = [*range(5, 50), *range(300_000, 300_050)]
    assert speeds(reader, parts) == sorted([*range(5, 250_000), *late])


def test_all_parts_leave_out_what_had_expired_at_one_time(
    tmp_path: Path, execution: list[str]
) -> None:
    schema = {"speed": "float64", "until": "timestamp"}
    leases = ev.open(tmp_path / "db").create_stream("leases", schema, keep="until")
    leases.append(lasting(0, 100_000, 60_000))
    wanted = SliceWanted(("speed",), ALL_TIME, {}, frozenset())
    reader = SliceReader(leases.stored, wanted, "reader")
    parts = reader.partitions()
    execution[0] = "second"
    leases.append(lasting(100_000, 120_000, 60_000))
    found = speeds(reader, parts[-1:])
    # What comes while tasks run ends others, for the next execution only.
    leases.append(lasting(120_000, 130_000, 60_000))
    found += speeds(reader, parts[:-1])
    assert sorted(found) == list(range(60_000, 120_000))
    execution[0] = "third"
    assert speeds(reader, parts) == list(range(70_000, 130_000))


def lasting(start: int, end: int, seconds: int) -> pa.Table:
    """Return events of which each is there for some seconds."""
    until = table(start + seconds, end + seconds).column("ts")
    return table(start, end).append_column("until", until)


def table(start: int, end: int) -> pa.Table:
    seconds = pa.array(range(start, end))
    times = pa.array([second * 1_000_000 for second in range(start, end)], pa.timestamp("us"))
    return pa.table({"ts": times, "speed": seconds.cast(pa.float64())})


def speeds(reader: SliceReader, parts: object) -> list[int]:
    assert isinstance(parts, list)
    found: list[float] = []
    for part in parts:
        assert isinstance(part, SlicePartition)
        for batch in reader.read(part):
            assert batch.schema.names == ["speed"]
            found += batch.column("speed").to_pylist()
    return sorted(map(int, found))


def test_what_the_first_chose_is_what_all_get(tmp_path: Path, execution: list[str]) -> None:
    def refuse() -> int:
        message = "somebody has chosen before"
        raise AssertionError(message)

    assert agreement.agreed(tmp_path, "a", choose=lambda: [1, 2]) == [1, 2]
    assert agreement.agreed(tmp_path, "a", choose=refuse) == [1, 2]
    assert agreement.agreed(tmp_path, "b", choose=lambda: 3) == 3

    def overtaken() -> int:
        """Another task is quicker while this one makes up its mind."""
        assert agreement.agreed(tmp_path, "c", choose=lambda: 4) == 4
        return 5

    assert agreement.agreed(tmp_path, "c", choose=overtaken) == 4
    execution[0] = "second"
    assert agreement.agreed(tmp_path, "a", choose=lambda: 6) == 6
    assert len(agreements(tmp_path)) == 4


def agreements(folder: Path) -> list[Path]:
    return [path for path in (folder / agreement.READS).iterdir() if path.name != agreement.SWEPT]


def made_older(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.mark.usefixtures("execution")
def test_old_agreements_are_swept(tmp_path: Path) -> None:
    agreement.agreed(tmp_path, "a", choose=lambda: 1)
    (old,) = agreements(tmp_path)
    made_older(old, agreement.KEPT_S + 10)
    made_older(tmp_path / agreement.READS / agreement.SWEPT, agreement.SWEEP_EVERY_S + 10)
    agreement.agreed(tmp_path, "b", choose=lambda: 1)
    assert not old.exists()
    assert len(agreements(tmp_path)) == 1


@pytest.mark.usefixtures("execution")
def test_not_every_task_looks_at_all_agreements(tmp_path: Path) -> None:
    swept = tmp_path / agreement.READS / agreement.SWEPT
    with patch.object(agreement, "sweep", wraps=agreement.sweep) as sweep:
        for number in range(20):
            agreement.agreed(tmp_path, f"a {number}", choose=lambda: 1)
        assert sweep.call_count == 1
        # Another machine's clock may be wrong.
        for count, seconds in enumerate((agreement.SWEEP_EVERY_S + 10, -agreement.KEPT_S), 2):
            made_older(swept, seconds)
            for number in range(5):
                agreement.agreed(tmp_path, f"{count} {number}", choose=lambda: 1)
            assert sweep.call_count == count
    assert len(agreements(tmp_path)) == 30


@pytest.mark.usefixtures("cars")
def test_reads_are_not_part_of_the_database(tmp_path: Path) -> None:
    (tmp_path / "db" / agreement.READS).mkdir()
    (tmp_path / "db" / agreement.READS / "x").write_text("[1, 2]")
    db = ev.open(tmp_path / "db")
    assert db.streams() == ("cars",)
    db.backup(tmp_path / "copy")
    assert not (tmp_path / "copy" / agreement.READS).exists()
    with pytest.raises(StoreError):
        db.stream("reads")
