"""A bound for what all live queries of a database remember together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import eventide as ev
from eventide.api.live import memory
from eventide.errors import SchemaError, StateLimitError

LONG = """SELECT car, SUM(speed) OVER (PARTITION BY car ORDER BY ts
          RANGE BETWEEN INTERVAL '9' DAY PRECEDING AND CURRENT ROW) AS total FROM cars
          WHERE speed > $n"""
SHORT = "SELECT speed FROM cars WHERE speed > $n"
BOUND = 400_000


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ev.Database]:
    monkeypatch.setattr(memory, "EVERY_S", 0.0)
    monkeypatch.setattr(memory, "SHARE", 0)
    db = ev.open(tmp_path)
    db.create_stream("cars", {"car": "string", "speed": "float64"}, durability="none")
    return lambda: ev.open(tmp_path, max_state_bytes=f"{BOUND} B")


def drive(db: ev.Database, count: int = 30_000) -> None:
    for start in range(0, count, 2_000):
        batch = [{"ts": each, "car": "a", "speed": 9.0} for each in range(start, start + 2_000)]
        db.stream("cars").append(batch)


def remembered(db: ev.Database) -> int:
    return sum(memory.bytes_of(query) for query in db.delivery.queries)


def test_the_query_that_remembers_most_fails_and_the_others_go_on(
    opened: Callable[[], ev.Database],
) -> None:
    with opened() as db:
        got: list[float] = []
        short = db.subscribe(
            SHORT, lambda rows: got.extend(row["speed"] for row in rows), params={"n": 1}
        )
        long, kept = (db.subscribe(LONG, params={"n": n}) for n in (1, 8))
        named = db.subscribe(LONG, params={"n": 1}, name="long")
        drive(db)
        assert short.wait(60)
        failed = [query for query in db.queries() if query.status == "failed"]
        assert failed
        assert short not in failed
        assert {id(each) for each in failed} <= {id(each) for each in (long, kept, named)}
        for query in failed:
            assert isinstance(query.failure, StateLimitError)
        message = str(failed[0].failure)
        assert f"more than the {BOUND:,} that they may together" in message
        assert "the largest are " in message
        assert "long (" in message
        assert remembered(db) <= BOUND
        assert len(got) == 29_999
        # A durable query that has failed goes on where it was, once there is room.
        if named in failed:
            assert db.subscribe(LONG, params={"n": 1}, name="long").counters.rows > 0


@pytest.mark.parametrize("name", [None, "kept"])
def test_of_a_set_those_leave_that_remember_most(
    opened: Callable[[], ev.Database], name: str | None
) -> None:
    with opened() as db:
        texts = {
            "long": LONG.replace("$n", "1"),
            "longer": LONG.replace("$n", "2"),
            "short": SHORT.replace("$n", "1"),
        }
        live = db.subscribe_many(texts, name=name)
        drive(db)
        assert live.wait(60)
        assert list(live.failures) == ["long", "longer"]
        assert "2 alike, the first of which is long" in str(live.failures["long"])
        assert len(live) == 1
        assert live.status == "running"
        assert remembered(db) <= BOUND
    if name is not None:
        with opened() as db:
            assert list(db.subscribe_many([], name=name).texts) == ["short"]


def test_single_queries_that_run_as_one_fail_together(opened: Callable[[], ev.Database]) -> None:
    with opened() as db:
        queries = [db.subscribe(LONG, params={"n": n % 3}) for n in range(7)]
        other = db.subscribe(SHORT, params={"n": 1})
        drive(db)
        assert other.wait(60)
        assert {query.status for query in queries[3:]} == {"failed"}
        assert other.status == "running"
        assert remembered(db) <= BOUND


def test_a_bound_is_a_size(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="max_state_bytes is 'much'"):
        ev.open(tmp_path, max_state_bytes="much")
