from __future__ import annotations

import pytest

from eventide.lang.cel.recognise import cel_in_sql, is_cel
from eventide.lang.sql.named.head import CreateRequest, named_request
from eventide.lang.sql.statement import read_cel, read_statement

CEL = [
    "FILTER{speed > 3} cars",
    "filter /* of cars */ {speed > 3}(cars)",
    "SELECT * FROM cars NEXT{} cars",
    "cars\nFOLD\n{,,} cars",
    "SELECT car FROM cars PUBLISH slim",
    "SELECT car FROM (SELECT car FROM cars PUBLISH slim)",
    'SELECT car FROM (cars) publish "slim";',
    "AT INSTANT{COUNT(*) AS n} cars",
    "FILTER{-speed > 3} cars",
]
SQL = [
    "SELECT * FROM cars",
    "SELECT filter, next, fold, publish FROM cars",
    "SELECT speed AS publish FROM cars ORDER BY publish DESC",
    "SELECT a, publish FROM cars ORDER BY a, publish DESC",
    "SELECT CASE WHEN a THEN publish END FROM cars",
    "SELECT COUNT(*) publish FROM cars",
    "SELECT * FROM (SELECT * FROM cars) publish",
    "SELECT * FROM cars -- FILTER{speed > 3}",
    "SELECT 'NEXT{}' AS a, \"FOLD{}\" AS b, { 'a': 1 } AS c FROM cars",
    "SELECT * FROM cars MATCH_RECOGNIZE (PATTERN (A next{2} {- B -}) DEFINE A AS speed > 1)",
    "SELECT * FROM cars MATCH_RECOGNIZE (PATTERN (filter{,3}) DEFINE filter AS speed > 1)",
]


@pytest.mark.parametrize("text", CEL)
def test_it_is_cel(text: str) -> None:
    assert is_cel(text)
    assert read_statement(text).kind == "cel"
    explained = read_statement(f"EXPLAIN ANALYZE {text}")
    assert (explained.kind, explained.explain) == ("cel", "analyze")


@pytest.mark.parametrize("text", SQL)
def test_it_is_sql(text: str) -> None:
    assert not is_cel(text)
    assert read_statement(text).kind == "query"


def test_a_plain_select_is_cel_where_that_is_asked_for() -> None:
    assert read_cel("SELECT * FROM cars").kind == "cel"


def test_cel_in_sql_is_blank_to_sql() -> None:
    text = "SELECT * FROM CEL (FILTER{a > ')'} s) AS x JOIN cel(s NEXT{} t) ON TRUE, CEL (SELECT *"
    text += " FROM s) y WHERE cel(1) > 2"
    assert [part.of(text) for part in cel_in_sql(text)] == [
        "FILTER{a > ')'} s",
        "s NEXT{} t",
        "SELECT * FROM s",
    ]
    assert read_statement(text).kind == "query"


def test_a_definition_may_be_cel() -> None:
    text = "CREATE OR REPLACE STREAM fast AS FILTER{speed > 3} cars;"
    statement = read_statement(text)
    request = named_request(statement)
    assert statement.kind == "create"
    assert isinstance(request, CreateRequest)
    assert (request.name, request.query) == ("fast", "FILTER{speed > 3} cars")
