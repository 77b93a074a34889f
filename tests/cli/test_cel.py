"""`eventide cel` from a shell, and the other commands with CEL."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.api.database import Database
from tests.cli.test_cli import run

QUERY = """SELECT car_1 AS car, speed_1 AS speed
FROM FILTER{speed > 70} cars NEXT{$1.car = $2.car} (SELECT car FROM cars)"""
SHOWN = "ts,start_ts,car,speed\n"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    database = Database(tmp_path / "db")
    cars = database.create_stream("cars", {"car": "string", "speed": "float64"})
    cars.append(
        [{"ts": second, "car": "ab"[second % 2], "speed": 60.0 + second} for second in range(20)]
    )
    return database.path


@pytest.mark.parametrize("command", ["cel", "sql"])
def test_rows(database: Path, command: str) -> None:
    result = run(command, database, QUERY)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(SHOWN)
    assert len(result.stdout.splitlines()) == 8
    assert run(command, database, "-", stdin=QUERY).stdout == result.stdout


def test_any_text_is_cel_to_this_command(database: Path) -> None:
    result = run("cel", database, "SELECT car FROM cars", "--time")
    assert result.stdout.splitlines()[0] == "ts,start_ts,car"
    assert "20 rows in" in result.stderr


def test_parameters_and_publish(database: Path) -> None:
    text = "FILTER{speed > $least} cars"
    assert len(run("cel", database, text, "--param", "least=78").stdout.splitlines()) == 2
    assert run("cel", database, f"{QUERY} PUBLISH followed").exit_code == 0
    assert "7" in run("sql", database, "SELECT COUNT(*) AS n FROM followed").stdout


def test_explain(database: Path) -> None:
    shown = run("explain", database, QUERY).stdout
    assert "Sequence on car = car_1" in shown or "Sequence on car_1 = car" in shown
    assert "history: 20 events of cars in order of time" in shown


def test_errors_are_paragraphs(database: Path) -> None:
    result = run("cel", database, "FILTER{sped > 3} cars")
    assert result.exit_code == 2
    assert "no attribute 'sped' in cars" in result.stderr
    assert "did you mean 'speed'?" in result.stderr
