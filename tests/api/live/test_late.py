"""Late events by window, as users ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventide.errors import PlanError, UnsupportedError
from tests.api.live.test_wall_time import SECOND, Following, append, opened, over_history

COUNTS = """SELECT window_start, COUNT(*) AS n, ARRAY_AGG(v) AS vs FROM s
    GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"""


def test_late_events_are_taken_while_their_window_is_open(tmp_path: Path) -> None:
    db = opened(tmp_path)
    rows: list[dict[str, Any]] = []
    live = db.subscribe(COUNTS, lambda result: rows.extend(result.rows()), late="window")
    append(db, "s", (3, "a", 1), (9, "a", 4))
    append(db, "s", (1, "a", 0), (5, "a", 2))  # late by the watermark of 9 s
    append(db, "s", (8, "a", 3))
    assert live.late_count == 0
    append(db, "s", (12, "a", 5))
    live.wait()
    assert [(row["n"], row["vs"]) for row in rows] == [(5, [0, 1, 2, 3, 4])]
    append(db, "s", (9.5, "a", 9), (11, "a", 6), (7, "a", 9))
    assert live.late_counts == {"s": 2}
    assert [row["ts"].second for row in live.late().rows()] == [9, 7]  # as they came
    live.finish()
    assert [row["vs"] for row in rows][1:] == [[6, 5]]


def test_after_a_silence_windows_that_are_open_take_what_comes(tmp_path: Path) -> None:
    db = opened(tmp_path)
    live = Following(db, COUNTS, late="window")
    append(db, "s", (1, "a", 1))
    live.clock.advance("8 s")
    append(db, "s", (2, "a", 2))  # behind 9 s, where time is by the clock
    assert live.query.watermark_us == 9 * SECOND
    assert live.query.late_count == 0
    live.clock.advance("6 s")
    assert live.rows() == over_history(db, COUNTS)
    append(db, "s", (3, "a", 3))
    assert live.query.late_count == 1


def test_a_query_that_begins_with_history_takes_late_events_too(tmp_path: Path) -> None:
    db = opened(tmp_path)
    append(db, "s", (1, "a", 1), (14, "a", 3), (19, "a", 5))
    rows: list[dict[str, Any]] = []
    live = db.subscribe(
        COUNTS, lambda result: rows.extend(result.rows()), late="window", from_history=True
    )
    append(db, "s", (16, "a", 4), (12, "a", 2), (9, "a", 0))
    append(db, "s", (20, "a", 6))
    live.wait()
    assert [row["vs"] for row in rows] == [[2, 3, 4, 5]]
    assert live.late_count == 1


def test_windows_of_two_lengths_over_one_stream(tmp_path: Path) -> None:
    """An event is late if no window takes it; it counts in those that are open."""
    db = opened(tmp_path)
    text = """SELECT a.n, b.n AS m FROM
        (SELECT COUNT(*) AS n, 1 AS one FROM s GROUP BY TUMBLE(ts, INTERVAL '5' SECOND))
            [RANGE 1 MINUTE] AS a
        JOIN (SELECT COUNT(*) AS n, 1 AS one FROM s GROUP BY TUMBLE(ts, INTERVAL '20' SECOND))
            [RANGE 1 MINUTE] AS b ON a.one = b.one"""
    live = db.subscribe(text, late="window")
    append(db, "s", (1, "a", 1), (12, "a", 1))
    append(db, "s", (2, "a", 1))  # [0, 5) is closed, [0, 20) is open
    assert live.late_count == 0
    append(db, "s", (21, "a", 1))
    append(db, "s", (3, "a", 1))
    assert live.late_count == 1
    live.advance(22 * SECOND)
    assert [(row["n"], row["m"]) for row in live.current().rows()] == [(1, 3), (1, 3)]


def test_derived_streams_have_no_late_rows(tmp_path: Path) -> None:
    db = opened(tmp_path)
    db.sql("CREATE STREAM high WITH (lateness = '5 seconds') AS SELECT ts, v FROM s WHERE v > 1")
    text = COUNTS.replace("FROM s", "FROM high")
    live = Following(db, text, late="window")
    append(db, "s", (1, "a", 5), (4, "a", 2), (3, "a", 3), (12, "a", 4), (8, "a", 6))
    live.clock.advance("1 h")
    assert live.rows() == over_history(db, text)


def test_what_late_events_cannot_join_is_refused_with_what_would_work(tmp_path: Path) -> None:
    db = opened(tmp_path)
    with pytest.raises(UnsupportedError, match="cannot join a query without a window") as error:
        db.subscribe("SELECT * FROM s", late="window")
    assert 'lateness="10 s" waits for late events' in str(error.value)
    with pytest.raises(PlanError, match="late='windows' is none of"):
        db.subscribe(COUNTS, late="windows")  # type: ignore[arg-type]
    assert db.delivery.queries == []
