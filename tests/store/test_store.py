"""Databases: opening, naming streams, dropping them."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from eventide.errors import SchemaError, StoreError
from eventide.schema import Schema
from eventide.store import Store
from eventide.store.files.lock import acquire
from tests.store.events import SCHEMA, at, times

EVERY_TYPE = Schema.of(
    {
        "b": "bool",
        "i": "int64",
        "f": "float64",
        "s": "string",
        "t": "timestamp",
        "d": "decimal(38,10)",
        "x": "binary",
    }
)


def test_a_database_is_created_and_opened_again(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "a" / "db"))
    store.create_stream("types", EVERY_TYPE)
    again = Store.open(store.path, create=False)
    assert again.streams() == ("types",)
    assert again.stream("types").schema == EVERY_TYPE


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not an Eventide database"):
        Store.open(tmp_path / "nowhere", create=False)
    assert not (tmp_path / "nowhere").exists()
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        Store.open(file)
    with pytest.raises(StoreError, match="not empty"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match="cannot open"):
        Store.open(file / "db")


@pytest.mark.parametrize(
    ("marker", "message"), [("{}", "damaged"), ("", "damaged"), ('{"format": 9}', "format 9")]
)
def test_a_strange_marker_is_refused(tmp_path: Path, marker: str, message: str) -> None:
    (tmp_path / "eventide.json").write_text(marker)
    with pytest.raises(StoreError, match=message):
        Store.open(tmp_path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "a b", "é", "x" * 101, "a\n", "con."])
def test_unfit_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="not a stream name"):
        Store.open(tmp_path / "db").create_stream(name, SCHEMA)


def test_names_are_unique_whatever_their_case(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "db")
    store.create_stream("Cars", SCHEMA)
    with pytest.raises(StoreError, match="'Cars' exists"):
        store.create_stream("cars", SCHEMA)


def test_a_missing_stream_gets_a_guess(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "db")
    with pytest.raises(StoreError, match="there are no streams yet"):
        store.stream("cars")
    store.create_stream("cars", SCHEMA)
    store.create_stream("trips", SCHEMA)
    with pytest.raises(StoreError, match=r"did you mean 'cars'\? the streams are cars, trips"):
        store.stream("car")
    with pytest.raises(StoreError, match="no stream"):
        store.stream("../streams/cars")
    with pytest.raises(StoreError, match="no stream"):
        store.drop_stream("car")


def test_a_dropped_stream_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "db")
    store.create_stream("cars", SCHEMA).append(at(1))
    store.drop_stream("cars")
    assert store.streams() == ()
    assert sorted(path.name for path in store.path.iterdir()) == [
        "eventide.json",
        "lock",
        "streams",
    ]
    assert times(store.create_stream("cars", SCHEMA).snapshot()) == []


def test_a_writer_that_waited_for_a_dropped_stream_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "db")
    stream = store.create_stream("cars", SCHEMA)
    stream.append(at(1))

    def dropped_meanwhile(*_: object) -> None:
        with patch("eventide.store.files.lock.acquire", acquire):
            store.drop_stream("cars")
            store.create_stream("cars", SCHEMA)

    # The lock it gets is that of the old folder, which keeps nobody out of the new one.
    with (
        patch("eventide.store.files.lock.acquire", side_effect=dropped_meanwhile),
        pytest.raises(StoreError, match="was dropped while this writer waited"),
    ):
        stream.compact()


@pytest.mark.parametrize("kind", ["int32", int, None])
def test_a_type_that_is_none_is_refused_with_the_types(kind: str) -> None:
    with pytest.raises(SchemaError, match="unknown type") as caught:
        Schema.of({"lane": kind})
    assert "int64" in str(caught.value.hint)
