"""The order of joins: costs of the published examples, and that the best orders are the best."""

from __future__ import annotations

from itertools import permutations
from statistics import mean

import pytest
from benchmarks.standing.global_orders import best_order, by_selectivity, cost_of_order, pair_size
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.plan.standing.join_order import (
    JoinInput,
    best_orders,
    cost_from,
    cost_of_orders,
)
from eventide.plan.standing.join_statistics import (
    Look,
    Observed,
    after_look,
    inputs_of,
    is_worth_a_look,
    worthwhile_orders,
)

Inputs = list[JoinInput]
# Golab, tables 5.3, 5.5 (whose costs need the rate 10 of stream 1, not the printed 100) and 5.6.
FIRST = [(10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5)]
SECOND = [(10, 100, 40), (1, 100, 100), (1, 100, 8), (1, 100, 5)]
THIRD = [(11, 100, 200), (10, 100, 100), (1, 100, 65), (1, 100, 20)]


def read(table: list[tuple[int, int, int]]) -> Inputs:
    return [JoinInput(*each) for each in table]


def order(text: str) -> tuple[int, ...]:
    return tuple(int(each) - 1 for each in text)


@pytest.mark.parametrize(
    ("table", "text", "cost"),
    [
        (FIRST, "1234", 16000.0),
        (SECOND, "2134", 16200.0),
        (SECOND, "1234", 21000.0),
        (SECOND, "2341", 42600.0),
        (THIRD, "3142", 47976.9),
        (THIRD, "3412", 49542.3),
        (THIRD, "3124", 51953.8),
        (THIRD, "1234", 68200.0),
        (THIRD, "2134", 79000.0),
    ],
)
def test_published_costs(table: list[tuple[int, int, int]], text: str, cost: float) -> None:
    assert round(cost_of_order(order(text), read(table)), 1) == cost


@pytest.mark.parametrize(
    ("table", "best", "worst", "initial"),
    [
        (FIRST, "1234", 86850.0, "1234"),
        (SECOND, "2134", 135150.0, "2341"),
        (THIRD, "3142", 79000.0, "3412"),
    ],
)
def test_published_orders(
    table: list[tuple[int, int, int]], best: str, worst: float, initial: str
) -> None:
    inputs = read(table)
    assert best_order(inputs) == order(best)
    assert by_selectivity(inputs) == order(initial)
    costs = [cost_of_order(each, inputs) for each in permutations(range(4))]
    assert max(costs) == pytest.approx(worst)
    assert min(costs) == pytest.approx(cost_of_order(order(best), inputs))


def test_published_averages_and_sizes() -> None:
    third = read(THIRD)
    costs = [cost_of_order(each, third) for each in permutations(range(4))]
    assert round(mean(costs), 1) == 63361.5
    one, two, three, four = read(FIRST)
    pairs = [(one, two), (one, three), (one, four), (two, three), (two, four), (three, four)]
    assert [pair_size(*pair) for pair in pairs] == [200, 400, 600, 400, 600, 1500]
    origins = [cost_from(i, [n for n in range(4) if n != i], read(FIRST)) for i in range(4)]
    assert origins == [3800, 3800, 2400, 6000]


INPUT = st.builds(
    JoinInput,
    st.floats(0.1, 100),
    st.floats(1, 100),
    st.floats(1, 500),
    st.none() | st.floats(1, 100),
)


@settings(deadline=None)
@given(st.lists(INPUT, min_size=2, max_size=5))
def test_each_origin_has_its_cheapest_order(inputs: Inputs) -> None:
    orders = best_orders(inputs)
    for origin, found in enumerate(orders):
        others = [number for number in range(len(inputs)) if number != origin]
        least = min(cost_from(origin, each, inputs) for each in permutations(others))
        assert cost_from(origin, found, inputs) == pytest.approx(least)
    together = cost_of_order(best_order(inputs), inputs)
    assert cost_of_orders(orders, inputs) <= together * (1 + 1e-9)


@settings(deadline=None, max_examples=30)
@given(st.lists(INPUT, min_size=8, max_size=10))
def test_of_many_windows_orders_are_found_without_trying_all(inputs: Inputs) -> None:
    everyone = set(range(len(inputs)))
    assert set(best_order(inputs)) == everyone
    assert cost_of_order(best_order(inputs), inputs) <= cost_of_order(
        by_selectivity(inputs), inputs
    )
    for origin, found in enumerate(best_orders(inputs)):
        assert sorted(found) == sorted(everyone - {origin})


def test_buckets_change_what_is_looked_at_and_not_what_is_found() -> None:
    whole, hashed = JoinInput(1, 100, 10), JoinInput(1, 100, 10, buckets=5)
    origin = JoinInput(1, 100, 10)
    # 100 compared, 10 found, for each 100 compared again; of a fifth of the buckets, a fifth.
    assert cost_from(0, (1, 2), [origin, whole, whole]) == 100 + 10 * 100
    assert cost_from(0, (1, 2), [origin, hashed, hashed]) == 20 + 10 * 20


def look(arrived: int, distinct: int, **probed: int) -> Look:
    return Look(arrived, living=arrived, distinct=distinct, **probed)


def test_orders_follow_what_is_seen() -> None:
    alike = [JoinInput(10.0, 10.0, 10.0)] * 3
    observed = Observed.initial(alike)
    # The third window has by far the most different keys: it is looked into first.
    for _ in range(8):
        observed = after_look(
            observed, [look(1000, 10), look(1000, 10), look(1000, 900)], elapsed_us=10_000_000
        )
    assert observed.orders[0] == (2, 1)
    assert observed.orders[1] == (2, 0)
    assert observed.changes == 1
    assert observed.looks == 8
    assert inputs_of(observed.windows)[0].rate == pytest.approx(100.0)
    assert inputs_of(observed.windows)[0].lifetime == pytest.approx(10.0)
    # And when it is the second, that one.
    for _ in range(12):
        observed = after_look(
            observed, [look(1000, 10), look(1000, 900), look(1000, 10)], elapsed_us=10_000_000
        )
    assert observed.orders[0] == (1, 2)


def test_what_looks_find_tells_more_than_counts_of_keys() -> None:
    observed = after_look(
        Observed.initial([JoinInput(1.0, 1.0, 1.0)] * 2),
        [look(1000, 500), look(1000, 500, probes=1000, matches=100_000)],
        elapsed_us=1_000_000,
    )
    first, second = inputs_of(observed.windows)
    assert first.distinct == 500.0
    assert second.distinct == 10.0


def test_a_look_without_time_or_tuples_is_no_trouble() -> None:
    observed = Observed.initial([JoinInput(1.0, 1.0, 1.0)] * 3)
    for _ in range(3):
        observed = after_look(observed, [look(0, 0)] * 3, elapsed_us=0)
        observed = after_look(observed, [look(0, 0, probes=100)] * 3, elapsed_us=5)
    assert [sorted(each) for each in observed.orders] == [[1, 2], [0, 2], [0, 1]]


def test_orders_change_only_if_that_is_worth_it() -> None:
    inputs = [JoinInput(1, 100, 10), JoinInput(1, 100, 100), JoinInput(1, 100, 95)]
    present = ((2, 1), (2, 0), (1, 0))
    best = best_orders(inputs)
    assert cost_of_orders(best, inputs) < cost_of_orders(present, inputs)
    assert worthwhile_orders(present, inputs) == present
    assert worthwhile_orders(present, inputs, worth=1.0) == best
    assert is_worth_a_look(1024)
    assert not is_worth_a_look(1023)
