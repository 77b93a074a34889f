"""What Spark refuses is an error of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import eventide
from eventide.errors import BindError, ParseError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_what_spark_cannot_read_is_a_bind_error(spark: SparkSession) -> None:
    cars = spark.createDataFrame([(0, "a", 1)], "ts long, car string, lane long")
    with pytest.raises(BindError, match=r"the SQL around the streams is wrong: .*car") as caught:
        eventide.spark(spark).sql("SELECT car FROM cars GROUP BY lane", cars=cars)
    assert "GROUP BY lane" in str(caught.value.hint)


STATEMENT = (
    "FROM cars PARTITION BY car DEFINE a AS lane > 0 PATTERN a WITHIN 5 s RETURN max(a.lane) AS top"
)


@pytest.mark.spark
def test_a_tpstream_statement_is_a_frame(spark: SparkSession) -> None:
    cars = spark.createDataFrame([(0, "a", 1), (1, "a", 0)], "ts long, car string, lane long")
    db = eventide.spark(spark)
    found = db.tpstream(STATEMENT, cars=cars).collect()
    assert [(row["car"], row["top"]) for row in found] == [("a", 1)]
    with pytest.raises(ParseError, match="not a TPStream statement"):
        db.tpstream("SELECT * FROM cars", cars=cars)
