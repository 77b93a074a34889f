"""Parameters: a query with values beside it is the query with the values written in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.errors import BindError, EventideError
from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.schema import Schema

CARS = {"cars": Schema.of({"car": "string", "lane": "int64", "speed": "float64", "ok": "bool"})}
Params = Sequence[object] | Mapping[str, object]

TABLE = pa.table(
    {
        "ts": pa.array([0, 1_000_000, 2_000_000, 3_000_000], pa.timestamp("us")),
        "car": ["a", "b", "a", "it's"],
        "lane": [1, 2, 2, 3],
        "speed": [50.0, 60.0, 70.0, 80.0],
        "ok": [True, False, None, True],
    }
)


@pytest.mark.parametrize(
    ("text", "params", "written"),
    [
        ("SELECT car FROM cars WHERE lane > ?", [1], "SELECT car FROM cars WHERE lane > 1"),
        ("SELECT lane - ? AS x FROM cars", [-1], "SELECT lane - (-1) AS x FROM cars"),
        ("SELECT speed * ? AS x FROM cars", [1.5], "SELECT speed * 1.5e0 AS x FROM cars"),
        ("SELECT lane * ? AS x FROM cars", [Decimal("1.50")], "SELECT lane * 1.50 AS x FROM cars"),
        ("SELECT lane * ? AS x FROM cars", [Decimal("-2")], "SELECT lane * (-2.) AS x FROM cars"),
        ("SELECT car FROM cars WHERE ok = ?", [True], "SELECT car FROM cars WHERE ok = TRUE"),
        ("SELECT ? AS x, car FROM cars", [None], "SELECT NULL AS x, car FROM cars"),
        (
            "SELECT car FROM cars WHERE car IN ($a,$b) OR car = $a",
            {"a": "it's", "b": "x -- ; DROP"},
            "SELECT car FROM cars WHERE car IN ('it''s','x -- ; DROP') OR car = 'it''s'",
        ),
        (
            "SELECT car FROM cars WHERE ts >= $from AND ts < $to",
            {"from": datetime(2026, 1, 2, 3, 4, 5, 6), "to": date(2026, 1, 3)},
            "SELECT car FROM cars WHERE ts >= TIMESTAMP '2026-01-02 03:04:05.000006' "
            "AND ts < DATE '2026-01-03'",
        ),
        (
            "SELECT car FROM cars WHERE ts < TIMESTAMP ?",
            [datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))],
            "SELECT car FROM cars WHERE ts < TIMESTAMP '2026-01-02 01:00:00'",
        ),
        (
            "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, ?)",
            [timedelta(minutes=1)],
            "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
        ),
        (
            "SELECT COUNT(*) AS n FROM cars GROUP BY HOP(ts, INTERVAL ? SECOND, INTERVAL $2)",
            [5, timedelta(seconds=10)],
            None,
        ),
        (
            "SELECT COUNT(*) AS n FROM cars GROUP BY HOP(ts, INTERVAL $1 SECOND, INTERVAL $2)",
            [5, timedelta(seconds=10)],
            "SELECT COUNT(*) AS n FROM cars GROUP BY HOP(ts, INTERVAL 5 SECOND, "
            "INTERVAL '10' SECOND)",
        ),
        (
            "SELECT AVG(speed) OVER (ORDER BY ts ROWS BETWEEN ? PRECEDING AND CURRENT ROW) AS m "
            "FROM cars",
            [3],
            "SELECT AVG(speed) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS m "
            "FROM cars",
        ),
        (
            "SELECT * FROM cars MATCH_RECOGNIZE (MEASURES $f * LAST(speed) AS m "
            "PATTERN (^ A? {- C? -} B{$least,$most}? PERMUTE(C, D?) $) WITHIN $w "
            "DEFINE B AS speed > PREV(speed) + $by)",
            {"f": 2.0, "least": 2, "most": 4, "w": timedelta(seconds=9), "by": 1.5},
            "SELECT * FROM cars MATCH_RECOGNIZE (MEASURES 2e0 * LAST(speed) AS m "
            "PATTERN (^ A? {- C? -} B{2,4}? PERMUTE(C, D?) $) WITHIN INTERVAL '9' SECOND "
            "DEFINE B AS speed > PREV(speed) + 1.5e0)",
        ),
        (
            "FROM cars PARTITION BY car DEFINE a AS speed > ? AT LEAST ?, b AS lane = ? "
            "PATTERN a overlaps b WITHIN ? MINUTES RETURN MAX(a.speed) + ? AS m",
            [70, timedelta(seconds=4), 2, 5, 1],
            "FROM cars PARTITION BY car DEFINE a AS speed > 70 AT LEAST 4 SECONDS, b AS lane = 2 "
            "PATTERN a overlaps b WITHIN 5 MINUTES RETURN MAX(a.speed) + 1 AS m",
        ),
        (
            "SELECT a.car FROM cars [RANGE $size] a JOIN cars [ROWS $n] b ON a.car = b.car "
            "WHERE b.lane = $lane",
            {"size": timedelta(seconds=10), "n": 5, "lane": 2},
            "SELECT a.car FROM cars [RANGE 10 SECONDS] a JOIN cars [ROWS 5] b ON a.car = b.car "
            "WHERE b.lane = 2",
        ),
        (
            "SELECT car FROM cars [SINCE ?]",
            [datetime(2026, 1, 1)],
            "SELECT car FROM cars [SINCE TIMESTAMP '2026-01-01 00:00:00']",
        ),
        (
            "SELECT car, SUM(lane) AS n FROM cars WHERE car <> ? GROUP BY car ORDER BY n LIMIT ?",
            ["x'; --", 3],
            "SELECT car, SUM(lane) AS n FROM cars WHERE car <> 'x''; --' GROUP BY car ORDER BY n "
            "LIMIT 3",
        ),
    ],
)
def test_values_beside_the_text_give_the_plan_of_values_in_it(
    text: str, params: Params, written: str | None
) -> None:
    if written is None:
        with pytest.raises(BindError, match=r"\? and \$ in one query"):
            plan_sql(text, CARS, params)
        return
    assert explain(plan_sql(text, CARS, params)) == explain(plan_sql(written, CARS))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False),
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    st.timedeltas(timedelta(-1000), timedelta(1000)),
)


@settings(deadline=None)
@given(VALUES)
def test_any_value_comes_back_as_it_was_given_by_our_operators_and_by_the_rest(
    value: object,
) -> None:
    ours = ev.sql("SELECT ? AS x, ts FROM t", params=[value], t=TABLE)
    assert ours.rows()[0]["x"] == value
    rest = ev.sql("SELECT DISTINCT $x AS x FROM t", params={"x": value}, t=TABLE)
    assert rest.rows() == [{"x": value}]


@settings(deadline=None)
@given(TEXTS)
def test_no_text_can_leave_its_place(text: str) -> None:
    query = "SELECT car FROM t WHERE car = $x ORDER BY ts"
    expected = [{"car": car} for car in TABLE["car"].to_pylist() if car == text]
    assert ev.sql(query, params={"x": text}, t=TABLE).rows() == expected


def test_numbers_of_numpy_and_decimals_keep_their_types() -> None:
    params = [np.int64(3), np.float64(0.5), np.bool_(True), Decimal("1.10")]
    answer = ev.sql("SELECT ? AS a, ? AS b, ? AS c, ? AS d FROM t LIMIT 1", params=params, t=TABLE)
    assert answer.rows() == [{"a": 3, "b": 0.5, "c": True, "d": Decimal("1.10")}]
    assert answer.to_arrow().schema.field("b").type == pa.float64()
    assert answer.to_arrow().schema.field("d").type == pa.decimal128(3, 2)


@pytest.mark.parametrize(
    ("text", "params", "message", "place", "hint"),
    [
        ("SELECT ? FROM t", None, "no value for parameter 1", "?", "give params=[…]"),
        ("SELECT ?, ? FROM t", [1], "no value for parameter 2", "?", "params has 1"),
        ("SELECT $1, $3 FROM t", [1, 2], "no value for parameter 3", "$3", "params has 2"),
        ("SELECT ? FROM t", [1, 2], "the query does not use number 2", "?", "leave it out"),
        ("SELECT 1 FROM t", [1], "the query does not use number 1", None, "write ? where"),
        ("SELECT $lo FROM t", {"low": 1}, "no value for $lo", "$lo", "did you mean 'low'?"),
        ("SELECT $lo FROM t", [1], "no value for $lo", "$lo", 'params={"lo": …}'),
        ("SELECT ? FROM t", {"lo": 1}, "? has no name", "?", "write $name"),
        ("SELECT $lo FROM t", {"lo": 1, "hi": 2}, "no parameter $hi", None, "$lo|lo"),
        ("SELECT 1 FROM t", {"hi": 2}, "no parameter $hi", None, "the query has none"),
        ("SELECT ?, $a FROM t", [1], "? and $ in one query", "?", "write $name everywhere"),
        ("SELECT $ a FROM t", {"a": 1}, "$ stands without the name", "$", "write $name"),
        ("SELECT ? FROM t", [[1, 2]], "the value of ? is a list", "?", "IN (?, …)"),
        ("SELECT $x FROM t", {"x": b"a"}, "the value of $x is a bytes", "$x", "a datetime"),
        ("SELECT ? FROM t", [10**40], "has more than 38 digits", "?", "give a float"),
        ("SELECT ? FROM t", [Decimal("NaN")], "has more than 38 digits", "?", "give a float"),
        ("SELECT ? FROM t", ["\ud800"], "half a character", "?", "UTF-8"),
        ("SELECT ? FROM t", "a", "params is a list or a dict, not str", None, "params=[60"),
        ("SELECT lane + ? FROM t", ["a"], "not int64 and string", "lane + ?", "cast one side"),
        ("SELECT 1 FROM t LIMIT ?", [-1], "LIMIT takes a whole number", "?", "LIMIT 10"),
        ("SELECT 1 FROM t [ROWS ?]", [0], "a window of 0 rows", "?", "at least one"),
        ("SELECT 1 FROM t [ROWS ?]", ["a"], "ROWS takes a whole number", "?", "[ROWS 10]"),
        ("SELECT 1 FROM t [RANGE ?]", [5], "expected a unit", "?", "SECONDS"),
    ],
)
def test_a_wrong_value_is_an_error_that_says_where_and_what_would_work(
    text: str, params: Params | None, message: str, place: str | None, hint: str
) -> None:
    with pytest.raises(EventideError) as failure:
        ev.sql(text, params=params, t=TABLE)
    error = failure.value
    assert any(each in error.message for each in message.split("|"))
    if place is None:
        assert error.span is None
    else:
        assert error.span is not None
        assert error.span.of(text) in place.split("|")
    assert any(each in (error.hint or "") for each in hint.split("|"))


def test_times_with_a_zone_are_utc() -> None:
    query = "SELECT car FROM t WHERE ts >= $since"
    since = datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    rows = ev.sql(query, params={"since": since}, t=TABLE).rows()
    assert [row["car"] for row in rows] == ["a", "it's"]
