"""`eventide verify` and `eventide repair`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eventide.cli import eventide
from eventide.store import Store, StoredStream, StreamOptions
from tests.store.events import SCHEMA, new_stream, table
from tests.store.upkeep.damage import flipped, rows


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(eventide, [str(each) for each in arguments], input=stdin)


@pytest.fixture
def stream(tmp_path: Path) -> StoredStream:
    stream = new_stream(tmp_path)
    stream.append(table(rows(0, 500)))
    stream.flush(seal=True)
    return stream


@pytest.fixture
def database(stream: StoredStream) -> Path:
    return stream.path.parent.parent


def damage(stream: StoredStream) -> None:
    (path,) = stream.path.glob("seg-*.ev")
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(flipped(content, len(content) // 2, 0))


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_help_has_an_example(command: str) -> None:
    output = run(command, "--help").output
    assert f"    eventide {command} traffic.ev" in output


def test_a_whole_database(stream: StoredStream, database: Path) -> None:
    Store.open(database).create_stream("trucks", stream.schema)
    result = run("verify", database)
    assert result.exit_code == 0
    assert re.fullmatch(
        r"cars: whole\n  not known: whether .* after version \d+ .* behind byte [\d,]+\n"
        r"trucks: whole\n  not known: .*\n",
        result.output,
    )
    result = run("repair", database, "--stream", "cars")
    assert (result.exit_code, result.output) == (0, "cars: whole\n")


def test_what_is_damaged_is_said(stream: StoredStream, database: Path) -> None:
    damage(stream)
    result = run("verify", database, "--stream", "cars")
    assert result.exit_code == 1
    assert "cars: damaged in 1 place\n  seg-" in result.output
    assert "500 events, 1970-01-01" in result.output
    assert "hint: " in result.output


def test_a_dry_run_changes_nothing(stream: StoredStream, database: Path) -> None:
    damage(stream)
    before = {path.name for path in stream.path.iterdir()}
    result = run("repair", database, "--dry-run")
    assert result.exit_code == 0
    assert "cars: lost\n  seg-" in result.output
    assert {path.name for path in stream.path.iterdir()} == before
    assert run("verify", database).exit_code == 1


def test_repair_asks_first(stream: StoredStream, database: Path) -> None:
    damage(stream)
    assert run("repair", database, stdin="n\n").exit_code == 1
    assert run("verify", database).exit_code == 1
    result = run("repair", database, stdin="y\n")
    assert result.exit_code == 0
    assert "cars: repaired" in result.output
    assert run("verify", database).exit_code == 0


def test_repair_without_a_question(stream: StoredStream, database: Path) -> None:
    damage(stream)
    assert run("repair", database, "--yes").exit_code == 0
    assert "cars: whole (2 files left over)\n" in run("verify", database).output
    assert list(stream.path.glob("seg-*.ev.damaged"))


def test_a_damaged_manifest_does_not_stop_them(stream: StoredStream, database: Path) -> None:
    newest = max(stream.path.glob("manifest-*.json"))
    newest.write_bytes(newest.read_bytes()[:-9])
    assert run("verify", database).exit_code == 1
    assert run("repair", database, "--yes").exit_code == 0
    assert run("verify", database).exit_code == 0
    assert stream.snapshot().row_count == 500


def test_a_stream_that_does_not_exist(database: Path) -> None:
    result = run("verify", database, "--stream", "card")
    assert result.exit_code == 1
    assert "did you mean 'cars'?" in result.output


def test_a_stream_without_a_manifest_is_damaged(stream: StoredStream, database: Path) -> None:
    for path in stream.path.glob("manifest-*.json"):
        path.unlink()
    result = run("verify", database)
    assert result.exit_code == 1
    assert "cars: damaged in 1 place\n  cars: no version of the manifest is there" in result.output
    result = run("repair", database, "--yes")
    assert result.exit_code == 0
    assert "cars: repaired\n  set the options of the stream again" in result.output
    assert run("verify", database).exit_code == 0
    assert Store.open(database).stream("cars").snapshot().row_count == 500


def test_a_stream_that_cannot_be_repaired(stream: StoredStream, database: Path) -> None:
    damage(stream)
    bare = Store.open(database).create_stream("bare", stream.schema)
    for path in bare.path.glob("manifest-*.json"):
        path.unlink()
    result = run("repair", database, "--yes")
    assert result.exit_code == 1
    assert "bare: cannot be repaired\n  no version of the manifest" in result.output
    assert "cars: repaired" in result.output


def test_a_lost_index_can_be_built_again(tmp_path: Path) -> None:
    options = StreamOptions(indexes=("car",))
    stream = Store.open(tmp_path / "db").create_stream("cars", SCHEMA, options)
    stream.append(table(rows(0, 50)))
    stream.flush(seal=True)
    (index,) = stream.path.glob("*.ix")
    index.unlink()
    result = run("verify", tmp_path / "db")
    assert f"the index of car: {index} is missing\n" in result.output
    assert "snapshot" not in result.output
    result = run("repair", tmp_path / "db", "--yes")
    assert result.output.endswith("cars: repaired\n  run `eventide compact` to build it again\n")
    assert run("compact", tmp_path / "db").exit_code == 0
    assert list(stream.path.glob("*.ix"))


def test_a_log_that_was_cut_off_is_damage(stream: StoredStream, database: Path) -> None:
    stream.append(table(rows(500, 10)))
    stream.add_index("lane", "next")
    log = stream.path / stream.snapshot().manifest.log
    os.truncate(log, log.stat().st_size - 8)
    result = run("verify", database)
    assert result.exit_code == 1
    assert "were acknowledged" in result.output
    assert "not known" not in result.output
    assert "10 events, numbers 500 to 509" in run("repair", database, "--yes").output
    assert run("verify", database).exit_code == 0
