"""Sums as four doubles: nothing is lost unseen, and rounding is correct."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.kernels.aggregates.wide_sums import (
    WIDTH,
    Parts,
    round_wide,
    sum_wide_by_frame,
    sum_wide_by_group,
)
from eventide.kernels.compiled import Floats, frozen

powers = st.builds(
    lambda sign, power, more: sign * 2.0**power * (1.0 + more * 2.0**-52),
    st.sampled_from([-1, 1]),
    st.integers(-320, 320),
    st.integers(0, 3),
)
numbers = st.just(0.0) | powers | st.floats(-1e150, 1e150)
rows = st.lists(st.tuples(*[numbers] * WIDTH), min_size=1, max_size=12)
halves = st.lists(
    st.tuples(
        *[st.sampled_from([0.0, *(s * 2.0**-k for s in (1, -1) for k in (0, 53, 54, 106))])] * 4
    ),
    min_size=1,
    max_size=12,
)


def columns(found: list[tuple[float, ...]]) -> Parts:
    one, two, three, four = (frozen(np.array(each)) for each in zip(*found, strict=True))
    return one, two, three, four


def exact(doubles: Floats) -> Fraction:
    return sum(map(Fraction, doubles.ravel().tolist()), Fraction(0))


@given(rows | halves)
def test_rounding_is_correct(found: list[tuple[float, ...]]) -> None:
    total, left = np.empty(len(found)), np.empty(len(found))
    round_wide(columns(found), total, left)
    for row, (high, low) in enumerate(zip(total.tolist(), left.tolist(), strict=True)):
        value = exact(np.array(found[row]))
        assert high == float(value)
        assert low == float(value - Fraction(high))


@given(rows | halves, st.integers(1, 3))
def test_a_sum_is_exact_or_in_doubt(found: list[tuple[float, ...]], groups: int) -> None:
    of_row = np.arange(len(found)) % groups
    sums, doubt = np.zeros((groups, WIDTH)), np.zeros(groups, np.bool_)
    sum_wide_by_group(columns(found), frozen(of_row), sums, doubt)
    for group in range(groups):
        expected = exact(np.array(found)[of_row == group])
        assert doubt[group] or exact(sums[group]) == expected


@given(rows | halves, st.integers(1, 5))
def test_frames_are_exact_or_in_doubt(found: list[tuple[float, ...]], width: int) -> None:
    count = len(found)
    left, right = np.maximum(np.arange(count) - width, 0), np.arange(1, count + 1)
    one, two, three, four = (np.empty(count) for _ in range(WIDTH))
    sums = np.empty((count, WIDTH))
    suffix = (one, two, three, four)
    doubt = sum_wide_by_frame(columns(found), frozen(left), frozen(right), suffix, sums)
    for frame in range(count):
        expected = exact(np.array(found[left[frame] : right[frame]]))
        assert doubt or exact(sums[frame]) == expected


def test_sums_of_squares_are_seldom_in_doubt() -> None:
    values = np.random.default_rng(1).normal(1e8, 1.0, 10_000)
    high = values * values
    low = np.array([float(Fraction(v) ** 2 - Fraction(v * v)) for v in values.tolist()])
    none = frozen(np.empty(0))
    sums, doubt = np.zeros((1, WIDTH)), np.zeros(1, np.bool_)
    groups = frozen(np.zeros(len(values), np.int64))
    sum_wide_by_group((frozen(high), frozen(low), none, none), groups, sums, doubt)
    assert not doubt.any()
    assert exact(sums) == sum(Fraction(value) ** 2 for value in values.tolist())
