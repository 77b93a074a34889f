"""Every call that takes a query takes the values of its parameters."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import eventide as ev
from eventide.api.database import Database
from eventide.errors import BindError
from tests.cli.test_cli import run

FAST = "SELECT car FROM cars WHERE speed > $limit"
CARS = [{"ts": n * 1_000_000, "car": "ab"[n % 2], "speed": 50.0 + 10 * n} for n in range(4)]
PATTERN = """FROM cars DEFINE fast AS speed > $limit, slow AS speed <= ($limit + 10)
             PATTERN slow overlaps fast WITHIN $within RETURN LAST(fast.speed) AS top"""


@pytest.fixture
def db(tmp_path: Path) -> Database:
    opened = ev.open(tmp_path / "db")
    opened.create_stream("cars", {"car": "string", "speed": "float64"}).append(CARS)
    return opened


def test_over_history(db: Database) -> None:
    assert db.sql(FAST, {"limit": 65}).rows() == [{"car": "a"}, {"car": "b"}]
    assert ev.sql(FAST, params={"limit": 75}, cars=CARS).rows() == [{"car": "b"}]


def test_temporal_patterns(db: Database) -> None:
    params = {"limit": 55, "within": timedelta(minutes=1)}
    expected = [{"top": 70.0}]
    assert [{"top": row["top"]} for row in db.tpstream(PATTERN, params).rows()] == expected
    found = ev.tpstream(PATTERN, params=params, cars=CARS)
    assert [{"top": row["top"]} for row in found.rows()] == expected


def test_live_and_replayed(db: Database) -> None:
    got: list[object] = []
    live = db.subscribe(FAST, lambda rows: got.extend(rows.rows()), params={"limit": 100})
    db.stream("cars").append([{"ts": 9_000_000, "car": "c", "speed": 101.0}])
    live.advance("1970-01-01 00:01:00")
    live.wait()
    assert got == [{"car": "c"}]
    rows = [row for part in db.replay(FAST, params={"limit": 75}) for row in part.rows()]
    assert rows == [{"car": "b"}, {"car": "c"}]


def test_standing(db: Database) -> None:
    text = "SELECT car, speed FROM cars [RANGE ?] WHERE speed > ?"
    assert db.sql(text, [timedelta(seconds=2), 65]).rows() == [
        {"car": "a", "speed": 70.0},
        {"car": "b", "speed": 80.0},
    ]


def test_explained(db: Database) -> None:
    assert "speed > 65.0" in db.explain(FAST, {"limit": 65})
    assert "speed > 65.0" in str(db.sql(f"EXPLAIN {FAST}", {"limit": 65}))
    assert "speed > 65.0" in str(ev.sql(f"EXPLAIN {FAST}", params={"limit": 65}, cars=CARS))
    with pytest.raises(BindError, match=r"EXPLAIN SELECT car.*no value|no value for \$limit"):
        db.sql(f"EXPLAIN {FAST}")


def test_a_built_query_may_have_parameters(db: Database) -> None:
    a, b = ev.variables("A B")
    query = ev.match("cars").pattern(a + b).define(B="speed > PREV(speed) + $by")
    query = query.measures(top="B.speed")
    assert db.sql(query, {"by": 9}).rows() == [{"top": 60.0}, {"top": 80.0}]
    assert db.sql(query, {"by": 10}).rows() == []


def test_in_a_shell(db: Database) -> None:
    done = run("sql", db.path, FAST, "--param", "limit=75", "--format", "csv")
    assert done.stdout == "car\nb\n"
    counted = FAST.replace("$limit", "? AND car = ?")
    done = run("sql", db.path, counted, "--param", "1=5e1", "--param", "2=a", "--format", "csv")
    assert done.stdout == "car\na\n"
    assert "speed > 75.0" in run("explain", db.path, FAST, "--param", "limit=75").stdout
    done = run("replay", db.path, FAST, "--param", "limit=75", "--format", "csv")
    assert done.stdout == "car\nb\n"
    options = ("--param", "limit=55", "--param", "within=1 minute")
    done = run("tpstream", db.path, PATTERN, *options, "--format", "csv")
    assert done.stdout.splitlines()[-1].endswith("70.0"), done.stderr
    for wrong in ("limit", "limit 5", "=5"):
        done = run("sql", db.path, FAST, "--param", wrong)
        assert done.exit_code == 2
        assert "is not NAME=VALUE" in done.stderr
    done = run("sql", db.path, FAST, "--param", "limit=1", "--param", "limit=2")
    assert "given twice" in done.stderr
    done = run("sql", db.path, FAST, "--param", "limits=1")
    assert done.exit_code == 2
    assert "did you mean 'limits'?" in done.stderr
