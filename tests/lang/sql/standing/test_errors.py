"""Standing queries: every mistake says what, where, and what would work."""

from __future__ import annotations

import pytest

from eventide.errors import BindError, EventideError, ParseError, UnsupportedError
from eventide.lang.sql import plan_sql
from tests.lang.sql.standing.test_plans import CATALOG

MISTAKES: list[tuple[type[EventideError], str]] = [
    (
        BindError,
        """\
x.y.car is a column of 'x' and of 'x.y'
  SELECT x.n FROM (SELECT x AS n, car AS "y.car" FROM cars [NOW]) x, cars [NOW] AS "x.y"
                                                                     ^^^^^^^^^^^^^^^^^^^
hint: give one of them a name without a dot: JOIN … AS other""",
    ),
    (
        BindError,
        """\
a column of a standing query cannot be called '"shown"'
  SELECT q.n FROM (SELECT car AS n, x AS \"""shown\""" FROM cars [ROWS 3]) q
                                    ^^^^^^^^^^^^^^^^
hint: INTERNAL windows use that name: write AS shown, or another name""",
    ),
    (
        ParseError,
        """\
windows stand in square brackets
  SELECT car FROM cars (RANGE 60 SECONDS)
                       ^
hint: write [RANGE 60 SECONDS]""",
    ),
    (
        ParseError,
        """\
windows stand in square brackets
  SELECT a.car FROM cars a [NOW] JOIN cars AS b ( PARTITION BY car, x rows 3 ) ON a.car = b.car
                                                ^
hint: write [PARTITION BY car, x rows 3]""",
    ),
    (
        BindError,
        """\
INTERNAL beside a relation: its rows are taken back when they change
  SELECT t.n FROM trades t [ROWS 3 INTERNAL] JOIN companies c ON t.sym = c.sym
                                   ^^^^^^^^
hint: leave INTERNAL out; a window of time can JOIN companies FOR SYSTEM_TIME AS OF t.ts""",
    ),
    (
        UnsupportedError,
        """\
c.src in c.src = b.car is of neither side of this FULL JOIN
  SELECT a.car FROM link1 c, cars a [ROWS 3] FULL JOIN cars b ON c.src = b.car
                                                                 ^^^^^^^^^^^^^
hint: a comma binds less than JOIN: write JOIN … ON instead of it""",
    ),
    (
        UnsupportedError,
        """\
LIMIT without ORDER BY inside a standing query
  ISTREAM (SELECT car FROM cars [ROWS 3] LIMIT 3)
                                               ^
hint: say which rows come first: ORDER BY … LIMIT""",
    ),
    (
        UnsupportedError,
        """\
OFFSET inside a standing query
  ISTREAM (SELECT car FROM cars [ROWS 3] ORDER BY x LIMIT 3 OFFSET 2)
                                                                   ^
hint: leave it out, and skip rows when you read the result""",
    ),
    (
        UnsupportedError,
        """\
ASOF JOIN of the relation companies in a query without windows
  SELECT t.n FROM trades t ASOF JOIN companies c ON t.sym = c.sym AND t.ts >= c.ts
                                     ^^^^^^^^^^^
hint: put a window behind the stream before it, as in orders [RANGE UNBOUNDED] AS o""",
    ),
    (
        BindError,
        """\
no column 'deleted' in companies
  SELECT deleted FROM companies
         ^^^^^^^
hint: there are ts, _seq, sym, name""",
    ),
    (
        BindError,
        """\
INTERNAL on some windows of a query with sessions
  SELECT a.x FROM cars [PARTITION BY car SESSION 30 s] a, cars [TUMBLE 1 HOUR INTERNAL] b
                                                                              ^^^^^^^^
hint: write INTERNAL behind all its windows, or behind none""",
    ),
    (
        BindError,
        """\
INTERNAL and DISTINCT in one query: its rows would have to go again
  SELECT DISTINCT car FROM cars [RANGE 1 s INTERNAL]
                  ^^^
hint: leave INTERNAL out, or DISTINCT""",
    ),
    (
        BindError,
        """\
INTERNAL and EXCEPT in one query: its rows would have to go again
  SELECT car FROM cars [RANGE 1 s INTERNAL] EXCEPT SELECT src FROM link1
                                                          ^^^^^^^^^^^^^^
hint: leave INTERNAL out, or EXCEPT""",
    ),
    (
        BindError,
        """\
WSTREAM and NOT EXISTS in one query: its rows would have to go again
  WSTREAM (SELECT x FROM cars [NOW] WHERE NOT EXISTS (SELECT 1 FROM link2)) [ROWS 3]
                                                             ^^^^^^^^^^^^
hint: leave WSTREAM out, or NOT EXISTS""",
    ),
    (
        BindError,
        """\
WSTREAM has nothing to restore
  WSTREAM RESTORE (SELECT car FROM cars [RANGE 1 s SLIDE 1 s]) [ROWS 3]
          ^^^^^^^
hint: ISTREAM RESTORE and RSTREAM RESTORE report what came and went between refreshes""",
    ),
    (
        BindError,
        """\
WSTREAM with SLIDE: the last results are those of every instant
  WSTREAM (SELECT car FROM cars [RANGE 1 s SLIDE 1 s]) [ROWS 3]
                                                 ^^^
hint: leave SLIDE out""",
    ),
    (
        BindError,
        """\
the window behind WSTREAM is by rows or by time
  WSTREAM (SELECT car FROM cars [RANGE 1 s]) [TUMBLE 1 s]
                                             ^^^^^^^^^^^^
hint: write [ROWS 10] or [RANGE 1 MINUTE]""",
    ),
    (
        BindError,
        """\
one query slides by 10 s and by another length
  SELECT a.car FROM cars a [ROWS 3 SLIDE 10 s], cars b [RANGE 1 MINUTE SLIDE 20 s]
                                                                             ^^^^
hint: the answer of a query is renewed as one: write the same SLIDE, once is enough""",
    ),
    (
        BindError,
        """\
SLIDE is longer than a window of 1 s
  SELECT car FROM cars [RANGE 1 s SLIDE 2 s]
                                        ^^^
hint: events would come and go unseen: slide more often, or take a longer window""",
    ),
    (
        BindError,
        """\
ASOF JOIN of rows that may be taken back: there are windows by rows on its left
  SELECT t.sym FROM trades t [ROWS 3] ASOF JOIN quotes q ON t.sym = q.sym AND t.ts >= q.ts
                                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: join the stream itself under a window of time, and group or order around that""",
    ),
    (
        UnsupportedError,
        """\
the right side of ASOF JOIN is a stream with all its events
  SELECT n FROM trades t [NOW] ASOF JOIN quotes q [RANGE 1 s] ON t.sym = q.sym AND t.ts >= q.ts
                                         ^^^^^^^^
hint: write ASOF JOIN q without a window""",
    ),
    (
        UnsupportedError,
        """\
ASOF JOIN looks for what came before
  SELECT n FROM trades t [NOW] ASOF JOIN quotes q ON t.sym = q.sym AND t.ts <= q.ts
                                                                       ^^^^^^^^^^^^
hint: write ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts""",
    ),
    (
        BindError,
        """\
ASOF JOIN compares two times once
  SELECT n FROM trades t [NOW] ASOF JOIN quotes q ON t.sym = q.sym
                                         ^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts""",
    ),
    (
        UnsupportedError,
        """\
q.price is not the time at which the rows of a stream came
  SELECT n FROM trades t [NOW] ASOF JOIN quotes q ON t.sym = q.sym AND t.n >= q.price
                                                                       ^^^^^^^^^^^^^^
hint: write ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts, with ts of both""",
    ),
    (
        UnsupportedError,
        """\
t.sym <> q.sym is no equality of the two sides of ASOF JOIN
  SELECT n FROM trades t [NOW] ASOF JOIN quotes q ON t.sym <> q.sym AND t.ts >= q.ts
                                                     ^^^^^^^^^^^^^^
hint: write ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts; other conditions stand in WHERE""",
    ),
    (
        BindError,
        """\
quotes is no relation: its events have no key
  SELECT n FROM trades t [NOW] JOIN quotes FOR SYSTEM_TIME AS OF t.ts AS q ON t.sym = q.sym
                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: use ASOF JOIN, or name the key: quotes [LATEST BY …]""",
    ),
    (
        UnsupportedError,
        """\
ON has to name the key of companies
  SELECT n FROM trades t [NOW] JOIN companies FOR SYSTEM_TIME AS OF t.ts AS c ON t.sym = c.name
                                                                                 ^^^^^^^^^^^^^^
hint: add … = c.sym""",
    ),
    (
        BindError,
        """\
INTERNAL on some windows of a query with windows by rows
  SELECT a.car FROM cars a [RANGE 1 s INTERNAL], cars b [ROWS 3] WHERE a.car=b.car
                                      ^^^^^^^^
hint: write INTERNAL behind all its windows, or behind none""",
    ),
    (
        BindError,
        """\
INTERNAL on some windows of a query with GROUP BY or aggregates
  SELECT count(*) FROM cars a [NOW INTERNAL], cars b [RANGE 3 s] WHERE a.car=b.car
                                   ^^^^^^^^
hint: write INTERNAL behind all its windows, or behind none""",
    ),
    (
        BindError,
        """\
a column of a standing query cannot be called 'at'
  SELECT car AS at FROM cars [ROWS 3]
         ^^^^^^^^^
hint: its changes have one of that name: write AS at_value, or another name""",
    ),
    (
        BindError,
        """\
a column of a standing query cannot be called 'Sign'
  SELECT x AS "Sign" FROM cars [ROWS 3]
         ^^^^^^^^^^^
hint: its changes have one of that name: write AS Sign_value, or another name""",
    ),
    (
        BindError,
        """\
two sides of a join are called 'cars'
  SELECT * FROM cars [ROWS 3], cars [ROWS 4]
                               ^^^^
hint: give one of them another name with AS, as in JOIN … AS other""",
    ),
    (
        BindError,
        """\
two sides of a join are called 'A'
  SELECT a.car FROM cars a [ROWS 3], link1 A
                                     ^^^^^^^
hint: give one of them another name with AS, as in JOIN … AS other""",
    ),
    (
        BindError,
        """\
RESTORE without SLIDE: nothing is lost where every instant counts
  ISTREAM RESTORE (SELECT car FROM cars [ROWS 3])
          ^^^^^^^
hint: leave it out, or add SLIDE to a window, as in [RANGE 1 MINUTE SLIDE 10 SECONDS]""",
    ),
    (
        BindError,
        """\
DSTREAM has nothing to restore
  DSTREAM RESTORE (SELECT car FROM cars [ROWS 3 SLIDE 1 s])
          ^^^^^^^
hint: ISTREAM RESTORE and RSTREAM RESTORE report what came and went between refreshes""",
    ),
    (
        BindError,
        """\
INTERNAL and LEFT JOIN in one query: its rows would have to go again
  SELECT a.car FROM cars a [NOW INTERNAL] LEFT JOIN link1 b ON a.car = b.src
                                                    ^^^^^^^^^^^^^^^^^^^^^^^^
hint: leave INTERNAL out, or LEFT JOIN""",
    ),
    (
        UnsupportedError,
        """\
FULL JOIN without ON
  SELECT a.car FROM cars a [NOW] FULL JOIN link1 b
                                           ^^^^^^^
hint: say which rows are partners: ON …, or USING (…)""",
    ),
    (
        UnsupportedError,
        """\
RIGHT JOIN as of a time
  SELECT t.sym FROM trades t [NOW] RIGHT JOIN companies FOR SYSTEM_TIME AS OF t.ts AS c USING (sym)
                                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write LEFT JOIN, or leave it out""",
    ),
    (
        BindError,
        """\
no column 'sped' in cars
  SELECT a.sped FROM cars a [ROWS 3], link1 b
         ^^^^^^
hint: did you mean 'speed'?""",
    ),
    (
        BindError,
        """\
no stream 'c' in this FROM
  SELECT c.speed FROM cars a [ROWS 3]
         ^^^^^^^
hint: its columns are a.…, or plain""",
    ),
    (
        BindError,
        """\
'src' is a column of a and of b
  SELECT src FROM link1 a [ROWS 3], link2 b
         ^^^
hint: say which, as in a.src""",
    ),
    (
        BindError,
        """\
no column 'sped' in cars
  SELECT sped FROM cars a [ROWS 3]
         ^^^^
hint: did you mean 'speed'?""",
    ),
    (
        BindError,
        """\
no column 'cr'
  SELECT car FROM cars [LATEST BY cr]
                                  ^^
hint: did you mean 'car'?""",
    ),
    (
        BindError,
        """\
no stream 'crs'
  SELECT car FROM crs [ROWS 3]
                  ^^^
hint: did you mean 'cars'?""",
    ),
    (
        BindError,
        """\
cars.speed is neither grouped nor aggregated
  SELECT car, speed FROM cars [ROWS 3] GROUP BY car
              ^^^^^
hint: add cars.speed to GROUP BY, or take first(cars.speed) or max(cars.speed)""",
    ),
    (
        BindError,
        """\
TUMBLE(…) groups a stream without a window in brackets
  SELECT car FROM cars [ROWS 3] GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)
                                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: put the window behind the stream: FROM cars [TUMBLE 1 HOUR]""",
    ),
    (
        UnsupportedError,
        """\
EXISTS over a query here
  SELECT car FROM cars [ROWS 3] WHERE x IN (1, 2) OR EXISTS (SELECT 1 FROM link1)
                                                                    ^^^^^^^^^^^^
hint: it stands in WHERE by itself, joined to other conditions by AND""",
    ),
    (
        UnsupportedError,
        """\
link1.bytes > cars.x ties the query of EXISTS by something but an equality
  SELECT car FROM cars [ROWS 3] WHERE EXISTS (SELECT 1 FROM link1 WHERE bytes > x)
                                                                        ^^^^^^^^^
hint: write EXISTS (SELECT 1 FROM t [RANGE …] WHERE t.k = outer.k AND …)""",
    ),
    (
        UnsupportedError,
        """\
this query inside EXISTS or IN of a standing query
  SELECT car FROM cars [ROWS 3] WHERE EXISTS (SELECT count(*) FROM link1 GROUP BY src)
                                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write EXISTS (SELECT 1 FROM t [RANGE …] WHERE t.k = outer.k AND …)""",
    ),
    (
        BindError,
        """\
INTERNAL and INTERSECT in one query: its rows would have to go again
  SELECT car FROM cars [NOW INTERNAL] INTERSECT ALL SELECT src FROM link1
                                                           ^^^^^^^^^^^^^^
hint: leave INTERNAL out, or INTERSECT""",
    ),
    (
        BindError,
        """\
one query has 2 columns, the other 1
  SELECT car, x FROM cars [ROWS 3] UNION SELECT src FROM link1
                                                ^^^^^^^^^^^^^^
hint: both sides of UNION, EXCEPT and INTERSECT have the same columns""",
    ),
    (
        BindError,
        """\
x is int64 in one query and string in the other
  SELECT x FROM cars [ROWS 3] UNION SELECT src FROM link1
                                           ^^^^^^^^^^^^^^
hint: cast one of them""",
    ),
    (
        UnsupportedError,
        """\
ORDER BY without LIMIT inside a standing query
  ISTREAM (SELECT car FROM cars [ROWS 3] ORDER BY car)
                                                  ^^^
hint: add LIMIT 10 for the first ten, or leave it out""",
    ),
    (
        UnsupportedError,
        """\
ISTREAM inside a standing query
  ISTREAM (ISTREAM (SELECT car FROM cars))
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: leave one of them out""",
    ),
    (
        BindError,
        """\
QUANTILE takes a value and a number from 0 to 1
  SELECT quantile(x, 2) FROM cars [ROWS 3]
                     ^
hint: write QUANTILE(x, 0.9)""",
    ),
    (
        BindError,
        """\
TOP_K takes a value and how many, from 1 to 100,000
  SELECT top_k(x) FROM cars [ROWS 3]
         ^^^^^^^^
hint: write TOP_K(x, 10)""",
    ),
    (
        BindError,
        """\
median takes numbers, not string
  SELECT median(car) FROM cars [ROWS 3]
         ^^^^^^^^^^^
hint: cast it, as in CAST(cars.car AS double)""",
    ),
    (
        UnsupportedError,
        """\
OVER cannot stand in a standing query
  SELECT sum(x) OVER () FROM cars [ROWS 3]
         ^^^^^^
hint: compute it in a SELECT around this one""",
    ),
    (
        UnsupportedError,
        """\
KURTOSIS(x) is beyond Eventide's own operators
  SELECT kurtosis(x) FROM cars [ROWS 3]
         ^^^^^^^^^^^
hint: compute it in a SELECT around this one""",
    ),
    (
        BindError,
        """\
DECAYED_SUM takes a value and a half-life
  SELECT decayed_sum(x) FROM cars [RANGE 9 s SLIDE 3 s]
         ^^^^^^^^^^^^^^
hint: write DECAYED_SUM(x, '10 s'): a value of 10 s ago counts half""",
    ),
    (
        BindError,
        """\
DECAYED_COUNT takes a half-life
  SELECT decayed_count('0 s') FROM cars [RANGE 9 s SLIDE 3 s]
         ^^^^^^^^^^^^^^^^^^^^
hint: write DECAYED_COUNT('10 s'): a value of 10 s ago counts half""",
    ),
    (
        BindError,
        """\
DECAYED_COUNT needs the time of events, and q has no ts
  SELECT decayed_count('5 s') FROM (SELECT x FROM cars [RANGE 9 s SLIDE 3 s]) q
         ^^^^^^^^^^^^^^^^^^^^
hint: select ts in the query behind q""",
    ),
    (
        BindError,
        """\
FREQUENT takes a value, and a share or how many
  SELECT frequent(x) FROM cars [RANGE 9 s SLIDE 3 s]
         ^^^^^^^^^^^
hint: write FREQUENT(x, 0.01) for all over 1 %, or FREQUENT(x, 10) for the first ten""",
    ),
    (
        BindError,
        """\
FREQUENT takes a share between 0 and 1, or how many
  SELECT frequent(x, 1.5) FROM cars [RANGE 9 s SLIDE 3 s]
                     ^^^
hint: write 0.01 for all over 1 %, with at most nine decimals, or 10 for the first ten""",
    ),
    (
        BindError,
        """\
FREQUENT keeps from 20 to 10,000,000 values of each pane here
  SELECT frequent(x, 20, 5) FROM cars [RANGE 9 s SLIDE 3 s]
                         ^
hint: leave the number out to keep 1,000""",
    ),
    (
        BindError,
        """\
FREQUENT is for standing queries
  SELECT frequent(x, 0.1) FROM cars
         ^^^^^^^^^^^^^^^^
hint: it goes over a window in square brackets: FROM cars [RANGE 1 MINUTE]""",
    ),
    (
        BindError,
        """\
DECAYED_AVG is for standing queries
  SELECT decayed_avg(x, '5 s') FROM cars
         ^^^^^^^^^^^^^^^^^^^^^
hint: it goes over a window in square brackets: FROM cars [RANGE 1 MINUTE]""",
    ),
    (
        BindError,
        """\
the length behind RANGE must be positive
  SELECT car FROM cars [RANGE 0 SECONDS]
                              ^^^^^^^^^
hint: write RANGE 10 SECONDS""",
    ),
    (
        BindError,
        """\
a window of 0 rows
  SELECT car FROM cars [ROWS 0]
                             ^
hint: it has at least one row; [RANGE UNBOUNDED] has them all""",
    ),
    (
        BindError,
        """\
a window has to begin before it ends
  SELECT car FROM cars [SINCE '2026-02-01' UNTIL '2026-01-01']
                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: SINCE is the earlier time""",
    ),
    (
        UnsupportedError,
        """\
a window reads rows that come and stay, and those of this query go again
  SELECT * FROM (SELECT car FROM cars [ROWS 3]) AS c [ROWS 3]
                        ^^^^^^^^^^^^^
hint: make events of its changes: ISTREAM (SELECT …), DSTREAM (…) or RSTREAM (…)""",
    ),
    (
        UnsupportedError,
        """\
NATURAL JOIN beside windows
  SELECT a.car FROM cars a [ROWS 3] NATURAL JOIN link1 b
                                                 ^^^^^^^
hint: name the columns: JOIN … USING (…)""",
    ),
    (
        BindError,
        """\
count(*) stands in WHERE, where no aggregate may
  SELECT car FROM cars [ROWS 3] WHERE count(*) > 3
                                      ^^^^^^^^
hint: use HAVING after GROUP BY, or filter in a SELECT around this one""",
    ),
    (
        BindError,
        """\
= takes two values of one type, not int64 and string
  SELECT a.car FROM cars a [ROWS 3] JOIN link1 b ON a.x = b.src
                                                    ^^^^^^^^^^^
hint: cast one side, as in CAST(b.src AS bigint)""",
    ),
    (
        UnsupportedError,
        """\
r is recursive or renames its columns, beside windows of streams
  WITH RECURSIVE r AS (SELECT x FROM cars UNION ALL SELECT x FROM r) SELECT * FROM r, cars [NOW] c
                                                                                   ^
hint: write it as a subquery in FROM""",
    ),
    (
        UnsupportedError,
        """\
SAMPLE on a stream
  SELECT car FROM cars [ROWS 3] TABLESAMPLE 10%
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: leave it out, or use it on a subquery""",
    ),
    (
        UnsupportedError,
        """\
ORDER BY inside FIRST(x ORDER BY speed)
  SELECT first(x ORDER BY speed) FROM cars [ROWS 3]
         ^^^^^^^^^^^^^^^^^^^^^^^
hint: values are taken in order of time""",
    ),
    (
        UnsupportedError,
        """\
(SELECT MAX(load) FROM link1) is beyond Eventide's own operators
  SELECT car, (SELECT max(load) FROM link1) AS m FROM cars [ROWS 3]
                          ^^^^^^^^^^^^^^^^
hint: compute it in a SELECT around this one""",
    ),
    (
        BindError,
        """\
SELECT DISTINCT can be ordered by its own columns only
  SELECT DISTINCT car FROM cars [ROWS 3] ORDER BY speed LIMIT 3
                                                  ^^^^^
hint: add it to the SELECT list""",
    ),
    (
        UnsupportedError,
        """\
QUALIFY in a standing query
  SELECT car FROM cars [ROWS 3] QUALIFY 1=1
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: put the condition in a SELECT around this one""",
    ),
    (
        BindError,
        """\
no stream 'a' in this FROM
  SELECT a.* FROM cars c [ROWS 3]
         ^^^
hint: its columns are c.…, or plain""",
    ),
    (
        BindError,
        """\
no column 'sr' in link1
  SELECT c.car FROM cars c [ROWS 3] WHERE EXISTS (SELECT src, dst FROM link1 l WHERE l.sr = c.car)
                                                                                     ^^^^
hint: did you mean 'src'?""",
    ),
    (
        BindError,
        """\
the query of IN has one column
  SELECT car FROM cars [ROWS 3] WHERE car IN (SELECT src, dst FROM link1)
                                                     ^^^^^^^^^^^^^^^^^^^
hint: name it in its SELECT list""",
    ),
    (
        ParseError,
        """\
ISTREAM has no brackets
  ISTREAM SELECT car FROM cars
  ^^^^^^^
hint: write ISTREAM (SELECT …)""",
    ),
    (
        ParseError,
        """\
no window 'RNGE'
  SELECT car FROM cars [RNGE 3 s]
                        ^^^^
hint: did you mean 'RANGE'?""",
    ),
    (
        ParseError,
        """\
a stream has two windows
  SELECT car FROM cars [ROWS 3] c [ROWS 4]
                                  ^^^^^^^^
hint: leave one of them out""",
    ),
    (
        ParseError,
        """\
WSTREAM has no window behind it
  WSTREAM (SELECT car FROM cars)
  ^^^^^^^
hint: write WSTREAM (…) [ROWS 10], or [RANGE 1 MINUTE]""",
    ),
    (
        ParseError,
        """\
expected a unit of time
  SELECT car FROM cars [RANGE 3]
                              ^
hint: write RANGE 3 SECONDS, or MINUTES""",
    ),
    (
        ParseError,
        """\
cannot read the window near '['
  SELECT car FROM cars [RANGE 3 s
                       ^
hint: write [RANGE 60 SECONDS], [ROWS 10], [LATEST BY car], [TUMBLE 1 HOUR] or [SESSION 30 s]""",
    ),
    (
        ParseError,
        """\
LATEST is followed by BY
  SELECT car FROM cars [LATEST car]
                        ^^^^^^
hint: write [LATEST BY car]""",
    ),
    (
        ParseError,
        """\
PARTITION BY stands before ROWS or SESSION
  SELECT car FROM cars [PARTITION BY car RANGE 3 s]
                                         ^^^^^
hint: write [PARTITION BY car ROWS 10] or [PARTITION BY car SESSION 30 SECONDS]""",
    ),
    (
        ParseError,
        """\
SINCE takes a time
  SELECT car FROM cars [SINCE 3]
                              ^
hint: write SINCE TIMESTAMP '2026-01-31 12:00:00'""",
    ),
    (
        ParseError,
        """\
ROWS takes a whole number
  SELECT car FROM cars [ROWS x]
                             ^
hint: write [ROWS 10]""",
    ),
]


def _query(paragraph: str) -> str:
    """Return the query that a paragraph about a mistake shows."""
    return paragraph.split("\n")[1].strip()


@pytest.mark.parametrize(
    ("kind", "expected"), MISTAKES, ids=[_query(text)[:60] for _, text in MISTAKES]
)
def test_a_mistake_is_explained(kind: type[EventideError], expected: str) -> None:
    with pytest.raises(kind) as caught:
        plan_sql(_query(expected), CATALOG)
    assert str(caught.value) == expected
