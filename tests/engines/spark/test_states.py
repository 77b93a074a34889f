"""A Spark stream restarted from its checkpoint: with the same meaning, and with another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors.exceptions.base import StreamingQueryException

import eventide as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
WINDOWS = (
    "SELECT car, window_start, SUM(speed) AS total FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)"
)
STANDING = "SELECT x.car, x.speed FROM cars [ROWS 2] x WHERE x.speed > 0"


def arrive(folder: Path, number: int, *seconds: int) -> None:
    rows = [{"ts": at * SECOND, "car": "a", "speed": float(at)} for at in seconds]
    schema = pa.schema([("ts", pa.int64()), ("car", pa.string()), ("speed", pa.float64())])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"{number}.parquet")


def go_on(session: SparkSession, folder: Path, text: str, **settings: Any) -> list[Any]:  # noqa: ANN401
    """Take what has arrived since; return all rows until now."""
    arriving = session.readStream.schema("ts long, car string, speed double").parquet(str(folder))
    results = ev.spark(session).stream(text, cars=arriving, **settings)
    query = (
        results.writeStream.format("parquet")
        .option("checkpointLocation", str(folder.parent / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder.parent / "out"))
    )
    query.awaitTermination()
    return session.read.parquet(str(folder.parent / "out")).collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "same", "other"),
    [
        (WINDOWS, WINDOWS.replace("car,", "Car,  "), WINDOWS.replace("SUM", "MAX")),
        (STANDING, STANDING.replace("speed >", "SPEED  >"), STANDING.replace("ROWS 2", "ROWS 3")),
    ],
    ids=["windows", "standing"],
)
def test_a_restarted_stream_keeps_its_meaning(
    spark: SparkSession, tmp_path: Path, text: str, same: str, other: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    arrive(folder, 0, 1, 2, 14)
    first = go_on(spark, folder, text, lateness="1 s")
    arrive(folder, 1, 15, 31)
    with pytest.raises(StreamingQueryException) as refused:
        go_on(spark, folder, other, lateness="1 s")
    said = str(refused.value)
    assert "the state was written by another query" in said
    assert "it was written by" in said
    assert "and this is" in said
    with pytest.raises(StreamingQueryException, match="lateness: it was written with 1 s"):
        go_on(spark, folder, text, lateness="9 s")
    assert len(go_on(spark, folder, same, lateness="1 s")) > len(first)
