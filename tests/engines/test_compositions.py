"""Queries over the rows of queries: the same rows as the twins give, one after another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from tests.engines import engines
from tests.engines.compositions import COMPOSITIONS, SCHEMAS, arrivals
from tests.engines.scenarios import as_bag
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(3)
BY_NAME = {case.name: case for case in COMPOSITIONS}


def tables(streams: dict[str, list[Event]]) -> dict[str, pa.Table]:
    return {
        name: pa.Table.from_pylist(events, schema=SCHEMAS[name].arrow)
        for name, events in streams.items()
    }


@pytest.mark.parametrize("name", BY_NAME)
def test_over_tables(name: str) -> None:
    case, answers = BY_NAME[name], 0
    for seed in SEEDS:
        streams = arrivals(seed)
        expected = case.answer(streams)
        answers += len(expected)
        found = engines.plain(ev.sql(case.text, **tables(streams)).to_arrow())
        assert as_bag(found) == as_bag(expected), f"seed {seed}"
    assert answers, "a case without an answer shows nothing"


@pytest.mark.parametrize("name", BY_NAME)
def test_over_a_store(name: str, tmp_path: Path) -> None:
    case, streams = BY_NAME[name], arrivals(7)
    db = ev.open(tmp_path / "db")
    for stream, table in tables(streams).items():
        stored = db.create_stream(stream, SCHEMAS[stream].to_json())
        for place in range(0, table.num_rows, 40):
            stored.append(table.slice(place, 40).drop_columns(["_seq"]))
    found = engines.plain(db.sql(case.text).to_arrow())
    assert as_bag(found) == as_bag(case.answer(streams))


@pytest.mark.spark
@pytest.mark.parametrize("name", BY_NAME)
def test_spark_batch(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """Cars are stored, and trucks are a DataFrame in several partitions, in no order."""
    case, streams = BY_NAME[name], arrivals(11)
    db = ev.open(tmp_path / "db")
    given = tables(streams)
    cars = db.create_stream("cars", SCHEMAS["cars"].to_json())
    cars.append(given["cars"].drop_columns(["_seq"]))
    pq.write_table(given["trucks"], tmp_path / "trucks.parquet")
    trucks = spark.read.parquet(str(tmp_path / "trucks.parquet")).repartition(3)
    frame = ev.spark(spark, db.path).sql(case.text, trucks=trucks)
    assert as_bag(engines.collected(frame)) == as_bag(case.answer(streams))
