"""Functions that users write in Python, in every place where a query calls functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import eventide as ev
from eventide.errors import BindError, EvaluationError, SchemaError, UnsupportedError
from tests.engines.engines import plain, run_history, run_live, run_table
from tests.engines.scenarios import Scenario, mixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = Callable[[str, Scenario, Path], list[dict[str, Any]]]
CARS: list[dict[str, Any]] = [
    {"ts": 0, "car": "abc", "lane": 1, "speed": 4.0},
    {"ts": 1, "car": "cc", "lane": 2, "speed": None},
    {"ts": 2, "car": None, "lane": 3, "speed": 9.0},
]


def given() -> dict[str, tuple[Callable[..., Any], list[str], str]]:
    """Functions that go to Spark by value: workers do not know this module."""
    return {
        "count_c": (lambda text: pc.count_substring(text, "c"), ["string"], "int64"),
        "root": (lambda x: np.sqrt(x.to_numpy(zero_copy_only=False)), ["float64"], "float64"),
        "apart": (lambda x, y: pc.abs(pc.subtract(x, y)), ["float64", "float64"], "float64"),
        "is_odd": (lambda x: [None if v is None else v % 2 == 1 for v in x.to_pylist()],
                   ["int64"], "bool"),
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _functions() -> None:
    for name, (compute, takes, returns) in given().items():
        ev.register_function(name, compute, takes, returns)


def rows(text: str) -> list[dict[str, Any]]:
    return ev.sql(text, cars=pa.Table.from_pylist(CARS)).rows()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT count_c(car) AS n FROM cars", [1, 2, None]),
        ("SELECT ROOT(speed) AS n FROM cars WHERE is_odd(lane)", [2.0, 3.0]),
        ("SELECT apart(speed, lane) AS n FROM cars", [3.0, None, 6.0]),
        ("SELECT MAX(count_c(car)) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)", [2]),
        ("SELECT count_c(car) AS n, COUNT(*) FROM cars GROUP BY 1 ORDER BY 1", [1, 2, None]),
        ("SELECT SUM(lane) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND "
         "CURRENT ROW) + count_c('cc') AS n FROM cars", [3, 5, 8]),
        ("SELECT * FROM cars MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(B.lane) AS n "
         "PATTERN (A B) DEFINE B AS count_c(car) > PREV(count_c(car)))", [2]),
    ],
)  # fmt: skip
def test_a_function_stands_wherever_functions_stand(text: str, found: list[object]) -> None:
    assert [row["n"] for row in rows(text)] == found


TEXT = "SELECT car, apart(speed, 3) AS off, count_c(car) AS n FROM cars WHERE is_odd(lane)"


def key(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


@pytest.mark.parametrize("answer", [run_history, run_live])
def test_all_engines_agree(answer: Answer, tmp_path: Path) -> None:
    scenario = Scenario("in order", (tuple(sorted(mixed().events(), key=lambda e: e["ts"])),), 0)
    expected = run_table(TEXT, scenario.events())
    assert len(expected) > 50
    assert sorted(answer(TEXT, scenario, tmp_path), key=key) == sorted(expected, key=key)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_function_goes_to_the_workers_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"car": "string", "lane": "int64", "speed": "float64"}).append(CARS)
    on_spark = ev.spark(spark, str(tmp_path / "db"))
    found = plain(on_spark.sql(TEXT).toArrow())
    assert sorted(found, key=key) == sorted(rows(TEXT), key=key)
    with pytest.raises(UnsupportedError, match="count_c"):
        on_spark.sql("SELECT count_c(car) AS n, COUNT(*) FROM cars GROUP BY 1").toArrow()


def test_a_plan_seen_before_does_not_keep_an_old_function() -> None:
    text = "SELECT twice(lane) AS n FROM cars"
    ev.register_function("twice", lambda x: pc.multiply(x, 2), ["int64"], "int64")
    assert [row["n"] for row in rows(text)] == [2, 4, 6]
    ev.register_function("twice", lambda x: pc.multiply(x, 2.5), ["int64"], "float64")
    assert [row["n"] for row in rows(text)] == [2.5, 5.0, 7.5]


def test_the_rest_of_a_query_gets_a_new_function() -> None:
    text = "SELECT twice(lane) AS n, COUNT(*) FROM cars GROUP BY 1 ORDER BY 1"
    ev.register_function("twice", lambda x: pc.multiply(x, 2), ["int64"], "int64")
    assert [row["n"] for row in rows(text)] == [2, 4, 6]
    ev.register_function("twice", lambda x: pc.multiply(x, 3), ["int64"], "int64")
    assert [row["n"] for row in rows(text)] == [3, 6, 9]


def failing(_: pa.Array) -> pa.Array:
    message = "no luck"
    raise RuntimeError(message)


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        (failing, "odd failed: RuntimeError: no luck"),
        (lambda _: [1], "odd returned 1 values for 3 rows"),
        (lambda x: x.to_pylist()[0], "odd returned int, which is no column of int64"),
        (lambda x: pa.array(["a"] * len(x)), "odd returned an array of string"),
    ],
)
def test_a_function_that_does_not_keep_its_word_is_named(
    compute: Callable[..., Any], said: str
) -> None:
    ev.register_function("odd", compute, ["int64"], "int64")
    with pytest.raises(EvaluationError, match=said):
        rows("SELECT odd(lane) AS n FROM cars")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT count_c(lane) AS n FROM cars", "COUNT_C takes string, not int64"),
        ("SELECT apart(speed) AS n FROM cars", "APART takes 2 arguments, got 1"),
        ("SELECT count_d(car) AS n FROM cars", "did you mean 'count_c'"),
    ],
)
def test_wrong_calls_are_found_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(BindError, match=said):
        rows(text)


@pytest.mark.parametrize(
    ("name", "takes", "said"),
    [
        ("abs", ["int64"], "'abs' is a function of Eventide"),
        ("sum", ["int64"], "'sum' is a function of Eventide"),
        ("two words", ["int64"], "cannot be called"),
        ("f", [], "takes nothing"),
        ("f", "int64", "a list of types"),
        ("f", ["number"], "unknown type 'number'"),
    ],
)
def test_wrong_registrations_are_refused(name: str, takes: list[str], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        ev.register_function(name, len, takes, "int64")
