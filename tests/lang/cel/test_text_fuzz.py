"""Mutated CEL texts: each is planned, or refused by an error of ours."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable

import pytest

from eventide.errors import EventideError, PlanError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import Statement, read_cel, read_statement
from tests.golden.plans import CATALOG, CEL_ERRORS, CEL_PLANS, read

COUNT = int(os.environ.get("EVENTIDE_FUZZ", "300"))
TEXTS = [
    re.sub(r"^#.*\n", "", query, flags=re.MULTILINE)
    for file in (CEL_PLANS, CEL_ERRORS)
    for query, _ in read(file)
]
WORDS = re.findall(
    r"\S+",
    """
    SELECT FROM PUBLISH FILTER{ NEXT{ FOLD{ UNION ALL AT INSTANT{ DUR AS AND OR NOT IN CEL ( ) { }
    , ; . * $1. $2. $. $x ? ' " ` -- /* */ \0 é 1 1e400 10min 5s 'a' cars trucks car speed ts
    COUNT(*) MAX( CASE WHEN THEN END CAST( :: = <> || NULL INTERVAL CREATE EXPLAIN
    """,
)


def mutated(choose: random.Random) -> str:
    """Return a text with some of its words dropped, doubled, moved or replaced."""
    words = re.findall(r"\w+|\s+|[^\w\s]", choose.choice(TEXTS))
    for _ in range(choose.choice((1, 1, 2, 3, 8))):
        place = choose.randrange(len(words) + 1)
        match choose.randrange(4):
            case 0:
                del words[place : place + choose.choice((1, 2, 5))]
            case 1:
                words.insert(place, choose.choice(WORDS))
            case 2:
                words[place : place + 1] = [choose.choice(WORDS)]
            case _:
                words[place:place] = words[place : place + choose.choice((1, 3, 9))]
    return "".join(words)


def refusal(text: str, reader: Callable[[str], Statement]) -> EventideError | None:
    """Return the error of a text, None if it has a plan; any other error is raised."""
    try:
        plan_sql(reader(text).explained, CATALOG)
    except EventideError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(10))
def test_a_broken_text_is_refused_by_an_error_of_ours(seed: int) -> None:
    choose = random.Random(seed)
    texts = [mutated(choose) for _ in range(COUNT // 10)]
    found = [refusal(text, reader) for text in texts for reader in (read_cel, read_statement)]
    assert any(found)
    assert not [each for each in found if isinstance(each, PlanError)]
    assert all(str(each) for each in found)


def test_an_empty_text() -> None:
    assert str(refusal("", read_cel)).startswith("the query is empty")
    assert str(refusal(" -- nothing", read_cel)).startswith("the query is empty")
