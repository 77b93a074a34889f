"""FROM x a JOIN y b ON a OVERLAPS b: what is read of it, what the rest becomes, what is refused."""

from __future__ import annotations

import pytest

from eventide.errors import BindError, EventideError, ParseError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.plan.allen import MEETS, MET_BY, NAMES, OVERLAPPED_BY, OVERLAPS, inverse
from eventide.plan.explain import explain
from eventide.plan.nodes import Filter, PeriodJoin, Relational, scans_of
from eventide.schema import Schema

CATALOG = {
    "trips": Schema.of(
        {"car": "string", "top": "float64", "start_ts": "timestamp", "end_ts": "timestamp"}
    ),
    "stops": Schema.of(
        {"car": "string", "n": "int64", "Start_TS": "timestamp", "end_ts": "timestamp"}
    ),
    "notes": Schema.of({"car": "string", "text": "string", "start_ts": "int64"}),
}


def planned(text: str) -> Relational:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Relational)
    return plan


def joined(text: str) -> PeriodJoin:
    """The one join of a query, whose rest reads nothing else."""
    ((_, plan),) = planned(text).inputs
    assert isinstance(plan, PeriodJoin)
    return plan


def on(condition: str) -> PeriodJoin:
    return joined(f"SELECT a.car FROM trips a JOIN stops b ON {condition}")


@pytest.mark.parametrize("bit", range(13), ids=NAMES)
def test_every_relation_is_read_in_all_spellings(bit: int) -> None:
    name, relation = NAMES[bit], 1 << bit
    for gap in (" ", "_", "-", "\n  "):
        said = name.upper().replace(" ", gap)
        assert on(f"a {said.lower()} b").mask == relation
        assert on(f"a {said} b").mask == relation
        assert on(f"a.car = b.car AND b {said} a").mask == inverse(relation)


def test_relations_with_or_are_one_condition() -> None:
    assert on("a.car = b.car AND (a OVERLAPS b OR b MEETS a)").mask == OVERLAPS | MET_BY
    assert on("(a MEETS b OR (a MEETS b OR b OVERLAPS a))").mask == MEETS | OVERLAPPED_BY


def test_equalities_of_like_columns_are_keys_and_the_rest_filters() -> None:
    plan = planned(
        "SELECT a.car FROM trips a JOIN stops b "
        "ON b.car = a.car AND a.top = b.n AND b.n > 3 AND b.n < a.top AND a DURING b"
    )
    ((_, join),) = plan.inputs
    assert isinstance(join, PeriodJoin)
    assert join.keys == (("a_car", "b_car"),)
    assert isinstance(join.right, Filter) or "Filter n > 3" in explain(join.right)
    for comparison in ("eventide_0.a_top = eventide_0.b_n", "eventide_0.b_n < eventide_0.a_top"):
        assert comparison in plan.duckdb_sql
    assert "JOIN" not in plan.duckdb_sql


def test_columns_keep_their_names() -> None:
    plan = planned("SELECT a.car, b.START_ts, top, b.n + 1 AS more FROM trips a "
                   "JOIN stops b ON a MEETS b WHERE b.n < a.top ORDER BY b.n")  # fmt: skip
    assert plan.duckdb_sql == (
        "SELECT eventide_0.a_car AS car, eventide_0.b_Start_TS AS Start_TS, "
        "eventide_0.a_top AS top, eventide_0.b_n + 1 AS more FROM eventide_0 "
        "WHERE eventide_0.b_n < eventide_0.a_top ORDER BY eventide_0.b_n"
    )


def test_only_what_is_read_comes_out() -> None:
    assert on("a.car = b.car AND a MEETS b").columns == ("a_car",)
    counted = joined("SELECT count(*) AS n FROM trips a JOIN stops b ON a MEETS b")
    assert len(counted.columns) == 1


def test_a_star_is_all_columns_those_of_both_sides_with_their_side() -> None:
    plan = planned("SELECT * FROM trips a JOIN stops b ON a MEETS b")
    names = [part.split(" AS ")[1] for part in plan.duckdb_sql.split(" FROM ")[0].split(", ")]
    assert names == [
        *("a_ts", "a_car", "top", "a_start_ts", "a_end_ts"),
        *("b_ts", "b_car", "n", "b_Start_TS", "b_end_ts"),
    ]
    plan = planned("SELECT b.* FROM trips a JOIN stops b ON a MEETS b")
    names = [part.split(" AS ")[1] for part in plan.duckdb_sql.split(" FROM ")[0].split(", ")]
    assert names == ["ts", "car", "n", "Start_TS", "end_ts"]


def test_an_alias_is_ordered_by_before_a_column() -> None:
    text = "SELECT b.end_ts AS end_ts FROM trips a JOIN stops b ON a MEETS b ORDER BY end_ts"
    assert planned(text).duckdb_sql.endswith("b_end_ts AS end_ts FROM eventide_0 ORDER BY end_ts")


