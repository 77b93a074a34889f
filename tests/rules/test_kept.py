"""Rules that a database keeps, and those that run live."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventide as ev
from eventide.errors import RuleError, StoreError
from eventide.rules import Alert
from eventide.store.store import RULES_FILE

SECOND = 1_000_000


def rule(name: str, user: str, level: str = "low") -> str:
    return f"""
title: About {name}
name: {name}
level: {level}
logsource: {{category: logins}}
detection: {{one: {{User: {user}}}, condition: one}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules" / "deep").mkdir(parents=True)
    (tmp_path / "rules" / "a.yml").write_text(rule("a", "anna"))
    (tmp_path / "rules" / "deep" / "b.YAML").write_text(rule("b", "ben", "high"))
    (tmp_path / "rules" / "notes.txt").write_text("no rule")
    ev.open(tmp_path / "logs.ev").create_stream("logins", {"User": "string", "account": "string"})
    return tmp_path


def database(folder: Path) -> ev.Database:
    return ev.open(folder / "logs.ev", create=False)


def test_rules_stay_with_the_database(folder: Path) -> None:
    added = ev.rules.add(database(folder), folder / "rules")
    assert [(each.id, each.file) for each in added] == [("a", "a.yml"), ("b", "deep/b.YAML")]
    kept = ev.rules.kept(database(folder))
    assert kept.rules == added.rules
    assert kept["b"].title == "About b"
    copy = database(folder).backup(folder / "copy.ev")
    assert ev.rules.kept(copy).rules == added.rules


def test_a_file_takes_the_place_of_its_name(folder: Path) -> None:
    db = database(folder)
    ev.rules.add(db, folder / "rules")
    (folder / "a.yml").write_text(rule("c", "carl"))
    assert [each.id for each in ev.rules.add(db, folder / "a.yml")] == ["c", "b"]
    assert [each.id for each in ev.rules.add(db, folder / "a.yml", replace=True)] == ["c"]


def test_files_are_dropped_by_name(folder: Path) -> None:
    db = database(folder)
    ev.rules.add(db, folder / "rules")
    with pytest.raises(RuleError, match=r"it keeps a.yml, deep/b.YAML"):
        ev.rules.drop(db, "b.YAML")
    assert [each.id for each in ev.rules.drop(db, "deep/b.YAML")] == ["a"]


def test_the_mapping_is_kept_too(folder: Path) -> None:
    mapping = folder / "mapping.yaml"
    mapping.write_text("streams: [{stream: logins, fields: {User: account}}]")
    ev.rules.add(database(folder), folder / "rules", mapping=mapping)
    assert '"account"' in ev.rules.add(database(folder), folder / "rules")["a"].text
    mapping.write_text("streams: 7")
    with pytest.raises(RuleError, match=r"mapping\.yaml"):
        ev.rules.add(database(folder), folder / "rules", mapping=mapping)
    assert '"account"' in ev.rules.kept(database(folder))["a"].text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 1, "files": [{}], "mapping": null}', "is damaged"),
        ('{"format": 2}', "has format 2; this Eventide reads up to 1"),
    ],
)
def test_a_file_that_is_not_ours(folder: Path, content: str, message: str) -> None:
    (folder / "logs.ev" / RULES_FILE).write_text(content)
    with pytest.raises(StoreError, match=message):
        ev.rules.kept(database(folder))


def test_durable_rules_go_on_after_a_restart(folder: Path) -> None:
    received: list[Alert] = []
    for part in range(3):
        with database(folder) as db:
            rules = ev.rules.kept(db) if part else ev.rules.add(db, folder / "rules")
            with rules.subscribe(received.extend, name="watch"):
                pass
            # Nobody watches now.
            db.stream("logins").append(
                [
                    {"ts": (2 * part + i) * SECOND, "User": user}
                    for i, user in enumerate(("anna", "BEN"))
                ]
            )
    with database(folder) as db:
        with ev.rules.kept(db).subscribe(received.extend, name="watch") as live:
            assert live.wait()
        assert len(db.kept_queries()) == 1
    found = sorted((alert.ts.second, alert.rule.id) for alert in received)
    # The newest event is certain once a later one has come.
    assert found == [(0, "a"), (1, "b"), (2, "a"), (3, "b"), (4, "a")]


def test_only_some_levels(folder: Path) -> None:
    db = database(folder)
    db.stream("logins").append([{"ts": i, "User": user} for i, user in enumerate(["anna", "ben"])])
    rules = ev.rules.add(db, folder / "rules")
    assert [alert.rule.id for alert in rules.run()] == ["a", "b"]
    assert [alert.rule.id for alert in rules.at_least("medium").run()] == ["b"]
    assert rules.at_least("critical").run() == []
    with pytest.raises(RuleError, match="the levels are informational, low"):
        rules.at_least("loud")


def test_a_part_of_history(folder: Path) -> None:
    db = database(folder)
    db.stream("logins").append([{"ts": second * SECOND, "User": "anna"} for second in range(9)])
    rules = ev.rules.add(db, folder / "rules")
    found = rules.run("1970-01-01T00:00:02", "1970-01-01T00:00:05")
    assert [alert.ts.second for alert in found] == [2, 3, 4]


