"""Queries that change groups: any order of appends, pauses and full queues gives the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live.running import RunningStream
from eventide.api.live.subscription import Subscription
from eventide.api.result import Result
from eventide.engines.standing.choice import best_plan
from tests.api.live.kinds import KINDS, Rows, bag, database, events, expected


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    return database(tmp_path)


class GatedRows(Rows):
    """Receives rows while its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()
        self.gate.set()

    def __call__(self, rows: Result) -> None:
        """Take rows."""
        self.gate.wait()
        super().__call__(rows)


class Setting:
    """A database that two processes append to, and a query of each kind, twice."""

    def __init__(self, path: Path) -> None:
        self.db = database(path)
        self.other = ev.open(self.db.path)
        self.gated = {kind: GatedRows() for kind in KINDS}
        self.never_held = {kind: Rows() for kind in KINDS}
        self.held: dict[str, Subscription] = {}
        self.queries: list[Subscription] = []
        for kind, text in KINDS.items():
            self.held[kind] = self.db.subscribe(text, self.gated[kind], queue_rows=2)
            self.queries.append(self.db.subscribe(text, self.never_held[kind]))
        self.next = {"a": 0, "b": 0}

    def do(self, what: str, which: str, count: int) -> None:
        """Append so many events to a stream, or hold one of the queries, or let it go on."""
        if what in ("here", "there"):
            stream = "b" if which in ("join", "named") else "a"
            start = self.next[stream]
            self.next[stream] += count
            db = self.db if what == "here" else self.other
            db.stream(stream).append(events(range(start, start + count)))
        elif what == "pause":
            self.held[which].pause()
        elif what == "resume":
            self.held[which].resume()
        elif what == "shut":
            self.gated[which].gate.clear()
        else:
            self.gated[which].gate.set()

    def finish(self) -> None:
        """Let all queries go on, and finish them."""
        for rows in self.gated.values():
            rows.gate.set()
        for query in self.held.values():
            query.resume()
        for query in (*self.held.values(), *self.queries):
            query.finish()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["here", "here", "there", "there", "pause", "resume", "shut", "open"]),
        st.sampled_from(list(KINDS)),
        st.integers(1, 40),
    ),
    max_size=30,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_held_queries_give_the_rows_of_those_that_never_are(
    steps: Sequence[tuple[str, str, int]],
) -> None:
    with TemporaryDirectory() as folder:
        setting = Setting(Path(folder))
        try:
            for step in steps:
                setting.do(*step)
        finally:
            setting.finish()
        for kind in KINDS:
            wanted = expected(setting.db, kind)
            assert bag(setting.gated[kind].rows) == wanted, kind
            assert bag(setting.never_held[kind].rows) == wanted, kind
        for query in (*setting.held.values(), *setting.queries):
            assert (query.failure, query.late_count) == (None, 0)


TIMES = st.lists(st.integers(0, 60), min_size=1, max_size=20)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["here", "there", "pause", "resume"]), TIMES)))
def test_every_event_is_taken_or_late(steps: Sequence[tuple[str, Sequence[int]]]) -> None:
    with TemporaryDirectory() as folder:
        db = database(Path(folder))
        other = ev.open(db.path)
        rows, counts = Rows(), Rows()
        plain = db.subscribe("SELECT _seq FROM a", rows, queue_rows=3)
        window = db.subscribe(KINDS["window"], counts, lateness="10 us")
        for what, times in steps:
            if what in ("pause", "resume"):
                getattr(plain, what)()
                getattr(window, what)()
            else:
                (db if what == "here" else other).stream("a").append(events(times))
        for query in (plain, window):
            query.resume()
            query.finish()
        total = len(db.stream("a"))
        numbers = [row["_seq"] for row in (*rows.rows, *plain.late().rows())]
        assert sorted(numbers) == list(range(total))
        assert plain.late_count == len(plain.late())
        assert sum(row["n"] for row in counts.rows) + window.late_count == total


@pytest.mark.usefixtures("unfollowed")
def test_a_group_that_has_been_merged_takes_no_step(db: ev.Database) -> None:
    """Two threads may bring the same query back: who comes second finds nothing to do."""
    query = db.subscribe("SELECT v FROM a")
    query.pause()
    db.stream("a").append(events(range(10)))
    group = db.delivery.group_of(query)
    assert group is not None
    assert group is not db.delivery.together
    query.resume()
    assert db.delivery.caught_up(group)
    assert db.delivery.group_of(query) is db.delivery.together
    ev.open(db.path).stream("a").append(events(range(10, 20)))
    db.delivery.caught_up(group)
    assert query.counters.events == 10
    query.finish()
    assert query.counters.events == 20


