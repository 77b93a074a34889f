"""Rows are handed over apart from appends: slow receivers delay nobody, and lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import eventide as ev
from eventide.api.live.row_queue import LiveRows
from eventide.api.live.subscription import Subscription
from eventide.api.result import Result
from eventide.errors import StateError, StateLimitError
from tests.api.live.kinds import KINDS, Rows, bag, database, events, expected

PLAIN = "SELECT v FROM a"


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    return database(tmp_path)


class SlowRows(Rows):
    """Receives rows, but waits at the first ones until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.go_on = Event(), Event()

    def __call__(self, rows: Result) -> None:
        """Take rows."""
        self.called.set()
        self.go_on.wait()
        super().__call__(rows)


def append(db: ev.Database, start: int, end: int, step: int = 1) -> None:
    for ts in range(start, end, step):
        for name in "ab":
            db.stream(name).append(events(range(ts, ts + step)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_receiver_delays_no_append_and_misses_nothing(db: ev.Database, kind: str) -> None:
    slow, quick = SlowRows(), Rows()
    held = db.subscribe(KINDS[kind], slow, queue_rows=5)
    other = db.subscribe(KINDS[kind], quick)
    db.stream("a").append(events(range(50)))
    db.stream("b").append(events(range(50)))
    slow.called.wait()
    for ts in range(50, 1_050):  # these return while the receiver waits
        db.stream("a").append(events([ts]))
    db.stream("b").append(events(range(50, 1_050)))
    assert slow.rows == []
    other.wait()
    assert other.counters.events > held.counters.events
    assert held.queue is not None
    assert held.queue.waiting_rows < 50 * 50
    slow.go_on.set()
    for query in (held, other):
        query.finish()
        assert (query.late_count, query.failure) == (0, None)
    assert bag(slow.rows) == bag(quick.rows) == expected(db, kind)


def test_a_queue_takes_a_step_more_than_it_holds_at_most(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.api.live.numbered.EVENTS_AT_ONCE", 50)
    slow = SlowRows()
    query = db.subscribe(PLAIN, slow, queue_rows=100)
    ev.open(db.path).stream("a").append(events(range(5_000)))  # as another process would
    slow.called.wait()
    assert not query.wait(timeout=0.2)
    assert query.queue is not None
    assert 100 <= query.queue.waiting_rows <= 150
    slow.go_on.set()
    query.finish()
    assert len(slow.rows) == 5_000


def test_several_are_held_and_readers_of_one_derived_stream_part(db: ev.Database) -> None:
    slow = [SlowRows(), SlowRows()]
    held = [db.subscribe("SELECT v FROM odd", each, queue_rows=1) for each in slow]
    quick = Rows()
    other = db.subscribe("SELECT v FROM odd", quick)
    append(db, 0, 20)
    for each in slow:
        each.called.wait()
    append(db, 20, 40)
    other.wait()
    assert len(quick.rows) > 10
    late = Rows()
    last = db.subscribe("SELECT v FROM odd", late)  # it reads the one that keeps up
    append(db, 40, 60)
    last.wait()
    assert late.rows
    for each in slow:
        each.go_on.set()
    for query in (*held, other):
        query.finish()
    last.finish()
    wanted = expected_odd(db)
    assert [row["v"] for row in quick.rows] == wanted
    assert all([row["v"] for row in each.rows] == wanted for each in slow)


def expected_odd(db: ev.Database) -> list[int]:
    return [row["v"] for row in db.sql("SELECT v FROM odd").rows()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_goes_on_where_it_was_paused(db: ev.Database, kind: str) -> None:
    rows = Rows()
    query = db.subscribe(KINDS[kind], rows)
    append(db, 0, 33, 11)
    query.pause()
    assert query.status == "paused"
    seen = query.counters.events
    append(db, 33, 66, 11)
    with pytest.raises(StateError, match="paused"):
        query.wait()
    with pytest.raises(StateError, match="paused"):
        query.advance(100)
    assert query.counters.events == seen
    query.resume()
    append(db, 66, 99, 11)
    query.finish()
    assert bag(rows.rows) == expected(db, kind)
    assert query.late_count == 0


def test_a_paused_query_that_is_finished_ends_where_it_stands(db: ev.Database) -> None:
    rows = Rows()
    query = db.subscribe(PLAIN, rows)
    append(db, 0, 3)
    query.pause()
    append(db, 3, 6)
    query.finish()
    assert len(rows.rows) == 3


def test_a_query_that_may_not_wait_fails_and_says_why(db: ev.Database) -> None:
    slow, quick = SlowRows(), Rows()
    query = db.subscribe(PLAIN, slow, queue_rows=3, full="fail")
    other = db.subscribe(PLAIN, quick)
    append(db, 0, 6)
    assert query.status == "failed"
    assert isinstance(query.failure, StateLimitError)
    assert db.queries() == (query, other)
    slow.go_on.set()
    other.finish()
    assert len(quick.rows) == 6
    assert query.queue is not None
    assert query.queue.drained(60)
    assert len(slow.rows) == query.counters.rows == 3


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_whatever_a_receiver_raises_it_is_called_again(
    db: ev.Database, error: type[BaseException]
) -> None:
    calls: list[int] = []

    def refuse(rows: Result) -> None:
        assert isinstance(rows, LiveRows)
        calls.append(rows.first_row)
        if rows.first_row != 1:
            raise error

    query = db.subscribe(PLAIN, refuse, retries=2, retry_after="0 s")
    append(db, 0, 3)
    query.finish()
    assert calls == [0, 0, 0, 1, 2, 2, 2]
    letters = db.sql("SELECT row_number, error FROM dead_letters").rows()
    assert [each["row_number"] for each in letters] == [0, 2]
    assert letters[0]["error"].startswith(error.__name__)


def test_dead_letters_that_cannot_be_stored_end_the_query(
    db: ev.Database, caplog: pytest.LogCaptureFixture
) -> None:
    db.create_stream("dead_letters", {"mine": "int64"})

    def refuse(_: Result) -> None:
        raise RuntimeError

    rows = Rows()
    query = db.subscribe(PLAIN, refuse, retries=0)
    other = db.subscribe(PLAIN, rows)
    append(db, 0, 3)
    assert query.queue is not None
    assert query.queue.drained(60)
    assert query.status == "failed"
    assert query.failure is not None
    assert "1 rows are lost" in query.failure.__notes__[0]
    assert db.queries() == (query, other)
    other.finish()
    assert len(rows.rows) == 3
    assert "has failed" in caplog.text


def test_a_receiver_of_dead_letters_that_raises_makes_no_more_of_them(db: ev.Database) -> None:
    def refuse(_: Result) -> None:
        raise RuntimeError

    query = db.subscribe(PLAIN, refuse, retries=0)
    append(db, 0, 2)
    query.wait()
    letters = db.subscribe("SELECT row FROM dead_letters", refuse, retries=0)
    append(db, 2, 8)
    query.finish()
    letters.wait(60)
    assert letters.status == "failed"
    assert len(db.stream("dead_letters")) == 8


def pause_a_while(_: ev.Database, query: Subscription) -> None:
    query.pause()
    query.resume()


INSIDE: dict[str, Callable[[ev.Database, Subscription], Any]] = {
    "cancel": lambda _, query: query.cancel(),
    "finish": lambda _, query: query.finish(),
    "wait": lambda _, query: query.wait(),
    "wait for all": lambda db, _: db.wait(),
    "advance": lambda _, query: query.advance(5),
    "subscribe": lambda db, _: db.subscribe("SELECT v FROM odd"),
    "append": lambda db, _: db.stream("a").append(events([1_000])),
    "pause": pause_a_while,
    "close": lambda db, _: db.close(),
    "repr": lambda _, query: repr(query),
}


@pytest.mark.parametrize("call", INSIDE)
@pytest.mark.parametrize("queue_rows", [1, 100])
def test_a_receiver_may_call_anything(db: ev.Database, call: str, queue_rows: int) -> None:
    """Even while its queue is full: what would wait for the receiver itself does not."""
    held: list[Subscription] = []
    ready, failures = Event(), list[BaseException]()

    def inside(_: Result) -> None:
        ready.wait()
        try:
            INSIDE[call](db, held[0])
        except BaseException as error:
            failures.append(error)

    query = db.subscribe(PLAIN, inside, queue_rows=queue_rows)
    held.append(query)
    append(db, 0, 10)
    ready.set()
    done = Thread(target=query.finish, daemon=True)
    done.start()
    done.join(120)
    assert not done.is_alive()
    assert failures == []
    assert query.failure is None
    if call != "cancel":
        # What the receiver appended may have been taken before the end.
        assert query.counters.events >= 10


def test_rows_that_wait_are_handed_over_after_a_cancel(db: ev.Database) -> None:
    slow = SlowRows()
    query = db.subscribe(PLAIN, slow)
    append(db, 0, 5)
    query.cancel()
    assert (query.status, db.queries()) == ("finished", ())
    append(db, 5, 9)
    slow.go_on.set()
    assert query.wait(60)
    assert [row["v"] for row in slow.rows] == [row["v"] for row in events(range(4))]


def test_the_end_of_a_block_hands_over_what_was_stored_in_it(db: ev.Database) -> None:
    slow = SlowRows()
    with db.subscribe(PLAIN, slow, queue_rows=1) as query:
        append(db, 0, 9)
        slow.go_on.set()
    assert query.status == "finished"
    assert len(slow.rows) == 8  # the last instant is not complete
    append(db, 9, 12)
    assert query.counters.events == 9


def test_an_error_in_a_block_waits_for_nobody(db: ev.Database) -> None:
    slow = SlowRows()
    query = db.subscribe(PLAIN, slow, queue_rows=1)

    def fail() -> None:
        with query:
            append(db, 0, 9)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert query.status == "finished"
    assert slow.rows == []
    slow.go_on.set()


def test_a_wait_ends_in_time(db: ev.Database) -> None:
    slow = SlowRows()
    query = db.subscribe(PLAIN, slow, queue_rows=1)
    append(db, 0, 4)
    assert not query.wait(0)
    assert not query.wait(0.05)
    assert not db.wait(0.05)
    slow.go_on.set()
    assert query.wait(60)
    assert len(slow.rows) == 3


def test_an_answer_waits_for_no_receiver(db: ev.Database) -> None:
    slow = SlowRows()
    query = db.subscribe("SELECT COUNT(*) AS n FROM a [RANGE 1 SECOND]", slow, queue_rows=1)
    append(db, 0, 4)
    slow.called.wait()
    append(db, 4, 8)
    assert len(query.current()) == 1
    slow.go_on.set()
