"""Row patterns, every way to run them: the same bag of rows, to the last bit, as the twin says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.errors import UnboundedStateWarning
from tests.engines import engines
from tests.engines.patterns.match_queries import PATTERNS
from tests.engines.scenarios import SCENARIOS, as_bag
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bag = list[tuple[str, ...]]
Spark = Callable[..., list[Event]]

SMALL = ["mixed", "one_key"]
LOOSE = ("spread",)
"""The twin's standard deviation is rounded once, ours twice: the last bit may differ."""

# All that a pattern may need of an engine.
IN_DEPTH = [
    "match_state",
    "medians",
    "permuted",
    "unmatched",
    "absence",
    "timeouts",
    "below_and_above",
]
WIDE = [("pairs", "many_keys"), ("every_way", "one_key"), ("ties", "mixed")]
IN_MEMORY = [(query, scenario) for query in PATTERNS for scenario in SMALL]

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")


def reference(query: str, events: list[Event]) -> Bag:
    """The answer over a table in memory, which `test_tables` holds against the twin."""
    return as_bag(engines.run_table(PATTERNS[query].text, events))


@pytest.mark.parametrize(("query", "scenario"), IN_MEMORY)
def test_tables(query: str, scenario: str) -> None:
    asked, arrived = PATTERNS[query], SCENARIOS[scenario]()
    found = engines.run_table(asked.text, arrived.events())
    assert found, "a query without an answer shows nothing"
    assert as_bag(found, LOOSE) == as_bag(asked.answer(arrived.events()), LOOSE)


@pytest.mark.parametrize(("query", "scenario"), [*IN_MEMORY, ("pairs", "many_keys")])
def test_history(query: str, scenario: str, tmp_path: Path) -> None:
    arrived = SCENARIOS[scenario]()
    found = engines.run_history(PATTERNS[query].text, arrived, tmp_path)
    assert as_bag(found) == reference(query, arrived.events())


@pytest.mark.parametrize("query", PATTERNS)
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_a_worn_store(query: str, order: str, tmp_path: Path) -> None:
    arrived = SCENARIOS["mixed"]()
    db = engines.worn_store(arrived, tmp_path, order)
    # ALL ROWS PER MATCH shows the column that has come, too.
    names = reference_columns(query)
    found = [
        {name: row[name] for name in names}
        for row in engines.plain(db.sql(PATTERNS[query].text).to_arrow())
    ]
    assert as_bag(found) == reference(query, arrived.events())


def reference_columns(query: str) -> list[str]:
    return list(engines.run_table(PATTERNS[query].text, SCENARIOS["mixed"]().events())[0])


@pytest.mark.parametrize(
    ("query", "scenario"), [*IN_MEMORY, ("pairs", "many_keys"), ("every_way", "many_keys")]
)
def test_live(query: str, scenario: str, tmp_path: Path) -> None:
    arrived = SCENARIOS[scenario]()
    assert arrived.late(), "a scenario without late events shows too little"
    found = engines.run_live(PATTERNS[query].text, arrived, tmp_path)
    assert as_bag(found) == reference(query, arrived.on_time())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("query", PATTERNS)
def test_only_unbounded_patterns_warn(query: str, tmp_path: Path) -> None:
    asked, arrived = PATTERNS[query], SCENARIOS["mixed"]()
    if asked.bounded:
        engines.run_live(asked.text, arrived, tmp_path)
    else:
        with pytest.warns(UnboundedStateWarning):
            engines.run_live(asked.text, arrived, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("run", "query", "scenario"),
    [
        *((engines.run_spark_store, query, "mixed") for query in IN_DEPTH),
        *((engines.run_spark_frame, query, "mixed") for query in IN_DEPTH[::2]),
        *((engines.run_spark_frame, *wide) for wide in WIDE),
    ],
)
def test_spark_batch(
    run: Spark, query: str, scenario: str, tmp_path: Path, spark: SparkSession
) -> None:
    arrived = SCENARIOS[scenario]()
    found = run(PATTERNS[query].text, arrived, tmp_path, spark)
    assert as_bag(found) == reference(query, arrived.events())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "runs"),
    [("row_local", 2), ("absence", 1), ("timeouts", 1), ("ties", 1)],
)
def test_spark_stream(query: str, runs: int, tmp_path: Path, spark: SparkSession) -> None:
    """With two runs, the second goes on where the first was."""
    arrived = SCENARIOS["mixed"]()
    found = engines.run_spark_stream(PATTERNS[query].text, arrived, tmp_path, spark, runs)
    assert as_bag(found) == reference(query, arrived.on_time())
