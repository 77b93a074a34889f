"""Values in CEL mean what the same text means in SQL."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from eventide.errors import BindError
from eventide.lang.cel.functions import ALSO_CALLED
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_cel
from eventide.plan.expressions import Expression
from eventide.plan.functions import FUNCTIONS
from eventide.plan.nodes import Filter, Project, Scan, scans_of
from eventide.plan.render import render
from eventide.plan.tree import Plan
from eventide.schema import Schema
from tests.golden.plans import CATALOG

VALUES = [
    "1",
    "1.50",
    "1e3",
    "9223372036854775808",
    "'it''s'",
    "NULL",
    "TRUE",
    "-lane",
    "- 1",
    "speed + lane * 2 - toll / 3 % 2",
    "car || 'x' || lane",
    "car LIKE 'a!%' ESCAPE '!' OR car NOT ILIKE 'b%'",
    "lane IN (1, 2.5) AND NOT lane NOT IN (3)",
    "lane BETWEEN 1 AND 2 OR lane NOT BETWEEN 3 AND 4",
    "car IS NULL OR car IS NOT NULL OR (lane = 1) IS TRUE OR (lane = 1) IS NOT FALSE",
    "car IS DISTINCT FROM 'a' AND car IS NOT DISTINCT FROM 'b'",
    "CASE WHEN lane = 1 THEN 'a' WHEN lane = 2 THEN 'b' END",
    "CASE lane WHEN 1 THEN speed ELSE 0 END",
    "CAST(lane AS varchar)",
    "lane::double",
    "TRY_CAST(car AS decimal(5,1))",
    "CAST('2026-01-01' AS timestamp)",
    "TIMESTAMP '2026-01-01' - ts",
    "ts + INTERVAL '5' MINUTE - INTERVAL '1 hour 2 s'",
    "EXTRACT(dow FROM ts)",
    "date_trunc('hour', ts)",
    "date_part('epoch', ts)",
    "hour(ts) + dayofyear(ts)",
    "strftime(ts, '%Y-%m-%d')",
    "epoch(ts) + epoch_us(ts)",
    "make_timestamp(lane)",
    "coalesce(car, 'x', NULL)",
    "ifnull(lane, 1)",
    "nullif(lane, 1)",
    "greatest(lane, 2, 3) - least(lane, 2)",
    "concat(car, 'x', lane)",
    "lower(car) || upper(car) || reverse(car) || trim(car) || ltrim(car) || rtrim(car)",
    "substring(car, 1, 2) || substr(car, 2) || left(car, 1) || right(car, 1)",
    "replace(car, 'a', 'b')",
    "length(car) + len(car)",
    "starts_with(car, 'a') AND ends_with(car, 'b') AND contains(car, 'c')",
    "regexp_matches(car, 'a+')",
    "regexp_extract(car, '(a)(b)', 2)",
    "split_part(car, '-', 2)",
    "abs(lane) + sign(lane) + round(speed, 1) + floor(speed) + ceil(speed) + ceiling(speed)",
    "sqrt(speed) + cbrt(speed) + exp(speed) + ln(speed) + log10(speed) + log2(speed)",
    "log(speed) + log(3, speed)",
    "sin(speed) + cos(speed) + tan(speed) + asin(speed) + acos(speed) + atan(speed)",
    "degrees(speed) + radians(speed) + atan2(speed, 1) + power(speed, 2) + pow(speed, 2) + pi()",
    "isnan(speed)",
    "if(lane > 1, 'a', 'b')",
]
PARAMETERS = [
    *(1, -3, 10**20, 1.5, -0.5, float("nan"), Decimal("1.50"), Decimal(-2), "it's", True, None),
    *(datetime(2026, 1, 2, 3, 4, 5, 6), date(2026, 1, 2), timedelta(seconds=90)),
]


def computed(plan: Plan) -> Expression:
    """Return what the column x of a plan is, over the scan."""
    while not isinstance(plan, Project):
        (plan,) = plan.children
    return next(item.expression for item in plan.items if item.name == "x")


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_that_of_sql(value: str) -> None:
    sql = plan_sql(f"SELECT {value} AS x FROM cars", CATALOG)
    cel = plan_sql(read_cel(f"SELECT {value} AS x FROM cars"), CATALOG)
    assert computed(cel) == computed(sql)


@pytest.mark.parametrize("value", PARAMETERS, ids=repr)
def test_the_value_of_a_parameter_is_that_of_sql(value: object) -> None:
    sql = plan_sql("SELECT ? AS x FROM cars", CATALOG, [value])
    cel = plan_sql(read_cel("SELECT ? AS x FROM cars"), CATALOG, [value])
    assert render(computed(cel)) == render(computed(sql))
    assert computed(cel).type == computed(sql).type


def test_every_function_can_be_called() -> None:
    said = " ".join(VALUES).lower()
    called = {name for name, each in FUNCTIONS.items() if each.form == "call"}
    assert {name for name in called if f"{name}(" not in said} == {"epoch_ms"}
    assert not ALSO_CALLED.keys() & FUNCTIONS.keys()
    assert {*ALSO_CALLED.values()} <= FUNCTIONS.keys()


def test_parameters_by_name_number_and_place() -> None:
    text = "FILTER{speed > $low AND speed < $high AND lane <> $low} cars"
    by_name = plan_sql(text, CATALOG, {"low": 1, "high": 9})
    by_place = plan_sql("FILTER{speed > ? AND speed < ? AND lane <> ?} cars", CATALOG, [1, 9, 1])
    assert by_name == by_place


def test_parameters_of_sql_and_cel_are_counted_together() -> None:
    text = "SELECT ? AS a FROM CEL (FILTER{speed > ?} cars) WHERE lane = ?"
    plan = plan_sql(text, CATALOG, [1, 2.5, 3])
    same = "SELECT 1 AS a FROM CEL (FILTER{speed > 2.5e0} cars) WHERE lane = 3"
    assert plan == plan_sql(same, CATALOG)
    with pytest.raises(BindError, match="no value for parameter 3"):
        plan_sql(text, CATALOG, [1, 2.5])


def test_the_filter_of_cel_is_the_where_of_sql() -> None:
    streams = {"cars": Schema.of({"speed": "float64"})}
    found = []
    for text in (
        "SELECT speed FROM FILTER{speed > 3 AND ts < TIMESTAMP '2026-01-01'} cars",
        "SELECT speed FROM cars WHERE speed > 3 AND ts < TIMESTAMP '2026-01-01'",
    ):
        plan = plan_sql(text, streams)
        (scan,) = scans_of(plan)
        assert isinstance(scan, Scan)
        assert isinstance(plan.children[0], Filter)
        found.append((scan.time_range, plan.children[0].condition))
    assert found[0] == found[1]
