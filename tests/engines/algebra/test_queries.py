"""Queries in CEL: the rows of the twin, over tables, over a store, live, and on Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import eventide as ev
from tests.engines import engines
from tests.engines.algebra.queries import QUERIES
from tests.engines.compositions import SCHEMAS, arrivals
from tests.engines.live.arriving import in_pieces, in_steps, lived
from tests.engines.scenarios import as_bag
from tests.engines.test_compositions import LATENESS_US, SHORT_US, live, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_NAME = {query.name: query for query in QUERIES}
SEEDS = range(3)


@pytest.mark.parametrize("name", BY_NAME)
def test_over_tables(name: str) -> None:
    query, answers = BY_NAME[name], 0
    for seed in SEEDS:
        streams = arrivals(seed)
        expected = query.answer(streams)
        answers += len(expected)
        found = engines.plain(ev.sql(query.text, **tables(streams)).to_arrow())
        assert as_bag(found) == as_bag(expected), f"seed {seed}"
    assert answers, "a query without an answer shows nothing"


@pytest.mark.parametrize("name", BY_NAME)
def test_over_a_store(name: str, tmp_path: Path) -> None:
    query, streams = BY_NAME[name], arrivals(7)
    db = ev.open(tmp_path / "db")
    for stream, table in tables(streams).items():
        stored = db.create_stream(stream, SCHEMAS[stream].to_json())
        for place in range(0, table.num_rows, 40):
            stored.append(table.slice(place, 40).drop_columns(["_seq"]))
    found = engines.plain(db.sql(query.text).to_arrow())
    assert as_bag(found) == as_bag(query.answer(streams))


@pytest.mark.parametrize("name", BY_NAME)
def test_live(name: str) -> None:
    """Events as they arrive, some of several streams at once; dumped and loaded between steps."""
    query = BY_NAME[name]
    for seed in SEEDS:
        streams = arrivals(seed)
        engine = live(query.text, LATENESS_US)
        found = lived(engine, in_pieces(streams, random.Random(seed)), SCHEMAS)
        assert not found.late
        assert as_bag(found.rows) == as_bag(query.answer(streams)), f"seed {seed}"


@pytest.mark.parametrize("name", BY_NAME)
def test_late_events(name: str) -> None:
    query, streams = BY_NAME[name], arrivals(7)
    found = lived(live(query.text, SHORT_US), in_steps(streams, 25), SCHEMAS)
    assert found.late, "a query without late events shows nothing"
    assert as_bag(found.rows) == as_bag(query.answer(found.on_time(streams)))


@pytest.mark.spark
@pytest.mark.parametrize("name", ["nested on the right", "chains with sums", "chains that branch"])
def test_spark_batch(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """Cars are stored, and trucks are a DataFrame in several partitions, in no order."""
    query, streams = BY_NAME[name], arrivals(11)
    db = ev.open(tmp_path / "db")
    given = tables(streams)
    cars = db.create_stream("cars", SCHEMAS["cars"].to_json())
    cars.append(given["cars"].drop_columns(["_seq"]))
    pq.write_table(given["trucks"], tmp_path / "trucks.parquet")
    trucks = spark.read.parquet(str(tmp_path / "trucks.parquet")).repartition(3)
    frame = ev.spark(spark, db.path).sql(query.text, trucks=trucks)
    assert as_bag(engines.collected(frame)) == as_bag(query.answer(streams))


@pytest.mark.spark
def test_spark_stream(tmp_path: Path, spark: SparkSession) -> None:
    """Stored events come again as a stream, in micro-batches: the end completes what is open."""
    streams = arrivals(13, 60)
    db = ev.open(tmp_path / "db")
    for stream, table in tables(streams).items():
        db.create_stream(stream, SCHEMAS[stream].to_json()).append(table.drop_columns(["_seq"]))
    database = ev.spark(spark, db.path)
    asked = [BY_NAME[name] for name in ("nested on the right", "chains with sums")]
    running = {}
    for number, query in enumerate(asked):
        replayed = database.replay(query.text, rows_per_batch=40, buckets=2)
        writer = replayed.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint {number}"))
        running[query.name] = writer.start(str(tmp_path / f"out {number}"))
    for number, query in enumerate(asked):
        running[query.name].awaitTermination()
        found = engines.collected(spark.read.parquet(str(tmp_path / f"out {number}")))
        assert found
        assert as_bag(found) == as_bag(query.answer(streams)), query.name
