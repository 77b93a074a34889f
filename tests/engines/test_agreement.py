"""One query, four ways to run: the same bag of rows, to the last bit, and what the twins say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines import engines
from tests.engines.scenarios import QUERIES, SCENARIOS, Query, as_bag
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reference(query: Query, events: list[Event]) -> list[tuple[str, ...]]:
    """The answer over a table in memory, which `test_history` holds against the twins."""
    return as_bag(engines.run_table(query.text, events))


Spark = Callable[..., list[Event]]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_history(query: str, scenario: str, tmp_path: Path) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    found = engines.run_history(asked.text, arrived, tmp_path)
    # The twin's standard deviation is rounded once, ours twice: the last bit may differ.
    expected = as_bag(asked.answer(arrived.events()), loose=("spread",))
    assert as_bag(found, loose=("spread",)) == expected
    assert as_bag(found) == reference(asked, arrived.events())


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_live(query: str, scenario: str, tmp_path: Path) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    assert arrived.late(), "a scenario without late events shows too little"
    found = engines.run_live(asked.text, arrived, tmp_path)
    assert as_bag(found) == reference(asked, arrived.on_time())


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("run", [engines.run_spark_store, engines.run_spark_frame])
def test_spark_batch(
    run: Spark, query: str, scenario: str, tmp_path: Path, spark: SparkSession
) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    found = run(asked.text, arrived, tmp_path, spark)
    assert as_bag(found) == reference(asked, arrived.events())


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_spark_stream(query: str, scenario: str, tmp_path: Path, spark: SparkSession) -> None:
    asked, arrived = QUERIES[query], SCENARIOS[scenario]()
    found = engines.run_spark_stream(asked.text, arrived, tmp_path, spark)
    assert as_bag(found) == reference(asked, arrived.on_time())
