"""Parameters on Spark: in jobs, in streams and in the SQL that is left to Spark."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventide as ev

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

AWKWARD = 'it\'s\\ a "$x" ? -- ;'


def test_values_are_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", {"car": "string", "speed": "float64"})
    cars.append([{"ts": n, "car": AWKWARD, "speed": float(n)} for n in range(5)])
    on_spark = ev.spark(spark, db.path)
    queries = {
        "SELECT car, speed FROM cars WHERE car = $car AND speed > $limit": {
            "car": AWKWARD,
            "limit": 2.5,
        },
        "SELECT DISTINCT car || $car AS c, $t AS t FROM cars WHERE speed < $limit": {
            "car": AWKWARD,
            "t": datetime(2026, 1, 2, 3, 4, 5, 6),
            "limit": 3,
        },
        "SELECT SUM(speed) AS s FROM cars WHERE car = $car GROUP BY TUMBLE(ts, $size)": {
            "car": AWKWARD,
            "size": timedelta(microseconds=3),
        },
    }
    for text, params in queries.items():
        rows = [row.asDict() for row in on_spark.sql(text, params=params).collect()]
        key = repr
        assert sorted(rows, key=key) == sorted(db.sql(text, params).rows(), key=key)
        assert "Scan cars" in on_spark.explain(text, params=params)
    text = "SELECT speed FROM cars WHERE car = ?"
    replayed = on_spark.replay(text, params=[AWKWARD])
    query = replayed.writeStream.format("memory").queryName("parameters").start()
    query.processAllAvailable()
    query.stop()
    found = sorted(row.speed for row in spark.table("parameters").collect())
    assert found == [0.0, 1.0, 2.0, 3.0, 4.0]
