"""`eventide watch`: rows of a live query as they come, also of events of other processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner, Result

import eventide as ev
from eventide.api.live.subscription import Subscription
from eventide.cli import eventide

FAST = "SELECT ts, car, speed FROM cars WHERE speed > $limit"
LONG_S = 120


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(eventide, [str(each) for each in arguments])


@pytest.fixture
def database(tmp_path: Path) -> Path:
    cars = ev.open(tmp_path / "traffic.ev").create_stream(
        "cars", {"car": "string", "speed": "float64"}
    )
    cars.append([{"ts": f"2026-03-02T08:00:0{s}", "car": "old", "speed": 99.0} for s in range(3)])
    return tmp_path / "traffic.ev"


def drive(database: Path, second: int, speed: float) -> None:
    """Append an event, and one of a car that stands: then the first is certain."""
    events = [
        {"ts": f"2026-03-02T08:00:{second:02}", "car": "a", "speed": speed},
        {"ts": f"2026-03-02T08:00:{second:02}.1", "car": "b", "speed": 0.0},
    ]
    ev.open(database).stream("cars").append(events)


@contextmanager
def watching(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command in another process; it has begun when the block does."""
    code = "from eventide.cli import main; main()"
    command = [sys.executable, "-c", code, "watch", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        said = ""
        while "watching" not in said:
            line = opened(process.stderr).readline()
            assert line, said
            said += line
        yield process
    finally:
        process.kill()
        process.wait()
        opened(process.stdout).close()
        opened(process.stderr).close()


def opened(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def test_help_has_an_example() -> None:
    result = run("watch", "--help")
    assert result.exit_code == 0
    assert "    eventide watch" in result.output
    assert "--from-history" in result.output


def test_rows_of_events_of_another_process_come_until_it_is_interrupted(database: Path) -> None:
    with watching(database, FAST, "--param", "limit=70", "--format", "jsonl") as process:
        drive(database, 10, 80)
        first = json.loads(opened(process.stdout).readline())
        assert first == {"ts": "2026-03-02T08:00:10Z", "car": "a", "speed": 80.0}
        drive(database, 11, 60)
        drive(database, 12, 90)
        assert json.loads(opened(process.stdout).readline())["speed"] == 90.0
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 130
    assert out == ""
    assert "stopped: 6 events, 2 rows" in err
    assert "error: interrupted" in err
    assert "Traceback" not in err


def test_csv_has_its_names_at_once(database: Path) -> None:
    with watching(database, FAST, "--param", "limit=70") as process:
        assert opened(process.stdout).readline() == "ts,car,speed\n"
        drive(database, 10, 80)
        assert opened(process.stdout).readline() == "2026-03-02T08:00:10Z,a,80.0\n"


def test_a_table_grows(database: Path) -> None:
    with watching(database, FAST, "--param", "limit=70", "--format", "table") as process:
        drive(database, 10, 80)
        lines = [opened(process.stdout).readline() for _ in range(3)]
        drive(database, 11, 81)
        lines.append(opened(process.stdout).readline())
    assert [line.split("│")[-1].strip() for line in lines[::2]] == ["speed", "80"]
    assert lines[3] == "2026-03-02 08:00:11 │ a   │    81\n"


def test_with_history_open_windows_have_their_earlier_events(database: Path) -> None:
    text = "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    with watching(database, text, "--from-history", "--format", "jsonl") as process:
        drive(database, 10, 80)
        ev.open(database).stream("cars").append(
            [{"ts": "2026-03-02T08:02:00", "car": "a", "speed": 1.0}]
        )
        assert opened(process.stdout).readline() == '{"n": 5}\n'


def test_lateness_lets_late_events_in(database: Path) -> None:
    arguments = ("--param", "limit=70", "--lateness", "5 s", "--format", "jsonl")
    with watching(database, FAST, *arguments) as process:
        for second, speed in ((10, 80), (8, 90), (30, 0)):
            drive(database, second, speed)
        found = [json.loads(opened(process.stdout).readline())["speed"] for _ in range(2)]
    assert found == [90.0, 80.0]


@pytest.mark.parametrize("rows_come", [True, False])
def test_a_reader_that_leaves_ends_it_quietly(database: Path, rows_come: bool) -> None:
    with watching(database, FAST, "--param", "limit=70", "--format", "jsonl") as process:
        opened(process.stdout).close()
        if rows_come:
            drive(database, 10, 80)
        assert process.wait(timeout=LONG_S) == 141
        assert opened(process.stderr).read() == ""


def test_a_query_that_fails_says_why(database: Path) -> None:
    with watching(database, "SELECT CAST(speed AS BIGINT) AS s FROM cars") as process:
        drive(database, 10, 1e30)
        assert process.wait(timeout=LONG_S) == 1
        said = opened(process.stderr).read()
    assert "error: " in said
    assert "1e+30" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((FAST,), 2, "$limit"),
        (("SELECT speeed FROM cars",), 2, "speed"),
        (("SELECT car FROM cars", "--lateness", "long"), 2, "'long' is not a length of time"),
        (("SELECT car FROM cars", "--format", "parquet"), 2, "parquet"),
        (("SELECT car FROM cars ORDER BY car",), 1, "hint"),
        (("SELECT id FROM eventide.queries",), 1, "eventide.queries is no stream"),
    ],
)
def test_what_is_asked_wrongly(
    database: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    result = run("watch", database, *arguments)
    assert result.exit_code == code
    assert told in result.stderr
    assert result.stdout == ""


def test_no_database(tmp_path: Path) -> None:
    result = run("watch", tmp_path / "none.ev", "SELECT car FROM cars")
    assert result.exit_code == 1
    assert not (tmp_path / "none.ev").exists()


def test_the_query_ends_with_the_command(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Subscription] = []

    def interrupted(query: Subscription, timeout: float | None = None) -> None:
        assert timeout is not None
        begun.append(query)
        raise KeyboardInterrupt

    monkeypatch.setattr(Subscription, "next", interrupted)
    result = run("watch", database, "SELECT car FROM cars")
    assert result.exit_code == 130
    assert "stopped: 0 events, 0 rows" in result.stderr
    assert [query.status for query in begun] == ["finished"]


def test_a_name_lets_the_next_call_go_on(database: Path) -> None:
    text = "SELECT speed FROM cars WHERE speed > 70"
    arguments = (database, text, "--name", "fast", "--format", "jsonl")
    with watching(*arguments) as process:
        drive(database, 10, 80)
        assert opened(process.stdout).readline() == '{"speed": 80.0}\n'
        listed = run("queries", database).stdout
        assert f"process {process.pid}" in listed
        drive(database, 11, 81)
        assert opened(process.stdout).readline() == '{"speed": 81.0}\n'
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONG_S)
    drive(database, 12, 90)
    drive(database, 13, 95)
    with watching(*arguments) as process:
        found = [json.loads(opened(process.stdout).readline())["speed"] for _ in range(2)]
    assert found in ([90.0, 95.0], [81.0, 90.0])  # 81 may have been printed, not acknowledged


