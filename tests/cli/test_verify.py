"""`eventide verify` and `eventide repair`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eventide.cli import eventide
from eventide.store import Store, StoredStream
from tests.store.damage import flipped, rows
from tests.store.events import new_stream, table


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
    assert (result.exit_code, result.output) == (0, "cars: whole\ntrucks: whole\n")
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
