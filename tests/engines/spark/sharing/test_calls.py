"""What is asked of many queries on Spark, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventide as ev
from eventide.errors import BindError, SchemaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY_CAR = "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1' SECOND)"


@pytest.fixture
def database(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"car": "string", "lane": "int64"})
    return db


def test_explain_says_how_queries_are_distributed(
    database: ev.Database, spark: SparkSession
) -> None:
    on_spark = ev.spark(spark, database.path)
    assert on_spark.explain_many(
        [
            BY_CAR,
            "SELECT car FROM cars WHERE lane = 1",
            "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)",
            "SELECT car FROM cars ORDER BY car",
        ]
    ).splitlines() == [
        "spark: cars: 2 queries by key: cars by car",
        "spark: cars: 1 query by query: each bucket takes all events, for some queries",
        "spark: 1 query by itself",
    ]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT car, lane / 2.0 AS n FROM cars", "car string, n double"),
        ("SELECT car AS other, lane AS n FROM cars", "other string, n int64"),
        ("SELECT car FROM cars ORDER BY car", "car string"),
    ],
)
def test_queries_with_different_columns_are_refused(
    text: str, columns: str, database: ev.Database, spark: SparkSession
) -> None:
    queries = {"one": BY_CAR, "two": BY_CAR, "three": text}
    with pytest.raises(SchemaError, match="'three' has the columns") as error:
        ev.spark(spark, database.path).sql_many(queries)
    assert f"the columns {columns}; others have car string, n int64" in error.value.message
    assert error.value.hint == "a DataFrame has one set of columns: ask for those queries apart"


def test_no_query_and_a_wrong_one_are_refused(database: ev.Database, spark: SparkSession) -> None:
    on_spark = ev.spark(spark, database.path)
    with pytest.raises(SchemaError, match="there is no query"):
        on_spark.sql_many([])
    with pytest.raises(BindError, match="no stream 'card'") as error:
        on_spark.sql_many({"one": "SELECT * FROM card"})
    assert error.value.__notes__[-1] == "in the query 'one'"
