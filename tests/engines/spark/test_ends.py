"""Where the events end: all buckets of a query stop at one instant, that of history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.spark.spread import Spread
from eventide.engines.spark.stream import (
    ARRIVED_ARROW,
    BucketEvents,
    Going,
    StreamPacking,
    StreamProcessor,
    events_in,
)
from eventide.instants import END_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.operators.columns import concat_batches
from eventide.schema import Schema
from tests.engines import engines
from tests.engines.scenarios import as_bag
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
SCHEMA = Schema.of({"car": "string", "speed": "float64"})
BUCKETS = 4
GONE = "DSTREAM (SELECT car, speed FROM cars [RANGE 5 SECONDS])"
QUERIES = {
    "by itself": GONE,
    "below windows": f"SELECT car, COUNT(*) AS n FROM (SELECT * FROM {GONE})"
    " GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)",
    "below a pattern": f"SELECT * FROM (SELECT * FROM {GONE}) MATCH_RECOGNIZE (PARTITION BY car"
    " ORDER BY ts MEASURES A.speed AS first, B.speed AS second PATTERN (A B))",
    "twice": f"SELECT car, at FROM ({GONE} UNION ALL"
    " ISTREAM (SELECT car, speed FROM cars [RANGE 20 SECONDS] WHERE speed > 5))",
}
OVER_DERIVED = (
    "DSTREAM (SELECT d.car, d.n FROM (SELECT car, COUNT(*) AS n FROM cars"
    " GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)) [RANGE 8 SECONDS] AS d)"
)
#        0         10        20        30        40
#  a     ··
#  b          ·              ·
#  c                                             ·
SPARSE = [
    {"ts": ts * SECOND, "car": car, "speed": float(ts)}
    for car, ts in [("a", 0), ("a", 1), ("b", 6), ("b", 21), ("c", 41)]
]
drawn_events = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 60).map(lambda second: second * SECOND),
            "car": st.sampled_from(["a", "b", "c", "d", None]),
            "speed": st.sampled_from([1.0, 7.0, None]),
        }
    ),
    min_size=1,
    max_size=25,
)


def table_of(events: list[Event]) -> pa.Table:
    numbered = [{**event, "_seq": seq} for seq, event in enumerate(events)]
    return pa.Table.from_pylist(numbered, schema=SCHEMA.arrow)


def arrivals(spread: Spread, events: list[Event]) -> Iterator[BucketEvents]:
    """What each bucket gets of one micro-batch, the last of a replay."""
    leaves = spread.leaves_over("cars")
    names = spread.columns(leaves)
    rows = table_of(events).select(names)
    batch = concat_batches(rows.to_batches(), rows.schema)
    packing = StreamPacking(spread, leaves, rows.schema, has_clock=False)
    table = pa.Table.from_batches(list(packing.pack(iter([batch]))), ARRIVED_ARROW)
    ended = pa.array([END_OF_TIME_US] * table.num_rows, pa.int64())
    table = table.set_column(table.schema.get_field_index("clock_us"), "clock_us", ended)
    labels = table.column("bucket").to_pylist()
    for label in sorted(set(labels)):
        own = table.filter(pa.array([each == label for each in labels]))
        yield events_in(iter([own.to_pandas()]))


@pytest.mark.parametrize("name", QUERIES)
@settings(deadline=None, max_examples=25)
@given(drawn_events, st.sampled_from([0, 100]))
def test_buckets_of_a_stream_that_ends(name: str, events: list[Event], lateness: int) -> None:
    text, catalog = QUERIES[name], {"cars": SCHEMA}
    plan = plan_sql(text, catalog)
    spread = Spread.of(plan, BUCKETS)
    assert spread.buckets == BUCKETS, "a case in one bucket shows nothing"
    going = Going(lateness * SECOND)
    processor = StreamProcessor(plan, catalog, going, BUCKETS, frozenset())
    found: list[Event] = []
    for arrived in arrivals(spread, events):
        _, results, late = processor.push(processor.initial_state(), arrived)
        assert not late
        found += [row for rows in results for row in engines.plain(pa.Table.from_batches([rows]))]
    answer = engines.plain(ev.sql(text, cars=table_of(events)).to_arrow())
    assert as_bag(found) == as_bag(answer)


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", SCHEMA.to_json()).append(SPARSE)
    return db


@pytest.mark.spark
@pytest.mark.parametrize("text", [*QUERIES.values(), OVER_DERIVED], ids=[*QUERIES, "over derived"])
def test_all_engines_end_at_one_instant(
    text: str, db: ev.Database, tmp_path: Path, spark: SparkSession
) -> None:
    answer = as_bag(engines.plain(db.sql(text).to_arrow()))
    assert answer, "a query without rows shows nothing"
    assert as_bag([row for part in db.replay(text) for row in engines.plain(part.to_arrow())]) == (
        answer
    )
    on_spark = ev.spark(spark, db.path)
    assert as_bag(engines.collected(on_spark.sql(text))) == answer
    frame = spark.createDataFrame(table_of(SPARSE).to_pandas()).repartition(3)
    assert as_bag(engines.collected(ev.spark(spark).sql(text, cars=frame))) == answer
    replayed = on_spark.replay(text, buckets=BUCKETS)
    out = str(tmp_path / "out")
    writer = replayed.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.format("parquet").trigger(availableNow=True).start(out).awaitTermination()
    assert as_bag(engines.collected(spark.read.parquet(out))) == answer
