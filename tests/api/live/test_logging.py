"""What live queries say under `eventide.live`, and that values of parameters stay out of it."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import eventide as ev
from eventide.api.database import Database

SOURCE = Path(ev.__file__).parent
LOGGERS = {"eventide.live", "eventide.store", "eventide.history", "eventide.rules"}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(tmp_path / "traffic.ev") as opened:
        opened.create_stream("cars", {"car": "string", "speed": "float64"})
        yield opened


def drive(db: Database, *speeds: float) -> None:
    events = [{"ts": second, "car": "a", "speed": speed} for second, speed in enumerate(speeds)]
    db.stream("cars").append(events)


def test_a_life_is_told_at_level_info(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "eventide.live")
    query = db.live("SELECT car FROM cars WHERE car <> $secret", params={"secret": "hunter2"})
    query.pause()
    query.resume()
    query.cancel()
    said = [record.getMessage().split(":")[0] for record in caplog.records]
    assert said == [
        "live query 1 has begun",
        "live query 1 is paused",
        "live query 1 goes on",
        "live query 1 has ended",
    ]
    assert "hunter2" not in caplog.text
    assert {record.name for record in caplog.records} == {"eventide.live"}


def test_a_failure_is_told_once_as_an_error(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    db.live("SELECT CAST(speed AS BIGINT) AS s FROM cars")
    drive(db, 1e30, 0)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("eventide.live", "ERROR")
    assert "cannot cast 1e+30" in record.getMessage()


def test_a_stream_that_is_dropped_is_told_as_an_error(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    query = db.live("SELECT car FROM cars")
    db.drop_stream("cars")
    query.catch_up()
    assert query.status == "failed"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_there_is_one_logger_for_a_subject() -> None:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger":
                (name,) = node.args
                assert isinstance(name, ast.Constant), path
                found.add(str(name.value))
    assert found - {"sqlglot"} == LOGGERS
