"""What a text is."""

from __future__ import annotations

import pytest

from eventide.errors import EventideError, ParseError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_statement
from eventide.schema import Schema

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
