"""Queries in CEL over cars and trucks, and what the twin of the event algebra gives for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.engines.compositions import (
    SECOND,
    WINDOWS,
    Composition,
    Streams,
    as_events,
    windows_of,
    without,
)
from tests.naive import windows as naive
from tests.naive.algebra.events import (
    Bag,
    Condition,
    Row,
    at_instants,
    event,
    introduce,
    length,
    mu,
    project,
    rename,
    select,
    seq,
    union,
)
from tests.naive.windows import Event


def bag_of(rows: Sequence[Event]) -> Bag:
    """Rows as events, of one instant unless they say where they began."""
    plain = without(rows, "ts", "start_ts", "_seq")
    starts = [row["start_ts"] if "start_ts" in row else row["ts"] for row in rows]
    parts = zip(starts, rows, plain, strict=True)
    return [event(start, row["ts"], values) for start, row, values in parts]


def rows_of(found: Bag) -> list[Event]:
    return [dict(each.row) for each in found]


def more(row: Row, one: str, other: str, by: float = 0) -> bool:
    """Whether one value is greater than another; null is not."""
    return None not in (row[one], row[other]) and bool(row[one] > row[other] + by)


def same(row: Row, one: str, other: str) -> bool:
    return row[one] is not None and bool(row[one] == row[other])


def brief(row: Row, seconds: float) -> bool:
    return length(row) <= seconds * SECOND


def cars(streams: Streams) -> Bag:
    return bag_of(streams["cars"])


def trucks(streams: Streams) -> Bag:
    return bag_of(streams["trucks"])


LEFT = {"car": "car_1", "speed": "speed_1"}


def faster(streams: Streams) -> Bag:
    def condition(row: Row) -> bool:
        rises = more(row, "speed", "speed_1")
        return same(row, "car_1", "car") and rises and brief(row, 10)

    found = seq(rename(LEFT, cars(streams)), cars(streams), condition)
    return rename({"speed_1": "before"}, project(["car", "speed_1", "speed"], found))


def hauled(streams: Streams) -> Bag:
    def condition(row: Row) -> bool:
        return same(row, "who", "car") and more(row, "load", "speed") and brief(row, 20)

    found = seq(rename({"car": "who"}, cars(streams)), trucks(streams), condition)
    return project(["who", "speed", "load"], found)


def nested(streams: Streams) -> Bag:
    """A fast car, and then it and its truck soon after each other."""
    fast = [each for each in cars(streams) if (each.attributes["speed"] or 0) > 50]
    pairs = seq(
        rename({"car": "b"}, project(["car"], cars(streams))),
        trucks(streams),
        lambda row: same(row, "b", "car") and brief(row, 10),
    )
    found = seq(
        rename({"car": "a"}, project(["car"], fast)),
        project(["b", "load"], pairs),
        lambda row: same(row, "a", "b") and brief(row, 30),
    )
    return project(["a", "load"], found)


def folded(left: Bag, right: Bag, condition: Condition, goes_on: Condition, n: Condition) -> Bag:
    """A FOLD that counts from one and adds up speeds."""
    begun = introduce({"n": lambda _: 1, "total": lambda row: row["speed"]}, left)

    def total(row: Row) -> float | None:
        unknown = None in (row["total"], row["speed"])
        return None if unknown else row["total"] + row["speed"]

    def chain(found: Bag) -> Bag:
        nexts = {"n": lambda row: row["n"] + 1, "total": total}
        return introduce(nexts, select(goes_on, found))

    return select(n, mu(begun, right, condition, chain))


def rises(streams: Streams) -> Bag:
    found = folded(
        cars(streams),
        cars(streams),
        lambda row: same(row, "car", "car.last"),
        lambda row: more(row, "speed", "speed.last") and brief(row, 60),
        lambda row: row["n"] >= 3,
    )
    kept = project(["car", "speed.first", "speed", "n", "total"], found)
    return rename({"speed.first": "since"}, kept)


def jumps(streams: Streams) -> Bag:
    """Whichever car it is, the next one that is much faster, and so on: some tie."""
    found = mu(
        cars(streams),
        cars(streams),
        lambda row: more(row, "speed", "speed.last", 20) and brief(row, 6),
    )
    names = {"car.first": "first", "speed.first": "since"}
    return rename(names, project(["car.first", "speed.first", "car", "speed"], found))


def of_either(streams: Streams) -> Bag:
    values = union(
        rename({"speed": "value"}, cars(streams)),
        [
            each.of(
                {"car": row["car"], "value": None if (load := row["load"]) is None else float(load)}
            )
            for each in trucks(streams)
            for row in [each.attributes]
        ],
    )
    found = seq(
        rename({"car": "c"}, values),
        cars(streams),
        lambda row: same(row, "c", "car") and more(row, "speed", "value", 10) and brief(row, 15),
    )
    return project(["c", "value", "speed"], found)


def at_once(streams: Streams) -> Bag:
    """The most of what follows at one instant."""

    def total(rows: list[Row]) -> Row:
        return {"n": len(rows), "top": max(row["speed"] for row in rows)}

    several = at_instants(total, faster(streams))
    return select(lambda row: row["n"] > 1, several)


def windowed(streams: Streams) -> Bag:
    """Windows of which one begins after the other has ended: there is one in between."""
    found = bag_of(windows_of(streams, 5))
    left = rename({"car": "car_1", "n": "n_1", "top": "top_1"}, found)

    def condition(row: Row) -> bool:
        return same(row, "car_1", "car") and more(row, "top", "top_1") and brief(row, 25)

    return project(["car", "top_1", "top"], seq(left, found, condition))


def counted(streams: Streams) -> list[Event]:
    events = as_events(rows_of(faster(streams)), "start_ts", "car", "before", "speed")
    aggregates = [("n", "count(*)", "speed"), ("most", "max", "speed")]
    rows = naive.windows(events, ["car"], 20 * SECOND, 20 * SECOND, aggregates)
    return without(rows, "window_end")


def rows(answer: Callable[[Streams], Bag]) -> Callable[[Streams], list[Event]]:
    return lambda streams: rows_of(answer(streams))


FASTER = (
    "SELECT car, speed_1 AS before, speed"
    " FROM cars NEXT{$1.car = $2.car AND $2.speed > $1.speed AND DUR <= 10 s} cars"
)
QUERIES = (
    Composition("the next that is faster", FASTER, rows(faster)),
    Composition(
        "another stream",
        "SELECT who, speed, load FROM (SELECT car AS who, speed FROM cars)"
        " NEXT{who = car AND load > speed AND DUR <= 20 s} trucks",
        rows(hauled),
    ),
    Composition(
        "nested on the right",
        "SELECT a, load FROM (SELECT car AS a FROM FILTER{speed > 50} cars)"
        " NEXT{a = b AND DUR <= 30 s} (SELECT car_1 AS b, load FROM"
        " (SELECT car FROM cars) NEXT{$1.car = $2.car AND DUR <= 10 s} trucks)",
        rows(nested),
    ),
    Composition(
        "chains with sums",
        "SELECT car, speed_1 AS since, speed, n, total FROM FILTER{n >= 3}"
        " ((SELECT *, 1 AS n, speed AS total FROM cars) FOLD{$2.car = $.car,"
        " $2.speed > $.speed AND DUR <= 60 s, $.n + 1 AS n, $.total + $2.speed AS total} cars)",
        rows(rises),
    ),
    Composition(
        "chains that branch",
        "SELECT car_1 AS first, speed_1 AS since, car, speed"
        " FROM cars FOLD{$2.speed > $.speed + 20 AND DUR <= 6 s} cars",
        rows(jumps),
    ),
    Composition(
        "what follows either",
        "SELECT c, value, speed FROM ((SELECT car AS c, speed AS value FROM cars)"
        " UNION (SELECT car AS c, load AS value FROM trucks))"
        " NEXT{c = car AND speed > value + 10 AND DUR <= 15 s} cars",
        rows(of_either),
    ),
    Composition(
        "at an instant",
        f"FROM FILTER{{n > 1}} AT INSTANT{{COUNT(*) AS n, MAX(speed) AS top}} ({FASTER})",
        rows(at_once),
    ),
    Composition(
        "windows that follow",
        f"WITH w AS {WINDOWS} SELECT * FROM CEL (SELECT car, top_1, top FROM w"
        " NEXT{$1.car = $2.car AND $2.top > $1.top AND DUR <= 25 s} w)",
        rows(windowed),
    ),
    Composition(
        "windows over what follows",
        "SELECT car, window_start, COUNT(*) AS n, MAX(speed) AS most"
        f" FROM CEL ({FASTER}) AS f GROUP BY car, TUMBLE(ts, INTERVAL '20' SECOND)",
        counted,
    ),
)
