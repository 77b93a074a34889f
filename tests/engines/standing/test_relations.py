"""Relations: rows by key that change in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eventide as ev
from eventide.api.live.query import LiveQuery
from eventide.errors import SchemaError, StoreError
from eventide.store.segments.manifest import Manifest
from tests.naive.standing.windows import SECOND

OWNERS = {"car": "string", "owner": "string"}
TEXT = (
    "SELECT x.car, x.speed, o.owner FROM cars [RANGE 10 SECONDS] x JOIN owners o ON x.car = o.car"
)


def garage(folder: Path) -> ev.Database:
    db = ev.open(folder / "db")
    db.create_stream("cars", {"car": "string", "speed": "float64"})
    db.create_relation("owners", OWNERS, key=["car"])
    return db


def drive(db: ev.Database, tick: int, car: str = "a") -> None:
    db.stream("cars").append([{"ts": tick * SECOND, "car": car, "speed": float(tick)}])


def owners(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["owner"] for row in rows)


def test_rows_are_replaced_and_taken_away(tmp_path: Path) -> None:
    relation = garage(tmp_path).relation("owners")
    relation.upsert([{"car": "a", "owner": "Ann"}, {"car": "b", "owner": "Bob"}], at=SECOND)
    relation.upsert([{"car": "a", "owner": "Amy"}], at=3 * SECOND)
    relation.delete([{"car": "b"}], at=4 * SECOND)
    relation.delete(["nobody"], at=4 * SECOND)
    assert relation.current().rows() == [{"car": "a", "owner": "Amy"}]
    assert owners(relation.current(at=3 * SECOND).rows()) == ["Amy", "Bob"]
    assert owners(relation.current(at=2 * SECOND).rows()) == ["Ann", "Bob"]
    assert len(relation) == 1


def test_a_change_without_a_time_holds_from_the_newest_event_on(tmp_path: Path) -> None:
    db = garage(tmp_path)
    relation = db.relation("owners")
    drive(db, 7)
    relation.upsert([{"car": "a", "owner": "Ann"}])
    relation.upsert([{"ts": 9 * SECOND, "car": "b", "owner": "Bob"}])
    relation.upsert([{"car": "c", "owner": "Cem"}])
    stamps = relation.stream.events(columns=["ts"]).to_arrow().column("ts").cast("int64")
    assert stamps.to_pylist() == [7 * SECOND, 9 * SECOND, 9 * SECOND]


def test_the_key_outlives_the_process(tmp_path: Path) -> None:
    garage(tmp_path).relation("owners").upsert([{"car": "a", "owner": "Ann"}], at=0)
    again = ev.open(tmp_path / "db").relation("owners")
    assert again.key == ("car",)
    assert again.stream.snapshot().schema.key == ("car",)
    again.stream.add_attribute("since", "timestamp")
    assert again.key == ("car",)
    with pytest.raises(SchemaError, match="belongs to a relation"):
        again.stream.drop_attribute("car")
    assert again.current().rows() == [{"car": "a", "owner": "Ann", "since": None}]


def test_folders_without_a_key_are_read_as_before(tmp_path: Path) -> None:
    snapshot = garage(tmp_path).stream("cars").snapshot()
    stored = snapshot.manifest.to_json()
    assert "key" not in stored
    assert Manifest.from_json(stored, snapshot.path).schema.key == ()


def test_a_query_follows_the_relation(tmp_path: Path) -> None:
    db = garage(tmp_path)
    relation = db.relation("owners")
    query = db.subscribe(TEXT)
    relation.upsert([{"car": "a", "owner": "Ann"}], at=0)
    drive(db, 1)
    drive(db, 2)
    assert owners(query.current().rows()) == ["Ann"]
    relation.upsert([{"car": "a", "owner": "Amy"}], at=2 * SECOND)
    drive(db, 3)
    # Of all that the window holds: a relation changes what came before, too.
    assert owners(query.current().rows()) == ["Amy", "Amy"]
    relation.delete(["a"], at=3 * SECOND)
    drive(db, 4)
    assert owners(query.current().rows()) == []
    relation.upsert([{"car": "a", "owner": "Abe"}])
    assert owners(db.sql(TEXT).rows()) == ["Abe"] * 4
    query.finish()
    assert owners(query.current().rows()) == ["Abe"] * 4
    assert query.late_count == 0


def test_a_live_query_begins_with_the_rows_of_relations(tmp_path: Path) -> None:
    db = garage(tmp_path)
    relation = db.relation("owners")
    drive(db, 1)
    relation.upsert([{"car": "a", "owner": "Ann"}, {"car": "b", "owner": "Bob"}], at=0)
    relation.upsert([{"car": "a", "owner": "Amy"}], at=2 * SECOND)
    query = db.subscribe(TEXT)
    drive(db, 3)
    relation.delete(["a"], at=4 * SECOND)
    drive(db, 4, "b")
    # The drive of second 1 was before the query; the rows of the relation are not.
    assert owners(query.current().rows()) == ["Amy"]
    drive(db, 5)
    assert owners(query.current().rows()) == ["Bob"]


NOT_DRIVEN = """
SELECT o.owner FROM owners o
WHERE NOT EXISTS (SELECT 1 FROM cars [RANGE 10 SECONDS] x WHERE x.car = o.car)
"""


@pytest.mark.parametrize("dumped", [False, True])
def test_what_relations_were_before_is_not_reported(tmp_path: Path, dumped: bool) -> None:
    db = garage(tmp_path)
    relation = db.relation("owners")
    relation.upsert([{"car": "a", "owner": "Ann"}, {"car": "b", "owner": "Bob"}], at=0)
    relation.upsert([{"car": "b", "owner": "Bea"}], at=2 * SECOND)
    told: list[tuple[str, int]] = []
    query = db.subscribe(
        NOT_DRIVEN, lambda result: told.extend((row["owner"], row["sign"]) for row in result)
    )
    if dumped:
        engine = query.standing("dumped")
        query.state = engine.load(engine.dump(query.state))
    # What comes after the query, behind what it began with, is told.
    relation.upsert([{"car": "c", "owner": "Cem"}], at=4 * SECOND)
    drive(db, 5)
    drive(db, 6)
    db.wait()
    assert told == [("Cem", 1), ("Ann", -1)]
    assert owners(query.current().rows()) == ["Bea", "Cem"]
    assert query.late_count == 0


def test_changes_of_a_relation_count_once(tmp_path: Path) -> None:
    """A change that is stored but not delivered yet is among those a query begins with."""
    db = garage(tmp_path)
    begun: list[LiveQuery] = []

    def begin(_: ev.Result) -> None:
        if not begun:
            db.relation("owners").upsert([{"car": "a", "owner": "Ann"}], at=0)
            text = "SELECT o.owner, x.car FROM owners o, cars [RANGE 10 SECONDS] x"
            begun.append(db.subscribe(text))

    db.subscribe("SELECT car FROM cars", begin)
    drive(db, 1)
    drive(db, 2)
    drive(db, 3)
    db.wait()
    begun[0].finish()
    assert owners(begun[0].current().rows()) == ["Ann"] * len(begun[0].current())
    waiting = dict(begun[0].sizes())["owners, waiting"]
    assert waiting.tuples == 0
    assert begun[0].late_count == 0


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    db = garage(tmp_path)
    relation = db.relation("owners")
    with pytest.raises(SchemaError, match="the key 'car' of owners is missing"):
        relation.upsert([{"owner": "Ann"}], at=0)
    with pytest.raises(SchemaError, match="is null in some row"):
        relation.delete([{"car": None}], at=0)
    with pytest.raises(SchemaError, match="the key 'lane' is no attribute"):
        db.create_relation("lanes", OWNERS, key=["lane"])
    with pytest.raises(SchemaError, match="a list of attributes"):
        db.create_relation("lanes", OWNERS, key="car")
    with pytest.raises(SchemaError, match="kept for the rows that are taken away"):
        db.create_relation("lanes", {**OWNERS, "deleted": "bool"}, key=["car"])
    with pytest.raises(StoreError, match="a stream without a key"):
        db.relation("cars")
