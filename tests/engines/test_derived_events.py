"""The rows of a query as events: when each happens, and in which order rows of one time come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import EventideError, SchemaError

SECOND = 1_000_000


def cars() -> pa.Table:
    #  ts   0    1    2    2    3    5
    #  car  b    a    b    a    a    b     two of them at 2, b first
    rows = [(0, "b", 1), (1, "a", 5), (2, "b", 7), (2, "a", 6), (3, "a", 2), (5, "b", 9)]
    return pa.table(
        {
            "ts": pa.array([ts * SECOND for ts, _, _ in rows], pa.timestamp("us")),
            "car": [car for _, car, _ in rows],
            "x": [x for _, _, x in rows],
        }
    )


def in_order(query: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a query in their order as events: start, time (in seconds) and some columns."""
    names = ["start_ts", "ts", *columns]
    place = "COUNT(*) OVER (ORDER BY ts ROWS 1000 PRECEDING) AS place"
    table = ev.sql(f"SELECT {', '.join(names)}, {place} FROM {query}", cars=cars()).to_arrow()
    for name in ("start_ts", "ts"):
        column = table.column(name).cast(pa.int64())
        table = table.set_column(table.schema.names.index(name), name, column)
    rows = sorted(table.to_pylist(), key=lambda row: row["place"])
    return [
        (row["start_ts"] // SECOND, row["ts"] // SECOND, *(row[name] for name in columns))
        for row in rows
    ]


PAIRS = "MATCH_RECOGNIZE ({}ORDER BY ts MEASURES FIRST(x) AS f, LAST(x) AS l PATTERN (A B){})"


@pytest.mark.parametrize(
    ("query", "columns", "rows"),
    [
        # Row by row: the time and the order of the events.
        (
            "(SELECT car FROM cars WHERE x > 4)",
            ["car"],
            [(1, 1, "a"), (2, 2, "b"), (2, 2, "a"), (5, 5, "b")],
        ),
        # Windows: their ends, then their starts, then their keys.
        (
            "(SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND))",
            ["car", "n"],
            [(0, 2, "a", 1), (0, 2, "b", 1), (2, 4, "a", 2), (2, 4, "b", 1), (4, 6, "b", 1)],
        ),
        # By count: first and last event. Two windows of two events each end at 2.
        (
            "(SELECT car, SUM(x) AS s FROM cars GROUP BY car, TUMBLE(ROWS, 2))",
            ["car", "s"],
            [(0, 2, "b", 8), (1, 2, "a", 11)],
        ),
        # Sessions: the last event and the gap.
        (
            "(SELECT car, COUNT(*) AS n FROM cars GROUP BY car, SESSION(ts, INTERVAL '2' SECOND))",
            ["car", "n"],
            [(0, 2, "b", 1), (2, 4, "b", 1), (1, 5, "a", 3), (5, 7, "b", 1)],
        ),
        # Matches: first and last row; the earlier start first.
        (
            f"cars {PAIRS.format('PARTITION BY car ', '')}",
            ["car", "f", "l"],
            [(0, 2, "b", 1, 7), (1, 2, "a", 5, 6)],
        ),
        # Matches of one key with the same times: in the order of their start rows.
        (
            "cars MATCH_RECOGNIZE (MEASURES FIRST(x) AS f, LAST(x) AS l"
            " AFTER MATCH SKIP TO NEXT ROW PATTERN (A B?) DEFINE B AS ts = PREV(ts))",
            ["f", "l"],
            [(0, 0, 1, 1), (1, 1, 5, 5), (2, 2, 7, 6), (2, 2, 6, 6), (3, 3, 2, 2), (5, 5, 9, 9)],
        ),
        # Every match: numbered.
        (
            "cars MATCH_RECOGNIZE (STRATEGY SKIP_TILL_ANY MEASURES FIRST(x) AS f, LAST(x) AS l"
            " PATTERN (A B) WITHIN INTERVAL '2' SECOND DEFINE A AS x > 4, B AS x > 4)",
            ["f", "l"],
            [(1, 2, 5, 7), (1, 2, 5, 6), (2, 2, 7, 6)],
        ),
        # An empty match has the time of its start row.
        (
            "cars MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A*) DEFINE A AS x > 5)",
            ["n"],
            [(0, 0, 0), (1, 1, 0), (2, 2, 2), (3, 3, 0), (5, 5, 1)],
        ),
        # All rows: each has its own time, and begins with its match.
        (
            f"cars {PAIRS.format('PARTITION BY car ALL ROWS PER MATCH ', '')}".replace(
                "ALL ROWS PER MATCH ORDER BY ts MEASURES FIRST(x) AS f, LAST(x) AS l",
                "ORDER BY ts MEASURES FINAL LAST(x) AS l ALL ROWS PER MATCH",
            ),
            ["car", "x", "l"],
            [(0, 0, "b", 1, 7), (1, 1, "a", 5, 6), (0, 2, "b", 7, 7), (1, 2, "a", 6, 6)],
        ),
        # Rows in no match begin with themselves.
        (
            "cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts ALL ROWS PER MATCH WITH UNMATCHED"
            " ROWS PATTERN (A B) DEFINE B AS x > 6)",
            ["car", "x"],
            [
                (0, 0, "b", 1),
                (1, 1, "a", 5),
                (0, 2, "b", 7),
                (2, 2, "a", 6),
                (3, 3, "a", 2),
                (5, 5, "b", 9),
            ],
        ),
        # Situations: their ends.
        (
            "cars SITUATIONS (PARTITION BY car DEFINE high AS x > 4, low AS x < 6)",
            ["car", "situation"],
            [(0, 2, "b", "low"), (1, 2, "a", "low"), (1, 3, "a", "high")],
        ),
        # Temporal patterns: detection, and the earliest start.
        (
            "cars TPSTREAM (PARTITION BY car DEFINE low AS x < 6, high AS x > 5"
            " PATTERN low meets high WITHIN 1 MINUTE RETURN MAX(high.x) AS most)",
            ["car", "most"],
            [(0, 2, "b", 7), (1, 2, "a", 6)],
        ),
        # A union: the first part first.
        (
            "(SELECT x FROM cars WHERE car = 'a' UNION ALL SELECT -x FROM cars WHERE x > 5)",
            ["x"],
            [(1, 1, 5), (2, 2, 6), (2, 2, -7), (2, 2, -6), (3, 3, 2), (5, 5, -9)],
        ),
        # What comes into an answer: the columns from left to right.
        (
            "ISTREAM (SELECT car, x FROM cars [RANGE 1 SECOND])",
            ["car", "x"],
            [
                (0, 0, "b", 1),
                (1, 1, "a", 5),
                (2, 2, "a", 6),
                (2, 2, "b", 7),
                (3, 3, "a", 2),
                (5, 5, "b", 9),
            ],
        ),
        # What leaves it, before what comes.
        (
            "DSTREAM (SELECT car, x FROM cars [RANGE 1 SECOND])",
            ["car", "x"],
            [(1, 1, "b", 1), (2, 2, "a", 5), (3, 3, "a", 6), (3, 3, "b", 7), (4, 4, "a", 2)],
        ),
        # A join of streams: when the later event came.
        (
            "(SELECT a.x, b.x AS y FROM cars a JOIN cars b ON a.car = b.car AND a.x < b.x)",
            ["x", "y"],
            [(2, 2, 1, 7), (2, 2, 5, 6), (3, 3, 2, 5), (3, 3, 2, 6), (5, 5, 1, 9), (5, 5, 7, 9)],
        ),
        # A row keeps its start through the queries around it.
        (
            "(SELECT car FROM (SELECT car, COUNT(*) AS n FROM cars"
            " GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND)) WHERE n = 1)",
            ["car"],
            [(0, 2, "a"), (0, 2, "b"), (2, 4, "b"), (4, 6, "b")],
        ),
    ],
)
def test_times_and_order(query: str, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    assert in_order(query, *columns) == rows


def test_a_column_that_the_query_calls_ts_is_meant() -> None:
    starts = (
        "(SELECT window_start AS ts, COUNT(*) AS n FROM cars"
        " GROUP BY HOP(ts, INTERVAL '1' SECOND, INTERVAL '3' SECOND))"
    )
    found = in_order(starts, "n")
    assert [ts for _, ts, _ in found] == sorted(ts for _, ts, _ in found)
    assert all(start == ts for start, ts, _ in found)


def test_star_leaves_out_times_that_the_query_does_not_show() -> None:
    windows = "(SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND))"
    result = ev.sql(
        f"SELECT * FROM {windows} MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (A))", cars=cars()
    )
    assert result.to_arrow().schema.names == ["car", "n"]


def test_a_row_without_a_time_is_refused() -> None:
    text = (
        "SELECT COUNT(*) FROM (SELECT CASE WHEN n > 1 THEN window_end END AS ts FROM "
        "(SELECT COUNT(*) AS n, window_end FROM cars"
        " GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND)))"
        " GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    )
    with pytest.raises(SchemaError, match="null in some row"):
        ev.sql(text, cars=cars())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("(SELECT car, MAX(x) AS x FROM cars GROUP BY car)", "reads a plain SELECT"),
        ("(SELECT car FROM cars ORDER BY x LIMIT 2)", "reads a plain SELECT"),
        ("(SELECT DISTINCT car FROM cars)", "reads a plain SELECT"),
        ("(SELECT car FROM cars UNION SELECT car FROM cars)", "come and stay"),
        ("(SELECT car FROM cars [RANGE 1 MINUTE])", "go again"),
        ("(SELECT a.car FROM cars a LEFT JOIN cars b USING (car))", "go again"),
        ("(SELECT COUNT(*) AS ts FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' SECOND))", "is int64"),
        ("(SELECT car FROM cars UNION ALL SELECT x FROM cars)", "string and int64 in UNION ALL"),
        ("(SELECT car FROM cars UNION ALL SELECT x, car FROM cars)", "of 1 and of 2 columns"),
        ("(SELECT _seq FROM cars UNION ALL SELECT _seq FROM cars)", "have no _seq"),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        "SELECT COUNT(*) FROM {} GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)",
        "SELECT * FROM {} MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A+))",
        "SELECT COUNT(*) FROM {} AS q [RANGE 1 MINUTE]",
    ],
)
def test_rows_that_are_no_events_are_refused(around: str, query: str, message: str) -> None:
    with pytest.raises(EventideError, match=message):
        ev.sql(around.format(query), cars=cars())


def many_cars() -> pa.Table:
    """So many events that the index is worth asking: one in a thousand begins a match."""
    places = np.arange(150_000)
    return pa.table(
        {
            "ts": pa.array(places // 3 * SECOND).cast(pa.timestamp("us")),
            "car": pa.array(places % 3).cast(pa.string()),
            "x": places * 7919 % 1000,
        }
    )


RARE = (
    "cars MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(x) AS last PATTERN (A B C)"
    " WITHIN INTERVAL '5' SECOND DEFINE A AS x = 7, B AS x > 100, C AS x > 100)"
)


def test_the_index_answers_the_query_inside(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    stream = db.create_stream("cars", {"car": "string", "x": "int64"}, index=["x"])
    stream.append(many_cars())
    text = (
        f"SELECT window_start, COUNT(*) AS n, FIRST(last) AS first, MIN(start_ts) AS began"
        f" FROM {RARE} GROUP BY TUMBLE(ts, INTERVAL '10' MINUTE)"
    )
    explained = str(db.explain(text))
    assert "150,000 events of cars: look up A: x = 7" in explained
    assert "the rows of derived_0" in explained
    found = db.sql(text).rows()
    assert len(found) > 5
    assert found == ev.sql(text, cars=many_cars()).rows()


def test_explain_shows_what_a_standing_query_reads() -> None:
    text = f"EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM {RARE} [RANGE 1 HOUR] AS m"
    lines = [row["plan"] for row in ev.sql(text, cars=many_cars()).rows()]
    inside = lines.index("derived_0:")
    assert lines[0].startswith("Standing")
    assert lines[inside + 1].startswith("  DerivedStream in order of ts, start_ts")
    assert any("MatchRecognize (A B C) within 5 s" in line for line in lines[inside:])
    assert any(line.startswith("history: 150,000 events of cars") for line in lines[inside:])
