"""Standing queries of a database: what one of them does is no other's business."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide
from eventide.errors import EvaluationError, PlanError, SchemaError
from eventide.result import Result

COUNTS = "SELECT window_start, COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '10 us')"


def at(*times: int) -> list[dict[str, Any]]:
    return [{"ts": ts, "lane": ts} for ts in times]


@pytest.fixture
def db(tmp_path: Path) -> eventide.Database:
    db = eventide.open(tmp_path / "db")
    db.create_stream("cars", {"lane": "int64"})
    return db


def test_a_callback_that_raises_keeps_nothing_from_others(db: eventide.Database) -> None:
    def refuse(_: Result) -> None:
        raise RuntimeError

    counts: list[int] = []
    db.subscribe(COUNTS, refuse)
    db.subscribe(COUNTS, lambda result: counts.extend(row["n"] for row in result))
    cars = db.stream("cars")
    cars.append(at(1, 2))
    with pytest.raises(RuntimeError) as caught:
        cars.append(at(11))
    assert "stored" in caught.value.__notes__[0]
    assert len(cars) == 3
    assert counts == [2]


def test_what_a_callback_appends_comes_after_what_it_was_told(db: eventide.Database) -> None:
    #  ts      1        15              65        queries: first, second
    #          |  0-10  |  first's callback appends 65: second has yet to see 15
    def react(result: Result) -> None:
        if result.rows()[0]["n"] == 2:
            db.stream("cars").append(at(65))

    counts: list[int] = []
    db.subscribe(COUNTS, react)
    second = db.subscribe(COUNTS, lambda result: counts.extend(row["n"] for row in result))
    db.stream("cars").append(at(1, 2))
    db.stream("cars").append(at(15))
    second.finish()
    assert second.late_count == 0
    assert counts == [2, 1, 1]


def test_a_query_that_fails_is_over_and_says_why(db: eventide.Database) -> None:
    text = "SELECT lane + 9223372036854775807 AS x FROM cars"
    query = db.subscribe(text)
    cars = db.stream("cars")
    cars.append(at(1))
    with pytest.raises(EvaluationError, match="overflows") as caught:
        cars.append(at(2))
    assert text in str(caught.value)
    assert query.finished
    assert query.failure is caught.value
    cars.append(at(3))
    assert len(cars) == 3


def test_a_finished_query_ignores_what_follows(db: eventide.Database) -> None:
    query = db.subscribe(COUNTS)
    db.stream("cars").append(at(1))
    assert len(query.finish()) == 1
    assert len(query.finish()) == 0
    db.stream("cars").append(at(0))
    assert query.late_count == 0


@pytest.mark.parametrize("lateness", [5, None, "soon", "1 month"])
def test_a_lateness_that_is_none_is_refused(db: eventide.Database, lateness: Any) -> None:  # noqa: ANN401
    with pytest.raises(PlanError, match="not a length of time"):
        db.subscribe(COUNTS, lateness=lateness)


def test_late_events_are_kept_up_to_a_limit(
    db: eventide.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.subscription.LATE_ROWS_KEPT", 3)
    query = db.subscribe(COUNTS)
    db.stream("cars").append(at(100))
    for ts in range(6):
        db.stream("cars").append(at(ts))
    assert query.late_count == 6
    assert [row["seq"] for row in query.late()] == [4, 5, 6]


def test_a_seq_that_numbers_nothing_is_refused() -> None:
    with pytest.raises(SchemaError, match="column 'seq' has type string"):
        eventide.sql("SELECT x FROM s", s=pa.table({"ts": [0], "seq": ["a"], "x": [1]}))


def test_a_table_may_have_any_name_and_the_exact_one_wins() -> None:
    tables = {"text": pa.table({"ts": [0], "x": [1]}), "Text": pa.table({"ts": [0], "x": [2]})}
    assert eventide.sql("SELECT x FROM text", **tables).rows() == [{"x": 1}]
