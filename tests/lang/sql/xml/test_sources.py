"""Tree patterns in FROM: what stands around them, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventide as ev
from eventide.errors import EventideError


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> ev.Database:
    """Six documents, one a second, of two authors in turn; prices are 0, 10, 20 and so on."""
    db = ev.open(tmp_path_factory.mktemp("db"))
    blog = db.create_stream("blog", format="xml")
    text = "<item id='{0}'><author>u{1}</author><price>{0}0</price></item>"
    rows = [
        {"ts": f"2026-01-01T00:00:0{n}", "document": text.format(n, n % 2).encode()}
        for n in range(6)
    ]
    blog.append(rows)
    db.create_stream("cars", {"car": "string", "document": "string"})
    item = "ts, a, CAST(p AS DOUBLE) AS p FROM XPATH (blog//item[author->a][price->p])"
    db.sql(f"CREATE STREAM priced AS SELECT {item}")
    db.sql(f"CREATE VIEW seen AS SELECT {item}")
    return ev.open(db.path)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT a, AVG(p) AS m FROM seen GROUP BY a ORDER BY a", [("u0", 20.0), ("u1", 30.0)]),
        ("SELECT DISTINCT a FROM XPATH (blog//author->a) ORDER BY a", [("u0",), ("u1",)]),
        ("SELECT p FROM XPATH (blog//price->p) ORDER BY ts DESC LIMIT 2", [("50",), ("40",)]),
        (
            "WITH c AS (SELECT * FROM XPATH (blog//author->a)) SELECT a, COUNT(*) FROM c GROUP BY a"
            " ORDER BY a",
            [("u0", 3), ("u1", 3)],
        ),
        (
            "WITH late AS (SELECT ts, document FROM blog"
            " WHERE ts > TIMESTAMP '2026-01-01 00:00:03') SELECT p FROM XPATH (late//price->p)",
            [("40",), ("50",)],
        ),
        (
            "SELECT p FROM XPATH (blog//item[@id = '1']/price->p) UNION ALL"
            " SELECT p FROM XPATH (blog//item[@id = '2']/price->p)",
            [("10",), ("20",)],
        ),
        (
            "SELECT x.a, p FROM XPATH (blog//author->a) x, XPATH (blog//price->p) AS y"
            " WHERE x.ts = y.ts AND p = '30' -- XPATH (x",
            [("u1", "30")],
        ),
        (
            "SELECT p_1 AS p, p AS later"
            " FROM CEL (FILTER{p > 10.0} priced NEXT{$1.a = $2.a} priced) ORDER BY p",
            [(20.0, 40.0), (30.0, 50.0)],
        ),
        ("SELECT COUNT(*) AS n FROM XPATH (blog//item) [RANGE 2 SECONDS]", [(2,)]),
        ("SELECT COUNT(*) AS n FROM XPATH (blog//nothing)", [(0,)]),
    ],
)
def test_what_stands_around(db: ev.Database, text: str, rows: list[tuple[object, ...]]) -> None:
    assert [tuple(row.values()) for row in db.sql(text).rows()] == rows


def test_parameters_stand_beside_it(db: ev.Database) -> None:
    text = "SELECT p FROM XPATH (blog//item[author->a]/price->p) WHERE a = ? AND p > ?"
    assert [row["p"] for row in db.sql(text, ["u1", "20"]).rows()] == ["30", "50"]


def test_bounds_decide_which_documents_are_read(db: ev.Database) -> None:
    text = "SELECT a FROM XPATH (blog//author->a) WHERE ts >= TIMESTAMP '2026-01-01 00:00:04'"
    assert "Scan blog (ts, document) from 2026-01-01 00:00:04" in str(db.explain(text))
    assert len(db.sql(text)) == 2


@pytest.mark.parametrize(
    ("pattern", "at", "says"),
    [
        ("blag//item->x", "blag", "no stream 'blag'"),
        ("priced//item->x", "priced", "no column 'document'"),
        ("cars//item->x", "cars", "is string, and not the bytes of documents"),
        ("blog//item->ts", "ts", "is the time of a document"),
        ("blog//item->_SEQ", "_SEQ", "is the time of a document"),
        ("blog//item[", "[", "ends too early"),
        ("blog//a:b", ":", "cannot read the pattern near ':'"),
    ],
)
def test_errors_point_into_the_query(db: ev.Database, pattern: str, at: str, says: str) -> None:
    text = f"SELECT *\nFROM XPATH ({pattern})"
    with pytest.raises(EventideError, match=says) as raised:
        db.sql(text)
    assert raised.value.span is not None
    assert raised.value.span.of(text) == at
    assert raised.value.hint


def test_a_pattern_that_is_not_closed(db: ev.Database) -> None:
    with pytest.raises(EventideError, match=r"XPATH \( is not closed"):
        db.sql("SELECT * FROM XPATH (blog//item->x[. = ')']")


def test_plans_are_the_same_for_the_same_pattern(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    db.create_stream("blog", format="xml")
    one, other = (
        db.plan(f"SELECT a FROM XPATH ({each})") for each in ("blog//a->a", "blog // a -> a")
    )
    assert one == other
    assert hash(one) == hash(other)
