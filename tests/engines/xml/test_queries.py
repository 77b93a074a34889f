"""Queries over documents: the rows of the twin, over tables, over a store, live, and on Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.engines.live.engine import LiveEngine
from eventide.engines.standing.choice import best_plan
from eventide.lang.sql import plan_sql
from tests.engines import engines
from tests.engines.live.arriving import in_pieces, in_steps, lived
from tests.engines.scenarios import as_bag
from tests.engines.xml.queries import QUERIES, SCHEMAS, SECOND, arrivals
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_NAME = {query.name: query for query in QUERIES}


def tables(streams: dict[str, list[Event]]) -> dict[str, pa.Table]:
    return {
        name: pa.Table.from_pylist(events, schema=SCHEMAS[name].arrow)
        for name, events in streams.items()
    }


def stored(streams: dict[str, list[Event]], folder: Path) -> ev.Database:
    db = ev.open(folder / "db")
    for stream, table in tables(streams).items():
        documents = db.create_stream(stream, format="xml")
        for place in range(0, table.num_rows, 40):
            documents.append(table.slice(place, 40).drop_columns(["_seq"]))
    return db


def live(text: str, lateness_us: int) -> LiveEngine:
    return LiveEngine.of(best_plan(plan_sql(text, SCHEMAS), {}), SCHEMAS, lateness_us)


@pytest.mark.parametrize("name", BY_NAME)
def test_over_tables_and_over_a_store(name: str, tmp_path: Path) -> None:
    query, streams = BY_NAME[name], arrivals(6)
    expected = as_bag(query.answer(streams))
    assert expected, "a query without an answer shows nothing"
    found = engines.plain(ev.sql(query.text, **tables(streams)).to_arrow())
    assert as_bag(found) == expected
    found = engines.plain(stored(streams, tmp_path).sql(query.text).to_arrow())
    assert as_bag(found) == expected


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", BY_NAME)
def test_live(name: str) -> None:
    """Documents as they arrive, some of both streams at once; dumped and loaded in between."""
    query, streams = BY_NAME[name], arrivals(2)
    engine = live(query.text, 60 * SECOND)
    found = lived(engine, in_pieces(streams, random.Random(2)), SCHEMAS)
    assert not found.late
    assert as_bag(found.rows) == as_bag(query.answer(streams))


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", BY_NAME)
def test_late_documents(name: str) -> None:
    query, streams = BY_NAME[name], arrivals(3)
    found = lived(live(query.text, SECOND), in_steps(streams, 15), SCHEMAS)
    assert found.late, "a query without late documents shows nothing"
    assert as_bag(found.rows) == as_bag(query.answer(found.on_time(streams)))


@pytest.mark.spark
def test_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Over the store, over a DataFrame in several partitions, and as a stream of micro-batches."""
    streams = arrivals(4)
    db = stored(streams, tmp_path)
    database = ev.spark(spark, db.path)
    query = BY_NAME["windows"]
    assert as_bag(engines.collected(database.sql(query.text))) == as_bag(query.answer(streams))
    query = BY_NAME["witnesses"]
    pq.write_table(tables(streams)["blog"], tmp_path / "blog.parquet")
    blog = spark.read.parquet(str(tmp_path / "blog.parquet")).repartition(3)
    frame = ev.spark(spark).sql(query.text, blog=blog)
    assert as_bag(engines.collected(frame)) == as_bag(query.answer(streams))
    replayed = database.replay(query.text, rows_per_batch=20, buckets=2)
    writer = replayed.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(str(tmp_path / "out")).awaitTermination()
    found = engines.collected(spark.read.parquet(str(tmp_path / "out")))
    assert as_bag(found) == as_bag(query.answer(streams))
