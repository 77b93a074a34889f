"""Standing queries: the plans of their texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.schema import Schema

CATALOG = {
    **{
        name: Schema.of({"src": "string", "dst": "string", "bytes": "int64", "load": "float64"})
        for name in ("link1", "link2", "link3")
    },
    "cars": Schema.of({"car": "string", "speed": "float64", "x": "int64"}),
    "quotes": Schema.of({"sym": "string", "price": "float64"}),
    "trades": Schema.of({"sym": "string", "price": "float64", "n": "int64"}),
    "companies": replace(
        Schema.of({"sym": "string", "name": "string", "deleted": "bool"}), key=("sym",)
    ),
}

_BUSY = "CASE WHEN cars.x > 3 THEN cars.car ELSE NULL END, 0.01, 1000"
PLANS: list[tuple[str, str]] = [
    (
        "SELECT * FROM trades t [RANGE 1 s] ASOF JOIN quotes q USING (sym, ts)",
        """\
Standing
  Project t.ts AS ts, t.sym AS sym, t.price AS t_price, t.n AS n, q.price AS q_price
    AsOfJoin on t.sym = q.sym, the newest until then
      Windowed trades AS t, the last 1 s (ts, sym, price, n)
      Windowed quotes AS q, all events (ts, sym, price)""",
    ),
    (
        "SELECT b.sym AS sym_b, t.*, b.* EXCEPT (sym, ts) FROM quotes b [NOW], quotes t [NOW]",
        """\
Standing
  Project b.sym AS sym_b, t.ts AS ts, t.sym AS sym, t.price AS t_price, b.price AS b_price
    WindowJoin of all with all
      Windowed quotes AS b, the last 1 us (ts, sym, price)
      Windowed quotes AS t, the last 1 us (ts, sym, price)""",
    ),
    (
        "SELECT * FROM companies",
        """\
Standing
  Project companies.ts AS ts, companies.sym AS sym, companies.name AS name
    Windowed companies, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        "SELECT upper(c.name) AS big FROM companies AS c WHERE c.sym > 'a' AND name IS NOT NULL",
        """\
Standing
  Project upper(c.name) AS big
    Filter c.sym > 'a' AND c.name IS NOT NULL
      Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        "SELECT t.n FROM trades t JOIN companies c ON t.sym = c.sym WHERE c.name <> 'x'",
        """\
Relational SELECT t.n FROM eventide_0 AS t JOIN eventide_1 AS c ON t.sym = c.sym
  eventide_0:
    Project sym, n
      Scan trades (ts, sym, n)
  eventide_1:
    Standing
      Project c.sym AS sym
        Filter c.name <> 'x'
          Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)\
""",
    ),
    (
        "SELECT * FROM cars [RANGE 60 SECONDS]",
        """\
Standing
  Project cars.ts AS ts, cars.car AS car, cars.speed AS speed, cars.x AS x
    Windowed cars, the last 1 min (ts, car, speed, x)""",
    ),
    (
        (
            "SELECT a.src, b.dst FROM link1 a [RANGE 1 MINUTE], link2 [RANGE 1 MINUTE] b "
            "WHERE a.src = b.src AND a.bytes > 10 AND a.load < b.load"
        ),
        """\
Standing
  Project a.src AS src, b.dst AS dst
    WindowJoin on a.src = b.src where a.load < b.load
      Filter a.bytes > 10
        Windowed link1 AS a, the last 1 min (ts, src, bytes, load)
      Windowed link2 AS b, the last 1 min (ts, src, dst, load)""",
    ),
    (
        (
            "SELECT a.src FROM link1 [ROWS 3] a JOIN link2 b USING (src) JOIN link3 c ON "
            "c.src = b.src"
        ),
        """\
Standing
  Project a.src AS src
    WindowJoin on a.src = b.src = c.src
      Windowed link1 AS a, the last 3 rows (ts, src)
      Windowed link2 AS b, all events (ts, src)
      Windowed link3 AS c, all events (ts, src)""",
    ),
    (
        ("SELECT a.src FROM link1 [ROWS 3] a, link2 b, link3 c WHERE a.src=b.src AND b.dst=c.dst"),
        """\
