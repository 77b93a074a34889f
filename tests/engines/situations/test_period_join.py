"""A join by relation gives the same rows embedded and on Spark: those of the twin."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.history.situations.pairs import PeriodPairs
from eventide.errors import UnsupportedError
from eventide.operators.situations import period_join as operators
from eventide.plan.nodes import Scan
from eventide.plan.situations.allen import (
    BEFORE,
    CONTAINS,
    DURING,
    FINISHED_BY,
    MEETS,
    MET_BY,
    OVERLAPPED_BY,
    OVERLAPS,
    SHORTHANDS,
    STARTS,
    WORDS,
    mask_named,
    relation_between,
)
from eventide.plan.situations.nodes import PairKind, PeriodJoin
from eventide.plan.situations.parts import RowPeriod
from eventide.schema import TIMESTAMP
from tests.engines.engines import plain
from tests.naive.situations.period_join import join_periods

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIPS = {"car": "string", "top": "int64", "start_ts": "timestamp", "end_ts": "timestamp"}
STOPS = {"car": "string", "n": "int64", "start_ts": "timestamp", "end_ts": "timestamp"}
SHOWN = "a.car AS car, a.top AS top, b.n AS n, b.end_ts AS until"
ON = "a.car = b.car AND"

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """What stands behind `FROM trips a`, and the join that it is."""

    text: str
    mask: int
    keyed: bool = True
    kind: PairKind = "inner"
    open_ends: bool = False

    @property
    def shown(self) -> str:
        return SHOWN.split(", b.", maxsplit=1)[0] if self.kind in ("semi", "anti") else SHOWN


NINE, EARLIER = SHORTHANDS["intersects"], SHORTHANDS["precedes"]
INSIDE = f"FROM stops b WHERE {ON} "
QUERIES: dict[str, Asked] = {
    "overlaps": Asked(f"JOIN stops b ON {ON} a OVERLAPS b", OVERLAPS),
    "several": Asked(
        f"JOIN stops b ON {ON} (a MEETS b OR b DURING a OR a FINISHED BY b)",
        MEETS | CONTAINS | FINISHED_BY,
    ),
    "no key": Asked("JOIN stops b ON a starts b", STARTS, keyed=False),
    "outer": Asked(
        f"LEFT JOIN stops b ON {ON} (a DURING b OR a met_by b)", DURING | MET_BY, kind="left"
    ),
    "where": Asked(f", stops b WHERE {ON} a INTERSECTS b AND NOT a DURING b", NINE & ~DURING),
    "exists": Asked(f"WHERE EXISTS (SELECT 1 {INSIDE} b OVERLAPS a)", OVERLAPPED_BY, kind="semi"),
    "not exists": Asked(f"WHERE NOT EXISTS (SELECT * {INSIDE} b CONTAINS a)", DURING, kind="anti"),
    "open": Asked(f"JOIN stops b ON {ON} a INTERSECTS b NULLS OPEN", NINE, open_ends=True),
    "open outer": Asked(
        f"LEFT JOIN stops b ON {ON} a PRECEDES OR DURING b NULLS OPEN",
        EARLIER | DURING,
        kind="left",
        open_ends=True,
    ),
    "open not exists": Asked(
        "WHERE NOT EXISTS (SELECT 1 FROM stops b WHERE a INTERSECTS b NULLS OPEN)",
        NINE,
        keyed=False,
        kind="anti",
        open_ends=True,
    ),
}


def rows_of(number: str, seed: int) -> Rows:
    draw = random.Random(seed)
    rows: Rows = []
    for place in range(300):
        start = draw.randrange(60)
        rows.append(
            {
                "ts": place,
                "car": draw.choice(["x", "y", "z", None]),
                number: place,
                "start_ts": start,
                "end_ts": draw.choice([start + draw.randrange(-1, 9), None, start + 3]),
            }
        )
    return rows


TRIP_ROWS, STOP_ROWS = rows_of("top", 1), rows_of("n", 2)


def table_of(rows: Rows, fields: Mapping[str, str]) -> pa.Table:
    kinds = {"string": pa.string(), "int64": pa.int64(), "timestamp": pa.timestamp("us")}
    schema = pa.schema(
        [("ts", pa.timestamp("us")), *((name, kinds[kind]) for name, kind in fields.items())]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def stored(folder: Path) -> ev.Database:
    db = ev.open(folder / "db")
    db.create_stream("trips", TRIPS).append(table_of(TRIP_ROWS, TRIPS))
    db.create_stream("stops", STOPS).append(table_of(STOP_ROWS, STOPS))
    return db


def prefixed(rows: Rows, side: str) -> Rows:
    return [{f"{side}_{name}": value for name, value in row.items()} for row in rows]


def expected(query: str) -> list[str]:
    asked = QUERIES[query]
    node = PeriodJoin(
        Scan("trips"),
        Scan("stops"),
        RowPeriod("a", "a_start_ts", "a_end_ts"),
        RowPeriod("b", "b_start_ts", "b_end_ts"),
        (("a_car", "b_car"),) if asked.keyed else (),
        asked.mask,
        ("a_car", "a_top", "b_n", "b_end_ts")[: asked.shown.count(",") + 1],
        asked.kind,
        asked.open_ends,
    )
    found = join_periods(node, prefixed(TRIP_ROWS, "a"), prefixed(STOP_ROWS, "b"))
    return sorted(repr(list(row.values())) for row in found)


def bag(table: pa.Table) -> list[str]:
    assert table.schema.names == ["car", "top", "n", "until"][: len(table.schema.names)]
    return sorted(repr(list(row.values())) for row in plain(table))


def text_of(query: str) -> str:
    return f"SELECT {QUERIES[query].shown} FROM trips a {QUERIES[query].text}"


@pytest.mark.parametrize("query", QUERIES)
def test_embedded(query: str, tmp_path: Path) -> None:
    answer = expected(query)
    assert answer
    assert bag(stored(tmp_path).sql(text_of(query)).to_arrow()) == answer
    tables = {"trips": table_of(TRIP_ROWS, TRIPS), "stops": table_of(STOP_ROWS, STOPS)}
    assert bag(ev.sql(text_of(query), **tables).to_arrow()) == answer


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_spark_store(query: str, tmp_path: Path, spark: SparkSession) -> None:
    db = ev.spark(spark, stored(tmp_path).path)
    assert bag(db.sql(text_of(query)).toArrow()) == expected(query)


@pytest.mark.spark
@pytest.mark.parametrize("query", ["overlaps", "open outer", "not exists"])
def test_spark_frames(query: str, spark: SparkSession) -> None:
    frames = {
        "trips": spark.createDataFrame(table_of(TRIP_ROWS, TRIPS)).repartition(3),
        "stops": spark.createDataFrame(table_of(STOP_ROWS, STOPS)),
    }
    assert bag(ev.spark(spark).sql(text_of(query), **frames).toArrow()) == expected(query)


CHAIN = (
    "SELECT a.top, b.n, count(*) AS found, max(c.end_ts) AS until FROM trips a "
    "JOIN stops b ON a.car = b.car AND a OVERLAPS b AND b.n % 2 = 0 "
    "JOIN trips c ON c.car = b.car AND (b MEETS c OR b BEFORE c) AND c.top > a.top "
    "WHERE a.top < 200 GROUP BY a.top, b.n HAVING count(*) > 1"
)


def test_what_stands_around_and_several_joins(tmp_path: Path) -> None:
    def lasting(rows: Rows) -> Rows:
        return [
            row
            for row in rows
            if row["end_ts"] is not None and row["start_ts"] < row["end_ts"] and row["car"]
        ]

    found: dict[tuple[int, int], list[int]] = {}
    for a in lasting(TRIP_ROWS):
        for b in lasting(STOP_ROWS):
            overlap = a["start_ts"] < b["start_ts"] < a["end_ts"] < b["end_ts"]
            if a["car"] != b["car"] or not overlap or b["n"] % 2 or a["top"] >= 200:
                continue
            for c in lasting(TRIP_ROWS):
                later = b["end_ts"] <= c["start_ts"]
                if c["car"] == b["car"] and later and c["top"] > a["top"]:
                    found.setdefault((a["top"], b["n"]), []).append(c["end_ts"])
    answer = {(*key, len(ends), max(ends)) for key, ends in found.items() if len(ends) > 1}
    rows = plain(stored(tmp_path).sql(CHAIN).to_arrow())
    assert len(rows) == len(answer)
    assert {tuple(row.values()) for row in rows} == answer


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("negated", ["", "NOT "])
def test_three_periods_may_all_be_related(word: str, negated: str) -> None:
    """One relation of a side is looked up, the others are compared; none of them is lost."""
    trips, stops = TRIP_ROWS[:40], STOP_ROWS[:40]
    tables = {"trips": table_of(trips, TRIPS), "stops": table_of(stops, STOPS)}
    rows = ev.sql(
        "SELECT a.top, b.n, c.top AS other FROM trips a, stops b, trips c "
        f"WHERE a INTERSECTS b AND c INTERSECTS b AND {negated}a {word} c",
        **tables,
    ).rows()
    mask = mask_named(word) or 0
    nine, found = SHORTHANDS["intersects"], []
    periods = {
        (kind, row[number]): (row["start_ts"], row["end_ts"])
        for kind, number, side in (("trip", "top", trips), ("stop", "n", stops))
        for row in side
        if row["end_ts"] is not None and row["start_ts"] < row["end_ts"]
    }
    ends = [(key, period) for key, period in periods.items() if key[0] == "trip"]
    middle = [(key, period) for key, period in periods.items() if key[0] == "stop"]
    for (one, a), (two, b), (three, c) in product(ends, middle, ends):
        beside = relation_between(a, b) & nine and relation_between(c, b) & nine
        if beside and bool(relation_between(a, c) & mask) != bool(negated):
            found.append((one[1], two[1], three[1]))
    assert sorted(tuple(row.values()) for row in rows) == sorted(found)


#  s      0   1   2   3   4   5   6   7   8   9
#  speed  50  80  90  85  60  50  80  80  50  50     fast [1, 4)  [6, 8)
SPEEDS = [50, 80, 90, 85, 60, 50, 80, 80, 50, 50]
CARS = [{"ts": n * 1_000_000, "car": "x", "speed": float(v)} for n, v in enumerate(SPEEDS)]
LAPS = [
    {"ts": 0, "car": "x", "lap": lap, "start_ts": start * 1_000_000, "end_ts": end * 1_000_000}
    for lap, (start, end) in enumerate([(0, 5), (4, 7), (8, 9)])
]
FOUND = {
    "TPSTREAM": """TPSTREAM (PARTITION BY car DEFINE fast AS speed > 70 PATTERN fast
        WITHIN 1 MINUTE DETECT FINAL
        RETURN START(fast) AS start_ts, END(fast) AS end_ts, max(fast.speed) AS top)""",
    "MATCH_RECOGNIZE": """MATCH_RECOGNIZE (PARTITION BY car
        MEASURES FIRST(F.ts) AS start_ts, S.ts AS end_ts, MAX(F.speed) AS top
        PATTERN (F+ S) DEFINE F AS speed > 70, S AS speed <= 70)""",
}


@pytest.mark.parametrize("clause", FOUND)
def test_matches_are_sides(clause: str) -> None:
    tables = {"cars": pa.Table.from_pylist(CARS), "laps": table_of(LAPS, STOPS | {"lap": "int64"})}
    sides = [f"cars {FOUND[clause]} {{}}", f"(SELECT * FROM cars {FOUND[clause]}) {{}}"]
    for side in sides:
        text = f"SELECT a.top, b.lap FROM {side.format('a')} JOIN laps b ON a.car = b.car AND "
        during = ev.sql(f"{text} a DURING b", **tables).rows()
        assert [tuple(row.values()) for row in during] == [(90.0, 0)]
        several = ev.sql(f"{text} (b OVERLAPS a OR a MEETS b OR b MET BY a)", **tables).rows()
        assert sorted(row["lap"] for row in several) == [1, 1, 2]
        both = f"SELECT a.top, b.top AS next FROM {side.format('a')} JOIN {side.format('b')} ON "
        rows = ev.sql(f"{both} a.car = b.car AND a BEFORE b", **tables).rows()
        assert [tuple(row.values()) for row in rows] == [(90.0, 80.0)]


@pytest.mark.spark
def test_several_joins_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    db = stored(tmp_path)
    rows = plain(ev.spark(spark, db.path).sql(CHAIN).toArrow())
    assert sorted(map(repr, rows)) == sorted(map(repr, plain(db.sql(CHAIN).to_arrow())))


REREAD = f"""
    WITH p AS (SELECT {SHOWN} FROM trips a JOIN stops b ON {ON} a OVERLAPS b)
    SELECT x.n, y.top FROM p x JOIN p y ON x.top = y.n WHERE x.n > (SELECT avg(n) FROM p)"""
RECURSIVE = f"""
    WITH RECURSIVE p AS (SELECT {SHOWN} FROM trips a JOIN stops b ON {ON} a OVERLAPS b),
      r AS (SELECT 0 AS depth, 7 AS n UNION SELECT depth + 1, p.n FROM r JOIN p ON p.top = r.n
            WHERE depth < 4)
    SELECT depth, n FROM r"""


@pytest.mark.parametrize("text", [REREAD, RECURSIVE], ids=["twice", "recursive"])
def test_pairs_can_be_read_again(text: str, tmp_path: Path) -> None:
    db = stored(tmp_path)
    pairs = db.sql(text_of("overlaps")).to_arrow()
    inner = text_of("overlaps")
    assert inner in text
    with duckdb.connect() as connection:
        connection.register("pairs", pairs)
        expected_rows = connection.sql(text.replace(inner, "SELECT * FROM pairs")).fetchall()
    found = [tuple(row.values()) for row in db.sql(text)]
    assert len(found) > 3
    assert sorted(found) == sorted(expected_rows)


def test_pairs_are_joined_while_they_are_read() -> None:
    """Only a second reading makes them stay, and nothing is joined before a first."""
    starts, ends = (pa.array(each, pa.timestamp("us")) for each in ([0, 10, 20], [5, 15, 25]))
    left, right = (pa.table({f"{side}_start_ts": starts, f"{side}_end_ts": ends}) for side in "ab")
    node = PeriodJoin(
        Scan("x", tuple((name, TIMESTAMP) for name in left.column_names)),
        Scan("y", tuple((name, TIMESTAMP) for name in right.column_names)),
        RowPeriod("a", "a_start_ts", "a_end_ts"),
        RowPeriod("b", "b_start_ts", "b_end_ts"),
        (),
        BEFORE,
        ("a_start_ts", "b_start_ts"),
    )
    pairs = PeriodPairs(node, left, right)
    with patch(
        "eventide.engines.history.situations.pairs.join_periods", wraps=operators.join_periods
    ) as joining:
        readers = [pa.RecordBatchReader.from_stream(pairs) for _ in range(3)]
        assert not joining.called
        tables = [reader.read_all() for reader in readers]
        assert joining.call_count == 2
    assert pairs.rows == 3
    for table in tables:
        assert sorted(table.column(0).cast(pa.int64()).to_pylist()) == [0, 0, 10]


def test_few_of_very_many_pairs_need_not_all_be_joined() -> None:
    count = 3_000
    starts, ends = (
        pa.array(range(first, 10 * count, 10), pa.int64()).cast(pa.timestamp("us"))
        for first in (0, 5)
    )
    rows = pa.table({"ts": starts, "start_ts": starts, "end_ts": ends})
    sent: list[int] = []

    def watched(
        node: PeriodJoin, left: pa.Table, right: pa.Table, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for batch in operators.join_periods(node, left, right, schema):
            sent.append(batch.num_rows)
            yield batch

    text = "FROM x a JOIN x b ON a BEFORE b"
    every = count * (count - 1) // 2
    with (
        patch("eventide.engines.history.situations.pairs.join_periods", watched),
        patch.object(operators, "MOST_PAIRS", 10_000),
    ):
        assert ev.sql(f"SELECT count(*) AS n {text}", x=rows).rows() == [{"n": every}]
        assert sum(sent) == every
        assert max(sent) < 20_000
        sent.clear()
        assert len(ev.sql(f"SELECT a.ts {text} LIMIT 5", x=rows)) == 5
        assert sum(sent) < every / 2


def test_an_error_of_a_join_is_its_own(tmp_path: Path) -> None:
    def failing(_: int) -> pa.RecordBatch:
        message = "too many"
        raise MemoryError(message)

    with (
        patch(
            "eventide.engines.history.situations.pairs.join_periods", return_value=map(failing, [0])
        ),
        pytest.raises(MemoryError, match="too many"),
    ):
        stored(tmp_path).sql(text_of("overlaps"))


def test_explain_says_how_it_runs(tmp_path: Path) -> None:
    db = stored(tmp_path)
    shown = str(db.explain(text_of("overlaps")))
    assert "PeriodJoin a overlaps b, a_car = b_car: a_car, a_top, b_n, b_end_ts" in shown
    assert "looked up by a_car = b_car, then by search among sorted bounds" in shown
    assert "live: no, a join of periods needs all of them" in shown
    analyzed = str(db.explain(text_of("overlaps"), analyze=True))
    assert f"{len(expected('overlaps')):,} rows" in analyzed.split("a overlaps b: looked up")[1]
    assert "ways for a of eventide_0, cheapest first" in analyzed
    assert "ways for b of eventide_0, cheapest first" in analyzed


@pytest.mark.spark
def test_explain_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    db = ev.spark(spark, stored(tmp_path).path)
    shown = db.explain(text_of("overlaps"))
    assert "spark: a overlaps b: both sides shuffled once by a_car = b_car, joined in" in shown
    assert "spark: a starts b: both sides in one partition: no key" in db.explain(text_of("no key"))


def test_a_live_query_is_told_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="a stream has no end") as caught:
        stored(tmp_path).subscribe(text_of("overlaps"), lambda _: None)
    assert "TPSTREAM" in str(caught.value.hint)


@pytest.mark.spark
def test_so_is_one_over_a_spark_stream(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load()
    columns = ("'x' AS car", "timestamp AS start_ts", "timestamp AS end_ts")
    trips = rate.selectExpr("timestamp AS ts", "value AS top", *columns)
    stops = rate.selectExpr("timestamp AS ts", "value AS n", *columns)
    with pytest.raises(UnsupportedError, match="a stream has no end") as caught:
        ev.spark(spark).stream(text_of("overlaps"), trips=trips, stops=stops)
    assert "TPSTREAM" in str(caught.value.hint)
