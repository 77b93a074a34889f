"""Queries that read the rows of other queries, and the answers of the twins, one after another.

Each case has a text over the streams `cars` and `trucks`, and a function that answers it from the
inside: the twin of the inner operator, its rows as events, the twin of the outer one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from eventide.lang.sql import plan_sql
from eventide.plan.nodes import situations_of
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.schema import Schema
from tests.naive import windows as naive
from tests.naive.patterns.rows import match_node, naive_match
from tests.naive.situations.matches import by_closed_form
from tests.naive.situations.runs import naive_situations
from tests.naive.windows import Event

SECOND = 1_000_000
SCHEMAS = {
    "cars": Schema.of({"car": "string", "speed": "float64"}),
    "trucks": Schema.of({"car": "string", "load": "int64"}),
}
Streams = Mapping[str, Sequence[Event]]
"""The events of each stream, in order of arrival."""


@dataclass(frozen=True)
class Composition:
    """A query and its answer. `until` is the instant at which a standing answer is read."""

    name: str
    text: str
    answer: Callable[[Streams], list[Event]]


def arrivals(seed: int, count: int = 150) -> dict[str, list[Event]]:
    """Events of both streams in order of arrival: ties, nulls, pauses, and some late ones."""
    choose = random.Random(seed)
    found = {}
    for name, attribute in (("cars", "speed"), ("trucks", "load")):
        ts, events = -20 * SECOND, []
        for _ in range(count):
            ts += choose.choice([0, 0, SECOND // 2, SECOND, 2 * SECOND])
            ts += 40 * SECOND if choose.random() < 0.02 else 0
            number = choose.randrange(0, 100)
            value = float(number) if name == "cars" else number
            car = choose.choice(["a", "b", "c", None])
            known = None if choose.random() < 0.1 else value
            events.append({"ts": ts, "car": car, attribute: known})
        order = sorted(range(count), key=lambda place: place + choose.uniform(0, 6))
        found[name] = [{**events[i], "_seq": seq} for seq, i in enumerate(order)]
    return found


def as_events(rows: Iterable[Event], *order: str) -> list[Event]:
    """Rows of a query as events: in order of ts, then of some columns, nulls first."""

    def place(row: Event) -> list[tuple[bool, object]]:
        return [(row[name] is not None, row[name]) for name in ("ts", *order)]

    return [{**row, "_seq": seq} for seq, row in enumerate(sorted(rows, key=place))]


def without(rows: Iterable[Event], *names: str) -> list[Event]:
    return [{name: row[name] for name in row if name not in names} for row in rows]


# One row pattern, as a clause of a query and by itself with the times of its matches. A stream has
# no end, so every pattern ends with a row that tells itself from the one before.

SPURTS = (
    "MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES COUNT(*) AS n, MAX(B.speed) AS top{}"
    " PATTERN (A B+ C) DEFINE A AS speed < 60, B AS speed >= 40, C AS speed < 40)"
)
HAULS = (
    "MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES LAST(B.load) AS heavy{}"
    " PATTERN (A B) DEFINE A AS load < 50, B AS load > 50)"
)
_TIMES = ", LAST(ts) AS ts, FIRST(ts) AS start_ts, MATCH_NUMBER() AS number"
SPURT = Schema.of({"car": "string", "n": "int64", "top": "float64", "start_ts": "timestamp"})


def matched(clause: str, schema: Schema, events: Sequence[Event]) -> list[Event]:
    """The rows of a MATCH_RECOGNIZE over events."""
    plan = plan_sql(f"SELECT * FROM s {clause}", {"s": schema})
    return naive_match(match_node(plan), events)


def spurts(streams: Streams) -> list[Event]:
    rows = matched(SPURTS.format(_TIMES), SCHEMAS["cars"], streams["cars"])
    return without(as_events(rows, "start_ts", "car", "number"), "number")


def hauls(streams: Streams) -> list[Event]:
    rows = matched(HAULS.format(_TIMES), SCHEMAS["trucks"], streams["trucks"])
    return without(as_events(rows, "start_ts", "car", "number"), "number")


RISES = (
    "MATCH_RECOGNIZE ({}ORDER BY ts MEASURES FIRST(start_ts) AS began, LAST(ts) AS ended,"
    " COUNT(*) AS spurts, LAST(n) AS n PATTERN (X Y+ Z)"
    " DEFINE Y AS top > PREV(top), Z AS top <= PREV(top))"
)


def pattern_over_pattern(streams: Streams) -> list[Event]:
    return matched(RISES.format("PARTITION BY car "), SPURT, spurts(streams))


def pattern_over_all_matches(streams: Streams) -> list[Event]:
    return matched(RISES.format(""), SPURT, spurts(streams))


def tumble_over_pattern(streams: Streams) -> list[Event]:
    aggregates = [("spurts", "count(*)", "n"), ("rows", "sum", "n"), ("last", "last", "top")]
    rows = naive.windows(spurts(streams), ["car"], 20 * SECOND, 20 * SECOND, aggregates)
    return without(rows, "window_end")


# A standing answer is read at the newest instant of all events, stored or derived.


def now_of(streams: Streams, names: Sequence[str], *derived: Sequence[Event]) -> int:
    stored: list[int] = [event["ts"] for name in names for event in streams[name]]
    later: list[int] = [event["ts"] for rows in derived for event in rows]
    return max([*stored, *later])


def standing_over_pattern(streams: Streams) -> list[Event]:
    rows = spurts(streams)
    now = now_of(streams, ["cars"], rows)
    held = [row for row in rows if now - 60 * SECOND < row["ts"] <= now]
    cars = {row["car"]: 0 for row in held}
    for row in held:
        cars[row["car"]] += row["n"]
    return [{"car": car, "n": n} for car, n in cars.items()]


def standing_join(streams: Streams) -> list[Event]:
    left, right = spurts(streams), hauls(streams)
    now = now_of(streams, ["cars", "trucks"], left, right)
    return [
        {"car": one["car"], "top": one["top"], "heavy": other["heavy"]}
        for one in left
        for other in right
        if one["car"] == other["car"] is not None
        and now - 600 * SECOND < one["ts"]
        and now - 300 * SECOND < other["ts"]
    ]


def windows_of(streams: Streams, seconds: int, keys: Sequence[str] = ("car",)) -> list[Event]:
    """`COUNT(*) AS n, MAX(speed) AS top` of tumbling windows over cars, as events."""
    size = seconds * SECOND
    aggregates = [("n", "count(*)", "speed"), ("top", "max", "speed")]
    rows = naive.windows(streams["cars"], keys, size, size, aggregates)
    timed = [{**row, "ts": row["window_end"], "start_ts": row["window_start"]} for row in rows]
    return without(as_events(timed, "start_ts", *keys), "window_start", "window_end")


WINDOWS = (
    "(SELECT car, COUNT(*) AS n, MAX(speed) AS top FROM cars"
    " GROUP BY car, TUMBLE(ts, INTERVAL '5' SECOND))"
)


def pattern_over_tumble(streams: Streams) -> list[Event]:
    return matched(RISES.format("PARTITION BY car "), SPURT, windows_of(streams, 5))


def pattern_over_all_windows(streams: Streams) -> list[Event]:
    return matched(RISES.format(""), SPURT, windows_of(streams, 5))


def tumble_over_tumble(streams: Streams) -> list[Event]:
    aggregates = [("n", "sum", "n"), ("first", "first", "top"), ("began", "min", "start_ts")]
    rows = naive.windows(windows_of(streams, 5), [], 20 * SECOND, 20 * SECOND, aggregates)
    return without(rows, "window_end")


def over_over_tumble(streams: Streams) -> list[Event]:
    rows = naive.rows_frames(windows_of(streams, 5), ["car"], 2, [("recent", "sum", "n")])
    return without(rows, "_seq", "start_ts", "top", "n")


UNION = (
    "(SELECT car, speed AS value FROM cars WHERE speed > 20 UNION ALL SELECT car, load FROM trucks)"
)
VALUE = Schema.of({"car": "string", "value": "float64"})


def union(streams: Streams) -> list[Event]:
    cars = [
        {"ts": each["ts"], "car": each["car"], "value": each["speed"], "arm": 0, "of": each["_seq"]}
        for each in streams["cars"]
        if each["speed"] is not None and each["speed"] > 20
    ]
    trucks = [
        {
            "ts": each["ts"],
            "car": each["car"],
            "value": None if each["load"] is None else float(each["load"]),
            "arm": 1,
            "of": each["_seq"],
        }
        for each in streams["trucks"]
    ]
    return without(as_events([*cars, *trucks], "arm", "of"), "arm", "of")


def tumble_over_union(streams: Streams) -> list[Event]:
    aggregates = [("n", "count(*)", "value"), ("last", "last", "value"), ("sum", "sum", "value")]
    rows = naive.windows(union(streams), ["car"], 10 * SECOND, 10 * SECOND, aggregates)
    return without(rows, "window_end")


CLIMB = (
    "MATCH_RECOGNIZE ({}ORDER BY ts MEASURES FIRST(value) AS low, LAST(value) AS high,"
    " LAST(ts) AS at PATTERN (X Y+ Z)"
    " DEFINE Y AS value > PREV(value), Z AS value <= PREV(value))"
)


def pattern_over_union(streams: Streams) -> list[Event]:
    return matched(CLIMB.format(""), VALUE, union(streams))


# Joins: pairs by key, with the instant at which the later of the two came


def pairs(streams: Streams, reach: int | None) -> list[Event]:
    found = []
    for one in streams["cars"]:
        for other in streams["trucks"]:
            if one["car"] is None or one["car"] != other["car"]:
                continue
            at = max(one["ts"], other["ts"])
            alive = reach is None or at < min(one["ts"], other["ts"]) + reach
            if alive and one["speed"] is not None:
                found.append(
                    {
                        "ts": at,
                        "car": one["car"],
                        "value": one["speed"],
                        "load": other["load"],
                    }
                )
    return as_events(found, "car", "value", "load")


PAIR = Schema.of({"car": "string", "value": "float64", "load": "int64"})
ISTREAM = (
    "ISTREAM (SELECT c.car, c.speed AS value, t.load FROM cars [RANGE 3 SECONDS] AS c"
    " JOIN trucks [RANGE 3 SECONDS] AS t ON c.car = t.car WHERE c.speed IS NOT NULL)"
)
JOIN = (
    "(SELECT c.car, c.speed AS value, t.load FROM cars AS c"
    " JOIN trucks AS t ON c.car = t.car WHERE c.speed IS NOT NULL)"
)


def pattern_over_join(streams: Streams) -> list[Event]:
    return matched(CLIMB.format("PARTITION BY car "), PAIR, pairs(streams, 3 * SECOND))


def tumble_over_join(streams: Streams) -> list[Event]:
    aggregates = [("n", "count(*)", "value"), ("load", "sum", "load"), ("last", "last", "value")]
    rows = naive.windows(pairs(streams, None), ["car"], 30 * SECOND, 30 * SECOND, aggregates)
    return without(rows, "window_end")


# Situations and patterns of them

HIGH = "SITUATIONS (PARTITION BY car DEFINE high AS top > 60 RETURN SUM(n) AS n)"


def situations_over_pattern(streams: Streams) -> list[Event]:
    plan = plan_sql(f"SELECT * FROM s {HIGH}", {"s": SPURT})
    node = situations_of(plan)
    assert isinstance(node, Situations)
    return naive_situations(node, spurts(streams))


TURNS = (
    "TPSTREAM (PARTITION BY car DEFINE high AS {0} > 60, low AS {0} <= 60"
    " PATTERN high meets low WITHIN 5 MINUTES RETURN MAX(high.{0}) AS most{1})"
)


def turned(column: str, schema: Schema, events: Sequence[Event]) -> list[Event]:
    """The rows of TURNS, with the start of the earlier situation."""
    clause = TURNS.format(column, ", START(high) AS one, START(low) AS other")
    node = situations_of(plan_sql(f"SELECT * FROM s {clause}", {"s": schema}))
    assert isinstance(node, TemporalPattern)
    rows = by_closed_form(node, events)
    timed = [{**row, "start_ts": min(row["one"], row["other"])} for row in rows]
    return without(timed, "one", "other")


def temporal_over_pattern(streams: Streams) -> list[Event]:
    return without(turned("top", SPURT, spurts(streams)), "start_ts")


def tumble_over_temporal(streams: Streams) -> list[Event]:
    rows = as_events(turned("speed", SCHEMAS["cars"], streams["cars"]), "start_ts", "car", "most")
    aggregates = [
        ("n", "count(*)", "most"),
        ("last", "last", "most"),
        ("began", "min", "start_ts"),
    ]
    found = naive.windows(rows, [], 30 * SECOND, 30 * SECOND, aggregates)
    return without(found, "window_end")


# A plain SELECT around a query, and UNION ALL that nothing reads


def select_over_tumble(streams: Streams) -> list[Event]:
    return [
        {"car": row["car"], "m": row["n"] + 1, "half": row["top"] / 2}
        for row in windows_of(streams, 5)
        if row["n"] > 1 and row["top"] is not None
    ]


def select_over_pattern(streams: Streams) -> list[Event]:
    return [{"car": row["car"], "least": row["top"] - row["n"]} for row in spurts(streams)]


def whole_union(streams: Streams) -> list[Event]:
    rows = [{"car": row["car"], "value": row["value"]} for row in union(streams)]
    return rows + [{"car": row["car"], "value": row["top"]} for row in windows_of(streams, 5)]


def select_over_union(streams: Streams) -> list[Event]:
    return [
        {"car": row["car"], "twice": row["value"] * 2}
        for row in union(streams)
        if row["value"] is not None and row["value"] < 70
    ]


def select_over_istream(streams: Streams) -> list[Event]:
    return [
        {"at": row["ts"], "sum": row["value"] + row["load"]}
        for row in pairs(streams, 3 * SECOND)
        if row["load"] is not None and row["load"] > 30
    ]


# Numbers of rows, and later rows, in order of time


def numbered(streams: Streams) -> list[Event]:
    counts: dict[str | None, int] = {}
    found = []
    for row in sorted(streams["cars"], key=lambda each: (each["ts"], each["_seq"])):
        counts[row["car"]] = counts.get(row["car"], 0) + 1
        found.append({"car": row["car"], "speed": row["speed"], "number": counts[row["car"]]})
    return found


def in_rank(streams: Streams) -> list[Event]:
    """Cars with their ranks in order of time: how many rows, and times, of a car are before."""
    found = []
    for row in streams["cars"]:
        times = [each["ts"] for each in streams["cars"] if each["car"] == row["car"]]
        before = [ts for ts in times if ts < row["ts"]]
        ranks = {"place": len(before) + 1, "level": len({*before}) + 1}
        found.append(without([row], "_seq")[0] | ranks)
    return found


def first_rows(streams: Streams) -> list[Event]:
    return [row for row in numbered(streams) if row["number"] <= 4]


def later(rows: Sequence[Event], column: str, count: int, default: object = None) -> list[Event]:
    """The rows of each car with `later`, the value so many rows after them."""
    found = []
    for row in rows:
        after = [each for each in rows if each["car"] == row["car"] and each["_seq"] > row["_seq"]]
        value = after[count - 1][column] if len(after) >= count else default
        found.append({**row, "later": value})
    return found


def lead(streams: Streams) -> list[Event]:
    ordered = as_events(streams["cars"], "_seq")
    return without(later(ordered, "speed", 2, -1.0), "_seq")


def lead_over_tumble(streams: Streams) -> list[Event]:
    return without(later(windows_of(streams, 5), "n", 1), "_seq", "start_ts", "top")


# Ranks within windows


def first_of_windows(streams: Streams) -> list[Event]:
    found = []
    rows = as_events(streams["cars"], "_seq")
    for bucket in sorted({row["ts"] // (10 * SECOND) for row in rows}):
        own = [row for row in rows if row["ts"] // (10 * SECOND) == bucket]
        own.sort(key=lambda row: (row["speed"] is None, -(row["speed"] or 0.0)))
        for place, row in enumerate(own[:2], 1):
            end = (bucket + 1) * 10 * SECOND
            found.append({**row, "window_end": end, "place": place})
    return without(found, "_seq", "ts")


def ranks_of_windows(streams: Streams) -> list[Event]:
    found, rows = [], windows_of(streams, 5)
    for row in rows:
        beside = [each["n"] for each in rows if each["ts"] == row["ts"]]
        more = [n for n in beside if n > row["n"]]
        ranks = {"place": len(more) + 1, "step": len(set(more)) + 1}
        found.append({"ts": row["ts"], "car": row["car"], **ranks})
    return found


COMPOSITIONS = (
    Composition(
        "first rows of TUMBLE",
        "SELECT car, speed, window_end, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY"
        " window_start, window_end ORDER BY speed DESC) AS place FROM TABLE(TUMBLE(TABLE cars,"
        " DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE place <= 2",
        first_of_windows,
    ),
    Composition(
        "RANK over TUMBLE",
        "SELECT ts, car, RANK() OVER w AS place, DENSE_RANK() OVER w AS step"
        f" FROM {WINDOWS} WINDOW w AS (PARTITION BY ts ORDER BY n DESC)",
        ranks_of_windows,
    ),
    Composition(
        "RANK in order of time",
        "SELECT *, RANK() OVER w AS place, DENSE_RANK() OVER w AS level FROM cars"
        " WINDOW w AS (PARTITION BY car ORDER BY ts)",
        in_rank,
    ),
    Composition(
        "ROW_NUMBER",
        "SELECT car, speed, number FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts)"
        " AS number FROM cars) WHERE number <= 4",
        first_rows,
    ),
    Composition(
        "LEAD",
        "SELECT *, LEAD(speed, 2, -1) OVER (PARTITION BY car ORDER BY ts) AS later FROM cars",
        lead,
    ),
    Composition(
        "LEAD over TUMBLE",
        f"SELECT ts, car, n, LEAD(n) OVER (PARTITION BY car ORDER BY ts) AS later FROM {WINDOWS}",
        lead_over_tumble,
    ),
    Composition(
        "SELECT over TUMBLE",
        f"SELECT car, n + 1 AS m, top / 2 AS half FROM {WINDOWS} WHERE n > 1 AND top IS NOT NULL",
        select_over_tumble,
    ),
    Composition(
        "SELECT over pattern",
        f"WITH m AS (SELECT * FROM cars {SPURTS.format('')}) SELECT car, top - n AS least FROM m",
        select_over_pattern,
    ),
    Composition("UNION ALL", f"{UNION} UNION ALL SELECT car, top FROM {WINDOWS} AS w", whole_union),
    Composition(
        "SELECT over union",
        f"SELECT car, value * 2 AS twice FROM {UNION} AS u WHERE value < 70",
        select_over_union,
    ),
    Composition(
        "SELECT over ISTREAM",
        f"SELECT at, value + load AS sum FROM {ISTREAM} WHERE load > 30",
        select_over_istream,
    ),
    Composition(
        "pattern over pattern",
        f"SELECT * FROM cars {SPURTS.format('')} {RISES.format('PARTITION BY car ')}",
        pattern_over_pattern,
    ),
    Composition(
        "pattern over the matches of all keys",
        f"SELECT * FROM (SELECT car, n, top FROM cars {SPURTS.format('')}) AS m {RISES.format('')}",
        pattern_over_all_matches,
    ),
    Composition(
        "TUMBLE over pattern",
        "SELECT car, window_start, COUNT(*) AS spurts, SUM(n) AS rows, LAST(top) AS last FROM cars "
        f"{SPURTS.format('')} GROUP BY car, TUMBLE(ts, INTERVAL '20' SECOND)",
        tumble_over_pattern,
    ),
    Composition(
        "standing window over pattern",
        f"SELECT car, SUM(n) AS n FROM (SELECT * FROM cars {SPURTS.format('')}) [RANGE 60 SECONDS]"
        " AS m GROUP BY car",
        standing_over_pattern,
    ),
    Composition(
        "standing join of two patterns",
        f"SELECT s.car, s.top, h.heavy FROM (SELECT * FROM cars {SPURTS.format('')})"
        f" [RANGE 600 SECONDS] AS s JOIN (SELECT * FROM trucks {HAULS.format('')})"
        " [RANGE 300 SECONDS] AS h ON s.car = h.car",
        standing_join,
    ),
    Composition(
        "pattern over TUMBLE",
        f"SELECT * FROM {WINDOWS} {RISES.format('PARTITION BY car ')}",
        pattern_over_tumble,
    ),
    Composition(
        "pattern over the windows of all keys",
        f"WITH w AS {WINDOWS} SELECT * FROM w {RISES.format('')}",
        pattern_over_all_windows,
    ),
    Composition(
        "TUMBLE over TUMBLE",
        "SELECT window_start, SUM(n) AS n, FIRST(top) AS first, MIN(start_ts) AS began FROM "
        f"{WINDOWS} GROUP BY TUMBLE(ts, INTERVAL '20' SECOND)",
        tumble_over_tumble,
    ),
    Composition(
        "TUMBLE over union",
        "SELECT car, window_start, COUNT(*) AS n, LAST(value) AS last, SUM(value) AS sum FROM "
        f"{UNION} GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)",
        tumble_over_union,
    ),
    Composition(
        "pattern over union",
        f"SELECT * FROM {UNION} {CLIMB.format('')}",
        pattern_over_union,
    ),
    Composition(
        "pattern over standing join",
        f"SELECT * FROM {ISTREAM} {CLIMB.format('PARTITION BY car ')}",
        pattern_over_join,
    ),
    Composition(
        "situations over pattern",
        f"SELECT * FROM cars {SPURTS.format('')} {HIGH}",
        situations_over_pattern,
    ),
    Composition(
        "temporal pattern over pattern",
        f"SELECT * FROM cars {SPURTS.format('')} {TURNS.format('top', '')}",
        temporal_over_pattern,
    ),
    Composition(
        "TUMBLE over temporal pattern",
        "SELECT window_start, COUNT(*) AS n, LAST(most) AS last, MIN(start_ts) AS began FROM cars "
        f"{TURNS.format('speed', '')} GROUP BY TUMBLE(ts, INTERVAL '30' SECOND)",
        tumble_over_temporal,
    ),
    Composition(
        "TUMBLE over join",
        "SELECT car, window_start, COUNT(*) AS n, SUM(load) AS load, LAST(value) AS last FROM "
        f"{JOIN} GROUP BY car, TUMBLE(ts, INTERVAL '30' SECOND)",
        tumble_over_join,
    ),
    Composition(
        "OVER over TUMBLE",
        "SELECT ts, car, SUM(n) OVER (PARTITION BY car ORDER BY ts ROWS 2 PRECEDING) AS recent"
        f" FROM {WINDOWS}",
        over_over_tumble,
    ),
)
