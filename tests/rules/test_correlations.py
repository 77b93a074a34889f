"""Correlations: over history and live they find what comparing all events finds."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.errors import RuleError
from eventide.schema import Schema
from tests.naive.rules.correlations import (
    Found,
    Seen,
    event_count,
    temporal,
    temporal_ordered,
    value_count,
)
from tests.rules.written import STREAM, correlated, found_by, plain, read, table_of, text_of

SECOND = 1_000_000
SPAN = 10 * SECOND
TYPES = {"Host": "string", "User": "string", "Kind": "string"}
# Two of them are about the same events.
RULES = [
    plain({"one": {"Kind": ["a", "ab"]}, "condition": "one"}, "a"),
    plain({"one": {"Kind|contains": "b"}, "condition": "one"}, "b"),
    plain({"one": {"Kind": "c"}, "condition": "one"}, "c"),
]
MATCHED = {"a": {0}, "ab": {0, 1}, "b": {1}, "c": {2}, "d": set[int]()}

rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 30).map(lambda second: second * SECOND),
            "Host": st.sampled_from(["h", "i", None]),
            "User": st.sampled_from(["u", "v", "w", None]),
            "Kind": st.sampled_from(list(MATCHED)),
        }
    ),
    max_size=24,
)


def seen(rows: list[dict[str, Any]], rules: int, by: str | None = "Host") -> list[Seen]:
    """Return rows as the twins take them; without a group, all are of one."""
    return [
        Seen(
            row["ts"],
            "all" if by is None else row[by],
            frozenset(MATCHED[row["Kind"]] & set(range(rules))),
            row["User"],
        )
        for row in rows
    ]


def found_in(text: str, rows: list[dict[str, Any]], by: str | None = "Host") -> Found:
    """Return the alerts of a query over a table: instants and groups."""
    ordered = sorted(rows, key=lambda row: row["ts"])
    found = found_by(text, table_of(TYPES, ordered))
    return sorted((micros(row["ts"]), "all" if by is None else row[by]) for row in found)


def micros(ts: datetime) -> int:
    return (ts - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@given(rows, st.sampled_from([("gte", 1), ("gte", 3), ("gt", 1), ("eq", 2), ("lt", 3)]))
def test_event_count(rows: list[dict[str, Any]], condition: tuple[str, int]) -> None:
    word, least = condition
    rule = correlated("event_count", ["a", "b"], group_by=["Host"], condition={word: least})
    enough = {"gte": int.__ge__, "gt": int.__gt__, "eq": int.__eq__, "lt": int.__lt__}[word]
    wanted = event_count(seen(rows, 2), SPAN, lambda count: enough(count, least))
    assert found_in(text_of(*RULES, rule), rows) == wanted


@given(rows, st.integers(1, 3))
def test_value_count(rows: list[dict[str, Any]], least: int) -> None:
    condition = {"gte": least, "field": "User"}
    rule = correlated("value_count", ["b"], group_by=["Host"], condition=condition)
    known = [each for each in seen(rows, 2) if 1 in each.rules]
    wanted = value_count(known, SPAN, lambda count: count >= least)
    assert found_in(text_of(*RULES, rule), rows) == wanted


@given(rows, st.sampled_from([None, {"gte": 2}, "a and not c", "(a or b) and c"]))
def test_temporal(rows: list[dict[str, Any]], condition: str | dict[str, int] | None) -> None:
    more = {} if condition is None else {"condition": condition}
    names = ["a", "c"] if condition == "a and not c" else ["a", "b", "c"]
    rule = correlated("temporal", names, group_by=["Host"], **more)
    enough = {
        None: lambda rules: len(rules) == 3,
        "{'gte': 2}": lambda rules: len(rules) >= 2,
        "a and not c": lambda rules: 0 in rules and 2 not in rules,
        "(a or b) and c": lambda rules: bool(rules & {0, 1}) and 2 in rules,
    }[condition if condition is None else str(condition)]
    known = seen(rows, 3)
    if len(names) == 2:
        known = [each for each in known if each.rules & {0, 2}]
    assert found_in(text_of(*RULES, rule), rows) == temporal(known, SPAN, enough)


@given(rows, st.booleans())
def test_temporal_ordered(rows: list[dict[str, Any]], by_host: bool) -> None:
    by = "Host" if by_host else None
    rule = correlated("temporal_ordered", ["a", "b", "c"], **({"group_by": [by]} if by else {}))
    wanted = temporal_ordered(seen(rows, 3, by), SPAN, 3)
    assert found_in(text_of(*RULES, rule), rows, by) == wanted


@given(rows)
def test_an_alias_names_another_field_of_each_rule(rows: list[dict[str, Any]]) -> None:
    aliases = {"who": {"a": "Host", "c": "User"}}
    rule = correlated("temporal", ["a", "c"], group_by=["who"], aliases=aliases)
    known = [*seen(rows, 1), *(each for each in seen(rows, 3, "User") if 2 in each.rules)]
    wanted = temporal(known, SPAN, lambda rules: len(rules & {0, 2}) == 2)
    assert found_in(text_of(*RULES, rule), rows, "who") == wanted


@given(rows)
def test_correlations_of_correlations(rows: list[dict[str, Any]]) -> None:
    many = correlated("event_count", ["a"], group_by=["Host"], condition={"gte": 2})
    many["name"] = many["title"] = "many"
    rule = correlated("temporal_ordered", ["many", "c"], group_by=["Host"])
    bursts = event_count(seen(rows, 1), SPAN, lambda count: count >= 2)
    known = [Seen(ts, group, frozenset({0})) for ts, group in bursts]
    known += [
        Seen(each.ts, each.group, frozenset({1})) for each in seen(rows, 3) if 2 in each.rules
    ]
    assert found_in(text_of(*RULES, many, rule), rows) == temporal_ordered(known, SPAN, 2)


def test_rules_of_several_streams() -> None:
    first, second = RULES[0], plain({"one": {"Kind": "c"}, "condition": "one"}, "far", "other")
    rule = correlated("temporal", ["a", "far"], group_by=["Host"])
    near = table_of(TYPES, [{"ts": 5 * SECOND, "Host": "h", "Kind": "a"}])
    far = table_of(TYPES, [{"ts": 2 * SECOND, "Host": "h", "Kind": "c"}])
    found = ev.sql(text_of(first, second, rule), process_creation=near, other=far).rows()
    assert [row["Host"] for row in found] == ["h"]


KINDS = [
    correlated("event_count", ["a", "b"], group_by=["Host"], condition={"gte": 3}),
    correlated("value_count", ["b"], group_by=["Host"], condition={"gte": 2, "field": "User"}),
    correlated("temporal", ["a", "b", "c"], group_by=["Host"]),
    correlated("temporal_ordered", ["a", "c"], group_by=["Host"]),
]


@settings(max_examples=6)
@given(rows, st.integers(1, 5))
def test_live_and_over_history_they_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], size: int
) -> None:
    folder = tmp_path_factory.mktemp("live")
    named = [{**rule, "name": f"k{place}"} for place, rule in enumerate(KINDS)]
    (folder / "rules.yml").write_text(yaml.safe_dump_all([*RULES, *named]))
    ordered = sorted(rows, key=lambda row: int(row["ts"]))
    received: list[tuple[object, ...]] = []
    with ev.open(folder / "logs.ev") as db:
        stream = db.create_stream(STREAM, TYPES)
        rules = ev.rules.load(db, folder / "rules.yml")
        live = rules.subscribe(
            lambda alerts: received.extend((a.rule.id, a.ts, a.event["Host"]) for a in alerts)
        )
        for start in range(0, len(ordered), size):
            stream.append(ordered[start : start + size])
        live.finish()
        stored = [(a.rule.id, a.ts, a.event["Host"]) for a in rules.run()]
    assert sorted(received, key=str) == sorted(stored, key=str)
    wanted = [
        event_count(seen(rows, 2), SPAN, lambda count: count >= 3),
        value_count([e for e in seen(rows, 2) if 1 in e.rules], SPAN, lambda count: count >= 2),
        temporal(seen(rows, 3), SPAN, lambda rules: len(rules) == 3),
    ]
    for place, each in enumerate(wanted):
        assert len([row for row in stored if row[0] == f"k{place}"]) == len(each)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (correlated("temporal", ["a", "nobody"]), "there is no rule 'nobody'"),
        (correlated("event_count", ["together"], condition={"gte": 2}), "is about itself"),
        (
            correlated("value_avg", ["a"], condition={"gte": 2, "field": "User"}),
            "no query for the correlation value_avg",
        ),
        (correlated("temporal_ordered", ["a", "b"], condition={"gte": 1}), "a sequence of some"),
        (correlated("temporal", ["a"], group_by=["Nothing"]), "no column 'Nothing'"),
        (
            correlated("value_count", ["a"], condition={"gte": 2, "field": ["User", "Host"]}),
            "several fields together",
        ),
    ],
)
def test_what_has_no_query_is_said(rule: dict[str, Any], message: str) -> None:
    _, problems = read(*RULES, rule, catalog={STREAM: Schema.of(TYPES).event_types})
    assert [message in str(problem) for problem in problems] == [True]
    assert isinstance(problems[0], RuleError)
    assert "hint:" in str(problems[0])


def test_rules_that_serve_a_correlation_tell_nobody() -> None:
    for generate in (False, True):
        rules, _ = read(*RULES, correlated("temporal", ["a", "b"], generate=generate))
        told = [rule.id for rule in rules.values() if rule.alerts]
        assert told == (["a", "b", "c", "together"] if generate else ["c", "together"])
