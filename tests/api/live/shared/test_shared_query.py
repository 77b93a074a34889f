"""Single live queries of one template run as one, each with a life of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

import eventide as ev
from eventide.api.live.row_queue import LiveRows
from eventide.api.live.shared.shared_live import SHARED_FROM
from eventide.api.live.shared.shared_query import SharedQuery
from eventide.api.live.subscription import Subscription
from eventide.errors import EvaluationError

LONG_S = 60.0
TEXT = "SELECT symbol, price FROM trades WHERE symbol = $s AND price > $least"
COUNTS = """SELECT COUNT(*) AS n FROM trades WHERE symbol = $s
            GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[ev.Database]:
    with ev.open(tmp_path / "db") as opened:
        opened.create_stream("trades", {"symbol": "string", "price": "float64"})
        yield opened


def append(db: ev.Database, first: int, *prices: float, symbol: str = "a") -> None:
    db.stream("trades").append(
        [
            {"ts": (first + i) * 1_000_000, "symbol": symbol, "price": p}
            for i, p in enumerate(prices)
        ]
    )


class Several:
    """Queries of one template with constants of their own, and their rows."""

    def __init__(self, db: ev.Database, count: int, text: str = TEXT, **options: int) -> None:
        self.rows: list[list[LiveRows]] = [[] for _ in range(count)]
        self.queries = [
            db.subscribe(text, self.rows[i].append, params=self.params(text, i), **options)  # type: ignore[arg-type]
            for i in range(count)
        ]

    def params(self, text: str, place: int) -> dict[str, object]:
        found: dict[str, object] = {"s": "ab"[place % 2]}
        return found | {"least": float(place)} if "$least" in text else found

    def values(self, place: int, column: str = "price") -> list[float]:
        return [row[column] for rows in self.rows[place] for row in rows.rows()]

    def wait(self) -> None:
        for query in self.queries:
            assert query.paused or query.wait(60)


def test_from_some_queries_of_a_template_on_they_share(db: ev.Database) -> None:
    several = Several(db, SHARED_FROM + 2)
    kinds = [type(query) for query in several.queries]
    assert kinds == [Subscription] * (SHARED_FROM - 1) + [SharedQuery] * 3
    assert db.queries() == tuple(several.queries)


def test_each_has_its_rows(db: ev.Database) -> None:
    several = Several(db, 10)
    append(db, 0, *range(12))
    append(db, 12, *range(12), symbol="b")
    append(db, 30, 0)
    several.wait()
    for place in range(10):
        assert several.values(place) == list(range(place + 1, 12))
        assert several.queries[place].counters.rows == 11 - place


def test_windows(db: ev.Database) -> None:
    several = Several(db, 6, COUNTS)
    append(db, 0, *range(12))
    append(db, 40, 0)
    several.wait()
    assert [several.values(place, "n") for place in range(6)] == [[10, 2], []] * 3


def test_one_that_is_paused_goes_on_where_it_was(db: ev.Database) -> None:
    several = Several(db, 6)
    append(db, 0, 7, 8)
    several.queries[4].pause()
    append(db, 2, 9, 10)
    several.queries[4].resume()
    append(db, 4, 11, 12)
    several.wait()
    assert several.values(4) == [7, 8, 9, 10, 11]


def test_one_that_was_paused_shares_again(db: ev.Database) -> None:
    several = Several(db, 6, COUNTS)
    query = several.queries[4]
    assert isinstance(query, SharedQuery)
    append(db, 0, 1, 2)
    query.pause()
    shared = [query.shares]
    append(db, 2, 3, 4)
    query.resume()
    assert query.wait(60)
    append(db, 4, 5)
    until = monotonic() + LONG_S
    while not query.shares and monotonic() < until:
        db.live_side.delivery.look()  # as the follower does, which may just be at it
    assert [*shared, query.shares] == [False, True]
    append(db, 40, 0)
    several.wait()
    assert several.values(4, "n") == [5]


def test_one_that_is_cancelled_leaves_the_others(db: ev.Database) -> None:
    several = Several(db, 6)
    append(db, 0, 7, 8)
    several.queries[4].cancel()
    append(db, 2, 9, 10)
    several.wait()
    assert several.values(2) == [7, 8, 9]
    assert several.queries[4].status == "finished"
    assert several.queries[4] not in db.queries()


def test_one_may_be_finished_and_advanced_by_itself(db: ev.Database) -> None:
    several = Several(db, 6, COUNTS)
    append(db, 0, 7, 8)
    several.queries[4].advance("1970-01-01 00:00:10")
    assert several.queries[4].wait(60)
    assert several.values(4, "n") == [2]
    assert several.queries[2].wait(60)
    assert several.values(2, "n") == []
    assert [row["n"] for row in several.queries[4].finish().rows()] == []
    several.queries[5].finish()


def test_a_slow_receiver_does_not_hold_up_the_others(db: ev.Database) -> None:
    going_on, got = Event(), [0]

    def slow(rows: LiveRows) -> None:
        assert going_on.wait(60)
        got[0] += len(rows)

    several = Several(db, 5)
    held = db.subscribe(TEXT, slow, params={"s": "a", "least": 0.0}, queue_rows=2)
    assert isinstance(held, SharedQuery)
    for first in range(0, 40, 4):
        append(db, first, 5, 6, 7, 8)
    append(db, 50, 0)
    several.wait()
    assert len(several.values(0)) == 40
    going_on.set()
    assert held.wait(60)
    assert got[0] == 40


def test_all_of_them_leave(db: ev.Database) -> None:
    several = Several(db, 8)
    for query in several.queries:
        query.cancel()
    assert db.queries() == ()
    assert not db.live_side.delivery.queries


def test_options_of_its_own_let_a_query_run_alone(db: ev.Database) -> None:
    several = Several(db, 6, max_state_bytes=1 << 20)
    assert {type(query) for query in several.queries} == {Subscription}


def test_events_with_a_value_that_overflows_are_never_passed_over(tmp_path: Path) -> None:
    """Pausing one counts what waits, which fails: the others fail too, and miss no event."""
    text = (
        "SELECT SUM(n * 4611686018427387904) AS s FROM numbers "
        "GROUP BY TUMBLE(ts, INTERVAL '9' DAY)"
    )
    with ev.open(tmp_path) as db:
        numbers = db.create_stream("numbers", {"n": "int64"})
        rows: list[LiveRows] = []
        queries = [db.subscribe(f"{text} HAVING COUNT(*) > {i}", rows.append) for i in range(6)]
        numbers.append([{"ts": 0, "n": 0}])
        numbers.append([{"ts": 1, "n": 3}, {"ts": 2, "n": 0}])
        with pytest.raises(EvaluationError, match="overflows"):
            queries[-1].pause()
        numbers.append([{"ts": "1971-01-01", "n": 0}])
        assert all(isinstance(each.failure, EvaluationError) for each in queries)
        assert not rows
