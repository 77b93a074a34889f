"""Mutated query texts: each is planned, or refused by an error of ours.

`EVENTIDE_FUZZ=5000` tries that many, and `-s` shows how long the slowest took.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventide.errors import EventideError, ParseError, PlanError
from eventide.lang.sql import plan_sql
from eventide.schema import Schema
from tests.golden.plans import CATALOG, read

ROOT = Path(__file__).parents[3]
COUNT = int(os.environ.get("EVENTIDE_FUZZ", "300"))
STREAMS = {
    **CATALOG,
    "views": Schema.of({"user": "string", "item": "string", "lane": "int64", "speed": "float64"}),
    "ticks": Schema.of({"symbol": "string", "price": "float64", "volume": "int64"}),
    "trips": Schema.of({"car": "string", "start_ts": "timestamp", "end_ts": "timestamp"}),
}
WORDS = re.findall(
    r"\S+",
    """
    SELECT FROM WHERE GROUP BY ORDER LIMIT HAVING WITH AS JOIN LEFT ON USING UNION EXCEPT DISTINCT
    OVER PARTITION ROWS RANGE TUMBLE HOP SLIDE INTERNAL MATCH_RECOGNIZE MEASURES PATTERN DEFINE
    WITHIN SKIP TPSTREAM SITUATIONS RETURN AT LEAST meets overlaps ISTREAM RSTREAM VALUES NOT NULL
    FIRST LAST PREV COUNT SUM CAST INTERVAL TIMESTAMP CASE WHEN THEN END IN BETWEEN LIKE EXISTS
    """,
)
BITS = re.findall(
    r"\S+",
    """
    ( ) [ ] { } , ; . .. * + - / % = <> < <= || :: ' " -- /* */ ? $ $$ @ # ! ~ ^ & | \\ \0 é 日
    0 1 -1 1.5 1e400 9223372036854775807 99999999999999999999999999999999999999999 'a' '' "a" ts
    """,
)


def _errors() -> str:
    folders = [ROOT / "tests" / "golden", ROOT / "tests" / "lang"]
    return "".join(
        path.read_text() for folder in folders for path in sorted(folder.glob("*errors*"))
    )


def texts() -> list[str]:
    """Return query texts of the docs and the golden files."""
    found = [re.sub(r"^#.*\n", "", query, flags=re.MULTILINE) for query, _ in read()]
    found += re.findall(r"^  ((?:SELECT|WITH|FROM|[IRW]STREAM) .*)$", _errors(), re.MULTILINE)
    start = r"(?:SELECT|WITH|FROM|ISTREAM|RSTREAM|WSTREAM|EXPLAIN)\b"
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        page = re.sub(r"^(?:>>>|\.\.\.) ?", "", path.read_text(), flags=re.MULTILINE)
        found += re.findall(rf'"""\s*({start}.*?)"""', page, re.DOTALL)
        found += re.findall(rf'"({start}[^"\n]+)"', page)
    return sorted(set(found))


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def mutated(choose: random.Random, known: list[str]) -> str:
    """Return a text with some of its words dropped, doubled, moved or replaced."""
    words = tokens(choose.choice(known))
    for _ in range(choose.choice((1, 1, 2, 3, 8))):
        place = choose.randrange(len(words)) if words else 0
        match choose.randrange(8):
            case 0:
                del words[place : place + choose.choice((1, 2, 5))]
            case 1:
                words[place:place] = words[place : place + choose.choice((1, 3, 9))]
            case 2:
                words.insert(place, f" {choose.choice(WORDS)} ")
            case 3:
                words.insert(place, choose.choice(BITS))
            case 4:
                other = tokens(choose.choice(known))
                start = choose.randrange(len(other))
                words[place : place + 3] = other[start : start + choose.choice((1, 4, 20))]
            case 5:
                del words[place:]
            case 6:
                away = choose.randrange(len(words)) if words else 0
                words[place : place + 1], words[away : away + 1] = (
                    words[away : away + 1],
                    words[place : place + 1],
                )
            case 7:
                words[place : place + 1] = [choose.choice(BITS)]
    return "".join(words)


def swapped(choose: random.Random, known: list[str]) -> str:
    """Return a text in which some words are those of other texts: most can still be read."""
    words, others = tokens(choose.choice(known)), tokens(choose.choice(known))
    for _ in range(choose.choice((1, 2, 4))):
        place = choose.randrange(len(words))
        kind = next(
            each for each in (r"\s+", r"\d+", r"\w+", r".") if re.fullmatch(each, words[place])
        )
        alike = [each for each in others if re.fullmatch(kind, each)]
        words[place] = choose.choice(alike or [words[place]])
    return "".join(words)


def outcomes(count: int) -> Iterator[tuple[str, str, float]]:
    """Yield mutated texts, what becomes of each, and how long that takes."""
    choose = random.Random(15)
    known = texts()
    for _ in range(count):
        text = choose.choice((mutated, swapped, swapped))(choose, known)
        start = time.perf_counter()
        try:
            plan_sql(text, STREAMS)
            outcome = "planned"
        except PlanError as error:
            outcome = f"RAW {error!r}"
        except EventideError as error:
            outcome = type(error).__name__ if str(error) else "RAW without a word"
        except Exception as error:
            outcome = f"RAW {error!r}"
        yield text, outcome, time.perf_counter() - start


def test_a_mutated_text_is_planned_or_refused_by_an_error_of_ours() -> None:
    assert len(texts()) > 150
    kinds: Counter[str] = Counter()
    raw: dict[str, str] = {}
    slowest = (0.0, "")
    for text, outcome, seconds in outcomes(COUNT):
        kinds[outcome.partition(" ")[0]] += 1
        slowest = max(slowest, (seconds, text))
        if outcome.startswith("RAW"):
            raw[text] = outcome
    sys.stdout.write(f"{dict(kinds)}, slowest {slowest[0]:.2f} s: {slowest[1][:200]!r}\n")
    assert raw == {}


_DEEP = 10_000
_LONG = 100_000


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {'(' * _DEEP}car{')' * _DEEP} FROM cars",
        f"SELECT {'-' * _DEEP} lane FROM cars",
        f"SELECT {'NOT ' * _DEEP} TRUE FROM cars",
        f"SELECT {'upper(' * _DEEP}car{')' * _DEEP} FROM cars",
        f"SELECT {'CASE WHEN TRUE THEN ' * _DEEP}1{' END' * _DEEP} FROM cars",
        f"SELECT car FROM {'(SELECT car FROM ' * _DEEP}cars{')' * _DEEP}",
        f"SELECT car FROM cars WHERE {' AND '.join(['lane > 1'] * _LONG)}",
        f"SELECT car FROM cars WHERE {' OR '.join(['lane > 1'] * _LONG)}",
        f"SELECT {' + '.join(['lane'] * _LONG)} AS n FROM cars",
        f"SELECT 1 FROM cars MATCH_RECOGNIZE (PATTERN ({'(' * _DEEP}A{')' * _DEEP}) DEFINE A AS 1)",
        f"SELECT car FROM cars [ROWS 1] WHERE {' AND '.join(['lane > 1'] * _LONG)}",
        " UNION ALL ".join(["SELECT car FROM cars"] * _DEEP),
    ],
    ids=lambda text: text[:40],
)
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(EventideError):
        plan_sql(text, CATALOG)


def test_a_long_list_is_read() -> None:
    numbers = ", ".join(map(str, range(20_000)))
    plan_sql(f"SELECT car FROM cars WHERE lane IN ({numbers})", CATALOG)


def test_too_deep_says_what_to_write() -> None:
    with pytest.raises(ParseError) as caught:
        plan_sql(f"SELECT {'(' * _DEEP}car{')' * _DEEP} FROM cars", CATALOG)
    assert caught.value.hint
