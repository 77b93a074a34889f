"""Paths as callers write them: nothing is made in a folder that is called `s3:`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.cli import eventide
from eventide.errors import StoreError
from eventide.local_path import local_path

ELSEWHERE = ["s3://bucket/x.svg", "s3a://bucket/x.svg", "hdfs:/x.svg", "https://h/x.svg"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("a/b.ev", "a/b.ev"),
        ("a:b", "a:b"),
        ("./s3:/bucket", "s3:/bucket"),
        ("file:///a/b.ev", "/a/b.ev"),
        ("file:/a/b.ev", "/a/b.ev"),
        ("file://localhost/a/b.ev", "/a/b.ev"),
        ("file:///a%20b/%C3%A9%25.ev", "/a b/é%.ev"),
        (Path("file:///a/b%23.ev"), "/a/b#.ev"),
        (Path("/a/b%20.ev"), "/a/b%20.ev"),
    ],
)
def test_what_a_path_means(given: str | Path, meant: str) -> None:
    assert local_path(given) == Path(meant)


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert local_path("~/x.ev") == Path("/home/ann/x.ev")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("s3://bucket/x", "'s3://bucket/x' lies elsewhere: s3 addresses are not read"),
        (Path("gs://bucket/x"), "'gs://bucket/x' lies elsewhere: gs addresses"),
        ("file:x.ev", "names no absolute path"),
        ("file://server/share/x.ev", "names no absolute path"),
        ("file:////x.ev", "names no absolute path"),
        ("file:///x?a=1", "has '\\?'"),
        ("file:///x%2", "has '%'"),
        ("file:///x%00", "has '%00'"),
        ("", "'' is not a path"),
        ("a\0b", "is not a path"),
        ("~no_such_user_of_this_machine/x", "names a home folder"),
        (None, "a path is text, not NoneType"),
        (5, "a path is text, not int"),
        (b"x.ev", "a path is text, not bytes"),
    ],
)
def test_what_is_no_path(given: object, message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        local_path(given)
    assert caught.value.hint is not None


def open_it(_: ev.Database, address: str) -> None:
    ev.open(address)


def back_it_up(db: ev.Database, address: str) -> None:
    db.backup(address)


def draw_it(db: ev.Database, address: str) -> None:
    db.explain("SELECT * FROM s").save(address)


@pytest.mark.parametrize("address", ELSEWHERE)
@pytest.mark.parametrize("call", [open_it, back_it_up, draw_it])
def test_addresses_elsewhere_are_refused_by_every_call(
    call: Callable[[ev.Database, str], None],
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    db = ev.open("db.ev")
    db.create_stream("s", {"x": "int64"})
    with pytest.raises(StoreError, match=f"{address.partition(':')[0]} addresses are not read"):
        call(db, address)
    assert [path.name for path in tmp_path.iterdir()] == ["db.ev"]


@pytest.mark.parametrize(
    "arguments",
    [
        "sql {} SELECT",
        "sql db.ev SELECT --output {}",
        "tpstream db.ev PATTERN --plot {}",
        "explain db.ev SELECT --plot {}",
        "replay {} SELECT",
        "streams {}",
        "stats {}",
        "compact {}",
        "verify {}",
        "repair {}",
        "calibrate {}",
        "backup db.ev {}",
        "backup {} copy.ev",
        "ingest {} --into db.ev --stream s",
        "ingest x.csv --into {} --stream s",
        "demo --folder {}",
    ],
)
def test_addresses_elsewhere_are_refused_by_every_command(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ev.open("db.ev").create_stream("s", {"x": "int64"})
    found = CliRunner().invoke(eventide, arguments.format("s3://bucket/x.svg").split())
    assert found.exit_code == 2
    assert "s3 addresses are not read" in found.output
    assert [path.name for path in tmp_path.iterdir()] == ["db.ev"]


def test_file_addresses_work_in_calls_and_commands(tmp_path: Path) -> None:
    address = f"{tmp_path.as_uri()}/my%20cars.ev"
    table = tmp_path / "cars.csv"
    table.write_text("ts,x\n1,2\n")
    arguments = ["ingest", table.as_uri(), "--into", address, "--stream", "cars", "--no-progress"]
    assert CliRunner().invoke(eventide, arguments).exit_code == 0
    db = ev.open(address)
    assert db.path == tmp_path / "my cars.ev"
    assert db.sql("SELECT x FROM cars").rows() == [{"x": 2}]
    assert db.backup(f"{tmp_path.as_uri()}/copy.ev").path == tmp_path / "copy.ev"
    assert db.explain("SELECT x FROM cars").save(f"{tmp_path.as_uri()}/p.svg").exists()
