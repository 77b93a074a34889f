"""Sets of live queries: what they are asked for, their rows, and how queries come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Event, Thread
from time import sleep

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.live.follower import FOLLOWER
from eventide.api.live.query import LiveQuery
from eventide.api.live.row_queue import LiveRows
from eventide.api.live.shared import live_set
from eventide.api.live.shared.asked import AskedQueries
from eventide.api.live.shared.sets import PlannedSet
from eventide.errors import BindError, IngestError, SchemaError, StateError, StoreError

TEXT = "SELECT symbol, price FROM trades WHERE symbol = $symbol AND price > $least"
ROWS = [{"symbol": "a", "least": 5}, {"symbol": "b", "least": 2.5}, {"symbol": "a", "least": 8}]


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


def pairs(rows: list[LiveRows]) -> list[tuple[object, float]]:
    found = [row for each in rows for row in each.rows()]
    return [(row["query"], row["price"]) for row in found]


def test_a_query_for_each_row_of_a_table(db: ev.Database) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many(TEXT, ROWS, got.append)
    append(db, 0, 4, 6, 9)
    append(db, 3, 3, symbol="b")
    live.finish()
    assert sorted(pairs(got)) == [(0, 6), (0, 9), (1, 3), (2, 9)]


def test_tables_of_any_kind(db: ev.Database) -> None:
    table = pa.table({"symbol": ["a"], "least": [1.0], "unused": [3]})
    assert len(db.subscribe_many(TEXT, table)) == 1
    assert len(db.subscribe_many(TEXT, table.to_pandas())) == 1


def test_queries_come_and_go_while_events_flow(db: ev.Database) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many(TEXT, ROWS[:1], got.append)
    append(db, 0, 10)
    assert live.add(TEXT, ROWS[1:]) == range(1, 3)
    append(db, 1, 11, 12)
    live.advance("1970-01-01 00:00:02.5")
    live.drop(0)
    append(db, 3, 13)
    live.finish()
    assert sorted(pairs(got)) == [(0, 10), (0, 11), (0, 12), (2, 11), (2, 12), (2, 13)]


def test_a_set_follows_other_processes_from_its_first_query_on(db: ev.Database) -> None:
    live = db.subscribe_many([])
    live.pulled()
    while FOLLOWER.follows(db.live_side.delivery):  # a set without queries has nothing to follow
        FOLLOWER.wake()
        sleep(0.001)
    live.add(TEXT, ROWS[:1])
    with ev.open(db.store.path) as other:
        append(other, 0, 10, 11)
    rows = live.next(timeout=60)
    assert rows is not None
    assert pairs([rows]) == [(0, 10)]


def test_names(db: ev.Database) -> None:
    got: list[LiveRows] = []
    texts = {
        "dear": "SELECT price FROM trades WHERE price > 5",
        "count": "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)",
        "standing": "SELECT COUNT(*) AS n FROM trades [RANGE 5 SECONDS]",
    }
    live = db.subscribe_many(texts, on_result=got.append)
    append(db, 0, 4, 6)
    live.finish()
    found = {row["query"] for rows in got for row in rows.rows()}
    assert found == {"dear", "count", "standing"}
    assert got[0].columns[0] == "query"


def test_no_query_of_a_set_begins_if_one_is_wrong(db: ev.Database) -> None:
    with pytest.raises(BindError) as error:
        db.subscribe_many({"good": "SELECT price FROM trades", "bad": "SELECT prize FROM trades"})
    assert "in the query 'bad'" in error.value.__notes__
    assert not db.queries()


@pytest.mark.parametrize(
    ("queries", "parameters", "message"),
    [
        (TEXT, [{"symbol": "a"}], "no column 'least' in the table of parameters"),
        (["SELECT price FROM trades"], [{"x": 1}], "parameters go with one text"),
        (TEXT, pa.table([[1], [2], [3]], ["symbol", "least", "least"]), "2 columns 'least'"),
        (5, None, "texts, not int"),
        ({1: "SELECT price FROM trades", "1": "SELECT symbol FROM trades"}, None, "are called '1'"),
    ],
)
def test_wrong_calls(db: ev.Database, queries: object, parameters: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        db.subscribe_many(queries, parameters)  # type: ignore[arg-type]


def test_a_query_that_is_not_there(db: ev.Database) -> None:
    live = db.subscribe_many({"dear": "SELECT price FROM trades WHERE price > 5"})
    with pytest.raises(SchemaError, match="no query 'deer'"):
        live.drop("deer")
    with pytest.raises(SchemaError, match="already"):
        live.add({"dear": "SELECT price FROM trades"})
    live.cancel()
    with pytest.raises(StateError, match="finished"):
        live.add({"other": "SELECT price FROM trades"})


def test_a_query_without_an_answer_leaves_and_the_others_go_on(db: ev.Database) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many(
        {
            "fails": "SELECT price FROM trades WHERE CAST(symbol AS BIGINT) > 3",
            "goes on": "SELECT price FROM trades WHERE price > 5",
        },
        on_result=got.append,
    )
    append(db, 0, 6, 7)
    append(db, 2, 8, 9)
    live.finish()
    assert list(live.failures) == ["fails"]
    assert [price for _, price in pairs(got)] == [6, 7, 8, 9]


def test_events_of_other_processes_and_what_was_stored_before(db: ev.Database) -> None:
    append(db, 0, 100)
    got: list[LiveRows] = []
    live = db.subscribe_many(TEXT, ROWS, got.append)
    with ev.open(db.store.path) as other:
        append(other, 1, 6)
    assert live.wait(30)
    live.finish()
    assert pairs(got) == [(0, 6)]


def test_a_set_can_be_paused(db: ev.Database) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many(TEXT, ROWS[:1], got.append)
    live.pause()
    append(db, 0, 6, 7)
    assert not got
    live.resume()
    live.finish()
    assert pairs(got) == [(0, 6), (0, 7)]


def test_a_set_that_is_paused_takes_no_events_to_add_queries(db: ev.Database) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many(TEXT, ROWS[:1], got.append)
    live.pause()
    append(db, 0, 6)
    with pytest.raises(StateError, match="paused: new queries"):
        live.add(TEXT, ROWS)
    assert live.counters.events == 0
    live.resume()
    assert live.add(TEXT, ROWS) == range(1, 4)
    live.finish()
    assert pairs(got) == [(0, 6)]


def test_rows_may_be_pulled(db: ev.Database) -> None:
    live = db.subscribe_many(TEXT, ROWS[:1])
    live.pulled()
    append(db, 0, 6, 7, 8)
    rows = live.next(timeout=30)
    assert rows is not None
    assert [row["price"] for row in rows.rows()] == [6, 7]


def test_it_is_listed_with_its_numbers(db: ev.Database) -> None:
    live = db.subscribe_many(TEXT, ROWS)
    append(db, 0, 6, 7)
    (found,) = db.queries()
    assert found is live
    metrics = live.metrics()
    assert metrics["status"] == "running"
    assert metrics["events_in"] == 2
    assert "3 queries" in repr(live)
    assert "index of trades: 3 conditions" in db.explain_all()


def test_a_text_that_is_added_again_is_planned_anew_if_a_name_means_something_else(
    db: ev.Database,
) -> None:
    live = db.subscribe_many(TEXT, ROWS)
    text = "SELECT * FROM orders WHERE price > $least"
    for columns in ({"price": "float64"}, {"price": "float64", "amount": "int64"}):
        db.create_stream("orders", columns)
        live.add(text, [{"least": 1.0}, {"least": 2.0}])
        assert live.many.shared[-1].engine.shared.leaves[0].schema.names[2:] == [*columns]
        live.drop([live.following - 2, live.following - 1])
        db.drop_stream("orders")


def test_a_name_is_free_again_once_its_query_has_left(db: ev.Database) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many({"a": "SELECT price FROM trades WHERE price > 5"}, None, got.append)
    live.drop("a")
    live.add({"a": "SELECT price FROM trades WHERE price > 7"})
    append(db, 0, 6, 8)
    live.finish()
    assert pairs(got) == [("a", 8)]
    assert live.names == {1: "a"}


def test_what_each_query_costs(db: ev.Database) -> None:
    totals = """SELECT symbol, COUNT(*) AS n FROM trades WHERE price > 1
                GROUP BY symbol, TUMBLE(ts, INTERVAL '10' SECOND) HAVING COUNT(*) > {}"""
    standing = "SELECT COUNT(*) AS n FROM trades [ROWS 3]"
    texts = [f"SELECT price FROM trades WHERE price > {least}" for least in (0, 5, 100)]
    live = db.subscribe_many([*texts, totals.format(1), totals.format(2), standing], None)
    append(db, 0, *range(10))
    append(db, 30, 1)
    live.advance("1970-01-01 00:01:00")
    costs = {row["query"]: row for row in live.costs().rows()}
    assert [costs[number]["rows_in"] for number in range(3)] == [10, 4, 0]
    assert [costs[number]["rows_out"] for number in range(5)] == [10, 4, 0, 1, 1]
    assert costs[0]["seconds"] > costs[1]["seconds"] > costs[2]["seconds"] == 0
    assert costs[3]["seconds"] > 0
    assert all(each["bytes"] > 0 for each in costs.values())
    kept = sum(each["bytes"] for each in costs.values())
    assert 0.5 < kept / sum(size.bytes for _, size in live.sizes()) < 2


def test_the_queries_that_remember_most_leave_when_all_remember_too_much(db: ev.Database) -> None:
    got: list[LiveRows] = []
    long = """SELECT symbol, SUM(price) OVER (PARTITION BY symbol ORDER BY ts
              RANGE BETWEEN INTERVAL '{}' DAY PRECEDING AND CURRENT ROW) AS total FROM trades"""
    live = db.subscribe_many(
        {"short": "SELECT price FROM trades WHERE price > 1", "long": long.format(1)},
        None,
        got.append,
        max_state_bytes=200_000,
    )
    for first in range(0, 30_000, 3_000):
        append(db, first, *range(3_000))
    assert live.wait(60)
    assert list(live.failures) == ["long"]
    assert "200,000" in str(live.failures["long"])
    assert len(live) == 1
    # Two of each 3,000 have a price that is too small, and the last one is not complete.
    assert sum(row["query"] == "short" for each in got for row in each.rows()) == 29_979
    live.cancel()


def test_queries_that_two_threads_add_at_once_have_numbers_of_their_own(
    db: ev.Database,
) -> None:
    live = db.subscribe_many([])
    added: list[int] = []
    planned = live.planner.plan

    def slowly(wanted: AskedQueries, first: int) -> PlannedSet:
        found = planned(wanted, first)
        sleep(0.01)  # the other thread has its turn
        return found

    live.planner.plan = slowly  # type: ignore[method-assign]

    def add() -> None:
        for _ in range(3):
            added.extend(live.add(TEXT, ROWS))

    threads = [Thread(target=add) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(added) == list(range(18))
    assert len(live) == 18


def test_the_names_of_queries_are_known_before_their_first_row(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many({}, None, got.append)
    begin_more = live.delivery.begin_more

    def and_rows_at_once(
        query: LiveQuery, streams: Iterable[str], begin: Callable[[Mapping[str, int]], None]
    ) -> None:
        begin_more(query, streams, begin)
        append(db, 0, 10, 11)

    monkeypatch.setattr(live.delivery, "begin_more", and_rows_at_once)
    live.add({"one": "SELECT symbol, price FROM trades WHERE price > 1"})
    live.finish()
    assert pairs(got) == [("one", 10), ("one", 11)]


def test_numbers_of_queries_may_be_those_of_numpy(db: ev.Database) -> None:
    live = db.subscribe_many(TEXT, ROWS)
    live.drop(np.int64(0))  # type: ignore[arg-type]
    live.drop(np.array([1]))
    assert len(live) == 1
    with pytest.raises(SchemaError, match=r"no query 1\.5"):
        live.drop(1.5)  # type: ignore[arg-type]


def test_no_parameters_are_no_queries_yet(db: ev.Database) -> None:
    live = db.subscribe_many(TEXT, [])
    assert live.add(TEXT, ROWS) == range(3)


def test_an_error_says_in_which_query_it_is(db: ev.Database) -> None:
    with pytest.raises(BindError) as error:
        db.subscribe_many(["SELECT price FROM trades", "SELECT prise FROM trades"])
    assert error.value.__notes__[-1] == "in the query 1"
    with pytest.raises(IngestError) as wrong:
        db.subscribe_many(TEXT, 5)
    assert wrong.value.__notes__[-1] == "in the table of parameters"


def test_names_of_parameters_in_any_language(db: ev.Database) -> None:
    assert len(db.subscribe_many("SELECT price FROM trades WHERE price > $über", {"über": [1]}))


def test_queries_may_have_a_column_query_themselves(db: ev.Database) -> None:
    got: list[LiveRows] = []
    live = db.subscribe_many(["SELECT price AS query FROM trades"], None, got.append)
    assert live.output_schema.names == ["_query", "query"]
    append(db, 0, 10)
    live.finish()
    assert [row for each in got for row in each.rows()] == [{"_query": 0, "query": 10}]


def test_texts_of_a_set_may_publish_streams(db: ev.Database) -> None:
    text = "SELECT price AS paid FROM FILTER {price > $least} (trades) PUBLISH dear"
    db.subscribe_many(text.replace("$least", "5"))
    assert "dear" in db.streams()
    with pytest.raises(StoreError, match="dear exists already"):
        db.subscribe_many([text.replace("$least", "6")])
    assert len(db.subscribe_many({"all": "SELECT paid FROM dear"})) == 1


def test_a_set_with_a_slow_receiver_takes_no_events_because_of_an_addition(
    db: ev.Database,
) -> None:
    go_on, got = Event(), list[LiveRows]()

    def slow(rows: LiveRows) -> None:
        go_on.wait(60)
        got.append(rows)

    live = db.subscribe_many(TEXT, ROWS[:1], slow, queue_rows=2)
    append(db, 0, 6, 7, 8)
    append(db, 3, 9, 10)
    append(db, 5, 11, 12)
    taken = live.counters.events
    added: list[range] = []
    adding = Thread(target=lambda: added.append(live.add(TEXT, ROWS[:1])))
    adding.start()
    adding.join(0.2)
    assert (live.counters.events, added) == (taken, [])
    go_on.set()
    adding.join(60)
    assert added == [range(1, 2)]
    append(db, 7, 13, 1)
    live.finish()
    assert sorted(pairs(got)) == [*((0, price) for price in range(6, 14)), (1, 13)]


def test_a_receiver_may_add_queries(db: ev.Database) -> None:
    got: list[LiveRows] = []

    def receive(rows: LiveRows) -> None:
        if not got:
            live.add("SELECT price FROM trades WHERE price > 100")
        got.append(rows)

    live = db.subscribe_many("SELECT price FROM trades WHERE price > 10", None, receive)
    append(db, 0, 11, 12, 13)
    assert live.wait(60)
    append(db, 3, 200, 1)
    live.finish()
    assert sorted(pairs(got)) == [(0, 11), (0, 12), (0, 13), (0, 200), (1, 200)]


def test_of_many_failures_the_newest_are_kept(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_set, "FAILURES_KEPT", 3)
    fails = "SELECT price FROM trades WHERE CAST(symbol AS BIGINT) > $n"
    live = db.subscribe_many(fails, [{"n": number} for number in range(5)])
    append(db, 0, 1, 2)
    assert list(live.failures) == [2, 3, 4]
    assert live.failed_count == 5
    assert len(live) == 0


def test_the_wall_clock_moves_a_set_whose_streams_are_silent(db: ev.Database) -> None:
    got, clock = list[LiveRows](), ev.ManualClock()
    count = "SELECT COUNT(*) AS price FROM trades GROUP BY TUMBLE(ts, INTERVAL '2' SECOND)"
    live = db.subscribe_many([count], None, got.append, idle="5 s", clock=clock)
    append(db, 0, 1, 2)
    assert live.wait(60)
    assert pairs(got) == []
    clock.advance("10 s")
    assert live.wait(60)
    assert pairs(got) == [(0, 2)]


def test_no_group_is_locked_when_a_set_hears_that_all_is_taken(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may look for its group then, while somebody who changes groups waits for this one."""
    live = db.subscribe_many(TEXT, ROWS)
    group = live.delivery.group_of(live)
    assert group is not None
    free: list[bool] = []

    def look() -> None:
        with_lock = group.stepping.acquire(timeout=1)
        free.append(with_lock)
        if with_lock:
            group.stepping.release()

    def brought() -> None:
        other = Thread(target=look)
        other.start()
        other.join()

    monkeypatch.setattr(live, "brought", brought)
    append(db, 0, 1)
    assert live.wait(60)
    assert free
    assert all(free)