Standing
  Project a.src AS src
    WindowJoin on b.dst = c.dst
      WindowJoin on a.src = b.src
        Windowed link1 AS a, the last 3 rows (ts, src)
        Windowed link2 AS b, all events (ts, src, dst)
      Windowed link3 AS c, all events (ts, dst)""",
    ),
    (
        "SELECT a.src FROM link1 [ROWS 3] a, link2 b, link3 c",
        """\
Standing
  Project a.src AS src
    WindowJoin of all with all
      WindowJoin of all with all
        Windowed link1 AS a, the last 3 rows (ts, src)
        Windowed link2 AS b, all events (ts)
      Windowed link3 AS c, all events (ts)""",
    ),
    (
        ("SELECT a.x FROM cars [NOW] a, cars [NOW] b WHERE ABS(a.x-b.x) <= 5 AND a.car <> b.car"),
        """\
Standing
  Project a.x AS x
    WindowJoin where abs(a.x - b.x) <= 5 AND a.car <> b.car, a.x near b.x
      Windowed cars AS a, the last 1 us (ts, car, x)
      Windowed cars AS b, the last 1 us (ts, car, x)""",
    ),
    (
        (
            "SELECT a.x FROM cars [RANGE 1 s] a, cars [RANGE 1 s] b WHERE a.ts BETWEEN "
            "b.ts - INTERVAL '1' SECOND AND b.ts + INTERVAL '2' SECOND"
        ),
        """\
Standing
  Project a.x AS x
    WindowJoin where a.ts >= b.ts - INTERVAL '1 s' AND a.ts <= b.ts + INTERVAL '2 s', a.ts near b.ts
      Windowed cars AS a, the last 1 s (ts, x)
      Windowed cars AS b, the last 1 s (ts)""",
    ),
    (
        (
            "SELECT car, count(*) AS n, top_k(x, 3) AS t, count(distinct x) d FROM cars "
            "[RANGE 1 MINUTE SLIDE 10 s] GROUP BY car HAVING count(*) > 3"
        ),
        """\
Standing every 10 s
  Project cars.car AS car, n, t, d
    Filter n > 3
      GroupAggregate by cars.car: count(*) AS n, top_k(cars.x, 3) AS t, count(DISTINCT cars.x) AS d
        Windowed cars, the last 1 min (ts, car, x)""",
    ),
    (
        (
            "SELECT FREQUENT(car, 0.01) FILTER (WHERE x > 3) AS busy, upper - lower AS unsure "
            "FROM cars [RANGE 1 MINUTE SLIDE 10 s] HAVING lower > 5"
        ),
        f"""\
Standing every 10 s
  Project busy, lower, upper, upper - lower AS unsure
    Filter lower > 5
      GroupAggregate: frequent({_BUSY}) AS busy, frequent_lower({_BUSY}) AS lower, \
frequent_upper({_BUSY}) AS upper
        Windowed cars, the last 1 min (ts, car, x)""",
    ),
    (
        "SELECT DISTINCT src FROM link1 [RANGE 1 MINUTE]",
        """\
Standing
  Distinct
    Project link1.src AS src
      Windowed link1, the last 1 min (ts, src)""",
    ),
    (
        (
            "SELECT src FROM link1 [RANGE 1 s] UNION ALL SELECT dst FROM link2 UNION ALL "
            "SELECT src FROM link3"
        ),
        """\
Standing
  Merge
    Project link1.src AS src
      Windowed link1, the last 1 s (ts, src)
    Project link2.dst AS src
      Windowed link2, all events (ts, dst)
    Project link3.src AS src
      Windowed link3, all events (ts, src)""",
    ),
    (
        "SELECT src FROM link1 [RANGE 1 s] EXCEPT SELECT dst FROM link2",
        """\
Standing
  Difference
    Distinct
      Project link1.src AS src
        Windowed link1, the last 1 s (ts, src)
    Distinct
      Project link2.dst AS src
        Windowed link2, all events (ts, dst)""",
    ),
    (
        "SELECT src FROM link1 [RANGE 1 s] EXCEPT ALL SELECT dst FROM link2",
        """\
Standing
  Difference
    Project link1.src AS src
      Windowed link1, the last 1 s (ts, src)
    Project link2.dst AS src
      Windowed link2, all events (ts, dst)""",
    ),
    (
        "SELECT bytes FROM link1 [RANGE 1 s] UNION SELECT load FROM link2",
        """\
