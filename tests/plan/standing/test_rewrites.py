"""Rewrites of standing plans give the same bags, and go where they should."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from eventide.errors import PlanError
from eventide.lang.sql import plan_sql
from eventide.plan.check import check_plan
from eventide.plan.explain import explain
from eventide.plan.expressions import Call, Cast, Column, Literal, OrderKey
from eventide.plan.nodes import Filter, Project
from eventide.plan.passes.move_negation import moves_of_negation
from eventide.plan.passes.narrow_rows import narrow_rows
from eventide.plan.passes.push_selections import push_selections, takes_equal_for_one
from eventide.plan.standing.choose import choose_plan, steady_plan, variants_of
from eventide.plan.standing.joins import Existence, WindowJoin
from eventide.plan.standing.nodes import Difference, Distinct, Standing, Top
from eventide.plan.standing.statistics import ColumnValues, LeafStatistics
from eventide.plan.standing.text import described_edges
from eventide.plan.tree import Plan
from eventide.schema import BOOL, FLOAT64, INT64, Schema
from tests.plan.standing.plans import (
    BAGS,
    Bags,
    as_of,
    bag_of,
    call,
    column,
    connected,
    counted,
    everything,
    existence,
    join,
    latest,
    named,
    outer_join,
    plans,
    window,
)


@pytest.fixture(scope="module", autouse=True)
def closed_in_the_end() -> Iterator[None]:
    yield
    connected().close()
    connected.cache_clear()


def shape(plan: Plan) -> str:
    """The plan as text, with windows by name only."""
    lines = explain(plan).splitlines()
    kept = [line for line in lines if not line.lstrip().startswith("Scan")]
    return "\n".join(
        line.split(" AS ")[0].replace("stream_", "") if "Windowed" in line else line
        for line in kept
    )


@settings(deadline=None, max_examples=80)
@given(plans(), BAGS)
def test_selections_and_projections_below_give_the_same_bag(plan: Plan, bags: Bags) -> None:
    expected = bag_of(plan, bags)
    pushed = check_plan(push_selections(plan), after="push_selections")
    assert list(pushed.row.items()) == list(plan.row.items())
    assert bag_of(pushed, bags) == expected
    narrow = check_plan(narrow_rows(pushed), after="narrow_rows")
    assert list(narrow.row.items()) == list(plan.row.items())
    assert bag_of(narrow, bags) == expected
    assert push_selections(pushed) == pushed


@settings(deadline=None, max_examples=80)
@given(plans(), BAGS)
def test_all_alternatives_give_the_same_bag(plan: Plan, bags: Bags) -> None:
    expected = bag_of(plan, bags)
    chosen = choose_plan(Standing(plan))
    for each in chosen.alternatives[:8]:
        check_plan(each.plan, after=each.name)
        assert list(each.plan.row.items()) == list(plan.row.items())
        assert bag_of(each.plan, bags) == expected
    assert bag_of(chosen.plan, bags) == expected


def moved(plan: Plan) -> set[str]:
    return {shape(each) for _, each in moves_of_negation(plan)}


@settings(deadline=None, max_examples=30)
@given(BAGS)
def test_negation_above_and_below_a_join_give_the_same_bag(bags: Bags) -> None:
    for negated in (True, False):
        down = join(existence(window("a"), window("b"), negated=negated, on="n"), window("c"))
        up = existence(join(window("a"), window("c")), window("b"), negated=negated, on="n")
        assert moved(down) == {shape(up)}
        assert moved(up) == {shape(down)}
        assert bag_of(up, bags) == bag_of(down, bags)
    difference = join(
        Difference(named(window("a"), "x"), named(window("b"), "x")), window("c"), on="k"
    )
    ((name, above),) = moves_of_negation(difference)
    assert name == "EXCEPT above the join"
    assert bag_of(above, bags) == bag_of(difference, bags)


def test_a_negation_moves_from_under_other_names() -> None:
    renamed = named(existence(window("a"), window("b")), "x")
    plan = join(renamed, window("c"))
    above = existence(join(named(window("a"), "x"), window("c")), window("b"))
    assert moved(plan) == {shape(above)}
    # Where a column is dropped, rows of EXCEPT would become the same.
    both = Difference(named(window("a"), "x"), named(window("b"), "x"))
    fewer = Project(both, named(both, "y").items[:1])
    assert moved(join(fewer, window("c"))) == set()


def test_a_negation_stays_below_a_condition_that_can_fail() -> None:
    total = Call("+", (column("a.n"), column("c.n")), INT64)
    condition = Call(">", (total, Literal(0, INT64)), BOOL)
    assert (
        moved(join(existence(window("a"), window("b")), window("c"), condition=condition)) == set()
    )


def test_no_negation_crosses_a_join_as_of_a_time() -> None:
    assert moved(existence(as_of(window("a"), everything("b")), window("c"))) == set()


def test_conditions_end_above_the_windows_whose_columns_they_read() -> None:
    plan = Filter(
        join(window("a"), window("b"), condition=call("<", "a.n", "b.n")),
        call(
            "and", call("=", "a.n", 1), call("and", call(">", "b.n", 2), call("<>", "a.k", "b.n"))
        ),
    )
    assert shape(push_selections(plan)) == (
        "Filter a.k <> b.n\n"
        "  WindowJoin on a.k = b.k where a.n < b.n\n"
        "    Filter a.n = 1\n"
        "      Windowed a\n"
        "    Filter b.n > 2\n"
        "      Windowed b"
    )


def test_conditions_of_one_source_leave_the_condition_of_a_join() -> None:
    condition = call("and", call("=", "a.n", 1), call("<", "a.n", "b.n"))
    assert shape(push_selections(join(window("a"), window("b"), condition=condition))) == (
        "WindowJoin on a.k = b.k where a.n < b.n\n  Filter a.n = 1\n    Windowed a\n  Windowed b"
    )


def below(plan: Plan) -> bool:
    """Whether a condition on it moves below a node."""
    return not isinstance(push_selections(plan), Filter)


def test_where_conditions_pass() -> None:
    one = call("=", "a.k", 1)
    assert below(Filter(Distinct(window("a")), one))
    assert below(Filter(existence(window("a"), window("b")), one))
    assert below(Filter(as_of(window("a"), everything("b")), one))
    assert not below(Filter(as_of(window("a"), everything("b")), call("=", "b.k", 1)))
    other = call("=", "b.k", 1)
    for keeps in ((True, False), (False, True), (True, True)):
        outer = outer_join(window("a"), window("b"), keeps)
        assert below(Filter(outer, one)) == (keeps == (True, False))
        assert below(Filter(outer, other)) == (keeps == (False, True))
    assert below(Filter(counted(window("a"), "a.k"), call("=", "g.k", 1)))
    assert not below(Filter(counted(window("a"), "a.k"), call("=", "g.n", 1)))
    assert not below(Filter(Top(window("a"), (OrderKey(column("a.n")),), 3), one))
    # A window of rows would hold other rows, one of time remembers nothing.
    assert not below(Filter(latest("a"), one))
    assert not below(Filter(window("a"), one))


def test_what_can_fail_stays() -> None:
    text = Cast(column("a.k"), FLOAT64)
    fails = Call(">", (Call("+", (column("a.k"), column("a.n")), INT64), Literal(1, INT64)), BOOL)
    assert not below(Filter(join(window("a"), window("b")), fails))
    assert below(Filter(join(window("a"), window("b")), Call("=", (text, text), BOOL)))


def test_a_condition_that_tells_zeros_apart_stays_above_distinct() -> None:
    x = Column("a.x", FLOAT64)
    inverse = Call("/", (Literal(1.0, FLOAT64), x), FLOAT64)
    assert takes_equal_for_one(Call(">", (x, Literal(0.0, FLOAT64)), BOOL))
    assert not takes_equal_for_one(Call(">", (inverse, Literal(0.0, FLOAT64)), BOOL))


def test_columns_of_conditions_are_dropped_before_a_join() -> None:
    plan = Project(
        join(Filter(window("a"), call("=", "a.n", 1)), window("b")),
        named(window("b"), "x").items,
    )
    narrow = shape(narrow_rows(plan))
    assert "Project a.k\n      Filter a.n = 1\n        Windowed a" in narrow
    assert "Project b.k, b.n\n      Windowed b" in narrow


FEW = LeafStatistics(10.0, {"k": ColumnValues(10_000.0)})
MANY = LeafStatistics(1000.0, {"k": ColumnValues(10_000.0)})


def test_a_negation_goes_where_it_costs_least() -> None:
    up = Standing(existence(join(window("a"), window("c")), window("b")))
    down = Standing(join(existence(window("a"), window("b")), window("c")))
    # The join passes few: not worth keeping all of `a` beside all of `b` before it.
    rare = {"a": MANY, "b": FEW, "c": LeafStatistics(0.01, {"k": ColumnValues(10_000.0)})}
    # Each of `a` has many partners, and `b` leaves next to none of them.
    dense = {
        "a": LeafStatistics(100.0, {"k": ColumnValues(100.0)}),
        "b": LeafStatistics(100.0, {"k": ColumnValues(100.0)}),
        "c": LeafStatistics(1000.0, {"k": ColumnValues(100.0)}),
    }
    for plan in (up, down):
        assert isinstance(choose_plan(plan, rare).cheapest.plan.source, Existence)
        assert isinstance(choose_plan(plan, dense).cheapest.plan.source, WindowJoin)
        assert len(choose_plan(plan, rare).alternatives) == 2


def test_plans_that_give_an_as_of_join_what_is_taken_back_are_not_chosen() -> None:
    with pytest.raises(PlanError, match="take back"):
        choose_plan(Standing(as_of(existence(window("a"), window("b")), everything("c"))))
    with pytest.raises(PlanError, match="take back"):
        choose_plan(Standing(as_of(latest("a"), everything("c"))))
    fine = choose_plan(Standing(as_of(window("a"), everything("c"))))
    assert [each.name for each in fine.alternatives] == ["as written"]


def test_a_standing_query_inside_other_queries_is_chosen_as_if_it_stood_alone() -> None:
    schema = Schema.of({"k": "string", "v": "int64"})
    joined = "SELECT x.k FROM a [RANGE 5 s] x JOIN b [RANGE 5 s] y ON x.k = y.k WHERE x.v > 3"
    text = (
        f"SELECT COUNT(*) AS n FROM (SELECT * FROM ISTREAM ({joined}))"
        " GROUP BY TUMBLE(ts, INTERVAL '5' SECOND)"
    )
    plan = plan_sql(text, {"a": schema, "b": schema})
    inside = plan.standing
    assert inside is not None
    chosen = steady_plan(plan)
    assert chosen.standing == steady_plan(inside)
    assert chosen.standing != inside, "a plan without a choice shows nothing"
    assert chosen in variants_of(plan)


def test_explain_says_how_tuples_leave_and_what_it_was_chosen_from() -> None:
    plan = Standing(
        Filter(join(existence(window("a"), window("b")), window("c")), call("<>", "a.n", 1))
    )
    chosen = choose_plan(
        plan, {"a": MANY, "b": FEW, "c": LeafStatistics(0.01, {"k": ColumnValues(10_000.0)})}
    )
    lines = described_edges(chosen.plan, chosen)
    text = "\n".join(lines)
    assert "WindowJoin on a.k = c.k: weak, lives up to 1 min; state: queue by key (a)" in text
    assert "queue by key (c)" in text
    assert "Windowed stream_a AS a, the last 1 min (ts, k, n): weakest, lives 1 min" in text
    assert lines[0] == "Standing: strict, lives up to 1 min"
    assert any(line.startswith("cost a second by execution: aware ") for line in lines)
    assert sum(line.endswith(", chosen") for line in lines) == 1
    assert [line.split(":")[0] for line in lines if line.startswith("plan ")] == [
        "plan as written",
        "plan selections below",
        "plan existence above the join",
    ]
