"""Queries over queries over queries, drawn at random: the rows of the twins, one after another."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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
from tests.naive.standing.windows import Window
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPTH = 4
SHORT_US = 2 * SECOND
"""Less than some events are behind those that came before them."""


@dataclass(frozen=True)
class History:
    """The events of the streams, and the newest instant of all streams below windows."""

    streams: Streams
    newest_us: int


Events = Callable[[History], list[Event]]


@dataclass(frozen=True)
class Query:
    """A query with the columns `car` and `value`, and its rows as events, in their order."""

    text: str
    events: Events
    reads: frozenset[str]
    """The streams it reads."""
    windowed: frozenset[str] = frozenset()
    """Those of them that are below windows in brackets."""

    def over(self, text: str, events: Events) -> Query:
        """A query that reads this one."""
        return replace(self, text=text, events=events)

    def standing(self, text: str, events: Events) -> Query:
        """A standing query that reads this one."""
        return Query(text, events, self.reads, self.reads)

    def beside(self, other: Query) -> Query:
        """Both queries as one source; its text and events are those of this one."""
        reads, windowed = self.reads | other.reads, self.windowed | other.windowed
        return replace(self, reads=reads, windowed=windowed)

    def rows(self, streams: Streams) -> list[tuple[str, ...]]:
        """The rows of the query over these events."""
        times = [event["ts"] for name in self.windowed for event in streams[name]]
        history = History(streams, max(times, default=0))
        return as_bag(without(self.events(history), "ts"))


def cars(_: random.Random) -> Query:
    def events(history: History) -> list[Event]:
        rows = sorted(history.streams["cars"], key=lambda row: (row["ts"], row["_seq"]))
        return [{"ts": r["ts"], "car": r["car"], "value": r["speed"]} for r in rows]

    return Query("SELECT car, speed AS value FROM cars", events, frozenset({"cars"}))


def trucks(_: random.Random) -> Query:
    def events(history: History) -> list[Event]:
        rows = sorted(history.streams["trucks"], key=lambda row: (row["ts"], row["_seq"]))
        values = [None if row["load"] is None else float(row["load"]) for row in rows]
        return [
            {"ts": row["ts"], "car": row["car"], "value": value}
            for row, value in zip(rows, values, strict=True)
        ]

    text = "SELECT car, CAST(load AS DOUBLE) AS value FROM trucks"
    return Query(text, events, frozenset({"trucks"}))


def numbered(rows: Sequence[Event]) -> list[Event]:
    return [{**row, "_seq": place} for place, row in enumerate(rows)]


def tumbling(below: Query, choose: random.Random) -> Query:
    function, seconds = choose.choice(["max", "min", "last"]), choose.choice([2, 5, 15])
    keys = choose.choice([["car"], []])
    car = "car" if keys else "'all' AS car"

    def events(history: History) -> list[Event]:
        size = seconds * SECOND
        aggregates = [("value", function, "value")]
        rows = naive.windows(numbered(below.events(history)), keys, size, size, aggregates)
        timed = [
            {"car": "all", **row, "ts": row["window_end"], "start_ts": row["window_start"]}
            for row in rows
        ]
        ordered = as_events(timed, "start_ts", *keys)
        return without(ordered, "window_start", "window_end", "_seq", "start_ts")

    group = ", ".join([*keys, f"TUMBLE(ts, INTERVAL '{seconds}' SECOND)"])
    text = f"SELECT {car}, {function.upper()}(value) AS value FROM ({below.text}) GROUP BY {group}"
    return below.over(text, events)


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

    def events(history: History) -> list[Event]:
        asked = clause.format(keys, car, times, pattern)
        rows = matched(asked, VALUE, numbered(below.events(history)))
        order = ["start_ts", "car", "number"] if keys else ["start_ts", "number"]
        return without(as_events(rows, *order), "number", "start_ts", "_seq")

    text = f"SELECT car, value FROM ({below.text}) AS q {clause.format(keys, car, '', pattern)}"
    return below.over(text, events)


def framed(below: Query, choose: random.Random) -> Query:
    preceding = choose.choice([1, 3])

    def events(history: History) -> list[Event]:
        given = numbered(below.events(history))
        rows = naive.rows_frames(given, ["car"], preceding, [("most", "max", "value")])
        ordered = sorted(rows, key=lambda row: row["_seq"])
        return [{"ts": r["ts"], "car": r["car"], "value": r["most"]} for r in ordered]

    over = f"PARTITION BY car ORDER BY ts ROWS BETWEEN {preceding} PRECEDING AND CURRENT ROW"
    return below.over(f"SELECT car, MAX(value) OVER ({over}) AS value FROM ({below.text})", events)


def ahead(below: Query, choose: random.Random) -> Query:
    count = choose.choice([1, 2])

    def events(history: History) -> list[Event]:
        rows = later(numbered(below.events(history)), "value", count)
        return [{"ts": r["ts"], "car": r["car"], "value": r["later"]} for r in rows]

    over = f"LEAD(value, {count}) OVER (PARTITION BY car ORDER BY ts)"
    return below.over(f"SELECT car, {over} AS value FROM ({below.text})", events)


def counted(below: Query, _: random.Random) -> Query:
    def events(history: History) -> list[Event]:
        rows, counts, found = below.events(history), dict[object, int](), list[Event]()
        for row in rows:
            counts[row["car"]] = counts.get(row["car"], 0) + 1
            found.append({**row, "value": float(counts[row["car"]])})
        return found

    number = "ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts)"
    return below.over(f"SELECT car, CAST({number} AS DOUBLE) AS value FROM ({below.text})", events)


def situated(below: Query, _: random.Random) -> Query:
    clause = "SITUATIONS (PARTITION BY car DEFINE high AS value > 50 RETURN MAX(value) AS value)"

    def events(history: History) -> list[Event]:
        node = situations_of(plan_sql(f"SELECT * FROM s {clause}", {"s": VALUE}))
        assert isinstance(node, Situations)
        rows = naive_situations(node, numbered(below.events(history)))
        timed = [{**row, "ts": row["end_ts"]} for row in rows]
        ordered = as_events(timed, "start_ts", "car", "situation")
        return [{"ts": r["ts"], "car": r["car"], "value": r["value"]} for r in ordered]

    return below.over(f"SELECT car, value FROM ({below.text}) AS q {clause}", events)


def windowed(below: Query, choose: random.Random) -> Query:
    """The rows that come into a window in brackets."""
    seconds = choose.choice([1, 5])

    def events(history: History) -> list[Event]:
        rows = [row for row in below.events(history) if row["value"] is not None]
        return without(as_events([r for r in rows if r["value"] > 20], "car", "value"), "_seq")

    inner = f"SELECT q.car, q.value FROM ({below.text}) [RANGE {seconds} SECONDS] AS q"
    return below.standing(f"SELECT car, value FROM ISTREAM ({inner} WHERE q.value > 20)", events)


def growing(below: Query, _: random.Random) -> Query:
    """The changes of an answer that is kept up: the greatest value of each car so far."""

    def events(history: History) -> list[Event]:
        rows, most, found = below.events(history), dict[object, float | None](), list[Event]()
        for ts in sorted({row["ts"] for row in rows}):
            before = dict(most)
            for row in (each for each in rows if each["ts"] == ts):
                known = [v for v in (most.get(row["car"]), row["value"]) if v is not None]
                most[row["car"]] = max(known, default=None)
            changed = [car for car in most if car not in before or before[car] != most[car]]
            found += [{"ts": ts, "car": car, "value": most[car]} for car in changed]
        return without(as_events(found, "car", "value"), "_seq")

    inner = f"SELECT q.car, MAX(q.value) AS value FROM ({below.text}) [RANGE UNBOUNDED] AS q"
    return below.standing(f"SELECT car, value FROM ISTREAM ({inner} GROUP BY q.car)", events)


def computed(below: Query, choose: random.Random) -> Query:
    least, factor = choose.choice([10, 40]), choose.choice([1, 2])

    def events(history: History) -> list[Event]:
        kept = (row for row in below.events(history) if row["value"] is not None)
        return [{**r, "value": r["value"] * factor - 1} for r in kept if r["value"] >= least]

    text = f"SELECT car, value * {factor} - 1 AS value FROM ({below.text}) WHERE value >= {least}"
    return below.over(text, events)


def united(first: Query, second: Query) -> Query:
    def events(history: History) -> list[Event]:
        arms = (first.events(history), second.events(history))
        rows = [
            {**row, "arm": arm, "place": place}
            for arm, own in enumerate(arms)
            for place, row in enumerate(own)
        ]
        return without(as_events(rows, "arm", "place"), "arm", "place", "_seq")

    return first.beside(second).over(f"{first.text} UNION ALL {second.text}", events)


Told = tuple[object, float | None, tuple[int, ...]]
"""A row of a standing answer: car, value, and the events it is of if these tell it from equal rows.

