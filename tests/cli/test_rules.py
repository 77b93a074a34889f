"""`eventide rules`: kept, checked, over history and live."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import eventide as ev
from eventide.cli import eventide

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "rules"
RULE = """
title: Failed
name: failed
level: high
logsource: {category: logins}
detection: {one: {Outcome: failed}, condition: one}
"""
BAD = RULE.replace("failed", "bad").replace("Outcome", "Outcme")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(eventide, [str(each) for each in arguments])


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "logs.ev"
    ev.open(path).create_stream("logins", {"Outcome": "string", "User": "string"})
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "failed.yml").write_text(RULE)
    return path


def login(database: Path, second: int, outcome: str) -> None:
    """Append an event, and one that makes it certain."""
    ts = f"2026-03-02T08:00:{second:02}"
    events = [
        {"ts": ts, "Outcome": outcome, "User": "anna"},
        {"ts": f"{ts}.5", "Outcome": "none", "User": None},
    ]
    ev.open(database).stream("logins").append(events)


def test_help_has_examples() -> None:
    for command in ("", "add", "list", "check", "drop", "run", "watch"):
        result = run("rules", *filter(None, [command]), "--help")
        assert result.exit_code == 0
        assert "    eventide rules" in result.output


def test_rules_are_added_listed_run_and_dropped(database: Path) -> None:
    added = run("rules", "add", database.parent / "rules", "--db", database)
    assert (added.exit_code, added.stdout) == (0, "1 rule\n")
    login(database, 1, "FAILED")
    listed = run("rules", "list", "--db", database).stdout
    assert listed.split()[-5:] == ["failed", "high", "event", "Failed", "failed.yml"]
    text = run("rules", "run", "--db", database, "--format", "text")
    assert text.stdout == "2026-03-02 08:00:01  high  Failed (failed)  Outcome=FAILED User=anna\n"
    assert text.stderr == "1 alert of 1 rule\n"
    lines = run("rules", "run", "--db", database, "--from", "2026-03-02", "--level", "low")
    assert json.loads(lines.stdout) == {
        "rule": "failed",
        "title": "Failed",
        "level": "high",
        "ts": "2026-03-02T08:00:01Z",
        "event": {"Outcome": "FAILED", "User": "anna"},
    }
    assert run("rules", "run", "--db", database, "--to", "2026-03-02").stdout == ""
    assert run("rules", "drop", "failed.yml", "--db", database).stdout == "0 rules\n"
    empty = run("rules", "run", "--db", database)
    assert empty.exit_code == 2
    assert "keeps no rules that can run\nhint: eventide rules add" in empty.stderr


def test_what_is_wrong_is_said_and_the_others_are_kept(database: Path) -> None:
    (database.parent / "rules" / "bad.yml").write_text(BAD)
    added = run("rules", "add", database.parent / "rules", "--db", database)
    assert (added.exit_code, added.stdout) == (0, "1 rule, 1 problem\n")
    assert "error: bad.yml: Failed (bad): one, Outcme: logins has no column" in added.stderr
    login(database, 1, "failed")
    assert len(run("rules", "run", "--db", database).stdout.splitlines()) == 1


def test_check_says_what_is_wrong_and_keeps_nothing(database: Path) -> None:
    rules = database.parent / "rules"
    fine = run("rules", "check", rules, "--db", database, "--texts")
    assert fine.exit_code == 0
    assert """SELECT * FROM "logins" WHERE LOWER("Outcome") = 'failed'""" in fine.stdout
    (rules / "bad.yml").write_text(BAD)
    assert run("rules", "check", rules, "--db", database).exit_code == 2
    # Without a database, nobody knows the columns.
    assert run("rules", "check", rules).exit_code == 0
    assert run("rules", "list", "--db", database).stdout.count("failed") == 0


def test_what_is_asked_wrongly(database: Path) -> None:
    run("rules", "add", database.parent / "rules", "--db", database)
    asked: list[tuple[list[str | Path], str]] = [
        (["run", "--level", "loud"], "there is no level 'loud'"),
        (["drop", "x"], "the database keeps no file 'x'"),
        (["watch", "--start", "now"], "--start is for rules with a name"),
        (["add", database.parent / "none"], "cannot read"),
    ]
    for arguments, message in asked:
        result = run("rules", *arguments, "--db", database)
        assert result.exit_code == 2
        assert message in result.stderr


def test_the_examples_find_the_attack(tmp_path: Path) -> None:
    database = tmp_path / "logs.ev"
    for name in ("processes", "logons"):
        path = EXAMPLES / f"{name}.jsonl"
        assert run("ingest", path, "--into", database, "--stream", name).exit_code == 0
    mapping = EXAMPLES / "mapping.yaml"
    added = run("rules", "add", EXAMPLES / "sigma", "--db", database, "--mapping", mapping)
    assert (added.stdout, added.stderr) == ("19 rules\n", "")
    found = run("rules", "run", "--db", database, "--level", "high")
    alerts = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(alert["ts"][11:19], alert["title"]) for alert in alerts] == [
        ("13:01:01", "Password tried on many accounts"),
        ("13:21:35", "Password guessed, and found"),
        ("13:25:20", "Encoded command of PowerShell"),
        ("13:25:20", "Encoded command behind a remote desktop"),
        ("13:26:40", "Shadow copies deleted"),
        ("14:02:30", "Office program starts a shell"),
    ]


def test_alerts_come_as_events_do(database: Path) -> None:
    run("rules", "add", database.parent / "rules", "--db", database)
    code = "from eventide.cli import main; main()"
    command = [sys.executable, "-c", code, "rules", "watch", "--db", str(database)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert "watching 1 rule" in process.stderr.readline()
            for second in (1, 2):
                login(database, second, "failed")
                alert = json.loads(process.stdout.readline())
                assert alert["ts"] == f"2026-03-02T08:00:0{second}Z"
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
        finally:
            process.kill()
