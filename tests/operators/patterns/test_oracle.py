"""The twin of MATCH_RECOGNIZE itself: against examples worked by hand, and Python's `re`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from eventide.errors import EvaluationError
from eventide.lang.sql import plan_sql
from eventide.plan.bind import bind
from eventide.plan.expressions import At, Call, Classifier, Column, Literal, MatchAggregate, Named
from eventide.plan.nodes import Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import (
    Alternate,
    Concat,
    Pattern,
    Repeat,
    Skip,
    Variable,
    variables_of,
    walk_pattern,
)
from eventide.schema import BOOL, STRING, TIMESTAMP
from tests.naive.patterns.rows import TooMuch, match_node, may_be_empty, naive_match, re_oracle
from tests.naive.patterns.texts import CATALOG, Kinds, patterns, queries, rows
from tests.operators.patterns.examples import EXAMPLES, Example, events

Row = dict[str, Any]


def bag(found: Iterable[Row], columns: Iterable[str]) -> Counter[tuple[Any, ...]]:
    names = list(columns)
    return Counter(tuple(row[name] for name in names) for row in found)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_worked_examples(example: Example) -> None:
    node = match_node(plan_sql(example.text, CATALOG))
    if example.error is not None:
        with pytest.raises(example.error):
            naive_match(node, example.rows)
        return
    found = naive_match(node, example.rows)
    columns = example.expected[0] if example.expected else {}
    assert len(found) == len(example.expected)
    assert bag(found, columns) == bag(example.expected, columns)


def test_examples_have_names_of_their_own() -> None:
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES) >= 25


# Nodes built by hand: these tests need no parser.


def is_label(letter: str) -> Call:
    return Call("=", (At(Column("label")), Literal(letter, STRING)))


def hand_built(pattern: Pattern, **changes: Any) -> MatchRecognize:  # noqa: ANN401
    """Return a node whose variables want the label of their own letter, X any row."""
    conditions = tuple(
        Named(name, Literal(True, BOOL) if name == "X" else is_label(name.lower()))
        for name in variables_of(pattern)
    )
    measures = (
        Named("f", At(Column("x"), edge="first")),
        Named("c", At(Classifier())),
        Named("n", MatchAggregate("count", None)),
    )
    node = MatchRecognize(Scan("s"), (), (), pattern, conditions, measures, **changes)
    bound = bind(node, CATALOG)
    assert isinstance(bound, MatchRecognize)
    return bound


A, B, C = map(Variable, "ABC")
GOLDEN = Concat((A, Repeat(B, 0, None), C))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("contiguous", [(3, 2)]),
        ("skip_till_next", [(1, 3), (3, 2)]),
        (
            "skip_till_any",
            [(1, 2), (1, 3), (1, 2), (1, 3), (1, 3), (1, 4), (3, 2), (3, 2), (3, 3)],
        ),
    ],
)
def test_strategies(strategy: Any, expected: list[tuple[int, int]]) -> None:  # noqa: ANN401
    node = hand_built(GOLDEN, strategy=strategy, skip=Skip("next row"))
    found = naive_match(node, events("abacbc"))
    assert bag(found, ["f", "n"]) == Counter(expected)


def test_rows_of_all_columns() -> None:
    found = naive_match(hand_built(Concat((A, B)), output="with unmatched"), events("cab"))
    assert all(list(row)[:4] == ["ts", "f", "c", "n"] for row in found)
    assert bag(found, ["x", "f", "c", "n"]) == Counter(
        [(1, None, None, None), (2, 2, "A", 1), (3, 2, "B", 2)]
    )


def test_endless_loops_are_errors() -> None:
    node = hand_built(Concat((A, B)), skip=Skip("first", "A"))
    with pytest.raises(EvaluationError, match="first row"):
        naive_match(node, events("ab"))


def test_it_gives_up() -> None:
    hopeless = Concat((Repeat(Repeat(Alternate((A, A)), 0, None), 0, None), B))
    with pytest.raises(TooMuch):
        naive_match(hand_built(hopeless), events("a" * 20))


# Python's regular expressions


def is_for_re(pattern: Pattern) -> bool:
    repeats = (part for part in walk_pattern(pattern) if isinstance(part, Repeat))
    return not any(may_be_empty(repeat.part) for repeat in repeats)


SATISFIED = st.lists(st.frozensets(st.sampled_from("ABC")), max_size=9)


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(pattern=patterns("ABC").filter(is_for_re), satisfied=SATISFIED)
def test_against_regular_expressions(pattern: Pattern, satisfied: list[frozenset[str]]) -> None:
    conditions = tuple(
        Named(name, Call("=", (At(Column(name)), Literal(True, BOOL))))
        for name in variables_of(pattern)
    )
    ends = re_oracle(pattern, satisfied)
    measures = (
        Named("first", At(Column("ts"), edge="first")),
        Named("last", At(Column("ts"))),
        Named("n", MatchAggregate("count", None)),
    )
    columns = (("ts", TIMESTAMP), *((name, BOOL) for name in "ABC"))
    node = MatchRecognize(
        Scan("s", columns), (), (), pattern, conditions, measures, skip=Skip("next row")
    )
    given_rows = [
        {"ts": place, "_seq": place, **{name: name in each for name in "ABC"}}
        for place, each in enumerate(satisfied)
    ]
    try:
        found = naive_match(node, given_rows)
    except TooMuch:
        assume(False)
    expected = [
        (start, end - 1, end - start) if end > start else (None, None, 0)
        for start, end in enumerate(ends)
        if end is not None
    ]
    assert bag(found, ["first", "last", "n"]) == Counter(expected)


# Random queries


@pytest.mark.parametrize("conditions", ["row", "match", "mixed"])
def test_random_queries_have_an_answer(conditions: Any) -> None:  # noqa: ANN401
    @settings(deadline=None, max_examples=20)
    @given(text=queries(Kinds(conditions)), given_rows=rows())
    def check(text: str, given_rows: list[Row]) -> None:
        node = match_node(plan_sql(text, CATALOG))
        try:
            found = naive_match(node, given_rows, most=5_000)
        except (TooMuch, EvaluationError):
            return
        assert all(list(row) == list(node.row) for row in found)

    check()