Standing
  Distinct
    Merge
      Project CAST(link1.bytes AS float64) AS bytes
        Windowed link1, the last 1 s (ts, bytes)
      Project link2.load AS bytes
        Windowed link2, all events (ts, load)""",
    ),
    (
        (
            "SELECT * FROM link1 a [RANGE 1 s] WHERE NOT EXISTS (SELECT 1 FROM link2 b "
            "[RANGE 2 s] WHERE b.src = a.src AND b.bytes > 3)"
        ),
        """\
Standing
  Project a.ts AS ts, a.src AS src, a.dst AS dst, a.bytes AS bytes, a.load AS load
    NotExists on a.src = b.src
      Windowed link1 AS a, the last 1 s (ts, src, dst, bytes, load)
      Filter b.bytes > 3
        Windowed link2 AS b, the last 2 s (ts, src, bytes)""",
    ),
    (
        "SELECT * FROM link1 a [RANGE 1 s] WHERE src IN (SELECT src FROM link2 b)",
        """\
Standing
  Project a.ts AS ts, a.src AS src, a.dst AS dst, a.bytes AS bytes, a.load AS load
    Exists on a.src = b.src
      Windowed link1 AS a, the last 1 s (ts, src, dst, bytes, load)
      Windowed link2 AS b, all events (ts, src)""",
    ),
    (
        "SELECT * FROM link1 a [RANGE 1 s] WHERE src NOT IN (SELECT src FROM link2 b)",
        """\
Standing
  Project a.ts AS ts, a.src AS src, a.dst AS dst, a.bytes AS bytes, a.load AS load
    NotExists on CASE WHEN a.src IS NULL THEN 1 ELSE NULL END = 1
      NotExists
        NotExists on a.src = b.src
          Windowed link1 AS a, the last 1 s (ts, src, dst, bytes, load)
          Windowed link2 AS b, all events (ts, src)
        Filter b.src IS NULL
          Windowed link2 AS b, all events (ts, src)
      Windowed link2 AS b, all events (ts)""",
    ),
    (
        (
            "SELECT t.sym, q.price FROM trades t [RANGE 1 s] ASOF JOIN quotes q ON t.sym "
            "= q.sym AND t.ts >= q.ts"
        ),
        """\
Standing
  Project t.sym AS sym, q.price AS price
    AsOfJoin on t.sym = q.sym, the newest until then
      Windowed trades AS t, the last 1 s (ts, sym)
      Windowed quotes AS q, all events (ts, sym, price)""",
    ),
    (
        (
            "SELECT t.sym, q.price FROM trades t [RANGE 1 s] ASOF LEFT JOIN quotes q ON "
            "t.sym = q.sym AND t.ts > q.ts WHERE q.price > 3"
        ),
        """\
Standing
  Project t.sym AS sym, q.price AS price
    Filter q.price > 3.0
      AsOfJoin outer on t.sym = q.sym, the newest before then
        Windowed trades AS t, the last 1 s (ts, sym)
        Windowed quotes AS q, all events (ts, sym, price)""",
    ),
    (
        (
            "SELECT t.sym, c.name FROM trades t [RANGE 1 s] JOIN companies FOR "
            "SYSTEM_TIME AS OF t.ts AS c ON t.sym = c.sym"
        ),
        """\
Standing
  Project t.sym AS sym, c.name AS name
    AsOfJoin on t.sym = c.sym, the newest until then
      Windowed trades AS t, the last 1 s (ts, sym)
      Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        (
            "SELECT t.sym, c.name FROM trades t JOIN companies FOR SYSTEM_TIME AS OF t.ts AS c "
            "ON t.sym = c.sym"
        ),
        """\
Standing
  Project t.sym AS sym, c.name AS name
    AsOfJoin on t.sym = c.sym, the newest until then
      Windowed trades AS t, all events (ts, sym)
      Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        ("SELECT t.sym, c.name FROM trades t [RANGE 1 s] JOIN companies c ON t.sym = c.sym"),
        """\
