"""A relation in ordinary SQL is its present rows, however the query is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eventide as ev
from eventide.errors import UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Relational
from eventide.plan.standing.nodes import Standing

SECOND = 1_000_000


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> ev.Database:
    db = ev.open(tmp_path_factory.mktemp("shop"))
    orders = db.create_stream("orders", {"user": "string", "item": "string"})
    orders.append(
        [
            {"ts": SECOND, "user": "ann", "item": "pen"},
            {"ts": 2 * SECOND, "user": "bob", "item": "lamp"},
            {"ts": 9 * SECOND, "user": "cat", "item": "cup"},
        ]
    )
    items = db.create_relation("items", {"item": "string", "price": "int64"}, key=["item"])
    items.upsert([{"item": "pen", "price": 2}, {"item": "lamp", "price": 30}], at=0)
    items.upsert([{"item": "pen", "price": 3}, {"item": "cup", "price": 8}], at=4 * SECOND)
    items.delete(["lamp"], at=5 * SECOND)
    db.create_relation("empty", {"item": "string"}, key=["item"])
    shifts = {"who": "string", "start_ts": "timestamp", "end_ts": "timestamp"}
    for name in ("early", "late"):
        rows = [
            {"who": "ann", "start_ts": 0, "end_ts": 5 * SECOND},
            {"who": "bob", "start_ts": 3 * SECOND, "end_ts": 9 * SECOND},
        ]
        relation = db.create_relation(name, shifts, key=["who"])
        relation.upsert(rows, at=0)
        relation.delete(["ann" if name == "late" else "bob"], at=SECOND)
    return db


ANSWERS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT * EXCEPT (ts) FROM items", [("cup", 8), ("pen", 3)]),
    ("SELECT i.item, 2 * price AS p FROM items i WHERE i.price > 3", [("cup", 16)]),
    ("SELECT COUNT(*) AS n, SUM(price) AS s FROM items", [(2, 11)]),
    ("SELECT COUNT(*) AS n FROM empty", [(0,)]),
    ("SELECT DISTINCT item FROM items ORDER BY item DESC LIMIT 1", [("pen",)]),
    (
        "SELECT o.user, i.price FROM orders o JOIN items i ON o.item = i.item",
        [("ann", 3), ("cat", 8)],
    ),
    (
        "SELECT o.user, i.price FROM orders o LEFT JOIN items i USING (item) WHERE o.user > 'a'",
        [("ann", 3), ("bob", None), ("cat", 8)],
    ),
    ("SELECT user FROM orders WHERE item NOT IN (SELECT item FROM items)", [("bob",)]),
    (
        "SELECT user FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.item = o.item)",
        [("ann",), ("cat",)],
    ),
    ("SELECT user FROM orders WHERE (SELECT MAX(price) FROM items) = 8 AND user < 'b'", [("ann",)]),
    ("WITH x AS (SELECT * FROM items) SELECT a.item FROM x a JOIN x b ON a.price < b.price", [
        ("pen",)
    ]),
    ("SELECT n FROM (SELECT item, price AS n FROM items WHERE price < 5) q", [(3,)]),
    ("SELECT item FROM items UNION ALL SELECT item FROM orders WHERE user = 'bob'", [
        ("cup",), ("lamp",), ("pen",)
    ]),
    ("SELECT SUM(price) OVER (ORDER BY ts, item ROWS 1 PRECEDING) AS s FROM items", [(8,), (11,)]),
    ("SELECT e.who, l.who AS w FROM early e JOIN late l ON e OVERLAPS l", [("ann", "bob")]),
    (
        "SELECT e.who, l.who AS w FROM (SELECT * FROM early WHERE who = 'ann') e "
        "JOIN late l ON e OVERLAPS l",
        [("ann", "bob")],
    ),
    # What goes with time reads the changes, and so does who asks for all of them.
    (
        "SELECT COUNT(*) AS n FROM items GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)",
        [(1,), (2,), (2,)],
    ),
    (
        "SELECT n FROM items MATCH_RECOGNIZE (PARTITION BY item ORDER BY ts "
        "MEASURES LAST(B.price) AS n PATTERN (A B) DEFINE B AS price > A.price)",
        [(3,)],
    ),
    ("SELECT item FROM items [RANGE UNBOUNDED] WHERE deleted", [("lamp",)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ANSWERS, ids=[text for text, _ in ANSWERS])
def test_ordinary_sql_reads_the_rows_of_now(
    shop: ev.Database, text: str, expected: list[tuple[Any, ...]]
) -> None:
    rows = [tuple(row.values()) for row in shop.sql(text).rows()]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


def test_a_relation_alone_can_be_followed(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    items = db.create_relation("items", {"item": "string", "price": "int64"}, key=["item"])
    query = db.subscribe("SELECT item, price FROM items WHERE price > 2")
    items.upsert([{"item": "pen", "price": 3}, {"item": "cup", "price": 1}], at=0)
    items.upsert([{"item": "pen", "price": 4}], at=SECOND)
    items.delete(["pen"], at=2 * SECOND)
    assert query.current().rows() == [{"item": "pen", "price": 4}]
    query.finish()
    assert query.current().rows() == []


def test_columns_called_like_those_of_changes_are_for_history(shop: ev.Database) -> None:
    text = 'SELECT item AS live, price AS "Exp" FROM items'
    assert isinstance(plan_sql(text, shop.catalog()), Relational)
    assert len(shop.sql(text).rows()) == 2
    assert isinstance(plan_sql("SELECT item FROM items", shop.catalog()), Standing)


HINTS = [
    (
        "SELECT o.user FROM orders o JOIN orders p ON o.item = p.item",
        "put a window behind each stream: orders \\[RANGE 1 MINUTE\\]; or ask it over history",
    ),
    (
        "SELECT o.user FROM orders o JOIN items i USING (item)",
        "put a window behind each stream: orders \\[RANGE 1 MINUTE\\]; or",
    ),
    ("SELECT user FROM orders [ROWS 3] ORDER BY user", "ORDER BY with LIMIT may stay"),
    ("SELECT COUNT(*) AS n FROM orders", "GROUP BY without a window need an end"),
]


@pytest.mark.parametrize(("text", "hint"), HINTS, ids=[text for text, _ in HINTS])
@pytest.mark.parametrize("from_history", [False, True])
def test_live_the_hint_says_what_would_work(
    shop: ev.Database, text: str, hint: str, *, from_history: bool
) -> None:
    with pytest.raises(UnsupportedError, match=hint):
        shop.subscribe(text, from_history=from_history)
