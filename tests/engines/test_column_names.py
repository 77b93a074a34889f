"""Columns that get other names: by a list behind a table, or a number if several are equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import eventide as ev
from eventide.lang.sql.names.columns import unique_names
from tests.engines import engines
from tests.engines.scenarios import SCENARIOS, as_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CARS: dict[str, list[Any]] = {
    "ts": ["2026-03-02 08:00:01", "2026-03-02 08:00:04", "2026-03-02 08:00:12"],
    "car": ["a", "b", "a"],
    "speed": [40.0, 55.0, 60.0],
    "lane": [1, 2, 1],
}

# What is written with new names, and what it means.
SAME = {
    "SELECT who, v FROM cars AS c(t, who, v) WHERE c.v > 40": (
        "SELECT car AS who, speed AS v FROM cars WHERE speed > 40"
    ),
    "SELECT * FROM cars AS c(t, who)": "SELECT ts AS t, car AS who, speed, lane FROM cars",
    "SELECT cars.who, v FROM cars(t, who, v) WHERE cars.v > 40": (
        "SELECT car AS who, speed AS v FROM cars WHERE speed > 40"
    ),
    'SELECT c.who FROM "cars"(t, who) c JOIN CARS(at) AS d ON c.t = d.at': (
        "SELECT car AS who FROM cars"
    ),
    "SELECT * FROM cars(ts, who, v) MATCH_RECOGNIZE (PARTITION BY who "
    "MEASURES A.v AS a, B.v AS b PATTERN (A B) DEFINE B AS v > PREV(v))": (
        "SELECT car AS who, a, b FROM cars MATCH_RECOGNIZE (PARTITION BY car "
        "MEASURES A.speed AS a, B.speed AS b PATTERN (A B) DEFINE B AS speed > PREV(speed))"
    ),
    "SELECT t, who FROM cars(t, who) [RANGE 10 SECONDS]": (
        "SELECT ts AS t, car AS who FROM cars [RANGE 10 SECONDS]"
    ),
    "WITH x AS (SELECT ts, car FROM cars) SELECT x.w FROM x(t, w)": "SELECT car AS w FROM cars",
    "SELECT t, c._seq AS n FROM cars c(t) ORDER BY t DESC": (
        "SELECT ts AS t, _seq AS n FROM cars ORDER BY ts DESC"
    ),
    "SELECT who, MAX(v) AS top FROM cars AS c(t, who, v) "
    "GROUP BY who, TUMBLE(t, INTERVAL '10' SECOND)": (
        "SELECT car AS who, MAX(speed) AS top FROM cars "
        "GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)"
    ),
    "SELECT t, SUM(v) OVER (PARTITION BY who ORDER BY t "
    "RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND CURRENT ROW) AS s FROM cars c(t, who, v)": (
        "SELECT ts AS t, SUM(speed) OVER (PARTITION BY car ORDER BY ts "
        "RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND CURRENT ROW) AS s FROM cars"
    ),
    "SELECT a.who, b.speed FROM cars AS a(t, who) JOIN cars b ON a.who = b.car WHERE a.lane = 1": (
        "SELECT a.car AS who, b.speed FROM cars a JOIN cars b ON a.car = b.car WHERE a.lane = 1"
    ),
    "SELECT * FROM cars AS c(ts, who, v) MATCH_RECOGNIZE (PARTITION BY who "
    "MEASURES A.v AS a, B.v AS b PATTERN (A B) DEFINE B AS v > PREV(v))": (
        "SELECT car AS who, a, b FROM cars MATCH_RECOGNIZE (PARTITION BY car "
        "MEASURES A.speed AS a, B.speed AS b PATTERN (A B) DEFINE B AS speed > PREV(speed))"
    ),
    "SELECT t, who FROM cars [RANGE 10 SECONDS] AS c(t, who)": (
        "SELECT ts AS t, car AS who FROM cars [RANGE 10 SECONDS]"
    ),
    "SELECT a, n FROM (SELECT car, COUNT(*) FROM cars GROUP BY car) AS x(a, n)": (
        "SELECT car AS a, COUNT(*) AS n FROM cars GROUP BY car"
    ),
    "SELECT * FROM (SELECT speed, speed FROM cars) AS x(p, q)": (
        "SELECT speed AS p, speed AS q FROM cars"
    ),
    "WITH x(t) AS (SELECT ts, car FROM cars) SELECT * FROM x": "SELECT ts AS t, car FROM cars",
    "WITH x(t, w) AS (SELECT ts, car FROM cars WHERE lane = 1) "
    "SELECT w, COUNT(*) AS n FROM x GROUP BY w, TUMBLE(t, INTERVAL '1' MINUTE)": (
        "SELECT car AS w, COUNT(*) AS n FROM cars WHERE lane = 1 "
        "GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)"
    ),
    "WITH x AS (SELECT * FROM cars) SELECT a.w FROM x AS a(t, w) JOIN x AS b(t, w) ON a.w < b.w": (
        "SELECT a.car AS w FROM cars a JOIN cars b ON a.car < b.car"
    ),
    # A SELECT in brackets or in WITH is a source as a stream is.
    "WITH x AS (SELECT ts, car, speed FROM cars WHERE lane = 1), "
    "y AS (SELECT *, speed * 2 AS twice FROM x WHERE speed > 40) "
    "SELECT car, SUM(twice) AS s FROM y GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)": (
        "SELECT car, SUM(speed * 2) AS s FROM cars WHERE lane = 1 AND speed > 40 "
        "GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)"
    ),
    "WITH x AS (SELECT ts, car, speed FROM cars WHERE lane = 1) SELECT a.n, b.top FROM "
    "(SELECT car, COUNT(*) AS n FROM x GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)) a JOIN "
    "(SELECT car, MAX(speed) AS top FROM x GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)) b "
    "USING (car)": (
        "SELECT COUNT(*) AS n, MAX(speed) AS top FROM cars WHERE lane = 1 "
        "GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)"
    ),
    "WITH x AS (SELECT ts, speed FROM cars WHERE lane = 1), y AS (SELECT ts, -speed AS v FROM x) "
    "SELECT * FROM y MATCH_RECOGNIZE (MEASURES A.v AS a, B.v AS b PATTERN (A B))": (
        "SELECT * FROM (SELECT ts, -speed AS v FROM cars WHERE lane = 1) "
        "MATCH_RECOGNIZE (MEASURES A.v AS a, B.v AS b PATTERN (A B))"
    ),
    "WITH cars AS (SELECT ts, car FROM cars WHERE lane = 1) "
    "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)": (
        "SELECT COUNT(*) AS n FROM cars WHERE lane = 1 GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    ),
}

# What several columns of one name are called.
NUMBERED = {
    "SELECT speed, speed FROM cars": ["speed", "speed_1"],
    "SELECT car, lower(car) AS CAR FROM cars": ["car", "CAR_1"],
    "SELECT *, ts FROM cars ORDER BY 5": ["ts", "car", "speed", "lane", "ts_1"],
    "SELECT lane, lane, speed AS lane_1 FROM cars": ["lane", "lane_2", "lane_1"],
    "SELECT a.car, b.car FROM cars a JOIN cars b ON a.lane = b.lane": ["car", "car_1"],
    "SELECT *, x.car FROM (SELECT car, COUNT(*) AS n FROM cars GROUP BY car) x": [
        "car",
        "n",
        "car_1",
    ],
    "SELECT car, COUNT(*), COUNT(*) FROM cars GROUP BY car": ["car", "count(*)", "count(*)_1"],
}


def test_numbers_leave_names_alone_that_are_taken() -> None:
    assert unique_names(["v", "v", "v", "w"]) == ["v", "v_1", "v_2", "w"]
    assert unique_names(["v", "v", "V_1"]) == ["v", "v_2", "V_1"]


@pytest.mark.parametrize("text", SAME)
def test_new_names_mean_the_old_columns(text: str) -> None:
    found, expected = (ev.sql(each, cars=CARS).to_arrow() for each in (text, SAME[text]))
    assert found.column_names == expected.column_names
    assert expected.num_rows
    assert as_bag(found.to_pylist()) == as_bag(expected.to_pylist())


@pytest.mark.parametrize("text", NUMBERED)
def test_columns_of_one_name_are_numbered(text: str) -> None:
    found = ev.sql(text, cars=CARS).to_arrow()
    assert found.column_names == NUMBERED[text]
    assert found.num_rows


def test_the_second_column_has_its_own_values() -> None:
    text = "SELECT a.car, b.car FROM cars a JOIN cars b ON a.lane < b.lane"
    assert ev.sql(text, cars=CARS).rows() == [{"car": "a", "car_1": "b"}] * 2


def test_rows_of_a_relation_can_be_renamed(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    owners = db.create_relation("owners", {"car": "string", "name": "string"}, key=["car"])
    owners.upsert([{"ts": 1, "car": "a", "name": "Ada"}, {"ts": 2, "car": "a", "name": "Bo"}])
    found = db.sql("SELECT * FROM owners AS o(t, c, n)").to_arrow()
    assert found.column_names == ["t", "c", "n"]
    assert found.column("n").to_pylist() == ["Bo"]


def test_what_only_the_engine_can_cast_is_left_to_it() -> None:
    text = "SELECT n || 'x' AS s FROM (SELECT ts, lane AS n FROM cars) WHERE n = 2"
    assert ev.sql(text, cars=CARS).rows() == [{"s": "2x"}]


def test_windows_by_count_need_no_time_inside() -> None:
    text = "SELECT COUNT(*) AS n FROM (SELECT car FROM cars) GROUP BY TUMBLE(ROWS, 3)"
    assert ev.sql(text, cars=CARS).rows() == [{"n": 3}]


def test_order_by_a_name_is_by_the_first_of_its_columns() -> None:
    text = "SELECT -speed AS v, speed AS v FROM cars ORDER BY v LIMIT 1"
    assert ev.sql(text, cars=CARS).rows() == [{"v": -60.0, "v_1": 60.0}]


LIVE = [
    "WITH x(t, who, v) AS (SELECT ts, car, speed FROM cars WHERE lane = 1) "
    "SELECT who, window_end, MAX(v) AS top, COUNT(*), COUNT(*) FROM x "
    "GROUP BY who, TUMBLE(t, INTERVAL '10' SECOND)",
    "SELECT t, who, v, who FROM cars AS c(t, who, v) WHERE who IS NOT NULL",
]


@pytest.mark.parametrize("text", LIVE)
def test_live_and_history_agree(text: str, tmp_path: Path) -> None:
    scenario = SCENARIOS["mixed"]()
    expected = engines.run_table(text, scenario.on_time())
    assert expected
    assert as_bag(engines.run_live(text, scenario, tmp_path)) == as_bag(expected)


def on_spark(spark: SparkSession) -> Iterator[tuple[str, list[str], list[tuple[object, ...]]]]:
    columns = [name for name in CARS if name != "ts"]
    seconds = (1, 4, 12)
    rows = [
        (1_772_438_400_000_000 + 1_000_000 * second, *(CARS[name][place] for name in columns))
        for place, second in enumerate(seconds)
    ]
    frame = spark.createDataFrame(rows, "ts long, car string, speed double, lane long")
    untimed = [text for text in [*SAME, *NUMBERED] if "SELECT t" not in text and "[" not in text]
    for text in untimed:
        answer = ev.spark(spark).sql(text, cars=frame)
        names = [name for name in answer.columns if name not in ("t", "ts", "ts_1")]
        yield text, answer.columns, [tuple(row) for row in answer.select(*quoted(names)).collect()]


def quoted(names: list[str]) -> list[str]:
    return [f"`{name}`" for name in names]


@pytest.mark.spark
def test_spark_has_the_same_names_and_rows(spark: SparkSession) -> None:
    for text, columns, rows in on_spark(spark):
        expected = ev.sql(text, cars=CARS).to_arrow()
        assert columns == expected.column_names, text
        timed = [name for name in ("t", "ts", "ts_1") if name in columns]
        values = expected.drop_columns(timed).to_pylist()
        assert sorted(map(repr, rows)) == sorted(repr(tuple(each.values())) for each in values)
