"""A stream as users see it: reading, aggregates, options, and maintenance."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import eventide
from eventide.errors import EventideError, StoreError

MINUTE = 60_000_000
DAY = 1440 * MINUTE


@pytest.fixture
def database(tmp_path: Path) -> eventide.Database:
    return eventide.open(tmp_path / "db")


@pytest.fixture
def cars(database: eventide.Database) -> eventide.Stream:
    stream = database.create_stream("cars", {"car": "string", "speed": "float64"}, split="1 day")
    stream.append(
        [{"ts": n * 10 * MINUTE, "car": "ab"[n % 2], "speed": float(n)} for n in range(500)]
    )
    return stream


def test_events_are_found_by_time_and_value(cars: eventide.Stream) -> None:
    start = datetime(1970, 1, 1, 0, 20, tzinfo=UTC)
    found = cars.events(start, start + timedelta(minutes=30), columns=["speed"])
    assert found.rows() == [{"speed": 2.0}, {"speed": 3.0}, {"speed": 4.0}]
    assert len(cars.events(where={"speed": (100, 109.5), "car": "b"})) == 5
    assert len(cars.events(where={"speed": (490, None)})) == 10
    assert cars.at("1970-01-01T01:00").rows()[0]["speed"] == 6.0
    assert len(cars.at(1)) == 0
    assert len(cars.events(5, 5)) == 0


def test_aggregates_over_periods_and_groups(cars: eventide.Stream) -> None:
    assert cars.aggregate("count(*)", " AVG( speed ) ").rows() == [
        {"count(*)": 500, "avg(speed)": 249.5}
    ]
    by_day = cars.aggregate("min(speed)", "count(*)", every="day", start=DAY).rows()
    assert [row["min(speed)"] for row in by_day] == [144.0, 288.0, 432.0]
    assert [row["count(*)"] for row in by_day] == [144, 144, 68]
    hours = cars.aggregate("count(*)", by="hour").rows()
    assert [row["hour"] for row in hours] == list(range(24))
    assert sum(row["count(*)"] for row in hours) == 500
    empty = cars.aggregate("count(*)", "sum(speed)", start="2020-01-01")
    assert empty.rows() == [{"count(*)": 0, "sum(speed)": None}]
    assert len(cars.aggregate("count(*)", every="1 h", start="2020-01-01")) == 0


def test_an_empty_stream_has_aggregates_too(database: eventide.Database) -> None:
    stream = database.create_stream("none", {"x": "int64"})
    assert stream.aggregate("count(*)", "max(x)").rows() == [{"count(*)": 0, "max(x)": None}]
    assert len(stream.aggregate("count(*)", every="day")) == 0
    assert len(stream.aggregate("count(*)", by="weekday")) == 0


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda s: s.aggregate(), "nothing to aggregate"),
        (lambda s: s.aggregate("avg speed"), "is not an aggregate"),
        (lambda s: s.aggregate("avg(sped)"), "no attribute 'sped'"),
        (lambda s: s.aggregate("avg(car)"), "car is string"),
        (lambda s: s.aggregate("max(*)"), "only count"),
        (lambda s: s.aggregate("count(*)", every="day", by="hour"), "exclude each other"),
        (lambda s: s.aggregate("count(*)", by="moon"), "cannot group time"),
        (lambda s: s.events("yesterday"), "is not a time"),
        (lambda s: s.events(where={"speed": "fast"}), "speed|float64"),
        (lambda s: s.events(where={"sped": 1}), "no attribute 'sped'"),
        (lambda s: s.configure(durability="maybe"), "one of none, group, batch"),
        (lambda s: s.configure(splitt="1 day"), "no option 'splitt'"),
        (lambda s: s.configure(split=5), "is not a duration"),
        (lambda s: s.add_index("sped"), "no attribute 'sped'"),
        (lambda s: s.drop_index("speed"), "no index on 'speed'"),
        (lambda s: s.add_aggregate("max3(speed)"), "no aggregate 'max3'"),
        (lambda s: s.drop_attribute("sped"), "no attribute 'sped'"),
        (lambda s: s.add_attribute("speed", "int64"), "clashes"),
        (lambda s: s.thin("1970-01-02", level=0), "level 0"),
        (lambda s: s.append([], producer="p"), "go together"),
        (lambda s: s.append([{"ts": 1}], producer=("p", 1), sequence=1), "named by text"),
        (lambda s: s.append([{"ts": 1}], producer="p", sequence=1.5), "whole number"),
        (lambda s: s.append([{"ts": 1}], producer="p", sequence=float("inf")), "whole number"),
        (lambda s: s.append([{"ts": 1}], producer="p", sequence=-1), "whole number"),
        (lambda s: s.aggregate("foo(speed)"), "no aggregate 'foo'"),
        (lambda s: s.aggregate("count(*)", every="1 day", zone="Asia/Tokyo"), "clock of a zone"),
        (lambda s: s.at(None), "None is not a time"),
        (lambda s: s.drop_before(1.5), "1.5 is not a time"),
        (lambda s: s.configure(keep_bytes="1GB"), "a number of bytes"),
        (lambda s: s.configure(keep_bytes=True), "a number of bytes"),
        (lambda s: s.configure(split="1000000000 days"), "ten thousand years|length of time"),
        (lambda s: s.configure(aggregates=["max3(speed)"]), "no aggregate 'max3'"),
        (lambda s: s.add_index("speed", how="bogus"), "one of next, split, backfill"),
    ],
)
def test_what_cannot_be_is_refused_with_a_hint(
    cars: eventide.Stream, question: object, message: str
) -> None:
    assert callable(question)
    before = cars.events().rows()
    with pytest.raises(EventideError) as caught:
        question(cars)
    assert re.search(message, str(caught.value)), str(caught.value)
    assert cars.events().rows() == before


def test_options_are_kept_and_changed(database: eventide.Database) -> None:
    stream = database.create_stream(
        "s",
        {"x": "int64", "y": "float64"},
        durability="group",
        commit_interval="50 ms",
        codec="zstd",
        split="6 h",
        keep="30 days",
        keep_bytes=10**9,
        index=["x"],
        aggregates=["max2(y)"],
        summaries=["y"],
        order="arrival",
        spare=0.3,
    )
    options = database.stream("s").options
    assert (options.commit_interval_ms, options.codec, options.split_us) == (50, "zstd", DAY // 4)
    assert (options.keep_us, options.indexes, options.order) == (30 * DAY, ("x",), "arrival")
    assert (options.aggregates, options.summaries) == ((("max2", "y"),), ("y",))
    stream.configure(index="auto", keep=None)
    assert database.stream("s").options.auto_index
    assert database.stream("s").options.keep_us is None
    assert database.stream("s").options.codec == "zstd"


def test_attributes_come_and_go(cars: eventide.Stream, database: eventide.Database) -> None:
    cars.add_attribute("lane", "int64")
    cars.append([{"ts": 500 * 10 * MINUTE, "car": "a", "speed": 1.0, "lane": 2}])
    assert cars.aggregate("count(lane)", "count(*)").rows() == [{"count(lane)": 1, "count(*)": 501}]
    assert database.sql("SELECT COUNT(lane) AS n FROM cars").rows() == [{"n": 1}]
    cars.drop_attribute("lane")
    cars.add_attribute("lane", "int64")
    # Another column of the same name: what the first one held does not come back.
    assert cars.aggregate("count(lane)").rows() == [{"count(lane)": 0}]
    cars.compact()
    assert cars.aggregate("count(lane)", "count(*)").rows() == [{"count(lane)": 0, "count(*)": 501}]


def test_retention_and_thinning(cars: eventide.Stream) -> None:
    cars.split()
    whole = cars.aggregate("sum(speed)", "count(*)").rows()
    assert cars.thin("1970-01-02") == 1
    assert cars.aggregate("sum(speed)", "count(*)").rows() == whole
    assert len(cars) == 500 - 144
    with pytest.raises(StoreError, match="were thinned to aggregates"):
        cars.events()
    assert len(cars.events("1970-01-02")) == 500 - 144
    with pytest.raises(StoreError, match="thinned to aggregates"):
        cars.aggregate("sum(speed)", start=MINUTE, end=DAY)
    assert cars.drop_before("1970-01-03") == 288
    assert len(cars) == 500 - 288
    assert len(cars.stats().decisions) == 2
    cars.configure(keep="1 day")
    assert cars.retain() == 0
    cars.append([{"ts": 10 * DAY, "car": "a", "speed": 0.0}])
    cars.split()
    assert len(cars) == 1
    # A clock that is wrong makes nobody else's events old.
    cars.append([{"ts": "9999-01-01", "car": "a", "speed": 0.0}])
    cars.split()
    assert [row["ts"].year for row in cars.events().rows()] == [9999]


def test_a_feed_takes_what_append_takes_and_publishes(database: eventide.Database) -> None:
    stream = database.create_stream("s", {"x": "int64"})
    seen: list[int] = []
    query = database.subscribe(
        "SELECT x FROM s", lambda result: seen.extend(row["x"] for row in result.rows())
    )
    with stream.feed() as feed:
        tickets = [feed.put([{"ts": n, "x": n}]) for n in range(50)]
        assert [ticket.result().first_seq for ticket in tickets] == list(range(50))
        with pytest.raises(EventideError):
            feed.put([{"ts": 1, "y": 2}])
    query.finish()
    assert seen == list(range(50))
    assert len(stream) == 50


def test_a_backup_is_a_database_of_its_own(
    cars: eventide.Stream, database: eventide.Database, tmp_path: Path
) -> None:
    copy = database.backup(tmp_path / "copy")
    cars.append([{"ts": 0, "car": "late", "speed": 0.0}])
    assert len(copy.stream("cars")) == 500
    copy.stream("cars").append([{"ts": 0, "car": "x", "speed": 0.0}])
    assert copy.stream("cars").events().rows()[1]["_seq"] == 500
    assert len(cars) == 501
    with pytest.raises(StoreError, match="exists already"):
        database.backup(tmp_path / "copy")


def test_a_retry_is_stored_and_published_once(database: eventide.Database) -> None:
    stream = database.create_stream("s", {"x": "int64"})
    seen: list[int] = []
    database.subscribe("SELECT x FROM s", lambda result: seen.extend(r["x"] for r in result.rows()))
    for _ in range(2):
        stream.append([{"ts": 1, "x": 7}], producer="p", sequence=1)
    stream.append([{"ts": 2, "x": 8}], producer="p", sequence=2)
    stream.append([{"ts": 3, "x": 9}], producer="q", sequence=1)
    assert [row["x"] for row in stream.events().rows()] == [7, 8, 9]
    database.wait()
    assert seen == [7, 8]
    with pytest.raises(EventideError):
        stream.append([{"ts": None, "x": 7}], producer="p", sequence=3)
    assert stream.append([{"ts": 4, "x": 1}], producer="p", sequence=3).rows == 1
    assert [stream.last_sequence(producer) for producer in "pqr"] == [3, 1, None]
