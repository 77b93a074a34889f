"""Aggregates that users define: the built-in examples of each kind, and the registry."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StoreError
from eventide.kernels.compiled import Int64s
from eventide.schema import DataType, Schema
from eventide.store.index.aggregates import (
    MAX2,
    MEDIAN,
    BoundAggregate,
    UserAggregate,
    register_aggregate,
    registered,
)
from eventide.store.index.summaries import SummaryLayout
from tests.naive.summaries import answers
from tests.store.index.test_summaries import (
    SCHEMA,
    TYPES,
    at,
    batch,
    cuts,
    exactly,
    largest,
    near,
    ordinary,
    rows_of,
)

settings.register_profile("summaries", deadline=None, max_examples=60)
settings.load_profile("summaries")

SPEED = Schema.of({"speed": "float64"})
special_floats = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.0])


def with_aggregate(function: str, name: str) -> SummaryLayout:
    return SummaryLayout.of(SCHEMA, [name], [BoundAggregate(function, name)])


def speeds(*rows: float | None) -> pa.RecordBatch:
    return pa.record_batch({"speed": pa.array(rows, pa.float64())})


PRODUCT = register_aggregate(
    UserAggregate.from_functions(
        "product",
        lambda value: (value,),
        lambda one, other: (one[0] * other[0],),
        lambda state: state[0],
        {"value": pa.float64()},
        pa.float64(),
    )
)
DIRECTION = register_aggregate(
    UserAggregate.from_functions(
        "direction",
        lambda value: (math.cos(value), math.sin(value)),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
        lambda state: math.atan2(state[1], state[0]),
        {"x": pa.float64(), "y": pa.float64()},
        pa.float64(),
    )
)
SPREAD = register_aggregate(
    UserAggregate.virtual(
        "spread",
        ("min", "max"),
        lambda found: pc.subtract(found["max"], found["min"]),
        lambda argument: argument.is_numeric,
    )
)
RELATIVE_MEDIAN = register_aggregate(
    UserAggregate.virtual(
        "relative_median",
        ("median", "spread"),
        lambda found: pc.divide(found["median"], found["spread"]),
        lambda argument: argument.is_numeric,
    )
)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("function", ["max2", "min2"])
@settings(max_examples=30)
@given(data=st.data())
def test_the_second_best_of_runs_and_of_merged_runs(
    function: str, name: str, data: st.DataObject
) -> None:
    values = ordinary[name] | st.sampled_from(data.draw(st.lists(ordinary[name], min_size=1)))
    rows = data.draw(rows_of(values))
    bounds = cuts(data, len(rows))
    layout = with_aggregate(function, name)
    entries = layout.summarise(batch(name, rows), at(*bounds))
    assert layout.finish(function, name, entries).to_pylist() == answers(function, rows, bounds)
    shuffled = entries.take(pa.array(data.draw(st.permutations(range(entries.num_rows)))))
    in_steps = layout.merge(shuffled, at(*cuts(data, entries.num_rows)))
    whole = layout.merge(in_steps, at(0, in_steps.num_rows))
    expected = answers(function, rows, [0, len(rows)])
    assert layout.finish(function, name, whole).to_pylist() == expected


@given(st.lists(st.none() | special_floats), st.data())
def test_the_second_best_float_has_one_spelling(rows: list[Any], data: st.DataObject) -> None:
    bounds = cuts(data, len(rows))
    for function in ("max2", "min2"):
        layout = with_aggregate(function, "speed")
        entries = layout.summarise(batch("speed", rows), at(*bounds))
        whole = layout.merge(entries, at(0, entries.num_rows))
        (expected,) = answers(function, rows, [0, len(rows)])
        spelled = pa.array([expected if expected is None else expected + 0.0], pa.float64())
        assert exactly(layout.finish(function, "speed", whole)) == exactly(spelled)


def test_equal_values_count_apart() -> None:
    layout = with_aggregate("max2", "speed")
    entries = layout.summarise(speeds(7.0, 7.0, 3.0, None, 9.0, None), at(0, 3, 6))
    assert layout.finish("max2", "speed", entries).to_pylist() == [7.0, None]
    assert layout.finish("max2", "speed", layout.merge(entries, at(0, 2))).to_pylist() == [7.0]


def test_a_dependent_aggregate_stores_only_what_others_do_not() -> None:
    assert MAX2.kind == "dependent"
    names = set(with_aggregate("max2", "speed").arrow.names)
    assert names - set(SummaryLayout.of(SCHEMA, ["speed"]).arrow.names) == {"speed.max2.second"}


@pytest.mark.parametrize("name", ["lane", "speed", "price"])
@pytest.mark.parametrize("function", ["average", "stddev_pop"])
@settings(max_examples=30)
@given(data=st.data())
def test_virtual_aggregates_store_nothing(function: str, name: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(ordinary[name]))
    bounds = cuts(data, len(rows))
    layout = SummaryLayout.of(SCHEMA, [name])
    assert with_aggregate(function, name).arrow.equals(layout.arrow)
    found = layout.finish(function, name, layout.summarise(batch(name, rows), at(*bounds)))
    # A decimal is a double before it is squared, and that is not exact.
    room = (1e-7 if name == "price" else 1e-13) * largest(rows)
    expected = near(answers(function, rows, bounds), rel=1e-14, room=room)
    assert found.to_pylist() == expected


def test_large_means_do_not_drown_small_deviations() -> None:
    layout = SummaryLayout.of(SPEED, ["speed"])
    entries = layout.summarise(speeds(1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4), at(0, 1, 4))
    whole = layout.merge(entries, at(0, 2))
    assert layout.finish("var_pop", "speed", whole).to_pylist() == [1.25]
    assert layout.finish("stddev_pop", "speed", entries).to_pylist()[0] == 0.0


@given(rows_of(ordinary["speed"]), st.data())
def test_a_median_is_exact_in_a_leaf(rows: list[Any], data: st.DataObject) -> None:
    bounds = cuts(data, len(rows))
    layout = with_aggregate("median", "speed")
    entries = layout.summarise(batch("speed", rows), at(*bounds))
    found = layout.finish("median", "speed", entries)
    assert found.to_pylist() == answers("median", rows, bounds)
    one_each = layout.merge(entries, np.arange(entries.num_rows + 1))
    assert layout.finish("median", "speed", one_each).equals(found)


def test_a_median_above_leaves_is_an_estimate() -> None:
    layout = with_aggregate("median", "speed")
    rows = speeds(1.0, 2.0, 100.0, 3.0, 4.0, 5.0, 6.0)
    entries = layout.summarise(rows, at(0, 3, 7))
    assert layout.finish("median", "speed", entries).to_pylist() == [2.0, 4.5]
    # The four values of the second leaf outweigh the three of the first; the truth is 4.
    assert layout.finish("median", "speed", layout.merge(entries, at(0, 2))).to_pylist() == [4.5]
    assert MEDIAN.kind == "rough"
    assert layout.is_rough("median", "speed")
    assert layout.is_rough("relative_median", "speed")
    assert not layout.is_rough("max", "speed")
    assert not layout.is_rough("spread", "speed")


def test_a_virtual_aggregate_reads_others_that_users_defined() -> None:
    layout = with_aggregate("median", "speed")
    entries = layout.summarise(speeds(1.0, 3.0, 5.0), at(0, 3))
    assert layout.finish("relative_median", "speed", entries).to_pylist() == [0.75]
    without = SummaryLayout.of(SPEED, ["speed"])
    assert without.has("spread", "speed")
    assert not without.has("relative_median", "speed")


def test_plain_functions_of_single_values() -> None:
    bound = [BoundAggregate("product", "speed"), BoundAggregate("direction", "speed")]
    layout = SummaryLayout.of(SPEED, ["speed"], bound)
    entries = layout.summarise(speeds(2.0, None, 3.0, None, 0.5), at(0, 3, 4, 4, 5))
    assert layout.finish("product", "speed", entries).to_pylist() == [6.0, None, None, 0.5]
    whole = layout.merge(entries, at(0, 4, 4))
    assert layout.finish("product", "speed", whole).to_pylist() == [3.0, None]
    x, y = (sum(map(turn, (2.0, 3.0, 0.5))) for turn in (math.cos, math.sin))
    found = layout.finish("direction", "speed", whole).to_pylist()
    assert found == [pytest.approx(math.atan2(y, x)), None]
    assert layout.summarise(speeds(), at(0)).equals(layout.empty())


def test_a_plain_aggregate_needs_no_summary_of_its_attribute() -> None:
    layout = SummaryLayout.of(SPEED, [], [BoundAggregate("product", "speed")])
    assert layout.arrow.names == ["speed.product.value"]
    entries = layout.summarise(speeds(2.0, 4.0), at(0, 2))
    assert layout.finish("product", "speed", entries).to_pylist() == [8.0]
    assert not layout.has("max", "speed")


def test_a_manifest_holds_names_only() -> None:
    bound = BoundAggregate("max2", "speed")
    stored = json.loads(json.dumps(bound.to_json()))
    assert stored == ["max2", "speed"]
    assert BoundAggregate.from_json(stored) == bound
    assert bound.aggregate is MAX2


def test_a_name_that_is_not_registered_is_an_error_when_it_is_used() -> None:
    bound = BoundAggregate.from_json(["from_elsewhere", "speed"])
    with pytest.raises(StoreError, match="no aggregate 'from_elsewhere' is registered"):
        SummaryLayout.of(SPEED, ["speed"], [bound])
    with pytest.raises(StoreError, match="register_aggregate before the stream is opened"):
        registered("from_elsewhere")
    assert not SummaryLayout.of(SPEED, ["speed"]).has("from_elsewhere", "speed")


def renamed(aggregate: UserAggregate, name: str, needs: Sequence[str] = ()) -> UserAggregate:
    parts = (aggregate.state, aggregate.init, aggregate.merge, aggregate.eval)
    return UserAggregate(name, aggregate.kind, *parts, tuple(needs))


def test_a_name_belongs_to_one_aggregate() -> None:
    assert register_aggregate(PRODUCT) is PRODUCT
    with pytest.raises(StoreError, match="another aggregate is registered as 'product'"):
        register_aggregate(renamed(PRODUCT, "product"))
    for name in ("max", "first", "a.b", ""):
        with pytest.raises(StoreError, match="cannot be called"):
            register_aggregate(renamed(PRODUCT, name))
    with pytest.raises(StoreError, match="no aggregate 'later' is registered"):
        register_aggregate(renamed(PRODUCT, "sooner", ["later"]))


def test_only_one_of_many_threads_gets_a_name() -> None:
    outcomes: list[bool] = []

    def attempt() -> None:
        try:
            register_aggregate(renamed(PRODUCT, "contested"))
        except StoreError:
            outcomes.append(False)
        else:
            outcomes.append(True)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True]


def test_a_function_that_returns_the_wrong_columns_is_named() -> None:
    def state(_argument: DataType) -> dict[str, pa.DataType]:
        return {"value": pa.float64()}

    def init(values: pa.Array, _bounds: Int64s) -> list[pa.Array]:
        return [values, values]

    broken = UserAggregate("broken", "plain", state, init, PRODUCT.merge, PRODUCT.eval)
    register_aggregate(broken)
    layout = SummaryLayout.of(SPEED, ["speed"], [BoundAggregate("broken", "speed")])
    with pytest.raises(StoreError, match="'broken' returned 2 columns"):
        layout.summarise(speeds(1.0), at(0, 1))
