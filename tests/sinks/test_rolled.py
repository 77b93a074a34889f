"""Files of rows: when they are finished, what their names say, what others may have put there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest

import eventide as ev
from eventide.errors import BusyError, PlanError, SinkError
from eventide.sinks import JsonLines, Parquet, Sink
from eventide.sinks.rolled import RolledFiles
from tests.sinks.rows import SCHEMA, die, rows_between, rows_of, written

KINDS = [JsonLines, Parquet]


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def names(folder: Path) -> list[str]:
    """Return what readers of a folder see."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_finished_when_it_is_full(tmp_path: Path, kind: type[RolledFiles]) -> None:
    sink = kind(tmp_path, rows=10)
    assert isinstance(sink, Sink)
    assert sink.begin("alerts", SCHEMA) == 0
    sink.take(rows_between(0, 9), 0)
    assert (names(tmp_path), sink.safe()) == ([], 0)
    sink.take(rows_between(9, 34), 9)
    suffix = sink.form.suffix
    assert names(tmp_path) == [
        f"alerts-000000000000-000000000010.{suffix}",
        f"alerts-000000000010-000000000020.{suffix}",
        f"alerts-000000000020-000000000030.{suffix}",
    ]
    assert sink.safe() == 30
    sink.flush()
    assert sink.safe() == 34
    sink.flush()
    sink.close()
    sink.close()
    assert names(tmp_path)[3:] == [f"alerts-000000000030-000000000034.{suffix}"]
    assert written(tmp_path) == list(range(34))


def test_a_file_is_finished_when_it_is_old(tmp_path: Path) -> None:
    clock = Clock()
    sink = JsonLines(tmp_path, every="5 s", clock=clock)
    sink.begin("alerts", SCHEMA)
    clock.seconds = 100.0
    sink.take(rows_between(0, 2), 0)
    clock.seconds = 104.9
    sink.tick()
    assert names(tmp_path) == []
    clock.seconds = 105.0
    sink.tick()
    assert (written(tmp_path), sink.safe()) == ([0, 1], 2)
    # It is old since its first row came, not since the last file was finished.
    clock.seconds = 200.0
    sink.take(rows_between(2, 3), 2)
    sink.take(rows_between(3, 4), 3)
    assert sink.safe() == 2
    clock.seconds = 205.0
    sink.take(rows_between(4, 5), 4)
    assert sink.safe() == 4
    clock.seconds = 209.9
    sink.tick()
    assert sink.safe() == 4
    clock.seconds = 210.0
    sink.tick()
    assert sink.safe() == 5
    sink.close()
    sink.tick()


def test_without_a_time_only_full_files_are_finished(tmp_path: Path) -> None:
    clock = Clock()
    sink = JsonLines(tmp_path, rows=2, every=None, clock=clock)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 3), 0)
    clock.seconds = 1e9
    sink.tick()
    assert written(tmp_path) == [0, 1]
    sink.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_goes_on_behind_the_rows_that_are_there(
    tmp_path: Path, kind: type[RolledFiles]
) -> None:
    sink = kind(tmp_path, rows=4)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 6), 0)
    die(sink)
    sink = kind(tmp_path, rows=4)
    assert sink.begin("alerts", SCHEMA) == 4
    # Rows come again from where they were acknowledged: those that are there are dropped.
    sink.take(rows_between(1, 3), 1)
    sink.take(rows_between(3, 7), 3)
    sink.take(rows_between(0, 7), 0)
    sink.close()
    assert written(tmp_path) == list(range(7))


def test_a_gap_is_refused_unless_rows_were_skipped(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 2), 0)
    with pytest.raises(SinkError, match="rows 2 to 4 are missing: row 5 came next") as refused:
        sink.take(rows_between(5, 6), 5)
    assert not refused.value.try_again
    sink.skip(2)
    assert sink.safe() == 0
    sink.skip(5)
    assert sink.safe() == 5
    sink.take(rows_between(5, 6), 5)
    sink.close()
    assert written(tmp_path) == [0, 1, 5]
    sink = JsonLines(tmp_path)
    assert sink.begin("alerts", SCHEMA) == 6
    sink.close()


def test_readers_may_take_old_files_away(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path, rows=2)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 6), 0)
    sink.close()
    for name in names(tmp_path)[:2]:
        (tmp_path / name).unlink()
    assert sink.begin("alerts", SCHEMA) == 6
    sink.close()


def test_what_a_crash_left_is_removed_and_what_others_put_there_is_not(tmp_path: Path) -> None:
    kept = [
        "notes.txt",
        ".alerts-000000000004-000000000008.parquet.tmp",
        ".other-000000000000-000000000004.jsonl.tmp",
        "other-000000000000-000000000009.jsonl",
        "alerts-4-8.jsonl",
        "alerts-000000000000-000000000004.jsonl.bak",
        "000000000000-000000000009.jsonl",
    ]
    for name in [*kept, ".alerts-000000000004-000000000008.jsonl.tmp"]:
        (tmp_path / name).write_text("{}")
    sink = JsonLines(tmp_path)
    assert sink.begin("alerts", SCHEMA) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, ".alerts-lock"])
    sink.close()


