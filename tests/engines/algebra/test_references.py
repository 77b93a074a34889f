"""Worked examples of the document, in CEL: known results over tables and live.

The twin gives them too, for the same events: `tests/naive/algebra/test_references.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.live.engine import LiveEngine
from eventide.engines.standing.choice import best_plan
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_cel
from eventide.schema import START_TS, TS, Schema
from tests.engines import engines
from tests.engines.live.arriving import in_pieces, lived
from tests.naive.algebra.events import Bag, at
from tests.naive.algebra.test_references import (
    FEED,
    REBOUND,
    TRADES,
    TWO_STOCKS,
    Short,
    quote,
)
from tests.naive.windows import Event

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")

Ask = Callable[[str, Mapping[str, list[Event]]], list[Short]]
STOCKS = Schema.of(
    {"start_ts": "timestamp", "name": "string", "price": "float64", "volume": "int64"}
)
POSTS = Schema.of({"start_ts": "timestamp", "site": "string", "link": "string", "text": "string"})
PLAIN = Schema.of({"start_ts": "timestamp", "n": "int64"})
SCHEMAS = {"s": STOCKS, "feed": POSTS, "a": PLAIN, "b": PLAIN, "c": PLAIN}

IBM = "FILTER{name = 'IBM'} s"
RISES = "s FOLD{$2.name = $.name, $2.price > $.price} s"
REBOUNDS = """
SELECT who, most, least, price FROM FILTER{price >= 1.05 * least} (
  (SELECT name AS who, price_1 AS most, price AS least FROM FILTER{DUR >= 10 us}
     (FILTER{volume > 10000} s FOLD{$2.name = $.name, $2.price < $.price} s))
  NEXT{who = name} s)
"""
REBOUNDS_LATER = """
SELECT who, most, least, price FROM
  (SELECT name AS who, price_1 AS most, price AS least FROM FILTER{DUR >= 10 us}
     (FILTER{volume > 10000} s FOLD{$2.name = $.name, $2.price < $.price} s))
  NEXT{who = name AND price >= 1.05 * least} s
"""
MEANS = f"""
SELECT price, mean FROM FILTER{{price > mean}} (
  (SELECT mean FROM FILTER{{DUR = 2 us}} (
     (SELECT *, price AS mean, 1 AS n FROM {IBM})
     FOLD{{, , ($.n * $.mean + $2.price) / ($.n + 1) AS mean, $.n + 1 AS n}} {IBM}))
  NEXT{{}} {IBM})
"""
STAYS = f"""
SELECT low, price FROM (SELECT name, price, price_1 AS low FROM {RISES})
  FOLD{{$2.name = $.name, $2.price > $1.low}} (SELECT name, price FROM s)
"""
BEST = """
AT INSTANT{ARG_MAX(of, mean) AS best, MAX(mean) AS mean} (
  (SELECT name AS of, price AS mean FROM FILTER{name <> 'GOOG'} s)
  NEXT{name = 'GOOG' AND price > 400} s)
