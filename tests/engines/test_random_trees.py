"""Queries over queries over queries, drawn at random: the rows of the twins, one after another."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.live.engine import LiveEngine
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import situations_of
from eventide.plan.situations.nodes import Situations
from tests.engines import engines
from tests.engines.compositions import (
    SCHEMAS,
    SECOND,
    VALUE,
    Streams,
    arrivals,
    as_events,
    later,
    matched,
    without,
)
from tests.engines.live.arriving import in_pieces, lived
from tests.engines.scenarios import as_bag
from tests.naive import windows as naive
from tests.naive.situations.runs import naive_situations
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPTH = 4
LATENESS_US = 300 * SECOND
"""More than any event is behind those that came before it."""

Events = Callable[[Streams], list[Event]]


@dataclass(frozen=True)
class Query:
    """A query with the columns `car` and `value`, and its rows as events, in their order."""

    text: str
    events: Events


def cars(_: random.Random) -> Query:
    def events(streams: Streams) -> list[Event]:
        rows = sorted(streams["cars"], key=lambda row: (row["ts"], row["_seq"]))
        return [{"ts": r["ts"], "car": r["car"], "value": r["speed"]} for r in rows]

    return Query("SELECT car, speed AS value FROM cars", events)


def trucks(_: random.Random) -> Query:
    def events(streams: Streams) -> list[Event]:
        rows = sorted(streams["trucks"], key=lambda row: (row["ts"], row["_seq"]))
        values = [None if row["load"] is None else float(row["load"]) for row in rows]
        return [
            {"ts": row["ts"], "car": row["car"], "value": value}
            for row, value in zip(rows, values, strict=True)
        ]

    return Query("SELECT car, CAST(load AS DOUBLE) AS value FROM trucks", events)


def numbered(rows: Sequence[Event]) -> list[Event]:
    return [{**row, "_seq": place} for place, row in enumerate(rows)]


def tumbling(below: Query, choose: random.Random) -> Query:
    function, seconds = choose.choice(["max", "min", "last"]), choose.choice([2, 5, 15])
    keys = choose.choice([["car"], []])
    car = "car" if keys else "'all' AS car"

    def events(streams: Streams) -> list[Event]:
        size = seconds * SECOND
        aggregates = [("value", function, "value")]
        rows = naive.windows(numbered(below.events(streams)), keys, size, size, aggregates)
        timed = [
            {"car": "all", **row, "ts": row["window_end"], "start_ts": row["window_start"]}
            for row in rows
        ]
        ordered = as_events(timed, "start_ts", *keys)
        return without(ordered, "window_start", "window_end", "_seq", "start_ts")

    group = ", ".join([*keys, f"TUMBLE(ts, INTERVAL '{seconds}' SECOND)"])
    text = f"SELECT {car}, {function.upper()}(value) AS value FROM ({below.text}) GROUP BY {group}"
    return Query(text, events)


PATTERNS = [
    "PATTERN (A B) DEFINE B AS value > PREV(value)",
    "PATTERN (A B+ C) DEFINE B AS value > PREV(value), C AS value <= PREV(value)",
    "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B? C) DEFINE A AS value > 30, C AS value <= 60",
]


def matching(below: Query, choose: random.Random) -> Query:
    pattern = choose.choice(PATTERNS)
    keys = choose.choice(["PARTITION BY car ", ""])
    car = "" if keys else "LAST(car) AS car, "
    clause = "MATCH_RECOGNIZE ({}ORDER BY ts MEASURES {}LAST(value) AS value{} {})"
    times = ", LAST(ts) AS ts, FIRST(ts) AS start_ts, MATCH_NUMBER() AS number"

    def events(streams: Streams) -> list[Event]:
        asked = clause.format(keys, car, times, pattern)
        rows = matched(asked, VALUE, numbered(below.events(streams)))
        order = ["start_ts", "car", "number"] if keys else ["start_ts", "number"]
        return without(as_events(rows, *order), "number", "start_ts", "_seq")

    text = f"SELECT car, value FROM ({below.text}) AS q {clause.format(keys, car, '', pattern)}"
    return Query(text, events)


def framed(below: Query, choose: random.Random) -> Query:
    preceding = choose.choice([1, 3])

    def events(streams: Streams) -> list[Event]:
        given = numbered(below.events(streams))
        rows = naive.rows_frames(given, ["car"], preceding, [("most", "max", "value")])
        ordered = sorted(rows, key=lambda row: row["_seq"])
        return [{"ts": r["ts"], "car": r["car"], "value": r["most"]} for r in ordered]

    over = f"PARTITION BY car ORDER BY ts ROWS BETWEEN {preceding} PRECEDING AND CURRENT ROW"
    return Query(f"SELECT car, MAX(value) OVER ({over}) AS value FROM ({below.text})", events)


def ahead(below: Query, choose: random.Random) -> Query:
    count = choose.choice([1, 2])

    def events(streams: Streams) -> list[Event]:
        rows = later(numbered(below.events(streams)), "value", count)
        return [{"ts": r["ts"], "car": r["car"], "value": r["later"]} for r in rows]

    over = f"LEAD(value, {count}) OVER (PARTITION BY car ORDER BY ts)"
    return Query(f"SELECT car, {over} AS value FROM ({below.text})", events)


def counted(below: Query, _: random.Random) -> Query:
    def events(streams: Streams) -> list[Event]:
        rows, counts, found = below.events(streams), dict[object, int](), list[Event]()
        for row in rows:
            counts[row["car"]] = counts.get(row["car"], 0) + 1
            found.append({**row, "value": float(counts[row["car"]])})
        return found

    number = "ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts)"
    return Query(f"SELECT car, CAST({number} AS DOUBLE) AS value FROM ({below.text})", events)


def situated(below: Query, _: random.Random) -> Query:
    clause = "SITUATIONS (PARTITION BY car DEFINE high AS value > 50 RETURN MAX(value) AS value)"

    def events(streams: Streams) -> list[Event]:
        node = situations_of(plan_sql(f"SELECT * FROM s {clause}", {"s": VALUE}))
        assert isinstance(node, Situations)
        rows = naive_situations(node, numbered(below.events(streams)))
        timed = [{**row, "ts": row["end_ts"]} for row in rows]
        ordered = as_events(timed, "start_ts", "car", "situation")
        return [{"ts": r["ts"], "car": r["car"], "value": r["value"]} for r in ordered]

    return Query(f"SELECT car, value FROM ({below.text}) AS q {clause}", events)


def windowed(below: Query, choose: random.Random) -> Query:
    """The rows that come into a window in brackets."""
    seconds = choose.choice([1, 5])

    def events(streams: Streams) -> list[Event]:
        rows = [row for row in below.events(streams) if row["value"] is not None]
        return without(as_events([r for r in rows if r["value"] > 20], "car", "value"), "_seq")

    inner = f"SELECT q.car, q.value FROM ({below.text}) [RANGE {seconds} SECONDS] AS q"
    return Query(f"SELECT car, value FROM ISTREAM ({inner} WHERE q.value > 20)", events)


def growing(below: Query, _: random.Random) -> Query:
    """The changes of an answer that is kept up: the greatest value of each car so far."""

    def events(streams: Streams) -> list[Event]:
        rows, most, found = below.events(streams), dict[object, float | None](), list[Event]()
        for ts in sorted({row["ts"] for row in rows}):
            before = dict(most)
            for row in (each for each in rows if each["ts"] == ts):
                known = [v for v in (most.get(row["car"]), row["value"]) if v is not None]
                most[row["car"]] = max(known, default=None)
            changed = [car for car in most if car not in before or before[car] != most[car]]
            found += [{"ts": ts, "car": car, "value": most[car]} for car in changed]
        return without(as_events(found, "car", "value"), "_seq")

    inner = f"SELECT q.car, MAX(q.value) AS value FROM ({below.text}) [RANGE UNBOUNDED] AS q"
    return Query(f"SELECT car, value FROM ISTREAM ({inner} GROUP BY q.car)", events)


def computed(below: Query, choose: random.Random) -> Query:
    least, factor = choose.choice([10, 40]), choose.choice([1, 2])

    def events(streams: Streams) -> list[Event]:
        kept = (row for row in below.events(streams) if row["value"] is not None)
        return [{**r, "value": r["value"] * factor - 1} for r in kept if r["value"] >= least]

    text = f"SELECT car, value * {factor} - 1 AS value FROM ({below.text}) WHERE value >= {least}"
    return Query(text, events)


def united(first: Query, second: Query) -> Query:
    def events(streams: Streams) -> list[Event]:
        arms = (first.events(streams), second.events(streams))
        rows = [
            {**row, "arm": arm, "place": place}
            for arm, own in enumerate(arms)
            for place, row in enumerate(own)
        ]
        return without(as_events(rows, "arm", "place"), "arm", "place", "_seq")

    return Query(f"{first.text} UNION ALL {second.text}", events)


OPERATORS = [
    tumbling,
    matching,
    framed,
    ahead,
    counted,
    situated,
    windowed,
    growing,
    computed,
]


def drawn(choose: random.Random, depth: int) -> Query:
    """A query of at most this depth: an operator over a stream, a query, or a union of two."""
    if depth == 0 or choose.random() < 0.1:
        return choose.choice([cars, trucks])(choose)
    below = drawn(choose, depth - 1)
    if choose.random() < 0.25:
        below = united(below, drawn(choose, depth - 1))
    return choose.choice(OPERATORS)(below, choose)


def tables(streams: Streams) -> dict[str, pa.Table]:
    return {
        name: pa.Table.from_pylist(list(events), schema=SCHEMAS[name].arrow)
        for name, events in streams.items()
    }


def tree(choose: random.Random) -> Query:
    """A query of the full depth at most, or a union of two."""
    query = choose.choice(OPERATORS)(drawn(choose, DEPTH - 1), choose)
    return united(query, drawn(choose, DEPTH - 1)) if choose.random() < 0.2 else query


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_trees_over_history_and_live(seed: int) -> None:
    choose = random.Random(seed)
    query, streams = tree(choose), arrivals(seed, 80)
    expected = as_bag(without(query.events(streams), "ts"))
    found = engines.plain(ev.sql(query.text, **tables(streams)).to_arrow())
    assert as_bag(found) == expected, query.text
    engine = LiveEngine.of(plan_sql(query.text, SCHEMAS), SCHEMAS, LATENESS_US)
    live = lived(engine, in_pieces(streams, choose), SCHEMAS)
    assert not live.late
    assert as_bag(live.rows) == expected, query.text


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(4))
def test_trees_in_a_spark_job(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """Both streams are DataFrames in several partitions, in no order."""
    query, streams = tree(random.Random(seed)), arrivals(seed, 80)
    frames = {}
    for name, table in tables(streams).items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        frames[name] = spark.read.parquet(str(tmp_path / f"{name}.parquet")).repartition(3)
    found = engines.collected(ev.spark(spark).sql(query.text, **frames))
    assert as_bag(found) == as_bag(without(query.events(streams), "ts")), query.text
