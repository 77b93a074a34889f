"""Costs of standing plans: what they grow with, and which execution and structure they favour."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from eventide.plan.expressions import Literal
from eventide.plan.nodes import Filter
from eventide.plan.standing.cost import cost_of, costs_of, locate_cost
from eventide.plan.standing.execution import EXECUTIONS
from eventide.plan.standing.flow import Flow, Flows
from eventide.plan.standing.nodes import Distinct, Standing
from eventide.plan.standing.statistics import (
    EQUAL,
    SOME,
    ColumnValues,
    LeafStatistics,
    Statistics,
    share_of,
)
from eventide.plan.standing.windows import RangeWindow
from eventide.plan.tree import Plan
from eventide.schema import BOOL
from tests.plan.standing.plans import S, call, existence, join, latest, plans, window

BUSY = LeafStatistics(1000.0, {"k": ColumnValues(100.0)})


def flow_of(plan: Plan, statistics: Statistics) -> Flow:
    return Flows(statistics).of(plan)


@settings(deadline=None, max_examples=60)
@given(plans())
def test_every_plan_has_a_cost_in_each_execution(plan: Plan) -> None:
    assert all(0 < cost < float("inf") for cost in costs_of(Standing(plan)).values())


def test_flows_of_windows_and_joins() -> None:
    statistics = {
        "a": LeafStatistics(10.0, {"k": ColumnValues(50.0)}),
        "b": LeafStatistics(2.0, {"k": ColumnValues(20.0)}),
    }
    assert flow_of(window("a"), statistics).living == pytest.approx(600)
    assert flow_of(window("a"), statistics).lifetime == pytest.approx(60)
    both = flow_of(join(window("a"), window("b")), statistics)
    assert both.living == pytest.approx(600 * 120 / 50)
    # Each arrival of `a` meets 120 / 50 of `b`, each of `b` 600 / 50 of `a`.
    assert both.rate == pytest.approx(10 * 2.4 + 2 * 12)
    one = flow_of(Filter(window("a"), call("=", "a.k", 1)), statistics)
    assert one.rate == pytest.approx(10 / 50)
    assert flow_of(latest("a"), statistics).living == 50
    assert flow_of(latest("a"), statistics).premature == 1


def test_most_is_taken_back_where_the_other_side_has_now_none_now_one() -> None:
    shares = [
        flow_of(existence(window("a"), window("b")), {"b": LeafStatistics(rate)}).premature
        for rate in (1.0, 10.0, 100.0, 1000.0)
    ]
    rising, most, falling = shares[:2], shares[2], shares[3]
    assert rising == sorted(rising)
    assert most == max(shares)
    assert falling < most
    assert 0 < shares[0] < shares[-1] < 1


def test_shares_of_conditions() -> None:
    values = {"a.k": ColumnValues(4.0), "b.k": ColumnValues(8.0)}
    one = call("=", "a.k", 1)
    assert share_of(one, values, {}) == 0.25
    assert share_of(call("<>", "a.k", 1), values, {}) == 0.75
    assert share_of(call("and", one, one), values, {}) == 0.0625
    assert share_of(call("or", one, one), values, {}) == 0.4375
    assert share_of(call("=", "a.k", "b.k"), values, {}) == 0.125
    assert share_of(Literal(True, BOOL), values, {}) == 1.0


def test_what_was_measured_of_a_condition_goes_before_all_guesses() -> None:
    one, other = call("=", "a.k", 1), call("<", "a.n", 3)
    assert share_of(one, {}, {}) == EQUAL
    assert share_of(other, {}, {}) == SOME
    assert share_of(call("and", one, other), {}, {one: 0.5}) == pytest.approx(0.5 * SOME)
    assert share_of(call("and", one, other), {}, {call("and", one, other): 0.01, one: 0.5}) == 0.01


def test_conditions_leave_fewer_values() -> None:
    statistics = {
        "a": LeafStatistics(10.0, {"k": ColumnValues(50.0, even=20.0), "n": ColumnValues(10.0)})
    }
    whole = flow_of(window("a"), statistics)
    few = flow_of(Filter(window("a"), call("=", "a.n", 1)), statistics)
    assert few.values["a.n"].distinct == 1.0
    # 60 tuples of 50 values: some of these have none left, but two have the same as often.
    assert 30 < few.values["a.k"].distinct < 40
    assert few.values["a.k"].chances == whole.values["a.k"].chances == 20.0


def test_frequent_values_meet_more_often() -> None:
    even = {"a": LeafStatistics(10.0, {"k": ColumnValues(50.0)})}
    skewed = {"a": LeafStatistics(10.0, {"k": ColumnValues(50.0, even=20.0)})}
    both = join(window("a"), window("a"))
    assert flow_of(both, skewed).living == pytest.approx(2.5 * flow_of(both, even).living)


def test_a_window_that_is_mostly_empty_has_a_value_all_the_same() -> None:
    instant = window("a", RangeWindow(1))
    rare = {"a": LeafStatistics(0.01)}
    assert flow_of(instant, rare).values["a.k"].distinct == 1.0
    plan = Distinct(Filter(instant, call("<>", "a.k", 1)))
    assert all(cost >= 0 for cost in costs_of(Standing(plan), rare).values())


def test_aware_is_cheapest_where_nothing_is_taken_back() -> None:
    for plan in (join(window("a"), window("b")), Distinct(window("a"))):
        costs = costs_of(Standing(plan), {"a": BUSY, "b": BUSY})
        assert costs["aware"] < costs["negative"]
        assert costs["aware"] < costs["direct"]


def test_direct_suffers_from_long_windows() -> None:
    short, long = (Standing(Distinct(window("a", RangeWindow(size * S)))) for size in (1, 1000))
    growth = {each: cost_of(long, {}, each) / cost_of(short, {}, each) for each in EXECUTIONS}
    assert growth["direct"] > 100
    assert growth["aware"] < 2


def test_finding_what_goes() -> None:
    assert locate_cost("queue", 1e6, 0.0) < locate_cost("id map", 1e6, 0.0)
    assert locate_cost("id map", 1e6, 1.0) == 1.0
    assert locate_cost("calendar queue", 1e6, 0.5) > 1e5
    assert locate_cost("calendar queue with id map", 1e6, 0.5) < 5.0