def test_names_of_sides_never_meet() -> None:
    join = joined(
        "SELECT a.b_x, a_b.x FROM (SELECT start_ts, end_ts, car AS b_x FROM trips) a "
        "JOIN (SELECT start_ts, end_ts, car AS x FROM stops) a_b ON a MEETS a_b"
    )
    assert join.columns == ("a_b_x", "a_b_x_2")


def test_queries_inside_see_the_columns_of_both_sides() -> None:
    plan = planned(
        "SELECT a.car FROM trips a JOIN stops b ON a MEETS b "
        "WHERE EXISTS (SELECT 1 FROM notes WHERE notes.car = b.car) "
        "AND NOT EXISTS (SELECT 1 FROM notes b WHERE b.car = a.car AND text = 'x')"
    )
    assert "notes.car = eventide_0.b_car" in plan.duckdb_sql
    assert "b.car = eventide_0.a_car" in plan.duckdb_sql


def test_ordinary_joins_follow() -> None:
    plan = planned(
        "SELECT a.car, c.text FROM trips a JOIN stops b ON a.car = b.car AND a MEETS b "
        "LEFT JOIN notes c ON c.car = b.car"
    )
    assert len(plan.inputs) == 2
    assert "LEFT JOIN eventide_1 AS c ON c.car = eventide_0.b_car" in plan.duckdb_sql


def test_joins_by_relation_follow_one_another() -> None:
    join = joined(
        "SELECT a.top FROM trips a JOIN stops b ON a.car = b.car AND a MEETS b "
        "LEFT JOIN trips c ON c.car = a.car AND c OVERLAPS b"
    )
    assert join.outer
    assert join.mask == OVERLAPPED_BY
    assert (join.first.name, join.second.name) == ("b", "c")
    assert isinstance(join.left, PeriodJoin)
    # What the second join looks at, and what is shown.
    assert set(join.left.columns) == {"a_top", "a_car", "b_Start_TS", "b_end_ts"}
    assert [scan.stream for scan in scans_of(join)] == ["trips", "stops", "trips"]


@pytest.mark.parametrize(
    "text",
    [
        "WITH t AS (SELECT car, start_ts, end_ts FROM trips WHERE top > 3) "
        "SELECT a.car FROM t a JOIN t b ON a.car = b.car AND a MEETS b",
        "WITH s AS (SELECT * FROM trips), t AS (SELECT * FROM s WHERE top > 3) "
        "SELECT a.car FROM t a JOIN t b ON a.car = b.car AND a MEETS b",
        "SELECT a.car FROM (SELECT * FROM trips WHERE top > 3) a "
        "JOIN (SELECT * FROM (SELECT * FROM trips) WHERE top > 3) b ON a.car = b.car AND a MEETS b",
    ],
)
def test_sides_are_also_ctes_and_queries_in_brackets(text: str) -> None:
    assert explain(joined(text)).count("Filter top > 3.0") == 2


def test_situations_are_sides() -> None:
    text = (
        "SELECT a.car, b.end_ts FROM cars SITUATIONS (PARTITION BY car DEFINE fast AS v > 70) a "
        "JOIN cars SITUATIONS (PARTITION BY car DEFINE slow AS v < 7) b ON a.car = b.car "
        "AND a BEFORE b"
    )
    explained = explain(plan_sql(text, {"cars": Schema.of({"car": "string", "v": "float64"})}))
    assert "PeriodJoin a before b, a_car = b_car: a_car, b_end_ts" in explained
    assert explained.count("Situations by car") == 2


def test_overlaps_between_pairs_of_times_stays_sql() -> None:
    plan = planned(
        "SELECT a.car FROM trips a JOIN stops b "
        "ON (a.start_ts, a.end_ts) OVERLAPS (b.start_ts, b.end_ts)"
    )
    assert len(plan.inputs) == 2
    assert "OVERLAPS (b.Start_TS, b.end_ts)" in plan.duckdb_sql


def test_names_like_relations_are_names() -> None:
    plan = plan_sql("SELECT car after FROM trips before WHERE before.top > 1", CATALOG)
    assert list(plan.row) == ["after"]
    join = joined("SELECT before.car FROM trips before JOIN stops after ON before CONTAINS after")
    assert (join.first.name, join.second.name) == ("before", "after")


