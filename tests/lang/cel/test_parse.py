"""The syntax tree: what binds how, and that places do not matter."""

from __future__ import annotations

import pytest

from eventide.errors import ParseError
from eventide.lang.cel.parse import parse_cel
from eventide.lang.cel.tree import (
    Filtered,
    Fold,
    NamedStream,
    Next,
    Query,
    Union,
    names_in,
    parameters_in,
    published_in,
)
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_cel
from eventide.plan.tree import Plan
from eventide.schema import Schema

SAME = [
    ("FILTER{a > 1} FILTER{b > 1} s", "FILTER{a > 1}(FILTER{b > 1}(s))"),
    ("FILTER{a > 1} s NEXT{} t", "(FILTER{a > 1} s) NEXT{} t"),
    ("s NEXT{} t NEXT{} u", "(s NEXT{} t) NEXT{} u"),
    ("s NEXT{} t FOLD{} u", "(s NEXT{} t) FOLD{} u"),
    ("s NEXT{} t UNION u", "(s NEXT{} t) UNION u"),
    ("s UNION t UNION ALL u", "(s UNION t UNION u)"),
    ("s FOLD{} t", "s FOLD{,,} t"),
    ("s FOLD{a = 1} t", "s FOLD{a = 1,,} t"),
    ("AT INSTANT{a} s NEXT{} t", "(AT INSTANT{a} s) NEXT{} t"),
    ("FILTER{a > 1 AND b OR NOT c = 2} s", "FILTER{((a > 1) AND b) OR (NOT (c = 2))} s"),
    ("FILTER{a + b * -c > 1} s", "FILTER{(a + (b * (-c))) > 1} s"),
    ("FILTER{a - b - c = 1} s", "FILTER{((a - b) - c) = 1} s"),
    ("from s publish x", "FROM\n  s -- all\nPUBLISH x"),
    ("FILTER{DUR < 1 min 30 s} s", "FILTER{DUR<1 min 30 s}(s)"),
]


@pytest.mark.parametrize(("text", "other"), SAME)
def test_the_same_is_said(text: str, other: str) -> None:
    assert parse_cel(text) == parse_cel(other)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("s NEXT{} t NEXT{} u", "s NEXT{} (t NEXT{} u)"),
        ("FILTER{a > 1} (s NEXT{} t)", "FILTER{a > 1} s NEXT{} t"),
        ("s", '"S"'),
        ("FROM s PUBLISH x", "FROM s PUBLISH y"),
        ("FILTER{a = 1} s", "FILTER{a = '1'} s"),
    ],
)
def test_something_else_is_said(text: str, other: str) -> None:
    assert parse_cel(text) != parse_cel(other)


def test_parts() -> None:
    text = "SELECT a FROM (FROM FILTER{a > $low} s PUBLISH x) FOLD{a = ?} (s UNION t) PUBLISH y"
    query = parse_cel(text)
    assert isinstance(query, Query)
    fold = query.source
    assert isinstance(fold, Fold)
    assert isinstance(fold.right, Union)
    assert [each.name.text for each in names_in(query)] == ["s", "s", "t"]
    assert [each.publish.text for each in published_in(query) if each.publish] == ["x", "y"]
    assert {each.name: each.span.of(text) for each in parameters_in(query)} == {
        "low": "$low",
        "": "?",
    }
    assert fold.span.of(text).startswith("(FROM FILTER")
    assert query.publish is not None
    assert query.publish.span.of(text) == "y"


def test_quoted_names() -> None:
    query = parse_cel('FILTER{"a ""b" > 1} `next`')
    assert isinstance(query, Filtered)
    assert isinstance(query.source, NamedStream)
    assert query.source.name.text == "next"


def test_a_long_chain_is_read() -> None:
    query = parse_cel(" NEXT{} ".join(["s"] * 100))
    assert isinstance(query, Next)
    assert len(list(names_in(query))) == 100


def planned(text: str) -> Plan:
    return plan_sql(read_cel(text), {"s": Schema.of({"a": "int64", "b": "bool"})})


@pytest.mark.parametrize(
    "text",
    [
        "FILTER{a > 1} " * 3_000 + "s",
        "FILTER{" + "NOT " * 3_000 + "b} s",
        "FILTER{" + " AND ".join(["a = 1"] * 3_000) + "} s",
    ],
)
def test_what_is_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        planned(text)


@pytest.mark.parametrize("text", ["s" + " NEXT{} s" * 900, "s NEXT{} (" * 900 + "s" + ")" * 900])
def test_long_chains_are_refused_before_they_are_planned(text: str) -> None:
    with pytest.raises(ParseError, match="on more than 100 levels"):
        parse_cel(text)


def test_brackets_alone_are_not_deep() -> None:
    deep = "(" * 3_000 + "s" + ")" * 3_000
    assert planned(f"FILTER{{{deep.replace('s', 'b')}}} {deep}") == planned("FILTER{b} s")
