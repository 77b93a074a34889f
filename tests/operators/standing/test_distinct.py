"""DISTINCT has, at every instant, one of each living value: in all its forms."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import PlanError
from eventide.operators.standing.sets.distinct import Form, distinct_operator
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import Execution
from tests.naive.standing.sets import NEVER, Lived, distinct
from tests.operators.standing.set_drive import (
    ENDS,
    SCHEMA,
    answers,
    changes_of,
    cuts,
    edge_of,
    executions,
    expected,
    lives,
    run,
    same_changes,
)


@settings(deadline=None, max_examples=120)
@given(lives(), st.sampled_from(["counted", "stored"]), executions, cuts)
def test_distinct_is_right_at_every_instant(
    tuples: list[Lived], form: Form, execution: Execution, steps: list[tuple[int, bool]]
) -> None:
    operator = distinct_operator(SCHEMA, form, execution, edge_of(tuples))
    inputs = [changes_of(tuples, execution)]
    _, out = run(operator, inputs, steps)
    assert answers(out, execution) == expected((tuples,), distinct)
    assert same_changes(out, run(operator, inputs, [])[1])
    if form == "counted":
        # What goes on is not born again: births are as many as times at which a value begins.
        bags = [distinct(bag) for bag in expected((tuples,), distinct)]
        begun = sum(len(after - before) for before, after in pairwise(bags))
        assert (out.sign > 0).sum() == begun + len(bags[0])
        assert (out.exp == NEVER).all()


@settings(deadline=None, max_examples=120)
@given(lives(strict=False), cuts)
def test_successors_are_right_and_take_nothing_back(
    tuples: list[Lived], steps: list[tuple[int, bool]]
) -> None:
    operator = distinct_operator(SCHEMA, "successors", "aware", edge_of(tuples))
    inputs = [changes_of(tuples, "aware")]
    state, out = run(operator, inputs, steps)
    bags = expected((tuples,), distinct)
    assert answers(out, "aware") == bags
    assert same_changes(out, run(operator, inputs, [])[1])
    assert (out.sign > 0).all()
    assert operator.size(state).tuples <= 2 * len(bags[ENDS - 1])
    assert set(zip(out.id.tolist(), out.exp.tolist(), strict=True)) <= {
        (number + 1, each.exp) for number, each in enumerate(tuples)
    }


def test_the_successor_is_the_one_that_lives_longest() -> None:
    #  [0 ─ 3)
    #    [1 ───────────── 9)      follows, though another came later
    #       [2 ───── 6)
    tuples = [Lived((1, "a"), 0, 3), Lived((1, "a"), 1, 9), Lived((1, "a"), 2, 6)]
    operator = distinct_operator(SCHEMA, "successors", "aware", edge_of(tuples))
    _, out = run(operator, [changes_of(tuples, "aware")], [])
    assert list(zip(out.at.tolist(), out.exp.tolist(), strict=True)) == [(0, 3), (3, 9)]


@pytest.mark.parametrize("form", ["successors", "counted", "stored"])
def test_many_values_more_than_once(form: Form) -> None:
    tuples = [Lived((at % 300, None), at // 300, at // 300 + 2) for at in range(3000)]
    operator = distinct_operator(SCHEMA, form, "aware", edge_of(tuples))
    state, out = run(operator, [changes_of(tuples, "aware")], [(at, at == 5) for at in range(12)])
    assert answers(out, "aware") == expected((tuples,), distinct)
    assert operator.size(state).tuples == 0
    assert state.log.size <= 1024


def test_zeros_and_nans_are_alike() -> None:
    schema = pa.schema([("x", pa.float64())])
    values = [0.0, -0.0, float("nan"), -float("nan"), None, None]
    tuples = [Lived((value,), 0, 5) for value in values]
    for form in ("successors", "counted", "stored"):
        operator = distinct_operator(schema, form, "aware", Edge(UpdatePattern.WEAK, 5))
        _, out = run(operator, [changes_of(tuples, "aware", schema=schema)], [])
        assert (out.sign > 0).sum() == 3


def test_successors_need_tuples_that_stay_their_time() -> None:
    with pytest.raises(PlanError, match="before their time"):
        distinct_operator(SCHEMA, "successors", "aware", Edge(UpdatePattern.STRICT, None))
    with pytest.raises(PlanError, match="negative"):
        distinct_operator(SCHEMA, "successors", "negative")
