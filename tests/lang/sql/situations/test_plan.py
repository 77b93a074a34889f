"""TPSTREAM, SITUATIONS and the statement as plans: what explain does not show."""

from __future__ import annotations

import pytest

from eventide.errors import ParseError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.situations.tokens import SPOKEN
from eventide.lang.sql.statement import read_tpstream
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Literal,
    MatchAggregate,
    PeriodPart,
)
from eventide.plan.nodes import Project
from eventide.plan.situations import allen
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.situations.parts import Constraint
from eventide.plan.tree import Plan
from eventide.schema import FLOAT64, INT64, INTERVAL, STRING, TIMESTAMP, Schema
from tests.golden.plans import CATALOG

SECOND = 1_000_000
MINUTE = 60 * SECOND
DEFINE = "DEFINE a AS speed > 1, b AS lane > 1"
END = "WITHIN 5 MINUTES RETURN count(a.*) AS n"


def temporal_of(text: str) -> TemporalPattern:
    plan: Plan = plan_sql(text, CATALOG)
    while not isinstance(plan, TemporalPattern):
        (plan,) = plan.children
    return plan


def situations_of(text: str) -> Situations:
    plan: Plan = plan_sql(text, CATALOG)
    while not isinstance(plan, Situations):
        (plan,) = plan.children
    return plan


def pattern_of(pattern: str, define: str = DEFINE, more: str = "") -> tuple[Constraint, ...]:
    return temporal_of(f"FROM cars {define} {more} PATTERN {pattern} {END}").constraints


def mask_of(pattern: str, more: str = "") -> int:
    (constraint,) = pattern_of(pattern, more=more)
    assert (constraint.first, constraint.second) == (0, 1)
    return constraint.mask


@pytest.mark.parametrize("name", allen.WORDS)
def test_every_relation_has_its_mask(name: str) -> None:
    relation = allen.mask_named(name)
    assert relation is not None
    spellings = {name, name.replace(" ", "_"), name.upper(), name.replace(" ", "-")}
    assert {mask_of(f"a {each} b") for each in spellings} == {relation}
    assert mask_of(f"b {name} a") == allen.inverse(relation)


@pytest.mark.parametrize(
    ("dialect", "mask"),
    [("", allen.FINISHES), ("DIALECT Allen", allen.FINISHES), ("DIALECT PAPER", allen.FINISHED_BY)],
)
def test_finishes_means_what_the_dialect_says(dialect: str, mask: int) -> None:
    assert mask_of("a finishes b", dialect) == mask
    assert mask_of("a finished by b", dialect) == allen.inverse(mask)


@pytest.mark.parametrize(
    "pattern",
    [
        "a meets b; a overlaps b",
        "a meets b OR a overlaps b",
        "b met by a; a overlaps b",
        "(a meets b; b overlapped_by a)",
        "((a meets b) or (a overlaps b))",
        "a meets b; a overlaps b; a during b AND a meets b; a overlaps b; a equals b",
        "a meets; overlaps b",
        "a meets OR overlaps b",
        "(b met-by;overlapped by a)",
        "a precedes; overlaps b AND a meets;overlaps;contains b",
    ],
)
def test_alternatives_are_one_mask(pattern: str) -> None:
    assert mask_of(pattern) == allen.MEETS | allen.OVERLAPS


@pytest.mark.parametrize(
    "pattern",
    [
        "a before b overlaps c AND a meets c; a before c",
        "a before b AND b overlaps c AND (a meets c OR a before c)",
        "(a before b AND (b overlaps c)) AND c after a; c met by a",
        "c overlapped by b after a AND a before c; a meets c",
        "a before b overlaps c AND a precedes c",
        "c overlapped by b after a AND c after; met by a; c follows a",
    ],
)
def test_chains_and_brackets_are_constraints_of_pairs(pattern: str) -> None:
    define = f"{DEFINE}, c AS toll > 1"
    assert pattern_of(pattern, define) == (
        Constraint(0, 1, allen.BEFORE),
        Constraint(0, 2, allen.BEFORE | allen.MEETS),
        Constraint(1, 2, allen.OVERLAPS),
    )


