"""What can be looked up in indexes for a pattern: only comparisons with constants."""

from __future__ import annotations

import pytest

from eventide.engines.history.patterns.conditions import (
    MOST_ATOMS,
    MOST_CLAUSES,
    Shape,
    narrowed,
    shape_of,
    text_of,
)
from eventide.lang.sql import plan_sql
from eventide.schema import Schema
from eventide.store.index.ranges import ValueRange
from tests.naive.patterns.rows import match_node

CATALOG = {
    "s": Schema.of(
        {
            "k": "string",
            "x": "int64",
            "y": "float64",
            "label": "string",
            "flag": "bool",
            "price": "decimal(9,2)",
            "seen": "timestamp",
        }
    )
}


def shape(
    define: str, pattern: str = "A B", source: str = "s", strategy: str = "contiguous"
) -> Shape:
    text = (
        f"SELECT * FROM {source} MATCH_RECOGNIZE (MEASURES LAST(ts) AS t STRATEGY {strategy} "
        f"PATTERN ({pattern}) WITHIN INTERVAL '5' SECOND {define and f'DEFINE {define}'})"
    )
    return shape_of(match_node(plan_sql(text, CATALOG)))


def listed(found: Shape) -> list[str]:
    """Return conditions as `number of the symbol: text`."""
    return [f"{each.symbol}: {each.text}" for each in found.conditions]


@pytest.mark.parametrize(
    ("define", "asked"),
    [
        # every comparison, either way round
        ("A AS x = 1", ["0: x = 1"]),
        ("A AS x > 1", ["0: x > 1"]),
        ("A AS x >= 1", ["0: x >= 1"]),
        ("A AS x < 1", ["0: x < 1"]),
        ("A AS x <= 1", ["0: x <= 1"]),
        ("A AS 1 < x", ["0: x > 1"]),
        ("A AS 1 >= x", ["0: x <= 1"]),
        ("A AS 1 = x", ["0: x = 1"]),
        ("A AS y > 0.5", ["0: y > 0.5"]),
        ("A AS label = 'a'", ["0: label = a"]),
        ("A AS label >= 'a' AND label < 'c'", ["0: label >= a and label < c"]),
        # the row itself under all of its names
        ("A AS A.x > 1", ["0: x > 1"]),
        ("A AS LAST(A.x) > 1", ["0: x > 1"]),
        ("A AS LAST(x) > 1", ["0: x > 1"]),
        # BETWEEN, and two ends that are written apart
        ("A AS x BETWEEN 1 AND 3", ["0: x >= 1 and x <= 3"]),
        ("A AS x > 1 AND y < 2.0 AND x < 3", ["0: x > 1 and x < 3", "0: y < 2.0"]),
        # AND: each for itself, the others are left to the matcher
        ("A AS x = 1 AND label = 'a'", ["0: x = 1", "0: label = a"]),
        ("A AS x = 1 AND y IS NULL", ["0: x = 1"]),
        # OR: all of it or nothing
        ("A AS x = 1 OR label = 'a'", ["0: x = 1 or label = a"]),
        ("A AS x = 1 OR y IS NULL", []),
        ("A AS x = 1 OR (label = 'a' AND y IS NULL)", ["0: x = 1 or label = a"]),
        (
            "A AS (x = 1 AND y > 2.0) OR label = 'a'",
            ["0: x = 1 or label = a", "0: y > 2.0 or label = a"],
        ),
        ("A AS (x = 1 OR x = 2) AND y > 2.0", ["0: y > 2.0", "0: x = 1 or x = 2"]),
        ("A AS x = 1 OR x = 1", ["0: x = 1"]),
        ("A AS x IN (1, 2)", ["0: x = 1 or x = 2"]),
        ("A AS label IN ('a')", ["0: label = a"]),
        # several symbols
        ("A AS x = 1, B AS x = 2", ["0: x = 1", "1: x = 2"]),
        ("B AS x = 2", ["1: x = 2"]),
    ],
)
def test_what_is_asked(define: str, asked: list[str]) -> None:
    assert listed(shape(define)) == asked


@pytest.mark.parametrize(
    "condition",
    [
        "x <> 1",
        "NOT (x = 1)",
        "x NOT IN (1, 2)",
        "NOT (x > 1 AND label = 'a')",
        "x IS NULL",
        "x IS NOT NULL",
        "x + 1 > 2",
        "ABS(x) = 1",
        "x > y",
        "x IN (1, 2) OR y IS NULL",
        "COALESCE(x, 1) = 1",
        "label || 'a' = 'aa'",
        # other rows than the one that is tested
        "PREV(x) > 1",
        "NEXT(x) = 1",
        "FIRST(x) = 1",
        "FIRST(B.x) = 1",
        "LAST(x, 1) = 1",
        "COUNT(*) = 2",
        "SUM(x) > 3",
        "CLASSIFIER() = 'B'",
        # constants of another type are not what an index has
        "x > 1.5",
        "x = 9223372036854775808",
        "x = NULL",
        # time has an index of its own
        "ts > TIMESTAMP '1970-01-01 00:00:03'",
        "_seq > 3",
    ],
)
def test_what_is_left_to_the_matcher(condition: str) -> None:
    assert listed(shape(f"B AS {condition}")) == []


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("flag = TRUE", "flag = True"),
        ("price = CAST(2.5 AS DECIMAL(9,2))", "price = 2.50"),
        ("y > CAST(1 AS DOUBLE)", "y > 1.0"),
    ],
)
def test_other_types(condition: str, asked: str) -> None:
    assert listed(shape(f"B AS {condition}")) == [f"1: {asked}"]


# Constants of other variables