Standing
  Project t.sym AS sym, c.name AS name
    WindowJoin on t.sym = c.sym
      Windowed trades AS t, the last 1 s (ts, sym)
      Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        "SELECT c.* FROM trades t [RANGE 1 s] JOIN companies c ON t.sym = c.sym",
        """\
Standing
  Project c.ts AS ts, c.sym AS sym, c.name AS name
    WindowJoin on t.sym = c.sym
      Windowed trades AS t, the last 1 s (ts, sym)
      Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        "ISTREAM (SELECT car FROM cars)",
        """\
Standing ISTREAM
  Project cars.car AS car
    Windowed cars, all events (ts, car)""",
    ),
    (
        "RSTREAM RESTORE (SELECT car FROM cars [RANGE 1 MINUTE SLIDE 10 s])",
        """\
Standing RSTREAM RESTORE every 10 s
  Project cars.car AS car
    Windowed cars, the last 1 min (ts, car)""",
    ),
    (
        "WSTREAM (SELECT car FROM cars [RANGE 1 MINUTE]) [ROWS 10]",
        """\
Standing the results of the last 10 rows
  Project cars.car AS car
    Windowed cars, the last 1 min, internal (ts, car)""",
    ),
    (
        "SELECT car, speed FROM cars [LATEST BY car] ORDER BY speed DESC LIMIT 3",
        """\
Standing
  Top 3 in order of speed DESC
    Project cars.car AS car, cars.speed AS speed
      Windowed cars, the last row of each car (ts, car, speed)""",
    ),
    (
        "SELECT car FROM cars [LATEST BY car] ORDER BY speed DESC, car LIMIT 3",
        """\
Standing
  Project car
    Top 3 in order of order_by DESC, car
      Project cars.car AS car, cars.speed AS order_by
        Windowed cars, the last row of each car (ts, car, speed)""",
    ),
    (
        "SELECT car FROM cars [LATEST BY car] ORDER BY speed DESC",
        """\
Relational SELECT car FROM eventide_0 ORDER BY order_by DESC
  eventide_0:
    Standing
      Project cars.car AS car, cars.speed AS order_by
        Windowed cars, the last row of each car (ts, car, speed)""",
    ),
    (
        "SELECT car FROM cars [LATEST BY car] LIMIT 3",
        """\
Relational SELECT car FROM eventide_0 LIMIT 3
  eventide_0:
    Standing
      Project cars.car AS car
        Windowed cars, the last row of each car (ts, car)""",
    ),
    (
        (
            "SELECT car, avg(speed) FROM (SELECT * FROM cars [RANGE 1 MINUTE] WHERE speed"
            " > 3) GROUP BY car"
        ),
        """\
Standing
  Project subquery.car AS car, avg(speed)
    GroupAggregate by subquery.car: avg(subquery.speed) AS avg(speed)
      Project cars.car AS subquery.car, cars.speed AS subquery.speed
        Filter cars.speed > 3.0
          Windowed cars, the last 1 min (ts, car, speed)""",
    ),
    (
        (
            "WITH x AS (SELECT * FROM cars [RANGE 1 MINUTE]) SELECT a.car, b.speed FROM x"
            " a JOIN x b ON a.car = b.car"
        ),
        """\
Standing
  Project a.car AS car, b.speed AS speed
    WindowJoin on a.car = b.car
      Project cars.car AS a.car
        Windowed cars, the last 1 min (ts, car)
      Project cars.car AS b.car, cars.speed AS b.speed
        Windowed cars, the last 1 min (ts, car, speed)""",
    ),
    (
        "SELECT row_number() OVER () AS n FROM (SELECT car FROM cars [RANGE 1 MINUTE])",
        """\
Relational SELECT ROW_NUMBER() OVER () AS n FROM (SELECT car FROM eventide_0)
  eventide_0:
    Standing
      Project cars.car AS car
        Windowed cars, the last 1 min (ts, car)""",
    ),
    (
        "SELECT a.x FROM (SELECT x FROM cars [NOW]) a LEFT JOIN cars b ON b.x = a.x",
        """\
Standing
  Project a.x AS x
    OuterJoin left on a.x = b.x
      Project cars.x AS a.x
        Windowed cars, the last 1 us (ts, x)
      Windowed cars AS b, all events (ts, x)""",
    ),
    (
        "SELECT a.x, b.bytes FROM cars a [NOW] JOIN cars c [NOW] USING (car) FULL JOIN link1 b "
        "ON b.src = a.car AND a.x > 0 AND b.bytes < c.x WHERE a.x IS NULL AND b.bytes > 5",
        """\
