"""Aggregates in conditions: against the twin, and which of them a condition cannot have."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.errors import UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.operators.patterns.conditions import compile_conditions
from eventide.schema import Schema
from tests.naive.patterns.rows import match_node
from tests.naive.patterns.texts import Row, in_time
from tests.operators.patterns.test_rows import check, run

SCHEMA = Schema.of(
    {
        "k": "string",
        "v": "float64",
        "w": "float64",
        "x": "int64",
        "d": "decimal(6,2)",
        "b": "bool",
        "label": "string",
    }
)
EXPLORING = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

FIELDS = st.fixed_dictionaries(
    {
        "ts": st.sampled_from([1, 0, 1, 2]),
        "k": st.sampled_from(["p", "p", "q"]),
        "v": st.sampled_from([1e200, -1e200, 1e100, -1e100, 1.0, 2.0, 0.1, 0.2, -0.3, None]),
        "w": st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.0, 2.5, -math.inf, math.inf, math.nan, None]),
        "x": st.sampled_from([0, 1, 2, 2, 3, None]),
        "d": st.sampled_from([Decimal("0.10"), Decimal("0.20"), Decimal("1.70"), None]),
        "b": st.sampled_from([True, True, False, None]),
        "label": st.sampled_from(["a", "b", "b", "c", "", None]),
    }
)
EXTREME = [1.7e308, 1.7e308, -1.7e308, math.inf, math.nan, 5e-324]

SUMS = ("SUM({v}.v)", "AVG({v}.v)", "SUM(v)", "SUM(DISTINCT {v}.v)", "AVG(DISTINCT v)")
MOMENTS = (
    "STDDEV({v}.w)",
    "STDDEV_POP(w)",
    "VARIANCE(x)",
    "VAR_POP({v}.w)",
    "VARIANCE(DISTINCT {v}.w)",
    "CORR({v}.w, {v}.x)",
    "COVAR_POP(w, x)",
    "COVAR_SAMP({v}.x, {v}.w)",
    "REGR_SLOPE(w, x)",
)
RANKS = (
    "MEDIAN({v}.w)",
    "MEDIAN(x)",
    "MEDIAN(d)",
    "MEDIAN(DISTINCT {v}.w)",
    "MEDIAN(w) FILTER (WHERE x > 0)",
    "QUANTILE_CONT(w, 0.25)",
    "QUANTILE({v}.x, 0.9)",
    "QUANTILE_DISC({v}.w, 0.5)",
    "QUANTILE_DISC(x, 0.75)",
    "QUANTILE_DISC(DISTINCT x, 0.3)",
    "MODE(w)",
    "MODE({v}.x)",
    "MODE(x) FILTER (WHERE b)",
    "COUNT(DISTINCT w)",
    "APPROX_COUNT_DISTINCT({v}.label)",
    "ARG_MAX(w, v)",
    "ARG_MIN({v}.x, {v}.w)",
    "ARG_MAX({v}.x, {v}.label)",
)
TEXTS = (
    "MODE(label)",
    "MODE({v}.label)",
    "MODE(CLASSIFIER())",
    "QUANTILE_DISC({v}.label, 0.5)",
    "ARG_MAX(label, w)",
    "ARG_MIN({v}.label, {v}.d)",
    "ARG_MAX(CLASSIFIER(), w)",
    "MIN(label)",
)
TRUTHS = ("BOOL_AND({v}.b)", "BOOL_OR(b)", "NOT EVERY({v}.b)", "ARG_MAX(b, w)")
PATTERNS = (
    "A B+ C",
    "A* B",
    "A+? B+ C?",
    "(A | B)+ C",
    "A B*? C",
    "PERMUTE(A, B+) C",
    "(A B?)+",
)
ABSENT = ("A NOT B C", "A+ NOT B C+")


def conditions(names: list[str], *, counted: bool) -> st.SearchStrategy[str]:
    """Draw conditions over aggregates of variables; `counted` are those that count values."""

    def of(templates: tuple[str, ...], rest: list[str]) -> st.SearchStrategy[str]:
        return st.builds(
            lambda template, name, rest: f"{template.format(v=name)} {rest}",
            st.sampled_from(templates),
            st.sampled_from(names),
            st.sampled_from(rest),
        )

    sums: tuple[str, ...] = SUMS
    texts: tuple[str, ...] = TEXTS
    if not counted:
        sums = tuple(each for each in SUMS if "DISTINCT" not in each)
        texts = tuple(each for each in TEXTS if each.startswith(("ARG", "MIN")))
    choices = [
        of(sums, ["> 0", "<= 1.5", "= 3", "<> 3", "> 1e150", "IS NULL", "< 0.3 OR x IS NULL"]),
        of(MOMENTS[: 4 if not counted else None], ["> 0.4321", "<= 1.4321", "IS NULL"]),
        of(texts, ["= 'b'", "<> 'A'", ">= label", "IS NULL"]),
        of(TRUTHS, ["", "IS NULL"]),
    ]
    if counted:
        choices += [of(RANKS, ["<= 0.43", "> 1", "= 1", "<= x", "IS NOT NULL"])] * 3
    return st.one_of(choices)


@st.composite
def queries(draw: st.DrawFn, patterns: tuple[str, ...], strategies: tuple[str, ...]) -> str:
    pattern = draw(st.sampled_from(patterns))
    defined = [name for name in "ABC" if name in pattern and draw(st.integers(0, 3))]
    absent = "NOT" in pattern
    names = [name for name in "ABC" if name in pattern and not (absent and name == "B")]
    inside = conditions(names, counted=not absent)
    defines = ", ".join(f"{name} AS {draw(inside)}" for name in defined or ["B"])
    partition = draw(st.sampled_from(["", "PARTITION BY k "]))
    skip = draw(st.sampled_from(["PAST LAST ROW", "TO NEXT ROW"]))
    strategy = draw(st.sampled_from(strategies))
    within = "WITHIN INTERVAL '4' SECOND" if absent or draw(st.booleans()) else ""
    if strategy == "skip_till_any":
        skip = "TO NEXT ROW"
    return f"""SELECT * FROM s MATCH_RECOGNIZE ({partition}
        MEASURES FIRST(_seq) AS began, LAST(_seq) AS ended, COUNT(*) AS n
        AFTER MATCH SKIP {skip} STRATEGY {strategy} PATTERN ({pattern}) {within}
        DEFINE {defines})"""


def rows(most: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(FIELDS, min_size=2, max_size=most).map(in_time)


CUTS = st.lists(st.integers(0, 10), max_size=5)


@EXPLORING
@given(queries(PATTERNS, ("contiguous",)), rows(10), CUTS)
def test_of_consecutive_rows(text: str, events: list[Row], cuts: list[int]) -> None:
    check(text, events, cuts, SCHEMA)


@EXPLORING
@given(queries(PATTERNS, ("skip_till_next", "skip_till_any")), rows(7), CUTS)
def test_of_rows_with_others_between(text: str, events: list[Row], cuts: list[int]) -> None:
    check(text, events, cuts, SCHEMA)


@EXPLORING
@given(queries(ABSENT, ("skip_till_next", "skip_till_any")), rows(7), CUTS)
def test_of_rows_that_are_not_there(text: str, events: list[Row], cuts: list[int]) -> None:
    check(text, events, cuts, SCHEMA)


@EXPLORING
@given(
    st.sampled_from(SUMS).map(lambda each: each.format(v="A")),
    st.sampled_from(["> 1e300", "<= 0", "= 5e-324"]),
    st.lists(st.sampled_from(EXTREME), min_size=2, max_size=7),
    CUTS,
)
def test_sums_of_the_largest_floats(
    asked: str, rest: str, values: list[float], cuts: list[int]
) -> None:
    nothing: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    events = in_time([{**nothing, "ts": 1, "v": value} for value in values])
    text = f"""SELECT * FROM s MATCH_RECOGNIZE (MEASURES COUNT(*) AS n
        AFTER MATCH SKIP TO NEXT ROW PATTERN (A+ B) DEFINE B AS {asked} {rest})"""
    check(text, events, cuts, SCHEMA)


def test_a_sum_in_a_condition_is_rounded_once() -> None:
    wild = [1e200, 1e100, 1.0, -1e200, -1e100, 2.0]
    nothing: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    events = in_time([{**nothing, "ts": 1, "v": value} for value in wild])
    for sums in ("SUM(v) = 3", "AVG(v) = 0.5", "SUM(DISTINCT v) = 3"):
        text = f"""SELECT * FROM s MATCH_RECOGNIZE (MEASURES COUNT(*) AS n
            PATTERN (A+ B) DEFINE B AS {sums})"""
        assert run(plan_sql(text, {"s": SCHEMA}), events, [2, 3], SCHEMA) == [{"n": 6}]


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("ARRAY_AGG(A.x) IS NULL", "BOOL_OR"),
        ("TOP_K(label, 2) = '[]'", "MODE"),
    ],
)
def test_lists_do_not_stand_in_conditions(condition: str, hint: str) -> None:
    text = f"""SELECT * FROM s MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A B)
        DEFINE B AS {condition})"""
    with pytest.raises(UnsupportedError, match="makes a list") as caught:
        compile_conditions(match_node(plan_sql(text, {"s": SCHEMA})))
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_counts_of_values_in_a_late_not_are_refused() -> None:
    text = """SELECT * FROM s MATCH_RECOGNIZE (MEASURES COUNT(*) AS n STRATEGY skip_till_next
        PATTERN (A NOT B C) WITHIN INTERVAL '1' MINUTE
        DEFINE B AS MEDIAN(A.x) > LAST(C.x))"""
    with pytest.raises(UnsupportedError, match="which comes later"):
        compile_conditions(match_node(plan_sql(text, {"s": SCHEMA})))
