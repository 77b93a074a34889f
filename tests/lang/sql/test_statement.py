"""What a text is."""

from __future__ import annotations

import pytest

from eventide.errors import EventideError, ParseError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.functions.arguments import ArgumentParser
from eventide.lang.sql.statement import read_statement
from eventide.schema import Schema
from tests.golden import plans

CATALOG = {"cars": Schema.of({"car": "string", "speed": "float64"})}
TPSTREAM = "FROM cars DEFINE a AS speed > 1 PATTERN a WITHIN 5 SECONDS RETURN max(a.speed) AS top"
KINDS = {
    "SELECT 1": "query",
    "FROM cars": "query",
    "WITH c AS (SELECT 1) SELECT * FROM c": "query",
    "SELECT * FROM cars TPSTREAM (DEFINE a AS speed > 1)": "query",
    TPSTREAM: "tpstream",
    f"WITH c AS (SELECT 1) {TPSTREAM}": "tpstream",
    "CREATE OR REPLACE STORED STREAM c AS SELECT 1": "create",
    f"create view c as {TPSTREAM}": "create",
    "DROP VIEW c": "drop",
    "CREATE TABLE view (a INT)": "query",
}


@pytest.mark.parametrize("text", KINDS)
@pytest.mark.parametrize(
    ("before", "explain"),
    [("", None), ("explain ", "plan"), ("/* x */ EXPLAIN (ANALYZE)\n", "analyze")],
)
def test_a_text_is_read_once(text: str, before: str, explain: str | None) -> None:
    statement = read_statement(before + text)
    assert statement.kind == KINDS[text]
    assert statement.explain == explain
    assert statement.tokens[0].start == len(before)
    assert statement.explained.explain is None
    assert statement.explained.tokens == statement.tokens


@pytest.mark.parametrize("before", [" ", "\n\t", "/**/", "-- x\n", "/* x */ \n"])
def test_much_may_stand_before_a_query(before: str) -> None:
    """Tried in every division, these would never end."""
    for word, explain in (("SELECT 1", None), ("EXPLAIN SELECT 1", "plan")):
        statement = read_statement(before * 2_000 + word)
        assert (statement.kind, statement.explain) == ("query", explain)
        assert len(statement.tokens) == 2


def test_a_statement_is_planned_as_its_text() -> None:
    for text in (
        "SELECT car FROM cars WHERE speed > ?",
        TPSTREAM.replace("speed > 1", "speed > ?"),
    ):
        planned = plan_sql(read_statement(text), CATALOG, [3])
        assert planned == plan_sql(text, CATALOG, [3])


@pytest.mark.parametrize("behind", [TPSTREAM, "VACUUM x", "SELECT 2", "SELECT FROM FROM"])
def test_a_second_statement_is_named(behind: str) -> None:
    text = f"SELECT car FROM cars; {behind}"
    with pytest.raises(ParseError, match="more than one statement") as caught:
        plan_sql(text, CATALOG)
    assert caught.value.span is not None
    assert caught.value.span.start >= text.index(";") + 2


def test_a_mistake_before_a_second_statement_comes_first() -> None:
    with pytest.raises(ParseError, match="cannot read the query near"):
        plan_sql("SELECT car FROM WHERE; SELECT 2", CATALOG)


def test_a_backslash_is_no_statement() -> None:
    for text in ("\\ cars DEFINE a AS speed > 1", "SELECT 1; \\ FROM cars"):
        with pytest.raises(EventideError):
            plan_sql(text, CATALOG)


PLAIN = [
    "SELECT car, AVG(speed) FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)",
    "SELECT * FROM cars WHERE speed > 1 AND NOT car = 'a' OR lane IS NOT NULL",
    "SELECT a.car, b.load FROM cars a JOIN trucks AS b ON a.car = b.car WHERE a.speed > 1",
    "SELECT lane, sum(x) AS n FROM cars WHERE speed > 1 GROUP BY 1 HAVING n > 2 LIMIT 3",
]
OURS = [
    TPSTREAM,
    "FROM cars",
    "SELECT * FROM cars [ROWS 10]",
    "SELECT * FROM cars (RANGE 60 SECONDS)",
    "SELECT * FROM cars (PARTITION BY car ROWS 10) AS c",
    "SELECT * FROM cars MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS speed > 1)",
    "SELECT * FROM cars SITUATIONS (DEFINE a AS speed > 1)",
    "SELECT * FROM cars SITUATION (DEFINE a AS speed > 1)",
    "SELECT * FROM TUMBLE(cars, ts, INTERVAL '10' SECOND)",
    "SELECT * FROM trucks JOIN HOP(cars, ts, INTERVAL '1' SECOND, INTERVAL '2' SECOND) ON TRUE",
    "SELECT * FROM trucks, Session(cars, ts, INTERVAL '10' SECOND)",
    "SELECT * FROM TABLE(TUMBLE(TABLE cars, DESCRIPTOR(ts), INTERVAL '10' SECOND))",
    "SELECT * FROM a JOIN b ON a OVERLAPS b",
    'SELECT * FROM a, b WHERE a.x > 1 AND "a" met by b',
    "SELECT * FROM a, b WHERE a meets or overlaps b",
    "SELECT * FROM a, b WHERE a overlap b",
    "SELECT * FROM ISTREAM (SELECT * FROM cars)",
    "SELECT * FROM cars UNION ALL rstream (SELECT * FROM cars)",
    "WITH x AS (SELECT 1) SELECT * FROM x",
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_select_has_nothing_of_ours(text: str) -> None:
    assert read_statement(text).plain


@pytest.mark.parametrize("text", OURS)
def test_what_may_be_ours_is_not_plain(text: str) -> None:
    assert not read_statement(text).plain


def test_both_grammars_read_a_plain_select_alike() -> None:
    texts = [text for text, _ in plans.read(plans.FILE.with_name("queries.txt"))]
    found = [each for each in map(read_statement, texts + PLAIN) if each.plain]
    assert len(found) > len(texts) // 4
    for each in found:
        tokens = list(each.tokens)
        (plain,) = ArgumentParser(dialect=Eventide()).parse(list(tokens), each.text)
        (ours,) = Eventide().parser().parse(list(tokens), each.text)
        assert plain == ours, each.text
