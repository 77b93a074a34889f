"""FROM x a JOIN y b ON a OVERLAPS b: what is read of it, what the rest becomes, what is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest

from eventide.errors import BindError, EventideError, ParseError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.plan.nodes import Filter, Relational, scans_of
from eventide.plan.situations.allen import (
    ANY,
    BEFORE,
    CONTAINS,
    MEETS,
    MET_BY,
    OVERLAPPED_BY,
    OVERLAPS,
    WORDS,
    inverse,
    mask_named,
)
from eventide.plan.situations.nodes import PeriodJoin
from eventide.schema import Schema
from tests.lang.sql.situations.test_errors import broken

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


@pytest.mark.parametrize("name", WORDS)
def test_every_relation_is_read_in_all_spellings(name: str) -> None:
    relation = mask_named(name)
    assert relation is not None
    for gap in (" ", "_", "-", "\n  "):
        said = name.upper().replace(" ", gap)
        assert on(f"a {said.lower()} b").mask == relation
        assert on(f"a {said} b").mask == relation
        assert on(f"a.car = b.car AND b {said} a").mask == inverse(relation)


def test_relations_with_or_are_one_condition() -> None:
    assert on("a.car = b.car AND (a OVERLAPS b OR b MEETS a)").mask == OVERLAPS | MET_BY
    assert on("(a MEETS b OR (a MEETS b OR b OVERLAPS a))").mask == MEETS | OVERLAPPED_BY
    assert on("a.car = b.car AND a MEETS OR OVERLAPPED BY b").mask == MEETS | OVERLAPPED_BY
    assert on("b met-by or overlaps a AND a.top > 1").mask == MEETS | OVERLAPPED_BY


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


@pytest.mark.parametrize(
    "text",
    [
        "FROM trips a, stops b WHERE a.car = b.car AND a OVERLAPS b AND a.top > 1",
        "FROM trips a CROSS JOIN stops b WHERE a.car = b.car AND a.top > 1 AND (a OVERLAPS b)",
        "FROM trips a JOIN stops b ON a.car = b.car WHERE (a OVERLAPS b AND a.top > 1)",
        "FROM trips a JOIN stops b ON a OVERLAPS b WHERE a.car = b.car AND a.top > 1",
        "FROM trips a INNER JOIN stops b ON a OVERLAPS b AND a.car = b.car AND a.top > 1",
    ],
)
def test_a_relation_in_where_is_a_condition_of_the_join(text: str) -> None:
    join = joined(f"SELECT b.n {text}")
    assert (join.mask, join.keys, join.kind) == (OVERLAPS, (("a_car", "b_car"),), "inner")
    assert "Filter top > 1" in explain(join.left)


def test_a_relation_in_where_lets_no_row_of_nulls_pass() -> None:
    join = joined("SELECT b.n FROM trips a LEFT JOIN stops b ON a.car = b.car WHERE a OVERLAPS b")
    assert (join.mask, join.keys, join.kind) == (OVERLAPS, (("a_car", "b_car"),), "inner")


def test_sources_are_ordered_by_their_relations() -> None:
    plan = planned(
        "SELECT x.text, a.car FROM notes x JOIN trips a ON x.car = a.car "
        "JOIN notes y ON y.car = x.car JOIN stops b ON a OVERLAPS b"
    )
    _, join = plan.inputs[0]
    assert isinstance(join, PeriodJoin)
    assert (join.first.name, join.second.name) == ("a", "b")
    assert "JOIN eventide_1 AS x ON x.car = eventide_0.a_car" in plan.duckdb_sql
    assert "JOIN eventide_2 AS y ON y.car = x.car" in plan.duckdb_sql


def test_not_and_and_of_relations_are_one_mask() -> None:
    assert on("NOT a OVERLAPS b").mask == ANY & ~OVERLAPS
    assert on("a PRECEDES b AND NOT a MEETS b").mask == BEFORE
    assert on("NOT (a MEETS b OR b OVERLAPS a) AND a PRECEDES b").mask == BEFORE


def test_one_relation_of_a_side_is_looked_up_and_others_are_compared() -> None:
    plan = planned(
        "SELECT a.top FROM trips a, stops b, trips c "
        "WHERE a OVERLAPS b AND c DURING b AND NOT c FOLLOWS a"
    )
    ((_, join),) = plan.inputs
    assert isinstance(join, PeriodJoin)
    assert (join.first.name, join.second.name, join.mask) == ("b", "c", CONTAINS)
    assert "eventide_0.c_start_ts < eventide_0.a_end_ts" in plan.duckdb_sql


def test_exists_asks_for_a_partner() -> None:
    join = joined(
        "SELECT a.top FROM trips a WHERE a.top > 2 AND NOT EXISTS "
        "(SELECT * FROM stops b WHERE b DURING a AND car = a.car AND b.n > 3)"
    )
    assert (join.kind, join.mask, join.keys) == ("anti", CONTAINS, (("a_car", "b_car"),))
    assert join.columns == ("a_top",)
    assert set(join.right.row) == {"b_car", "b_Start_TS", "b_end_ts"}
    assert "Filter n > 3" in explain(join.right)
    assert "Filter top > 2.0" in explain(join.left)
    assert joined("SELECT top FROM trips a WHERE EXISTS "
                  "(SELECT 1 FROM stops WHERE a MEETS stops)").kind == "semi"  # fmt: skip


@pytest.mark.parametrize(
    "source",
    ["trips a", "(SELECT * FROM trips WHERE top > 2) a", "t a", "stops x, trips a"],
)
def test_what_an_exists_is_about_may_be_any_source(source: str) -> None:
    plan = planned(
        "WITH t AS (SELECT * FROM trips WHERE top > 2) "
        f"SELECT a.top FROM {source} WHERE EXISTS (SELECT 1 FROM stops b WHERE b DURING a)"
    )
    (join,) = [each for _, each in plan.inputs if isinstance(each, PeriodJoin)]
    assert (join.kind, join.first.name) == ("semi", "a")


BROKEN = [
    "SELECT a.car, b.n FROM trips a, stops b WHERE a.car = b.car AND NOT a OVERLAPS OR MET BY b "
    "NULLS OPEN AND a.top > 3",
    "SELECT a.top FROM trips a LEFT JOIN stops b ON a.car = b.car AND a INTERSECTS b WHERE NOT "
    "EXISTS (SELECT 1 FROM stops c WHERE c.car = a.car AND (c DURING a OR c MEETS a) AND c.n > 3)",
    "SELECT x.car FROM trips x JOIN trips a ON x.car = a.car JOIN stops b ON (a OVERLAPS b AND "
    "NOT (b EQUALS a)) WHERE x PRECEDES b",
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_text_is_read_or_explained(text: str) -> None:
    plan_sql(text, CATALOG)
    for each in broken(text):
        with suppress(EventideError):
            plan_sql(each, CATALOG)


def test_exists_stands_beside_joins() -> None:
    join = joined(
        "SELECT a.top, b.n FROM trips a LEFT JOIN stops b ON a MEETS b "
        "WHERE NOT EXISTS (SELECT 1 FROM trips b WHERE b OVERLAPS a NULLS OPEN)"
    )
    assert (join.kind, join.open_ends) == ("anti", True)
    assert isinstance(join.left, PeriodJoin)
    assert (join.left.kind, join.left.open_ends) == ("left", False)
    assert join.columns == ("a_top", "b_n")


@pytest.mark.parametrize("word", ["NULLS OPEN", "nulls open"])
def test_a_period_without_an_end_may_go_on(word: str) -> None:
    assert on(f"a OVERLAPS b {word} AND a.car = b.car").open_ends
    assert on(f"(a MEETS OR OVERLAPS b {word} OR b DURING a)").open_ends
    assert not on("a OVERLAPS b").open_ends


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
    assert join.kind == "left"
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
        "a INTERSECTING b",
        """\