def test_situations_may_be_called_like_relations() -> None:
    define = "DEFINE meets AS speed > 1, intersects AS lane > 1"
    text = f"FROM cars {define} PATTERN meets meets; precedes intersects WITHIN 5 s "
    (constraint,) = temporal_of(f"{text} RETURN count(meets.*) AS n").constraints
    assert constraint.mask == allen.MEETS | allen.BEFORE


def test_cross_combines_what_nothing_relates() -> None:
    assert pattern_of("a CROSS") == ()
    assert pattern_of("a AND b CROSS") == ()
    assert len(temporal_of(f"FROM cars {DEFINE} PATTERN b CROSS {END}").situations) == 2


def test_a_pattern_may_be_one_situation() -> None:
    node = temporal_of(f"FROM cars DEFINE a AS speed > 1 PATTERN a {END}")
    assert (len(node.situations), node.constraints) == (1, ())


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("5 MINUTES", 5 * MINUTE),
        ("4s", 4 * SECOND),
        ("250 ms", SECOND // 4),
        ("1.5 h", 90 * MINUTE),
        ("1 minute 30 seconds", 90 * SECOND),
        ("INTERVAL '5' MINUTE", 5 * MINUTE),
        ("INTERVAL 5 MINUTES", 5 * MINUTE),
        ("INTERVAL '1 minute 30 seconds'", 90 * SECOND),
        ("'1 min 30 s'", 90 * SECOND),
        ("'00:01:30'", 90 * SECOND),
        ("INTERVAL '00:01:30'", 90 * SECOND),
    ],
)
def test_a_length_of_time_has_many_spellings(text: str, us: int) -> None:
    define = f"DEFINE a AS speed > 1 AT LEAST {text}, b AS lane > 1 AT MOST {text}"
    node = temporal_of(
        f"FROM cars {define} GAP {text} PATTERN a meets b WITHIN {text} RETURN count(a) AS n"
    )
    a, b = node.situations
    assert [a.least_us, b.most_us, node.gap_us, node.within_us] == [us] * 4
    assert (a.most_us, b.least_us) == (None, 0)


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        ("speed > 1 BETWEEN 4 s AND 30 s", "speed > 1"),
        ("speed > 1 BETWEEN '4 s' AND INTERVAL '30' SECOND", "speed > 1"),
        ("speed BETWEEN 1 AND 2 BETWEEN 4 s AND 30 s", "speed BETWEEN 1 AND 2"),
        ("speed BETWEEN 1 AND 2 BETWEEN '4 s' AND '30 s'", "speed BETWEEN 1 AND 2"),
        (
            "lane = 1 AND speed BETWEEN 1 AND 2 AND car = 'a' BETWEEN 4 s AND 30 s",
            "lane = 1 AND speed BETWEEN 1 AND 2 AND car = 'a'",
        ),
        (
            "CASE WHEN lane BETWEEN 1 AND 2 THEN speed ELSE 3 END > 1 BETWEEN 4 s AND 30 s",
            "CASE WHEN lane BETWEEN 1 AND 2 THEN speed ELSE 3 END > 1",
        ),
        ("(speed > 1) BETWEEN 4 s AND 30 s", "speed > 1"),
        ("car IS NULL OR car LIKE 'a%' BETWEEN 4s AND 30s", "car IS NULL OR car LIKE 'a%'"),
        ("car NOT IN ('a', 'b') BETWEEN 4s AND 0.5 min", "car NOT IN ('a', 'b')"),
    ],
)
def test_a_duration_stands_behind_any_condition(condition: str, plain: str) -> None:
    def situation(text: str) -> tuple[object, int, int | None]:
        (found,) = temporal_of(f"FROM cars DEFINE a AS {text} PATTERN a {END}").situations
        return found.condition, found.least_us, found.most_us

    assert situation(condition) == (situation(plain)[0], 4 * SECOND, 30 * SECOND)
    assert situation(plain)[1:] == (0, None)
    assert situation(f"{plain} AT LEAST 4 s") == (situation(plain)[0], 4 * SECOND, None)


def test_a_between_of_text_belongs_to_the_condition() -> None:
    (found,) = temporal_of(
        f"FROM cars DEFINE a AS car BETWEEN '4 s' AND '30 s' PATTERN a {END}"
    ).situations
    assert (found.least_us, found.most_us) == (0, None)


