"""Aggregates without a window, and rows at the ends of time, from the index: DuckDB's answers."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.history.answer import run_history
from eventide.engines.history.choice import ways
from eventide.engines.history.rest import with_plain_types
from eventide.engines.history.weights import DEFAULTS
from eventide.errors import EvaluationError, StoreError
from eventide.instants import TimeRange
from eventide.lang.sql import plan_sql
from eventide.store import Snapshot
from tests.engines.history.windows.window_queries import (
    DrawnHistory,
    histories,
    time_ranges,
    within,
)
from tests.store.events import new_stream, table, tiny_files
from tests.store.history import TYPES, History

EXTREMES = [f"{end}({name}) AS {end}_{name}" for name in TYPES for end in ("min", "max")]
COUNTS = ["count(*) AS n", *(f"count({name}) AS n_{name}" for name in TYPES)]
ENDS = ["min(ts) AS first", "max(ts) AS newest", "count(ts) AS times"]
SUMS = ["sum(lane) AS lanes", "sum(price) AS prices"]
MEANS = ["sum(speed) AS speeds", "avg(speed) AS a", "avg(lane) AS b", "avg(price) AS c"]
ROUNDED = {"speeds", "a", "b", "c"}
"""Sums of floats are exact here, and DuckDB rounds each step."""


def from_index(snapshot: Snapshot, text: str) -> pa.Table:
    """Return the answer, which no event is replayed for."""
    catalog = {snapshot.name: snapshot.schema}
    plan = plan_sql(text, catalog, indexed=catalog)
    assert ways(plan, snapshot, DEFAULTS).best.name == "index"
    return run_history(plan, {snapshot.name: snapshot})


def from_duckdb(snapshot: Snapshot, text: str) -> pa.Table:
    """Return DuckDB's answer over the rows of a stream."""
    names = ["ts", *snapshot.schema.names]
    rows = list(snapshot.scan([*names, "_seq"]))
    schema = pa.schema([snapshot.schema.arrow.field(name) for name in (*names, "_seq")])
    with duckdb.connect(":memory:") as connection:
        connection.register(snapshot.name, pa.Table.from_batches(rows, schema))
        return with_plain_types(connection.sql(text).to_arrow_table())


def check_same(found: pa.Table, expected: pa.Table) -> None:
    """Compare names, types and values, all but rounded ones to the last bit."""
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    for name in found.schema.names:
        pairs = zip(found[name].to_pylist(), expected[name].to_pylist(), strict=True)
        assert all(is_same(one, other, name in ROUNDED) for one, other in pairs), name


def is_same(one: object, other: object, rounded: bool) -> bool:
    """Whether two values are equal; NaN is, and so are the two zeros."""
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-9) if rounded else one == other
    return type(one) is type(other) and one == other


def select(items: Sequence[str], snapshot: Snapshot, where: str, rest: str = "") -> str:
    return f"SELECT {', '.join(items)} FROM {snapshot.name} {where} {rest}"


@settings(deadline=None, max_examples=40)
@given(histories, time_ranges, st.integers(0, 8))
def test_aggregates_of_any_history_are_duckdbs(
    history: DrawnHistory, times: TimeRange, steps: int
) -> None:
    chosen, values, seed = history
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        snapshot = History.new(Path(folder), chosen, values, seed, steps).stream.snapshot()
        text = select([*COUNTS, *EXTREMES, *ENDS, *SUMS, *MEANS], snapshot, within(times))
        check_same(from_index(snapshot, text), from_duckdb(snapshot, text))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.datetimes(datetime(1960, 1, 1), datetime(1972, 1, 1)), st.integers(-5, 5) | st.none()
        ),
        max_size=40,
    ),
    st.sampled_from(["year", "quarter", "month", "week"]),
    st.sampled_from(
        ["", "WHERE ts >= TIMESTAMP '1969-12-30'", "WHERE ts < TIMESTAMP '1970-01-02'"]
    ),
)
def test_parts_of_the_calendar_are_duckdbs(
    rows: list[tuple[datetime, int | None]], unit: str, where: str
) -> None:
    events: list[dict[str, object]] = [{"ts": ts, "lane": lane} for ts, lane in rows]
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream = new_stream(Path(folder))
        stream.append(table(events[::2]))
        stream.flush()
        stream.append(table(events[1::2]))
        snapshot = stream.snapshot()
        items = [f"date_trunc('{unit}', ts) AS part", "count(*) AS n", "sum(lane) AS lanes"]
        items += ["min(lane) AS low", "avg(lane) AS b"]
        text = select(items, snapshot, where, "GROUP BY part ORDER BY part")
        check_same(from_index(snapshot, text), from_duckdb(snapshot, text))


