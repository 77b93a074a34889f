"""Answers whose rows expire by themselves, against a list that is filtered."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.operators.changes import NEVER, Changes
from eventide.operators.operator import Size
from eventide.operators.standing.answer import expiring_rows
from eventide.operators.standing.answer.expiring_rows import ExpiringRows

SCHEMA = pa.schema([("v", pa.int64()), ("name", pa.string())])


def came(first: int, at: int, lengths: list[int]) -> Changes:
    """Rows that come together and live so long, 0 being for ever."""
    count = len(lengths)
    values = list(range(first, first + count))
    rows = pa.record_batch([pa.array(values), pa.array([f"r{v}" for v in values])], schema=SCHEMA)
    exps = np.array([NEVER if length == 0 else at + length for length in lengths], np.int64)
    ids = np.array(values, np.int64)
    return Changes(rows, np.full(count, at, np.int64), exps, np.ones(count, np.int8), ids)


@settings(deadline=None, max_examples=100)
@given(
    steps=st.lists(
        st.tuples(st.integers(1, 6), st.lists(st.integers(0, 12), max_size=9)), max_size=20
    ),
    long=st.sampled_from([1, 4, 1 << 14]),
    sampled=st.sampled_from([1, 3]),
    reload=st.booleans(),
)
def test_rows_that_have_not_expired_are_there_in_the_order_they_came(
    steps: list[tuple[int, list[int]]], long: int, sampled: int, reload: bool
) -> None:
    answer, now, count = ExpiringRows(SCHEMA), 0, 0
    state = answer.initial_state()
    expected: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expiring_rows, "LONG", long)
        patch.setattr(expiring_rows, "SAMPLED", sampled)
        for later, lengths in steps:
            changes = came(count, now, lengths)
            count += len(lengths)
            expected += zip(changes.id.tolist(), changes.exp.tolist(), strict=True)
            now += later
            state = answer.step(state, changes, now)
            expected = [(value, exp) for value, exp in expected if exp >= now]
            values = [value for value, _ in expected]
            assert answer.current(state).column("v").to_pylist() == values
            assert answer.size(state).tuples == len(expected)
            if reload:
                state = answer.load(answer.dump(state))


def test_no_more_than_about_twice_the_living_rows_are_held() -> None:
    answer = ExpiringRows(SCHEMA)
    state = answer.initial_state()
    random = np.random.default_rng(1)
    for now in range(400):
        state = answer.step(state, came(0, now, random.integers(1, 50, 40).tolist()), now + 1)
        held = sum(map(len, state.runs))
        assert held <= 2.5 * answer.size(state).tuples + 100
        # A row stands in one of few runs, each twice as long as the next if it is not long.
        assert len(state.runs) < 20


def test_of_rows_that_are_all_gone_nothing_is_held() -> None:
    answer = ExpiringRows(SCHEMA)
    state = answer.step(answer.initial_state(), came(0, 0, [5] * 1000), 1)
    state = answer.step(state, came(0, 1, []), 6)
    assert answer.size(state) == Size(0, 0)


def test_a_state_of_something_else_is_refused() -> None:
    answer = ExpiringRows(SCHEMA)
    other = ExpiringRows(pa.schema([("w", pa.float64())]))
    with pytest.raises(StateError):
        answer.load(other.dump(other.initial_state()))