MISTAKES: list[tuple[type[EventideError], str, str]] = [
    (
        ParseError,
        "a OVERLAP b",
        """\
no relation 'OVERLAP' between periods
  SELECT a.car FROM trips a JOIN stops b ON a OVERLAP b
                                              ^^^^^^^
hint: did you mean OVERLAPS?""",
    ),
    (
        ParseError,
        "a INTERSECTS b",
        """\
no relation 'INTERSECTS' between periods
  SELECT a.car FROM trips a JOIN stops b ON a INTERSECTS b
                                              ^^^^^^^^^^
hint: write a OVERLAPS b""",
    ),
    (
        ParseError,
        "a PRECEDED BY b",
        """\
no relation 'PRECEDED BY' between periods
  SELECT a.car FROM trips a JOIN stops b ON a PRECEDED BY b
                                              ^^^^^^^^^^^
hint: write a AFTER b""",
    ),
    (
        ParseError,
        "a.car = b.car WHERE a.car > 'a' AND a MEETS b",
        """\
a MEETS b stands in WHERE
  SELECT a.car FROM trips a JOIN stops b ON a.car = b.car WHERE a.car > 'a' AND a MEETS b
                                                                                ^^^^^^^^^
hint: relations of periods stand in ON: FROM … JOIN … ON a MEETS b""",
    ),
    (
        BindError,
        "a OVERLAPS c",
        """\
no stream 'c' in this FROM
  SELECT a.car FROM trips a JOIN stops b ON a OVERLAPS c
                                                       ^
hint: there are a, b""",
    ),
    (
        UnsupportedError,
        "a OVERLAPS a",
        """\
a period related to itself
  SELECT a.car FROM trips a JOIN stops b ON a OVERLAPS a
                                            ^^^^^^^^^^^^
hint: give the two sides different aliases""",
    ),
    (
        UnsupportedError,
        "NOT a OVERLAPS b",
        """\
a relation of periods is a condition of its own
  SELECT a.car FROM trips a JOIN stops b ON NOT a OVERLAPS b
                                                ^^^^^^^^^^^^
hint: write JOIN … ON a.car = b.car AND a OVERLAPS b, or (a MEETS b OR a OVERLAPS b)""",
    ),
    (
        UnsupportedError,
        "a MEETS b AND a OVERLAPS b",
        """\
a join by the relation of periods has one condition on it
  SELECT a.car FROM trips a JOIN stops b ON a MEETS b AND a OVERLAPS b
                                                          ^^^^^^^^^^^^
hint: put OR between the relations that may hold, and brackets around""",
    ),
    (
        UnsupportedError,
        "a MEETS b JOIN trips c ON a MEETS b",
        """\
this relation is not about c and a side before it
  SELECT a.car FROM trips a JOIN stops b ON a MEETS b JOIN trips c ON a MEETS b
                                                                      ^^^^^^^^^
hint: relate c to a side that stands before it in FROM""",
    ),
    (
        UnsupportedError,
        "a.car = b.car JOIN trips c ON c MEETS b",
        """\
joins by the relation of periods come first
  SELECT a.car FROM trips a JOIN stops b ON a.car = b.car JOIN trips c ON c MEETS b
                                                                          ^^^^^^^^^
hint: put them before other joins, without brackets around them""",
    ),
]


@pytest.mark.parametrize(("kind", "condition", "paragraph"), MISTAKES)
def test_mistakes_in_on(kind: type[EventideError], condition: str, paragraph: str) -> None:
    with pytest.raises(kind) as caught:
        on(condition)
    assert str(caught.value) == paragraph


@pytest.mark.parametrize(
    ("kind", "text", "message", "hint"),
    [
        (
            UnsupportedError,
            "SELECT a.car FROM trips a RIGHT JOIN stops b ON a MEETS b",
            "RIGHT JOIN beside a relation",
            "turn the sides around",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM trips a LEFT JOIN stops b ON a MEETS b AND b.n > 3",
            "this condition in the ON of a LEFT JOIN",
            "filter before the join",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM trips a LEFT JOIN stops b ON a MEETS b AND a.top = b.n",
            "this condition in the ON of a LEFT JOIN",
            "columns of one type",
        ),
        (
            ParseError,
            "FROM trips a, stops b WHERE a OVERLAPS b",
            "a OVERLAPS b stands in WHERE",
            "JOIN … ON a OVERLAPS b",
        ),
        (
            BindError,
            "SELECT a.car FROM trips a JOIN notes b ON a MEETS b",
            "b has no column 'end_ts'",
            "rename yours",
        ),
        (
            BindError,
            "SELECT a.car FROM trips a "
            "JOIN (SELECT start_ts, ts AS end_ts FROM notes) b ON a MEETS b",
            "start_ts of b is int64, not a timestamp",
            "rename yours",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM trips a JOIN (SELECT car, max(start_ts) AS start_ts, "
            "max(end_ts) AS end_ts FROM trips GROUP BY car) b ON a MEETS b",
            "the rows of streams, or of a plain SELECT",
            "leave joins, GROUP BY",
        ),
        (
            UnsupportedError,
            "WITH RECURSIVE t AS (SELECT * FROM trips) "
            "SELECT a.car FROM trips a JOIN t ON a MEETS t",
            "the columns of t are not known",
            "a SELECT from one stream in brackets",
        ),
        (
            UnsupportedError,
            "SELECT * EXCLUDE (car) FROM trips a JOIN stops b ON a MEETS b",
            "this star",
            "name the columns",
        ),
    ],
)
def test_what_is_refused(kind: type[EventideError], text: str, message: str, hint: str) -> None:
    with pytest.raises(kind) as caught:
        plan_sql(text, CATALOG)
    assert message in caught.value.message
    assert hint in str(caught.value.hint)
    assert caught.value.span is not None
