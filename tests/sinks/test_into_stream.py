"""Rows as events of a stream: each once, whatever fails, beside those that others append."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import SinkError, StoreError
from eventide.sinks import IntoStream, Sink
from tests.sinks.rows import rows_between as all_columns
from tests.store.events import reopened, tiny_files
from tests.store.writing.faults import FailingDisk, using

FULL = OSError(errno.ENOSPC, "No space left on device")


class Crash(BaseException):
    """The process dies: no handler of ours cleans up after this one."""


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    return ev.open(tmp_path / "db")


def rows_between(first: int, end: int) -> pa.RecordBatch:
    """Return rows that a stream can hold."""
    return all_columns(first, end).drop_columns("many")


SCHEMA = rows_between(0, 0).schema


def stored(db: ev.Database, name: str = "alerts") -> list[object]:
    """Return the numbers of the rows in the order in which they were stored."""
    rows = db.stream(name).events(columns=["_seq", "row"]).to_arrow().sort_by("_seq")
    found: list[object] = rows.column("row").to_pylist()
    return found


def begun(db: ev.Database, query: str | None = "alerts") -> IntoStream:
    """Return a sink that has begun."""
    sink = IntoStream(db, "alerts")
    sink.begin(query, SCHEMA)
    return sink


def test_a_stream_is_made_for_the_rows(db: ev.Database) -> None:
    sink = IntoStream(db, "alerts")
    assert isinstance(sink, Sink)
    assert sink.begin("alerts", SCHEMA) == 0
    sink.take(rows_between(0, 3), 0)
    assert sink.safe() == 3
    sink.close()
    sink.close()
    assert db.stream("alerts").schema.to_json() == {"row": "int64", "word": "string"}
    events = db.stream("alerts").events(columns=SCHEMA.names).to_arrow()
    assert events == pa.Table.from_batches([rows_between(0, 3)])


def test_each_row_is_stored_once_beside_those_of_others(db: ev.Database) -> None:
    sink = begun(db)
    sink.take(rows_between(0, 3), 0)
    db.stream("alerts").append({"ts": 0, "row": -1, "word": None})
    other = begun(db, "other")
    assert other.next_row == 0
    other.take(rows_between(0, 2), 0)
    sink.take(rows_between(0, 5), 0)
    sink.take(rows_between(1, 4), 1)
    # In another process, rows come again from where they were acknowledged.
    sink = IntoStream(db, "alerts")
    assert sink.begin("alerts", SCHEMA) == 5
    sink.take(rows_between(2, 7), 2)
    assert stored(db) == [0, 1, 2, -1, 0, 1, 3, 4, 5, 6]


def test_a_query_without_a_name_has_no_earlier_rows(db: ev.Database) -> None:
    for _ in range(2):
        sink = begun(db, None)
        assert sink.next_row == 0
        sink.take(rows_between(0, 2), 0)
        sink.take(rows_between(1, 3), 1)
        sink.close()
    assert stored(db) == [0, 1, 2, 0, 1, 2]


def test_a_gap_is_refused_unless_rows_were_skipped(db: ev.Database) -> None:
    sink = begun(db)
    sink.take(rows_between(0, 2), 0)
    with pytest.raises(SinkError, match="rows 2 to 3 are missing"):
        sink.take(rows_between(4, 5), 4)
    sink.skip(1)
    sink.skip(4)
    assert sink.safe() == 4
    sink.take(rows_between(4, 5), 4)
    assert stored(db) == [0, 1, 4]
    assert IntoStream(db, "alerts").begin("alerts", SCHEMA) == 5


@pytest.mark.parametrize("durability", ["group", "none"])
def test_rows_are_safe_once_they_are_on_the_disk(db: ev.Database, durability: str) -> None:
    db.create_stream("alerts", SCHEMA, durability=durability)
    sink = begun(db)
    sink.take(rows_between(0, 2), 0)
    assert sink.safe() == 0
    sink.tick()
    assert sink.safe() == 2
    sink.take(rows_between(2, 3), 2)
    sink.flush()
    assert sink.safe() == 3
    sink.take(rows_between(3, 4), 3)
    sink.close()
    assert sink.safe() == 4
    sink.tick()


def test_earlier_rows_are_on_the_disk_before_later_ones_are_called_safe(db: ev.Database) -> None:
    db.create_stream("alerts", SCHEMA, durability="none")
    sink = begun(db)
    sink.take(rows_between(0, 2), 0)
    db.stream("alerts").configure(durability="batch")
    with patch.object(ev.Stream, "sync", side_effect=FULL), pytest.raises(OSError, match="No sp"):
        sink.take(rows_between(2, 3), 2)
    assert sink.safe() == 0
    sink.take(rows_between(2, 4), 2)
    assert sink.safe() == 4
    assert stored(db) == [0, 1, 2, 3]


def test_live_queries_see_the_rows(db: ev.Database) -> None:
    sink = begun(db)
    seen: list[object] = []
    db.subscribe(
        "SELECT row FROM alerts",
        lambda result: seen.extend(result.to_arrow().column("row").to_pylist()),
    )
    sink.take(rows_between(0, 3), 0)
    sink.take(rows_between(1, 5), 1)
    sink.close()
    db.stream("alerts").append({"ts": datetime(2000, 1, 1, tzinfo=UTC), "row": 9, "word": None})
    # The newest event of a stream waits for those of the same time.
    db.wait()
    assert seen[:5] == [0, 1, 2, 3, 4]


def test_columns_fit_by_name_and_numbers_by_value(db: ev.Database) -> None:
    db.create_stream("alerts", {"word": "string", "row": "float64"})
    sink = begun(db)
    sink.take(rows_between(0, 3), 0)
    assert stored(db) == [0.0, 1.0, 2.0]


def test_a_value_that_does_not_fit_is_of_no_use_again(db: ev.Database) -> None:
    db.create_stream("alerts", {"word": "string", "row": "decimal(2,0)"})
    sink = begun(db)
    with pytest.raises(SinkError, match=r"alerts cannot take the rows: .*100") as refused:
        sink.take(rows_between(99, 101), 0)
    assert not refused.value.try_again
    assert stored(db) == []
    sink.skip(2)
    sink.take(rows_between(2, 3), 2)
    assert len(stored(db)) == 1
    without_time = pa.RecordBatch.from_arrays(
        [pa.nulls(1, SCHEMA.field(0).type), *rows_between(3, 4).columns[1:]], schema=SCHEMA
    )
    with pytest.raises(SinkError, match="alerts cannot take the rows: ") as refused:
        sink.take(without_time, 3)
    assert not refused.value.try_again


COLUMNS: dict[str, dict[str, str]] = {
    "one less": {"row": "int64"},
    "one more": {"row": "int64", "word": "string", "more": "int64"},
    "another type": {"row": "string", "word": "string"},
    "another name": {"line": "int64", "word": "string"},
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_stream_with_other_columns_is_refused(db: ev.Database, case: str) -> None:
    db.create_stream("alerts", COLUMNS[case])
    with pytest.raises(SinkError, match="the columns of alerts are not those of the query"):
        begun(db)


def test_rows_that_are_no_events_are_refused(db: ev.Database) -> None:
    for schema in (SCHEMA.remove(0), pa.schema([("ts", pa.int64())])):
        with pytest.raises(SinkError, match="rows without a time ts are no events"):
            IntoStream(db, "alerts").begin("alerts", schema)
    assert db.streams() == ()


def test_a_stream_of_a_query_is_refused(db: ev.Database) -> None:
    db.create_stream("cars", SCHEMA)
    db.sql("CREATE STORED STREAM alerts AS SELECT row, word FROM cars")
    schema = db.stream("alerts").schema.arrow
    with pytest.raises(StoreError, match="alerts stores the rows of a query"):
        IntoStream(db, "alerts").begin("alerts", schema)
    db.sql("CREATE STREAM fast AS SELECT row, word FROM cars")
    with pytest.raises(StoreError, match="fast"):
        IntoStream(db, "fast").begin("alerts", schema)


def test_rows_before_begin_and_after_close_are_refused(db: ev.Database) -> None:
    sink = IntoStream(db, "alerts")
    sink.tick()
    sink.close()
    with pytest.raises(SinkError, match="nothing is appended to alerts now"):
        sink.take(rows_between(0, 1), 0)
    assert repr(sink) == "<IntoStream alerts>"


def test_a_backup_goes_on_as_well(db: ev.Database, tmp_path: Path) -> None:
    begun(db).take(rows_between(0, 3), 0)
    copy = db.backup(tmp_path / "copy")
    begun(copy).take(rows_between(0, 5), 0)
    assert stored(copy) == [0, 1, 2, 3, 4]


@pytest.fixture
def _tiny() -> Iterator[None]:
    with tiny_files():
        yield


@pytest.mark.usefixtures("_tiny")
@pytest.mark.parametrize("rows", [4, 40], ids=["few", "bulk"])
@pytest.mark.parametrize("crash", [True, False], ids=["crash", "error"])
def test_every_call_of_the_disk_may_fail(tmp_path: Path, rows: int, crash: bool) -> None:
    with patch("os.fsync"), patch("os.fdatasync"):
        for step in range(1, 200):
            db = ev.open(tmp_path / f"{step}")
            sink = begun(db)
            sink.take(rows_between(0, 3), 0)
            error: BaseException = Crash() if crash else FULL
            disk = FailingDisk(step, error, dead=crash)
            try:
                with using(disk):
                    sink.take(rows_between(3, 3 + rows), 3)
            except Crash:
                reopened(db.store.stream("alerts"))
                db = ev.open(db.path)
                sink = begun(db)
                assert sink.safe() in (3, 3 + rows)
            except (StoreError, OSError):
                pass
            # Perhaps in other batches than before.
            sink.take(rows_between(3, 5 + rows), 3)
            assert sink.safe() == 5 + rows
            assert stored(db) == list(range(5 + rows))
            if disk.calls < step:
                assert step > 2, "nothing was injected"
                return
    pytest.fail("taking rows never finished")