def test_durable_queries_are_listed_and_dropped(database: Path) -> None:
    assert "no durable queries yet" in run("queries", database).stdout
    with ev.open(database) as db:
        query = db.live("SELECT speed FROM cars WHERE speed > 70", name="fast", start="beginning")
        query.next(timeout=LONG_S)
    drive(database, 10, 80)
    lines = run("queries", database).stdout.splitlines()
    assert lines[0].split() == ["name", "runs", "in", "rows", "received", "behind", "query"]
    assert lines[2].split()[:3] == ["fast", "0", "2"]
    assert "SELECT speed FROM cars" in lines[2]
    assert run("queries", database, "--drop", "fast").exit_code == 0
    assert "no durable queries yet" in run("queries", database).stdout
    again = run("queries", database, "--drop", "fast")
    assert again.exit_code == 1
    assert "no durable query 'fast'" in again.stderr


def test_a_damaged_query_is_listed_with_what_helps(database: Path) -> None:
    with ev.open(database) as db:
        db.live("SELECT speed FROM cars", name="fast")
    checkpoint = database / "queries" / "fast" / "checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    listed = run("queries", database)
    assert listed.exit_code == 0
    said = " ".join(listed.stdout.split())
    assert "checkpoint is damaged" in said.replace("\n", "")
    assert "replace=True" in said
    assert run("queries", database, "--drop", "fast").exit_code == 0


def test_start_and_replace_need_a_name(database: Path) -> None:
    for option in (("--replace",), ("--start", "beginning")):
        result = run("watch", database, "SELECT car FROM cars", *option)
        assert result.exit_code == 2
        assert "--name" in result.stderr


def test_a_backup_names_the_durable_queries_that_it_leaves_out(
    database: Path, tmp_path: Path
) -> None:
    with ev.open(database) as db:
        db.live("SELECT speed FROM cars", name="fast")
    result = run("backup", database, tmp_path / "copy")
    assert result.exit_code == 0
    assert "not copied, durable queries: fast" in result.stdout + result.stderr
    assert ev.open(tmp_path / "copy").kept_queries() == ()
