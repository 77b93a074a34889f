"""EXCEPT ALL is right at every instant: over the tuples that live then."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.operators.standing.sets.difference import DifferenceOperator
from eventide.plan.standing.execution import Execution
from tests.naive.standing.sets import Lived, difference
from tests.operators.standing.set_drive import (
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


def operator_for(
    left: list[Lived], right: list[Lived], execution: Execution = "aware"
) -> DifferenceOperator:
    return DifferenceOperator(SCHEMA, execution, edge_of(left), edge_of(right))


@settings(deadline=None, max_examples=120)
@given(lives(), lives(), executions, cuts)
def test_difference_is_right_at_every_instant(
    left: list[Lived], right: list[Lived], execution: Execution, steps: list[tuple[int, bool]]
) -> None:
    operator = operator_for(left, right, execution)
    inputs = [changes_of(left, execution), changes_of(right, execution)]
    _, out = run(operator, inputs, steps)
    assert answers(out, execution) == expected((left, right), difference)
    assert same_changes(out, run(operator, inputs, [])[1])


def one(at: int, exp: int, gone: int | None = None) -> Lived:
    return Lived((1, "a"), at, exp, gone)


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        # The one that stays longest is taken back, and comes again when the right one expires.
        ([one(0, 5), one(1, 9)], [one(2, 4)], [(0, 1, 5), (1, 1, 9), (2, -1, 9), (4, 1, 9)]),
        # One that is kept back takes the place of one that lapses.
        ([one(0, 5), one(1, 9)], [one(0, 3)], [(1, 1, 5), (3, 1, 9)]),
        # A right tuple that is replaced within an instant changes nothing.
        ([one(0, 9)], [one(1, 4), one(4, 12)], [(0, 1, 9), (1, -1, 9)]),
        # One that comes and goes at once is not told.
        ([one(0, 9, 0)], [], []),
        # More right than left, until the right ones go.
        ([one(0, 9)], [one(0, 3), one(1, 5)], [(5, 1, 9)]),
    ],
)
def test_what_is_taken_back(
    left: list[Lived], right: list[Lived], told: list[tuple[int, int, int]]
) -> None:
    inputs = [changes_of(left, "aware"), changes_of(right, "aware")]
    _, out = run(operator_for(left, right), inputs, [])
    assert list(zip(out.at.tolist(), out.sign.tolist(), out.exp.tolist(), strict=True)) == told


def test_more_comes_out_than_room_was_made_for() -> None:
    left = [one(0, 30) for _ in range(300)]
    right = [one(1, 2) for _ in range(300)]
    operator = operator_for(left, right)
    inputs = [changes_of(left, "aware"), changes_of(right, "aware")]
    state, out = run(operator, inputs, [(1, True), (2, False), (3, True)])
    assert len(out) == 900
    assert answers(out, "aware") == expected((left, right), difference)
    assert operator.size(state).tuples == 0


@given(st.sampled_from(["aware", "direct"]))
@settings(deadline=None, max_examples=2)
def test_rows_of_what_is_gone_are_forgotten(execution: Execution) -> None:
    left = [one(at // 500, at // 500 + 1) for at in range(10_000)]
    operator = operator_for(left, [], execution)
    inputs = [changes_of(left, execution), changes_of([], execution)]
    state, _ = run(operator, inputs, [(at, False) for at in range(20)])
    assert state.log.size <= 1024


def test_a_state_of_something_else_is_refused() -> None:
    operator = operator_for([], [])
    dumped = operator.dump(operator.initial_state())
    assert operator.load(dumped).until_us == operator.initial_state().until_us
    with pytest.raises(StateError):
        operator.load(dumped[:-1])
    with pytest.raises(StateError):
        DifferenceOperator(SCHEMA.remove(0)).load(dumped)
