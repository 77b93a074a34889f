"""Live queries of a database do not affect each other."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide
from eventide.api.live.query import LiveQuery
from eventide.api.live.row_queue import LiveRows
from eventide.api.result import Result
from eventide.engines.live.engine import LiveEngine
from eventide.errors import BindError, EvaluationError, IngestError, PlanError, SchemaError

COUNTS = "SELECT window_start, COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '10 us')"


def at(*times: int) -> list[dict[str, Any]]:
    return [{"ts": ts, "lane": ts} for ts in times]


@pytest.fixture
def db(tmp_path: Path) -> eventide.Database:
    db = eventide.open(tmp_path / "db")
    db.create_stream("cars", {"lane": "int64"})
    return db


def counted(counts: list[int]) -> Callable[[Result], None]:
    return lambda result: counts.extend(row["n"] for row in result)


def refuse(_: Result) -> None:
    message = "no"
    raise RuntimeError(message)


def test_a_receiver_that_raises_keeps_nothing_from_others(db: eventide.Database) -> None:
    counts: list[int] = []
    failing = db.subscribe(COUNTS, refuse, retries=1, retry_after="0 s")
    db.subscribe(COUNTS, counted(counts))
    cars = db.stream("cars")
    cars.append(at(1, 2))
    cars.append(at(11))
    db.wait()
    assert counts == [2]
    assert failing.status == "running"
    (letter,) = db.sql("SELECT * FROM dead_letters").rows()
    assert letter["row"] == '{"window_start": "1970-01-01T00:00:00Z", "n": 2}'
    assert letter["row_number"] == 0
    assert letter["error"] == "RuntimeError: no"
    assert letter["text"] == COUNTS


def test_a_receiver_that_raises_once_gets_the_same_rows_again(db: eventide.Database) -> None:
    calls: list[tuple[int, list[dict[str, Any]]]] = []

    def sometimes(rows: Result) -> None:
        assert isinstance(rows, LiveRows)
        calls.append((rows.first_row, rows.rows()))
        if len(calls) % 2:
            raise RuntimeError

    query = db.subscribe("SELECT lane FROM cars", sometimes, retry_after="0 s")
    for ts in range(4):
        db.stream("cars").append(at(ts))
    query.finish()
    # Rows of the newest instant wait for others of it.
    expected = [(ts, [{"lane": ts}]) for ts in (0, 1, 2, 3)]
    assert calls[::2] == calls[1::2] == expected
    assert "dead_letters" not in db.streams()


@pytest.mark.parametrize("interrupts", [1, 2])
def test_a_step_is_cut_short_by_the_second_interrupt_only(
    db: eventide.Database, monkeypatch: pytest.MonkeyPatch, interrupts: int
) -> None:
    counts: list[int] = []
    first = db.subscribe(COUNTS)
    second = db.subscribe(COUNTS, counted(counts))
    cars = db.stream("cars")
    cars.append(at(1, 2))
    take, sent = LiveEngine.take, 0

    def interrupted(*given: Any) -> Any:  # noqa: ANN401
        nonlocal sent
        if sent < interrupts:
            sent += 1
            os.kill(os.getpid(), signal.SIGINT)
        return take(*given)

    # A shell lets processes in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patch:
        patch.setattr(LiveEngine, "take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cars.append(at(11))
    signal.signal(signal.SIGINT, before)
    assert len(first.finish()) == 1
    assert first.counters.rows == 2
    if interrupts == 1:
        second.finish()
        assert counts == [2, 1]
    else:
        assert second.status == "failed"
        assert isinstance(second.failure, KeyboardInterrupt)


def test_a_query_that_fails_is_over_and_says_why(db: eventide.Database) -> None:
    text = "SELECT lane + 9223372036854775807 AS x FROM cars"
    query = db.subscribe(text)
    other = db.subscribe("SELECT lane FROM cars")
    cars = db.stream("cars")
    cars.append(at(1))
    cars.append(at(2))
    assert query.status == "failed"
    assert isinstance(query.failure, EvaluationError)
    assert "overflows" in str(query.failure)
    assert text in str(query.failure)
    cars.append(at(3))
    assert len(cars) == 3
    assert other.status == "running"
    assert db.queries() == (query, other)


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
    monkeypatch.setattr("eventide.api.live.late.LATE_ROWS_KEPT", 3)
    monkeypatch.setattr("eventide.api.live.late.LATE_ROWS_TOGETHER", 1)
    query = db.subscribe(COUNTS)
    db.stream("cars").append(at(100))
    for ts in range(6):
        db.stream("cars").append(at(ts))
    assert query.late_count == 6
    assert [row["_seq"] for row in query.late()] == [4, 5, 6]


def test_a_table_may_have_any_name_and_the_exact_one_wins() -> None:
    tables = {"text": pa.table({"ts": [0], "x": [1]}), "Text": pa.table({"ts": [0], "x": [2]})}
    assert eventide.sql("SELECT x FROM text", **tables).rows() == [{"x": 1}]


@pytest.mark.parametrize(
    "events",
    [
        [{"ts": "1970-01-01T00:00:01", "x": 2}, {"ts": 2_000_000, "x": 2.5, "y": "b"}],
        {"ts": ["1970-01-01T00:00:01Z", "1970-01-01T00:00:02"], "x": [2, 2.5], "y": [None, "b"]},
        (
            {"ts": datetime(1970, 1, 1, 0, 0, 1), "x": 2},
            {"y": "b", "x": 2.5, "ts": "1970-01-01 00:00:02"},
        ),
    ],
    ids=["a list of dicts", "a dict of lists", "a tuple of dicts"],
)
def test_events_may_be_plain_python(events: object) -> None:
    rows = eventide.sql("SELECT epoch(ts) AS at, x, y FROM s ORDER BY ts", s=events).rows()
    assert rows == [{"at": 1.0, "x": 2.0, "y": None}, {"at": 2.0, "x": 2.5, "y": "b"}]


def test_a_dict_is_one_event() -> None:
    assert eventide.sql("SELECT x FROM s", s={"ts": 0, "x": "a"}).rows() == [{"x": "a"}]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "no columns"),
        ({}, "no columns"),
        ([1], "row 0 is int"),
        ({"ts": [0, 1], "x": [1]}, "differ in length"),
        ([{"ts": 0}, {"ts": "soon"}], "row 1, column 'ts'"),
        ([{"ts": 0}, {"x": 1}], "null is not a time"),
        ("cars", "cannot read events from str"),
    ],
)
def test_events_that_are_no_table_are_refused(events: object, said: str) -> None:
    with pytest.raises((IngestError, SchemaError), match=said):
        eventide.sql("SELECT ts FROM s", s=events)


def test_a_query_over_no_table_says_how_to_pass_one() -> None:
    with pytest.raises(BindError, match=r"no stream 'prices'[\s\S]*ev.sql\(text, prices=table\)"):
        eventide.sql("SELECT price FROM prices")
    with pytest.raises(BindError, match=r"ev.sql\(text, \*\*\{'my prices': table\}\)"):
        eventide.sql('SELECT price FROM "my prices"')


@pytest.mark.parametrize("again", [None, "string"], ids=["dropped", "of another type"])
def test_a_query_over_what_a_stream_no_longer_has_is_over(
    tmp_path: Path, again: str | None
) -> None:
    db = eventide.open(tmp_path / "changing")
    stream = db.create_stream("s", {"v": "float64", "w": "int64"})
    query = db.subscribe("SELECT v FROM s WHERE v > 0")
    other = db.subscribe("SELECT w FROM s")
    stream.append([{"ts": 0, "v": 1.0, "w": 1}])
    stream.drop_attribute("v")
    if again is not None:
        stream.add_attribute("v", again)
    stream.append([{"ts": 1_000_000, "w": 1}])
    assert query.status == "failed"
    assert isinstance(query.failure, SchemaError)
    assert "'v' of s, which the query reads" in str(query.failure)
    assert query.failure.hint is not None
    assert other.status == "running"
    stream.append([{"ts": 2_000_000, "w": 2}])
    assert len(db.sql("SELECT * FROM s")) == 3


def test_a_query_that_begins_misses_nothing_that_is_stored_meanwhile(
    db: eventide.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, cars = LiveQuery.begin, db.stream("cars")

    def begin_slowly(self: LiveQuery, *args: Any) -> None:  # noqa: ANN401
        begin(self, *args)
        cars.append(at(7))

    monkeypatch.setattr(LiveQuery, "begin", begin_slowly)
    cars.append(at(5))
    query = db.subscribe("SELECT lane FROM cars [RANGE 1 HOUR]", from_history=True)
    query.advance(10)
    assert sorted(row["lane"] for row in query.current()) == [5, 7]


def test_a_receiver_may_append(db: eventide.Database) -> None:
    def react(result: Result) -> None:
        if result.rows()[0]["n"] == 2:
            db.stream("cars").append(at(65))

    counts: list[int] = []
    first = db.subscribe(COUNTS, react)
    second = db.subscribe(COUNTS, counted(counts))
    db.stream("cars").append(at(1, 2))
    db.stream("cars").append(at(15))
    first.wait()
    second.finish()
    assert second.late_count == 0
    assert counts == [2, 1, 1]


def test_a_query_is_finished_before_its_last_rows_are_received(db: eventide.Database) -> None:
    def append(_: Result) -> None:
        db.stream("cars").append(at(5))

    query = db.subscribe(COUNTS, append)
    db.stream("cars").append(at(1))
    assert len(query.finish()) == 1
    assert len(db.stream("cars")) == 2
    assert query.status == "finished"
