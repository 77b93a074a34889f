"""Windows as tables: the same rows as GROUP BY TUMBLE(…), in the forms of Flink and RisingWave."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import eventide as ev
from eventide.errors import EventideError
from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.schema import Schema

SCHEMA = Schema.of({"car": "string", "speed": "float64"})
CATALOG = {"cars": SCHEMA, "trucks": SCHEMA}
ROWS: list[dict[str, Any]] = [
    {"ts": datetime(1970, 1, 1) + timedelta(seconds=n), "car": "ab"[n % 2], "speed": float(n * n)}
    for n in (-12, -3, 0, 4, 9, 11, 25, 26)
]
SIZE = "INTERVAL '10' SECOND"
SELECT = "SELECT car, window_start, window_end, MAX(speed) AS top FROM"
GROUP = "GROUP BY car, window_start, window_end"
OURS = f"{SELECT} cars GROUP BY car, "


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        (f"{SELECT} TUMBLE(cars, ts, {SIZE}) {GROUP}", f"{OURS} TUMBLE(ts, {SIZE})"),
        (
            f"{SELECT} TABLE(TUMBLE(TABLE cars, DESCRIPTOR(ts), {SIZE})) {GROUP}",
            f"{OURS} TUMBLE(ts, {SIZE})",
        ),
        (
            f"{SELECT} TABLE(TUMBLE(DATA => TABLE cars, TIMECOL => DESCRIPTOR(ts), "
            f"SIZE => {SIZE})) GROUP BY window_end, car, window_start",
            f"{OURS} TUMBLE(ts, {SIZE})",
        ),
        (
            f"{SELECT} TABLE(HOP(TABLE cars, DESCRIPTOR(ts), INTERVAL '5' SECOND, {SIZE})) {GROUP}",
            f"{OURS} HOP(ts, INTERVAL '5' SECOND, {SIZE})",
        ),
        (
            f"{SELECT} hop(cars, ts, INTERVAL '5' SECOND, {SIZE}) {GROUP}",
            f"{OURS} HOP(ts, INTERVAL '5' SECOND, {SIZE})",
        ),
        (f"{SELECT} SESSION(cars, ts, {SIZE}) {GROUP}", f"{OURS} SESSION(ts, {SIZE})"),
        (
            f"{SELECT} TABLE(SESSION(TABLE cars PARTITION BY car, DESCRIPTOR(ts), {SIZE})) {GROUP}",
            f"{OURS} SESSION(ts, {SIZE})",
        ),
        (
            f"SELECT w.car, w.window_start, w.window_end, MAX(w.speed) AS top "
            f"FROM TUMBLE(cars, ts, {SIZE}) AS w WHERE w.speed > 1 "
            "GROUP BY w.car, w.window_start, w.window_end",
            f"{SELECT} cars WHERE speed > 1 GROUP BY car, TUMBLE(ts, {SIZE})",
        ),
        (
            f"{SELECT} TUMBLE((SELECT ts AS t, car, speed FROM cars WHERE speed > 1), t, {SIZE}) "
            f"{GROUP}",
            f"{SELECT} cars WHERE speed > 1 GROUP BY car, TUMBLE(ts, {SIZE})",
        ),
        (
            "WITH c AS (SELECT ts AS dateTime, car, speed FROM cars) "
            f"{SELECT} TABLE(TUMBLE(TABLE c, DESCRIPTOR(dateTime), {SIZE})) {GROUP}",
            f"{OURS} TUMBLE(ts, {SIZE})",
        ),
        (
            f"SELECT car, SESSION_START(ts, {SIZE}) AS a, SESSION_END(ts, {SIZE}) AS z "
            f"FROM cars GROUP BY car, SESSION(ts, {SIZE})",
            f"SELECT car, window_start AS a, window_end AS z FROM cars "
            f"GROUP BY car, SESSION(ts, {SIZE})",
        ),
        (
            f"SELECT tumble_end(ts, {SIZE}) AS z, COUNT(*) AS `number of cars` FROM cars "
            f"GROUP BY TUMBLE(ts, {SIZE})",
            f'SELECT window_end AS z, COUNT(*) AS "number of cars" FROM cars '
            f"GROUP BY TUMBLE(ts, {SIZE})",
        ),
    ],
)
def test_a_window_as_a_table_is_a_window(text: str, ours: str) -> None:
    assert explain(plan_sql(text, CATALOG)) == explain(plan_sql(ours, CATALOG))


def test_rows_with_the_bounds_of_their_windows() -> None:
    text = (
        f"SELECT ts, window_start, window_end, speed FROM TUMBLE(cars, ts, {SIZE}) WHERE speed > 9"
    )
    rows = ev.sql(text, cars=ROWS).rows()
    assert [row["ts"] for row in rows] == [row["ts"] for row in ROWS if row["speed"] > 9]
    for row in rows:
        assert row["window_start"] <= row["ts"] < row["window_end"]
        assert row["window_end"] - row["window_start"] == timedelta(seconds=10)
        assert (row["window_start"] - datetime(1970, 1, 1)) % timedelta(seconds=10) == timedelta()
    assert "Relational" not in explain(plan_sql(text, CATALOG))


def test_windows_of_two_streams_are_joined_by_their_bounds() -> None:
    text = f"""SELECT a.car, b.speed FROM TUMBLE(cars, ts, {SIZE}) a
               JOIN TUMBLE(trucks, ts, {SIZE}) b
               ON a.window_start = b.window_start AND a.car = b.car AND a.ts < b.ts"""
    rows = ev.sql(text, cars=ROWS, trucks=ROWS).rows()
    assert rows == [{"car": "a", "speed": 16.0}]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (f"SELECT * FROM TUMBLE(cars, {SIZE})", "cannot read TUMBLE as a table", "TUMBLE"),
        ("SELECT * FROM TUMBLE(cars, ts)", "cannot read TUMBLE as a table", "TUMBLE"),
        (f"SELECT * FROM HOP(cars, ts, {SIZE})", "cannot read HOP as a table", "HOP"),
        (f"SELECT * FROM TUMBLE(cars, ts, {SIZE}, {SIZE})", "cannot read TUMBLE", "TUMBLE"),
        (f"SELECT * FROM CUMULATE(cars, ts, {SIZE}, {SIZE})", "there is no CUMULATE", "CUMULATE"),
        (f"SELECT * FROM TABLE(TUMBLE(cars, ts, {SIZE})", "expected )", None),
        (f"SELECT * FROM SESSION(cars, ts, {SIZE})", "SESSION as a table without a GROUP BY", None),
        (f"{SELECT} TUMBLE(cars, car, {SIZE}) {GROUP}", "TUMBLE goes over ts", "car"),
        (f"SELECT HOP_START(ts, {SIZE}) FROM cars", "HOP_START without the same HOP", None),
        (
            f"SELECT TUMBLE_START(ts, INTERVAL '1' SECOND) FROM cars GROUP BY TUMBLE(ts, {SIZE})",
            "TUMBLE_START without the same TUMBLE",
            None,
        ),
    ],
)
def test_errors_say_where(text: str, message: str, place: str | None) -> None:
    with pytest.raises(EventideError) as failure:
        plan_sql(text, CATALOG)
    assert message in failure.value.message
    assert failure.value.span is not None
    if place is not None:
        assert failure.value.span.of(text) == place
    assert failure.value.hint
