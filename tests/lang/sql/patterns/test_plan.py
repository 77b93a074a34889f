"""MATCH_RECOGNIZE as a plan: what explain does not show."""

from __future__ import annotations

from itertools import permutations

import pytest

from eventide.errors import Span
from eventide.lang.sql import plan_sql
from eventide.plan.expressions import ALWAYS, At, Column, MatchAggregate, walk
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Skip
from eventide.plan.tree import Plan
from eventide.schema import FLOAT64
from tests.golden.plans import CATALOG


def match_of(text: str) -> MatchRecognize:
    plan: Plan = plan_sql(text, CATALOG)
    while not isinstance(plan, MatchRecognize):
        (plan,) = plan.children
    return plan


def over(clauses: str) -> str:
    return f"SELECT * FROM cars MATCH_RECOGNIZE ({clauses})"


def test_every_variable_has_a_condition() -> None:
    node = match_of(over("PARTITION BY car PATTERN (A (C | b)) DEFINE B AS speed > 1"))
    assert [item.name for item in node.defines] == ["A", "C", "b"]
    assert [item.expression == ALWAYS for item in node.defines] == [True, True, False]


def test_subsets_are_spelled_as_the_pattern_spells_variables() -> None:
    node = match_of(over("PARTITION BY car PATTERN (Aa Bb) SUBSET U = (AA, bB), v = (aa)"))
    assert node.subsets == (("U", ("Aa", "Bb")), ("v", ("Aa",)))


@pytest.mark.parametrize(
    ("clause", "skip"),
    [
        ("", Skip("past last row")),
        ("AFTER MATCH SKIP PAST LAST ROW", Skip("past last row")),
        ("AFTER MATCH SKIP TO NEXT ROW", Skip("next row")),
        ("AFTER MATCH SKIP TO FIRST b", Skip("first", "B")),
        ("AFTER MATCH SKIP TO LAST b", Skip("last", "B")),
        ("AFTER MATCH SKIP TO b", Skip("last", "B")),
        ("AFTER MATCH SKIP TO u", Skip("last", "U")),
        ("STRATEGY skip_till_any", Skip("next row")),
    ],
)
def test_where_to_go_on(clause: str, skip: Skip) -> None:
    text = over(f"PARTITION BY car {clause} PATTERN (A B+) SUBSET U = (A, B)")
    assert match_of(text).skip == skip


@pytest.mark.parametrize("output", ["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])
def test_measures_are_final_where_they_have_to_be(output: str) -> None:
    measures = "MEASURES LAST(speed) AS a, RUNNING LAST(speed) AS b, FINAL LAST(speed) AS c"
    node = match_of(over(f"{measures}, FINAL sum(lane) AS d {output} PATTERN (A B)"))
    one_row = output.startswith("ONE")
    parts = [item.expression for item in node.measures]
    final = [part.final for part in parts if isinstance(part, At | MatchAggregate)]
    assert final == [one_row, one_row, True, True]


def test_conditions_are_running() -> None:
    condition = "B AS A.speed < sum(speed) + RUNNING LAST(A.lane) AND PREV(lane) = FIRST(lane)"
    node = match_of(over(f"PARTITION BY car PATTERN (A B) DEFINE {condition}"))
    parts = [part for item in node.defines for part in walk(item.expression)]
    assert not any(part.final for part in parts if isinstance(part, At | MatchAggregate))


def test_navigation_finds_its_row() -> None:
    node = match_of(over("MEASURES PREV(FIRST(A.speed, 2), 3) AS x PATTERN (A B)"))
    at = At(Column("speed", FLOAT64), "A", "first", offset=2, shift=-3, final=True)
    assert node.measures[0].expression == at


def test_spans_point_into_the_query() -> None:
    text = over(
        "MEASURES FINAL LAST(A.speed, 1) AS x, max(B.lane) AS y "
        "AFTER MATCH SKIP TO LAST B PATTERN (A B) DEFINE B AS PREV(B.speed) > 3"
    )
    node = match_of(text)
    spans: list[Span | None] = [item.expression.span for item in node.measures]
    spans += [node.defines[1].expression.span, node.skip.span, node.span]
    assert [span.of(text) for span in spans if span is not None] == [
        "FINAL LAST(A.speed, 1)",
        "max(B.lane)",
        "PREV(B.speed) > 3",
        "AFTER MATCH SKIP TO LAST B",
        "MATCH_RECOGNIZE",
    ]


def test_the_clauses_between_measures_and_define_have_no_order() -> None:
    clauses = [
        "ONE ROW PER MATCH",
        "AFTER MATCH SKIP TO NEXT ROW",
        "STRATEGY skip_till_next",
        "PATTERN (A B)",
        "WITHIN INTERVAL '1' MINUTE",
        "TIMEOUT ROWS",
        "SUBSET U = (A, B)",
    ]
    plans = {
        match_of(over(f"MEASURES U.speed AS s {' '.join(order)} DEFINE B AS speed > 1"))
        for order in list(permutations(clauses))[::97]
    }
    assert len(plans) == 1


@pytest.mark.parametrize(
    "length", ["INTERVAL '5' MINUTE", "INTERVAL '5 minutes'", "5 MINUTES", "'5 min'", "300 SECOND"]
)
def test_a_length_of_time_has_many_spellings(length: str) -> None:
    node = match_of(over(f"PARTITION BY car PATTERN (A B) WITHIN {length}"))
    assert node.within_us == 300_000_000


def test_columns_named_like_keywords_are_columns() -> None:
    words = {"odd": CATALOG["cars"].of({"final": "float64", "running": "bool"})}
    text = (
        "SELECT * FROM odd MATCH_RECOGNIZE (MEASURES final AS a, FINAL LAST(final) AS b "
        "PATTERN (A) DEFINE A AS running AND final > 1 AND final IN (2, 3))"
    )
    assert plan_sql(text, words)


@pytest.mark.parametrize("word", ["DROP", "create", "JOIN", "Select", "ON", "END", "first"])
def test_any_word_is_a_variable(word: str) -> None:
    text = over(
        f"MEASURES LAST({word}.speed) AS m, CLASSIFIER({word}) AS c "
        f"AFTER MATCH SKIP TO LAST {word} "
        f"PATTERN (A {word}+) DEFINE {word} AS {word}.speed < PREV({word}.speed)"
    )
    node = match_of(text)
    assert node.variables == ("A", word)
    parts = [part for each in node.measures for part in walk(each.expression)]
    named = {part.variable for part in parts if isinstance(part, At)}
    assert named == {word}


def test_a_quoted_name_in_upper_case_is_the_plain_one() -> None:
    text = over(
        'MEASURES "A".speed AS m, b.lane AS n AFTER MATCH SKIP TO "B" PATTERN (a "B"+) '
        'SUBSET u = ("A", b) DEFINE "A" AS "U".speed > 1, b AS "B".speed > a.speed'
    )
    node = match_of(text)
    assert [item.name for item in node.defines] == ["a", "B"]
    assert node.subsets == (("u", ("a", "B")),)
    assert node.skip == Skip("last", "B")
