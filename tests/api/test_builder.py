"""Row patterns built in Python mean exactly what their text means."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventide as ev
from eventide.errors import EventideError, ParseError, PlanError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.plan.expressions import ALWAYS
from eventide.plan.nodes import match_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Concat, Variable
from eventide.plan.tree import Plan
from eventide.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = {
    "cars": Schema.of({"car": "string", "lane": "int64", "speed": "float64"}),
    "fast cars": Schema.of({"max speed": "float64", "running": "int64", "order": "string"}),
    "select": Schema.of({"x": "int64"}),
}
A, B, C = ev.variables("A B C")
CARS = ev.match("cars").measures(n="COUNT(*)")


def plan(query: ev.Match | str) -> Plan:
    return plan_sql(str(query), CATALOG)


def text(clauses: str, measures: str = "MEASURES COUNT(*) AS n") -> str:
    return f"SELECT * FROM cars MATCH_RECOGNIZE ({measures} {clauses})"


STEPS: list[tuple[ev.Step, str]] = [
    (A, "A"),
    (A + B + C, "A B C"),
    (A + (B + C), "A B C"),
    (A | B | C, "A | B | C"),
    (A | (B | C), "A | B | C"),
    (A | B + C, "A | B C"),
    ((A | B) + C, "(A | B) C"),
    (A.some(), "A+"),
    (A.some(greedy=False), "A+?"),
    (A.any(), "A*"),
    (A.any(greedy=False), "A*?"),
    (A.maybe(), "A?"),
    (A.maybe(greedy=False), "A??"),
    (A.times(3), "A{3}"),
    (A.times(3, greedy=False), "A{3}?"),
    (A.times(2, 5), "A{2,5}"),
    (A.times(2, 5, greedy=False), "A{2,5}?"),
    (A.at_least(2), "A{2,}"),
    (A.at_least(2, greedy=False), "A{2,}?"),
    (A.at_most(5), "A{,5}"),
    (A.at_most(5, greedy=False), "A{,5}?"),
    ((A + B).some() + C, "(A B)+ C"),
    (A.some().times(2), "(A+){2}"),
    (ev.permute(A, B + C), "PERMUTE(A, B C)"),
    (A + ev.exclude(B.some()) + C, "A {- B+ -} C"),
    (ev.partition_start + A + ev.partition_end, "^ A $"),
    (ev.no_row, "()"),
    (ev.no_row | A, "() | A"),
    (A + ev.no_row, "A ()"),
    (ev.variable("two words") + A, '"two words" A'),
    (ev.variable("not").some(), '"not"+'),
    (ev.variable("a") + A, '"a" "A"'),
]


@pytest.mark.parametrize(("step", "pattern"), STEPS, ids=[pattern for _, pattern in STEPS])
def test_a_step_is_a_pattern(step: ev.Step, pattern: str) -> None:
    assert plan(CARS.pattern(step)) == plan(text(f"PATTERN ({pattern})"))


AB = CARS.pattern(A + B)
QUERIES: list[tuple[ev.Match, str]] = [
    (AB.partition_by("car"), text("PARTITION BY car PATTERN (A B)")),
    (
        AB.partition_by("car", odd="lane % 2").partition_by("lane"),
        text("PARTITION BY car, lane % 2 AS odd, lane PATTERN (A B)"),
    ),
    (AB.order_by("ts"), text("ORDER BY ts PATTERN (A B)")),
    (
        AB.order_by("speed DESC NULLS LAST", "lane").order_by("ts"),
        text("ORDER BY speed DESC NULLS LAST, lane, ts PATTERN (A B)"),
    ),
    (
        AB.measures(top="MAX(B.speed)").measures(mean="AVG(speed)"),
        text(
            "PATTERN (A B)",
            "MEASURES COUNT(*) AS n, MAX(B.speed) AS top, AVG(speed) AS mean",
        ),
    ),
    (
        AB.define(A="speed > 3").define(B="B.speed > A.speed"),
        text("PATTERN (A B) DEFINE A AS speed > 3, B AS B.speed > A.speed"),
    ),
    (
        AB.all_rows().measures(running="FINAL SUM(lane)", so_far="RUNNING SUM(lane)"),
        text(
            "ALL ROWS PER MATCH PATTERN (A B)",
            "MEASURES COUNT(*) AS n, FINAL SUM(lane) AS running, RUNNING SUM(lane) AS so_far",
        ),
    ),
    (
        AB.subset(U=[A, B], V=("B",)).define(B="B.speed > FIRST(U.speed)"),
        text("PATTERN (A B) SUBSET U = (A, B), V = (B) DEFINE B AS B.speed > FIRST(U.speed)"),
    ),
    (AB.within("5 minutes"), text("PATTERN (A B) WITHIN INTERVAL '5' MINUTE")),
    (AB.within("1 min 30 s"), text("PATTERN (A B) WITHIN INTERVAL '90' SECOND")),
    (
        AB.within(dt.timedelta(days=1, microseconds=1)),
        text("PATTERN (A B) WITHIN INTERVAL '86400000001' MICROSECOND"),
    ),
    (AB.one_row(), text("ONE ROW PER MATCH PATTERN (A B)")),
    (AB.all_rows().one_row(), text("ONE ROW PER MATCH PATTERN (A B)")),
    (AB.all_rows(), text("ALL ROWS PER MATCH SHOW EMPTY MATCHES PATTERN (A B)")),
    (
        AB.all_rows(empty_matches=False),
        text("ALL ROWS PER MATCH OMIT EMPTY MATCHES PATTERN (A B)"),
    ),
    (AB.all_rows(unmatched=True), text("ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B)")),
    (
        AB.within("5 s").timeout_rows(),
        text("TIMEOUT ROWS PATTERN (A B) WITHIN INTERVAL '5' SECOND"),
    ),
    (AB.skip_past_last_row(), text("AFTER MATCH SKIP PAST LAST ROW PATTERN (A B)")),
    (AB.skip_to_next_row(), text("AFTER MATCH SKIP TO NEXT ROW PATTERN (A B)")),
    (AB.skip_to_first(B), text("AFTER MATCH SKIP TO FIRST B PATTERN (A B)")),
    (AB.skip_to_last("B"), text("AFTER MATCH SKIP TO LAST B PATTERN (A B)")),
    (AB.skip_to_last(B).skip_to_next_row(), text("AFTER MATCH SKIP TO NEXT ROW PATTERN (A B)")),
    (AB.strategy("contiguous"), text("STRATEGY contiguous PATTERN (A B)")),
    (AB.strategy("skip_till_any"), text("STRATEGY skip_till_any PATTERN (A B)")),
    (
        CARS.pattern(A + ev.absent(B) + C).strategy("skip_till_next").define(B="speed > 3"),
        text("STRATEGY skip_till_next PATTERN (A NOT B C) DEFINE B AS speed > 3"),
    ),
    (AB.pattern(B), text("PATTERN (B)")),
    (
        AB.partition_by("car").select("car", twice="2 * n").where("n > 1", "car = 'a' OR n > 3"),
        "SELECT car, 2 * n AS twice FROM cars MATCH_RECOGNIZE (PARTITION BY car "
        "MEASURES COUNT(*) AS n PATTERN (A B)) WHERE n > 1 AND (car = 'a' OR n > 3)",
    ),
    (
        ev.match(" select ts, speed from cars where lane = 1 -- the left one")
        .pattern(A)
        .all_rows(),
        "SELECT * FROM (SELECT ts, speed FROM cars WHERE lane = 1) "
        "MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (A))",
    ),
    (
        ev.match("fast cars")
        .partition_by("max speed", "order", "running")
        .measures(**{"select": "COUNT(*)", 'the "n"': "COUNT(very.*)", "final": "LAST(running)"})
        .pattern(ev.variable("very").some())
        .define(very='"max speed" > 3'),
        'SELECT * FROM "fast cars" MATCH_RECOGNIZE ('
        'PARTITION BY "max speed", "order", "running" '
        'MEASURES COUNT(*) AS "select", COUNT(very.*) AS "the ""n""", LAST("running") AS "final" '
        'PATTERN (very+) DEFINE very AS "max speed" > 3)',
    ),
    (
        ev.match("select").measures(n="COUNT(*)").pattern(A),
        'SELECT * FROM "select" MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A))',
    ),
    (
        CARS.pattern(A + ev.variable("b b")).define(**{"b b": "lane = 1"}).skip_to_last("b b"),
        text('AFTER MATCH SKIP TO LAST "b b" PATTERN (A "b b") DEFINE "b b" AS lane = 1'),
    ),
    (
        CARS.pattern(A + ev.variable("a")).define(A="lane = 1", a="a.speed > A.speed"),
        text('PATTERN ("A" "a") DEFINE "A" AS lane = 1, "a" AS "a".speed > "A".speed'),
    ),
]


