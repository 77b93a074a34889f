"""CEL while events arrive: durable queries, parameters, streams that are published inside."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import eventide as ev
from eventide.errors import EvaluationError
from tests.engines.scenarios import as_bag

SECOND = 1_000_000
KINDS = {"name": "string", "price": "int64"}
CHAINS = """
SELECT name, price_1, price, n FROM (SELECT *, 0 AS n FROM stocks)
  FOLD{$2.name = $.name AND DUR <= 20 s, $2.price >= $.price, $.n + 1 AS n} stocks
"""
LAST = {"ts": 1_000 * SECOND, "name": "none", "price": 0}
"""Comes after all others, so that all of these are complete."""


def quotes(first: int, last: int) -> list[dict[str, Any]]:
    choose = random.Random(first)
    return [
        {"ts": second * SECOND, "name": choose.choice("abc"), "price": choose.randrange(5)}
        for second in range(first, last)
    ]


def opened(path: Path) -> ev.Database:
    db = ev.open(path)
    if not db.streams():
        db.create_stream("stocks", KINDS)
    return db


def bag(found: list[ev.Result]) -> list[tuple[str, ...]]:
    return as_bag([row for each in found for row in each.rows()])


def test_a_durable_query_goes_on_where_it_was(tmp_path: Path) -> None:
    received: list[ev.Result] = []
    for first in range(0, 60, 15):
        with opened(tmp_path) as db:
            query = db.subscribe(CHAINS, received.append, name="chains", start="beginning")
            db.stream("stocks").append(quotes(first, first + 15))
            assert query.wait()
    with opened(tmp_path) as db:
        query = db.subscribe(CHAINS, received.append, name="chains")
        db.stream("stocks").append([LAST])
        assert query.wait()
        assert len(received) > 3
        assert bag(received) == bag([db.cel(CHAINS)])


def test_parameters(tmp_path: Path) -> None:
    text = "stocks NEXT{$1.name = $2.name AND $2.price > ? AND DUR <= ?} stocks"
    given = [2, timedelta(seconds=8)]
    received: list[ev.Result] = []
    with opened(tmp_path) as db:
        query = db.subscribe(text, received.append, params=given)
        db.stream("stocks").append([*quotes(0, 40), LAST])
        assert query.wait()
        found = db.cel(text, given)
        assert len(found) > 5
        assert bag(received) == bag([found]) == bag([*db.replay(text, params=given)])


def test_what_a_text_publishes_inside_is_a_result_and_goes_on(tmp_path: Path) -> None:
    """The same events are results of one query, and what others of another follow."""
    pairs = (
        "SELECT name, price_1 AS low, price AS high FROM stocks"
        " NEXT{$1.name = $2.name AND $2.price > $1.price AND DUR <= 9 s} stocks PUBLISH pairs"
    )
    text = (
        f"SELECT name, low, high, last FROM ({pairs}) NEXT{{name = who AND DUR <= 20 s}}"
        " (SELECT name AS who, high AS last FROM pairs) PUBLISH twice"
    )
    counted = (
        "SELECT name, COUNT(*) AS n FROM twice GROUP BY name, TUMBLE(ts, INTERVAL '10' SECOND)"
    )
    received: dict[str, list[ev.Result]] = {}
    with opened(tmp_path) as db:
        texts = [text, "FROM pairs", "FROM FILTER{high > 3} pairs", counted]
        queries = [
            db.subscribe(each, received.setdefault(each, []).append)
            for each in texts
        ]  # fmt: skip
        for first in range(0, 50, 10):
            db.stream("stocks").append(quotes(first, first + 10))
        db.stream("stocks").append([LAST])
        assert all(query.wait() for query in queries)
        for each in texts:
            assert received[each], each
            assert bag(received[each]) == bag([db.sql(each)]), each


def test_a_function_that_fails_ends_its_query_alone(tmp_path: Path) -> None:
    def failing(*_: object) -> object:
        message = "no luck"
        raise RuntimeError(message)

    ev.register_function("unlucky", failing, ["int64", "int64"], "bool")
    with opened(tmp_path) as db:
        query = db.live("stocks NEXT{unlucky($1.price, $2.price) AND DUR <= 5 s} stocks")
        other = db.live("stocks NEXT{DUR <= 5 s} stocks")
        db.stream("stocks").append([*quotes(0, 10), LAST])
        with pytest.raises(EvaluationError, match="unlucky failed: RuntimeError: no luck"):
            query.next(timeout=60)
        assert query.status == "failed"
        assert other.next(timeout=60)
