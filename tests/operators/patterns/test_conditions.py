"""Conditions that read the match: against the oracle, and how they are split and refused."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.errors import BindError, EvaluationError, UnsupportedError
from eventide.kernels.patterns.tables import NO_ANSWER
from eventide.lang.sql import plan_sql
from eventide.operators.patterns.conditions import Conditions, compile_conditions
from eventide.plan.expressions import At, walk
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import PartitionEnd
from eventide.plan.render import render
from tests.naive.patterns.rows import Budget, TooMuch, match_node, matches, partitions
from tests.naive.patterns.texts import CATALOG, Kinds, has, queries, rows
from tests.operators.patterns.drive import Matched, Row, in_pieces, listed, look

EXPLORING = settings(
    max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def compiled(defines: str, pattern: str = "A B+ C", more: str = "") -> Conditions:
    text = f"""SELECT * FROM s MATCH_RECOGNIZE (
        MEASURES COUNT(*) AS n {more} PATTERN ({pattern}) DEFINE {defines})"""
    return compile_conditions(match_node(plan_sql(text, CATALOG)))


def events(*xs: int | None) -> list[Row]:
    return [
        {"ts": place, "_seq": place, "k": None, "x": x, "y": None, "label": None}
        for place, x in enumerate(xs)
    ]


def ordered(node: MatchRecognize, found: list[Matched]) -> list[Matched]:
    """Return matches so that they can be compared: skip_till_any leaves their order open."""
    if node.strategy != "skip_till_any":
        return found
    return sorted((start, None, path) for start, _, path in found)


def agrees(text: str, every: list[Row], cuts: list[int]) -> None:
    """Compare with the oracle, all rows at once and in pieces."""
    node = match_node(plan_sql(text, CATALOG))
    if node.timeout_rows and has(node.pattern, PartitionEnd):
        return  # whether `$` with something behind it still waits is a matter of taste
    conditions = compile_conditions(node)
    for each in partitions(node, every):
        try:
            wanted: list[Matched] | None = [
                (match.start, match.number, tuple((one.row, one.variable) for one in match.path))
                for match in matches(node, each, Budget(20_000))
            ]
        except TooMuch:
            continue
        except EvaluationError:
            wanted = None
        found = look(conditions, each)
        if wanted is None:
            assert found.status in (2, 3)
            continue
        assert found.status == 0
        assert ordered(node, listed(found, conditions)) == ordered(node, wanted)
        pieces = in_pieces(conditions, each, [min(cut, len(each)) for cut in cuts])
        assert ordered(node, pieces) == ordered(node, wanted)


CUTS = st.lists(st.integers(0, 12), max_size=3)


@EXPLORING
@given(queries(Kinds(strategies=("contiguous",))), rows(), CUTS)
def test_contiguous_matches_are_those_of_the_oracle(
    text: str, every: list[Row], cuts: list[int]
) -> None:
    agrees(text, every, cuts)


@EXPLORING
@given(queries(Kinds(strategies=("skip_till_next",))), rows(), CUTS)
def test_skip_till_next_finds_those_of_the_oracle(
    text: str, every: list[Row], cuts: list[int]
) -> None:
    agrees(text, every, cuts)


@EXPLORING
@given(queries(Kinds(strategies=("skip_till_any",))), rows(8), CUTS)
def test_skip_till_any_finds_those_of_the_oracle(
    text: str, every: list[Row], cuts: list[int]
) -> None:
    agrees(text, every, cuts)


def test_what_the_row_decides_is_cut_off() -> None:
    conditions = compiled(
        "B AS B.x > PREV(B.x, 2) AND x < LAST(A.x) AND NEXT(y) > 1 AND label = 'a'"
    )
    local = conditions.local[1]
    assert local is not None
    assert conditions.local[0] is conditions.local[2] is None
    leaves = [part for part in _leaves(conditions) if isinstance(part, At)]
    assert all(leaf.variable is None and leaf.edge == "last" for leaf in leaves)
    assert sorted(leaf.shift for leaf in leaves) == [-2, 0, 0, 1]
    assert (conditions.reach_back, conditions.reach_ahead) == (2, 1)
    assert not conditions.is_local
    assert compiled("B AS CLASSIFIER() = 'B' AND FIRST(B.x, 0) > 1").local[1] is not None


def _leaves(conditions: Conditions) -> list[object]:
    return [part for each in conditions.local if each is not None for part in walk(each)]


def test_what_looks_at_one_row_is_one_value() -> None:
    conditions = compiled("C AS SQRT(A.x) + LENGTH(A.label) * 2 > LAST(B.y)")
    assert [render(each) for each in conditions.values] == [
        "sqrt(CAST(x AS float64)) + CAST(length(label) * 2 AS float64)",
        "y",
    ]


# Each condition holds on the last row of 1 2 3 4 taken as A B B C, or does not.
CASES = [
    ("LAST(B.x) - FIRST(B.x) = 1", True),
    ("LAST(B.x, 1) * 2 = x", True),
    ("LAST(B.x, 2) IS NULL", True),
    ("SUM(B.x) = 5 AND AVG(B.x) = 2.5 AND COUNT(B.*) = 2", True),
    ("MIN(x) + MAX(x) = 5", True),
    ("STDDEV(x) > 1.29 AND STDDEV(x) < 1.2910", True),
    ("STDDEV(A.x) IS NULL", True),
    ("COUNT(DISTINCT CLASSIFIER()) = 3", True),
    ("SUM(DISTINCT x) = 10", True),
    ("CLASSIFIER(A) = 'A' AND CLASSIFIER(B) < CLASSIFIER()", True),
    ("PREV(CLASSIFIER()) = 'B' AND PREV(CLASSIFIER(), 3) = 'A'", True),
    ("NEXT(CLASSIFIER()) IS NULL", True),
    ("COALESCE(NEXT(B.x, 3), A.x) = 1", True),
    ("COALESCE(B.y, A.y) IS NULL", True),
    ("NULLIF(A.x, B.x - 2) IS NULL", True),
    ("GREATEST(A.x, B.x, x) = 4 AND LEAST(A.x, B.y) = 1", True),
    ("A.x IN (B.x, 1)", True),
    ("A.x NOT IN (B.x, C.x)", True),
    ("CASE WHEN A.x > B.x THEN 1 WHEN A.x + B.x = x THEN 2 ELSE 0 END = 2", True),
    ("NOT (A.x > B.x)", True),
    ("A.x > B.x OR A.y > B.y OR x = 4", True),
    ("A.y > B.y OR A.x > B.x", False),
    ("x / (A.x - 1) IS NULL AND x % (A.x - 1) IS NULL", True),
    ("-x % -B.x = -1 AND ABS(A.x - x) = 3", True),
    ("A.y IS NOT DISTINCT FROM B.y AND A.x IS DISTINCT FROM B.x", True),
    ("CAST(A.x + 0.5 * B.x AS BIGINT) = CAST(B.x AS DOUBLE) - A.x", False),
    ("CAST(A.x - B.x AS BOOLEAN)", True),
    ("CAST(A.x AS DECIMAL(10,2)) + CAST(B.x AS DECIMAL(10,2)) = 4.00", True),
    ("B.ts - A.ts < INTERVAL '1' SECOND AND ts - INTERVAL '1' SECOND < A.ts", True),
    ("MATCH_NUMBER() = A.x", True),
]


@pytest.mark.parametrize(("condition", "holds"), CASES, ids=[text for text, _ in CASES])
def test_conditions_over_several_rows(condition: str, holds: bool) -> None:
    conditions = compiled(f"C AS x = 4 AND {condition}", "A B B C", "AFTER MATCH SKIP TO NEXT ROW")
    found = look(conditions, events(1, 2, 3, 4))
    assert found.status == 0
    assert bool(len(found.start)) is holds


def test_overflow_is_an_error_with_its_place() -> None:
    conditions = compiled("C AS A.x * B.x > 0", "A B C")
    found = look(conditions, events(2**62, 2, 1))
    assert found.status == NO_ANSWER
    assert found.where == 0
    error = conditions.no_answer(found.instruction)
    assert isinstance(error, EvaluationError)
    assert "overflows int64" in error.message


def test_a_guard_keeps_overflow_away() -> None:
    conditions = compiled("C AS A.x < 100 AND A.x * B.x > 0", "A B C")
    assert look(conditions, events(2**62, 2, 1)).status == 0


def test_sums_may_overflow_on_the_way() -> None:
    big = 2**62
    conditions = compiled("C AS SUM(x) = 5", "A B C")
    assert len(look(conditions, events(big, big, 5 - 2 * big)).start) == 1


def test_text_of_several_rows_compares_by_rank() -> None:
    conditions = compiled("B AS label > LAST(A.label), C AS C.label = A.label AND B.label <> 'q'")
    every = events(1, 2, 3, 4)
    for row, label in zip(every, ["b", "c", "z", "b"], strict=True):
        row["label"] = label
    assert listed(look(conditions, every), conditions)[0][2] == (
        (0, "A"),
        (1, "B"),
        (2, "B"),
        (3, "C"),
    )


def test_other_functions_over_several_rows_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="combines several rows"):
        compiled("C AS A.label || B.label = 'ab'")


def test_many_rows_before_the_last_one() -> None:
    conditions = compiled("B AS B.x > 0, C AS C.x = LAST(B.x, 1000)", "A B+ C")
    every = events(*range(1, 1004), 3)
    assert len(listed(look(conditions, every), conditions)[0][2]) == 1004


def test_first_rows_are_seen_by_their_values_and_presence() -> None:
    conditions = compiled("B AS COALESCE(FIRST(B.x, 2), 3) = 3, C AS C.x = 9")
    every = events(1, 1, 2, 3, 5, 9)
    assert listed(look(conditions, every), conditions)[0][2][-1] == (5, "C")


@pytest.mark.parametrize("edge", ["FIRST", "LAST"])
def test_offsets_that_take_too_many_registers_are_refused(edge: str) -> None:
    with pytest.raises(BindError, match=rf"{edge} in DEFINE .* 1,000 rows, not 1,001") as caught:
        compiled(f"C AS C.x > {edge}(B.x, 1001)")
    assert caught.value.span is not None
    assert caught.value.hint is not None
    assert "PREV" in caught.value.hint
