"""Queries that differ in how long a result may last are one template, as long as each says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.lang.sql import plan_sql
from eventide.plan.sharing.rules import ALL_RULES, RULES_OF_HISTORY, RULES_OF_SETS
from eventide.plan.tree import Plan
from tests.engines.live.sharing.test_many_queries import Alone, Compared, run
from tests.engines.live.sharing.texts import CATALOG, SECOND, Draw, events
from tests.exploring import EXPLORING

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
BOUNDED = "SELECT * FROM FILTER{speed > $fast} cars NEXT{$1.car = $2.car AND DUR <= $long} photos"
KEYED = "SELECT * FROM FILTER{speed > 5} cars NEXT{$2.car = $car AND DUR <= $long} cars"
TWICE = KEYED.replace("DUR <= $long", "DUR <= $long AND DUR < $other")
LENGTHS: tuple[Draw, ...] = (
    lambda r: (
        f"SELECT * FROM FILTER{{speed > {r.randrange(50)}}}(cars) "
        f"NEXT{{$1.car = $2.car AND $2.speed > $1.speed + {r.randrange(9)} "
        f"AND DUR <= {r.randrange(9)}s}}(cars)"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{lane = {r.randrange(4)}}}(cars) "
        f"NEXT{{$2.car = '{r.choice('abc')}' AND {r.randrange(9)}s > DUR AND DUR <= 5s}}(cars)"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{lane = {r.randrange(4)}}}(cars) "
        f"FOLD{{$2.car = '{r.choice('abc')}', DUR <= {r.randrange(12)}s, }}(cars)"
    ),
    lambda r: (
        f"SELECT * FROM FILTER{{DUR <= {r.randrange(9)}s}}((FILTER{{speed > 9}}(cars)"
        f" NEXT{{$2.lane = {r.randrange(4)} AND DUR <= {r.randrange(5)}s}}(cars)) "
        f"NEXT{{$2.car = '{r.choice('abc')}' AND DUR <= {r.randrange(9)}s}}(photos))"
    ),
)


@pytest.mark.parametrize("disorder", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(200 if EXPLORING else 4))
def test_queries_of_different_lengths_answer_as_alone(seed: int, disorder: float) -> None:
    random = Random(seed)
    run(random, LENGTHS, disorder, random.choice([ALL_RULES, RULES_OF_SETS])).check()


def planned(text: str, rows: Mapping[str, object]) -> tuple[int, int]:
    """Return how often a text with rows of parameters is planned, and how many templates it has."""
    asked: list[object] = []

    def plan(own: str, params: Mapping[str, object] | None) -> Plan:
        asked.append(params)
        return plan_sql(own, CATALOG, params)

    found = ManyPlanner(plan).table(text, pa.table(rows), 0)
    assert not found.lone
    templates = [each for portion in found.portions for each in (*portion.parts, portion)]
    return len(asked), len({each.template.digest for each in templates})


def seconds(*numbers: int) -> pa.Array:
    """Return lengths."""
    return pa.array([each * SECOND for each in numbers], pa.duration("us"))


def test_lengths_are_constants_of_one_template() -> None:
    assert planned(BOUNDED, {"fast": [1.0, 2.0, 3.0], "long": seconds(5, 7, 9)}) == (1, 1)
    assert planned(KEYED, {"car": ["a", "b", "a"], "long": seconds(5, 7, 5)})[0] == 1
    # Which of two bounds is the lesser one is not known of other rows.
    assert planned(TWICE, {"car": ["a"] * 2, "long": seconds(5, 9), "other": seconds(7, 7)})[0] == 2


@pytest.mark.parametrize("text", [BOUNDED, KEYED, TWICE])
def test_rows_of_parameters_with_lengths_answer_as_texts_with_them(text: str) -> None:
    random, count, now_us = Random(1), 24, 0
    rng = np.random.default_rng(1)
    whole = {
        "fast": pa.array(rng.integers(0, 50, count).astype(np.float64)),
        "car": pa.array(rng.choice(["a", "b"], count)),
        "long": seconds(*rng.integers(-1, 8, count).tolist()),
        "other": seconds(*rng.integers(1, 8, count).tolist()),
    }
    table = pa.table({name: column for name, column in whole.items() if f"${name}" in text})
    compared = Compared(0)
    for portion in compared.planner.table(text, table, 0).portions:
        compared.many.add(portion)
    for number, params in enumerate(table.to_pylist()):
        engine = compared.engine_of(plan_sql(text, CATALOG, params))
        compared.alone[number] = Alone(engine, engine.initial_state())
        compared.found[number] = Counter()
        compared.texts.append(f"{params}")
    for step in range(4):
        for stream in ("cars", "photos"):
            rows, later_us = events(random, stream, 30, now_us, 30 * step, 0.0)
            compared.take(stream, rows)
        now_us = later_us
    compared.finish()
    compared.check()
    assert sum(map(len, compared.found.values()))


def test_history_knows_lengths_beforehand() -> None:
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params), RULES_OF_HISTORY)
    rows = pa.table({"car": ["a", "b"], "long": seconds(5, 7)})
    assert len(planner.table(KEYED, rows, 0).portions) == 2
