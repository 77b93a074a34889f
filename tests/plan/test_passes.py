from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import PlanError
from eventide.instants import END_OF_TIME_US, TimeRange
from eventide.plan.bind import bind
from eventide.plan.check import check_plan
from eventide.plan.explain import explain
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    Named,
    NamedAggregate,
    RowsFrame,
)
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.passes import PASSES, optimise
from eventide.plan.passes.fold_constants import fold
from eventide.plan.passes.push_down_time_range import push_down_time_range
from eventide.plan.times import format_duration, format_timestamp, parse_duration, parse_timestamp
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import SlidingAggregate, Window, WindowAggregate
from eventide.schema import BOOL, FLOAT64, INT64, TIMESTAMP, Schema
from tests.naive.expressions import value_of

CATALOG = {"r": Schema.of({"n": "int64", "x": "float64", "p": "bool"})}
SCAN = bind(Scan("r"), CATALOG)
TS = Column("ts", TIMESTAMP)
N = Column("n", INT64)
P = Column("p", BOOL)


def at(us: int) -> Literal:
    return Literal(us, TIMESTAMP)


COMPARISONS = st.sampled_from(["<", "<=", ">", ">=", "="])
BOUNDS = st.builds(lambda name, us: Call(name, (TS, at(us)), BOOL), COMPARISONS, st.integers(0, 9))
MIRRORED = st.builds(
    lambda name, us: Call(name, (at(us), TS), BOOL), COMPARISONS, st.integers(0, 9)
)
PARTS = BOUNDS | MIRRORED | st.just(P)


@settings(deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=4), st.integers(-1, 10), st.sampled_from([True, None]))
def test_time_bounds_keep_exactly_the_same_events(
    parts: list[Expression], ts: int, p: bool | None
) -> None:
    condition = parts[0]
    for part in parts[1:]:
        condition = Call("and", (condition, part), BOOL)
    pushed = push_down_time_range(Filter(SCAN, condition))
    row = {"ts": ts, "p": p}
    scan = pushed.source if isinstance(pushed, Filter) else pushed
    assert isinstance(scan, Scan)
    kept = scan.time_range.start_us <= ts < scan.time_range.end_us
    if isinstance(pushed, Filter):
        kept = kept and value_of(pushed.condition, row) is True
    assert kept == (value_of(condition, row) is True)


def test_a_bound_at_the_end_of_time_stays_a_filter() -> None:
    condition = Call("<=", (TS, at(END_OF_TIME_US)), BOOL)
    assert push_down_time_range(Filter(SCAN, condition)) == Filter(SCAN, condition)


def test_filters_merge_with_the_inner_one_first() -> None:
    inner = Call(">", (N, Literal(0, INT64)), BOOL)
    plan = Project(Filter(Filter(SCAN, inner), P), (Named("n", N),))
    assert explain(optimise(plan)) == "Project n\n  Filter n > 0 AND p\n    Scan r (ts, n, p)"


def test_bounds_are_found_through_stacked_filters() -> None:
    lower, upper = Call(">=", (TS, at(5)), BOOL), Call("<", (TS, at(9)), BOOL)
    plan = optimise(Project(Filter(Filter(SCAN, lower), upper), (Named("n", N),)))
    assert isinstance(plan, Project)
    assert plan.source == Scan("r", (("ts", TIMESTAMP), ("n", INT64)), TimeRange(5, 9))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Call("and", (Literal(True, BOOL), P), BOOL), P),
        (Call("and", (P, Literal(True, BOOL)), BOOL), P),
        (Call("or", (Literal(True, BOOL), P), BOOL), Literal(True, BOOL)),
        (Call("and", (Literal(False, BOOL), P), BOOL), Literal(False, BOOL)),
        (Call("not", (Literal(False, BOOL),), BOOL), Literal(True, BOOL)),
        (Call("<", (at(1), at(2)), BOOL), Literal(True, BOOL)),
        (Call("=", (at(1), Literal(None, TIMESTAMP)), BOOL), Literal(None, BOOL)),
    ],
)
def test_constants_fold(before: Expression, after: Expression) -> None:
    assert fold(before) == after


def test_what_overflows_is_left_to_the_engine() -> None:
    too_much = Call("+", (Literal(2**63 - 1, INT64), Literal(1, INT64)), INT64)
    assert fold(too_much) == too_much


@pytest.mark.parametrize("function", ["sum", "last"])
def test_seq_is_not_read_for_order(function: str) -> None:
    """Scans hand rows over in order; only a query that names `_seq` reads it."""
    aggregates = (NamedAggregate("a", Aggregate(function, N, INT64)),)
    plan = optimise(WindowAggregate(SCAN, (), Window(10, 10), aggregates))
    assert isinstance(plan, WindowAggregate)
    assert tuple(plan.source.row) == ("ts", "n")


WRONG: list[tuple[Plan, str]] = [
    (Filter(SCAN, Column("y", BOOL)), "no column 'y'"),
    (Filter(SCAN, Column("n", BOOL)), "n is int64, not bool"),
    (Filter(SCAN, N), "n is no condition"),
    (Project(SCAN, (Named("a", N), Named("a", P))), "the name 'a' appears 2 times"),
    (Project(SCAN, (Named("a", Aggregate("sum", N, INT64)),)), "sum(n) stands where"),
    (Project(SCAN, (Named("a", Call("sqrt", (N,))),)), "sqrt(n) has no type"),
    (
        SlidingAggregate(Project(SCAN, (Named("n", N),)), (), RowsFrame(1), ()),
        "SlidingAggregate needs ts",
    ),
    (
        WindowAggregate(SCAN, (Named("window_start", N),), Window(1, 1), ()),
        "the name 'window_start' appears 2 times",
    ),
]


@pytest.mark.parametrize(("plan", "message"), WRONG, ids=lambda each: str(each)[:40])
def test_malformed_plans_are_refused(plan: Plan, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        check_plan(plan, after="a test")
    assert caught.value.message.startswith(f"after a test: {message}")


def test_a_broken_pass_is_named() -> None:
    def forget_the_source(_: Plan) -> Plan:
        return Filter(SCAN, Column("gone", BOOL))

    with pytest.raises(PlanError, match="after forget_the_source: no column 'gone'"):
        optimise(SCAN, (forget_the_source,))


def test_passes_settle_at_once() -> None:
    condition = Call("and", (Call(">", (TS, at(3)), BOOL), P), BOOL)
    once = optimise(Project(Filter(SCAN, condition), (Named("x", Column("x", FLOAT64)),)))
    assert optimise(once, PASSES) == once


@given(st.integers(0, 10**15))
def test_durations_are_read_as_they_are_printed(us: int) -> None:
    assert parse_duration(format_duration(us)) == us


@given(st.integers(-(10**15), 10**15))
def test_times_are_read_as_they_are_printed(us: int) -> None:
    assert parse_timestamp(format_timestamp(us)) == us
