"""Every mistake in a TPSTREAM gets a paragraph: tests/golden/tpstream_errors.txt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pytest

import eventide as ev
from eventide.errors import BindError, EventideError, ParseError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.statement import read_tpstream
from tests.golden.plans import CATALOG, TPSTREAM_ERRORS, planned, read

MISTAKES = list(read(TPSTREAM_ERRORS))
STATEMENT = (
    "FROM cars AS c PARTITION BY car, lower(car) AS k DEFINE a AS speed > 1 AND lane BETWEEN 1 AND "
    "2 BETWEEN 4 s AND 1 min 30 s, b AS c.lane > 1 AT LEAST INTERVAL '5' MINUTE GAP '30 s' DIALECT "
    "PAPER PATTERN (a meets b; b overlapped by a) AND a before b OR a meets b WITHIN 5 MINUTES "
    "DETECT EARLY CONFIRM LIMIT 5 PER KEY RETURN max(a.speed) + 1 AS x, END(b), count(a.*)"
)
SITUATIONS = (
    "SELECT * FROM cars SITUATIONS (PARTITION BY car DEFINE a AS speed > 1 BETWEEN 4 s AND 5 s "
    "GAP 5 s RETURN max(speed) - 1 AS x, count(*)) AS s WHERE x > 1"
)


@pytest.mark.parametrize(("query", "paragraph"), MISTAKES, ids=lambda text: text.split("\n")[0])
def test_a_mistake_is_explained(query: str, paragraph: str) -> None:
    assert planned(query) == paragraph, "if the words are right: python -m tests.golden.plans"


@pytest.mark.parametrize(("query", "paragraph"), MISTAKES, ids=lambda text: text.split("\n")[0])
def test_a_paragraph_says_what_where_and_what_would_work(query: str, paragraph: str) -> None:
    kind, *_, carets, hint = paragraph.split("\n")
    assert kind.split(":")[0] in ("ParseError", "BindError", "UnsupportedError"), query
    assert carets.strip() == "^" * len(carets.strip())
    assert hint.startswith("hint: ")


def broken(text: str) -> Iterator[str]:
    """Yield a text cut off, with a word missing, with a word twice and with two in turn."""
    places = [(token.start, token.end + 1) for token in Eventide().tokenize(text)]
    for start, end in places:
        yield text[:start]
        yield text[:start] + text[end:]
        yield text[:end] + " " + text[start:]
    for (start, middle), (then, end) in pairwise(places):
        yield f"{text[:start]}{text[then:end]} {text[start:middle]}{text[end:]}"


@pytest.mark.parametrize("text", [STATEMENT, SITUATIONS], ids=["statement", "situations"])
def test_a_broken_text_is_read_or_explained(text: str) -> None:
    plan_sql(text, CATALOG)
    for each in broken(text):
        with suppress(EventideError):
            plan_sql(each, CATALOG)


@pytest.mark.parametrize(
    "part",
    [
        "PARTITION BY car",
        "DEFINE a AS speed > 1",
        "GAP 5 s",
        "DIALECT PAPER",
        "PATTERN a",
        "WITHIN 5 m",
        "DETECT FINAL",
        "CONFIRM",
        "LIMIT 5 PER KEY",
        "RETURN count(a)",
    ],
)
def test_a_part_stands_once(part: str) -> None:
    text = f"SELECT * FROM cars TPSTREAM ({part} {part})"
    with pytest.raises(ParseError, match="is given twice") as caught:
        plan_sql(text, CATALOG)
    assert caught.value.span is not None
    assert caught.value.span.start == text.rindex(part)


@pytest.mark.parametrize("part", ["DEFINE", "PATTERN", "WITHIN", "RETURN"])
def test_a_part_is_needed(part: str) -> None:
    parts = {
        "DEFINE": "DEFINE a AS speed > 1",
        "PATTERN": "PATTERN a",
        "WITHIN": "WITHIN 5 m",
        "RETURN": "RETURN count(a)",
    }
    rest = " ".join(text for name, text in parts.items() if name != part)
    for text in (f"FROM cars PARTITION BY car {rest}", f"SELECT * FROM cars TPSTREAM ({rest})"):
        with pytest.raises(ParseError, match=f"TPSTREAM has no {part}"):
            plan_sql(text, CATALOG)


def test_situations_are_not_without_number() -> None:
    names = [f"s{place}" for place in range(33)]
    define = ", ".join(f"{name} AS lane = {place}" for place, name in enumerate(names))
    pattern = " before ".join(names)
    with pytest.raises(BindError, match="at most 32 situations, here are 33"):
        plan_sql(
            f"FROM cars DEFINE {define} PATTERN {pattern} WITHIN 5 m RETURN count(s0)", CATALOG
        )


def test_a_pattern_too_deep_to_read_is_refused() -> None:
    pattern = "(" * 5000 + "a" + ")" * 5000
    with pytest.raises(ParseError, match="nested too deeply"):
        plan_sql(
            f"FROM cars DEFINE a AS lane = 1 PATTERN {pattern} WITHIN 5 m RETURN count(a)", CATALOG
        )


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM cars", "FROM cars", "FROM cars define LIMIT 5", "", "FROM cars c WHERE 1 = 1"],
)
def test_tpstream_takes_its_statement_only(text: str) -> None:
    with pytest.raises(ParseError, match="not a TPStream statement") as caught:
        ev.tpstream(text)
    assert caught.value.hint is not None
    assert "sql takes SQL" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "FROM cars SITUATIONS (DEFINE a AS lane > 1)",
        "SELECT * FROM cars TPSTREAM (DEFINE a AS lane > 1)",
    ],
)
def test_clauses_of_sql_are_for_sql(text: str) -> None:
    with pytest.raises(ParseError, match="not a TPStream statement") as caught:
        ev.tpstream(text)
    assert "is SQL: use sql" in str(caught.value.hint)


@pytest.mark.parametrize("behind", ["WHERE lane > 1", "PARTITION car", ", trucks"])
def test_nearly_a_statement_is_told_what_is_wrong(behind: str) -> None:
    text = f"FROM cars {behind} DEFINE a AS lane > 1 PATTERN a WITHIN 5 s RETURN START(a)"
    with pytest.raises(ParseError) as of_sql:
        plan_sql(text, CATALOG)
    with pytest.raises(ParseError) as caught:
        read_tpstream(text)
    assert str(caught.value) == str(of_sql.value)
    assert "not a TPStream statement" not in str(caught.value)


@pytest.mark.parametrize("text", ["SELECT 1; VACUUM x", "SELECT 1; RESET x", "SELECT 1; SELECT 2"])
def test_statements_run_one_at_a_time(text: str) -> None:
    with pytest.raises(ParseError, match="more than one statement"):
        plan_sql(text, CATALOG)


@pytest.mark.parametrize("before", ["", "EXPLAIN ", "explain analyze ", "-- a comment\n"])
def test_a_statement_is_known_by_its_words(before: str) -> None:
    read_tpstream(before + STATEMENT)
    read_tpstream(f"{before}FROM (SELECT * FROM cars) PARTITION BY car DEFINE a AS x > 1")


def test_a_text_without_end_is_explained() -> None:
    with pytest.raises(ParseError, match="a string is not closed"):
        read_tpstream("FROM cars DEFINE a AS car = 'x")


@pytest.mark.parametrize("text", [None, b"FROM cars", 3, ["FROM cars"]])
def test_a_statement_is_a_text(text: object) -> None:
    with pytest.raises(ParseError, match="is a text, not") as error:
        read_tpstream(text)
    assert error.value.hint is not None


@pytest.mark.parametrize("text", [f"{STATEMENT} \0", STATEMENT.replace("AS c", "AS c\0"), "\0"])
def test_a_nul_is_named(text: str) -> None:
    for read_text in (read_tpstream, lambda text: plan_sql(text, CATALOG)):
        with pytest.raises(ParseError, match="NUL") as error:
            read_text(text)
        assert error.value.span is not None


MANY = "9" * 5_000


@pytest.mark.parametrize(
    "part",
    [
        *(f"WITHIN {MANY} s", f"WITHIN 1.{MANY} s", f"WITHIN '{MANY} s'"),
        *(f"WITHIN INTERVAL '{MANY}' SECOND", f"WITHIN INTERVAL '{MANY}:00'"),
        *(f"WITHIN 1 h LIMIT {MANY} PER KEY", f"WITHIN 1 h GAP {MANY} s"),
    ],
    ids=lambda part: part.replace(MANY, "9…"),
)
def test_a_number_without_end_is_explained(part: str) -> None:
    text = f"FROM cars DEFINE a AS speed > 1 PATTERN a {part} RETURN count(a.*) AS n"
    with pytest.raises(EventideError, match=r"digits|10,000 years") as error:
        plan_sql(text, CATALOG)
    assert error.value.hint is not None


def test_sides_of_a_join_have_names_of_their_own() -> None:
    side = "cars SITUATIONS (PARTITION BY car DEFINE x AS speed > 1)"
    text = f"SELECT a.start_ts FROM {side} a JOIN {side} a ON a.car = a.car AND a OVERLAPS a"
    with pytest.raises(BindError, match="two sides of a join are called 'a'"):
        plan_sql(text, CATALOG)
