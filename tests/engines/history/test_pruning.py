"""Conditions that reach the store save reading, and change no answer."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import eventide
from eventide.engines.history.pruning import value_ranges
from eventide.lang.sql import plan_sql
from eventide.store.index.ranges import ValueRange
from eventide.store.reading.scan import StoredLeaf

EVENTS = 6_000


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> eventide.Database:
    """A stream whose `level` rises steadily, and whose `noise` does not, in many leaves."""
    folder: Path = tmp_path_factory.mktemp("pruning") / "db"
    database = eventide.open(folder)
    stream = database.create_stream(
        "tank", {"level": "float64", "noise": "int64", "name": "string"}, index=["noise"]
    )
    random = np.random.default_rng(7)
    with patch("eventide.store.segments.segment_writer.LEAF_ROWS", 100):
        stream.append(
            pa.table(
                {
                    "ts": pa.array(np.arange(EVENTS) * 1_000, pa.timestamp("us")),
                    "level": pa.array(np.arange(EVENTS) / 10, mask=random.random(EVENTS) < 0.05),
                    "noise": pa.array(random.integers(0, 2_000, EVENTS)),
                    "name": pa.array(random.choice(["a", "b", "c"], EVENTS)),
                }
            )
        )
        stream.flush()
    return database


@pytest.mark.parametrize(
    ("condition", "leaves"),
    [
        ("level > 100 AND level <= 120", 4),
        ("level BETWEEN 100 AND 120 AND name = 'a'", 4),
        ("120 >= level AND 100.0 <= level", 4),
        ("level = 77.7", 1),
        ("level > 1e9", 0),
        ("noise = 1234", 20),
        ("level > 100 OR noise = 3", 60),
        ("level IS NULL", 60),
        ("level <> 5", 60),
        ("NOT level > 3", 60),
    ],
)
def test_conditions_skip_leaves_and_change_nothing(
    database: eventide.Database, condition: str, leaves: int
) -> None:
    text = f"SELECT ts, level, noise, name FROM tank WHERE {condition}"
    read: list[StoredLeaf] = []
    original = StoredLeaf.read

    def counted(self: StoredLeaf, *args: object) -> pa.RecordBatch:
        read.append(self)
        return original(self, *args)  # type: ignore[arg-type]

    with patch.object(StoredLeaf, "read", counted):
        found = database.sql(text).rows()
    assert len(read) <= leaves
    everything = database.stream("tank").events().to_arrow()
    assert found == eventide.sql(text, tank=everything).rows()


def test_only_plain_comparisons_count(database: eventide.Database) -> None:
    def ranges(condition: str) -> dict[str, ValueRange]:
        plan = plan_sql(f"SELECT ts FROM tank WHERE {condition}", database.catalog())
        return value_ranges(plan)

    assert ranges("noise > 3 AND noise < 9") == {
        "noise": ValueRange(3, 9, includes_low=False, includes_high=False)
    }
    # Of two bounds on one side any will do: the plan still has both.
    assert ranges("noise > 3 AND noise > 5")["noise"].high is None
    assert ranges("noise + 1 > 3") == {}
    assert ranges("noise > level") == {}
    assert ranges("_seq > 3") == {}
    assert "the index rules out by noise" in database.explain("SELECT ts FROM tank WHERE noise = 3")