They do if it is known from the start when each row leaves: otherwise a row that comes in the place
of an equal one changes nothing.
"""


def coming(
    sources: Sequence[tuple[Query, Window]],
    history: History,
    answer: Callable[..., Iterable[Told]],
) -> list[Event]:
    """The rows that come into a standing answer: that of each instant without the one before."""
    given = [(numbered(query.events(history)), window) for query, window in sources]
    newest = max([history.newest_us, *(rows[-1]["ts"] for rows, _ in given if rows)])
    changes = set[int]().union(*(window.instants(rows) for rows, window in given))
    slide = next((step for _, window in given if (step := window.length("SLIDE"))), None)
    if slide is not None and changes:
        changes = set(range(-(-min(changes) // slide) * slide, newest + 1, slide))
    before, found = Counter[Told](), list[Event]()
    for now in sorted(instant for instant in changes if instant <= newest):
        after = Counter(answer(*(window.holds(rows, now) for rows, window in given)))
        came = (after - before).elements()
        found += [{"ts": now, "car": car, "value": value} for car, value, _ in came]
        before = after
    return without(as_events(found, "car", "value"), "_seq")


SHORT_WINDOWS = [
    "RANGE 3 SECONDS", "RANGE 1 SECONDS", "RANGE 4 SECONDS JUMP 3 SECONDS", "TUMBLE 4 SECONDS",
    "ROWS 3", "PARTITION BY car ROWS 2", "LATEST BY car", "SESSION 1 SECONDS",
    "PARTITION BY car SESSION 2 SECONDS", "NOW",
]  # fmt: skip
WINDOWS = [*SHORT_WINDOWS, "RANGE UNBOUNDED", "RANGE 4 SECONDS SLIDE 2 SECONDS"]


def window_of(choose: random.Random, texts: Sequence[str]) -> Window:
    return Window("", choose.choice(texts))


def foreseen(*windows: Window) -> bool:
    """Whether it is known when the events of windows leave, as they come."""
    return not any(window.rows or window.length("SESSION") for window in windows)


def grouped(below: Query, choose: random.Random) -> Query:
    window, by_car = window_of(choose, WINDOWS), choose.random() < 0.7
    aggregate = choose.choice(
        ["COUNT(*)", "COUNT(DISTINCT q.value)", "SUM(q.value)", "MAX(q.value)"]
    )

    def total(rows: Sequence[Event]) -> float | None:
        values = [row["value"] for row in rows if row["value"] is not None]
        match aggregate[:9]:
            case "COUNT(*)":
                return float(len(rows))
            case "COUNT(DIS":
                return float(len(set(values)))
            case "SUM(q.val":
                return sum(values) if values else None
        return max(values, default=None)

    def answer(held: Sequence[Event]) -> list[Told]:
        groups = dict[object, list[Event]]()
        for row in held:
            groups.setdefault(row["car"] if by_car else "all", []).append(row)
        return [(car, total(rows), ()) for car, rows in groups.items()]

    car, group = ("q.car", " GROUP BY q.car") if by_car else ("'all' AS car", "")
    inner = f"SELECT {car}, CAST({aggregate} AS DOUBLE) AS value"
    inner += f" FROM ({below.text}) [{window.text}] AS q{group}"
    text = f"SELECT car, value FROM ISTREAM ({inner})"
    return below.standing(text, lambda history: coming([(below, window)], history, answer))


def distinct(below: Query, choose: random.Random) -> Query:
    window = window_of(choose, WINDOWS)

    def answer(held: Sequence[Event]) -> set[Told]:
        return {(row["car"], row["value"], ()) for row in held}

    inner = f"SELECT DISTINCT q.car, q.value FROM ({below.text}) [{window.text}] AS q"
    text = f"SELECT car, value FROM ISTREAM ({inner})"
    return below.standing(text, lambda history: coming([(below, window)], history, answer))


def joined(first: Query, second: Query, choose: random.Random) -> Query:
    windows = window_of(choose, SHORT_WINDOWS), window_of(choose, SHORT_WINDOWS)
    outer, rising = choose.random() < 0.3, choose.random() < 0.5
    told_apart = foreseen(*windows) and not outer

    def fits(one: Event, other: Event) -> bool:
        if one["car"] is None or one["car"] != other["car"]:
            return False
        values = one["value"], other["value"]
        return not rising or (None not in values and values[0] <= values[1])

    def answer(left: Sequence[Event], right: Sequence[Event]) -> list[Told]:
        found = list[Told]()
        for one in left:
            others = [other for other in right if fits(one, other)]
            for other in others:
                parts = (one["_seq"], other["_seq"]) if told_apart else ()
                found.append((one["car"], other["value"], parts))
            if outer and not others:
                found.append((one["car"], None, ()))
        return found

    join, more = "LEFT JOIN" if outer else "JOIN", " AND p.value <= q.value" if rising else ""
    inner = f"SELECT p.car, q.value FROM ({first.text}) [{windows[0].text}] AS p {join}"
    inner += f" ({second.text}) [{windows[1].text}] AS q ON p.car = q.car{more}"
    sources = list(zip((first, second), windows, strict=True))
    text = f"SELECT car, value FROM ISTREAM ({inner})"
    below = first.beside(second)
    return below.standing(text, lambda history: coming(sources, history, answer))


def merged(first: Query, second: Query, choose: random.Random) -> Query:
    windows = window_of(choose, SHORT_WINDOWS), window_of(choose, SHORT_WINDOWS)
    union = choose.choice(["UNION", "UNION ALL"])

    def answer(*arms: Sequence[Event]) -> Iterable[Told]:
        if union == "UNION":
            return {(row["car"], row["value"], ()) for held in arms for row in held}
        return [
            (row["car"], row["value"], (arm, row["_seq"]) if foreseen(*windows) else ())
            for arm, held in enumerate(arms)
            for row in held
        ]

    sources = list(zip((first, second), windows, strict=True))
    arms = (f"SELECT q.car, q.value FROM ({q.text}) [{w.text}] AS q" for q, w in sources)
    text = f"SELECT car, value FROM ISTREAM ({f' {union} '.join(arms)})"
    below = first.beside(second)
    return below.standing(text, lambda history: coming(sources, history, answer))


OPERATORS = [
    tumbling,
    matching,
    framed,
    ahead,
    counted,
    situated,
    windowed,
    growing,
    grouped,
    distinct,
    computed,
]
OF_TWO = [joined, merged]


def drawn(choose: random.Random, depth: int) -> Query:
    """A query of at most this depth: an operator over a stream, a query, or a union of two."""
    if depth == 0 or choose.random() < 0.1:
        return choose.choice([cars, trucks])(choose)
    return operated(choose, depth)


def operated(choose: random.Random, depth: int) -> Query:
    """An operator over queries of less depth. Joins multiply: one side is a query of depth one."""
    below = drawn(choose, depth - 1)
    if choose.random() < 0.25:
        return choose.choice(OF_TWO)(below, drawn(choose, min(depth - 1, 1)), choose)
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
    query = operated(choose, DEPTH)
    return united(query, drawn(choose, DEPTH - 1)) if choose.random() < 0.2 else query


def behind(streams: Streams) -> int:
    """How long an event is behind those of its stream that came before it, at most."""
    most = 0
    for events in streams.values():
        newest = events[0]["ts"]
        for event in events:
            newest = max(newest, event["ts"])
            most = max(most, newest - event["ts"])
    return most


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.booleans())
def test_trees_over_history_and_live(seed: int, patient: bool) -> None:
    """One of the streams may end before the other.

    Live, a patient query waits for every event; another one does not wait for some of them.
    """
    choose = random.Random(seed)
    query, streams = tree(choose), arrivals(seed, 50)
    ended = choose.choice(["cars", "trucks"])
    streams[ended] = streams[ended][: choose.randrange(10, 51)]
    found = engines.plain(ev.sql(query.text, **tables(streams)).to_arrow())
    assert as_bag(found) == query.rows(streams), query.text
    lateness_us = behind(streams) if patient else SHORT_US
    engine = LiveEngine.of(plan_sql(query.text, SCHEMAS), SCHEMAS, lateness_us)
    live = lived(engine, in_pieces(streams, choose), SCHEMAS)
    assert not (patient and live.late)
    assert as_bag(live.rows) == query.rows(live.on_time(streams)), query.text


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
    assert as_bag(found) == query.rows(streams), query.text
