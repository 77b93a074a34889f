"""Hostile values in settings, schemas and results: every error is ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import SchemaError, StoreError

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "content",
    [
        DEEP,
        '{"format": 1e400}',
        '{"format": -1e400}',
        '{"format": NaN}',
        "null",
        "",
        "[3]",
        "9" * 5000,
    ],
    ids=lambda content: content[:20],
)
def test_a_marker_that_makes_no_sense_is_damaged(content: str, tmp_path: Path) -> None:
    ev.open(tmp_path / "db")
    (tmp_path / "db" / "eventide.json").write_text(content)
    with pytest.raises(StoreError, match=r"eventide.json is damaged") as caught:
        ev.open(tmp_path / "db")
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    "content", [DEEP, '{"version": 1e400}', '{"version": 1, "weights": {"window": 1e400}}']
)
def test_weights_that_make_no_sense_are_not_used(content: str, tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    db.create_stream("s", {"x": "int64"}).append([{"ts": 0, "x": 1}])
    (tmp_path / "db" / "weights.json").write_text(content)
    assert ev.open(tmp_path / "db").sql("SELECT x FROM s").rows() == [{"x": 1}]


def test_a_stream_may_have_the_schema_of_a_table(tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([0], pa.timestamp("ns")),
            "n": pa.array([1], pa.int8()),
            "name": pa.array(["a"], pa.dictionary(pa.int32(), pa.large_string())),
        }
    )
    db = ev.open(tmp_path / "db")
    stream = db.create_stream("s", table.schema)
    assert stream.schema.to_json() == {"n": "int64", "name": "string"}
    stream.append(table)
    assert db.sql("SELECT n, name FROM s").rows() == [{"n": 1, "name": "a"}]
    relation = db.create_relation("r", table.schema, key=["name"])
    relation.upsert(table)
    assert relation.current().rows() == [{"n": 1, "name": "a"}]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (5, "not int"),
        ("x int64", "not str"),
        ([("x", "int64")], "not list"),
        ({5: "int64"}, "5 is not an attribute name"),
        ({None: "int64"}, "None is not an attribute name"),
        ({"\ud800": "int64"}, "is not an attribute name"),
        ({"x": []}, "unknown type"),
        ({"x": "decimal(99999999999999999999,1)"}, "is not a decimal type"),
        (pa.schema([("x", pa.list_(pa.int64()))]), "which no stream can hold"),
        (pa.schema([("x", pa.int64()), ("x", pa.int64())]), "clashes"),
        (pa.schema([("_seq", pa.string())]), "'_seq' has type string"),
    ],
)
def test_attributes_that_are_none(attributes: Any, said: str, tmp_path: Path) -> None:  # noqa: ANN401
    db = ev.open(tmp_path / "db")
    with pytest.raises(SchemaError, match=said) as caught:
        db.create_stream("s", attributes)
    assert caught.value.hint is not None
    with pytest.raises(SchemaError, match=said):
        db.create_relation("s", attributes, key=["x"])
    assert db.streams() == ()


def test_a_stream_without_attributes_or_format(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    with pytest.raises(SchemaError, match="no attributes and no format"):
        db.create_stream("s", None)
    with pytest.raises(SchemaError, match="attributes are names with types, not NoneType"):
        db.create_relation("s", None, key=["x"])
    assert db.streams() == ()


@pytest.mark.parametrize("key", [None, 5, "k", [], [5], [["k"]], {"k"}, ["nope"]])
def test_keys_that_are_none(key: object, tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    with pytest.raises(SchemaError, match="key") as caught:
        db.create_relation("r", {"k": "int64"}, key=key)  # type: ignore[arg-type]
    assert caught.value.hint is not None
    assert db.streams() == ()


def test_the_lifetimes_of_one_answer_are_drawn() -> None:
    table = pa.table({"ts": [0, 1_000_000], "car": ["a", "b"]})
    told = ev.sql("SELECT ts AS at, car, ts + INTERVAL '1' SECOND AS exp FROM t", t=table)
    drawn = ev.plot_lifetimes(told).text(80)
    assert drawn == ev.plot_lifetimes([told]).text(80)
    assert "2 rows" in drawn


@pytest.mark.parametrize("given", [None, 5, [5], "text", {"q": None}, {"q": [1]}])
def test_what_no_query_told_is_not_drawn(given: object) -> None:
    with pytest.raises(SchemaError, match="is no result of a query") as caught:
        ev.plot_lifetimes(given)  # type: ignore[arg-type]
    assert caught.value.hint is not None


def test_lifetimes_have_times() -> None:
    told = ev.sql("SELECT 'soon' AS at, 'late' AS exp FROM t", t=pa.table({"ts": [0]}))
    with pytest.raises(SchemaError, match="column 'at' of the report of 'q' has type string"):
        ev.plot_lifetimes({"q": told})
