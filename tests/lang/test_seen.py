"""A text that was seen before is planned once, and again when anything it depends on changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import eventide as ev
from eventide.lang.seen import SeenPlans, Surroundings, key_of
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_statement
from eventide.plan.named import NamedQuery
from eventide.plan.tree import Plan
from eventide.schema import Schema

CARS = Schema.of({"car": "string", "speed": "float64"})
TEXT = "SELECT car FROM cars WHERE speed > 3"
ROW = {"ts": "2026-01-01", "car": "a", "speed": 5.0}


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    database = ev.open(tmp_path)
    database.create_stream("cars", {"car": "string", "speed": "float64"}).append([ROW])
    return database


def plan(text: str = TEXT, schema: Schema = CARS, params: object = None) -> Plan:
    return plan_sql(text, {"cars": schema}, params)


# --- the same is planned once -----------------------------------------------------------------


def test_a_text_is_planned_once() -> None:
    text = "SELECT car, speed + 1 AS more FROM cars"
    assert plan(text) is plan(text)
    again = Schema.of({"car": "string", "speed": "float64"})
    assert plan(text, again) is plan(text)


def test_a_text_with_the_same_parameters_is_planned_once() -> None:
    text = "SELECT car FROM cars WHERE speed > ? AND car = ?"
    assert plan(text, params=[3, "a"]) is plan(text, params=(3, "a"))
    named = "SELECT car FROM cars WHERE speed > $least"
    assert plan(named, params={"least": 3}) is plan(named, params={"least": 3})


def test_a_statement_is_read_once_and_parsing_does_not_change_it() -> None:
    text = """SELECT * FROM cars MATCH_RECOGNIZE (ORDER BY ts
        MEASURES DROP.speed AS s, CLASSIFIER(DROP) AS c PATTERN (DROP B)
        DEFINE B AS B.speed < DROP.speed)"""
    statement = read_statement(text)
    assert read_statement(text) is statement
    kinds = [token.token_type for token in statement.tokens]
    first = plan_sql(statement, {"cars": CARS})
    assert [token.token_type for token in statement.tokens] == kinds
    more = Schema.of({"car": "string", "speed": "float64", "accel": "float64"})
    assert plan_sql(statement, {"cars": more}) == first


# --- and again when something changes ---------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (Decimal("1.0"), Decimal("1.00")),
        ("1", 1),
        (None, False),
        (date(2026, 1, 1), datetime(2026, 1, 1)),
        (timedelta(seconds=1), 1),
    ],
)
def test_values_that_are_not_the_same_have_keys_of_their_own(first: object, second: object) -> None:
    keys = {key_of(TEXT, [first]), key_of(TEXT, [second]), key_of(TEXT, {"x": first})}
    assert len(keys) == 3
    assert None not in keys


class Lying(str):
    """A text that does not say what it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "the same"


@pytest.mark.parametrize(
    "params",
    [
        [Lying("a")],
        [datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))],
        {Lying("a"): 1},
        range(3),
        ["long" * 3_000],
    ],
)
def test_what_is_not_known_by_how_it_is_written_is_not_remembered(params: object) -> None:
    assert key_of(TEXT, params) is None


def test_a_long_text_is_not_remembered() -> None:
    text = TEXT + " " * 10_000
    assert key_of(text, None) is None
    assert plan(text) is not plan(text)
    assert plan(text) == plan(text)


def test_an_instant_in_utc_is_remembered() -> None:
    assert key_of(TEXT, [datetime(2026, 1, 1, tzinfo=UTC)]) is not None


def test_parameters_of_other_types_give_other_answers() -> None:
    table = pa.table({"ts": [0, 1], "x": [7, 8]})
    query = "SELECT x / ? AS y FROM t"
    for value in (2, 2.0, Decimal("2.000"), 2):
        fresh = f"SELECT x / ? AS y FROM t --{value!r}"
        asked = ev.sql(query, params=[value], t=table).to_arrow()
        assert asked.equals(ev.sql(fresh, params=[value], t=table).to_arrow())


def test_tables_of_other_types_are_planned_anew() -> None:
    query = "SELECT x FROM t WHERE x >= 2"
    integers = ev.sql(query, t=pa.table({"ts": [0, 1], "x": [1, 2]})).to_arrow()
    floats = ev.sql(query, t=pa.table({"ts": [0, 1], "x": [1.5, 2.5]})).to_arrow()
    assert integers.to_pydict() == {"x": [2]}
    assert floats.to_pydict() == {"x": [2.5]}
    assert integers.schema.field("x").type == pa.int64()