def test_an_alert_as_text_and_as_json(folder: Path) -> None:
    db = database(folder)
    db.stream("logins").append([{"ts": 0, "User": "ANNA", "account": "\x1b[2J\n"}])
    (alert,) = ev.rules.add(db, folder / "rules").run()
    assert str(alert) == "1970-01-01 00:00:00  low  About a (a)  User=ANNA account=␛[2J⏎"
    assert alert.to_json() == (
        '{"rule": "a", "title": "About a", "level": "low", "ts": "1970-01-01T00:00:00Z", '
        '"event": {"User": "ANNA", "account": "\\u001b[2J\\n"}}'
    )


def test_rules_read_derived_streams(folder: Path) -> None:
    db = database(folder)
    db.sql("CREATE STREAM logins_of_b AS SELECT ts, account AS User FROM logins WHERE User = 'b'")
    (folder / "a.yml").write_text(rule("a", "anna").replace("logins", "logins_of_b"))
    db.stream("logins").append([{"ts": i, "User": "ab"[i], "account": "Anna"} for i in range(2)])
    rules = ev.rules.load(db, folder / "a.yml")
    assert rules.problems == ()
    assert [alert.event["User"] for alert in rules.run()] == ["Anna"]


def test_a_query_without_a_plan_is_a_problem(folder: Path) -> None:
    db = database(folder)
    loaded = ev.rules.load(db, folder / "rules")
    db.drop_stream("logins")
    checked = loaded.checked()
    assert (len(checked), len(checked.problems)) == (0, 2)
    assert str(checked.problems[0]).startswith("a.yml: About a (a): ")


def test_events_with_a_column_query(tmp_path: Path) -> None:
    """The column that says which rule it is has another name then."""
    (tmp_path / "dns.yml").write_text(
        rule("a", "x").replace("logins", "dns").replace("User", "query")
    )
    db = ev.open(tmp_path / "logs.ev")
    db.create_stream("dns", {"query": "string"})
    received: list[Alert] = []
    with ev.rules.load(db, tmp_path / "dns.yml").subscribe(received.extend) as live:
        db.stream("dns").append([{"ts": at * SECOND, "query": "x"} for at in range(2)])
        assert live.wait(60)
    assert [(each.rule.id, each.event) for each in received] == [("a", {"query": "x"})]


def test_rules_without_a_plan_are_left_out_and_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = database(folder)
    db.create_stream("vpn", {"User": "string"})
    (folder / "rules" / "c.yml").write_text(rule("c", "carl").replace("logins", "vpn"))
    loaded = ev.rules.load(db, folder / "rules")
    db.drop_stream("vpn")
    db.stream("logins").append([{"ts": 0, "User": "anna"}])
    assert [alert.rule.id for alert in loaded.run()] == ["a"]
    assert "a rule is left out: c.yml: About c (c): " in caplog.text
    received: list[Alert] = []
    for name in (None, "watch", "watch"):
        with loaded.subscribe(received.extend, name=name) as live:
            assert [str(each).partition(":")[0] for each in live.problems] == ["c.yml"]
            db.stream("logins").append([{"ts": SECOND, "User": "BEN"}])
            assert live.wait(60)
    db.stream("logins").append([{"ts": 2 * SECOND, "User": "x"}])
    with loaded.subscribe(received.extend, name="watch") as live:
        assert live.wait(60)
    # A set that is not durable reports what is complete, and then it is gone.
    assert [alert.rule.id for alert in received] == ["b", "b"]


def test_durable_rules_begin_anew_with_a_stream_that_was_made_anew(folder: Path) -> None:
    with database(folder) as db:
        db.create_stream("vpn", {"User": "string"})
        (folder / "rules" / "c.yml").write_text(rule("c", "carl").replace("logins", "vpn"))
        ev.rules.add(db, folder / "rules").subscribe(print, name="watch")
    received: list[Alert] = []
    with database(folder) as db:
        db.drop_stream("logins")
        db.create_stream("logins", {"User": "string"})
        with ev.rules.kept(db).subscribe(received.extend, name="watch") as live:
            db.stream("logins").append([{"ts": ts, "User": "anna"} for ts in (0, SECOND)])
            assert live.wait(60)
    assert [alert.rule.id for alert in received] == ["a"]


def test_durable_rules_may_change_between_two_runs(folder: Path) -> None:
    received: list[Alert] = []

    def append(db: ev.Database, start: int) -> None:
        rows = [(start + i, user) for i, user in enumerate(("anna", "BEN", "carl", "dora"))]
        db.stream("logins").append([{"ts": ts * SECOND, "User": user} for ts, user in rows])

    with (
        database(folder) as db,
        ev.rules.add(db, folder / "rules").subscribe(received.extend, name="watch"),
    ):
        append(db, 0)
    (folder / "rules" / "b.yml").write_text(rule("b", "dora"))
    (folder / "rules" / "c.yml").write_text(rule("c", "carl"))
    with database(folder) as db:
        ev.rules.drop(db, "a.yml", "deep/b.YAML")
        rules = ev.rules.add(db, folder / "rules" / "b.yml", folder / "rules" / "c.yml")
        with rules.subscribe(received.extend, name="watch") as live:
            append(db, 4)
            assert live.wait(60)
        (kept,) = db.kept_queries()
        assert kept.text.startswith("2 queries, ")
    found = [(alert.ts.second, alert.rule.id) for alert in received]
    assert found == [(0, "a"), (1, "b"), (6, "c")]
