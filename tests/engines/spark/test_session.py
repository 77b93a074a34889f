"""What a session has to have, and the error if something is missing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventide as ev
from eventide.engines.spark import workers
from eventide.engines.spark.rest import over_connect
from eventide.engines.spark.session import cores, is_connect, parallelism
from eventide.engines.spark.workers import check_workers
from eventide.errors import StoreError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

WITHOUT = """
import sys
sys.modules["pyspark"] = None
import eventide
try:
    eventide.spark(None)
except eventide.EventideError as error:
    print(error)
"""
READING = """
import pickle, sys
import eventide
try:
    list(pickle.loads(bytes.fromhex(sys.argv[1])).scan(["ts", "speed"]))
except eventide.EventideError as error:
    print(error)
"""


def test_without_pyspark_an_error_says_what_to_install() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, check=True, text=True
    )
    assert "there is no package pyspark" in run.stdout
    assert "pip install 'eventide[spark]'" in run.stdout


def test_workers_that_lack_a_package_are_told_of_early(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match="lack no_such_package: they run") as caught:
        check_workers(spark, Path("/elsewhere"), ["json", "no_such_package"])
    assert "PYSPARK_PYTHON" in str(caught.value.hint)


def test_workers_that_do_not_see_the_folder_are_told_of(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="do not see") as caught:
        check_workers(spark, tmp_path / "not there")
    assert "under the same path" in str(caught.value.hint)


def test_a_task_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    """Some workers may see what others do not; compaction has nothing to do with it."""
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", {"speed": "float64"})
    cars.append([{"ts": 0, "speed": 1.0}])
    cars.flush()
    sent = pickle.dumps(cars.snapshot())
    (tmp_path / "db").rename(tmp_path / "elsewhere")
    run = subprocess.run(
        [sys.executable, "-c", READING, sent.hex()], capture_output=True, check=True, text=True
    )
    assert f"no folder {tmp_path}/db/streams/cars on" in run.stdout
    assert "under the same path" in run.stdout
    assert "compaction" not in run.stdout


def test_workers_are_asked_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    check_workers(spark)

    def never(*_: object) -> list[dict[str, object]]:
        message = "they were asked again"
        raise AssertionError(message)

    monkeypatch.setattr(workers, "answers", never)
    check_workers(spark)


def test_a_range_tells_how_many_tasks_run_at_a_time(spark: SparkSession) -> None:
    assert parallelism(spark) == cores(spark) == spark.sparkContext.defaultParallelism


@pytest.mark.parametrize("address", ["s3a://bucket/x.ev", "hdfs://host/x.ev"])
def test_addresses_elsewhere_are_refused(spark: SparkSession, address: str) -> None:
    scheme = address.partition(":")[0]
    with pytest.raises(StoreError, match=f"{scheme} addresses are not read"):
        ev.spark(spark, address)
    with pytest.raises(Exception, match=f"{scheme} addresses are not read"):
        spark.read.format("eventide").load(address)
    rows = spark.sql("SELECT 0L AS ts, 1.5D AS speed").write.format("eventide")
    with pytest.raises(Exception, match=f"{scheme} addresses are not read"):
        rows.option("stream", "s").mode("append").save(address)


def test_file_addresses_are_read_and_written(spark: SparkSession, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/two%20words.ev"
    rows = spark.sql("SELECT 0L AS ts, 1.5D AS speed").write.format("eventide")
    rows.option("stream", "s").mode("append").save(address)
    assert (tmp_path / "two words.ev").is_dir()
    assert spark.read.format("eventide").load(address).count() == 1
    assert ev.spark(spark, address).sql("SELECT speed FROM s").count() == 1


def arriving(spark: SparkSession, path: Path) -> DataFrame:
    return spark.readStream.schema("ts long, car string, speed double").parquet(str(path))


def test_results_of_two_streams_are_one_query(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 40).selectExpr("id * 1000000 AS ts", "'a' AS car", "id * 1.0D AS speed")
    for name in ("cars", "trucks"):
        rows.write.parquet(str(tmp_path / name))
    text = "SELECT car, COUNT(*) AS n FROM s GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)"
    one, two = (
        ev.spark(spark).stream(text, s=arriving(spark, tmp_path / name))
        for name in ("cars", "trucks")
    )
    query = (
        one.union(two)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.car, row.n) for row in found) == [("a", 10)] * 6
    reported = [progress["observedMetrics"] for progress in query.recentProgress]
    names = {name for each in reported for name in each}
    assert len(names) == 2
    assert all(name.startswith("eventide") for name in names)


def test_the_rest_of_a_query_can_be_sent_with_its_inputs(spark: SparkSession) -> None:
    """As Spark Connect needs it, which resolves a text anew each time: no view may be missing."""
    one = spark.sql("SELECT 1 AS a")
    text = "SELECT x.a, eventide_1.a AS b, '{x}' AS c FROM eventide_0 AS x, eventide_1"
    inputs = [("eventide_0", one), ("eventide_1", spark.sql("SELECT 2 AS a"))]
    found = over_connect(spark, text, inputs)
    assert [tuple(row) for row in found.collect()] == [(1, 2, "{x}")]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        with pytest.raises(UnsupportedError, match="needs a session in UTC, not in Asia/Kolkata"):
            over_connect(spark, text, inputs)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_client_is_known_by_its_class(spark: SparkSession) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    assert is_connect(remote())
    assert not is_connect(spark)
