"""Derived streams live: each runs once, and its readers get the rows of the query inlined."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live.running import RunningStream
from eventide.api.result import Result
from eventide.errors import EvaluationError, SchemaError
from tests.api.named.test_trees import NAMES, database, drawn
from tests.engines import engines
from tests.engines.compositions import arrivals
from tests.engines.scenarios import as_bag
from tests.engines.test_random_trees import OPERATORS, tables
from tests.naive.windows import Event

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")

FAST = "SELECT car, speed FROM cars WHERE speed > 40"
GROUPED = (
    "SELECT car, MAX(speed) AS top, COUNT(*) AS n FROM {} GROUP BY car, "
    "TUMBLE(ts, INTERVAL '5' SECOND)"
)
LATENESSES = [0, 3, 60]
"""In seconds; with the last, no event is late."""
READERS = [
    "SELECT * FROM {}",
    "SELECT ts, start_ts, car FROM (SELECT car, top FROM {} WHERE n > 1) AS few",
    "SELECT * FROM {} MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES FIRST(start_ts) AS s, "
    "LAST(top) AS top PATTERN (A B) DEFINE B AS top > PREV(top))",
    "SELECT car, COUNT(*) AS n FROM {} [RANGE 20 SECONDS] AS w GROUP BY car",
    "SELECT w.car, t.load FROM {} [RANGE 20 SECONDS] AS w JOIN trucks [RANGE 10 SECONDS] AS t "
    "ON t.car = w.car",
]


def into(found: list[Event]) -> Callable[[Result], None]:
    return lambda rows: found.extend(engines.plain(rows.to_arrow()))


def running(db: ev.Database) -> list[RunningStream]:
    return [each for each in db.delivery.queries if isinstance(each, RunningStream)]


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32))
def test_trees_of_names_live(seed: int) -> None:
    choose = random.Random(seed)
    streams = {name: sorted(own, key=lambda e: e["ts"]) for name, own in arrivals(seed, 60).items()}
    streams = {
        name: [{**event, "_seq": place} for place, event in enumerate(own)]
        for name, own in streams.items()
    }
    with TemporaryDirectory() as folder:
        db = database(folder)
        query = choose.choice(OPERATORS)(drawn(db, choose, list(NAMES), 3), choose)
        found: list[Event] = []
        live = db.subscribe(query.text, lambda rows: found.extend(engines.plain(rows.to_arrow())))
        for name, table in tables(streams).items():
            for start in range(0, table.num_rows, 7):
                db.stream(name).append(table.drop_columns(["_seq"]).slice(start, 7))
        live.finish()
        assert not running(db)
    expected = query.rows(streams)
    assert as_bag(found) == expected, query.text


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32), st.sampled_from(LATENESSES))
def test_a_reader_gets_the_rows_of_the_query_inlined(seed: int, late_s: int) -> None:
    """Also with late events, and with `advance` in between; both began together.

    A derived stream has a clock of its own: beside another stream, which would hold the clock back,
    rows agree if no event is late.
    """
    choose = random.Random(seed)
    streams = tables(arrivals(seed, 60))
    inside = f"(SELECT ts, start_ts, car, top, n FROM ({GROUPED.format(f'({FAST})')}) AS q) AS g"
    with TemporaryDirectory() as folder:
        db = database(folder)
        lateness = f"{late_s} s"
        db.sql(f"CREATE STREAM fast AS {FAST}")
        of = f"WITH (lateness = '{lateness}')"
        db.sql(f"CREATE OR REPLACE STREAM fast {of} AS {FAST}")
        db.sql(f"CREATE STREAM grouped AS {GROUPED.format('fast')}")
        pairs = []
        for reader in READERS:
            windowed = "[" in reader.split("{}")[1][:3]
            plain = inside.removesuffix(" AS g") if windowed else inside
            named: list[Event] = []
            inlined: list[Event] = []
            queries = [
                db.subscribe(
                    reader.format(source),
                    into(to),
                    lateness=lateness,
                )
                for source, to in (("grouped", named), (plain, inlined))
            ]
            pairs.append((reader, queries, named, inlined))
        assert [each.definition.name for each in running(db)] == ["fast", "grouped"]
        for start in range(0, 60, 5):
            for name in ("cars", "trucks"):
                db.stream(name).append(streams[name].drop_columns(["_seq"]).slice(start, 5))
            if choose.random() < 0.2:
                newest = max(table.column("ts").to_pylist()[start] for table in streams.values())
                for _, queries, _, _ in pairs:
                    for query in queries:
                        query.advance(newest)
        for reader, queries, named, inlined in pairs:
            for query in queries:
                query.finish()
            if "JOIN" not in reader or late_s == max(LATENESSES):
                assert as_bag(named) == as_bag(inlined), reader
        assert not running(db)


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"car": "string", "speed": "float64"})
    db.sql(f"CREATE STREAM fast AS {FAST}")
    db.sql(f"CREATE STREAM grouped AS {GROUPED.format('fast')}")
    return db


def test_a_derived_stream_runs_once(db: ev.Database) -> None:
    queries = [db.subscribe("SELECT * FROM fast") for _ in range(5)]
    queries += [db.subscribe("SELECT * FROM grouped") for _ in range(5)]
    (fast, grouped) = running(db)
    for second in range(10):
        db.stream("cars").append([{"ts": second * 10**6, "car": "a", "speed": 50.0}])
    assert (fast.steps, grouped.steps) == (10, 10)
    for query in queries[5:]:
        query.finish()
    assert running(db) == [fast]
    for query in queries[:5]:
        query.finish()
    assert running(db) == []


def test_a_reader_that_comes_later_gets_what_becomes_certain_then(db: ev.Database) -> None:
    db.subscribe("SELECT * FROM grouped")
    cars = db.stream("cars")
    cars.append([{"ts": 10**6, "car": "a", "speed": 50.0}, {"ts": 6 * 10**6, "speed": 60.0}])
    later = db.subscribe("SELECT top FROM grouped")
    found = later.advance(12 * 10**6)
    assert found.rows() == [{"top": 60.0}]
    assert later.sources.keys() == {"grouped"}


def test_a_failed_stream_ends_its_readers(db: ev.Database) -> None:
    db.sql("CREATE STREAM odd AS SELECT CAST(car AS BIGINT) AS number FROM cars")
    reader, other = db.subscribe("SELECT * FROM odd"), db.subscribe("SELECT * FROM fast")
    db.stream("cars").append([{"ts": 0, "car": "x", "speed": 50.0}, {"ts": 1, "car": "y"}])
    assert reader.status == "failed"
    assert isinstance(reader.failure, EvaluationError)
    assert not other.finished
    assert Counter(each.definition.name for each in running(db)) == {"fast": 1}


def test_one_stream_below_is_moved_on(db: ev.Database) -> None:
    live = db.subscribe("SELECT n FROM grouped")
    db.stream("cars").append([{"ts": 10**6, "car": "a", "speed": 50.0}])
    assert live.advance(5 * 10**6, "cars").rows() == [{"n": 1}]
    with pytest.raises(SchemaError, match="the query does not read 'trucks'"):
        live.advance(6 * 10**6, "trucks")


def test_a_replaced_stream_goes_on_for_its_readers(db: ev.Database) -> None:
    old = db.subscribe("SELECT speed FROM fast")
    db.sql("CREATE OR REPLACE STREAM fast AS SELECT car, speed * 2 AS speed FROM cars")
    new = db.subscribe("SELECT speed FROM fast")
    db.stream("cars").append([{"ts": 0, "car": "a", "speed": 50.0}])
    assert old.finish().rows() == [{"speed": 50.0}]
    assert new.finish().rows() == [{"speed": 100.0}]
