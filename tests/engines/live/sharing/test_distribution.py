"""Queries are distributed by the keys that all of their states share; else the queries are."""

from __future__ import annotations

import pytest

from eventide.engines.live.sharing.distribution import shares_of
from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.lang.sql import plan_sql
from eventide.plan.sharing.rules import WITHOUT_PARTS
from tests.engines.live.sharing.texts import CATALOG

BY_CAR = "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1' SECOND)"
BY_LANE = "SELECT lane, COUNT(*) AS n FROM cars GROUP BY lane, TUMBLE(ts, INTERVAL '1' SECOND)"
BY_BOTH = BY_CAR.replace("GROUP BY car", "GROUP BY lane, car")
OF_ALL = "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
FOLLOWED = "SELECT * FROM FILTER{speed > 5}(cars) NEXT{$1.car = $2.car}(photos)"
FOLLOWED_BY_ANY = "SELECT * FROM FILTER{speed > 5}(cars) NEXT{DUR <= 5s}(photos)"
ACROSS = "SELECT * FROM FILTER{speed > 5}(cars) NEXT{$1.speed = $2.lane}(cars)"
PLAIN = "SELECT car FROM cars WHERE speed > 3"
IN_PHOTOS = "SELECT car FROM photos WHERE car = 'a'"
BY_QUERY = "by query: each bucket takes all events, for some queries"
EITHER = f"{BY_CAR} UNION ALL SELECT car, 1 AS n FROM photos"


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        ([BY_CAR], ["cars: 1 query by key: cars by car"]),
        ([BY_BOTH], ["cars: 1 query by key: cars by lane, car"]),
        ([BY_BOTH, BY_CAR, BY_CAR], ["cars: 3 queries by key: cars by car"]),
        (
            [BY_CAR, BY_LANE],
            ["cars: 1 query by key: cars by car", "cars: 1 query by key: cars by lane"],
        ),
        (
            [BY_CAR, FOLLOWED],
            ["cars, photos: 2 queries by key: cars by car; photos by car"],
        ),
        (
            [BY_LANE, FOLLOWED],
            [
                "cars: 1 query by key: cars by lane",
                "cars, photos: 1 query by key: cars by car; photos by car",
            ],
        ),
        ([PLAIN, PLAIN], ["cars: 2 queries event by event: nothing is remembered"]),
        (
            [PLAIN, IN_PHOTOS, BY_CAR],
            ["cars, photos: 3 queries by key: cars by car; photos by _seq"],
        ),
        (
            [OF_ALL],
            [f"cars: 1 query {BY_QUERY}"],
        ),
        (
            [FOLLOWED_BY_ANY],
            [f"cars, photos: 1 query {BY_QUERY}"],
        ),
        (
            [ACROSS],
            [f"cars: 1 query {BY_QUERY}"],
        ),
        ([EITHER], ["cars, photos: 1 query by key: cars by car; photos by _seq"]),
    ],
)
def test_queries_are_distributed_by_what_they_have_in_common(
    texts: list[str], lines: list[str]
) -> None:
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params), WITHOUT_PARTS)
    planned = planner.texts(texts, 0)
    assert not planned.lone
    assert sorted(each.line for each in shares_of(planned.portions)) == sorted(lines)
