"""Conditions of rules as SQL: what they find is what the plain meaning of Sigma finds."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.schema import Schema
from tests.naive.rules.conditions import holds
from tests.rules.written import STREAM, found_by, plain, read, table_of, text_of

TYPES = {"Image": "string", "Line": "string", "User": "string", "Ip": "string", "Pid": "int64"}
CATALOG = {STREAM: Schema.of(TYPES).event_types}
MAPPING = {"streams": [{"stream": STREAM, "keywords": ["Line", "User"]}]}
# Few letters, so that things are equal; what LIKE, quotes and regular expressions could mistake.
LETTERS = "aAbB%_!'\\*?.é"

texts = st.text(LETTERS, max_size=4)
addresses = st.sampled_from(["10.1.2.3", "10.200.0.1", "192.168.0.9", "fe80::1", "2001:db8::5", ""])
events = st.fixed_dictionaries(
    {
        "Image": st.none() | texts,
        "Line": st.none() | texts,
        "User": st.none() | texts,
        "Ip": st.none() | addresses,
        "Pid": st.none() | st.integers(-2, 5),
    }
)
fields = st.sampled_from(["Image", "Line", "User"])
networks = st.sampled_from(["10.0.0.0/8", "10.1.0.0/17", "192.168.0.8/29", "fe80::/10"])
expressions = st.sampled_from(["a+", "^[ab]", "b$", "a.b", r"\\", "A|B"])


def one_or_more(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, min_size=1, max_size=3)


def keyed(keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(keys, one_or_more(values))


MODIFIERS = ["", "|contains", "|startswith", "|endswith", "|cased", "|contains|all"]
items = st.one_of(
    keyed(st.tuples(fields, st.sampled_from(MODIFIERS)).map("".join), texts),
    keyed(fields, st.none()),
    keyed(fields.map("{}|re".format), expressions),
    keyed(fields.map("{}|re|i".format), expressions),
    keyed(fields.map("{}|base64|contains".format), st.sampled_from(["a", "bé"])),
    keyed(fields.map("{}|fieldref".format), fields),
    keyed(st.just("Ip|cidr"), networks),
    keyed(st.just("Pid"), st.integers(-2, 5)),
    keyed(st.sampled_from(["Pid|lt", "Pid|lte", "Pid|gt", "Pid|gte"]), st.integers(-2, 5)),
    st.tuples(st.sampled_from(["Pid|exists", "User|exists"]), st.booleans()),
)
tables = st.lists(items, min_size=1, max_size=3).map(dict)
words = st.text("aAb%_'", min_size=1, max_size=2)
selections = tables | st.lists(tables, min_size=1, max_size=2) | st.lists(words, min_size=1)
names = st.sampled_from(["one", "two_a", "two_b"])


def conditions() -> st.SearchStrategy[str]:
    leaves = names | st.sampled_from(["1 of two_*", "all of two_*", "1 of them", "all of them"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map("not ({})".format),
            st.tuples(inner, inner).map(lambda both: f"({both[0]} and {both[1]})"),
            st.tuples(inner, inner).map(lambda both: f"({both[0]} or {both[1]})"),
        ),
        max_leaves=4,
    )


detections = st.fixed_dictionaries(
    {"one": selections, "two_a": selections, "two_b": selections, "condition": conditions()}
)


@given(detections, st.lists(events, min_size=1, max_size=12))
def test_a_rule_finds_what_it_means(detection: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    text = text_of(plain(detection), catalog=CATALOG, mapping=MAPPING)
    found = found_by(text, table_of(TYPES, rows))
    wanted = [row for row in rows if holds(detection, row, ("Line", "User"))]
    assert [{name: row[name] for name in TYPES} for row in found] == wanted


def condition_of(detection: dict[str, Any]) -> str:
    text = text_of(plain(detection), catalog=CATALOG, mapping=MAPPING)
    return text.partition(" WHERE ")[2]


@pytest.mark.parametrize(
    ("selection", "condition"),
    [
        ({"User": "Bob"}, """LOWER("User") = 'bob'"""),
        ({"User": "7-3"}, """"User" = '7-3'"""),  # no letters: the column itself is looked up
        ({"User": ["A", "b"]}, """LOWER("User") IN ('a', 'b')"""),
        ({"User": "*"}, '"User" IS NOT NULL'),
        ({"User": "it's"}, """LOWER("User") = 'it''s'"""),
        ({"Image|endswith": r"\Cmd.exe"}, r"""ENDS_WITH(LOWER("Image"), '\cmd.exe')"""),
        ({"Image": r"C:\\*\a?.exe"}, r"""LOWER("Image") LIKE 'c:\%\a_.exe'"""),
        ({"Image": "a*10%"}, """LOWER("Image") LIKE 'a%10!%' ESCAPE '!'"""),
        ({"Pid": 4, "User": None}, '("Pid" = 4 AND "User" IS NULL)'),
        ({"Pid|lt": 4.5}, '"Pid" < 4.5'),
        ({"Pid": "1*"}, """STARTS_WITH(CAST("Pid" AS VARCHAR), '1')"""),
        ({"User|gt": 3}, 'TRY_CAST("User" AS DOUBLE) > 3'),
        ({"Ip|cidr": "10.0.0.0/7"}, """(STARTS_WITH("Ip", '10.') OR STARTS_WITH("Ip", '11.'))"""),
    ],
)
def test_a_selection_is_short_sql(selection: dict[str, Any], condition: str) -> None:
    assert condition_of({"one": selection, "condition": "one"}) == condition


def test_only_not_needs_to_know_of_null() -> None:
    detection = {"one": {"User": "x"}, "two": {"Pid": 1}, "condition": "one and not two"}
    wanted = """(LOWER("User") = 'x' AND NOT COALESCE("Pid" = 1, FALSE))"""
    assert condition_of(detection) == wanted


@pytest.mark.parametrize("offset", range(3))
def test_base64_is_found_at_every_offset(offset: int) -> None:
    line = base64.b64encode(b"x" * offset + b"http://here" + b"yz").decode()
    text = text_of(plain({"one": {"Line|base64offset|contains": "http://"}, "condition": "one"}))
    assert len(found_by(text, table_of(TYPES, [{"Line": line}, {"Line": "http://"}]))) == 1


def test_times_have_hours() -> None:
    detection = {"one": {"ts|hour": [0, 3]}, "condition": "one"}
    rows = [{"ts": hour * 3_600_000_000} for hour in (0, 1, 2, 3, 27)]
    text = text_of(plain(detection), catalog=CATALOG)
    assert len(found_by(text, table_of(TYPES, rows))) == 3


@pytest.mark.parametrize(
    ("part", "value"), [("minute", 5), ("day", 2), ("week", 10), ("month", 3), ("year", 2026)]
)
def test_times_have_parts(part: str, value: int) -> None:
    detection = {"one": {f"ts|{part}": value}, "condition": "one"}
    times = ["2026-03-02T04:05:06", "1999-01-01T00:00:00"]
    rows = [{"ts": datetime.fromisoformat(time)} for time in times]
    text = text_of(plain(detection), catalog=CATALOG)
    assert len(found_by(text, table_of(TYPES, rows))) == 1


def test_a_field_that_no_event_has_is_missing() -> None:
    mapping = {"streams": [{"stream": STREAM, "fields": {"Hash": None}}]}
    rows = table_of(TYPES, [{"User": "a"}])
    for selection, found in [
        ({"Hash": "x"}, 0),
        ({"Hash": None}, 1),
        ({"Hash|exists": False}, 1),
        ({"Hash|exists": True}, 0),
        ({"User|fieldref": "Hash"}, 0),
    ]:
        rule = plain({"one": selection, "condition": "one"})
        text = text_of(rule, catalog=CATALOG, mapping=mapping)
        assert len(found_by(text, rows)) == found
    rule = plain({"one": {"Hash": "x"}, "condition": "not one"})
    assert len(found_by(text_of(rule, catalog=CATALOG, mapping=mapping), rows)) == 1


def test_several_conditions_are_one_or_the_other() -> None:
    detection = {"one": {"User": "a"}, "two": {"Pid": 1}, "condition": ["one", "two"]}
    assert condition_of(detection) == """(LOWER("User") = 'a' OR "Pid" = 1)"""


def test_a_long_list_of_values_has_a_plan() -> None:
    values = [f"v{number}" for number in range(400)]
    detection = {"one": {"Line|contains": values, "User": values}, "condition": "one"}
    found = found_by(text_of(plain(detection)), table_of(TYPES, [{"Line": "a v399", "User": "V7"}]))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"User|expand": "%admins%"}, "the placeholder %admins% has no value"),
        ({"User|re": "(?=a)b"}, "invalid perl operator: (?="),
        ({"Pid|re": "a"}, '"Pid" is int64, and cannot be a regular expression'),
        ({"Pid": "x"}, "\"Pid\" is int64, and cannot be the text 'x'"),
        ({"Pid|fieldref": "User"}, '"Pid" is int64, and cannot be the field User'),
        ({"User|hour": 3}, '"User" is string, and cannot be a part of a time'),
        ({"Usr": "x"}, "process_creation has no column 'Usr'"),
        ({"User|fuzzy": "x"}, "Unknown modifier 'fuzzy'"),
        ({"Ip|cidr": "10.0.0.0/99"}, "Invalid CIDR"),
    ],
)
def test_what_has_no_condition_is_said_and_the_others_go_on(
    selection: dict[str, Any], message: str
) -> None:
    good = plain({"one": {"User": "a"}, "condition": "one"}, "good")
    bad = plain({"one": selection, "condition": "one"}, "bad")
    rules, problems = read(bad, good, catalog=CATALOG)
    assert list(rules) == ["good"]
    (problem,) = problems
    assert str(problem).startswith("rules.yml: bad (bad)")
    assert message in str(problem)


def test_keywords_need_columns() -> None:
    _, problems = read(plain({"words": ["secret"], "condition": "words"}), catalog=CATALOG)
    assert "words, a value without a field: a value without a field needs" in str(problems[0])
    assert "keywords: [message]" in str(problems[0])
