"""Selections that are read without a syntax tree have the plan that it would lead to."""

from __future__ import annotations

import re

import numpy as np
import pytest

from eventide.errors import EventideError
from eventide.lang.seen import Surroundings
from eventide.lang.selections import plan_selection
from eventide.lang.sql import plan_sql, planned
from eventide.lang.sql.statement import read_statement
from eventide.plan.expressions import Column, Literal, walk
from eventide.plan.named import NamedQuery
from eventide.plan.nodes import Filter, Project
from eventide.plan.tree import Plan
from eventide.schema import Schema
from tests.exploring import EXPLORING

TYPES = {"Image": "string", "user": "string", "n": "int64", "x": "float64", "on": "bool"}
CATALOG = {
    "logs": Schema.of(TYPES),
    "newest": Schema.of(TYPES, key=("user",)),
}
SURROUNDINGS = Surroundings.of(CATALOG, (), {})
TESTS = (
    """ "Image" = 'a' """,
    """ LOWER("image") = 'it''s' """,
    """ "user" <> '' """,
    """ "user" IN ('a', 'b', 'a') """,
    """ LOWER("user") IN ('%') """,
    """ CONTAINS(LOWER("Image"), '\\a b') """,
    """ STARTS_WITH("Image", ' )') """,
    """ ENDS_WITH("Image", '日"') """,
    """ "Image" LIKE '%a_b' """,
    """ "Image" IS NULL """,
    """ LOWER("Image") IS NOT NULL """,
    """ "n" = 4688 """,
    """ "n" IN (1, 2) """,
    """ "n" >= 0 """,
)
OTHERS = (
    """ "n" = 'a' """,
    """ "n" = 1.5 """,
    """ "n" = \u0661 """,
    """ "x" = 1 """,
    """ "x" IN (1) """,
    """ "on" """,
    """ "ts" > TIMESTAMP '2026-01-01' """,
    """ "ts" > 'a' """,
    """ user = 'a' """,
    """ "none" = 'a' """,
    """ "Image" = $a """,
    """ CONTAINS("Image", "user") """,
    """ "Image" LIKE 'a!%' ESCAPE '!' """,
    """ "Image" = 'a' 'b' """,
    """ "Image" = 'a' LIMIT 1 """,
    """ "n" = 1e5 """,
    """ "n" = 99999999999999999999 """,
    "TRUE",
    "1 = 1",
)


def selection(condition: str, stream: str = "logs") -> str:
    """Return a selection of events."""
    return f'SELECT * FROM "{stream}" WHERE {condition}'


def simple(text: str) -> Plan | None:
    """Return the plan of a selection that is read without a syntax tree."""
    return plan_selection(text, SURROUNDINGS, lambda whole: plan_sql(whole, CATALOG))


def usual(text: str) -> Plan | None:
    """Return the plan that a syntax tree leads to, None if the text is wrong."""
    try:
        return planned(read_statement(text), SURROUNDINGS, None)
    except EventideError:
        return None


def random_condition(rng: np.random.Generator, depth: int) -> str:
    """Return a condition of some depth."""
    if depth == 0:
        return str(rng.choice(TESTS)).strip()
    parts = [random_condition(rng, depth - 1) for _ in range(rng.integers(1, 5))]
    joined = parts[0]
    for part in parts[1:]:
        joined += f" {rng.choice(['AND', 'OR'])} {part}"
    form = rng.choice(["({})", "{}", "NOT {}", "NOT COALESCE({}, FALSE)", "NOT({})"])
    return str(form).format(joined)


def check(text: str) -> bool:
    """If a text is read without a tree, the plan is the same; return whether it is."""
    found, known = simple(text), usual(text)
    if found is not None:
        assert found == known, text
        assert spans(found) == spans(known), text
    return found is not None


def spans(plan: Plan | None) -> list[object]:
    """Return where the columns and constants of a condition stand."""
    assert isinstance(plan, Project)
    assert isinstance(plan.source, Filter)
    parts = walk(plan.source.condition)
    return [part.span for part in parts if isinstance(part, Column | Literal)]


@pytest.mark.parametrize("test", TESTS)
def test_simple_conditions_are_read_at_once(test: str) -> None:
    assert check(selection(test.strip()))


@pytest.mark.parametrize("test", OTHERS)
def test_other_conditions_are_left_to_the_parser(test: str) -> None:
    assert not check(selection(test.strip()))


def test_what_is_no_stream_of_events_is_left_to_the_parser() -> None:
    condition = TESTS[0].strip()
    assert not check(selection(condition, "newest"))
    assert not check(selection(condition, "nothing"))
    assert not check(selection(condition, "LOGS"))
    assert not check(selection(condition).replace("*", "user"))
    hidden = Surroundings(CATALOG, frozenset(), {"logs": NamedQuery("logs", "view", "")}, 0)
    assert plan_selection(selection(condition), hidden, lambda _: pytest.fail("asked")) is None


def test_long_conditions_are_left_to_the_parser() -> None:
    one = TESTS[0].strip()
    assert check(selection(" OR ".join([one] * 20)))
    assert not check(selection(" OR ".join([one] * 100)))
    assert not check(selection("(" * 30 + one + ")" * 30))


@pytest.mark.parametrize("seed", range(300 if EXPLORING else 30))
def test_random_conditions_have_the_plan_of_the_parser(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = selection(random_condition(rng, int(rng.integers(1, 4))))
    assert check(text)
    for _ in range(4):
        words = re.findall(r"""'(?:[^']|'')*'|"\w*"|\w+|\s+|.""", text)
        at, other = rng.integers(8, len(words), 2)
        match rng.integers(3):
            case 0:
                del words[at]
            case 1:
                words[at] = words[other]
            case _:
                words.insert(at, str(rng.choice(["'", '"', "--", "NOT", "FALSE", "1", "\n", "é"])))
        check("".join(words))
