"""Queries with the number of a query among their keys, and events for them.

The names are what is tested: every operator with state that may run live, alone and above others.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Bools
from eventide.operators.dividing import Wanted
from eventide.schema import QUERY_NUMBER, Schema
from tests.naive.windows import Event

SECOND = 1_000_000
SCHEMA = Schema.of({"$query": "int64", "car": "string", "lane": "int64", "speed": "int64"})
CATALOG = {"cars": SCHEMA, "trucks": SCHEMA}
QUERIES = 6

Q = '"$query"'


def pattern(rest: str, *, source: str = "cars", keys: str = "car") -> str:
    by = ", ".join(filter(None, [Q, keys]))
    return f"SELECT * FROM {source} MATCH_RECOGNIZE (PARTITION BY {by} {rest})"


RISES = (
    "MEASURES FIRST(speed) AS low, COUNT(*) AS speed PATTERN (A B+) "
    "WITHIN INTERVAL '20' SECOND DEFINE B AS speed >= PREV(speed)"
)
RISING = f"({pattern(RISES)})"

TEXTS = {
    "project": f"SELECT {Q}, ts, speed * 2 AS twice FROM cars WHERE speed > 3",
    "tumbling": f"SELECT {Q}, car, window_start, COUNT(*) AS n, SUM(speed) AS total, "
    f"FIRST(lane) AS lane FROM cars GROUP BY {Q}, car, TUMBLE(ts, INTERVAL '10' SECOND)",
    "hopping": f"SELECT {Q}, window_end, MAX(speed) AS top, COUNT(DISTINCT car) AS cars, "
    f"MEDIAN(speed) AS middle FROM cars "
    f"GROUP BY {Q}, HOP(ts, INTERVAL '4' SECOND, INTERVAL '10' SECOND)",
    "count": f"SELECT {Q}, car, COUNT(*) AS n, LAST(speed) AS last FROM cars "
    f"GROUP BY {Q}, car, TUMBLE(ROWS, 3)",
    "count sliding": f"SELECT {Q}, SUM(speed) AS total FROM cars GROUP BY {Q}, HOP(ROWS, 2, 4)",
    "sessions": f"SELECT {Q}, car, window_start, window_end, SUM(speed) AS total, "
    f"STDDEV(speed) AS spread FROM cars GROUP BY {Q}, car, SESSION(ts, INTERVAL '5' SECOND)",
    "range frames": f"SELECT *, SUM(speed) OVER (PARTITION BY {Q}, car ORDER BY ts "
    "RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT ROW) AS total FROM cars",
    "rows frames": f"SELECT *, MIN(speed) OVER (PARTITION BY {Q} ORDER BY ts "
    "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS least FROM cars",
    "ranks": f"SELECT {Q}, car, speed, place FROM (SELECT *, RANK() OVER "
    f"(PARTITION BY {Q}, window_end ORDER BY speed) AS place "
    "FROM TUMBLE(cars, ts, INTERVAL '10' SECOND)) WHERE place < 4",
    "pattern": pattern(RISES),
    "pattern scanned": pattern(
        "MEASURES MATCH_NUMBER() AS number, A.ts AS began, C.speed AS high "
        "PATTERN (A B* C) DEFINE A AS speed < 4, B AS lane = 1, C AS speed > 6"
    ),
    "pattern unmatched": pattern(
        "MEASURES MATCH_NUMBER() AS number, CLASSIFIER() AS part ALL ROWS PER MATCH WITH "
        "UNMATCHED ROWS PATTERN (A B* | C{2}) WITHIN INTERVAL '12' SECOND "
        "DEFINE A AS speed > 6, B AS speed < 5, C AS speed = 3",
        keys="",
    ),
    "pattern next": pattern(
        "MEASURES A.speed AS low, COUNT(*) AS n AFTER MATCH SKIP TO NEXT ROW STRATEGY "
        "skip_till_next PATTERN (A NOT B C | A D{2} NOT B) WITHIN INTERVAL '9' SECOND "
        "DEFINE A AS speed < 3, B AS speed > 7, C AS lane <> A.lane, D AS speed > A.speed"
    ),
    "pattern any": pattern(
        "MEASURES A.ts AS began, B.speed AS middle, C.speed AS last AFTER MATCH SKIP TO NEXT ROW "
        "STRATEGY skip_till_any PATTERN (A B NOT D C) WITHIN INTERVAL '8' SECOND "
        "DEFINE A AS speed < 4, B AS speed > A.speed, C AS speed > B.speed, D AS lane = 2"
    ),
    "pattern timeouts": pattern(
        "MEASURES FIRST(ts) AS began, CLASSIFIER() AS part, MATCH_NUMBER() AS number TIMEOUT ROWS "
        "STRATEGY skip_till_next PATTERN (A B{2} C) WITHIN INTERVAL '7' SECOND "
        "DEFINE A AS speed < 4, B AS lane = 1, C AS speed > 6"
    ),
    "pattern ordered": pattern(
        "ORDER BY ts, lane DESC, speed MEASURES CLASSIFIER() AS part, COUNT(*) AS n "
        "ALL ROWS PER MATCH PATTERN (A B C) WITHIN INTERVAL '30' SECOND "
        "DEFINE B AS lane < PREV(lane) OR speed > PREV(speed), C AS lane IS NULL"
    ),
    "situations": f"SELECT * FROM cars SITUATIONS (PARTITION BY {Q}, car "
    "DEFINE fast AS speed > 5, near AS lane = 1 AT LEAST 1 SECOND GAP 8 SECONDS "
    "RETURN MAX(speed) AS top, COUNT(*) AS n, FIRST(lane) AS lane)",
    "temporal early": f"FROM cars PARTITION BY {Q} DEFINE fast AS speed > 4, near AS lane = 1 "
    "PATTERN fast overlaps near; fast contains near; fast meets near; fast starts near; "
    "fast before near WITHIN 40 SECONDS "
    "RETURN START(fast) AS began, END(fast) AS ended, SUM(fast.speed) AS total, "
    "LAST(near.speed) AS last",
    "temporal confirmed": f"FROM cars PARTITION BY {Q}, car DEFINE slow AS speed < 6, "
    "known AS lane IS NOT NULL GAP 9 SECONDS PATTERN slow during known; slow overlaps known; "
    "slow contains known; slow finishes known; slow before known WITHIN 30 SECONDS CONFIRM "
    "LIMIT 3 PER KEY RETURN START(slow) AS began, END(known) AS ended, MIN(slow.speed) AS least",
    "temporal final": f"FROM cars PARTITION BY {Q} DEFINE fast AS speed > 4 AT LEAST 1 SECOND, "
    "near AS lane = 1 AT MOST 20 SECONDS PATTERN fast before near; fast overlaps near "
    "WITHIN 1 MINUTE DETECT FINAL RETURN START(fast) AS began, AVG(near.speed) AS mean",
    "sequence": "SELECT * FROM FILTER{speed > 3} cars "
    'NEXT{$1."$query" = $2."$query" AND $2.speed < $1.speed AND DUR <= 20 seconds} trucks',
    "chain": f"SELECT * FROM (SELECT {Q}, speed, 1 AS n FROM cars) "
    'FOLD{$2."$query" = $."$query" AND $2.speed >= $.speed, $.n < 4, $.n + 1 AS n} '
    f"(SELECT {Q}, speed FROM trucks)",
    "instants": 'SELECT * FROM AT INSTANT{COUNT(*) AS n, SUM(speed) AS s, "$query"} '
    '(cars NEXT{$1."$query" = $2."$query" AND DUR <= 9 seconds} cars)',
    "windows of windows": f"SELECT {Q}, window_end, SUM(n) AS n FROM (SELECT {Q}, window_end "
    f"AS ts, COUNT(*) AS n FROM cars GROUP BY {Q}, TUMBLE(ts, INTERVAL '4' SECOND)) "
    f"GROUP BY {Q}, TUMBLE(ts, INTERVAL '12' SECOND)",
    "tumbling over pattern": f"SELECT {Q}, window_end, COUNT(*) AS n, SUM(speed) AS total "
    f"FROM {RISING} GROUP BY {Q}, TUMBLE(ts, INTERVAL '9' SECOND)",
    "hopping over pattern": f"SELECT {Q}, window_end, COUNT(*) AS n, SUM(speed) AS total "
    f"FROM {RISING} GROUP BY {Q}, HOP(ts, INTERVAL '3' SECOND, INTERVAL '9' SECOND)",
    "sessions over pattern": f"SELECT {Q}, window_start, window_end, COUNT(*) AS n "
    f"FROM {RISING} GROUP BY {Q}, SESSION(ts, INTERVAL '3' SECOND)",
    "count over pattern": f"SELECT {Q}, SUM(speed) AS total FROM {RISING} "
    f"GROUP BY {Q}, HOP(ROWS, 2, 3)",
    "frames over pattern": f"SELECT *, SUM(speed) OVER (PARTITION BY {Q} ORDER BY ts "
    f"RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT ROW) AS total FROM {RISING}",
    "pattern over pattern": pattern(RISES, source=RISING, keys=""),
    "absence over pattern": pattern(
        "MEASURES A.ts AS began, B.speed AS middle AFTER MATCH SKIP TO NEXT ROW "
        "STRATEGY skip_till_any PATTERN (A B NOT C) WITHIN INTERVAL '8' SECOND "
        "DEFINE B AS speed >= A.speed, C AS speed > B.speed",
        source=RISING,
        keys="",
    ),
    "situations over pattern": f"SELECT * FROM {RISING} SITUATIONS (PARTITION BY {Q} "
    "DEFINE long AS speed > 2 GAP 5 SECONDS RETURN COUNT(*) AS n)",
    "sequence of sequences": f"SELECT * FROM (SELECT {Q}, speed FROM cars "
    'NEXT{$1."$query" = $2.second AND $1.speed < $2.top AND DUR <= 5 seconds} '
    f"(SELECT {Q} AS second, speed AS top FROM trucks)) "
    'NEXT{$1."$query" = $2."$query" AND DUR <= 9 seconds} FILTER{lane = 1} cars',
    "pattern over union": pattern(
        RISES,
        source=f"(SELECT {Q}, car, speed FROM cars UNION ALL SELECT {Q}, car, lane FROM trucks)",
    ),
}


NOBODY = frozenset[int]()
EVERYBODY = frozenset(range(QUERIES))


def among(queries: Iterable[int]) -> Wanted:
    """Which numbers are those of some queries."""
    chosen = list(queries)

    def wanted(numbers: pa.Array) -> Bools:
        return np.isin(numbers.to_numpy(zero_copy_only=False), chosen)

    return wanted


def rows_for(rows: Iterable[Event], queries: Iterable[int]) -> list[Event]:
    """The rows of some queries."""
    return [row for row in rows if row[QUERY_NUMBER] in queries]


def drawn(choose: random.Random, count: int) -> dict[str, list[Event]]:
    """Events of both streams, with ties and nulls, in order of time."""
    found = {}
    for name in CATALOG:
        ts, events = 0, list[Event]()
        for number in range(count):
            ts += choose.choice([0, 0, 100_000, SECOND // 2, SECOND])
            ts += 12 * SECOND if choose.random() < 0.03 else 0
            events.append(
                {
                    "ts": ts,
                    "_seq": number,
                    "$query": choose.randrange(QUERIES),
                    "car": choose.choice(["a", "b", None]),
                    "lane": choose.choice([1, 2, None]),
                    "speed": choose.choice([None, 1, 2, 3, 4, 5, 6, 7, 8]),
                }
            )
        found[name] = events
    return found
