"""Over history a filter drops what only its condition reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.build import build_live_tree, build_tree
from eventide.lang.sql import plan_sql
from eventide.schema import Schema

SCHEMA = Schema.of({"car": "string", "speed": "int64", "accel": "int64"})


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT car FROM cars WHERE accel < 0", ["car"]),
        ("SELECT car, speed - accel AS d FROM cars WHERE accel < 0", ["car", "speed", "accel"]),
        ("SELECT 1 AS one FROM cars WHERE accel < 0", ["ts", "accel"]),
    ],
)
def test_a_filter_keeps_what_is_used_above_it(text: str, kept: list[str]) -> None:
    plan = plan_sql(text, {"cars": SCHEMA})
    assert build_tree(plan).placed[0].operator.output_schema.names == kept
    # A state of a live query is kept: its operators stay what they are.
    live = build_live_tree(plan).placed[0].operator
    assert live.output_schema.names == [name for name, _ in build_live_tree(plan).scan.columns]


@pytest.mark.parametrize("count", [40, 10_000])
def test_rows_are_those_whose_dropped_column_says_so(count: int) -> None:
    rng = np.random.default_rng(5)
    accel = [None if each == 0 else int(each) for each in rng.integers(-3, 3, count)]
    cars = pa.table({"car": [f"c{n % 7}" for n in range(count)], "accel": accel})
    found = ev.sql("SELECT car FROM cars WHERE accel < 0", cars=cars).to_arrow()
    ones = ev.sql("SELECT 1 AS one FROM cars WHERE accel < 0", cars=cars).to_arrow()
    passed = [n for n, each in enumerate(accel) if each is not None and each < 0]
    assert found.column("car").to_pylist() == [f"c{n % 7}" for n in passed]
    assert ones.column("one").to_pylist() == [1] * len(passed)
