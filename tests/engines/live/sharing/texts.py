"""Texts of live queries of all kinds, with constants drawn at random, and events for them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa

from eventide.schema import Schema

SECOND = 1_000_000
CATALOG = {
    "cars": Schema.of({"car": "string", "speed": "float64", "lane": "int64"}),
    "photos": Schema.of({"car": "string"}),
}
Draw = Callable[[Random], str]

SELECTIONS: tuple[Draw, ...] = (
    lambda r: f"SELECT * FROM cars WHERE speed > {r.randrange(100)} AND lane = {r.randrange(4)}",
    lambda r: (
        f"SELECT * FROM cars WHERE speed > {r.randrange(100)}.5 OR NOT lane = {r.randrange(4)}"
    ),
    lambda r: (
        f"SELECT car, speed * 2 AS d, 'rule {r.randrange(9)}' AS rule FROM cars "
        f"WHERE car = '{r.choice('abc')}' AND speed >= -{r.randrange(5)}"
    ),
    lambda r: (
        f"SELECT car, ts, lane FROM cars WHERE lane = {r.randrange(4)} "
        f"UNION ALL SELECT car, ts, 7 AS lane FROM photos WHERE car = '{r.choice('abc')}'"
    ),
)
WINDOWS: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT car, window_start, SUM(speed) AS m FROM cars WHERE lane = {r.randrange(4)} "
        f"GROUP BY car, TUMBLE(ts, INTERVAL '{r.choice([5, 10])}' SECOND) "
        f"HAVING SUM(speed) > {r.randrange(300)}"
    ),
    lambda r: (
        "SELECT COUNT(*) AS n, window_end FROM cars "
        f"GROUP BY HOP(ts, INTERVAL '2' SECOND, INTERVAL '{r.choice([4, 6])}' SECOND)"
    ),
    lambda r: (
        "SELECT car, window_start, COUNT(*) AS n, SUM(speed) AS s FROM cars "
        f"GROUP BY car, TUMBLE(ts, INTERVAL '{r.choice([2, 3, 5, 7])}' SECOND) "
        f"HAVING COUNT(*) > {r.randrange(4)}"
    ),
    lambda r: (
        "SELECT car, COUNT(*) AS n FROM cars "
        f"WHERE speed > {r.randrange(60)} GROUP BY car, SESSION(ts, INTERVAL '2' SECOND)"
    ),
    lambda r: (
        "SELECT car, speed, AVG(speed) OVER (PARTITION BY car ORDER BY ts "
        "RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW) AS m "
        f"FROM cars WHERE lane >= {r.randrange(4)}"
    ),
    lambda r: (
        "SELECT a, SUM(b) AS s FROM (SELECT car AS a, window_start, AVG(speed) AS b FROM cars "
        f"WHERE lane = {r.randrange(4)} GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND)) "
        "GROUP BY a, TUMBLE(ts, INTERVAL '6' SECOND)"
    ),
)
PATTERNS: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT * FROM (SELECT * FROM cars WHERE lane <> {r.randrange(4)}) MATCH_RECOGNIZE ("
        "PARTITION BY car ORDER BY ts MEASURES FIRST(A.ts) AS f, LAST(B.speed) AS top "
        f"PATTERN (A B+) WITHIN INTERVAL '8' SECOND DEFINE A AS speed > {r.randrange(100)}, "
        f"B AS speed > PREV(speed) + {r.randrange(10)})"
    ),
    lambda r: (
        f"FROM cars PARTITION BY car DEFINE fast AS speed > {r.randrange(40, 90)}, "
        f"legal AS speed < {r.randrange(40, 90)} "
        "PATTERN legal overlaps fast WITHIN 1 MINUTE RETURN LAST(legal.speed) AS reached"
    ),
)
SEQUENCES: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT * FROM FILTER{{speed > {r.randrange(100)}}}(cars) "
        f"NEXT{{$1.car = $2.car AND DUR <= {r.choice([10, 20])}s}}(photos)"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{speed > {r.randrange(100)}}}(cars) "
        f"NEXT{{$1.car = $2.car AND $2.speed > $1.speed + {r.randrange(9)} "
        f"AND $2.lane = {r.randrange(4)} AND DUR <= 20s}}(cars)"
    ),
    lambda r: (
        f"SELECT * FROM (SELECT *, 1 AS n FROM FILTER{{lane = {r.randrange(4)}}}(cars)) "
        "FOLD{$2.car = $.car AND DUR <= 12s, "
        f"$2.speed > $.speed AND $2.speed > {r.randrange(50)}, $.n + 1 AS n}}(cars)"
    ),
    lambda r: (
        f"SELECT * FROM (SELECT lane AS first FROM FILTER{{lane = {r.randrange(4)}}}(cars)) "
        f"NEXT{{DUR <= 9s}}(FILTER{{speed > {r.randrange(50)}}}(cars) "
        "NEXT{$1.car = $2.car}(photos))"
    ),
    lambda r: (
        f"SELECT speed_1 AS first FROM FILTER{{speed > {r.randrange(100)}}}(cars) "
        f"NEXT{{$2.lane = {r.randrange(4)} AND $2.car = '{r.choice('abc')}' AND DUR <= 9s}}(cars)"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{lane = {r.randrange(4)}}}(cars) "
        f"FOLD{{$2.car = '{r.choice('abc')}' AND DUR <= 9s, , }}(cars)"
    ),
)
HYBRIDS: tuple[Draw, ...] = (
    lambda r: (
        "SELECT * FROM (SELECT window_end AS ts, car, SUM(speed) AS m FROM cars "
        f"WHERE lane = {r.randrange(2)} GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND)) "
        "MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES LAST(B.m) AS m "
        f"PATTERN (A B) DEFINE B AS m > PREV(m) + {r.choice([0, 20])})"
    ),
    lambda r: (
        "SELECT car, window_end, SUM(speed) AS m FROM cars "
        f"WHERE lane = {r.randrange(2)} GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND) "
        f"HAVING {r.choice(['SUM(speed) >', 'SUM(speed) <', '7 <'])} {r.randrange(300)}"
    ),
    lambda r: (
        "SELECT car, n FROM (SELECT car, COUNT(*) AS n FROM cars "
        f"GROUP BY car, TUMBLE(ts, INTERVAL '{r.choice([2, 3])}' SECOND)) "
        f"WHERE n > {r.randrange(4)}{r.choice(['', ' OR n = 1'])}"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{lane_1 = {r.randrange(3)}}}("
        f"FILTER{{speed > {r.choice([10, 30])}}}(cars) NEXT{{$1.car = $2.car AND DUR <= 9s}}(cars))"
    ),
    lambda r: (
        f"SELECT * FROM (SELECT lane_1 AS first FROM FILTER{{lane = {r.randrange(2)}}}(cars) "
        f"NEXT{{DUR <= 9s}}(photos)) NEXT{{$2.lane = {r.randrange(3)} AND DUR <= 20s}}(cars)"
    ),
    lambda r: (
        f"SELECT own FROM (SELECT car AS own FROM FILTER{{lane > {r.randrange(3)}}}(cars)) "
        f"NEXT{{$1.own = $2.car_1 AND DUR <= 20s}}(FILTER{{speed > {r.choice([10, 30])}}}(cars) "
        "NEXT{$1.car = $2.car AND DUR <= 9s}(photos))"
    ),
    lambda r: (
        f"FROM cars PARTITION BY car DEFINE fast AS speed > {r.choice([40, 70])}, "
        "legal AS speed < 60 PATTERN legal overlaps fast WITHIN 1 MINUTE "
        f"RETURN LAST(legal.speed) AS reached, {r.randrange(2)} AS kind"
    ),
    lambda r: (
        f"SELECT car, speed / {r.choice([1, 2])} AS half FROM (SELECT car, speed, "
        "AVG(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND "
        f"PRECEDING AND CURRENT ROW) AS m FROM cars) WHERE speed > m + {r.randrange(9)}"
    ),
)
"""Queries of which several have a part: a window, a sequence, a pattern; what is above differs."""
STANDING: tuple[Draw, ...] = (
    lambda r: (
        "SELECT car, COUNT(*) AS n FROM cars [RANGE 5 SECONDS] "
        f"WHERE lane = {r.randrange(4)} GROUP BY car"
    ),
    lambda r: (
        "SELECT c.car, c.speed FROM cars [RANGE 3 SECONDS] c JOIN photos [RANGE 3 SECONDS] p "
        f"ON p.car = c.car WHERE c.speed > {r.randrange(100)}"
    ),
    lambda r: (
        "ISTREAM (SELECT a.car, b.lane FROM cars [RANGE 3 SECONDS] a JOIN cars [RANGE 2 SECONDS] b "
        f"ON a.car = b.car AND a.speed < b.speed + {r.randrange(9)} "
        f"WHERE a.lane = {r.randrange(4)} AND b.lane <> {r.randrange(4)})"
    ),
    lambda r: (
        f"{r.choice(['ISTREAM', 'DSTREAM'])} (SELECT DISTINCT car FROM cars [RANGE 4 SECONDS] "
        f"WHERE speed > {r.randrange(100)})"
    ),
    lambda r: (
        "SELECT SUM(speed) AS s, MIN(lane) AS l FROM cars [RANGE 4 SECONDS SLIDE 2 SECONDS] "
        f"WHERE car = '{r.choice('abc')}' HAVING SUM(speed) > {r.randrange(200)}"
    ),
    lambda r: (
        "SELECT car, speed FROM cars [RANGE 6 SECONDS] "
        f"WHERE lane = {r.randrange(4)} ORDER BY speed DESC, car LIMIT 2"
    ),
)


def slid(random: Random) -> str:
    """Return a window that slides."""
    size, slide = random.choice([(4, 2), (5, 2), (6, 3), (3, 3), (9, 1)])
    return f"[RANGE {size} SECONDS SLIDE {slide} SECONDS]"


def some_cars(random: Random) -> str:
    """Return a condition, perhaps one of parts that exclude each other."""
    few = ", ".join(repr(each) for each in random.sample("abc", 2))
    return random.choice(
        [
            "",
            f"WHERE car IN ({few})",
            f"WHERE car = '{random.choice('abc')}'",
            f"WHERE lane = {random.randrange(3)} OR lane > 2",
            f"WHERE speed > {random.randrange(0, 90, 30)} OR lane = {random.randrange(4)}",
        ]
    )


PERIODIC: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT car, AVG(speed) AS m FROM cars {slid(r)} {some_cars(r)} GROUP BY car "
        f"HAVING COUNT(*) > {r.randrange(3)}"
    ),
    lambda r: f"RSTREAM (SELECT COUNT(*) AS n, MAX(speed) AS s FROM cars {slid(r)} {some_cars(r)})",
    lambda r: (
        f"{r.choice(['ISTREAM', 'DSTREAM'])} (SELECT c.lane, MIN(c.speed) - {r.randrange(5)} AS s, "
        f"COUNT(DISTINCT c.car) AS n FROM cars c {slid(r)} {some_cars(r)} GROUP BY c.lane, c.car)"
    ),
    lambda r: (
        f"SELECT MEDIAN(speed) AS m, SUM(lane) AS s, STDDEV(speed) AS d FROM cars {slid(r)} "
        f"{some_cars(r)} GROUP BY car"
    ),
    lambda r: (
        "SELECT n FROM (SELECT car, lane AS n, speed FROM cars "
        f"{slid(r)} WHERE speed > {r.randrange(0, 60, 20)}) x GROUP BY n"
    ),
)
KINDS: tuple[Draw, ...] = (
    *SELECTIONS,
    *WINDOWS,
    *PATTERNS,
    *SEQUENCES,
    *HYBRIDS,
    *STANDING,
    *PERIODIC,
)


def events(
    random: Random, stream: str, count: int, first_us: int, first_seq: int, disorder: float
) -> tuple[pa.RecordBatch, int]:
    """Return events that begin about an instant, some tied, some late; and how far they go."""
    now_us, times = first_us, []
    for _ in range(count):
        now_us += random.choice([0, 0, 1, 1, 2]) * SECOND // 2
        late_us = random.randrange(3 * SECOND) if random.random() < disorder else 0
        times.append(max(0, now_us - late_us))
    columns = {
        "ts": pa.array(times, pa.timestamp("us")),
        "_seq": pa.array(range(first_seq, first_seq + count), pa.int64()),
        "car": pa.array([random.choice(["a", "b", "c", None]) for _ in range(count)], pa.string()),
        "speed": pa.array(
            [random.choice([None, *map(float, range(0, 100, 7))]) for _ in range(count)],
            pa.float64(),
        ),
        "lane": pa.array([random.choice([None, 0, 1, 2, 3]) for _ in range(count)], pa.int64()),
    }
    names = CATALOG[stream].arrow.names
    return pa.RecordBatch.from_pydict({name: columns[name] for name in names}), now_us


ALIKE: tuple[Draw, ...] = (
    lambda r: (
        "SELECT ts, ts AS start_ts, car, lane AS n FROM cars "
        f"WHERE speed > {r.randrange(100)} OR lane = {r.randrange(4)}"
    ),
    lambda r: (
        "SELECT window_end AS ts, window_start AS start_ts, car, COUNT(*) AS n FROM cars "
        f"WHERE lane = {r.randrange(4)} "
        f"GROUP BY car, TUMBLE(ts, INTERVAL '{r.choice([5, 10])}' SECOND)"
    ),
    lambda r: (
        f"SELECT window_end AS ts, window_start AS start_ts, 'lane {r.randrange(4)}' AS car, "
        f"COUNT(*) AS n FROM cars WHERE lane = {r.randrange(4)} "
        "GROUP BY HOP(ts, INTERVAL '2' SECOND, INTERVAL '4' SECOND)"
    ),
    lambda r: (
        "SELECT ts, start_ts, car, n "
        f"FROM (SELECT * FROM cars WHERE lane <> {r.randrange(4)}) MATCH_RECOGNIZE ("
        "PARTITION BY car ORDER BY ts MEASURES LAST(ts) AS ts, FIRST(ts) AS start_ts, "
        "COUNT(B.speed) AS n PATTERN (A B+) WITHIN INTERVAL '8' SECOND "
        f"DEFINE A AS speed > {r.randrange(100)}, B AS speed > PREV(speed) + {r.randrange(10)})"
    ),
    lambda r: (
        f"SELECT car_1 AS car, lane_1 AS n FROM FILTER{{speed > {r.randrange(100)}}}(cars) "
        f"NEXT{{$1.car = $2.car AND DUR <= {r.choice([5, 10])}s}}(photos)"
    ),
    lambda r: (
        f"SELECT car_1 AS car, lane_1 AS n FROM FILTER{{lane = {r.randrange(4)}}}(cars) "
        f"NEXT{{DUR <= {r.choice([3, 9])}s}}(FILTER{{car = '{r.choice('abc')}'}}(photos))"
    ),
    lambda r: (
        "SELECT MIN(ts) AS ts, MAX(ts) AS start_ts, car, COUNT(*) AS n FROM cars "
        f"WHERE lane = {r.randrange(4)} GROUP BY car"
    ),
)
"""Queries of all kinds with the same columns: two times, a car, and a number. The last, without
windows, has no answer before the end.
"""