Standing
  Project a.x AS x, b.bytes AS bytes
    Filter a.x IS NULL AND b.bytes > 5
      OuterJoin full on a.car = b.src and CASE WHEN a.x > 0 THEN 1 ELSE NULL END = 1 where \
b.bytes < c.x
        WindowJoin on a.car = c.car
          Windowed cars AS a, the last 1 us (ts, car, x)
          Windowed cars AS c, the last 1 us (ts, car, x)
        Windowed link1 AS b, all events (ts, src, bytes)""",
    ),
    (
        "SELECT * FROM link1 a [NOW] FULL JOIN link2 b [NOW] USING (src) "
        "JOIN cars c ON c.x = a.bytes",
        """\
Standing
  Project a.ts AS a_ts, coalesce(a.src, b.src) AS src, a.dst AS a_dst, a.bytes AS a_bytes, \
a.load AS a_load, b.ts AS b_ts, b.dst AS b_dst, b.bytes AS b_bytes, b.load AS b_load, \
c.ts AS c_ts, c.car AS car, c.speed AS speed, c.x AS x
    WindowJoin on a.bytes = c.x
      OuterJoin full on a.src = b.src
        Windowed link1 AS a, the last 1 us (ts, src, dst, bytes, load)
        Windowed link2 AS b, the last 1 us (ts, src, dst, bytes, load)
      Windowed cars AS c, all events (ts, car, speed, x)""",
    ),
    (
        "SELECT * EXCLUDE (ts, dst, load) FROM link1 a [NOW] RIGHT JOIN link2 b [NOW] USING (src) "
        "JOIN link3 c ON c.dst = b.dst",
        """\
Standing
  Project b.src AS src, a.bytes AS a_bytes, b.bytes AS b_bytes, c.src AS c_src, c.bytes AS c_bytes
    WindowJoin on b.dst = c.dst
      OuterJoin right on a.src = b.src
        Windowed link1 AS a, the last 1 us (ts, src, bytes)
        Windowed link2 AS b, the last 1 us (ts, src, dst, bytes)
      Windowed link3 AS c, all events (ts, src, dst, bytes)""",
    ),
    (
        ("SELECT x.at, x.car FROM ISTREAM (SELECT car FROM cars [ROWS 3]) AS x WHERE x.car = 'a'"),
        """\
Project at, car
  Filter car = 'a'
    Standing ISTREAM
      Project cars.car AS car
        Windowed cars, the last 3 rows (ts, car)""",
    ),
    (
        "ISTREAM (SELECT car FROM cars [ROWS 3]) ORDER BY at LIMIT 3",
        """\
Relational SELECT * FROM (SELECT "at", car FROM eventide_0) ORDER BY "at" LIMIT 3
  eventide_0:
    Standing ISTREAM
      Project cars.car AS car
        Windowed cars, the last 3 rows (ts, car)""",
    ),
    (
        "WITH x AS (ISTREAM (SELECT car FROM cars [ROWS 3])) SELECT count(*) FROM x",
        """\
Relational WITH x AS (SELECT "at", car FROM eventide_0) SELECT COUNT(*) AS "count(*)" FROM x
  eventide_0:
    Standing ISTREAM
      Project cars.car AS car
        Windowed cars, the last 3 rows (ts, car)""",
    ),
    (
        "SELECT car FROM cars WHERE speed > (SELECT avg(speed) FROM cars [ROWS 3])",
        """\
Relational SELECT car FROM eventide_0 AS cars WHERE speed > (SELECT "avg(speed)" FROM eventide_1)
  eventide_0:
    Project car, speed
      Scan cars (ts, car, speed)
  eventide_1:
    Standing
      Project avg(speed)
        GroupAggregate: avg(cars.speed) AS avg(speed)
          Windowed cars, the last 3 rows (ts, speed)""",
    ),
    (
        "(SELECT car FROM cars [ROWS 3])",
        """\
Standing
  Project cars.car AS car
    Windowed cars, the last 3 rows (ts, car)""",
    ),
    (
        "WITH cars AS (SELECT * FROM cars [ROWS 3]) SELECT car FROM cars",
        """\