no relation 'INTERSECTING' between periods
  SELECT a.car FROM trips a JOIN stops b ON a INTERSECTING b
                                              ^^^^^^^^^^^^
hint: did you mean INTERSECTS?""",
    ),
    (
        ParseError,
        "a PRECEDED BY b",
        """\
no relation 'PRECEDED BY' between periods
  SELECT a.car FROM trips a JOIN stops b ON a PRECEDED BY b
                                              ^^^^^^^^^^^
hint: write a FOLLOWS b""",
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
        "a OVERLAPS b OR a.top > 3",
        """\
a relation of periods is a condition of its own
  SELECT a.car FROM trips a JOIN stops b ON a OVERLAPS b OR a.top > 3
                                            ^^^^^^^^^^^^
hint: write JOIN … ON a.car = b.car AND a OVERLAPS b, or (a MEETS b OR a OVERLAPS b)""",
    ),
    (
        UnsupportedError,
        "a MEETS b AND a OVERLAPS b",
        """\
no two periods can be all that
  SELECT a.car FROM trips a JOIN stops b ON a MEETS b AND a OVERLAPS b
                                                          ^^^^^^^^^^^^
hint: put OR between the relations that may hold""",
    ),
    (
        UnsupportedError,
        "a MEETS b LEFT JOIN trips c ON a MEETS b",
        """\
