"""Lists, which ARRAY_AGG makes: through derived events, standing answers, states, files, Spark."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.database import Database
from eventide.api.result import Result
from eventide.errors import BindError, SchemaError
from eventide.operators.fingerprints import fingerprints
from eventide.operators.order_rows import sorted_places
from eventide.plan.expressions import Column, OrderKey
from eventide.sinks.files import write_csv, write_json_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
ROWS = [
    {"ts": f"2026-01-01T00:00:{n:02d}", "car": "ab"[n % 2], "v": v}
    for n, v in enumerate([1.0, 2.0, None, 2.0, 1.0, NAN])
]
PAIRS = "SELECT ARRAY_AGG(car) AS cars, ARRAY_AGG(v) AS vs FROM s GROUP BY TUMBLE(ROWS, 2)"


@pytest.fixture
def db(tmp_path: Path) -> Database:
    opened = ev.open(tmp_path)
    opened.create_stream("s", {"car": "string", "v": "float64"}).append(ROWS)
    return opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT cars FROM ({PAIRS}) WHERE ts < '2026-01-01 00:00:04'", [["a", "b"]] * 2),
        (
            f"SELECT COUNT(*) AS n FROM ({PAIRS}) GROUP BY cars, TUMBLE(ts, INTERVAL '1' MINUTE)",
            [3],
        ),
        (f"SELECT COUNT(DISTINCT v) AS n FROM ({PAIRS}), UNNEST(vs) AS u(v)", [3]),
        (
            f"SELECT l FROM ({PAIRS}) MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(vs) AS l "
            "PATTERN (A A) DEFINE A AS TRUE)",
            [[1.0, 2.0]],
        ),
        (f"SELECT DISTINCT cars FROM ({PAIRS}) [RANGE 1 MINUTE]", [["a", "b"]]),
        (f"SELECT COUNT(*) AS n FROM ({PAIRS}) [RANGE 1 MINUTE] GROUP BY cars", [3]),
    ],
)
def test_a_query_around_a_list(db: Database, query: str, expected: list[Any]) -> None:
    (name,) = db.sql(query).to_arrow().column_names
    assert db.sql(query).to_arrow().column(name).to_pylist() == expected


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (f"SELECT MAX(vs) AS x FROM ({PAIRS}) [RANGE 1 MINUTE]", "max takes values"),
        (f"SELECT vs FROM ({PAIRS}) [RANGE 1 MINUTE] WHERE vs = vs", "list"),
        (f"SELECT vs FROM ({PAIRS}) [RANGE 1 MINUTE] ORDER BY vs LIMIT 1", "has no order here"),
    ],
)
def test_lists_are_not_compared(db: Database, query: str, why: str) -> None:
    with pytest.raises(BindError, match=why):
        db.sql(query)


def test_no_stream_stores_lists(db: Database) -> None:
    with pytest.raises(SchemaError, match="which no stream can hold"):
        db.create_stream("lists", pa.schema([("x", pa.list_(pa.int64()))]))


def test_lists_of_live_queries_survive_a_dump(db: Database) -> None:
    standing: list[Result] = []
    windows: list[Result] = []
    queries = [
        db.subscribe("SELECT ARRAY_AGG(v) AS x FROM s [RANGE 2 SECONDS]", standing.append),
        db.subscribe("SELECT ARRAY_AGG(v) AS x FROM s GROUP BY TUMBLE(ROWS, 3)", windows.append),
    ]
    for second, value in enumerate([1.0, None, 3.0], 10):
        db.stream("s").append([{"ts": f"2026-01-01T00:00:{second}", "car": "a", "v": value}])
        for query in queries:
            query.state = query.engine.load(query.engine.dump(query.state))
    for query in queries:
        query.finish()
    changes = [(row["x"], row["sign"]) for result in standing for row in result.rows()]
    assert changes[:3] == [([1.0], 1), ([1.0], -1), ([1.0, None], 1)]
    assert ([None, 3.0], 1) in changes
    assert [row for result in windows for row in result.rows()] == [{"x": [1.0, None, 3.0]}]


def test_files_of_text_have_lists_as_json(db: Database, tmp_path: Path) -> None:
    found = db.sql(PAIRS)
    with (tmp_path / "lists.csv").open("wb") as out:
        write_csv(found.to_arrow(), out)
    assert (tmp_path / "lists.csv").read_text().splitlines()[1:] == [
        '"[""a"", ""b""]","[1.0, 2.0]"',
        '"[""a"", ""b""]","[null, 2.0]"',
        '"[""a"", ""b""]","[1.0, ""NaN""]"',
    ]
    with (tmp_path / "lists.jsonl").open("wb") as out:
        write_json_lines(found.to_arrow(), out)
    line = (tmp_path / "lists.jsonl").read_text().splitlines()[1]
    assert line == '{"cars": ["a", "b"], "vs": [null, 2.0]}'
    assert "[null, 2]" in str(found)


def test_equal_lists_have_equal_fingerprints() -> None:
    lists = pa.array([[1.0, NAN], [1.0], None, [], [NAN, 1.0], [1.0, None], [1.0, NAN]])
    for part in (lists, lists[1:]):
        found = fingerprints([part], len(part))
        pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
        # The first list stands also at the end.
        assert len(set(pairs)) == 6
    assert found.null.tolist() == [False, True, False, False, False, False]


def test_lists_are_ordered_value_by_value() -> None:
    lists = [["b"], ["a", "b"], None, ["a"], [None], []]
    places = sorted_places([pa.array(lists)], [OrderKey(Column("x"), nulls_first=True)])
    assert [lists[place] for place in places.to_pylist()] == sorted(
        lists, key=lambda each: (each is not None, [value or "" for value in each or []])
    )


@pytest.mark.spark
def test_lists_of_times_on_spark(db: Database, spark: SparkSession) -> None:
    query = "SELECT ARRAY_AGG(ts) AS times FROM s GROUP BY TUMBLE(ROWS, 3)"
    around = f"SELECT ts, times FROM ({query}) [RANGE 1 MINUTE]"
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = ev.spark(spark, db.path).sql(query)
        assert frame.schema.simpleString() == "struct<times:array<timestamp>>"
        found = frame.toArrow().column("times").to_pylist()
        derived = ev.spark(spark, db.path).sql(around).toArrow().column("times").to_pylist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    seconds = [[at.timestamp() for at in each] for each in found]
    start = datetime.fromisoformat("2026-01-01T00:00:00Z").timestamp()
    assert sorted(seconds) == [[start, start + 1, start + 2], [start + 3, start + 4, start + 5]]
    assert sorted(derived) == sorted(found)
