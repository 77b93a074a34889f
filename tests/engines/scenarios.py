"""Arrivals and queries that every engine has to agree on, with the answers of the twins."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from eventide.schema import Schema
from tests.naive import windows as naive
from tests.naive.aggregates import aggregate
from tests.naive.windows import Event

SCHEMA = Schema.of({"car": "string", "lane": "int64", "speed": "float64"})
SECOND = 1_000_000


@dataclass(frozen=True)
class Scenario:
    """Events in the batches in which they arrive; `_seq` is their place in arrival order."""

    name: str
    batches: tuple[tuple[Event, ...], ...]
    lateness_us: int

    def events(self) -> list[Event]:
        """All events, in arrival order."""
        return [event for batch in self.batches for event in batch]

    def late(self) -> list[Event]:
        """The events behind the newest time of the batches before theirs, less the lateness."""
        late, newest = [], None
        for batch in self.batches:
            if newest is not None:
                late += [event for event in batch if event["ts"] < newest - self.lateness_us]
            newest = max([*(event["ts"] for event in batch)] + ([] if newest is None else [newest]))
        return late

    def on_time(self) -> list[Event]:
        """All others."""
        late = {event["_seq"] for event in self.late()}
        return [event for event in self.events() if event["_seq"] not in late]


def cut(events: list[Event], batches: int) -> tuple[tuple[Event, ...], ...]:
    numbered = [{**event, "_seq": number} for number, event in enumerate(events)]
    size = -(-len(numbered) // batches)
    return tuple(tuple(numbered[i : i + size]) for i in range(0, len(numbered), size))


def drive(count: int, cars: list[str | None], seed: int) -> list[Event]:
    """Readings of cars with ties, nulls, gaps without any event, and times before 1970."""
    choose = random.Random(seed)
    ts, events = -30 * SECOND, []
    for _ in range(count):
        ts += choose.choice([0, 0, 1, SECOND // 2, SECOND, 3 * SECOND])
        if choose.random() < 0.02:
            ts += 90 * SECOND
        speed = None if choose.random() < 0.1 else choose.choice([0.1, 3.3, 50.25, 1e9, -7.7])
        lane = choose.choice([1, 2, None])
        events.append({"ts": ts, "car": choose.choice(cars), "lane": lane, "speed": speed})
    return events


def shuffled(events: list[Event], reach: int, seed: int) -> list[Event]:
    """Out of order by up to `reach` places, and every fiftieth event far too late."""
    choose = random.Random(seed)
    order = sorted(range(len(events)), key=lambda i: i + choose.uniform(0, reach))
    late = [i for n, i in enumerate(order) if n % 50 == 7]
    kept = [i for n, i in enumerate(order) if n % 50 != 7]
    for i in late:
        kept.insert(min(len(kept), kept.index(min(kept, key=lambda k: abs(k - i))) + 120), i)
    return [events[i] for i in kept]


def mixed() -> Scenario:
    events = shuffled(drive(400, ["a", "b", "c", None], 1), 12, 2)
    return Scenario("mixed", cut(events, 3), 20 * SECOND)


def one_key() -> Scenario:
    return Scenario("one key", cut(shuffled(drive(300, ["a"], 3), 5, 4), 3), 15 * SECOND)


def many_keys() -> Scenario:
    cars: list[str | None] = [f"car-{i:06}" for i in range(20_000)]
    choose = random.Random(5)
    names = [*cars, *choose.choices(cars, k=4_000)]
    choose.shuffle(names)
    events: list[Event] = [
        {
            "ts": i // 3 * 1000 + choose.randrange(2 * SECOND),
            "car": name,
            "lane": i % 2,
            "speed": choose.choice([None, 10.5, 99.75]),
        }
        for i, name in enumerate(names)
    ]
    return Scenario("20,000 keys", cut(events, 3), 1 * SECOND)


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    name: cache(make)
    for name, make in {"mixed": mixed, "one_key": one_key, "many_keys": many_keys}.items()
}


@dataclass(frozen=True)
class Query:
    """A query text, and its answer from the twins."""

    text: str
    answer: Callable[[list[Event]], list[Event]]


def picked(rows: list[Event], names: list[str]) -> list[Event]:
    return [{name: row[name] for name in names} for row in rows]


def fast_readings(events: list[Event]) -> list[Event]:
    return [
        {
            "ts": e["ts"],
            "car": e["car"],
            "kmh": e["speed"] * 3.6,
            "odd": None if e["lane"] is None else e["lane"] % 2 == 1,
        }
        for e in naive.in_order(events)
        if e["speed"] is not None and (e["speed"] > 3 or e["lane"] == 2)
    ]


def average_speeds(events: list[Event]) -> list[Event]:
    aggregates = [
        ("mean", "avg", "speed"),
        ("n", "count(*)", "_seq"),
        ("spread", "stddev", "speed"),
    ]
    rows = naive.windows(events, ["car"], 10 * SECOND, 10 * SECOND, aggregates)
    return picked(rows, ["car", "window_start", "window_end", "mean", "n", "spread"])


def busy_periods(events: list[Event]) -> list[Event]:
    driving = [e for e in events if e["speed"] is not None]
    aggregates = [
        ("total", "sum", "speed"),
        ("lanes", "sum", "lane"),
        ("top", "max", "speed"),
        ("first_car", "first", "car"),
        ("last_car", "last", "car"),
        ("n", "count", "speed"),
    ]
    rows = naive.windows(driving, ["lane"], 30 * SECOND, 10 * SECOND, aggregates)
    names = ["lane", "window_end", "total", "lanes", "top", "first_car", "last_car"]
    return picked([row for row in rows if row["n"] >= 2], names)


def moving_average(events: list[Event]) -> list[Event]:
    aggregates = [("mean", "avg", "speed"), ("low", "min", "speed"), ("n", "count(*)", "_seq")]
    rows = naive.range_frames(events, ["car"], 10 * SECOND, aggregates)
    return picked(rows, ["ts", "_seq", "car", "mean", "low", "n"])


def last_three(events: list[Event]) -> list[Event]:
    aggregates = [("total", "sum", "speed"), ("before", "first", "speed"), ("lanes", "sum", "lane")]
    rows = naive.rows_frames(events, ["car"], 2, aggregates)
    return picked(rows, ["ts", "_seq", "car", "total", "before", "lanes"])


def every_third(events: list[Event]) -> list[Event]:
    aggregates = [("mean", "avg", "speed"), ("lanes", "sum", "lane"), ("lane", "last", "lane")]
    rows = naive.count_windows(events, ["car"], 5, 3, aggregates)
    return picked(rows, ["car", "window_start", "window_end", "mean", "lanes", "lane"])


def many_aggregates(events: list[Event]) -> list[Event]:
    minute, groups = 60 * SECOND, dict[tuple[str | None, int], list[Event]]()
    for event in naive.in_order(events):
        groups.setdefault((event["car"], event["ts"] // minute * minute), []).append(event)
    wanted = (
        ("middle", "median", ["speed"]),
        ("often", "mode", ["lane"]),
        ("spread", "var_pop", ["speed"]),
        ("fastest", "arg_max", ["lane", "speed"]),
        ("covariance", "covar_pop", ["lane", "speed"]),
        ("way", "array_agg", ["lane"]),
    )
    rows = []
    for (car, start), own in groups.items():
        row: Event = {"car": car, "window_end": start + minute}
        for name, function, columns in wanted:
            row[name] = aggregate(function, [tuple(each[c] for c in columns) for each in own])
        row["lanes"] = len({each["lane"] for each in own} - {None})
        row["first_lane"] = aggregate("sum", [(e["speed"],) for e in own if e["lane"] == 1])
        rows.append(row)
    return rows


def trips(events: list[Event]) -> list[Event]:
    aggregates = [("mean", "avg", "speed"), ("n", "count(*)", "_seq"), ("lane", "last", "lane")]
    rows = naive.sessions(events, ["car"], 5 * SECOND, aggregates)
    return picked(rows, ["car", "window_start", "window_end", "mean", "n", "lane"])


QUERIES = {
    "filter": Query(
        "SELECT ts, car, speed * 3.6 AS kmh, lane % 2 = 1 AS odd FROM cars "
        "WHERE speed > 3 OR (lane = 2 AND speed IS NOT NULL)",
        fast_readings,
    ),
    "tumbling": Query(
        "SELECT car, window_start, window_end, AVG(speed) AS mean, COUNT(*) AS n, "
        "STDDEV(speed) AS spread FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)",
        average_speeds,
    ),
    "hopping": Query(
        "SELECT lane, window_end, SUM(speed) AS total, SUM(lane) AS lanes, MAX(speed) AS top, "
        "FIRST(car) AS first_car, LAST(car) AS last_car FROM cars WHERE speed IS NOT NULL "
        "GROUP BY lane, HOP(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND) "
        "HAVING COUNT(speed) >= 2",
        busy_periods,
    ),
    "aggregates": Query(
        "SELECT car, window_end, MEDIAN(speed) AS middle, MODE(lane) AS often, "
        "VAR_POP(speed) AS spread, MAX_BY(lane, speed) AS fastest, "
        "COVAR_POP(lane, speed) AS covariance, ARRAY_AGG(lane) AS way, "
        "COUNT(DISTINCT lane) AS lanes, "
        "SUM(speed) FILTER (WHERE lane = 1) AS first_lane FROM cars "
        "GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)",
        many_aggregates,
    ),
    "sessions": Query(
        "SELECT car, window_start, window_end, AVG(speed) AS mean, COUNT(*) AS n, "
        "LAST(lane) AS lane FROM cars GROUP BY car, SESSION(ts, INTERVAL '5' SECOND)",
        trips,
    ),
    "sliding": Query(
        "SELECT ts, _seq, car, AVG(speed) OVER w AS mean, MIN(speed) OVER w AS low, "
        "COUNT(*) OVER w AS n FROM cars WINDOW w AS (PARTITION BY car ORDER BY ts "
        "RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW)",
        moving_average,
    ),
    "rows": Query(
        "SELECT ts, _seq, car, SUM(speed) OVER w AS total, FIRST(speed) OVER w AS before, "
        "SUM(lane) OVER w AS lanes FROM cars WINDOW w AS (PARTITION BY car ORDER BY ts, _seq "
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        last_three,
    ),
}

COUNTED = Query(
    "SELECT car, window_start, window_end, AVG(speed) AS mean, SUM(lane) AS lanes, "
    "LAST(lane) AS lane FROM cars GROUP BY car, HOP(ROWS, 3, 5)",
    every_third,
)
"""Apart from the others, because two events of a key are no window: no case for 20,000 keys."""


def as_bag(rows: list[Event], loose: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Rows in an order of their own, every value to the last bit but those of `loose` columns."""
    return sorted(
        tuple(f"{name}={shown(row[name], name in loose)}" for name in sorted(row)) for row in rows
    )


def shown(value: Any, loosely: bool) -> str:  # noqa: ANN401
    if isinstance(value, float):
        return f"{value:.12e}" if loosely else value.hex()
    return repr(value)
