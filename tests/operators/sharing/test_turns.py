"""Which refreshes have their turn, against one after the other; what longer periods leave out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.instants import START_OF_TIME_US
from eventide.operators.sharing.turns import RefreshTurn, joint_runs, left_out
from tests.naive.sharing import deadlines as naive


@given(st.lists(st.integers(0, 20)), st.integers(-1, 21), st.integers(0, 30))
def test_refreshes_run_by_their_deadlines_as_long_as_there_is_time(
    deadlines: list[int], soon: int, times: int
) -> None:
    found: list[int] = []
    many = sum(each <= soon for each in deadlines)
    turn = RefreshTurn(soon_us=soon, has_time=lambda: len(found) < max(many, times))
    for run in joint_runs(np.array(deadlines, np.int64), turn, most=1):
        found += sorted(run.tolist(), key=lambda each: (deadlines[each], each))
    asked = iter(range(100))
    expected = naive.order(deadlines, soon, lambda: many + next(asked) < max(many, times))
    assert found == expected


@given(
    st.integers(-5, 40),
    st.integers(0, 60),
    st.integers(1, 7),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(-10, 60),
)
def test_what_a_stretched_period_leaves_out(
    due: int, first_after: int, slide: int, stretch: int, first: int
) -> None:
    due *= slide
    period = slide * stretch
    following = max(due, first_after) // period * period + period
    found = left_out(np.array([due]), np.array([following]), np.array([slide]), stretch, first)
    assert found.tolist() == [naive.left_out(due, following, slide, stretch, first)]


def test_what_is_far_from_its_deadline_has_no_turn_without_time() -> None:
    turn = RefreshTurn(soon_us=START_OF_TIME_US, has_time=lambda: False)
    assert list(joint_runs(np.array([1, 2]), turn)) == []
