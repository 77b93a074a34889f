"""Texts of live queries with what few queries have, and events for them."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from eventide.schema import Schema
from tests.engines.live.sharing.texts import SECOND, Draw

RARE = {
    "cars": Schema.of(
        {
            "car": "string",
            "speed": "float64",
            "lane": "int64",
            "fee": "decimal(9, 2)",
            "due": "timestamp",
            "ok": "bool",
            "odd name": "int64",
            "x70": "int64",
        }
    ),
    "photos": Schema.of({"car": "string", "speed": "float64"}),
    "silent": Schema.of({"car": "string"}),
}

CONDITIONS: tuple[Draw, ...] = (
    lambda r: f"lane IN ({r.randrange(4)}, {r.randrange(4)}, NULL)",
    lambda r: f"lane NOT IN ({r.randrange(4)}, {r.randrange(4)})",
    lambda r: f"car LIKE '{r.choice(['a%', '_', '%b%', 'c', 'a_%'])}'",
    lambda r: f"UPPER(car) = '{r.choice('ABC')}' OR car IS NULL",
    lambda r: f"COALESCE(lane, {r.randrange(4)}) = {r.randrange(4)}",
    lambda r: f"CASE WHEN ok THEN speed ELSE -{r.randrange(50)} END > -{r.randrange(60)}.25",
    lambda r: f"fee > {r.choice(['0.5', '-1.25', '12', '3.000', '-0.0'])}",
    lambda r: (
        f"fee = {r.choice(['0.50', '1.25', '-1.25', '7'])} OR fee < "
        f"-{r.randrange(9)}.{r.randrange(10)}"
    ),
    lambda r: f"due > TIMESTAMP '1970-01-01 00:00:{r.randrange(10, 50)}'",
    lambda r: f"due - ts > INTERVAL '{r.randrange(9)}' SECOND",
    lambda r: f"due + INTERVAL '{r.randrange(9)}' SECOND > ts",
    lambda r: f'"odd name" = {r.randrange(4)} AND x70 >= {r.choice([0, 1, 70])}',
    lambda r: f"speed BETWEEN {r.randrange(50)} AND {r.randrange(50, 100)} AND ok",
    lambda r: f"NOT ok OR speed / 2 > {r.randrange(40)}",
    lambda r: f"speed IS DISTINCT FROM {r.choice(['NULL', '7', '14.0'])}",
    lambda r: f"speed > {r.randrange(60)} /* {r.randrange(9)} > 'x' */ AND lane = {r.randrange(4)}",
    lambda r: (
        f"ts >= TIMESTAMP '1970-01-01 00:00:{r.randrange(10, 30)}' AND lane = {r.randrange(4)}"
    ),
    lambda r: (
        f"ts < TIMESTAMP '1970-01-01 00:00:{r.randrange(10, 59)}' AND speed > {r.randrange(60)}"
    ),
    lambda r: f"car || '{r.choice('xy')}' = 'a{r.choice('xy')}'",
    lambda r: f"car >= '{r.choice('abc')}' AND car < '{r.choice('bcd')}'",
    lambda r: f"EXTRACT(SECOND FROM ts) > {r.randrange(60)}",
    lambda r: f"speed > {r.choice(['1e1', '2.5e1', '.5', '70', '9007199254740993'])}",
    lambda r: f"car = 'it''s {r.randrange(3)}' OR lane = {r.randrange(4)}",
    lambda r: f"lane = {r.randrange(4)}.0 AND speed <> {r.randrange(4)}",
    lambda r: f"lane + {r.randrange(4)} = x70 - {r.randrange(4)}",
    lambda r: f"speed > NULL OR ok = {r.choice(['TRUE', 'FALSE'])}",
    lambda _: "TRUE",
    lambda r: (
        f"ABS(speed - {r.randrange(90)}) < {r.randrange(5, 60)} AND MOD(lane, 2) = {r.randrange(2)}"
    ),
)


def where(random: Random) -> str:
    """Return a condition on cars."""
    return random.choice(CONDITIONS)(random)


def window(random: Random) -> str:
    """Return a window of `GROUP BY`."""
    size = random.choice([2, 4, 6])
    return random.choice(
        [
            f"TUMBLE(ts, INTERVAL '{size}' SECOND)",
            f"HOP(ts, INTERVAL '2' SECOND, INTERVAL '{size}' SECOND)",
            f"SESSION(ts, INTERVAL '{size}' SECOND)",
            f"HOP(ROWS, 2, {size})",
            f"TUMBLE(ROWS, {size})",
        ]
    )


AGGREGATES: tuple[Draw, ...] = (
    lambda _: "COUNT(DISTINCT lane)",
    lambda r: f"SUM(speed) FILTER (WHERE lane = {r.randrange(4)})",
    lambda _: "MODE(lane)",
    lambda r: f"QUANTILE_CONT(speed, 0.{r.randrange(1, 10)})",
    lambda _: "MEDIAN(speed)",
    lambda _: "FIRST(speed)",
    lambda _: "LAST(lane)",
    lambda _: "ARG_MAX(lane, speed)",
    lambda _: "STRING_AGG(car, '-')",
    lambda r: f"SUM(lane + {r.randrange(5)})",
    lambda _: "SUM(fee)",
    lambda _: "MIN(due)",
    lambda r: f"AVG(CASE WHEN speed > {r.randrange(90)} THEN 1 ELSE 0 END)",
    lambda _: "COUNT(*)",
    lambda _: "MAX(speed) - MIN(speed)",
    lambda r: f"COUNT(*) FILTER (WHERE speed > {r.randrange(90)} AND car LIKE 'a%')",
    lambda r: f"SUM(DISTINCT lane) + {r.randrange(9)}",
    lambda _: "STDDEV(speed)",
)


def windows(random: Random) -> str:
    """Return a query over windows."""
    first, second = random.choice(AGGREGATES)(random), random.choice(AGGREGATES)(random)
    key, also = random.choice([("car, ", ", car"), ("", ""), ("lane % 2, ", "")])
    having = random.choice(["", f" HAVING COUNT(*) > {random.randrange(3)}"])
    return (
        f"SELECT {first} AS a, {second} AS b{also} FROM cars WHERE {where(random)} "
        f"GROUP BY {key}{window(random)}{having}"
    )


FRAMES: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT car, speed, SUM(speed) OVER (PARTITION BY car ORDER BY ts ROWS BETWEEN "
        f"{r.randrange(1, 4)} PRECEDING AND CURRENT ROW) AS s FROM cars WHERE {where(r)}"
    ),
    lambda r: (
        f"SELECT * FROM (SELECT car, LAG(speed) OVER (PARTITION BY car ORDER BY ts) AS p, speed "
        f"FROM cars WHERE {where(r)}) WHERE speed > p + {r.randrange(30)}"
    ),
    lambda r: (
        "SELECT car, speed, next FROM (SELECT *, ROW_NUMBER() OVER w AS place, LEAD(speed) OVER w "
        f"AS next FROM cars WHERE {where(r)} WINDOW w AS (PARTITION BY car ORDER BY ts)) "
        f"WHERE place <= {r.randrange(1, 4)}"
    ),
    lambda r: (
        f"SELECT car, RANK() OVER (ORDER BY ts) AS r, DENSE_RANK() OVER (PARTITION BY lane "
        f"ORDER BY ts) AS d FROM cars WHERE {where(r)}"
    ),
    lambda r: (
        "SELECT window_start, car, top FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "
        "window_start, window_end ORDER BY top DESC) AS place FROM (SELECT window_start, "
        f"window_end, car, MAX(speed) AS top FROM cars WHERE {where(r)} GROUP BY car, "
        f"TUMBLE(ts, INTERVAL '{r.choice([4, 6])}' SECOND))) WHERE place <= {r.randrange(1, 3)}"
    ),
    lambda r: (
        f"SELECT car, speed FROM cars WHERE {where(r)} UNION ALL "
        f"SELECT car, speed FROM photos WHERE speed > {r.randrange(90)}"
    ),
    lambda r: (
        f"SELECT car, ts FROM cars WHERE {where(r)} UNION ALL SELECT car, ts FROM silent "
        f"WHERE car <> '{r.choice('abc')}'"
    ),
    lambda r: (
        f"WITH fast AS (SELECT ts, car, speed FROM cars WHERE {where(r)}) SELECT car, COUNT(*) "
        f"AS n FROM fast WHERE speed > {r.randrange(70)} GROUP BY car, {window(r)}"
    ),
    lambda r: (
        f"SELECT *, {r.choice(['NULL', '1', '-2', chr(39) + 'x' + chr(39), '0.50'])} AS k, "
        f'speed * {r.randrange(5)} AS "a {r.randrange(3)}", {r.randrange(9)} + 1 FROM cars '
        f"WHERE {where(r)}"
    ),
    lambda r: (
        f"SELECT car, CASE WHEN lane = {r.randrange(4)} THEN 'x' ELSE car END AS c, "
        f"COALESCE(speed, {r.randrange(9)}) AS s, DATE_TRUNC('{r.choice(['minute', 'second'])}', "
        f"ts) AS m FROM cars WHERE {where(r)}"
    ),
)


def row_pattern(random: Random) -> str:
    """Return a row pattern."""
    strategy = random.choice(
        ["", "", "STRATEGY contiguous", "STRATEGY skip_till_next", "STRATEGY skip_till_any"]
    )
    pattern = random.choice(
        ["A B+", "A B+? C", "PERMUTE(A, B)", "A B (B | C)*", "A{1,2} B", "(A B){2}", "A {- B -} C"]
    )
    rows = random.choice(["", "ONE ROW PER MATCH ", "ALL ROWS PER MATCH "])
    skip = random.choice(
        [
            "",
            "AFTER MATCH SKIP PAST LAST ROW ",
            "AFTER MATCH SKIP TO NEXT ROW ",
            "AFTER MATCH SKIP TO LAST B ",
        ]
    )
    if strategy == "STRATEGY skip_till_any" or ("LAST B" in skip and "PERMUTE" in pattern):
        skip = ""
    within = random.choice(["", f"WITHIN INTERVAL '{random.choice([3, 8])}' SECOND "])
    measures = random.choice(
        [
            "MATCH_NUMBER() AS m, ",
            "CLASSIFIER() AS c, ",
            f"SUM(A.speed) + {random.randrange(9)} AS total, ",
            "COUNT(*) AS n, ",
        ]
    )
    key = random.choice(["PARTITION BY car ", "", "PARTITION BY car, lane "])
    define = (
        f"A AS speed > {random.randrange(90)}, B AS speed > PREV(speed) - {random.randrange(40)} "
        f"AND lane <> {random.randrange(4)}"
    )
    if "C" in pattern:
        define += random.choice(
            [
                f", C AS speed < A.speed + {random.randrange(20)}",
                f", C AS lane = {random.randrange(4)} OR AVG(B.speed) > {random.randrange(60)}",
                f", C AS car IN ('{random.choice('abc')}', 'b')",
            ]
        )
    return (
        f"SELECT * FROM (SELECT * FROM cars WHERE {where(random)}) MATCH_RECOGNIZE "
        f"({key}ORDER BY ts "
        f"MEASURES {measures}LAST(lane) AS last_lane {rows}{skip}PATTERN ({pattern}) {within}"
        f"{strategy} DEFINE {define})"
    )


SITUATIONS: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT * FROM (SELECT * FROM cars WHERE {where(r)}) SITUATIONS (PARTITION BY car DEFINE "
        f"fast AS speed > {r.randrange(70)} {r.choice(['', 'AT LEAST 1 s', 'AT MOST 2 s'])}, slow "
        f"AS speed < {r.randrange(30)} {r.choice(['', 'GAP 3 s'])} "
        f"RETURN COUNT(*) AS n, MAX(speed) AS top)"
    ),
    lambda r: (
        f"FROM cars PARTITION BY car DEFINE fast AS speed > {r.randrange(20, 70)} "
        f"{r.choice(['', 'AT LEAST 1 s', 'BETWEEN 1 s AND 4 s'])}, one AS lane = {r.randrange(4)} "
        f"PATTERN fast {r.choice(['before', 'overlaps', 'during', 'meets', 'starts'])} one "
        f"WITHIN {r.choice([5, 60])} SECONDS {r.choice(['', 'GAP 4 s '])}"
        f"RETURN COUNT(fast.speed) AS n, DURATION(fast) AS d, {r.randrange(5)} AS k"
    ),
)
CEL: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT car, n FROM AT INSTANT{{COUNT(*) AS n, MAX(speed) AS car}} FILTER{{speed "
        f"> {r.randrange(70)}}} cars"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{lane = {r.randrange(4)}}} cars NEXT{{$1.car = $2.car AND "
        f"DUR <= 8 s}} "
        f"(FILTER{{speed > {r.randrange(60)}}} cars NEXT{{$1.car = $2.whose AND $1.speed "
        f"> {r.randrange(50)}}} "
        "(SELECT car AS whose, speed AS other FROM photos))"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{speed > {r.randrange(80)}}} cars NEXT{{$1.car = $2.car AND DUR <= "
        f"{r.choice([3, 9])} s}} (FILTER{{speed > {r.randrange(80)}}} photos UNION "
        f"(SELECT car, speed FROM FILTER{{lane = {r.randrange(4)}}} cars))"
    ),
    lambda r: (
        f"SELECT car, n, speed FROM FILTER{{n >= {r.randrange(1, 3)}}} ((SELECT *, "
        f"{r.randrange(3)} AS n FROM "
        f"FILTER{{lane <> {r.randrange(4)}}} cars) FOLD{{$.car = $2.car AND DUR <= 6 s, "
        f"$2.speed >= $.speed - {r.randrange(30)}, $.n + 1 AS n}} (SELECT car, speed FROM cars))"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{car = '{r.choice('abc')}'}} silent NEXT{{$1.car = $2.car}} cars"
    ),
)
STANDING: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT car, SUM(speed) AS s FROM cars [RANGE {r.choice([3, 5])} SECONDS] WHERE "
        f"{where(r)} "
        "GROUP BY car"
    ),
)
KINDS: tuple[Draw, ...] = (
    lambda r: f"SELECT * FROM cars WHERE {where(r)}",
    lambda r: f"SELECT car, lane FROM cars WHERE ({where(r)}) AND NOT ({where(r)})",
    windows,
    windows,
    *FRAMES,
    row_pattern,
    row_pattern,
    row_pattern,
    *SITUATIONS,
    *CEL,
    *STANDING,
)


def rare_events(
    random: Random, stream: str, count: int, first_us: int, first_seq: int, disorder: float
) -> tuple[pa.RecordBatch, int]:
    """Return events that begin about an instant, some tied, some late; and how far they go."""
    now_us, times = first_us, []
    for _ in range(count):
        now_us += random.choice([0, 0, 1, 1, 2]) * SECOND // 2
        late_us = random.randrange(3 * SECOND) if random.random() < disorder else 0
        times.append(max(0, now_us - late_us))

    def drawn(*values: object) -> list[object]:
        return [random.choice([None, *values]) for _ in range(count)]

    schema = RARE[stream].arrow
    columns = {
        "ts": times,
        "_seq": list(range(first_seq, first_seq + count)),
        "car": drawn("a", "b", "c", "ab", "it's 1"),
        "speed": drawn(*map(float, range(0, 100, 7)), -0.0, 12.5),
        "lane": drawn(0, 1, 2, 3),
        "fee": drawn("0.50", "1.25", "-1.25", "7.00", "-8.75"),
        "due": [random.choice([None, t - 4 * SECOND, t + 3 * SECOND]) for t in times],
        "ok": drawn(True, False),
        "odd name": drawn(0, 1, 2, 3),
        "x70": drawn(0, 1, 70),
    }
    arrays = []
    for field in schema:
        values = columns[field.name]
        if pa.types.is_decimal(field.type):
            arrays.append(pa.array(values, pa.string()).cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema), now_us
