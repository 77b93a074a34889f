"""Frequent values with bounds: against the algorithm over lists, and against exact counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError, UnsupportedError
from eventide.operators.standing.groups.bounded import BoundedSketch, share_of
from eventide.operators.standing.groups.choice import group_operator
from eventide.operators.standing.groups.panes import AggregatePanes, PaneState
from eventide.plan.aggregates import FREQUENT
from eventide.plan.bind import bind_aggregate
from eventide.plan.expressions import Aggregate, Column, Named, NamedAggregate
from eventide.plan.standing.execution import EXECUTIONS
from eventide.plan.standing.nodes import GroupAggregate
from eventide.schema import FLOAT64, INT64, STRING
from tests.naive.standing.frequent import exact_counts, frequent
from tests.naive.standing.groups import Tuple, plain
from tests.operators.standing.group_drive import (
    EDGES,
    Source,
    answers,
    changes_of,
    run,
    same_changes,
)
from tests.operators.standing.test_group_panes import many

SLIDE = 10
ROW = {"k": STRING, "s": STRING, "x": FLOAT64}
SCHEMA = pa.schema([(name, kind.arrow) for name, kind in ROW.items()])
INSTANTS = range(-10, 140, 5)
WANTED: list[float | int] = [1, 2, 50, 0.1, 0.25, 0.5, 0.29]


def node_of(
    column: str, wanted: float, kept: int, functions: Sequence[str] = FREQUENT
) -> GroupAggregate:
    """Return a node with a count of rows beside the frequent values of a column."""
    wholes = [Aggregate("count", None)]
    wholes += [Aggregate(each, Column(column), parameter=wanted, kept=kept) for each in functions]
    named = [NamedAggregate(f"a{i}", bind_aggregate(each, ROW)) for i, each in enumerate(wholes)]
    return GroupAggregate(Source(ROW).plan(), (Named("k", Column("k", STRING)),), tuple(named))


VALUES = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "s": st.sampled_from([None, "", "é", "x", "y", "z"]),
        "x": st.sampled_from([None, 0.0, -0.0, math.nan, 1.5, -2.0, math.inf]),
    }
)


@st.composite
def panes(draw: st.DrawFn, pattern: str) -> list[Tuple]:
    tuples = []
    for number, at in enumerate(sorted(draw(st.lists(st.integers(0, 6), max_size=40)))):
        life = 3 if pattern == "weakest" else draw(st.integers(1, 4))
        ends = (at + life) * SLIDE
        tuples.append(Tuple(at * SLIDE, ends, None, number, draw(VALUES)))
    return tuples


def rows_at(
    tuples: Sequence[Tuple], instant: int, column: str, wanted: float, kept: int
) -> Counter[tuple[Any, ...]]:
    """Return the rows at an instant; those of exact counts are in between their bounds."""
    groups: dict[Any, list[Tuple]] = {}
    for each in tuples:
        if each.lives(instant):
            groups.setdefault(each.values["k"], []).append(each)
    exact = wanted if isinstance(wanted, int) else Fraction(str(wanted))
    return Counter(
        (key, len(members), found.value, found.lower, found.upper)
        for key, members in groups.items()
        for found in frequent(members, column, exact, kept)
    )


@pytest.mark.parametrize("pattern", ["weakest", "weak"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_frequent_values_are_those_of_the_algorithm(pattern: str, data: st.DataObject) -> None:
    tuples = data.draw(panes(pattern))
    column = data.draw(st.sampled_from(["s", "x"]))
    wanted, kept = data.draw(st.sampled_from(WANTED)), data.draw(st.integers(1, 4))
    cuts = data.draw(st.lists(st.integers(-5, 130), max_size=4))
    reload = data.draw(st.booleans())
    expected = [rows_at(tuples, instant, column, wanted, kept) for instant in INSTANTS]
    for execution in EXECUTIONS:
        node = node_of(column, wanted, kept)
        operator = group_operator(node, EDGES[pattern], execution, SLIDE)
        assert isinstance(operator, AggregatePanes)
        changes = changes_of(tuples, execution, SCHEMA)
        out = run(operator, changes, cuts, operator.output_schema, reload=reload)
        assert list(answers(out, INSTANTS, execution)) == expected
        whole = run(operator, changes, [], operator.output_schema, reload=False)
        assert same_changes(out, whole)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_bounds_hold_what_they_promise(data: st.DataObject) -> None:
    tuples = data.draw(panes("weak"))
    share = Fraction(data.draw(st.sampled_from(["0.1", "0.25", "0.4", "0.5"])))
    kept = data.draw(st.integers(1, 4))
    operator = AggregatePanes(node_of("s", float(share), kept), EDGES["weak"], SLIDE)
    out = run(
        operator, changes_of(tuples, "aware", SCHEMA), [], operator.output_schema, reload=False
    )
    for instant, rows in zip(INSTANTS, answers(out, INSTANTS, "aware"), strict=True):
        living = [each for each in tuples if each.lives(instant)]
        for key in {each.values["k"] for each in living}:
            truth = exact_counts([each for each in living if each.values["k"] == key], "s")
            total = sum(truth.values())
            found = {row[2]: row[3:] for row in rows if row[0] == key}
            for value, (lower, upper) in found.items():
                assert share * total < lower <= truth[plain(value)] <= upper
            for value, count in truth.items():
                # What is left out is less than total / (kept + 1).
                surely = count * (kept + 1) > total * (share * (kept + 1) + 1)
                assert value in found or not surely
            if len(truth) <= kept:
                assert all(lower == upper for lower, upper in found.values())
                assert found.keys() == {v for v, n in truth.items() if n > share * total}


def test_counts_are_exact_where_all_values_of_a_pane_are_kept() -> None:
    values = (np.random.default_rng(1).zipf(1.3, 20_000) % 3000).tolist()
    at = [place // 4000 for place in range(20_000)]
    row = {"x": INT64}
    wholes = [Aggregate(each, Column("x"), parameter=0.01, kept=3000) for each in FREQUENT]
    named = [NamedAggregate(f"a{i}", bind_aggregate(each, row)) for i, each in enumerate(wholes)]
    node = GroupAggregate(Source(row).plan(), (), tuple(named))
    operator = AggregatePanes(node, EDGES["weakest"], 1)
    _, out = operator.step(operator.initial_state(), (many(values, at),), 5)
    truth = Counter((value, n, n) for value, n in Counter(values).items() if n > 200)
    assert list(answers(out, [4], "aware")) == [truth]


@settings(max_examples=100, deadline=None)
@given(billionths=st.integers(1, 10**9 - 1), total=st.integers(0, 2**61))
def test_a_share_is_taken_exactly(billionths: int, total: int) -> None:
    share = float(Fraction(billionths, 10**9))
    (found,) = share_of(share, np.array([total])).tolist()
    assert found == billionths * total // 10**9


def test_what_does_not_fit_is_refused_with_a_hint() -> None:
    node = node_of("s", 0.1, 5)
    with pytest.raises(UnsupportedError, match="without SLIDE") as unsliding:
        group_operator(node, EDGES["weakest"], "aware", None)
    assert "add SLIDE" in str(unsliding.value)
    with pytest.raises(UnsupportedError, match="before its time") as strict:
        group_operator(node, EDGES["strict"], "aware", SLIDE)
    assert "windows of time" in str(strict.value)
    other = replace(node.aggregates[2].aggregate, parameter=0.2)
    mixed = replace(node, aggregates=(*node.aggregates, NamedAggregate("b", other)))
    with pytest.raises(UnsupportedError, match="beside") as two:
        group_operator(mixed, EDGES["weakest"], "aware", SLIDE)
    assert "two queries" in str(two.value)


@pytest.mark.parametrize(
    ("pane", "value", "count", "missed"),
    [
        ([0, 0], ["x", None], [0, 1], [0, 0]),
        ([0, 0], ["x", None], [1, 1], [1, 0]),
        ([0, 0], ["x", None], [1, 1], [0, -1]),
        ([0, 0], [None, None], [1, 1], [0, 0]),
        ([0], ["x"], [1], [0]),
    ],
)
def test_entries_that_no_values_can_make_are_refused(
    pane: list[int], value: list[str | None], count: list[int], missed: list[int]
) -> None:
    sketch = BoundedSketch(pa.string(), 0.1, 5)
    columns = {"pane": pane, "value": value, "count": count, "missed": missed}
    batch = pa.RecordBatch.from_pydict(columns, schema=sketch.schema)
    with pytest.raises(StateError):
        sketch.check(batch)


def test_memory_is_that_of_what_is_kept() -> None:
    node = replace(node_of("s", 0.01, 10), keys=())
    operator = AggregatePanes(node, EDGES["weakest"], 1)
    ever_new = [
        Tuple(n // 1000, n // 1000 + 5, None, n, {"k": "a", "s": str(n), "x": 1.0})
        for n in range(5000)
    ]
    changes = changes_of(ever_new, "aware", SCHEMA)
    state, out = operator.step(operator.initial_state(), (changes,), 5)
    assert len(out) == 0
    assert isinstance(state, PaneState)
    assert state.entries[-1].num_rows == 5 * 11