this relation is not about c and a side before it
  SELECT a.car FROM trips a JOIN stops b ON a MEETS b LEFT JOIN trips c ON a MEETS b
                                                                           ^^^^^^^^^
hint: relate c to a side that stands before it in FROM""",
    ),
    (
        UnsupportedError,
        "a.car = b.car LEFT JOIN trips c ON c MEETS b",
        """\
joins by the relation of periods come first
  SELECT a.car FROM trips a JOIN stops b ON a.car = b.car LEFT JOIN trips c ON c MEETS b
                                                                               ^^^^^^^^^
hint: put them before other joins, without brackets around them""",
    ),
    (
        BindError,
        "a.car = b.car WHERE a MEETS c",
        """\
no stream 'c' in this FROM
  SELECT a.car FROM trips a JOIN stops b ON a.car = b.car WHERE a MEETS c
                                                                        ^
hint: there are a, b""",
    ),
    (
        UnsupportedError,
        "a.car = b.car WHERE a MEETS b OR a.top > 3",
        """\
a relation of periods is a condition of its own
  SELECT a.car FROM trips a JOIN stops b ON a.car = b.car WHERE a MEETS b OR a.top > 3
                                                                ^^^^^^^^^^^^^^^^^^^^^^
hint: write JOIN … ON a.car = b.car AND a OVERLAPS b, or (a MEETS b OR a OVERLAPS b)""",
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
            UnsupportedError,
            "SELECT * FROM trips x, trips a, stops b WHERE a OVERLAPS b",
            "* beside relations of periods that stand in another order",
            "name the columns",
        ),
        (
            BindError,
            "SELECT a.car FROM trips a WHERE a.top > 1 OR EXISTS (SELECT 1 FROM stops b "
            "WHERE b DURING a)",
            "a is of the query around, and this is no EXISTS of its WHERE",
            "AND EXISTS (SELECT … WHERE b DURING a)",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM trips a WHERE EXISTS (SELECT 1 FROM stops b "
            "WHERE b DURING a AND b.n < a.top)",
            "this condition in an EXISTS",
            "SELECT DISTINCT … FROM … a JOIN … b",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM trips a WHERE EXISTS (SELECT max(n) FROM stops b WHERE b DURING a)",
            "an EXISTS by the relation of periods reads one source",
            "in brackets in its FROM",
        ),
        (
            BindError,
            "SELECT a.car FROM trips a WHERE EXISTS (SELECT 1 FROM notes b WHERE b DURING a)",
            "b has no column 'end_ts'",
            "rename yours",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM stops x LEFT JOIN trips a ON a.car = x.car "
            "WHERE EXISTS (SELECT 1 FROM stops b WHERE b DURING a)",
            "a is joined by no relation, and related to another one",
            "put it first in FROM",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM trips a WHERE EXISTS (SELECT 1 FROM stops b "
            "WHERE b DURING a OR b.n > 3)",
            "a relation of periods is a condition of its own",
            "AND a OVERLAPS b",
        ),
        (
            UnsupportedError,
            "SELECT a.car FROM trips a WHERE a MEETS a",
            "between two sides of a join",
            "JOIN … b ON a OVERLAPS b",
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