Standing
  Project cars.car AS car
    Project cars.car
      Windowed cars, the last 3 rows (ts, car)""",
    ),
    (
        "SELECT max(speed) FROM cars [ROWS 3] WHERE car = 'x'",
        """\
Standing
  Project max(speed)
    GroupAggregate: max(cars.speed) AS max(speed)
      Filter cars.car = 'x'
        Windowed cars, the last 3 rows (ts, car, speed)""",
    ),
    (
        "WITH x AS (SELECT car FROM cars) ISTREAM (SELECT * FROM x)",
        """\
Standing ISTREAM
  Project x.car AS car
    Project cars.car AS x.car
      Windowed cars, all events (ts, car)""",
    ),
    (
        "FROM cars [ROWS 3] a JOIN link1 b ON a.car = b.src SELECT a.car, b.dst",
        """\
Standing
  Project a.car AS car, b.dst AS dst
    WindowJoin on a.car = b.src
      Windowed cars AS a, the last 3 rows (ts, car)
      Windowed link1 AS b, all events (ts, src, dst)""",
    ),
    (
        "SELECT a.car FROM cars a [RANGE 1 s INTERNAL], cars b WHERE a.car=b.car",
        """\
Standing
  Project a.car AS car
    WindowJoin on a.car = b.car
      Windowed cars AS a, the last 1 s, internal (ts, car)
      Windowed cars AS b, all events, internal (ts, car)""",
    ),
    (
        (
            "SELECT a.src FROM link1 a [RANGE 1 s], link2 b [RANGE 1 s], link3 c [RANGE 1"
            " s] WHERE a.src = b.src AND c.dst = b.dst AND a.dst = c.dst AND a.bytes + "
            "b.bytes > c.bytes"
        ),
        """\
Standing
  Project a.src AS src
    WindowJoin on a.dst = b.dst = c.dst where a.src = b.src AND a.bytes + b.bytes > c.bytes
      Windowed link1 AS a, the last 1 s (ts, src, dst, bytes)
      Windowed link2 AS b, the last 1 s (ts, src, dst, bytes)
      Windowed link3 AS c, the last 1 s (ts, dst, bytes)""",
    ),
    (
        (
            "SELECT a.src FROM link1 a [RANGE 1 s], link2 b [RANGE 1 s] WHERE a.src = "
            "b.src AND a.dst = b.src"
        ),
        """\
Standing
  Project a.src AS src
    WindowJoin on a.src = b.src where a.dst = b.src
      Windowed link1 AS a, the last 1 s (ts, src, dst)
      Windowed link2 AS b, the last 1 s (ts, src)""",
    ),
    (
        (
            "SELECT a.src FROM link1 a [RANGE 1 s] JOIN link2 b ON a.bytes = b.load JOIN "
            "link3 c ON b.load = c.bytes"
        ),
        """\
Standing
  Project a.src AS src
    WindowJoin on CAST(a.bytes AS float64) = b.load = CAST(c.bytes AS float64)
      Windowed link1 AS a, the last 1 s (ts, src, bytes)
      Windowed link2 AS b, all events (ts, load)
      Windowed link3 AS c, all events (ts, bytes)""",
    ),
    (
        (
            "SELECT * EXCLUDE (ts) FROM link1 a [RANGE 1 s] JOIN companies c ON a.src = "
            "c.sym WHERE TRUE"
        ),
        """\