STATEMENT = """
FROM cars c PARTITION BY c.car
DEFINE fast AS c.speed > 70 AT LEAST 4 SECONDS, left_lane AS lane > 1
GAP 30 SECONDS
PATTERN fast meets left_lane; fast overlaps left_lane
WITHIN 5 MINUTES
CONFIRM
LIMIT 3 PER KEY
RETURN max(fast.speed) AS top, DURATION(left_lane) AS held
"""


@pytest.mark.parametrize(
    "text",
    [
        STATEMENT + ";",
        STATEMENT.lower(),
        STATEMENT.replace("FROM cars c", "FROM (SELECT * FROM cars) AS c"),
        STATEMENT.replace("\n", " ; \n").replace(" ; ", "  ").strip() + " ; ;",
        STATEMENT.replace("CONFIRM\nLIMIT 3 PER KEY\n", "LIMIT 3 PER KEY DETECT early CONFIRM\n"),
        "SELECT * FROM cars c TPSTREAM ("
        + STATEMENT.partition("c PARTITION")[2].join(("PARTITION", ")")),
    ],
    ids=["ended", "lower case", "subquery", "two ends", "another order", "in SQL"],
)
def test_one_meaning_has_many_texts(text: str) -> None:
    node, wanted = temporal_of(text), temporal_of(STATEMENT)
    assert (node.keys, node.situations, node.constraints) == (
        wanted.keys,
        wanted.situations,
        wanted.constraints,
    )
    assert (node.returns, node.within_us, node.gap_us) == (
        wanted.returns,
        wanted.within_us,
        wanted.gap_us,
    )
    assert (node.confirm, node.limit, node.detection) == (True, 3, "early")


def test_the_query_of_the_paper_is_read_as_it_stands_there() -> None:
    node = temporal_of("""
        FROM cars CS PARTITION BY CS.car
        DEFINE A AS CS.lane > 8 AT LEAST 5s,
               B AS CS.speed > 70 BETWEEN 4s AND 30s,
               C AS CS.toll < -9 AT LEAST 3s
        DIALECT PAPER
        PATTERN A meets B; A overlaps B; A starts B; A during B
            AND C during B; B finishes C; B overlaps C; B meets C
            AND A before C
        WITHIN 5 MINUTES
        RETURN first(B.car) AS id, avg(B.speed) AS avg_speed, max(A.lane), max(C.toll);
    """)
    ends_in = allen.CONTAINS | allen.FINISHED_BY | allen.OVERLAPS | allen.MEETS
    assert node.constraints == (
        Constraint(0, 1, allen.MEETS | allen.OVERLAPS | allen.STARTS | allen.DURING),
        Constraint(0, 2, allen.BEFORE),
        Constraint(1, 2, ends_in),
    )
    assert [item.name for item in node.returns] == ["id", "avg_speed", "max(A.lane)", "max(C.toll)"]


def test_the_statement_is_a_select_of_everything() -> None:
    plan = plan_sql(STATEMENT, CATALOG)
    assert list(plan.row.items()) == [
        ("car", STRING),
        ("ts", TIMESTAMP),
        ("top", FLOAT64),
        ("held", INTERVAL),
        ("confirmed", plan.row["confirmed"]),
    ]


@pytest.mark.parametrize(
    ("item", "expression"),
    [
        ("max(a.speed)", MatchAggregate("max", Column("speed", FLOAT64), "a", type=FLOAT64)),
        ("COUNT(a.*)", MatchAggregate("count", None, "a", type=INT64)),
        ("COUNT(A)", MatchAggregate("count", None, "a", type=INT64)),
        ("first(b.car)", MatchAggregate("first", Column("car", STRING), "b", type=STRING)),
        ("START(a)", PeriodPart("a", "start")),
        ("End(B)", PeriodPart("b", "end")),
        ("duration(a)", PeriodPart("a", "duration")),
        ("COUNT(*)", Aggregate("count", None, INT64)),
        (
            "max(min(a.speed))",
            Aggregate(
                "max",
                MatchAggregate("min", Column("speed", FLOAT64), "a", type=FLOAT64),
                FLOAT64,
            ),
        ),
    ],
)
def test_what_is_returned(item: str, expression: object) -> None:
    text = f"FROM cars {DEFINE} PATTERN a meets b WITHIN 5 m RETURN {item} AS x"
    (found,) = temporal_of(text).returns
    assert found.expression == expression
    assert temporal_of(text).is_summary == isinstance(expression, Aggregate)


