"""A TPStream statement works wherever SQL works, and gives the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import BindError, ParseError

SECOND = 1_000_000
STATEMENT = """
FROM cars PARTITION BY car
DEFINE fast AS speed > 70, brake AS accel < -9
PATTERN fast meets brake; fast overlaps brake
WITHIN 5 MINUTES
RETURN max(fast.speed) AS top, DURATION(brake) AS held
"""
SQL = f"SELECT * FROM cars TPSTREAM ({STATEMENT.partition('cars')[2]})"

#  s      0   1   2   3   4   5   6   7   8   9
#  speed  50  80  90  85  60  50  80  80  50  50     fast   [1, 4)         [6, 8)
#  accel  0   0   0  -10 -10  0   0   0  -10  0      brake      [3, 5)         [8, 9)
CARS = pa.table(
    {
        "ts": [second * SECOND for second in range(10)],
        "car": ["a"] * 10,
        "speed": [50.0, 80.0, 90.0, 85.0, 60.0, 50.0, 80.0, 80.0, 50.0, 50.0],
        "accel": [0.0, 0.0, 0.0, -10.0, -10.0, 0.0, 0.0, 0.0, -10.0, 0.0],
    }
)
TOPS = [90.0, 80.0]


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    opened = ev.open(tmp_path / "cars.ev")
    opened.create_stream("cars", {"car": "string", "speed": "float64", "accel": "float64"})
    opened.stream("cars").append(CARS)
    return opened


def test_the_statement_answers_as_sql_does(db: ev.Database) -> None:
    rows = db.tpstream(STATEMENT).rows()
    assert [row["top"] for row in rows] == TOPS
    assert db.sql(STATEMENT).rows() == rows == db.sql(SQL).rows()
    assert ev.tpstream(STATEMENT, cars=CARS).rows() == rows


def test_the_statement_goes_where_sql_goes(db: ev.Database) -> None:
    assert "TemporalPattern" in db.explain(STATEMENT)
    assert "TemporalPattern" in str(db.tpstream(f"EXPLAIN {STATEMENT}").rows())
    replayed = db.replay(STATEMENT)
    assert [row["top"] for piece in replayed for row in piece.rows()] == TOPS


def test_the_statement_stands_live(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "live.ev")
    db.create_stream("cars", {"car": "string", "speed": "float64", "accel": "float64"})
    found: list[float] = []
    db.subscribe(STATEMENT, lambda piece: found.extend(row["top"] for row in piece.rows()))
    for second in range(10):
        db.stream("cars").append(CARS.slice(second, 1))
    db.wait()
    assert found == TOPS


def test_tpstream_takes_no_sql(db: ev.Database) -> None:
    with pytest.raises(ParseError, match="not a TPStream statement"):
        db.tpstream(SQL)


def test_a_mistake_points_into_the_statement(db: ev.Database) -> None:
    with pytest.raises(BindError) as caught:
        db.tpstream(STATEMENT.replace("accel", "acel"))
    assert "brake AS acel < -9" in str(caught.value)
    assert "did you mean 'accel'?" in str(caught.value)
