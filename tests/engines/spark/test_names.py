"""User columns with names that we use ourselves, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventide as ev
from eventide.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NAMES = ["seq", "bucket", "payload"]


def frame(session: SparkSession, *names: str) -> DataFrame:
    columns = ", ".join(f"`{name}` string" for name in names)
    rows = [(place, *(f"{name} {place}" for name in names)) for place in range(3)]
    return session.createDataFrame(rows, f"ts long, {columns}")


def test_a_column_may_be_called_so(spark: SparkSession, tmp_path: Path) -> None:
    given = frame(spark, *NAMES)
    text = "SELECT seq, bucket, payload, COUNT(*) AS n FROM t GROUP BY seq, bucket, payload, {}"
    text = text.format("TUMBLE(ts, INTERVAL '1' SECOND)")
    expected = [tuple(f"{name} {place}" for name in NAMES) for place in range(3)]
    found = ev.spark(spark).sql(text, t=given).select(*NAMES).collect()
    assert sorted(map(tuple, found)) == expected
    given.coalesce(1).write.format("eventide").option("stream", "t").mode("append").save(
        str(tmp_path / "db")
    )
    read = spark.read.format("eventide").load(str(tmp_path / "db"))
    assert read.columns == ["ts", "_seq", *NAMES]
    assert sorted(map(tuple, read.select(*NAMES).collect())) == expected
    stored = ev.open(tmp_path / "db").sql("SELECT seq, bucket, payload FROM t").to_arrow()
    assert sorted(zip(*stored.to_pydict().values(), strict=True)) == expected


def test_names_that_spark_cannot_carry_are_refused_where_they_are_read(spark: SparkSession) -> None:
    given = frame(spark, "a.b", "c")
    assert ev.spark(spark).sql("SELECT c FROM t", t=given).count() == 3
    with pytest.raises(SchemaError, match=r"column 'a.b' of the DataFrame") as caught:
        ev.spark(spark).sql('SELECT "a.b" AS x FROM t', t=given)
    assert caught.value.hint == "df.withColumnRenamed('a.b', 'a_b')"


def test_a_number_of_rows_that_is_none_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="column '_seq' has type string"):
        ev.spark(spark).sql("SELECT ts FROM t", t=frame(spark, "_seq"))