@pytest.mark.parametrize(
    "function", ["count", "sum", "avg", "stddev", "min", "max", "first", "last"]
)
def test_every_aggregate_goes_over_events(function: str) -> None:
    text = f"FROM cars {DEFINE} PATTERN a meets b WITHIN 5 m RETURN {function}(a.lane * 2) + 1"
    (found,) = temporal_of(text).returns
    assert found.name == f"{function}(a.lane * 2) + 1"


def test_names_are_quoted_where_case_matters() -> None:
    define = 'DEFINE "Hot one" AS speed > 1, "hot one" AS lane > 1'
    pattern = 'PATTERN "Hot one" before "hot one"'
    node = temporal_of(f'FROM cars {define} {pattern} WITHIN 5 m RETURN START("hot one") AS x')
    assert [each.name for each in node.situations] == ["Hot one", "hot one"]
    assert node.returns[0].expression == PeriodPart("hot one", "start")


def test_words_of_the_clause_are_names_elsewhere() -> None:
    inner = "SELECT ts, lane AS gap, car AS tpstream FROM cars"
    plan = plan_sql(f"SELECT gap, situations.tpstream FROM ({inner}) situations", CATALOG)
    assert len(plan.children) == 1
    define = "DEFINE before AS gap > 1, meets AS gap < 1 GAP 5 s"
    returns = "WITHIN 5 m RETURN count(before) AS pattern"
    node = temporal_of(f"FROM ({inner}) x {define} PATTERN before before meets {returns}")
    assert [each.name for each in node.situations] == ["before", "meets"]


def test_situations_alone_are_rows() -> None:
    node = situations_of(
        "SELECT * FROM cars SITUATIONS (PARTITION BY car DEFINE fast AS speed > 70 AT MOST 4 s, "
        "slow AS speed < 5 GAP 1 min RETURN max(speed) AS top, count(*) AS n) s"
    )
    assert list(node.row) == ["car", "situation", "start_ts", "end_ts", "top", "n"]
    assert [each.most_us for each in node.situations] == [4 * SECOND, None]
    assert node.gap_us == MINUTE


def test_what_is_computed_on_a_situation_stands_above_it() -> None:
    text = (
        "SELECT * FROM cars SITUATIONS (DEFINE a AS speed > 1 RETURN max(speed) - min(speed) AS d)"
    )
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Project)
    assert list(plan.row) == ["situation", "start_ts", "end_ts", "d"]
    assert len(situations_of(text).aggregates) == 2


def test_the_rows_go_on_in_sql() -> None:
    clause = f"TPSTREAM (PARTITION BY car {DEFINE} PATTERN a meets b {END})"
    plan = plan_sql(f"SELECT car, n * 2 AS twice FROM cars {clause} m WHERE m.n > 3", CATALOG)
    assert list(plan.row) == ["car", "twice"]
    temporal_of(f"WITH x AS (SELECT ts, car, speed, lane FROM cars) SELECT * FROM x {clause}")
    assert len(plan_sql(f"SELECT max(n) FROM cars {clause}", CATALOG).children) == 1


def test_thirty_two_situations_are_allowed() -> None:
    names = [f"s{place}" for place in range(32)]
    define = ", ".join(f"{name} AS lane = {place}" for place, name in enumerate(names))
    pattern = " before ".join(names)
    node = temporal_of(
        f"FROM cars DEFINE {define} PATTERN {pattern} WITHIN 5 m RETURN count(s0) AS n"
    )
    assert len(node.constraints) == 31


WORDS = sorted(
    {
        word.lower()
        for word in (*Eventide.Tokenizer.KEYWORDS, *Eventide.Parser.NO_PAREN_FUNCTION_PARSERS)
        if word.isidentifier() and word.upper() not in SPOKEN
    }
)
"""The words of SQL: all may be names of situations."""


