"""Every mistake in a MATCH_RECOGNIZE gets a paragraph: tests/golden/match_errors.txt."""

from __future__ import annotations

import pytest

from eventide.errors import ParseError
from eventide.lang.sql import plan_sql
from tests.golden.plans import CATALOG, MATCH_ERRORS, planned, read

MISTAKES = list(read(MATCH_ERRORS))


@pytest.mark.parametrize(("query", "paragraph"), MISTAKES, ids=lambda text: text.split("\n")[0])
def test_a_mistake_is_explained(query: str, paragraph: str) -> None:
    assert planned(query) == paragraph, "if the words are right: python -m tests.golden.plans"


@pytest.mark.parametrize(("query", "paragraph"), MISTAKES, ids=lambda text: text.split("\n")[0])
def test_a_paragraph_says_what_where_and_what_would_work(query: str, paragraph: str) -> None:
    kind, *_, carets, hint = paragraph.split("\n")
    assert kind.split(":")[0] in ("ParseError", "BindError", "UnsupportedError"), query
    assert carets.strip() == "^" * len(carets.strip())
    assert hint.startswith("hint: ")


def test_a_pattern_too_deep_to_read_is_refused() -> None:
    pattern = "(" * 5000 + "A" + ")" * 5000
    with pytest.raises(ParseError, match="nested too deeply"):
        plan_sql(f"SELECT car FROM cars MATCH_RECOGNIZE (PATTERN ({pattern}))", CATALOG)


@pytest.mark.parametrize(
    "clause",
    [
        "PARTITION BY car",
        "ORDER BY ts",
        "MEASURES 1 AS one",
        "ONE ROW PER MATCH",
        "ALL ROWS PER MATCH",
        "TIMEOUT ROWS",
        "AFTER MATCH SKIP TO NEXT ROW",
        "STRATEGY contiguous",
        "PATTERN (A B)",
        "WITHIN 5 MINUTES",
        "SUBSET U = (A, B)",
        "DEFINE A AS speed > 1",
    ],
)
def test_a_clause_stands_once(clause: str) -> None:
    text = f"SELECT car FROM cars MATCH_RECOGNIZE ({clause} {clause})"
    with pytest.raises(ParseError, match="is given twice") as caught:
        plan_sql(text, CATALOG)
    assert caught.value.span is not None
    assert caught.value.span.start == text.rindex(clause)