@settings(deadline=None, max_examples=40)
@given(
    histories,
    time_ranges,
    st.tuples(st.integers(0, 30), st.integers(0, 10)),
    st.sampled_from(["ORDER BY ts DESC", "ORDER BY ts", ""]),
    st.sampled_from([None, "lane = 0", "speed > 1 OR car IS NULL"]),
)
def test_rows_at_the_ends_of_any_history(
    history: DrawnHistory,
    times: TimeRange,
    limits: tuple[int, int],
    order: str,
    condition: str | None,
) -> None:
    count, offset = limits
    chosen, values, seed = history
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        snapshot = History.new(Path(folder), chosen, values, seed, steps=8).stream.snapshot()
        rest = f"{order} LIMIT {count} OFFSET {offset}"
        where = within(times)
        if condition is not None:
            where = f"{where} AND ({condition})" if where else f"WHERE {condition}"
        found = from_index(snapshot, select(["ts", "_seq", "car"], snapshot, where, rest))
        reverse = "DESC" if "DESC" in order else ""
        rest = f"ORDER BY ts {reverse}, _seq {reverse} LIMIT {count} OFFSET {offset}"
        text = select(["ts", "_seq", "car"], snapshot, where, rest)
        check_same(found, from_duckdb(snapshot, text))


@pytest.fixture
def database(tmp_path: Path) -> ev.Database:
    """Two months of events, the last of them only in the log."""
    database = ev.open(tmp_path)
    stream = database.create_stream("cars", {"car": "string", "speed": "float64", "lane": "int64"})
    begin = datetime(2026, 1, 1)
    rows = [
        {"ts": begin + timedelta(hours=hour), "car": "ab"[hour % 2], "speed": 1.5, "lane": hour}
        for hour in range(59 * 24)
    ]
    stream.append(rows[:-3])
    stream.flush()
    stream.append(rows[-3:])
    return database


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT COUNT(*) FROM cars", [{"count(*)": 1416}]),
        ("SELECT MAX(ts) AS newest FROM cars", [{"newest": datetime(2026, 2, 28, 23)}]),
        ("SELECT COUNT(*) AS n FROM cars WHERE ts >= make_timestamp(1772319600000000)", [{"n": 1}]),
        ("SELECT COUNT(*) + 1 AS n, SUM(speed) / COUNT(*) AS a FROM cars", [{"n": 1417, "a": 1.5}]),
        ("SELECT MIN(car) AS c FROM cars AS x WHERE x.ts > '2026-02-28 23:00:00'", [{"c": None}]),
        (
            "SELECT date_trunc('month', ts) AS m, COUNT(*) AS n FROM cars GROUP BY m ORDER BY m",
            [{"m": datetime(2026, 1, 1), "n": 744}, {"m": datetime(2026, 2, 1), "n": 672}],
        ),
        (
            "SELECT date_trunc('month', ts) AS m FROM cars GROUP BY 1 HAVING COUNT(*) < 700",
            [{"m": datetime(2026, 2, 1)}],
        ),
        (
            "SELECT date_trunc('day', ts) AS d, SUM(lane) AS s FROM cars GROUP BY ALL "
            "ORDER BY s DESC LIMIT 1",
            [{"d": datetime(2026, 2, 28), "s": 33_684}],
        ),
        ("SELECT lane FROM cars ORDER BY ts DESC LIMIT 2", [{"lane": 1415}, {"lane": 1414}]),
        ("SELECT lane AS l FROM cars ORDER BY ts LIMIT 1 OFFSET 2", [{"l": 2}]),
        ("SELECT lane FROM cars WHERE ts < '2026-01-02' ORDER BY ts DESC LIMIT 1", [{"lane": 23}]),
        ("SELECT lane FROM cars WHERE car = 'a' ORDER BY ts DESC LIMIT 1", [{"lane": 1414}]),
        (
            "SELECT lane FROM cars WHERE lane IN (3, 1000) ORDER BY ts DESC LIMIT 3 OFFSET 1",
            [{"lane": 3}],
        ),
        ("SELECT lane FROM cars WHERE lane < 0 LIMIT 1", []),
        ("SELECT lane FROM cars LIMIT 0", []),
        ("SELECT SUM(s) AS s FROM (SELECT ts, lane AS s FROM cars) AS x", [{"s": 1_001_820}]),
    ],
)
def test_what_the_index_answers(
    database: ev.Database, text: str, rows: list[dict[str, Any]]
) -> None:
    assert database.sql(text).to_arrow().to_pylist() == rows
    said = str(database.explain(text))
    assert "Scan cars" in said
    assert "<svg" in database.explain(text, analyze=True).svg()
    if "date_trunc('day'" not in text:  # so few events are replayed sooner
        assert "from the time index" in said or "leaves" in said
        assert "in one slice" not in said


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM cars WHERE speed > 1",
        "SELECT COUNT(*) FROM cars GROUP BY car",
        "SELECT COUNT(*) FROM cars GROUP BY car, date_trunc('month', ts)",
        "SELECT date_trunc('month', ts + INTERVAL 1 DAY) AS m FROM cars GROUP BY m",
        "SELECT COUNT(DISTINCT car), SUM(lane) FROM cars",
        "SELECT COUNT(DISTINCT ts) FROM cars",
        "SELECT COUNT(*) FILTER (WHERE lane > 3) FROM cars",
        "SELECT SUM(lane) FILTER (WHERE car = 'a') FROM cars",
        "SELECT SUM(lane + 1) FROM cars",
        "SELECT stddev(speed) FROM cars",
        "SELECT date_trunc('month', ts) AS m, MAX(ts) FROM cars GROUP BY m",
        "SELECT lane FROM cars ORDER BY lane LIMIT 3",
        "SELECT DISTINCT car FROM cars LIMIT 3",
        "SELECT lane FROM cars ORDER BY ts LIMIT 100001",
        "SELECT lane, COUNT(*) OVER (ORDER BY ts ROWS 2 PRECEDING) FROM cars LIMIT 3",
    ],
)
def test_what_needs_events_reads_them(database: ev.Database, text: str) -> None:
    said = str(database.explain(text))
    assert "in one slice" in said
    assert "from the time index" not in said
    assert database.sql(text).to_arrow().num_rows > 0


