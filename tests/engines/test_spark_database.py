"""What Spark refuses is an error of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import eventide
from eventide.errors import BindError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_what_spark_cannot_read_is_a_bind_error(spark: SparkSession) -> None:
    cars = spark.createDataFrame([(0, "a", 1)], "ts long, car string, lane long")
    with pytest.raises(BindError, match=r"the SQL around the streams is wrong: .*car") as caught:
        eventide.spark(spark).sql("SELECT car FROM cars GROUP BY lane", cars=cars)
    assert "GROUP BY lane" in str(caught.value.hint)