def test_a_table_without_times_is_not_one_with_times() -> None:
    query = "SELECT COUNT(*) AS n FROM t GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    assert len(ev.sql(query, t=pa.table({"ts": [0, 1], "x": [1, 2]}))) == 1
    with pytest.raises(ev.EventideError):
        ev.sql(query, t=pa.table({"x": [1, 2]}))


def test_a_new_attribute_is_seen(db: ev.Database) -> None:
    query = "SELECT * FROM cars"
    assert db.sql(query).columns == ["ts", "car", "speed"]
    db.stream("cars").add_attribute("accel", "float64")
    assert db.sql(query).columns == ["ts", "car", "speed", "accel"]
    db.stream("cars").drop_attribute("speed")
    assert db.sql(query).columns == ["ts", "car", "accel"]


def test_an_attribute_that_another_process_has_added_is_seen(db: ev.Database) -> None:
    query = "SELECT * FROM cars"
    assert len(db.sql(query).columns) == 3
    ev.open(db.path).stream("cars").add_attribute("accel", "float64")
    assert len(db.sql(query).columns) == 4


def test_a_stream_that_is_dropped_and_made_again_is_another(db: ev.Database) -> None:
    query = "SELECT speed FROM cars"
    assert db.sql(query).rows() == [{"speed": 5.0}]
    db.drop_stream("cars")
    with pytest.raises(ev.EventideError):
        db.sql(query)
    db.create_stream("cars", {"speed": "string"}).append([{"ts": 0, "speed": "fast"}])
    assert db.sql(query).rows() == [{"speed": "fast"}]


def test_a_view_that_is_defined_anew_is_read_anew(db: ev.Database) -> None:
    query = "SELECT * FROM seen"
    db.sql("CREATE VIEW seen AS SELECT car FROM cars")
    assert db.sql(query).rows() == [{"car": "a"}]
    db.sql("DROP VIEW seen")
    with pytest.raises(ev.EventideError):
        db.sql(query)
    db.sql("CREATE VIEW seen AS SELECT speed FROM cars")
    assert db.sql(query).rows() == [{"speed": 5.0}]


def test_a_stream_that_takes_the_name_of_a_view_is_read(db: ev.Database) -> None:
    query = "SELECT speed FROM other"
    db.sql("CREATE VIEW other AS SELECT speed FROM cars")
    assert db.sql(query).rows() == [{"speed": 5.0}]
    db.sql("DROP VIEW other")
    db.create_stream("other", {"speed": "int64"})
    assert db.sql(query).rows() == []


def test_an_error_is_found_again_and_goes_when_its_cause_does(db: ev.Database) -> None:
    query = "SELECT accel FROM cars"
    for _ in range(2):
        with pytest.raises(ev.EventideError, match="accel"):
            db.sql(query)
    db.stream("cars").add_attribute("accel", "float64")
    assert db.sql(query).rows() == [{"accel": None}]


# --- what is remembered has a bound -----------------------------------------------------------


def test_the_plan_that_was_not_used_for_longest_is_forgotten() -> None:
    seen, around = SeenPlans(most=2), Surroundings.of({"cars": CARS}, (), {})
    plans = {text: plan(f"SELECT {text} FROM cars") for text in ("car", "speed", "ts")}
    seen.add("car", around, plans["car"])
    seen.add("speed", around, plans["speed"])
    assert seen.find("car", around) is plans["car"]
    seen.add("ts", around, plans["ts"])
    assert seen.find("speed", around) is None
    assert seen.find("car", around) is plans["car"]
    assert seen.find("ts", around) is plans["ts"]


@pytest.mark.parametrize(
    "other",
    [
        Surroundings.of({"cars": Schema.of({"car": "string"})}, (), {}),
        Surroundings.of({"cars": CARS, "more": CARS}, (), {}),
        Surroundings.of({"cars": CARS}, ("cars",), {}),
        Surroundings.of({"cars": CARS}, (), {"fast": NamedQuery("fast", "view", TEXT)}),
    ],
    ids=["schema", "streams", "index", "names"],
)
def test_a_plan_holds_in_its_circumstances_only(other: Surroundings) -> None:
    seen, around = SeenPlans(), Surroundings.of({"cars": CARS}, (), {})
    seen.add("key", around, plan())
    assert seen.find("key", around) is plan()
    assert seen.find("key", other) is None
