"""VALUES as events: rows written in the query itself, under our operators."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import eventide as ev
from eventide.errors import BindError, EventideError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = (
    "(VALUES (TIMESTAMP '2026-01-02', 2, 'b'), (TIMESTAMP '2026-01-01', -1, NULL)) AS t(ts, a, s)"
)
DAY = datetime(2026, 1, 1)
NEXT = datetime(2026, 1, 2)

QUERIES: dict[str, list[dict[str, Any]]] = {
    f"SELECT * FROM {ROWS} MATCH_RECOGNIZE (MEASURES A.a AS x, B.a AS y, B.s AS s PATTERN (A B))": [
        {"x": -1, "y": 2, "s": "b"}
    ],
    f"SELECT SUM(a) AS total, COUNT(s) AS n FROM {ROWS} GROUP BY TUMBLE(ts, INTERVAL '1' DAY)": [
        {"total": -1, "n": 0},
        {"total": 2, "n": 1},
    ],
    f"SELECT * FROM (SELECT ts, a * 2 AS b FROM {ROWS} WHERE a > 0) "
    "MATCH_RECOGNIZE (MEASURES A.b AS x PATTERN (A))": [{"x": 4}],
    f"SELECT COUNT(*) AS n FROM (SELECT ts FROM {ROWS} WHERE a > 0) x "
    "GROUP BY TUMBLE(ts, INTERVAL '1' DAY)": [{"n": 1}],
    "WITH v(ts, a) AS (VALUES (TIMESTAMP '2026-01-01', 1.5), (TIMESTAMP '2026-01-02', -2)) "
    "SELECT * FROM v MATCH_RECOGNIZE (MEASURES A.a AS x, B.a AS y PATTERN (A B))": [
        {"x": Decimal("1.5"), "y": Decimal("-2.0")}
    ],
    "WITH v AS (SELECT * FROM (VALUES (TIMESTAMP '2026-01-01', 1)) AS w(ts, a)) "
    "SELECT SUM(a) AS total FROM v GROUP BY TUMBLE(ts, INTERVAL '1' DAY)": [{"total": 1}],
    "SELECT m.x, n.x AS y FROM (VALUES (TIMESTAMP '2026-01-01', 1)) AS t(ts, a) "
    "MATCH_RECOGNIZE (MEASURES A.a AS x PATTERN (A)) AS m JOIN "
    "(VALUES (TIMESTAMP '2026-01-01', 2)) AS t(ts, a) "
    "MATCH_RECOGNIZE (MEASURES A.a AS x PATTERN (A)) AS n ON m.x < n.x": [{"x": 1, "y": 2}],
}


@pytest.mark.parametrize("text", QUERIES)
def test_rows_that_a_query_writes_down_are_events(text: str, tmp_path: Path) -> None:
    assert ev.sql(text).rows() == QUERIES[text]
    assert ev.open(tmp_path / "db").sql(text).rows() == QUERIES[text]


def test_their_times_are_those_written(tmp_path: Path) -> None:
    text = f"SELECT * FROM {ROWS} MATCH_RECOGNIZE (MEASURES A.ts AS x, B.ts AS y PATTERN (A B))"
    assert ev.sql(text).rows() == [{"x": DAY, "y": NEXT}]
    db = ev.open(tmp_path / "db")
    db.create_stream("t", {"a": "string"}).append([{"ts": 1, "a": "stored"}])
    # A stream of that name is another thing, and both can be read.
    both = f"SELECT m.x, t.a FROM t, {ROWS} MATCH_RECOGNIZE (MEASURES A.a AS x PATTERN (A B)) m"
    assert db.sql(both).rows() == [{"x": -1, "a": "stored"}]


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ("(VALUES (1, 2)) AS t(a, b)", BindError),
        ("(VALUES (TIMESTAMP '2026-01-01', 2))", BindError),
        ("(VALUES (TIMESTAMP '2026-01-01', 2), (TIMESTAMP '2026-01-01')) AS t(ts, a)", BindError),
        (
            "(VALUES (TIMESTAMP '2026-01-01', 2), (TIMESTAMP '2026-01-01', 'x')) AS t(ts, a)",
            BindError,
        ),
        ("(VALUES (NULL, 2)) AS t(ts, a)", BindError),
        ("(VALUES (7, 2)) AS t(ts, a)", BindError),
        ("(VALUES (TIMESTAMP '2026-01-01', upper('x'))) AS t(ts, a)", UnsupportedError),
        ("(VALUES (TIMESTAMP '2026-01-01', 1)) AS t(ts, _seq)", UnsupportedError),
    ],
)
def test_what_cannot_be_events_is_refused_with_its_place(
    values: str, error: type[EventideError]
) -> None:
    with pytest.raises(error) as caught:
        ev.sql(f"SELECT * FROM {values} MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A))")
    assert caught.value.hint


def test_they_do_not_go_on_live(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    text = f"SELECT SUM(a) AS total FROM {ROWS} GROUP BY TUMBLE(ts, INTERVAL '1' DAY)"
    with pytest.raises(UnsupportedError, match="nothing to follow live"):
        db.subscribe(text)
    with pytest.raises(UnsupportedError, match="nothing to follow live"):
        db.replay(text)


@pytest.mark.spark
def test_spark_reads_them_too(spark: SparkSession) -> None:
    for text, expected in QUERIES.items():
        found = [row.asDict() for row in ev.spark(spark).sql(text).collect()]
        assert sorted(map(str, found)) == sorted(map(str, expected)), text
    text = f"SELECT SUM(a) AS total FROM {ROWS} GROUP BY TUMBLE(ts, INTERVAL '1' DAY)"
    with pytest.raises(UnsupportedError, match="nothing to follow live"):
        ev.spark(spark).stream(text)
