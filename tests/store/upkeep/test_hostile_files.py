"""JSON files of ours with any content: the result is an error of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventide.engines.history.weights import DEFAULTS, Weights
from eventide.errors import EventideError, StoreError
from eventide.store import Store, StreamOptions
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.segments.manifest import FORMAT, checksum, manifest_path
from eventide.store.store import MARKER
from eventide.store.upkeep.repair import repair_stream
from eventide.store.upkeep.verify import verify_stream
from tests.store.events import new_stream, reopened, table, tiny_files
from tests.store.upkeep.damage import rows

DEEP = b'{"format":' * 100_000
OTHERS: list[Any] = [None, -1, 2**70, 1.5, "../../../etc/passwd", "", [], {}, [[[]]], True]


@pytest.mark.parametrize("text", [DEEP, b"[" * 100_000, b'{"format": 1e400}', b'{"format": NaN}'])
def test_a_marker_that_nobody_writes(tmp_path: Path, text: bytes) -> None:
    Store.open(tmp_path / "db")
    (tmp_path / "db" / MARKER).write_bytes(text)
    with pytest.raises(StoreError, match="is damaged"):
        Store.open(tmp_path / "db")


@pytest.mark.parametrize("text", [DEEP, b"[" * 100_000, b'{"format": 1e400}', b'{"format": "3"}'])
def test_a_manifest_that_nobody_writes(tmp_path: Path, text: bytes) -> None:
    stream = new_stream(tmp_path)
    stream.append(table(rows(0, 3)))
    manifest_path(stream.path, 2).write_bytes(text)
    with pytest.raises(StoreError, match=r"manifest-0*2\.json is damaged"):
        reopened(stream)
    assert any("is damaged" in str(each) for each in verify_stream(stream.path))
    repair_stream(stream.path)
    assert reopened(stream).snapshot().row_count == 3


@pytest.mark.parametrize("text", [DEEP, b'{"version": 1, "weights": {"window": 1e400}}'])
def test_weights_that_nobody_writes_are_left_aside(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "weights.json").write_bytes(text)
    assert Weights.load(tmp_path) == DEFAULTS


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield the way to every value inside a JSON value."""
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in steps:
        yield (*path, step)
        if isinstance(inner, dict | list):
            yield from places_in(inner, (*path, step))


def with_other(value: Any, path: tuple[Any, ...], other: Any) -> Any:  # noqa: ANN401
    """Return a copy of a JSON value that says something else in one place."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = other
    return copy


def test_a_manifest_with_a_right_checksum_that_says_anything(tmp_path: Path) -> None:
    """Its reader answers, or raises an error of ours; so does `verify`."""
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(indexes=("lane",)))
        stream.append(table(rows(0, 30)))
        stream.flush(seal=True)
        stream.append(table(rows(30, 4)))
        version = stream.snapshot().version
        path = manifest_path(stream.path, version)
        whole = path.read_bytes()
        entry = json.loads(whole)["stream"]
        places = list(places_in(entry))
        assert {("log",), ("segments", 0, "totals"), ("segments", 0, "file")} <= set(places)
        refused = 0
        for number, place in enumerate(places):
            for other in OTHERS[number % 3 :: 3]:
                text = json.dumps(with_other(entry, place, other), separators=(",", ":"))
                head = f'{{"format":{FORMAT},"checksum":{checksum(text)},"stream":'
                path.write_text(f"{head}{text}}}\n")
                try:
                    again = reopened(stream).snapshot()
                    sum(batch.num_rows for batch in again.scan(["ts", "car", "lane"]))
                    calls = [
                        AggregateCall("count"),
                        AggregateCall("sum", "lane"),
                        AggregateCall("min", "car"),
                    ]
                    aggregate(again, calls, [-100, 100], None)
                except EventideError:
                    refused += 1
                list(verify_stream(stream.path))
        assert refused > len(places) // 2, "most of what is said matters"
        path.write_bytes(whole)
        assert reopened(stream).snapshot().row_count == 34


def test_names_that_lead_out_of_the_folder(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    path = manifest_path(stream.path, 1)
    entry = json.loads(path.read_bytes())["stream"]
    text = json.dumps({**entry, "log": "../../../log"}, separators=(",", ":"))
    path.write_text(f'{{"format":{FORMAT},"checksum":{checksum(text)},"stream":{text}}}\n')
    with pytest.raises(StoreError, match=r"'\.\./\.\./\.\./log' is not the name of a log"):
        reopened(stream)
