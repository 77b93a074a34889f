"""Live queries that run as one while streams are dropped, made anew, and altered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import eventide as ev
from eventide.api.live.row_queue import LiveRows

TEXT = "SELECT symbol, price FROM trades WHERE symbol = $s AND price > 0"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[ev.Database]:
    with ev.open(tmp_path / "db") as opened:
        for stream in ("trades", "offers"):
            opened.create_stream(stream, {"symbol": "string", "price": "float64"})
        yield opened


def append(db: ev.Database, first: int, *prices: float, stream: str = "trades") -> None:
    rows = [
        {"ts": (first + i) * 1_000_000, "symbol": "a", "price": p} for i, p in enumerate(prices)
    ]
    db.stream(stream).append(rows)


def subscribed(db: ev.Database, text: str = TEXT) -> tuple[list[ev.Subscription], list[LiveRows]]:
    """Return six queries of a template, and the rows of the last one."""
    rows: list[LiveRows] = []
    queries = [db.subscribe(text, params={"s": "a"}) for _ in range(5)]
    return [*queries, db.subscribe(text, rows.append, params={"s": "a"})], rows


def prices(rows: list[LiveRows]) -> list[float]:
    return [row["price"] for each in rows for row in each.rows()]


def test_single_queries_of_other_streams_go_on_when_one_is_dropped(db: ev.Database) -> None:
    queries, rows = subscribed(db)
    others, _ = subscribed(db, TEXT.replace("trades", "offers"))
    append(db, 0, 1, 2)
    db.drop_stream("offers")
    db.live_side.delivery.look()
    append(db, 2, 3)
    assert queries[-1].wait(60)
    assert {each.status for each in others} == {"failed"}
    assert {each.status for each in queries} == {"running"}
    assert prices(rows) == [1, 2]


def test_single_queries_of_a_stream_that_was_made_anew(db: ev.Database) -> None:
    queries, _ = subscribed(db)
    append(db, 0, 1, 2)
    db.drop_stream("trades")
    db.create_stream("trades", {"symbol": "string", "price": "float64"})
    _, rows = subscribed(db)
    append(db, 0, 5, 6, 7)
    assert db.wait(60)
    assert {each.status for each in queries} == {"failed"}
    assert prices(rows) == [5, 6]


def test_the_rest_of_a_set_goes_on_when_a_stream_is_dropped(db: ev.Database) -> None:
    rows: list[LiveRows] = []
    texts = {"t": "SELECT price FROM trades", "o": "SELECT price FROM offers"}
    live = db.subscribe_many(texts, on_result=rows.append)
    append(db, 0, 1, 2)
    db.drop_stream("offers")
    db.live_side.delivery.look()
    append(db, 2, 3)
    assert live.wait(60)
    assert list(live.failures) == ["o"]
    assert (live.status, len(live), prices(rows)) == ("running", 1, [1, 2])


def test_queries_that_join_a_set_see_the_streams_as_they_are(db: ev.Database) -> None:
    rows: list[LiveRows] = []
    live = db.subscribe_many(["SELECT * FROM trades WHERE price > 0"], on_result=rows.append)
    append(db, 0, 1, 2)
    db.stream("trades").add_attribute("lane", "int64")
    live.add("SELECT * FROM trades WHERE price > 1")
    append(db, 2, 3, 4)
    live.finish()
    columns = {row["query"]: set(row) for each in rows for row in each.rows()}
    assert columns[1] - columns[0] == {"lane"}
    assert sorted(prices(rows)) == [1, 2, 3, 3, 4, 4]


def test_a_query_whose_queue_is_full_may_fail_and_the_others_go_on(db: ev.Database) -> None:
    queries, rows = subscribed(db)
    full = db.subscribe(TEXT, params={"s": "a"}, full="fail", queue_rows=2, on_result=_never)
    append(db, 0, *range(1, 9))
    append(db, 20, 9)
    assert queries[-1].wait(60)
    assert full.status == "failed"
    assert len(prices(rows)) == 8


def test_a_set_whose_queue_is_full_may_fail(db: ev.Database) -> None:
    live = db.subscribe_many(
        TEXT, [{"s": "a"}], _never, full="fail", queue_rows=2, retry_after="1 h"
    )
    append(db, 0, *range(1, 9))
    assert live.status == "failed"


def _never(rows: LiveRows) -> None:
    raise ValueError(rows)
