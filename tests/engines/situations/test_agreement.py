"""Situations and their patterns, every way to run them: the same bag of rows, as the twins say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventide as ev
from tests.engines import engines
from tests.engines.scenarios import SCENARIOS, as_bag
from tests.engines.situations.temporal_queries import TEMPORAL
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bag = list[tuple[str, ...]]
Spark = Callable[..., list[Event]]

IN_MEMORY = [(query, scenario) for query in TEMPORAL for scenario in ("mixed", "one_key")]
WIDE = [*IN_MEMORY, ("pairs", "many_keys"), ("rows", "many_keys")]

# WITHIN is part of a pattern: only LIMIT, of which "confirmed" has one, keeps every key.
pytestmark = pytest.mark.filterwarnings(
    "ignore:of every key .* for LIMIT:eventide.errors.UnboundedStateWarning"
)


def reference(query: str, events: list[Event]) -> Bag:
    """The answer over a table in memory, which `test_tables` holds against the twin."""
    return as_bag(engines.run_table(TEMPORAL[query].text, events))


@pytest.mark.parametrize(("query", "scenario"), IN_MEMORY)
def test_tables(query: str, scenario: str) -> None:
    asked, arrived = TEMPORAL[query], SCENARIOS[scenario]()
    found = engines.run_table(asked.text, arrived.events())
    assert len(found) > 3, "a query without an answer shows nothing"
    assert as_bag(found) == as_bag(asked.answer(arrived.events()))


@pytest.mark.parametrize(("query", "scenario"), WIDE)
def test_history(query: str, scenario: str, tmp_path: Path) -> None:
    arrived = SCENARIOS[scenario]()
    found = engines.run_history(TEMPORAL[query].text, arrived, tmp_path)
    assert as_bag(found) == reference(query, arrived.events())


@pytest.mark.parametrize("query", ["early", "alone", "rows"])
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_a_worn_store(query: str, order: str, tmp_path: Path) -> None:
    arrived = SCENARIOS["mixed"]()
    db = engines.worn_store(arrived, tmp_path, order)
    found = engines.plain(db.sql(TEMPORAL[query].text).to_arrow())
    assert as_bag(found) == reference(query, arrived.events())


@pytest.mark.parametrize(("query", "scenario"), WIDE)
def test_live(query: str, scenario: str, tmp_path: Path) -> None:
    """The state is dumped and loaded after every batch."""
    arrived = SCENARIOS[scenario]()
    assert arrived.late(), "a scenario without late events shows too little"
    found = engines.run_live(TEMPORAL[query].text, arrived, tmp_path)
    assert as_bag(found) == reference(query, arrived.on_time())


@pytest.mark.parametrize("query", ["confirmed", "silent", "summary", "rows"])
def test_replayed_in_event_time(query: str, tmp_path: Path) -> None:
    arrived = SCENARIOS["mixed"]()
    rows: list[Event] = []
    replay = engines.stored(arrived, tmp_path).replay(
        TEMPORAL[query].text, lambda piece: rows.extend(engines.plain(piece.to_arrow()))
    )
    replay.run()
    assert as_bag(rows) == reference(query, arrived.events())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("run", "query", "scenario"),
    [
        (engines.run_spark_store, "alone", "mixed"),
        (engines.run_spark_store, "confirmed", "mixed"),
        (engines.run_spark_frame, "rows", "mixed"),
        (engines.run_spark_frame, "below_and_above", "mixed"),
        (engines.run_spark_frame, "pairs", "many_keys"),
    ],
)
def test_spark_batch(
    run: Spark, query: str, scenario: str, tmp_path: Path, spark: SparkSession
) -> None:
    arrived = SCENARIOS[scenario]()
    found = run(TEMPORAL[query].text, arrived, tmp_path, spark)
    assert as_bag(found) == reference(query, arrived.events())


@pytest.mark.spark
@pytest.mark.parametrize(("query", "runs"), [("confirmed", 2), ("silent", 1)])
def test_spark_stream(query: str, runs: int, tmp_path: Path, spark: SparkSession) -> None:
    arrived = SCENARIOS["mixed"]()
    found = engines.run_spark_stream(TEMPORAL[query].text, arrived, tmp_path, spark, runs)
    assert as_bag(found) == reference(query, arrived.on_time())


@pytest.mark.parametrize("confirm", ["", "CONFIRM"])
def test_keys_that_fall_silent_are_forgotten_with_a_gap(confirm: str, tmp_path: Path) -> None:
    """Many keys, each of one event on which a situation begins."""
    for gap, kept in (("GAP 1 SECOND", False), ("", True)):
        db = ev.open(tmp_path / (gap or "none"))
        cars = db.create_stream("cars", {"car": "int64", "speed": "float64"})
        text = f"""FROM cars PARTITION BY car DEFINE fast AS speed > 3 {gap} PATTERN fast
          WITHIN 2 SECONDS {confirm} RETURN START(fast) AS began"""
        query = db.subscribe(text, lambda _: None)
        for turn in range(4):
            first = turn * 3000
            cars.append(
                [{"ts": (first + i) * 1000, "car": first + i, "speed": 9.0} for i in range(3000)]
            )
        (state, *_) = query.state.operators
        remembered = len(state.keys.whole.known.held)
        # The newest event may still wait for others of its instant.
        assert (remembered >= 11_999) if kept else (remembered < 9_000)
