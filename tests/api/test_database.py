"""Live queries of a database do not affect each other."""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import eventide
from eventide.api.live_query import LiveQuery
from eventide.api.result import Result
from eventide.errors import BindError, EvaluationError, IngestError, PlanError, SchemaError

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


def test_an_interrupted_callback_keeps_nothing_from_others(db: eventide.Database) -> None:
    def interrupt(_: Result) -> None:
        raise KeyboardInterrupt

    counts: list[int] = []
    db.subscribe(COUNTS, interrupt)
    second = db.subscribe(COUNTS, lambda result: counts.extend(row["n"] for row in result))
    cars = db.stream("cars")
    cars.append(at(1, 2))
    with pytest.raises(KeyboardInterrupt):
        cars.append(at(11))
    assert counts == []  # not yet: whoever interrupts wants to wait for nobody
    with pytest.raises(KeyboardInterrupt):
        cars.append(at(21))
    assert counts == [2]
    cars.append(at(22))
    assert counts == [2, 1]
    second.finish()
    assert counts == [2, 1, 2]
    assert second.late_count == 0


def test_an_answer_takes_in_what_an_interrupt_left_waiting(db: eventide.Database) -> None:
    def interrupt(_: Result) -> None:
        raise KeyboardInterrupt

    db.subscribe("SELECT lane FROM cars", interrupt)
    text = "SELECT COUNT(*) AS n FROM cars [RANGE 1 HOUR]"
    asked, moved = db.subscribe(text), db.subscribe(text)
    with pytest.raises(KeyboardInterrupt):
        db.stream("cars").append(at(1, 2, 3))
    asked.advance(10)
    assert asked.current().rows() == [{"n": 3}]
    moved.advance(10)
    assert moved.current().rows() == [{"n": 3}]


def test_a_query_interrupted_in_a_step_is_over_and_says_so(
    db: eventide.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    counts: list[int] = []
    first = db.subscribe(COUNTS)
    second = db.subscribe(COUNTS, lambda result: counts.extend(row["n"] for row in result))
    cars = db.stream("cars")
    cars.append(at(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(type(first.engine), "take", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            cars.append(at(11))
    assert "COUNT" in caught.value.__notes__[0]
    assert first.finished
    assert not second.finished
    second.finish()
    assert counts == [2, 1]


def test_any_point_of_a_delivery_can_be_interrupted(db: eventide.Database) -> None:
    """Before each line in turn: a query sees every event once, or says that it is over."""
    cars = db.stream("cars")
    counts: list[int] = []

    def interrupt_at(line: int) -> Callable[[FrameType, str, object], Any]:
        passed = 0

        def trace(frame: FrameType, what: str, _: object) -> Any:  # noqa: ANN401
            nonlocal passed
            if not frame.f_code.co_filename.endswith(("delivery.py", "live_query.py")):
                return None
            # Python looks for no interrupt between the end of a step and its callback, nor between
            # the end of a block and that of its `with`, nor at `try`. What is not queued is
            # nobody's yet.
            calling_back = "calls_back" in frame.f_locals
            queueing = frame.f_code.co_name in ("publish", "queue", "enqueue", "<lambda>")
            queueing = queueing and not db.delivery.arrivals
            source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            leaving = source.startswith(("with ", "try:"))
            if what == "line" and not (queueing or calling_back or leaving):
                passed += 1
                if passed == line:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        return trace

    line, interrupted = 0, True
    while interrupted:
        line += 1
        begin = line * 1000
        counts.clear()
        query = db.subscribe(COUNTS, lambda result: counts.extend(row["n"] for row in result))
        cars.append(at(begin, begin + 1))
        sys.settrace(interrupt_at(line))
        try:
            cars.append(at(begin + 11))
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        query.finish()
        whole = counts == [2, 1] and query.failure is None
        assert whole or isinstance(query.failure, KeyboardInterrupt)
        assert not db.delivery.in_callback()
        assert not db.delivery.arrivals
    assert line > 20


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
    monkeypatch.setattr("eventide.api.live_query.LATE_ROWS_KEPT", 3)
    monkeypatch.setattr("eventide.api.live_query.LATE_ROWS_TOGETHER", 1)
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
    with pytest.raises(SchemaError, match="'v' of s, which the query reads") as error:
        stream.append([{"ts": 1_000_000, "w": 1}])
    assert error.value.hint is not None
    assert (query.finished, query.failure) == (True, error.value)
    assert not other.finished
    stream.append([{"ts": 2_000_000, "w": 2}])
    assert len(db.sql("SELECT * FROM s")) == 3


def test_a_query_that_begins_misses_nothing_that_is_stored_meanwhile(
    db: eventide.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, cars = LiveQuery.begin, db.stream("cars")
    threads: list[Thread] = []

    def begin_slowly(self: LiveQuery, *args: Any) -> LiveQuery:  # noqa: ANN401
        begun = begin(self, *args)
        threads.append(Thread(target=cars.append, args=(at(7),)))
        threads[0].start()
        while not db.delivery.arrivals:  # it is stored and queued, and waits for this query
            time.sleep(0.001)
        return begun

    monkeypatch.setattr(LiveQuery, "begin", begin_slowly)
    cars.append(at(5))
    query = db.subscribe("SELECT lane FROM cars [RANGE 1 HOUR]", from_history=True)
    threads[0].join()
    query.advance(10)
    assert sorted(row["lane"] for row in query.current()) == [5, 7]


def test_who_has_delivered_once_delivers_again_while_others_wait(db: eventide.Database) -> None:
    cars = db.stream("cars")
    seen: list[int] = []
    db.subscribe("SELECT lane FROM cars", lambda rows: seen.extend(row["lane"] for row in rows))
    cars.append(at(1))
    holding, go_on = Event(), Event()

    def hold() -> None:
        with db.delivery.paused():
            holding.set()
            go_on.wait()

    holder = Thread(target=hold)
    holder.start()
    holding.wait()
    assert not db.delivery.in_callback()
    go_on.set()
    cars.append(at(2))
    holder.join()
    assert seen == [1]  # 2 waits for the watermark to pass it
    cars.append(at(3))
    assert seen == [1, 2]


def test_all_failures_of_live_queries_are_mentioned(db: eventide.Database) -> None:
    def refuse(word: str) -> Callable[[Result], None]:
        def raising(_: Result) -> None:
            raise RuntimeError(word)

        return raising

    db.subscribe(COUNTS, refuse("first"))
    db.subscribe(COUNTS, refuse("second"))
    db.stream("cars").append(at(1))
    with pytest.raises(RuntimeError, match="first") as caught:
        db.stream("cars").append(at(11))
    assert any("second" in note for note in caught.value.__notes__)


def test_a_query_is_finished_before_its_last_callback(db: eventide.Database) -> None:
    def append(_: Result) -> None:
        db.stream("cars").append(at(5))

    query = db.subscribe(COUNTS, append)
    db.stream("cars").append(at(1))
    query.finish()
    assert query.finished
    assert query.late_count == 0
