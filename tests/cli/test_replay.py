"""`eventide replay`: rows as they come, on stdout; progress, on stderr."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import eventide as ev
from eventide.api.replay.pace import WallClock
from eventide.cli import eventide

COUNTS = "SELECT window_start, COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(eventide, [str(each) for each in arguments], input=stdin)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    cars = ev.open(tmp_path / "traffic.ev").create_stream("cars", {"car": "string"})
    cars.append([{"ts": f"2026-03-02T08:00:{s:02}", "car": "b" * (s // 10)} for s in range(25)])
    return tmp_path / "traffic.ev"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock of its own, which nobody waits for."""
    slept: list[float] = []
    monkeypatch.setattr(WallClock, "now", lambda _: 1000 + sum(slept))
    monkeypatch.setattr(WallClock, "sleep", lambda _, seconds: slept.append(seconds))
    return slept


def test_help_has_an_example() -> None:
    result = run("replay", "--help")
    assert result.exit_code == 0
    assert "    eventide replay" in result.output
    assert "--speed" in result.output


def test_rows_come_as_csv_with_one_line_of_names(database: Path) -> None:
    result = run("replay", database, COUNTS)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "window_start,n",
        "2026-03-02T08:00:00Z,10",
        "2026-03-02T08:00:10Z,10",
        "2026-03-02T08:00:20Z,5",
    ]
    assert "replayed 25 events up to 2026-03-02 08:00:24" in result.stderr
    assert "3 rows" in result.stderr


def test_a_range_and_a_speed(database: Path, hurried: list[float]) -> None:
    arguments = ("--from", "2026-03-02T08:00:05", "--to", "2026-03-02 08:00:15", "--speed", "25x")
    result = run("replay", database, "-", *arguments, "--format", "jsonl", stdin=COUNTS)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        '{"window_start": "2026-03-02T08:00:00Z", "n": 5}',
        '{"window_start": "2026-03-02T08:00:10Z", "n": 5}',
    ]
    assert hurried == pytest.approx([0.04] * 9)


def test_a_table_grows_wider_when_it_has_to(database: Path, hurried: list[float]) -> None:
    text = "SELECT car FROM cars"
    result = run("replay", database, text, "--format", "table", "--speed", "100x")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines == ["car", "───", *[""] * 10, *["b"] * 10, *["bb"] * 5]
    assert hurried


def test_without_rows_there_are_still_names(database: Path) -> None:
    result = run("replay", database, COUNTS, "--from", "2027-01-01")
    assert result.stdout == "window_start,n\n"
    assert "replayed no events" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--speed", "fast"), 2, "'fast' is not a speed"),
        (("--from", "noon"), 2, "'noon' is not a time"),
        (("--from", "2027-01-01", "--to", "2026-01-01"), 2, "exchange --from and --to"),
        (("--lateness", "long"), 2, "'long' is not a length of time"),
        (("--format", "parquet"), 2, "parquet"),
    ],
)
def test_what_is_asked_wrongly(
    database: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    result = run("replay", database, COUNTS, *arguments)
    assert result.exit_code == code
    assert told in result.stderr
    assert result.stdout == ""


def test_a_query_that_cannot_run_live(database: Path) -> None:
    result = run("replay", database, "SELECT car FROM cars ORDER BY car LIMIT 1")
    assert result.exit_code == 1
    assert "ask it over history" in result.stderr


def test_an_interrupted_replay_says_where_it_was(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(WallClock, "sleep", interrupt)
    result = run("replay", database, "SELECT car FROM cars", "--speed", "1x")
    assert result.exit_code == 130
    assert "stopped: 1 of 25 events up to 2026-03-02 08:00:00" in result.stderr
