"""`eventide explain` and `eventide calibrate` from a shell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eventide.api.database import Database
from eventide.engines.history.weights import DEFAULTS, Weights
from tests.cli.test_cli import run

QUERY = "SELECT v FROM s WHERE v > 1"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    database = Database(tmp_path / "db")
    stream = database.create_stream("s", {"v": "int64"})
    stream.append([{"ts": n, "v": n} for n in range(5)])
    return database.path


def test_analyze_runs_it_and_plot_draws_it(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "plan.svg"
    result = run("explain", database, QUERY, "--analyze", "--plot", target)
    assert result.exit_code == 0, result.stderr
    assert "actual" in result.stdout
    assert f"drew it into {target}" in result.stderr
    ElementTree.parse(target)
    assert "actual" not in run("explain", database, QUERY).stdout


def test_a_picture_has_to_be_one(database: Path, tmp_path: Path) -> None:
    result = run("explain", database, QUERY, "--plot", tmp_path / "plan.png")
    assert result.exit_code == 2
    assert "name a file .svg or .html" in result.stderr
    result = run("explain", database, QUERY, "--plot", tmp_path / "no" / "plan.svg")
    assert result.exit_code == 1
    assert "check the path" in result.stderr


def test_explain_as_a_query(database: Path) -> None:
    result = run("sql", database, f"EXPLAIN {QUERY}", "--format", "jsonl")
    assert '{"plan": "Project v"}' in result.stdout or '{"plan":"Project v"}' in result.stdout
    result = run("sql", database, "EXPLAIN SELECT w FROM s")
    assert result.exit_code == 2
    assert "  EXPLAIN SELECT w FROM s\n                 ^" in result.stderr


def test_calibrate_shows_weights_before_and_now(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # tests/test_calibrate.py measures; here it is only shown and kept.
    measured = replace(DEFAULTS, replay_event=2 * DEFAULTS.replay_event)
    monkeypatch.setattr("eventide.engines.history.calibrate.calibrated", lambda *_: measured)
    result = run("calibrate", database)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0].split() == ["seconds", "for", "each", "before", "now"]
    assert "replay event" in result.stdout
    assert Weights.load(database) == measured
    for command in ("stats", "verify", "streams"):
        assert run(command, database).exit_code == 0