"""
SPREADS = (
    "SELECT link_1, link FROM FILTER{site = 'apple'} feed FOLD{contains($2.text, $.link)} feed"
)


def ibm(*prices: float) -> Bag:
    return [quote("IBM", price, time) for time, price in enumerate(prices)]


CASES: dict[str, tuple[str, Bag, list[Short]]] = {
    "above a bound": (
        "SELECT name, price FROM FILTER{name = 'IBM' AND price > 82} s",
        TWO_STOCKS,
        [("IBM", 84, 5, 5)],
    ),
    "just crossed a bound": (
        f"SELECT price_1, price FROM FILTER{{price_1 <= 82 AND price > 82}} ({IBM} NEXT{{}} {IBM})",
        TWO_STOCKS,
        [(82, 84, 3, 5)],
    ),
    "more than the quote before": (
        "SELECT name, price_1, price FROM FILTER{1.05 * price_1 <= price}"
        " (s NEXT{$1.name = $2.name} s)",
        TWO_STOCKS,
        [("Dell", 22, 24, 2, 4)],
    ),
    "a rise": (
        f"SELECT name, price_1, price FROM {RISES}",
        TWO_STOCKS,
        [
            ("Dell", 22, 24, 2, 4),
            ("IBM", 80, 82, 1, 3),
            ("IBM", 80, 84, 1, 5),
            ("IBM", 82, 84, 3, 5),
        ],
    ),
    "a rise that lasts": (
        f"SELECT name, price_1, price FROM FILTER{{DUR >= 4 us}} ({RISES})",
        TWO_STOCKS,
        [("IBM", 80, 84, 1, 5)],
    ),
    "above the mean of a time": (MEANS, ibm(80, 82, 87, 70, 90), [(90, 239 / 3, 1, 4)]),
    "a rise that does not come back": (
        STAYS,
        ibm(80, 84, 81, 82, 80, 90),
        [(80, 81, 0, 2), (80, 82, 0, 3)],
    ),
    "the best at an instant": (
        BEST,
        [quote("A", 10, 1), quote("B", 20, 1), quote("A", 30, 2), quote("GOOG", 401, 3)],
        [("A", 30, 3, 3)],
    ),
    "a fall and a rebound": (REBOUNDS, TRADES, REBOUND),
    "another rebound at the same instant": (
        REBOUNDS,
        [*TRADES, quote("IBM", 80, 9 * 60 + 24)],
        REBOUND,
    ),
    "a rise beside a fall, at the same instant": (
        REBOUNDS,
        [*TRADES, quote("IBM", 99, 9 * 60 + 17)],
        [],
    ),
    "a rebound that is not the next quote": (
        REBOUNDS,
        [*TRADES[:-1], quote("IBM", 82, 9 * 60 + 23), TRADES[-1]],
        [],
    ),
    "the next quote that is a rebound": (
        REBOUNDS_LATER,
        [*TRADES[:-1], quote("IBM", 82, 9 * 60 + 23), TRADES[-1]],
        REBOUND,
    ),
    "the first post about an item": (
        "SELECT of, link FROM (SELECT link AS of FROM FILTER{site = 'apple'} feed)"
        " NEXT{contains(text, of)} FILTER{site = 'blog'} feed",
        FEED,
        [("/1", "/3", 1, 3)],
    ),
    "a rumour that spreads": (
        SPREADS,
        FEED,
        [("/1", "/3", 1, 3), ("/1", "/4", 1, 4), ("/1", "/5", 1, 5)],
    ),
}


def rows_of(bag: Bag) -> list[Event]:
    """Events as they arrive."""
    ordered = sorted(bag, key=lambda each: each.end)
    rows = [{**each.row, "_seq": seq} for seq, each in enumerate(ordered)]
    return [{**row, "price": float(row["price"])} if "price" in row else row for row in rows]


def short(rows: list[Event]) -> list[Short]:
    """Rows as (attributes…, start, end), in order."""
    times = (START_TS, TS)
    found = [
        (*(value for name, value in row.items() if name not in times), *map(row.get, times))
        for row in rows
    ]
    return sorted(found, key=str)


def over_tables(text: str, streams: Mapping[str, list[Event]]) -> list[Short]:
    given = {
        name: pa.Table.from_pylist(rows, schema=SCHEMAS[name].arrow)
        for name, rows in streams.items()
    }
    return short(engines.plain(ev.cel(text, **given).to_arrow()))


def while_they_arrive(text: str, streams: Mapping[str, list[Event]]) -> list[Short]:
    engine = LiveEngine.of(best_plan(plan_sql(read_cel(text), SCHEMAS), {}), SCHEMAS, 0)
    steps = in_pieces(streams, random.Random(text))
    return short(lived(engine, steps, SCHEMAS).rows)


def rounded(rows: list[Short]) -> list[Short]:
    """A mean is rounded differently by those who add in another order."""
    return [tuple(round(x, 9) if isinstance(x, float) else x for x in row) for row in rows]


@pytest.mark.parametrize("ask", [over_tables, while_they_arrive])
@pytest.mark.parametrize("name", CASES)
def test_known_results(name: str, ask: Ask) -> None:
    text, bag, expected = CASES[name]
    found = ask(text, {"feed" if bag is FEED else "s": rows_of(bag)})
    assert rounded(found) == rounded(sorted(expected, key=str))


def test_the_family_that_no_left_nested_expression_has() -> None:
    """Of a NEXT (b NEXT c): m events, which all end at m + 1; if m = 0, n + 1 of them."""
    nested = "a NEXT{} (SELECT n AS x FROM b NEXT{} (SELECT n AS y FROM c))"
    for m in range(4):
        for n in range(3):
            streams = {
                "a": rows_of([at(0, n=0)]),
                "b": rows_of([at(time, n=time) for time in range(1, m + n + 3)]),
                "c": rows_of([at(m + 1, n=0), at(m + n + 2, n=0)]),
            }
            for ask in (over_tables, while_they_arrive):
                ends = [row[-1] for row in ask(nested, streams)]
                assert ends == ([m + 1] * m or [n + 2] * (n + 1)), (m, n)


WARMING = """
SELECT Sensor, Temp_1 AS t_first, Temp AS t_last, total
FROM FILTER{n >= 5 AND DUR <= 1h}(
  (SELECT *, 1 AS n, Temp AS total FROM FILTER{Temp > 25}(Readings))
  FOLD{$2.Sensor = $.Sensor, $2.Temp > $.Temp, $.n + 1 AS n, $.total + $2.Temp AS total} Readings)
PUBLISH Warming
"""
OPENED = """
SELECT Sensor, t_last FROM (SELECT Sensor AS s, t_last FROM Warming)
NEXT{s = Sensor AND kind = 'open'} Doors
"""


def test_the_examples_of_the_grammar(tmp_path: Path) -> None:
    with ev.open(tmp_path) as db:
        readings = db.create_stream("Readings", {"Sensor": "string", "Temp": "int64"})
        doors = db.create_stream("Doors", {"Sensor": "string", "kind": "string"})
        degrees = [24, 26, 27, 28, 29, 30, 29]
        readings.append([{"ts": at, "Sensor": "a", "Temp": t} for at, t in enumerate(degrees)])
        readings.append([{"ts": 2, "Sensor": "b", "Temp": 26}])
        kinds = [("a", "open"), ("b", "open"), ("a", "shut"), ("a", "open")]
        doors.append(
            [{"ts": 5 + at, "Sensor": name, "kind": kind} for at, (name, kind) in enumerate(kinds)]
        )
        (found,) = engines.plain(db.cel(WARMING).to_arrow())
        wanted = {"Sensor": "a", "t_first": 26, "t_last": 30, "total": 26 + 27 + 28 + 29 + 30}
        assert found == {TS: 5, START_TS: 1, **wanted}
        # What opened as the run ended did not open after it.
        assert engines.plain(db.cel(OPENED).to_arrow()) == [
            {TS: 8, START_TS: 1, "Sensor": "a", "t_last": 30}
        ]
