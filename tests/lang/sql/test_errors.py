"""Every mistake gets a paragraph that says what, where, and what would work."""

from __future__ import annotations

import pyarrow as pa
import pytest

import eventide
from eventide.errors import (
    BindError,
    EvaluationError,
    EventideError,
    ParseError,
    UnsupportedError,
)
from eventide.lang.sql import plan_sql
from eventide.schema import Schema
from tests.golden.plans import CATALOG

MISTAKES: list[tuple[type[EventideError], str]] = [
    (
        ParseError,
        """\
cannot read the query near 'WHERE'
  SELECT car FROM WHERE speed > 3
                  ^^^^^
hint: expected table name""",
    ),
    (
        ParseError,
        """\
a string is not closed
  SELECT 'car FROM cars
         ^
hint: end it with '""",
    ),
    (
        ParseError,
        """\
cannot read the query near '('
  SELECT car FROM cars WHERE (
                             ^
hint: something is missing after '('""",
    ),
    (
        ParseError,
        """\
more than one statement
  SELECT car FROM cars; SELECT lane FROM cars
                               ^^^^^^^^^^^^^^
hint: run them one at a time""",
    ),
    (
        UnsupportedError,
        """\
INSERT is not a query
  INSERT INTO cars VALUES (1)
  ^^^^^^
hint: only SELECT is SQL here; create streams and append events through the Python API""",
    ),
    (
        UnsupportedError,
        """\
CREATE is not a query
  CREATE TABLE x (a INT)
  ^^^^^^
hint: CREATE STREAM name AS SELECT … and CREATE VIEW work; other streams: create_stream""",
    ),
    (
        BindError,
        """\
no stream 'crs'
  SELECT car FROM crs
                  ^^^
hint: did you mean 'cars'?""",
    ),
    (
        BindError,
        """\
no column 'sped' in cars
  SELECT car, sped FROM cars
              ^^^^
hint: did you mean 'speed'?""",
    ),
    (
        BindError,
        """\
no column 'start' in cars
  SELECT car FROM cars WHERE car = "start"
                                   ^^^^^^^
hint: text stands in single quotes: 'start'""",
    ),
    (
        BindError,
        """\
no column "it's" in cars or trucks
  SELECT c.car FROM cars c JOIN trucks t USING (car) WHERE Driver = "it's"
                                                                    ^^^^^^
hint: text stands in single quotes: 'it''s'""",
    ),
    (
        BindError,
        """\
no column 'lan' in cars
  SELECT "lan" FROM cars
         ^^^^^
hint: text stands in single quotes: 'lan'; or did you mean the column 'lane'?""",
    ),
    (
        BindError,
        """\
> takes two values of one type, not float64 and string
  SELECT car FROM cars WHERE speed > '5'
                             ^^^^^^^^^^^
hint: write 5""",
    ),
    (
        BindError,
        """\
no column 'zzz' in cars
  SELECT count(zzz) FROM cars
               ^^^
hint: there are ts, _seq, car, speed, lane, toll""",
    ),
    (
        BindError,
        """\
no stream 'x' in this FROM
  SELECT x.car FROM cars AS c
         ^^^^^
hint: its columns are c.…, or plain""",
    ),
    (
        BindError,
        """\
no column 'lod' in trucks
  SELECT t.lod FROM cars c JOIN trucks t ON c.car = t.car
         ^^^^^
hint: did you mean 'load'?""",
    ),
    (
        BindError,
        """\
no function 'lenght'
  SELECT lenght(car) FROM cars
         ^^^^^^^^^^^
hint: did you mean 'length'?""",
    ),
    (
        BindError,
        """\
> takes two values of one type, not string and int64
  SELECT car FROM cars WHERE car > 3
                             ^^^^^^^
hint: cast one side, as in CAST(car AS bigint)""",
    ),
    (
        BindError,
        """\
+ takes two numbers, two intervals, or a timestamp and an interval, not timestamp and int64
  SELECT ts + 1 FROM cars
         ^^^^^^
hint: write INTERVAL '1' SECOND""",
    ),
    (
        BindError,
        """\
sum takes numbers, not string
  SELECT sum(car) FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)
         ^^^^^^^^
hint: cast it, as in CAST(car AS double)""",
    ),
    (
        BindError,
        """\
lane is int64, not a condition
  SELECT car FROM cars WHERE lane
                             ^^^^
hint: compare it, as in lane <> 0""",
    ),
    (
        BindError,
        """\
'yesterday' is not a timestamp
  SELECT car FROM cars WHERE ts > 'yesterday'
                                  ^^^^^^^^^^^
hint: write it as '2026-01-31 12:00:00'""",
    ),
    (
        BindError,
        """\
'2026-13-01' is not a timestamp
  SELECT car FROM cars WHERE ts > TIMESTAMP '2026-13-01'
                                            ^^^^^^^^^^^^
hint: write it as '2026-01-31 12:00:00'""",
    ),
    (
        BindError,
        """\
a timestamp cannot be cast to int64
  SELECT CAST(ts AS BIGINT) FROM cars
              ^^
hint: EPOCH_US(…) gives the microseconds since 1970""",
    ),
    (
        BindError,
        """\
EXTRACT does not know 'fortnight'
  SELECT date_part('fortnight', ts) FROM cars
         ^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: year, quarter, month, week, day, dow, isodow, doy, hour, minute, second, millisecond, \
microsecond""",
    ),
    (
        BindError,
        """\
speed is neither grouped nor aggregated
  SELECT car, speed FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)
              ^^^^^
hint: add speed to GROUP BY, or take first(speed) or max(speed)""",
    ),
    (
        BindError,
        """\
avg(speed) stands in WHERE, where no aggregate may
  SELECT car FROM cars WHERE avg(speed) > 3 GROUP BY car, TUMBLE(ts, INTERVAL '1' HOUR)
                             ^^^^^^^^^^
hint: use HAVING after GROUP BY, or filter in a SELECT around this one""",
    ),
    (
        BindError,
        """\
2 columns of x are called 'car'
  SELECT x.car FROM (SELECT car, lower(car) AS CAR FROM cars) x
         ^^^^^
hint: rename all but one of them with AS in x""",
    ),
    (
        BindError,
        """\
2 columns of x are called 'ts'
  WITH x AS (SELECT *, ts FROM cars) SELECT count(*) FROM x WHERE ts IS NULL
                                                                  ^^
hint: rename all but one of them with AS in x""",
    ),
    (
        BindError,
        """\
x has 2 columns, and the list has 3 names
  SELECT * FROM (SELECT ts, car FROM cars) AS x(a, b, c)
                                                      ^
hint: they are ts, car""",
    ),
    (
        BindError,
        """\
two columns would be called 'car'
  SELECT * FROM cars AS c(car)
                          ^^^
hint: give every column a name of its own""",
    ),
    (
        BindError,
        """\
no column 'sped' in cars
  SELECT count(*) FROM (SELECT ts, sped FROM cars) GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)
                                   ^^^^
hint: did you mean 'speed'?""",
    ),
    (
        BindError,
        """\
window_start of c is called as a bound of the window
  SELECT count(*) FROM cars AS c(ts, window_start) GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)
                                                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: give it another name inside""",
    ),
    (
        BindError,
        """\
GROUP BY 3 points outside the SELECT list
  SELECT car, count(*) FROM cars GROUP BY 3, TUMBLE(ts, INTERVAL '10' SECOND)
                                          ^
hint: it has 2 items""",
    ),
    (
        BindError,
        """\
a window's length must be positive
  SELECT count(*) FROM cars GROUP BY TUMBLE(ts, INTERVAL '0' SECOND)
                                                         ^^^
hint: TUMBLE(ts, INTERVAL '10' SECOND)""",
    ),
    (
        BindError,
        """\
HOP takes three arguments
  SELECT count(*) FROM cars GROUP BY HOP(ts, INTERVAL '1' SECOND)
                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND): how often, then how long""",
    ),
    (
        UnsupportedError,
        """\
months and years vary in length
  SELECT count(*) FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' MONTH)
                                                         ^^^
hint: use a unit that has one length: days, hours, minutes, seconds, milliseconds""",
    ),
    (
        BindError,
        """\
TUMBLE stands outside GROUP BY
  SELECT TUMBLE(ts, INTERVAL '1' SECOND) FROM cars
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: group by it: GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)""",
    ),
    (
        UnsupportedError,
        """\
BIT_OR(speed) is beyond Eventide's own operators
  SELECT bit_or(speed) FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)
         ^^^^^^^^^^^^^
hint: compute it in a SELECT around this one""",
    ),
    (
        UnsupportedError,
        """\
TUMBLE and HOP work over one stream
  SELECT count(*) FROM cars JOIN trucks USING (car) GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)
                                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: window each stream first, or join them in brackets: FROM (SELECT … JOIN …)""",
    ),
    (
        BindError,
        """\
SELECT DISTINCT can be ordered by its own columns only
  SELECT DISTINCT car FROM cars ORDER BY speed
                                         ^^^^^
hint: add it to the SELECT list""",
    ),
    (
        BindError,
        """\
'ts' is a column of c and of t
  SELECT load FROM cars c JOIN trucks t ON c.car = t.car WHERE ts > '2026-01-01'
                                                               ^^
hint: say which, as in c.ts""",
    ),
    (
        BindError,
        """\
a query has no clock: its answer depends on the events alone
  SELECT car FROM cars WHERE ts > now() - INTERVAL '1' HOUR
                                  ^^^
hint: write the time as TIMESTAMP '2026-01-31 12:00:00'""",
    ),
    (
        UnsupportedError,
        """\
SAMPLE on a stream
  SELECT car FROM cars TABLESAMPLE 10%
                  ^^^^^^^^^^^^^^^^^^^
hint: leave it out, or use it on a subquery""",
    ),
    (
        BindError,
        """\
no window 'w'
  SELECT sum(lane) OVER w FROM cars
                        ^
hint: there is no window yet""",
    ),
    (
        BindError,
        """\
no window 'w'
  SELECT sum(lane) OVER w FROM cars WINDOW w AS (v), v AS (w ORDER BY ts)
                                                           ^
hint: there is no window yet""",
    ),
    (
        ParseError,
        """\
SELECT names no columns
  SELECT FROM cars
              ^^^^
hint: a query is SELECT … FROM stream [WHERE …] [GROUP BY …]""",
    ),
    (
        BindError,
        """\
1e is not a number
  SELECT 1e AS x FROM cars
         ^^
hint: write it in decimal digits""",
    ),
    (
        BindError,
        """\
decimal(A) is not a decimal type
  SELECT CAST(lane AS decimal(a)) FROM cars
              ^^^^
hint: write it as decimal(10,2)""",
    ),
    (
        BindError,
        """\
an interval of more than 10,000 years
  SELECT count(*) FROM cars GROUP BY TUMBLE(ts, INTERVAL '100000000' DAY)
                                                         ^^^^^^^^^^^
hint: no two events are that far apart""",
    ),
    (
        BindError,
        """\
a window of more than 1,000 years
  SELECT count(*) FROM cars GROUP BY TUMBLE(ts, INTERVAL '1000000' DAY)
                                                         ^^^^^^^^^
hint: without a window, GROUP BY takes all of time together""",
    ),
    (
        BindError,
        """\
every event would lie in 86,400,000,000 windows
  SELECT count(*) FROM cars GROUP BY HOP(ts, INTERVAL '1 us', INTERVAL '1' DAY)
                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: hop less often, or take a frame for every event: OVER (ORDER BY ts RANGE …)""",
    ),
    (
        BindError,
        """\
TUMBLE takes two arguments
  SELECT count(*) FROM cars GROUP BY TUMBLE(ROWS)
                                     ^^^^^^^^^^^^
hint: TUMBLE(ROWS, 10)""",
    ),
    (
        BindError,
        """\
a window's number of rows must be positive
  SELECT count(*) FROM cars GROUP BY TUMBLE(ROWS, 0)
                                                  ^
hint: TUMBLE(ROWS, 10)""",
    ),
    (
        BindError,
        """\
a window's number of rows must be positive
  SELECT count(*) FROM cars GROUP BY HOP(ROWS, -5, 10)
                                                ^
hint: HOP(ROWS, 5, 10): every so many rows, then how many""",
    ),
    (
        BindError,
        """\
a window's number of rows is a whole number
  SELECT count(*) FROM cars GROUP BY HOP(ROWS, 2.5, 10)
                                               ^^^
hint: HOP(ROWS, 5, 10): every so many rows, then how many""",
    ),
    (
        BindError,
        """\
a window's number of rows is a whole number
  SELECT count(*) FROM cars GROUP BY TUMBLE(ROWS, lane)
                                                  ^^^^
hint: TUMBLE(ROWS, 10)""",
    ),
    (
        BindError,
        """\
a window of more than 1,000,000,000,000 rows
  SELECT count(*) FROM cars GROUP BY TUMBLE(ROWS, 99999999999999999999)
                                                  ^^^^^^^^^^^^^^^^^^^^
hint: without a window, GROUP BY takes all rows together""",
    ),
    (
        BindError,
        """\
a window over ROWS has a number of rows, not a length of time
  SELECT count(*) FROM cars GROUP BY TUMBLE(ROWS, INTERVAL '1' SECOND)
                                                           ^^^
hint: TUMBLE(ts, INTERVAL '10' SECOND), or by count: TUMBLE(ROWS, 10)""",
    ),
    (
        BindError,
        """\
a window's length is an interval
  SELECT count(*) FROM cars GROUP BY HOP(ts, 5, 10)
                                             ^
hint: HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND), or by count: HOP(ROWS, 5, 10)""",
    ),
    (
        BindError,
        """\
TUMBLE goes over ts, or over ROWS
  SELECT count(*) FROM cars GROUP BY TUMBLE(lane, 10)
                                            ^^^^
hint: TUMBLE(ts, INTERVAL '10' SECOND), or by count: TUMBLE(ROWS, 10)""",
    ),
    (
        UnsupportedError,
        """\
brackets around a stream in FROM
  SELECT car FROM (cars JOIN trucks USING (car))
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: leave them out, or write (SELECT … FROM …)""",
    ),
]