Standing
  Project a.src AS src, a.dst AS dst, a.bytes AS bytes, a.load AS load, c.sym AS sym, c.name AS name
    WindowJoin on a.src = c.sym
      Windowed link1 AS a, the last 1 s (ts, src, dst, bytes, load)
      Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        (
            "SELECT src, dst AS d FROM link1 [RANGE 1 s] UNION ALL SELECT dst, src FROM "
            "link2 ORDER BY d LIMIT 2"
        ),
        """\
Standing
  Top 2 in order of d
    Merge
      Project link1.src AS src, link1.dst AS d
        Windowed link1, the last 1 s (ts, src, dst)
      Project link2.dst AS src, link2.src AS d
        Windowed link2, all events (ts, src, dst)""",
    ),
    (
        (
            "SELECT x % 2 AS odd, count(*) FILTER (WHERE x > 1) AS s FROM cars [TUMBLE 1 "
            "HOUR] GROUP BY 1 ORDER BY s DESC LIMIT 5"
        ),
        """\
Standing
  Top 5 in order of s DESC
    Project odd, s
      GroupAggregate by cars.x % 2 AS odd: count(CASE WHEN cars.x > 1 THEN 1 ELSE NULL END) AS s
        Windowed cars, this period of 1 h (ts, x)""",
    ),
    (
        (
            "SELECT t.sym FROM trades t [RANGE 1 MINUTE], link1 l [RANGE 1 MINUTE] ASOF "
            "JOIN quotes q ON q.sym = t.sym AND q.ts < t.ts WHERE l.src = t.sym AND "
            "q.price > t.price"
        ),
        """\
Standing
  Project t.sym AS sym
    WindowJoin on t.sym = l.src
      Filter q.price > t.price
        AsOfJoin on t.sym = q.sym, the newest before then
          Windowed trades AS t, the last 1 min (ts, sym, price)
          Windowed quotes AS q, all events (ts, sym, price)
      Windowed link1 AS l, the last 1 min (ts, src)""",
    ),
    (
        (
            "SELECT t.sym, c.name FROM trades t [RANGE 1 s] LEFT JOIN companies FOR "
            "SYSTEM_TIME AS OF t.ts AS c ON t.sym = c.sym"
        ),
        """\
Standing
  Project t.sym AS sym, c.name AS name
    AsOfJoin outer on t.sym = c.sym, the newest until then
      Windowed trades AS t, the last 1 s (ts, sym)
      Windowed companies AS c, the last row of each sym unless deleted (ts, sym, name, deleted)""",
    ),
    (
        "DSTREAM (SELECT car FROM cars [RANGE 1 MINUTE])",
        """\
Standing DSTREAM
  Project cars.car AS car
    Windowed cars, the last 1 min (ts, car)""",
    ),
    (
        "SELECT src FROM link1 [NOW] INTERSECT ALL SELECT dst FROM link2 [NOW] "
        "INTERSECT ALL SELECT car FROM cars [NOW]",
        """\
Standing
  Difference
    Project cars.car AS src
      Windowed cars, the last 1 us (ts, car)
    Difference
      Project cars.car AS src
        Windowed cars, the last 1 us (ts, car)
      Difference
        Project link1.src AS src
          Windowed link1, the last 1 us (ts, src)
        Difference
          Project link1.src AS src
            Windowed link1, the last 1 us (ts, src)
          Project link2.dst AS src
            Windowed link2, the last 1 us (ts, dst)""",
    ),
    (
        "SELECT car FROM cars [LANDMARK 1 HOUR SLIDE 10 MINUTES]",
        """\
Standing every 10 min
  Project cars.car AS car
    Windowed cars, this period of 1 h (ts, car)""",
    ),
    (
        (
            "SELECT a.car FROM (SELECT ts, car FROM cars [RANGE 1 s] WHERE x > 1) a ASOF "
            "JOIN quotes q ON a.car = q.sym AND a.ts >= q.ts"
        ),
        """\
Standing
  Project a.car AS car
    AsOfJoin on a.car = q.sym, the newest until then
      Project cars.car AS a.car
        Filter cars.x > 1
          Windowed cars, the last 1 s (ts, car, x)
      Windowed quotes AS q, all events (ts, sym)""",
    ),
    (
        "SELECT a.car FROM cars a [RANGE 1 s INTERNAL], cars b WHERE a.car=b.car",
        """\
Standing
  Project a.car AS car
    WindowJoin on a.car = b.car
      Windowed cars AS a, the last 1 s, internal (ts, car)
      Windowed cars AS b, all events, internal (ts, car)""",
    ),
    (
        "SELECT car, ts FROM cars [ROWS 3] c WHERE c.car = 'a' AND ts > '2026-01-01'",
        """\
Standing
  Project c.car AS car, c.ts AS ts
    Filter c.car = 'a' AND c.ts > TIMESTAMP '2026-01-01 00:00:00'
      Windowed cars AS c, the last 3 rows (ts, car)""",
    ),
]


@pytest.mark.parametrize(("text", "expected"), PLANS, ids=[text[:60] for text, _ in PLANS])
def test_the_plan_of_a_standing_query(text: str, expected: str) -> None:
    assert explain(plan_sql(text, CATALOG)) == expected
