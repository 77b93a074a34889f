"""`eventide tpstream` from a shell."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest

from eventide.api.database import Database
from eventide.cli.tpstream import has_lines
from tests.cli.test_cli import run
from tests.golden.situation_pictures import QUERY, cars


@pytest.fixture
def database(tmp_path: Path) -> Path:
    database = Database(tmp_path / "db")
    attributes = {"car": "string", "speed": "float64", "accel": "float64"}
    database.create_stream("cars", attributes).append(cars())
    return database.path


def test_matches_are_rows(database: Path, tmp_path: Path) -> None:
    result = run("tpstream", database, QUERY, "--format", "jsonl", "--time")
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["car"], row["top"]) for row in rows] == [("M-ES 2054", 39.0), ("M-AX 417", 38.5)]
    assert "2 rows in" in result.stderr
    table = run("tpstream", database, "-", "--format", "table", stdin=QUERY)
    assert "M-AX 417" in table.stdout
    assert "2 rows" in table.stdout
    target = tmp_path / "rows.parquet"
    assert run("tpstream", database, QUERY, "--output", target).exit_code == 0
    assert pyarrow.parquet.read_table(target).num_rows == 2


@pytest.mark.parametrize("name", ["matches.svg", "matches.HTML"])
def test_plot_writes_a_picture(database: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    result = run("tpstream", database, QUERY, "--plot", target, "--most", "1")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("car,ts,top,hardest\n")
    assert f"drew it into {target}" in result.stderr
    drawn = target.read_text()
    assert "car M-ES 2054" in drawn
    assert "and 1 more match" in drawn
    if name.endswith("svg"):
        ElementTree.fromstring(drawn)
    else:
        assert '<b class="keyword">PATTERN</b>' in drawn


def test_plot_draws_here(database: Path, tmp_path: Path) -> None:
    result = run("tpstream", database, QUERY, "--plot", "-")
    assert result.exit_code == 0, result.stderr
    assert "car M-AX 417, detected 2026-03-02 08:00:22" in result.stdout
    assert "  fast     " in result.stdout
    assert "━━━━" in result.stdout
    assert "2 rows" in result.stdout  # a table stands over it, though this is no terminal
    target = tmp_path / "rows.csv"
    result = run("tpstream", database, QUERY, "--plot", "-", "--output", target)
    assert target.read_text().startswith("car,ts")
    assert "detected" in result.stdout


def test_what_cannot_be_drawn_is_refused_before_the_query_runs(
    database: Path, tmp_path: Path
) -> None:
    result = run("tpstream", database, "nonsense", "--plot", tmp_path / "matches.png")
    assert result.exit_code == 2
    assert "name a file .svg or .html, or -" in result.stderr
    result = run("tpstream", database, "nonsense", "--plot", "-", "--format", "csv")
    assert result.exit_code == 2
    assert "--output rows.csv" in result.stderr
    result = run("tpstream", database, "nonsense", "--format", "parquet")
    assert "Parquet cannot go to the terminal" in result.stderr


def test_errors_are_paragraphs(database: Path, tmp_path: Path) -> None:
    result = run("tpstream", database, "FROM cars")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    result = run("tpstream", database, QUERY.replace("accel < -3", "axel < -3"))
    assert result.exit_code == 2
    assert "^^^^" in result.stderr
    summary = QUERY[: QUERY.index("RETURN")] + "RETURN COUNT(*) AS n"
    result = run("tpstream", database, summary, "--plot", tmp_path / "n.svg")
    assert result.exit_code == 1
    assert "each row is over many matches" in result.stderr
    result = run("tpstream", database, QUERY, "--plot", tmp_path / "no" / "n.svg")
    assert result.exit_code == 1
    assert "check the path" in result.stderr


def test_a_terminal_may_have_no_lines() -> None:
    assert has_lines("utf-8")
    assert not has_lines("latin-1")
    assert not has_lines(None)
    assert not has_lines("no such encoding")
