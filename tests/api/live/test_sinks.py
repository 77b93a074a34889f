"""Live queries hand their rows to sinks; with a name, each row exactly once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.api.live import durable
from eventide.errors import SinkError
from eventide.sinks import IntoStream, JsonLines, Parquet, Sink

SECOND = 1_000_000
TEXT = "SELECT ts, car, speed FROM cars"


def opened(folder: Path) -> ev.Database:
    db = ev.open(folder)
    if "cars" not in db.streams():
        db.create_stream("cars", {"car": "string", "speed": "float64"}, durability="none")
    return db


def append(db: ev.Database, start: int, end: int) -> None:
    for second in range(start, end):
        db.stream("cars").append([{"ts": second * SECOND, "car": "a", "speed": float(second)}])


def lines(folder: Path) -> list[float]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line)["speed"] for file in files for line in file.read_text().splitlines()]


def test_rows_go_into_files(tmp_path: Path) -> None:
    db = opened(tmp_path / "db")
    with db.subscribe(TEXT, JsonLines(tmp_path / "json", rows=3)) as query:
        other = db.subscribe(TEXT, Parquet(tmp_path / "parquet"))
        append(db, 0, 9)
        query.wait()
    other.finish()
    assert lines(tmp_path / "json") == [float(second) for second in range(8)]
    tables = [pq.read_table(file) for file in sorted((tmp_path / "parquet").glob("*.parquet"))]
    assert pa.concat_tables(tables).column("speed").to_pylist() == [float(n) for n in range(9)]


@pytest.mark.parametrize("often", [1, 3, 1000])
def test_a_durable_query_writes_each_row_once(
    tmp_path: Path, often: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any point, with files of three rows, and a stream."""
    monkeypatch.setattr(durable, "STEPS_BETWEEN", often)
    folder = tmp_path / "0"
    for kill in range(6):
        db = opened(folder / "db")
        if kill == 0:
            db.create_stream("kept", {"car": "string", "speed": "float64"}, durability="none")
        db.subscribe(TEXT, JsonLines(folder / "json", rows=3), name="files")
        db.subscribe(TEXT, IntoStream(db, "kept"), name="stream")
        append(db, 5 * kill, 5 * kill + 5)
        db.wait()
        shutil.copytree(folder, tmp_path / str(kill + 1))
        db.close()
        folder = tmp_path / str(kill + 1)
    db = opened(folder / "db")
    db.subscribe(TEXT, JsonLines(folder / "json", rows=3), name="files")
    db.subscribe(TEXT, IntoStream(db, "kept"), name="stream")
    append(db, 30, 32)
    db.wait()
    db.close()
    expected = [float(second) for second in range(31)]
    assert lines(folder / "json") == expected
    assert [row["speed"] for row in db.stream("kept").events()] == expected


class Refusing(Sink):
    """A sink that takes no row whose number is odd."""

    def __init__(self, *, try_again: bool) -> None:
        self.try_again = try_again
        self.rows: list[int] = []
        self.calls = self.skipped = 0
        self.closed = False

    def take(self, rows: pa.RecordBatch, first_row: int) -> None:
        assert rows.num_rows == 1
        self.calls += 1
        if first_row % 2:
            message = "odd"
            raise SinkError(message, try_again=self.try_again)
        self.rows.append(first_row)

    def skip(self, until: int) -> None:
        self.skipped = until

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("try_again", [False, True])
def test_rows_that_a_sink_refuses_are_dead_letters(tmp_path: Path, try_again: bool) -> None:
    db, sink = opened(tmp_path), Refusing(try_again=try_again)
    query = db.subscribe(TEXT, sink, retries=2, retry_after="0 s")
    append(db, 0, 6)
    query.finish()
    assert sink.rows == [0, 2, 4]
    assert sink.calls == 3 + 3 * (3 if try_again else 1)
    assert (sink.skipped, sink.closed) == (6, True)
    letters = db.sql("SELECT row_number, error FROM dead_letters ORDER BY row_number").rows()
    assert [letter["row_number"] for letter in letters] == [1, 3, 5]
    assert letters[0]["error"].startswith("SinkError: odd")


def test_a_query_in_place_of_another_goes_on_in_its_files(tmp_path: Path) -> None:
    db = opened(tmp_path / "db")
    with db.subscribe(TEXT, JsonLines(tmp_path / "json"), name="q") as query:
        append(db, 0, 4)
        query.wait()  # rows that nobody has received go with the query that is replaced
    slower = f"{TEXT} WHERE speed < 6"
    with db.subscribe(slower, JsonLines(tmp_path / "json"), name="q", replace=True) as query:
        append(db, 4, 9)
        query.wait()
    assert lines(tmp_path / "json") == [0.0, 1.0, 2.0, 4.0, 5.0]


def test_queries_of_the_same_name_in_two_databases_store_all_their_rows(tmp_path: Path) -> None:
    kept = ev.open(tmp_path / "kept")
    for turn in range(2):  # each goes on where it was
        for place in range(2):
            db = opened(tmp_path / str(place))
            query = db.subscribe(TEXT, IntoStream(kept, "all"), name="q")
            append(db, 4 * turn + 10 * place, 4 * turn + 10 * place + 4)
            query.wait()
            db.close()
    stored = sorted(row["speed"] for row in kept.stream("all").events())
    assert stored == [float(each) for each in (*range(7), *range(10, 17))]


@pytest.mark.parametrize("kind", [JsonLines, Parquet])
def test_files_of_another_query_of_the_same_name_are_refused(
    tmp_path: Path, kind: type[JsonLines | Parquet]
) -> None:
    first, second = opened(tmp_path / "1"), opened(tmp_path / "2")
    with first.subscribe(TEXT, kind(tmp_path / "files"), name="q"):
        append(first, 0, 3)
    with pytest.raises(SinkError, match="is of another query of the same name"):
        second.subscribe(TEXT, kind(tmp_path / "files"), name="q")
    with second.subscribe(TEXT, kind(tmp_path / "files"), name="r"):
        append(second, 0, 3)
    with first.subscribe(TEXT, kind(tmp_path / "files"), name="q") as query:
        append(first, 3, 5)
    assert query.counters.rows == 4