@pytest.mark.parametrize(("query", "same"), QUERIES, ids=[same[-60:] for _, same in QUERIES])
def test_a_query_is_its_text(query: ev.Match, same: str) -> None:
    assert plan(query) == plan(same)


def test_a_query_is_a_value() -> None:
    before = str(AB)
    assert AB.measures(top="MAX(speed)") != AB
    assert AB.partition_by() == AB
    assert str(AB) == before
    assert len({AB, CARS.pattern(A + B)}) == 1
    assert repr(A + B.some()) == "<Step A B+>"
    assert (A + B).tree == Concat((Variable("A"), Variable("B")))


# What a type checker would refuse too.
STEP: Any = A
LOOSE: Any = AB
FROM: Any = ev.match
WRONG: list[tuple[str, Callable[[], Any], str]] = [
    ("and", lambda: A and B, r"neither true nor false[\s\S]*\+ \(then\)"),
    ("not", lambda: not B, r"absent\(B\)"),
    ("a string added", lambda: STEP + "B", r"'B' is not part of a pattern[\s\S]*variable\('B'\)"),
    ("added to a string", lambda: "A" + STEP, r"variable\('A'\)"),
    ("or with a string", lambda: STEP | "B", r"variable\('B'\)"),
    ("a string or", lambda: "A" | STEP, r"variable\('A'\)"),
    ("a forgotten call", lambda: STEP + B.some, r"call it, as in B.some\(\)"),
    ("a number", lambda: STEP + 2, r"A.times\(2\)"),
    ("no pattern", lambda: str(CARS), r"no pattern[\s\S]*\.pattern\(A \+ B.some\(\)\)"),
    (
        "a pattern text",
        lambda: LOOSE.pattern("A{3} B"),
        r"'A\{3\} B' is not part of a pattern[\s\S]*A.times\(3\) \+ B, or write the whole query",
    ),
    ("two patterns", lambda: LOOSE.pattern(A, B), r"one pattern[\s\S]*\+ \(then\)"),
    ("then", lambda: STEP >> B, r"write A \+ B$"),
    ("both", lambda: STEP & B.some(), r"write A \+ B, or in any order permute\(A, B\)"),
    ("a number of times", lambda: STEP * 3, r"write A\.times\(3\)"),
    ("times first", lambda: 2 * STEP, r"write A\.times\(2\)"),
    ("negated", lambda: ~STEP, r"absent\(A\)"),
    ("a measure", lambda: LOOSE.measures("COUNT(*)"), r'no name[\s\S]*measures\(n="COUNT\(\*\)"\)'),
    ("a condition", lambda: LOOSE.define("lane > 3"), r'variable[\s\S]*define\(B="lane > 3"\)'),
    ("0 times", lambda: A.times(0), r"0 times[\s\S]*maybe\(\)"),
    ("5 to 2 times", lambda: A.times(5, 2), "cannot repeat 5 to 2 times"),
    ("fewer than none", lambda: A.at_least(-1), "cannot repeat -1"),
    ("half a time", lambda: STEP.times(0.5), r"0.5 is not a number of times"),
    ("no names", lambda: ev.variables(" , "), "names no variable"),
    ("no name", lambda: ev.variable(""), "not the name of a variable"),
    ("no parts", ev.permute, r"permute\(A, B, C\)"),
    ("absent group", lambda: ev.absent(A + B), r"A B is not a variable[\s\S]*absent\(B\)"),
    ("skip to a group", lambda: LOOSE.skip_to_last(A.some()), r"skip_to_last\(B\)"),
    ("subset of one", lambda: LOOSE.subset(U=A), r"subset\(U=\[A, B\]\)"),
    ("subset of groups", lambda: LOOSE.subset(U=[A + B]), r"subset\(U=\[A, B\]\)"),
    ("strategy", lambda: LOOSE.strategy("any"), "contiguous, skip_till_next, skip_till_any"),
    ("misspelt", lambda: LOOSE.strategy("skip_til_any"), "did you mean 'skip_till_any'"),
    ("no time", lambda: LOOSE.within("soon"), "not a length of time"),
    ("time as a number", lambda: LOOSE.within(5), "timedelta, or text"),
    ("no time at all", lambda: LOOSE.within("0 s"), "must be positive"),
    ("rows", lambda: LOOSE.all_rows(empty_matches=False, unmatched=True), "empty_matches=False"),
    (
        "a condition in Python",
        lambda: LOOSE.define(B=True),
        "the condition of B is SQL text, not True",
    ),
    ("a stream", lambda: FROM(None), r'match\("cars"\)'),
    ("a column", lambda: LOOSE.partition_by(B), r'partition_by\("car"\)'),
]


