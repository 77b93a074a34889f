"""When windows can be answered from the index, why not, and the expected cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.engines.history.windows.index import WindowIndex, replay_seconds, window_access
from eventide.instants import TimeRange
from eventide.store.options import StreamOptions
from tests.engines.history.windows.window_queries import (
    NOISE,
    WEIGHTS,
    from_index,
    from_replay,
    hop,
    planned,
    sensor,
    within,
)
from tests.store.events import new_stream, table, tiny_files


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1 s')",
            "the index has no aggregates by key",
        ),
        (
            "SELECT FIRST(speed) AS f FROM cars GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "the index has no first: first(speed) needs each event",
        ),
        (
            "SELECT STDDEV(speed) AS f FROM cars GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "the index has no stddev: stddev(speed) needs each event",
        ),
        (
            "SELECT SUM(speed * 2) AS f FROM cars GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "sum(speed * 2.0) is of an expression, and the index has only attributes",
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE speed > 3) AS f FROM cars "
            "GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "has a condition, which has to be asked of each event",
        ),
        (
            "SELECT COUNT(*) AS n FROM cars WHERE speed > 3 GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "speed > 3.0 has to be asked of each event",
        ),
        (
            "SELECT MAX(ts) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1 s')",
            "the index has no aggregates of ts",
        ),
        (
            "SELECT ts, SUM(speed) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '6 us' PRECEDING "
            "AND CURRENT ROW) s FROM cars",
            "frames are of each event, and the index has only aggregates of many",
        ),
        ("SELECT ts FROM cars", "there are no windows"),
    ],
)
def test_what_the_index_cannot_answer_is_said(tmp_path: Path, text: str, reason: str) -> None:
    snapshot = new_stream(tmp_path).snapshot()
    found = window_access(planned(snapshot, text), snapshot, WEIGHTS)
    assert isinstance(found, str)
    assert reason in found


def test_thinned_events_are_not_asked_for(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, options=StreamOptions(split_us=10))
        stream.append(table([{"ts": ts, "lane": ts} for ts in range(50)]))
        stream.flush()
        stream.thin(25, 1)
        snapshot = stream.snapshot()
        refused = window_access(planned(snapshot, hop(["count(*)"], 5, 5)), snapshot, WEIGHTS)
        assert isinstance(refused, str)
        assert "thinned to aggregates" in refused
        later = within(TimeRange(20, 100))
        plan = planned(snapshot, hop(["count(*)"], 5, 5, later))
        assert from_index(snapshot, plan).equals(from_replay(snapshot, plan))


def test_the_way_says_what_it_does(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    access = window_access(planned(snapshot, hop(["avg(speed)"], 90_000, 900)), snapshot, WEIGHTS)
    assert isinstance(access, WindowIndex)
    assert access.name == "index"
    assert access.describe() == (
        "windows of 90 ms every 900 us from the time index, reading only leaves that their ends cut"
    )


def test_long_windows_are_expected_to_pay(tmp_path: Path) -> None:
    snapshot = sensor(tmp_path, NOISE)
    plan = planned(snapshot, hop(["sum(speed)", "avg(speed)", "count(*)"], 800_000, 400_000))
    access = window_access(plan, snapshot, WEIGHTS)
    assert isinstance(access, WindowIndex)
    assert 0 < access.estimate.seconds < replay_seconds(plan, snapshot, WEIGHTS)