@pytest.mark.parametrize(("kind", "paragraph"), MISTAKES, ids=lambda each: str(each).split("\n")[0])
def test_a_mistake_is_explained(kind: type[EventideError], paragraph: str) -> None:
    query = paragraph.split("\n")[1].removeprefix("  ")
    with pytest.raises(kind) as caught:
        plan_sql(query, CATALOG)
    assert str(caught.value) == paragraph


def test_the_caret_finds_its_line() -> None:
    with pytest.raises(BindError) as caught:
        plan_sql("SELECT car,\n\tsped\nFROM cars", CATALOG)
    assert "\n  \tsped\n  \t^^^^\n" in str(caught.value)


def test_an_empty_query_is_refused() -> None:
    with pytest.raises(ParseError, match="the query is empty"):
        plan_sql("  -- nothing\n", CATALOG)


DEEP = [
    "SELECT " + "(" * 500 + "lane" + ")" * 500 + " AS x FROM cars",
    "SELECT " + "+".join(["lane"] * 3000) + " AS x FROM cars",
    "SELECT car FROM cars WHERE " + " OR ".join(f"lane = {lane}" for lane in range(3000)),
    "SELECT car FROM " + "(SELECT car FROM " * 200 + "cars" + ")" * 200,
]


@pytest.mark.parametrize("query", DEEP, ids=["brackets", "sum", "or", "subqueries"])
def test_a_query_too_deep_to_read_is_refused(query: str) -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        plan_sql(query, CATALOG)


def test_an_attribute_named_like_a_bound_of_the_window_is_not_taken_for_it() -> None:
    odd = {"odd": Schema.of({"window_start": "int64"})}
    with pytest.raises(BindError, match="hidden by the bound of the window"):
        plan_sql(
            "SELECT odd.window_start FROM odd "
            "GROUP BY odd.window_start, TUMBLE(ts, INTERVAL '1' SECOND)",
            odd,
        )


def test_a_sum_that_does_not_fit_is_pointed_at() -> None:
    text = "SELECT sum(x) AS s FROM big GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    big = pa.table({"ts": [0, 1], "x": [2**62, 2**62]})
    with pytest.raises(EvaluationError) as caught:
        eventide.sql(text, big=big)
    assert str(caught.value).startswith(
        f"sum(x) does not fit int64\n  {text}\n         ^^^^^^\nhint: "
    )


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ParseError, match="half a character"):
        plan_sql("SELECT '\ud800' AS x FROM cars", CATALOG)


def test_many_blanks_before_a_query_take_no_time() -> None:
    """A rule that tries all ways to divide the blanks would not come to an end."""
    assert plan_sql(" " * 10_000 + "SELECT car FROM cars", CATALOG).row.keys() == {"car"}
