"""Sums of floats are rounded once, whichever way windows are answered."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.history.windows import count_index, index
from eventide.engines.live.engine import LiveEngine
from eventide.instants import TimeRange
from eventide.lang.sql import plan_sql
from eventide.schema import Schema
from eventide.store import Snapshot
from eventide.store.reading import exact
from tests.engines.history.windows.window_queries import (
    by_count,
    from_index,
    hop,
    plain,
    planned,
    within,
)
from tests.engines.live.arriving import lived
from tests.exploring import EXPLORING
from tests.naive import aggregates as naive_aggregates
from tests.naive import windows as naive
from tests.store.events import new_stream, tiny_files

SCHEMA = Schema.of({"speed": "float64"})
ISSUE = (1e200, 1e100, 1.0, -1e200, -1e100, 2.0)
HUGE = (1.7e308, -1.7e308, 1e300, -1e300, 3.0, 0.1)
TINY = (1e-200, 1e-230, -1e-200, -1e-230, 3e-250, 5e-324)
HALVES = (1.0, 2.0**-53, 2.0**-106, -(2.0**-106), -1.0, 2.0**-53)
ENDLESS = (float("inf"), float("nan"), float("-inf"), *ISSUE, *HUGE)
MIXTURES: dict[str, Any] = {
    "that of the definition": lambda _, count: np.resize(ISSUE, count),
    "shuffled": lambda random, count: random.choice(ISSUE, count),
    "huge": lambda random, count: random.choice(HUGE, count),
    "tiny": lambda random, count: random.choice(TINY, count),
    "halves": lambda random, count: random.choice(HALVES, count),
    "all sizes": lambda random, count: (
        random.choice([-1.0, 1.0], count) * 10.0 ** random.uniform(-300, 300, count)
    ),
    "of few sizes": lambda random, count: (
        random.normal(0, 1, count) * random.choice([1.0, 1e16, 1e32, 1e48], count)
    ),
    "that cancel": lambda random, count: np.resize(
        np.stack([part := random.normal(0, 1, count // 2 + 1) * 1e20, -part], axis=1).ravel(), count
    ),
    "even": lambda random, count: random.random(count),
    "endless": lambda random, count: np.where(
        random.random(count) < 0.01, random.choice(ENDLESS, count), random.choice(ISSUE, count)
    ),
}
COUNT = 240
TIMES = 3 if EXPLORING else 1
SEEDS = [
    (mixture, TIMES * place + n) for place, mixture in enumerate(MIXTURES) for n in range(TIMES)
]
drawn = pytest.mark.parametrize(("mixture", "seed"), SEEDS)
"""Each mixture with other windows."""
Rows = list[dict[str, Any]]
SUMS = (("a0", "sum", "speed"), ("a1", "avg", "speed"), ("a2", "count", "speed"))
CALLS = ["sum(speed)", "avg(speed)", "count(speed)"]


def events_of(mixture: str, seed: int) -> Rows:
    """Events that mostly come in order; some values are null, some times equal."""
    random = np.random.default_rng(seed)
    values = MIXTURES[mixture](random, COUNT)
    times = np.cumsum(random.integers(0, 4, COUNT))
    late = random.random(COUNT) < 0.02
    times = np.where(late, random.integers(0, times[-1] + 1, COUNT), times)
    speeds = [None if gone else float(value) for value, gone in zip(values, late, strict=True)]
    return [
        {"ts": ts, "speed": speed, "_seq": number}
        for number, (ts, speed) in enumerate(zip(times.tolist(), speeds, strict=True))
    ]


def stored(folder: Path, events: Rows) -> Snapshot:
    """A stream in leaves of some rows, the last of its events in memory."""
    stream = new_stream(folder, schema=SCHEMA)
    for first in range(0, COUNT, 60):
        part = pa.Table.from_pylist(events[first : first + 60], schema=SCHEMA.arrow)
        stream.append(part.drop_columns("_seq"))
        if first < COUNT - 60:
            stream.flush()
    return stream.snapshot()


def same(found: Rows, expected: Rows) -> bool:
    def spelled(rows: Rows) -> list[str]:
        return sorted(str(sorted(row.items())).replace("-0.0)", "0.0)") for row in rows)

    return spelled(found) == spelled(expected)


def inside(events: Rows, times: TimeRange) -> Rows:
    return [event for event in events if times.start_us <= event["ts"] < times.end_us]


@dataclass(frozen=True)
class Drawn:
    """Windows and a time range, drawn from a seed."""

    size: int
    slide: int
    times: TimeRange

    @classmethod
    def of(cls, seed: int) -> Drawn:
        random = np.random.default_rng(seed)
        start, length = int(random.integers(-10, 200)), int(random.integers(50, 400))
        times = TimeRange(start, start + length)
        return cls(int(random.integers(1, 80)), int(random.integers(9, 90)), times)


@pytest.fixture(autouse=True)
def rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naive, "exact_sum", naive_aggregates.total)


@drawn
def test_windows_from_the_index(mixture: str, seed: int) -> None:
    events, windows = events_of(mixture, seed), Drawn.of(seed)
    size, slide, times = windows.size, windows.slide, windows.times
    asked = inside(events, times)
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        snapshot = stored(Path(folder), events)
        for text, twin in ((hop, naive.windows), (by_count, naive.count_windows)):
            for step in (slide, size):
                plan = planned(snapshot, text(CALLS, size, step, within(times)))
                found = plain(from_index(snapshot, plan))
                assert same(found, twin(asked, [], size, step, SUMS)), (text, size, step)


@drawn
def test_many_windows_in_threads(mixture: str, seed: int) -> None:
    events = events_of(mixture, seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        tiny_files(),
        pytest.MonkeyPatch.context() as patch,
    ):
        for module in (index, count_index):
            patch.setattr(module, "LEAST_WINDOWS", 1)
            patch.setattr(module, "THREADS", 3)
        # Periods are never read together.
        patch.setattr(exact, "LEAF_ROWS", 0)
        snapshot = stored(Path(folder), events)
        for text, twin in ((hop, naive.windows), (by_count, naive.count_windows)):
            plan = planned(snapshot, text(CALLS, 40, 11))
            found = plain(from_index(snapshot, plan))
            assert same(found, twin(events, [], 40, 11, SUMS)), text


@drawn
def test_periods_of_a_stream(mixture: str, seed: int) -> None:
    events, times = events_of(mixture, seed), Drawn.of(seed).times
    hours = [{**event, "ts": event["ts"] * 60_000_000} for event in events]
    hour = 3_600_000_000
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        db = ev.open(Path(folder))
        stream = db.create_stream("s", {"speed": "float64"})
        stream.append(pa.Table.from_pylist(hours, schema=SCHEMA.arrow).drop_columns("_seq"))
        stream.split()
        wide = TimeRange(times.start_us * 60_000_000, times.end_us * 60_000_000)
        asked = inside(hours, wide)
        expected = naive.computed(asked, [("sum(speed)", "sum", "speed")])
        start, end = (np.datetime64(us, "us").item() for us in (wide.start_us, wide.end_us))
        found = stream.aggregate("sum(speed)", start=start, end=end).rows()
        assert same(found, [expected])
        where = f"WHERE ts >= TIMESTAMP '{start}' AND ts < TIMESTAMP '{end}'"
        text = f"SELECT SUM(speed) AS a0, AVG(speed) AS a1, COUNT(speed) AS a2 FROM s {where}"
        assert same(db.sql(text).rows(), [naive.computed(asked, SUMS)])
        by_hour = naive.windows(hours, [], hour, hour, SUMS)
        text = "SELECT SUM(speed) AS a0, AVG(speed) AS a1, COUNT(speed) AS a2 FROM s GROUP BY {}"
        grouped = db.sql(text.format("date_trunc('hour', ts)")).rows()
        columns = [{name: row[name] for name in ("a0", "a1", "a2")} for row in by_hour]
        assert same(grouped, columns)
        every = stream.aggregate("sum(speed)", "avg(speed)", "count(speed)", every="1 h").rows()
        named = [tuple(row.values())[-3:] for row in every if row["count(speed)"]]
        assert sorted(map(str, named)) == sorted(
            str(tuple(row.values())) for row in columns if row["a2"]
        )
        session = "SESSION(ts, INTERVAL '3' MINUTE)"
        expected_rows = [
            {name: row[name] for name in ("a0", "a1", "a2")}
            for row in naive.sessions(hours, [], 180_000_000, SUMS)
        ]
        assert same(db.sql(text.format(session)).rows(), expected_rows)


@drawn
def test_live_windows(mixture: str, seed: int) -> None:
    events, schemas, windows = events_of(mixture, seed), {"cars": SCHEMA}, Drawn.of(seed)
    size, slide = windows.size, windows.slide
    for text, twin in ((hop, naive.windows), (by_count, naive.count_windows)):
        plan = plan_sql(text(CALLS, size, slide), schemas)
        engine = LiveEngine.of(plan, schemas, 10**9)
        steps = [{"cars": events[first : first + 40]} for first in range(0, COUNT, 40)]
        live = lived(engine, steps, schemas)
        assert not live.late
        assert same(live.rows, twin(events, [], size, slide, SUMS)), text
