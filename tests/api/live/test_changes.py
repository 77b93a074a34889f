"""What happens to a stream while queries follow it: upkeep, dropped events, other attributes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import eventide as ev
from eventide.api.live.numbered import read_numbered
from eventide.errors import SchemaError, StoreError
from tests.api.live.kinds import KINDS, Rows, bag, database, events, expected


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    return database(tmp_path)


@pytest.fixture
def other(db: ev.Database) -> ev.Database:
    """The database as another process has it: what it appends is read from the store."""
    return ev.open(db.path)


def test_upkeep_of_the_stream_is_not_noticed(db: ev.Database, other: ev.Database) -> None:
    rows = {kind: Rows() for kind in KINDS}
    queries = {kind: db.subscribe(KINDS[kind], rows[kind]) for kind in KINDS}
    stream = other.stream("a")
    upkeep: list[Callable[[], object]] = [
        stream.flush,
        stream.split,
        stream.compact,
        lambda: stream.configure(codec="zstd"),
    ]
    for round_, start in enumerate(range(0, 240, 20)):
        # Both append, and what is only in the log, in the open segment or in sealed ones is read.
        stream.append(events(range(start, start + 10)))
        db.stream("a").append(events(range(start + 10, start + 20)))
        other.stream("b").append(events(range(start, start + 20)))
        upkeep[round_ % len(upkeep)]()
    for kind, query in queries.items():
        query.finish()
        assert (query.failure, query.late_count) == (None, 0)
        assert bag(rows[kind].rows) == expected(db, kind)


def test_many_events_between_two_looks(
    db: ev.Database, other: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.api.live.numbered.EVENTS_READ", 1_000)
    monkeypatch.setattr("eventide.api.live.numbered.EVENTS_AT_ONCE", 300)
    monkeypatch.setattr("eventide.api.live.group.LARGE_GAP", 100)
    rows = Rows()
    query = db.subscribe("SELECT _seq FROM a", rows)
    other.stream("a").append(events(range(10_000)))
    # A large gap is left to the follower.
    db.stream("a").append(events(range(10_000, 10_010)))
    more = Rows()
    second = db.subscribe("SELECT _seq FROM a", more)
    db.stream("a").append(events(range(10_010, 10_020)))
    for each in (query, second):
        each.finish()
        assert each.failure is None
    assert [row["_seq"] for row in rows.rows] == list(range(10_020))
    assert [row["_seq"] for row in more.rows] == list(range(10_010, 10_020))


def test_an_append_after_a_large_gap_does_not_wait_for_it(
    db: ev.Database, other: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = db.subscribe("SELECT _seq FROM a")
    monkeypatch.setattr("eventide.api.live.delivery.Delivery.look", lambda _: None)
    monkeypatch.setattr("eventide.api.live.group.LARGE_GAP", 100)
    other.stream("a").append(events(range(100)))
    db.stream("a").append(events([100]))
    assert query.counters.events == 101
    other.stream("a").append(events(range(101, 202)))
    db.stream("a").append(events([202]))
    assert query.counters.events == 101
    query.finish()
    assert query.counters.events == 203


def test_events_that_are_dropped_before_they_are_read_are_passed_over(db: ev.Database) -> None:
    rows = Rows()
    query = db.subscribe("SELECT _seq FROM a", rows)
    stream = db.stream("a")
    stream.append(events(range(10)))
    query.pause()
    stream.append(events(range(10, 1_000)))
    stream.split()
    assert stream.drop_before(1_000) == 1_000
    stream.append(events(range(1_000, 1_010)))
    query.resume()
    query.finish()
    assert [row["_seq"] for row in rows.rows] == [*range(10), *range(1_000, 1_010)]


def test_far_numbers_after_a_drop_cost_one_read(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.api.live.numbered.EVENTS_READ", 10)
    rows = Rows()
    query = db.subscribe("SELECT _seq FROM a", rows)
    stream = db.stream("a")
    query.pause()
    stream.append(events(range(5_000)))
    stream.split()
    stream.drop_before(5_000)
    stream.append(events(range(5_000, 5_030)))
    ranges = list(read_numbered(stream.stored, ["v"], 0, 5_030))
    assert [rows.num_rows for rows in ranges] == [10, 10, 10]
    query.resume()
    query.finish()
    assert len(rows.rows) == 30


def test_thinned_events_that_were_not_read_end_the_query(db: ev.Database) -> None:
    query = db.subscribe("SELECT v FROM a")
    stream = db.stream("a")
    query.pause()
    stream.append(events(range(100)))
    stream.split()
    assert stream.thin(1_000) == 1
    stream.append(events(range(100, 110)))
    query.resume()
    query.wait(60)
    assert query.status == "failed"
    assert "thinned" in str(query.failure)


@pytest.mark.parametrize("by", ["here", "elsewhere"])
@pytest.mark.parametrize("anew", [False, True])
def test_a_stream_that_is_dropped_ends_its_queries(
    db: ev.Database, other: ev.Database, by: str, *, anew: bool
) -> None:
    db.sql("DROP STREAM odd")
    db.sql("CREATE STREAM odd AS SELECT ts, v FROM b WHERE v % 2 = 1")
    rows = Rows()
    gone = db.subscribe("SELECT v FROM a")
    stays = db.subscribe("SELECT v FROM b", rows)
    db.stream("a").append(events(range(5)))
    owner = db if by == "here" else other
    owner.drop_stream("a")
    if anew:
        owner.create_stream("a", {"k": "string", "v": "int64"})
        owner.stream("a").append(events(range(20)))
    assert gone.wait(60)
    assert gone.status == "failed"
    assert isinstance(gone.failure, StoreError)
    if anew:
        again = db.subscribe("SELECT v FROM a")
        owner.stream("a").append(events(range(20, 30)))
        again.finish()
        assert again.counters.events == 10
    db.stream("b").append(events(range(5)))
    stays.finish()
    assert len(rows.rows) == 5
    assert gone.counters.events == 5


def test_a_stream_below_a_derived_one_that_is_dropped_ends_its_readers(
    db: ev.Database, other: ev.Database
) -> None:
    query = db.subscribe("SELECT v FROM odd")
    other.sql("DROP STREAM odd")
    other.drop_stream("a")
    assert query.wait(60)
    assert query.status == "failed"
    assert db.delivery.queries == []


def test_attributes_come_and_go(db: ev.Database, other: ev.Database) -> None:
    rows = Rows()
    plain = db.subscribe("SELECT v FROM a", rows)
    other.stream("a").add_attribute("w", "int64")
    other.stream("a").append([{"ts": 1, "k": "x", "v": 1, "w": 2}])
    with_w = db.subscribe("SELECT w FROM a")
    db.stream("a").append([{"ts": 2, "k": "x", "v": 2, "w": 3}])
    other.stream("a").drop_attribute("w")
    other.stream("a").append([{"ts": 3, "k": "x", "v": 3}])
    with_w.wait(60)
    assert with_w.status == "failed"
    assert isinstance(with_w.failure, SchemaError)
    plain.finish()
    assert [row["v"] for row in rows.rows] == [1, 2, 3]


def test_events_that_cannot_be_read_end_the_query_and_no_append_fails(
    db: ev.Database, other: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, stays = db.subscribe("SELECT v FROM a"), db.subscribe("SELECT v FROM b")

    def broken(*_: object) -> None:
        raise OSError(5, "the disk is gone")

    monkeypatch.setattr("eventide.api.live.delivery.Delivery.look", lambda _: None)
    monkeypatch.setattr("eventide.store.snapshot.Snapshot.scan", broken)
    other.stream("a").append(events([1]))
    db.stream("a").append(events([2]))  # it finds a gap
    assert query.status == "failed"
    assert isinstance(query.failure, OSError)
    assert stays.status == "running"