@pytest.mark.parametrize(("make", "said"), [each[1:] for each in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_use_says_what_would_work(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        make()


NOT_ONE_THING: list[tuple[str, Callable[[], Any], str]] = [
    (")", lambda: AB.define(B="speed > 3)"), r"the condition of B has a \) that closes nothing"),
    ("(", lambda: AB.define(B="(speed > 3"), r"the condition of B has a \( that is not closed"),
    ("[)", lambda: AB.define(B="x[1)"), r"the condition of B has a \) that closes nothing"),
    (
        "out and in",
        lambda: AB.define(B="TRUE) WHERE (TRUE"),
        r"the condition of B has a \) that closes nothing\n  TRUE\) WHERE \(TRUE\n      \^",
    ),
    ("two", lambda: AB.define(B="TRUE, A AS FALSE"), "cannot read the condition of B near ','"),
    ("named", lambda: AB.measures(m="1 AS a"), "cannot read the measure m near"),
    ("a clause", lambda: AB.measures(m="COUNT(*) ALL ROWS PER MATCH"), "the measure m near"),
    ("empty", lambda: AB.define(B=" -- nothing"), "the condition of B is empty"),
    ("unfinished", lambda: AB.define(B="speed >"), "cannot read the condition of B"),
    ("a quote", lambda: AB.define(B="car = 'a"), "the condition of B: a string is not closed"),
    ("a comment", lambda: AB.define(B="speed /* fast"), "condition of B"),
    ("statements", lambda: AB.where("n > 1; DROP"), "the condition 'n > 1; DROP' ends at ;"),
    ("order", lambda: AB.order_by("ts, speed"), "cannot read the order 'ts, speed' near ','"),
    ("columns", lambda: AB.select("n, n"), "cannot read the column 'n, n' near ','"),
    ("a key", lambda: AB.partition_by(k="lane, car"), "cannot read the key k near ','"),
    ("source", lambda: ev.match("SELECT 1) x"), r"the query to match in has a \)"),
    ("sources", lambda: ev.match("SELECT FROM cars"), "the query to match in: SELECT names no"),
]


@pytest.mark.parametrize(
    ("make", "said"), [each[1:] for each in NOT_ONE_THING], ids=[w[0] for w in NOT_ONE_THING]
)
def test_a_text_stays_in_its_place(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ParseError, match=said):
        make()


def test_comments_around_a_text_are_left_out() -> None:
    query = AB.define(A="/* slow */ speed < 3 -- at first", B="speed > -- much\n 3")
    assert "at first" not in str(query)
    assert plan(query) == plan(text("PATTERN (A B) DEFINE A AS speed < 3, B AS speed > 3"))


def test_errors_of_meaning_come_from_the_text() -> None:
    with pytest.raises(EventideError, match=r"A B\)[\s\S]*DEFINE D AS[\s\S]*\^|D") as caught:
        plan(AB.define(D="speed > 3"))
    assert caught.value.text == str(AB.define(D="speed > 3"))


WORDS = [
    *("A", "B.speed", "speed", ".", ",", "(", ")", "=", ">", "1", "*", "AS", "AND", "'", '"', "--"),
    *("PARTITION BY", "ORDER BY", "MEASURES", "FINAL", "RUNNING", "LAST(", "COUNT(*)", ";", "/*"),
    *(
        "ALL ROWS PER MATCH",
        "PATTERN (A)",
        "DEFINE",
        "TIMEOUT ROWS",
        "\n",
        "WHERE",
        "UNION",
        "SELECT",
    ),
]


def only_match(found: Plan) -> MatchRecognize:
    match = match_of(found)
    assert match is not None
    return match


@given(st.lists(st.sampled_from(WORDS), max_size=8), st.booleans())
def test_no_text_reaches_beyond_its_place(words: list[str], spaced: bool) -> None:
    piece = (" " if spaced else "").join(words)
    with suppress(EventideError):
        found = only_match(plan(AB.define(B=piece, A="lane = 1")))
        assert [each.name for each in found.defines] == ["A", "B"]
        assert found.defines[0].expression != ALWAYS
        assert (found.output, found.timeout_rows, found.keys) == ("one row", False, ())
    with suppress(EventideError):
        found = only_match(plan(AB.measures(m=piece, o="MAX(lane)")))
        assert [each.name for each in found.measures] == ["n", "m", "o"]
        assert (found.output, found.timeout_rows, found.keys) == ("one row", False, ())


@given(st.text(max_size=8))
def test_no_name_reaches_beyond_its_place(name: str) -> None:
    with suppress(EventideError):
        query = ev.match("cars").pattern(A + ev.variable(name)).define(**{name: "lane = 1"})
        found = only_match(plan(query.measures(**{name: "COUNT(*)"})))
        assert {each.name for each in found.defines} == {"A", name}
        assert [each.name for each in found.measures] == [name]
    with pytest.raises(EventideError):
        plan(AB.partition_by(f"no {name}"))


ROWS = [
    {"ts": second * 1_000_000, "car": car, "lane": 1, "speed": speed}
    for second, (car, speed) in enumerate(
        [("a", 20.0), ("b", 50.0), ("a", 30.0), ("b", 40.0), ("a", 35.0), ("a", 5.0), ("b", 5.0)]
    )
]
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("car", pa.string()),
        ("lane", pa.int64()),
        ("speed", pa.float64()),
    ]
)
CLIMB = (
    ev.match("cars")
    .partition_by("car")
    .pattern(A + B.some() + C)
    .define(B="speed > PREV(speed)", C="speed < 10")
    .measures(start="FIRST(A.speed)", top="MAX(B.speed)", n="COUNT(*)")
    .within("5 minutes")
)
FOUND = [{"car": "a", "start": 20.0, "top": 35.0, "n": 4}]


def test_a_query_runs_over_tables() -> None:
    assert ev.sql(CLIMB, cars=pa.Table.from_pylist(ROWS)).rows() == FOUND
    fast = CLIMB.where("top > 40")
    assert ev.sql(fast, cars=pa.Table.from_pylist(ROWS)).rows() == []


def test_a_query_runs_in_a_database(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", {"car": "string", "lane": "int64", "speed": "float64"})
    told: list[dict[str, Any]] = []
    live = db.subscribe(CLIMB, lambda result: told.extend(result.rows()))
    cars.append(ROWS)
    live.finish()
    assert db.sql(CLIMB).rows() == FOUND == told
    assert db.explain(CLIMB) == db.explain(str(CLIMB))
    assert live.text == str(CLIMB)


@pytest.mark.spark
def test_a_query_runs_on_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.Table.from_pylist(ROWS, ARROW))
    db = ev.spark(spark)
    assert [row.asDict() for row in db.sql(CLIMB, cars=frame).collect()] == FOUND
    assert db.explain(CLIMB, cars=frame) == db.explain(str(CLIMB), cars=frame)
    with pytest.raises(UnsupportedError, match="not a stream"):
        db.stream(CLIMB, cars=frame)
