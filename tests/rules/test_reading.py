"""Files of rules: what cannot be read is said with its place, and the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.rules.mapping import RuleMapping
from eventide.rules.sigma.queries import rules_of
from eventide.rules.yaml_files import RuleFile, rule_files
from tests.rules.written import plain, read

GOOD = """
title: Good
name: good
logsource: {category: process_creation}
detection: {one: {User: a}, condition: one}
"""
OTHER = GOOD.replace("name: good", "name: other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "bad.yml: line 2: this is no YAML"),
        ("- 1", "bad.yml: a rule is a table with title, logsource and detection, not [1]"),
        ("title: x", "bad.yml: x: Sigma rule must have a log source"),
        ("a: &a [*a]", "bad.yml"),
        (OTHER.replace("name: other", "id: 7"), "bad.yml: pySigma cannot read this"),
        (OTHER.replace("name: other", "id: x"), "Sigma rule identifier must be an UUID"),
        (OTHER.replace("condition: one", "condition: two"), "Detection 'two' not defined"),
        (OTHER.replace("condition: one", "condition: one or"), "bad.yml: Good (other)"),
        (OTHER.replace("{User: a}", "[{User: [[a]]}]"), "bad.yml"),
        (OTHER.replace("{category: process_creation}", "text"), "bad.yml"),
        (OTHER.replace("{one: {User: a}, condition: one}", "{one: {}, condition: one}"), "empty"),
        ("!!python/object/apply:os.system [exit]", "bad.yml: line 1: this is no YAML"),
        (OTHER.replace("title: Good", "title: [Good]"), "rule title must be a string"),
        (OTHER.replace("name: other", "").replace("title: Good", "title: [Good]"), "['Good']"),
        (OTHER.replace("condition: one", f"condition: {'not ' * 400} one"), "is too deep"),
        (GOOD.replace("Good", "Better"), "another rule has the id good, in good.yml"),
    ],
)
def test_a_file_that_cannot_be_read(text: str, message: str) -> None:
    files = [RuleFile("good.yml", GOOD), RuleFile("bad.yml", text)]
    rules, problems = rules_of(files, RuleMapping(), None)
    assert [rule.id for rule in rules] == ["good"]
    assert problems
    assert message in "\n".join(map(str, problems))
    assert all(problem.file == "bad.yml" for problem in problems)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "good.yml").write_text(GOOD)
    (tmp_path / "bad.yml").write_bytes(b"title: x\nauthor: Andr\xe9\n")
    rules, (problem,) = rules_of(rule_files(tmp_path), RuleMapping(), None)
    assert [rule.id for rule in rules] == ["good"]
    assert "bad.yml: line 2: this is not UTF-8" in str(problem)


def test_a_filter_leaves_out_what_it_names() -> None:
    rule = plain({"one": {"User": "a"}, "condition": "one"})
    left_out = {
        "title": "known",
        "logsource": rule["logsource"],
        "filter": {"rules": ["rule"], "known": {"Host": "h"}, "condition": "not known"},
    }
    rules, problems = read(rule, left_out)
    assert problems == []
    condition = rules["rule"].text.partition(" WHERE ")[2]
    assert condition == """(LOWER("User") = 'a' AND NOT COALESCE(LOWER("Host") = 'h', FALSE))"""


def test_names_and_values_stay_what_they_are() -> None:
    """Nothing in a rule is read as SQL."""
    evil = "x' OR 1=1 --"
    rule = plain({"one": {'a" OR 1=1 --': evil}, "condition": "one"}, stream='s"; DROP')
    rules, _ = read(rule)
    assert rules["rule"].text == (
        """SELECT * FROM "s""; DROP" WHERE LOWER("a"" OR 1=1 --") = 'x'' or 1=1 --'"""
    )
