"""What a query that begins with history reads of it."""

from __future__ import annotations

import pytest

from eventide.engines.standing.reach import needed_ranges
from eventide.instants import ALL_TIME
from eventide.lang.sql import plan_sql
from eventide.schema import Schema

SECOND = 1_000_000
CATALOG = {"cars": Schema.of({"car": "string", "speed": "float64"})}
WINDOWS = "SELECT car, COUNT(*) FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)"
AVERAGE = "AVG(speed) OVER (ORDER BY ts RANGE INTERVAL '3' SECOND PRECEDING) AS mean"
FRAME = f"SELECT ts, {AVERAGE} FROM cars WHERE speed > 1"
COUNTED = "SELECT car, COUNT(*) FROM cars GROUP BY car, TUMBLE(ROWS, 10)"
SESSIONS = "SELECT car, COUNT(*) FROM cars GROUP BY car, SESSION(ts, INTERVAL '10' SECOND)"
ONE_BEFORE = "SELECT LAG(speed) OVER (ORDER BY ts) AS before FROM cars"
OF_QUERY = f"SELECT MAX(mean) FROM ({FRAME}) GROUP BY TUMBLE(ts, INTERVAL '5' SECOND)"


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("SELECT car FROM cars WHERE speed > 1", 0),
        (WINDOWS, 10),
        (FRAME, 3),
        (OF_QUERY, 8),
    ],
)
def test_no_more_is_read_than_the_state_reaches_back(query: str, seconds: int) -> None:
    plan = plan_sql(query, CATALOG)
    (read,) = needed_ranges(plan, 60 * SECOND - 1, continuing=True)
    assert read.start_us == (60 - seconds) * SECOND
    assert read.end_us == ALL_TIME.end_us


@pytest.mark.parametrize("query", [COUNTED, SESSIONS, ONE_BEFORE])
def test_what_may_be_of_any_age_is_read(query: str) -> None:
    assert needed_ranges(plan_sql(query, CATALOG), 60 * SECOND, continuing=True) == (ALL_TIME,)