def test_queries_share_a_folder(tmp_path: Path) -> None:
    one, other = JsonLines(tmp_path), JsonLines(tmp_path)
    one.begin("a", SCHEMA)
    other.begin("a-000000000000-000000000002", SCHEMA)
    one.take(rows_between(0, 2), 0)
    other.take(rows_between(0, 3), 0)
    one.close()
    other.close()
    assert one.begin("a", SCHEMA) == 2
    assert other.begin("a-000000000000-000000000002", SCHEMA) == 3
    one.close()
    other.close()


def test_a_name_is_part_of_a_file_name_whatever_it_holds(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "out")
    sink.begin("../my query/ü", SCHEMA)
    sink.take(rows_between(0, 1), 0)
    sink.close()
    assert names(tmp_path / "out") == ["%2E.%2Fmy%20query%2F%C3%BC-000000000000-000000000001.jsonl"]
    assert sink.begin("../my query/ü", SCHEMA) == 1
    sink.close()


def test_a_query_without_a_name_has_no_earlier_rows(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path)
    assert sink.begin(None, SCHEMA) == 0
    sink.take(rows_between(0, 3), 0)
    sink.close()
    assert names(tmp_path) == ["000000000000-000000000003.jsonl"]
    with pytest.raises(SinkError, match="has rows 0 to 2 of an earlier query") as refused:
        sink.begin(None, SCHEMA)
    assert "give the query a name" in str(refused.value)
    # The folder is free again.
    (tmp_path / "000000000000-000000000003.jsonl").unlink()
    assert sink.begin(None, SCHEMA) == 0
    sink.close()


def test_two_sinks_do_not_write_the_same_files(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path)
    sink.begin("alerts", SCHEMA)
    other = JsonLines(tmp_path)
    with pytest.raises(BusyError, match="another sink writes these files"):
        other.begin("alerts", SCHEMA)
    sink.close()
    assert other.begin("alerts", SCHEMA) == 0
    other.close()


def test_rows_before_begin_and_after_close_are_refused(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "out")
    with pytest.raises(SinkError, match="nothing is written to"):
        sink.take(rows_between(0, 1), 0)
    with pytest.raises(SinkError, match="nothing is written to"):
        sink.flush()
    with pytest.raises(SinkError, match="nothing is written to"):
        sink.skip(3)
    sink.close()
    sink.tick()
    assert not (tmp_path / "out").exists()


DAMAGED = {
    "too few": ("alerts-000000000000-000000000003.jsonl", b"{}\n{}\n", "it has 2 rows"),
    "torn": ("alerts-000000000000-000000000002.jsonl", b"{}\n{", "its last line has no end"),
    "empty": ("alerts-000000000000-000000000002.parquet", b"", "it cannot be read"),
    "no Parquet": ("alerts-000000000000-000000000002.parquet", b"PAR1", "it cannot be read"),
    "backwards": ("alerts-000000000005-000000000002.jsonl", b"{}\n", "its name says -3"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_refused(tmp_path: Path, case: str) -> None:
    name, content, why = DAMAGED[case]
    (tmp_path / name).write_bytes(content)
    sink = (JsonLines if name.endswith("jsonl") else Parquet)(tmp_path)
    with pytest.raises(SinkError, match="is damaged, or was not written by this query") as refused:
        sink.begin("alerts", SCHEMA)
    assert why in str(refused.value)
    assert name in str(refused.value)
    assert (tmp_path / name).read_bytes() == content


def test_files_with_the_same_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "alerts-000000000000-000000000002.jsonl").write_text("{}\n{}\n")
    (tmp_path / "alerts-000000000001-000000000003.jsonl").write_text("{}\n{}\n")
    with pytest.raises(SinkError, match="have rows of the same numbers"):
        JsonLines(tmp_path).begin("alerts", SCHEMA)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match=r"cannot write .*file/out") as refused:
        JsonLines(tmp_path / "file" / "out").begin("alerts", SCHEMA)
    assert refused.value.try_again


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="at least one row"):
        JsonLines(tmp_path, rows=0)
    with pytest.raises(PlanError, match="'soon' is not a length of time"):
        JsonLines(tmp_path, every="soon")


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    sink = Parquet(tmp_path)
    sink.begin("alerts", SCHEMA)
    sink.take(rows_between(0, 0), 0)
    sink.close()
    assert names(tmp_path) == []


def test_what_is_written_can_be_read_again(tmp_path: Path) -> None:
    rows = rows_between(0, 10).drop_columns("many")
    for kind in KINDS:
        sink = kind(tmp_path / kind.__name__, rows=4)
        sink.begin("alerts", rows.schema)
        sink.take(rows, 0)
        sink.close()
    table = pyarrow.dataset.dataset(tmp_path / "Parquet").to_table().sort_by("row")
    assert table.column("word").to_pylist() == rows.column("word").to_pylist()
    db = ev.open(tmp_path / "db")
    stream = db.create_stream("alerts", rows.schema)
    for path in sorted((tmp_path / "JsonLines").glob("*.jsonl")):
        stream.append(rows_of(path))
    assert stream.events(columns=rows.schema.names).to_arrow() == pa.Table.from_batches([rows])