@pytest.mark.parametrize(
    "form",
    [
        "FROM cars {parts}",
        "SELECT * FROM cars TPSTREAM ({parts})",
        "WITH c AS (SELECT * FROM cars) FROM c AS x {parts}",
    ],
)
def test_any_word_may_be_a_situation(form: str) -> None:
    for word in (*WORDS, "load", "some", "time", "gaps", "position", "count", "max"):
        parts = (
            f"DEFINE {word} AS speed > 1 AT LEAST 4 s, b AS lane > 1 "
            f"PATTERN b meets {word}; {word.upper()} meets b WITHIN 5 MINUTES "
            f"RETURN START({word}) AS s, END({word.upper()}) AS e, max({word}.speed) AS x, "
            f"count({word}.*) AS n, 1 + count(b.*) FILTER (WHERE b.speed > 3) AS m"
        )
        text = form.format(parts=parts)
        if form.startswith(("FROM", "WITH")):
            read_tpstream(text)
        node = temporal_of(text)
        assert [each.name for each in node.situations] == [word, "b"]
        assert node.situations[0].least_us == 4 * SECOND
        assert node.constraints == (Constraint(0, 1, allen.MEETS | allen.MET_BY),)
        shown = [item.expression for item in node.returns]
        assert isinstance(shown[0], PeriodPart)
        assert isinstance(shown[2], MatchAggregate)
        assert shown[0].variable == shown[2].variable == word


@pytest.mark.parametrize("word", ["all", "load", "case", "end"])
def test_parts_stand_in_any_order_whatever_situations_are_called(word: str) -> None:
    text = f"FROM cars PATTERN {word} DEFINE {word} AS speed > 1 {END.replace('a.', word + '.')}"
    read_tpstream(text)
    assert temporal_of(text) is not None
    situations = f"SELECT * FROM cars SITUATIONS (DEFINE {word} AS speed > 1 AT MOST 5 s)"
    assert situations_of(situations).situations[0].most_us == 5 * SECOND


def test_words_of_parts_may_still_be_aliases() -> None:
    for alias in ("gap", "AS define", "within"):
        text = f"FROM cars {alias} PARTITION BY car DEFINE a AS speed > 1 PATTERN a {END}"
        assert temporal_of(text) is not None
    for text in ("FROM cars define WHERE lane > 1", "FROM cars gap LIMIT 5", "FROM cars within"):
        assert plan_sql(text, CATALOG) is not None


def test_a_statement_reads_what_with_describes() -> None:
    parts = f"PARTITION BY car {DEFINE} PATTERN a meets b; a overlaps b {END}"
    common = "WITH c AS (SELECT * FROM cars WHERE lane > 0)"
    text = f"{common} FROM c {parts};"
    read_tpstream(text)
    assert plan_sql(text, CATALOG) == plan_sql(
        f"{common} SELECT * FROM c TPSTREAM ({parts})", CATALOG
    )


def test_a_text_is_a_constant_wherever_it_stands() -> None:
    keys = situations_of(
        "SELECT * FROM cars SITUATIONS (PARTITION BY car, 'speed' AS z, 'limit' AS y "
        "DEFINE a AS speed > 1)"
    ).keys
    assert [key.expression for key in keys[1:]] == [
        Literal("speed", STRING),
        Literal("limit", STRING),
    ]
    items = temporal_of(
        f"FROM cars {DEFINE} PATTERN a meets b WITHIN 1 h "
        "RETURN START(a) AS s, 'a' AS x, upper('a') AS y, 'b' || 'within' AS z"
    ).returns
    assert items[1].expression == Literal("a", STRING)
    assert isinstance(items[2].expression, Call)
    assert items[2].expression.arguments == (Literal("a", STRING),)


def test_a_text_begins_no_part() -> None:
    with pytest.raises(ParseError, match="near 'WITHIN'"):
        plan_sql(f"FROM cars {DEFINE} PATTERN a meets b 'WITHIN' 5 s RETURN START(a) AS s", CATALOG)


def test_a_column_may_be_called_end() -> None:
    catalog = {"x": Schema.of({"end": "int64"})}
    text = "FROM x DEFINE a AS {} AT LEAST 1 s PATTERN a WITHIN 1 h RETURN END(a) AS e"
    for condition in ("end > 0", "(end > 0)", "CASE WHEN end > 0 THEN true END"):
        plan: Plan = plan_sql(text.format(condition), catalog)
        while not isinstance(plan, TemporalPattern):
            (plan,) = plan.children
        assert plan.situations[0].least_us == SECOND