def test_inner_queries_are_answered_from_the_index_too(database: ev.Database) -> None:
    text = "SELECT lane FROM cars WHERE ts = (SELECT MAX(ts) FROM cars)"
    assert database.sql(text).to_arrow().to_pylist() == [{"lane": 1415}]
    assert "aggregates from the time index" in database.explain(text)
    text = "SELECT SUM(lane) AS s FROM (SELECT lane FROM cars ORDER BY ts DESC LIMIT 2) AS x"
    assert database.sql(text).to_arrow().to_pylist() == [{"s": 2829}]
    text = "SELECT a.n - b.n AS d FROM (SELECT COUNT(*) AS n FROM cars) a, "
    text += "(SELECT COUNT(*) AS n FROM cars WHERE ts >= '2026-02-01') b"
    assert database.sql(text).to_arrow().to_pylist() == [{"d": 744}]


def test_sums_beyond_64_bits_are_decimals_as_duckdb_has_them(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    stream.append(table([{"ts": ts, "lane": 2**62} for ts in range(3)]))
    snapshot = stream.snapshot()
    text = select(["sum(lane) AS lanes", "count(*) AS n"], snapshot, "")
    found = from_index(snapshot, text)
    assert found["lanes"].to_pylist() == [Decimal(3 * 2**62)]
    check_same(found, from_duckdb(snapshot, text))
    with pytest.raises(EvaluationError, match=r"sum\(lane\) does not fit"):
        from_index(snapshot, select(["sum(lane) - 1 AS less"], snapshot, ""))


def test_thinned_events_count_unless_a_period_cuts_them(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(60)]))
        stream.flush(seal=True)
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(60, 70)]))
        assert stream.thin(60, 1) > 0
        snapshot = stream.snapshot()
        whole = from_index(snapshot, select(["count(*) AS n", "max(lane) AS top"], snapshot, ""))
        assert whole.to_pylist() == [{"n": 70, "top": 69}]
        first = from_index(snapshot, select(["min(ts) AS first"], snapshot, ""))
        assert first["first"].cast(pa.int64()).to_pylist() == [0]
        rest = "ORDER BY ts DESC LIMIT 2"
        assert from_index(snapshot, select(["lane"], snapshot, "", rest))["lane"].to_pylist() == [
            69,
            68,
        ]
        for items in (["count(*) AS n"], ["max(ts) AS newest"]):
            text = select(items, snapshot, f"WHERE {at('<', 4)}")
            with pytest.raises(StoreError, match="thinned to aggregates"):
                from_index(snapshot, text)
        with pytest.raises(StoreError, match="thinned to aggregates"):
            from_index(snapshot, select(["lane"], snapshot, "", "ORDER BY ts LIMIT 2"))


def at(comparison: str, us: int) -> str:
    return f"ts {comparison} TIMESTAMP '1970-01-01 00:00:00.{us:06}'"


def test_only_streams_with_an_index_are_planned_so() -> None:
    events = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "v": [1.0, 2.0]})
    assert ev.sql("SELECT COUNT(*) AS n FROM t", t=events).rows() == [{"n": 2}]
    assert ev.sql("SELECT v FROM t ORDER BY ts DESC LIMIT 1", t=events).rows() == [{"v": 2.0}]


def test_parts_of_time_run_live_as_windows_and_all_of_time_does_not(
    database: ev.Database,
) -> None:
    text = "SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM cars GROUP BY h"
    assert "live: yes" in database.explain(text)
    found: list[dict[str, Any]] = []
    database.subscribe(text, lambda rows: found.extend(rows.to_arrow().to_pylist()))
    database.stream("cars").append(
        [{"ts": datetime(2026, 3, 1, hour), "car": "a", "speed": 0.0, "lane": 0} for hour in (1, 2)]
    )
    database.wait()
    assert found == [{"h": datetime(2026, 3, 1, 1), "n": 1}]
    for endless in ("SELECT COUNT(*) FROM cars", "SELECT * FROM cars ORDER BY ts LIMIT 1"):
        assert "live: no, this query needs all events" in database.explain(endless)
        with pytest.raises(ev.EventideError, match="needs all events, and a stream has no end"):
            database.subscribe(endless, print)
