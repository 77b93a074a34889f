"""Scalar subqueries of standing queries: what they are joined as, and what is refused."""

from __future__ import annotations

import pytest

from eventide.errors import UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.schema import Schema

CATALOG = {"cars": Schema.of({"car": "string", "speed": "float64"})}
SELECT = "SELECT c.car FROM cars [RANGE 1 MINUTE] c WHERE "
MEAN = "(SELECT AVG(speed) FROM cars [RANGE 1 HOUR])"


@pytest.mark.parametrize(
    "condition",
    [f"c.speed > {MEAN}", f"c.car = 'a' AND c.speed > 2 * {MEAN}", f"({MEAN} < c.speed)"],
)
def test_an_aggregate_is_joined(condition: str) -> None:
    plan = explain(plan_sql(SELECT + condition, CATALOG))
    assert "GroupAggregate: avg(" in plan
    assert "Join" in plan


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("c.speed > (SELECT speed FROM cars [ROWS 1])", "several values"),
        ("c.speed > (SELECT MAX(speed) FROM cars [ROWS 9] GROUP BY car)", "several values"),
        (f"c.speed > {MEAN} OR c.car = 'a'", "not part of a comparison"),
        (f"NOT (c.speed > {MEAN})", "not part of a comparison"),
        (f"{MEAN} IS NULL", "not part of a comparison"),
    ],
)
def test_others_are_refused(condition: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as failure:
        plan_sql(SELECT + condition, CATALOG)
    assert failure.value.hint
    assert failure.value.span is not None
