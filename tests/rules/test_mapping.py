"""Mappings: streams of log sources, columns of fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventide.errors import RuleError
from eventide.rules.mapping import mapping_of, parse_mapping, read_mapping
from eventide.rules.yaml_files import RuleFile
from eventide.schema import Schema
from tests.rules.written import read

CATALOG = {
    "Processes": Schema.of({"image": "string"}).event_types,
    "sshd": Schema.of({"message": "string"}).event_types,
}


def rule(**logsource: str) -> dict[str, Any]:
    detection = {"one": {"Image": "a"}, "condition": "one"}
    return {"title": "x", "name": "x", "logsource": logsource, "detection": detection}


def test_the_first_entry_that_covers_a_log_source_counts() -> None:
    mapping = parse_mapping(
        {
            "streams": [
                {"stream": "sshd", "logsource": {"category": "process_creation", "service": "s"}},
                {
                    "stream": "processes",
                    "logsource": {"category": "process_creation"},
                    "fields": {"Image": "IMAGE"},
                },
            ]
        }
    )
    source = {"category": "process_creation", "product": "windows"}
    columns = mapping.columns(source, CATALOG)
    assert columns.source == "Processes"
    column = columns.column("Image")
    assert column is not None
    assert column.text == '"image"'
    assert mapping.columns({**source, "service": "s"}, CATALOG).source == "sshd"


def test_without_a_mapping_names_are_those_of_the_rule() -> None:
    rules, problems = read(rule(product="linux", service="processes"), catalog=CATALOG)
    assert problems == []
    assert rules["x"].text == """SELECT * FROM "Processes" WHERE LOWER("image") = 'a'"""


@pytest.mark.parametrize(
    ("logsource", "mapping", "message"),
    [
        ({"category": "dns"}, None, "no stream has the events of category dns"),
        ({"category": "dns"}, {"streams": [{"stream": "q"}]}, "there is no stream 'q'"),
    ],
)
def test_a_log_source_without_a_stream(
    logsource: dict[str, str], mapping: dict[str, Any] | None, message: str
) -> None:
    _, problems = read(rule(**logsource), catalog=CATALOG, mapping=mapping)
    assert message in str(problems[0])
    assert "the database has Processes, sshd" in str(problems[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("streams: [", "this is no YAML"),
        ("[1]", "[1] is not a table of names"),
        ("stream: {}", "a mapping has no 'stream' here"),
        ("streams: {}", "streams is not a list"),
        ("streams: [{logsource: {}}]", "names no stream"),
        ("streams: [{stream: a, fields: {x: 1}}]", "x of a is 1, and not a name"),
        ("streams: [{stream: a, logsource: {service: null}}]", "service of a is None"),
        ("streams: [{stream: a, keywords: x}]", "keywords is not a list"),
    ],
)
def test_what_is_wrong_with_a_mapping_is_said(text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_mapping(RuleFile("mapping.yaml", text))
    assert str(caught.value).startswith("mapping.yaml: ")
    assert message in str(caught.value)


def test_a_mapping_is_given_as_a_file_or_as_its_content(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("streams: [{stream: a, fields: {X: null}, keywords: [X]}]")
    content = {"streams": [{"stream": "a", "fields": {"X": None}, "keywords": ["X"]}]}
    assert mapping_of(path) == mapping_of(content) == mapping_of(mapping_of(content))
    with pytest.raises(RuleError, match="cannot read"):
        mapping_of(tmp_path / "none.yaml")