@pytest.mark.parametrize(
    ("define", "asked"),
    [
        ("A AS x = 7, B AS x = A.x", ["0: x = 7", "1: x = 7"]),
        ("A AS 7 = x, B AS A.x = x", ["0: x = 7", "1: x = 7"]),
        ("A AS x = 7, B AS x > A.x", ["0: x = 7", "1: x > 7"]),
        ("A AS x = 7, B AS x = FIRST(A.x)", ["0: x = 7", "1: x = 7"]),
        ("A AS x = 7 AND y > 1.0, B AS x = A.x AND label = 'b'", None),
        ("A AS x = 7, B AS x = A.x OR label = 'b'", ["0: x = 7", "1: x = 7 or label = b"]),
        # there is a constant for another column only
        ("A AS label = 'a', B AS x = A.x", ["0: label = a"]),
        # not every row of A has it
        ("A AS x = 7 OR y > 1.0, B AS x = A.x", ["0: x = 7 or y > 1.0"]),
        ("A AS x > 7, B AS x = A.x", ["0: x > 7"]),
        # the row beside A's is another one
        ("A AS x = 7, B AS x = PREV(A.x)", ["0: x = 7"]),
        ("A AS x = 7, B AS x = A.x + 1", ["0: x = 7"]),
        ("A AS x = 7, B AS NOT (x = A.x)", ["0: x = 7"]),
    ],
)
def test_constants_go_from_variable_to_variable(define: str, asked: list[str] | None) -> None:
    asked = asked or ["0: x = 7", "0: y > 1.0", "1: x = 7", "1: label = b"]
    assert listed(shape(define)) == asked


# Symbols of several variables, and none


@pytest.mark.parametrize(
    ("pattern", "asked"),
    [
        ("A | B", ["0: x = 1 or x = 2", "0: x = 1 or label = b"]),
        ("PERMUTE(A, C)", ["0: x = 1 or y > 0.5", "1: x = 1 or y > 0.5"]),
        # anything is a D, so nothing can be asked
        ("(A | D) B", ["1: x = 2", "1: label = b"]),
        ("A C* B", ["0: x = 1", "1: x = 2", "1: label = b"]),
        ("A+ A{2}", ["0: x = 1", "1: x = 1", "2: x = 1"]),
    ],
)
def test_a_symbol_of_several_variables_is_one_of_them(pattern: str, asked: list[str]) -> None:
    defines = {"A": "x = 1", "B": "x = 2 AND label = 'b'", "C": "y > 0.5"}
    used = [f"{name} AS {text}" for name, text in defines.items() if name in pattern]
    assert listed(shape(", ".join(used), pattern)) == asked


def test_what_must_not_be_there_is_not_asked_for() -> None:
    found = shape("A AS x = 1, C AS x = 3", "A NOT C B", strategy="skip_till_next")
    assert listed(found) == ["0: x = 1"]


def test_long_lists_are_left_to_the_matcher() -> None:
    values = [str(value) for value in range(MOST_ATOMS)]
    assert len(shape(f"A AS x IN ({', '.join(values)})").conditions) == 1
    assert listed(shape(f"A AS x IN ({', '.join([*values, '-1'])})")) == []
    # An OR of ANDs unfolds, but only so far.
    several = " OR ".join(f"(x = {value} AND y > {value}.0)" for value in range(8))
    found = shape(f"A AS {several}").conditions
    assert 0 < len(found) <= MOST_CLAUSES
    assert all(len(each.clause) <= MOST_ATOMS for each in found)


# What lies below the pattern


@pytest.mark.parametrize(
    ("source", "define", "asked", "filtered"),
    [
        ("(SELECT ts, x AS z, y FROM s)", "A AS z = 1", ["0: x = 1"], False),
        ("(SELECT ts, y AS x, x AS y FROM s)", "A AS x > 0.5", ["0: y > 0.5"], False),
        ("(SELECT ts, x + 1 AS z FROM s)", "A AS z = 1", [], False),
        ("(SELECT ts, x + 1 AS z, y FROM s)", "A AS z = 1 AND y < 1.0", ["0: y < 1.0"], False),
        # a condition below holds for every row
        ("(SELECT * FROM s WHERE x > 3)", "A AS label = 'a'", None, True),
        ("(SELECT ts, x AS z FROM s WHERE x > 3)", "", ["0: x > 3", "1: x > 3"], True),
        ("(SELECT * FROM s WHERE y IS NULL)", "A AS x = 1", ["0: x = 1"], True),
        (
            "(SELECT ts, x AS z FROM s)",
            "A AS z = 7, B AS z = A.z",
            ["0: x = 7", "1: x = 7"],
            False,
        ),
    ],
)
def test_columns_are_those_of_the_stream(
    source: str, define: str, asked: list[str] | None, filtered: bool
) -> None:
    found = shape(define, source=source)
    if asked is None:
        assert sorted(listed(found)) == ["0: label = a", "0: x > 3", "1: x > 3"]
    else:
        assert listed(found) == asked
    assert found.filtered is filtered


def test_texts() -> None:
    assert text_of((("x", ValueRange(1, 1)),)) == "x = 1"
    assert text_of((("x", ValueRange(1, 2, includes_high=False)),)) == "x >= 1 and x < 2"
    assert text_of((("x", ValueRange(1, 1)), ("y", ValueRange(high=2)))) == "x = 1 or y <= 2"


def test_two_ends_of_a_range_are_one() -> None:
    low, high, other = ValueRange(1), ValueRange(high=5), ValueRange(2, 2)
    clauses = ((("x", low),), (("y", other),), (("x", high),), (("x", low), ("y", other)))
    assert narrowed(clauses) == (
        (("x", ValueRange(1, 5)),),
        (("y", other),),
        (("x", low), ("y", other)),
    )
