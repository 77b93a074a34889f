"""One query, four ways to run it: the same bag of rows, to the last bit, as the twins give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.engines.spark.labels import even_labels
from eventide.engines.spark.stream import Going, StreamProcessor
from eventide.errors import StateError
from eventide.lang.sql import plan_sql
from tests.engines import engines
from tests.engines.scenarios import COUNTED, QUERIES, SCENARIOS, SCHEMA, Query, as_bag
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Windows by count keep something of every key, and say so.
pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")


def reference(query: Query, events: list[Event]) -> list[tuple[str, ...]]:
    """The answer over a table in memory, which `test_history` holds against the twins."""
    return as_bag(engines.run_table(query.text, events))


LOOSE = ("spread", "covariance")

Spark = Callable[..., list[Event]]

# On Spark every query runs over the scenario with nulls, ties and gaps. What the others add, one
# key in a single bucket and more keys than a leaf has rows, is the same for all queries. A plain
# store needs few: `test_ways_agree_over_a_worn_store` asks a store that has seen more about all.
STORE, FRAME = engines.run_spark_store, engines.run_spark_frame
BATCHES = [
    *((STORE, query, "mixed") for query in ("tumbling", "rows")),
    *((STORE, query, "many_keys") for query in ("hopping", "sliding")),
    *((FRAME, query, "mixed") for query in QUERIES),
    *((FRAME, query, "many_keys") for query in ("tumbling", "rows")),
    (FRAME, "sliding", "one_key"),
]
STREAMS = [
    ("filter", "mixed", 1),
    ("tumbling", "mixed", 2),
    ("hopping", "mixed", 1),
    ("aggregates", "mixed", 1),
    ("sliding", "mixed", 1),
    ("rows", "one_key", 2),
    ("tumbling", "many_keys", 1),
]
"""Queries, scenarios, and how often the stream is started; a second start goes on where it was."""


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_history(query: str, scenario: str, tmp_path: Path) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    found = engines.run_history(asked.text, arrived, tmp_path)
    # The twin rounds variances once, we do it twice: the last bit may differ.
    expected = as_bag(asked.answer(arrived.events()), loose=LOOSE)
    assert as_bag(found, loose=LOOSE) == expected
    assert as_bag(found) == reference(asked, arrived.events())


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_live(query: str, scenario: str, tmp_path: Path) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    assert arrived.late(), "a scenario without late events shows too little"
    found = engines.run_live(asked.text, arrived, tmp_path)
    assert as_bag(found) == reference(asked, arrived.on_time())


@pytest.mark.spark
@pytest.mark.parametrize(("run", "query", "scenario"), BATCHES)
def test_spark_batch(
    run: Spark, query: str, scenario: str, tmp_path: Path, spark: SparkSession
) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    found = run(asked.text, arrived, tmp_path, spark)
    assert as_bag(found) == reference(asked, arrived.events())


@pytest.mark.spark
@pytest.mark.parametrize(("query", "scenario", "runs"), STREAMS)
def test_spark_stream(
    query: str, scenario: str, runs: int, tmp_path: Path, spark: SparkSession
) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    found = engines.run_spark_stream(asked.text, arrived, tmp_path, spark, runs)
    assert as_bag(found) == reference(asked, arrived.on_time())


@pytest.mark.parametrize("scenario", ["mixed", "one_key"])
def test_windows_by_count(scenario: str, tmp_path: Path) -> None:
    arrived = SCENARIOS[scenario]()
    found = engines.run_history(COUNTED.text, arrived, tmp_path / "history")
    assert len(found) > 50
    assert as_bag(found) == as_bag(COUNTED.answer(arrived.events()))
    found = engines.run_live(COUNTED.text, arrived, tmp_path / "live")
    assert as_bag(found) == as_bag(COUNTED.answer(arrived.on_time()))


@pytest.mark.spark
@pytest.mark.parametrize(
    "run", [engines.run_spark_store, engines.run_spark_frame, engines.run_spark_stream]
)
def test_windows_by_count_on_spark(run: Spark, tmp_path: Path, spark: SparkSession) -> None:
    arrived = SCENARIOS["mixed"]()
    events = arrived.on_time() if run is engines.run_spark_stream else arrived.events()
    found = run(COUNTED.text, arrived, tmp_path, spark)
    assert as_bag(found) == as_bag(COUNTED.answer(events))


@pytest.mark.spark
def test_a_checkpoint_on_spark_keeps_its_number_of_buckets(spark: SparkSession) -> None:
    plan = plan_sql(QUERIES["tumbling"].text, {"cars": SCHEMA})
    eight, four = (
        StreamProcessor(plan, {"cars": SCHEMA}, Going(), count, frozenset()) for count in (8, 4)
    )
    with pytest.raises(StateError, match="buckets: it was written with 8, and this has 4"):
        four.load(eight.dump(eight.initial_state()))
    from pyspark.sql import functions as f

    labels = spark.createDataFrame([(label,) for label in even_labels(8)], "label int")
    placed = labels.select(f.pmod(f.hash("label"), f.lit(8)).alias("place")).collect()
    assert sorted(row.place for row in placed) == list(range(8))