def test_a_query_is_not_finished_in_the_midst_of_a_step(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its group has moved on, but the query itself has yet to take the events."""
    taking, go_on = Event(), Event()
    take = Subscription.take_delivered

    def slowly(self: Subscription, *args: Any) -> Result:  # noqa: ANN401
        taking.set()
        go_on.wait()
        return take(self, *args)

    monkeypatch.setattr(Subscription, "take_delivered", slowly)
    query = db.subscribe("SELECT v FROM a")
    ev.open(db.path).stream("a").append(events(range(10)))
    taking.wait()  # the follower is in the midst of it
    finishing = Thread(target=query.finish)
    finishing.start()
    finishing.join(0.1)
    go_on.set()
    finishing.join()
    assert query.counters.rows == 10


def test_a_derived_stream_stays_for_a_query_that_is_about_to_read_it(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = db.subscribe("SELECT v FROM odd")

    def slowly(*args: Any) -> Any:  # noqa: ANN401
        first.cancel()  # as another thread could just now
        return best_plan(*args)

    monkeypatch.setattr("eventide.api.live.queries.best_plan", slowly)
    second = db.subscribe("SELECT v FROM odd")
    monkeypatch.undo()
    db.stream("a").append(events(range(30)))
    second.finish()
    assert second.counters.rows == len(db.sql("SELECT v FROM odd")) > 0
    assert db.delivery.queries == []


def test_a_new_query_reads_the_derived_stream_that_keeps_up(db: ev.Database) -> None:
    paused = db.subscribe("SELECT v FROM odd")
    db.stream("a").append(events(range(10)))
    paused.pause()
    db.stream("a").append(events(range(10, 20)))
    fresh = db.subscribe("SELECT v FROM odd")
    db.stream("a").append(events(range(20, 40)))
    fresh.finish()
    assert fresh.counters.rows == sum(event["v"] % 2 for event in events(range(20, 40)))
    paused.resume()
    paused.finish()
    assert paused.counters.rows == sum(event["v"] % 2 for event in events(range(40)))


def test_a_held_query_is_moved_on_only_after_what_is_stored(db: ev.Database) -> None:
    gated = GatedRows()
    gated.gate.clear()
    query = db.subscribe("SELECT v FROM odd", gated, queue_rows=1)
    db.stream("a").append(events(range(10)))
    db.stream("a").append(events(range(10, 20)))
    db.stream("a").append(events(range(20, 30)))
    gated.gate.set()
    query.advance(1_000)
    assert query.wait(120)
    assert [row["v"] for row in gated.rows] == [
        event["v"] for event in events(range(30)) if event["v"] % 2
    ]
    assert query.late_count == 0


def test_what_nobody_reads_any_more_is_gone(db: ev.Database) -> None:
    queries = [db.subscribe(text) for text in KINDS.values()]
    assert any(isinstance(each, RunningStream) for each in db.delivery.queries)
    queries[0].pause()
    queries[-1].pause()
    db.stream("a").append(events(range(5)))
    for query in queries:
        query.cancel()
    assert db.delivery.queries == []
    assert db.delivery.behind == []
    assert db.delivery.folders() == set()


@pytest.mark.parametrize("at_once", [2, 50_000])
def test_streams_are_caught_up_by_time(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """A stream that has its turn first would make the others seem to lag."""
    monkeypatch.setattr("eventide.api.live.numbered.EVENTS_AT_ONCE", at_once)
    text = "ISTREAM (SELECT a.v FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.ts = b.ts)"
    rows = Rows()
    query = db.subscribe(text, rows, max_lag="100 us")
    query.pause()
    for start in range(0, 1000, 10):
        for name in ("a", "b"):
            db.stream(name).append(events(range(start, start + 10)))
    query.resume()
    query.wait()
    assert query.late_count == 0
    query.finish()
    assert len(rows.rows) == 1000


@pytest.mark.usefixtures("unfollowed")
def test_what_another_process_appended_does_not_make_a_stream_lag(db: ev.Database) -> None:
    """Neither when this process appends to one of the streams, nor when a query comes back."""
    text = "ISTREAM (SELECT a.v FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.ts = b.ts)"
    other, rows, never_held = ev.open(db.path), Rows(), Rows()
    query = db.subscribe(text, rows, max_lag="100 us")
    steady = db.subscribe(text, never_held, max_lag="100 us")
    for start in (0, 1000):
        for name in "ab":
            other.stream(name).append(events(range(start, start + 999)))
        if start:
            query.resume()
        db.stream("a").append(events([start + 999]))
        db.stream("b").append(events([start + 999]))
        if not start:
            db.wait()
            query.pause()
            db.delivery.set_held_aside()
    db.wait()
    for each, found in ((query, rows), (steady, never_held)):
        each.finish()
        assert (each.late_count, each.failure) == (0, None)
        assert len(found.rows) == 2000
