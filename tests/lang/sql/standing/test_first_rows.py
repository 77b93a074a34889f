"""ROW_NUMBER in a standing query: the plan of the first rows of each key, and what is refused."""

from __future__ import annotations

import pytest

from eventide.errors import EventideError
from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.schema import Schema

CATALOG = {"cars": Schema.of({"car": "string", "lane": "int64", "speed": "float64"})}
NUMBER = "ROW_NUMBER() OVER (PARTITION BY {} ORDER BY speed DESC) AS place"
TEXT = "SELECT {} FROM (SELECT *, {} FROM cars [RANGE 1 MINUTE]) q WHERE {}"


@pytest.mark.parametrize(
    ("keys", "bound", "shown"),
    [
        ("car", "place <= 3", "Top 3 by cars.car in order of cars.speed DESC"),
        ("car, lane", "place < 3", "Top 2 by cars.car, cars.lane in order of cars.speed DESC"),
        ("lane % 2", "place = 1 AND speed > 9", "Top 1 by "),
        ("car", "speed > 9 AND (q.place <= 5) AND lane = 1", "Top 5 by "),
    ],
)
def test_a_bound_makes_the_first_rows(keys: str, bound: str, shown: str) -> None:
    text = TEXT.format("car, speed", NUMBER.format(keys), bound)
    plan = explain(plan_sql(text, CATALOG))
    assert shown.replace("cars.", "") in plan.replace("cars.", "").replace("order_by", "")
    assert ("speed > 9.0" in plan) == ("speed" in bound)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.format("*", NUMBER.format("car"), "place <= 3"), "the number of a row"),
        (TEXT.format("car, place", NUMBER.format("car"), "place <= 3"), "the number of a row"),
        (TEXT.format("car", NUMBER.format("car"), "speed > 3"), "without WHERE around it"),
        (TEXT.format("car", NUMBER.format("car"), "place > 3"), "without WHERE around it"),
        (TEXT.format("car", NUMBER.format("car"), "place <= 0"), "without WHERE around it"),
        (
            TEXT.format("car", "ROW_NUMBER() OVER (PARTITION BY car) AS place", "place <= 1"),
            "ROW_NUMBER without ORDER BY",
        ),
        (
            TEXT.format("car", "RANK() OVER (ORDER BY speed) AS place", "place <= 1"),
            "OVER cannot stand",
        ),
    ],
)
def test_what_is_refused_says_what_would_work(text: str, message: str) -> None:
    with pytest.raises(EventideError, match=message) as failure:
        plan_sql(text, CATALOG)
    assert failure.value.hint
    assert failure.value.span is not None
