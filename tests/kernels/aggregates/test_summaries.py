"""The kernels of summaries against exact arithmetic, in runs shorter and longer than a lane."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.aggregates.lanes import LANES, LONG_RUN
from eventide.kernels.aggregates.summaries import (
    second_by_run,
    summarise_floats,
    summarise_integers,
)
from eventide.kernels.aggregates.texts import best_texts
from eventide.kernels.compiled import Bools, Floats, Int64s, frozen
from tests.naive.windows import nan_last

settings.register_profile("summaries", deadline=None, max_examples=60)
settings.load_profile("summaries")

lengths = st.sampled_from(
    [0, 1, 5, LANES, LONG_RUN - 1, LONG_RUN, LONG_RUN + 1, LONG_RUN + LANES, 5 * LONG_RUN + 3]
)
finite = st.floats(-1e150, 1e150)
int64 = st.integers(-(2**63), 2**63 - 1)
NO_NULLS = frozen(np.empty(0, np.bool_))
Value = TypeVar("Value")


def tiled(some: list[Value], length: int) -> list[Value]:
    return (some * (length // len(some) + 1))[:length]


def floats_summarised(
    values: Floats, valid: Bools, bounds: list[int]
) -> tuple[Int64s, Floats, Floats]:
    runs = len(bounds) - 1
    out = np.empty(runs, np.int64), np.empty((2, runs)), np.empty((4, runs))
    summarise_floats(frozen(values), frozen(valid), frozen(np.array(bounds, np.int64)), *out)
    return out


@given(st.lists(st.tuples(finite, st.booleans()), min_size=1, max_size=20), lengths, st.booleans())
def test_float_pairs_are_exact_to_a_hundred_bits(
    some: list[tuple[float, bool]], length: int, nulls: bool
) -> None:
    rows = tiled(some, length)
    values = np.array([value for value, _ in rows])
    valid = np.array([ok for _, ok in rows], np.bool_) if nulls else NO_NULLS
    counts, extremes, moments = floats_summarised(values, valid, [0, length])
    present = [Fraction(value) for value, ok in rows if ok or not nulls]
    assert counts[0] == len(present)
    if present:
        assert list(extremes[:, 0]) == [min(present), max(present)]
    for pair, exact in ((moments[:2], present), (moments[2:], [value**2 for value in present])):
        error = abs(Fraction(pair[0, 0]) + Fraction(pair[1, 0]) - sum(exact, Fraction(0)))
        # What is smaller than the smallest double cannot be told apart.
        room = sum(map(abs, exact), Fraction(0)) / 2**96 + len(exact) * Fraction(5e-324)
        assert error <= room


@given(
    st.lists(st.sampled_from([1.5, -2.0, 0.0, -0.0, 1e200]), min_size=1, max_size=9),
    st.lists(st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1, max_size=2),
    lengths.filter(lambda length: length > 2),
)
def test_what_is_not_finite_shows_in_runs_of_any_length(
    some: list[float], special: list[float], length: int
) -> None:
    rows = tiled(some, length - len(special)) + special
    counts, extremes, moments = floats_summarised(np.array(rows), NO_NULLS, [0, length])
    assert counts[0] == length
    expected = [min(rows, key=nan_last), max(rows, key=nan_last)]
    np.testing.assert_array_equal(extremes[:, 0], expected)
    np.testing.assert_array_equal(moments[0], [sum(special)])
    assert not np.isfinite(moments[2, 0])
    assert np.isfinite(moments[[1, 3], 0]).all()


@pytest.mark.parametrize("length", [3, 2 * LONG_RUN])
def test_there_is_one_zero(length: int) -> None:
    _, extremes, moments = floats_summarised(np.full(length, -0.0), NO_NULLS, [0, length])
    assert not np.signbit(extremes).any()
    assert not np.signbit(moments[0])


@given(st.lists(st.tuples(int64, st.booleans()), min_size=1, max_size=20), lengths, st.booleans())
def test_integer_sums_are_exact(some: list[tuple[int, bool]], length: int, nulls: bool) -> None:
    rows = tiled(some, length)
    values = frozen(np.array([value for value, _ in rows], np.int64))
    valid = frozen(np.array([ok for _, ok in rows], np.bool_)) if nulls else NO_NULLS
    bounds = frozen(np.array([0, length], np.int64))
    counts, extremes = np.empty(1, np.int64), np.empty((2, 1), np.int64)
    wholes, moments = np.empty((2, 1), np.int64), np.empty((4, 1))
    summarise_integers(values, valid, bounds, counts, extremes, wholes, moments)
    present = [value for value, ok in rows if ok or not nulls]
    assert counts[0] == len(present)
    if present:
        assert extremes[:, 0].tolist() == [min(present), max(present)]
    assert (int(wholes[0, 0]) << 64) + int(wholes[1, 0].view(np.uint64)) == sum(present)
    doubles = [Fraction(float(value)) for value in present]
    error = abs(Fraction(moments[0, 0]) + Fraction(moments[1, 0]) - sum(doubles, Fraction(0)))
    assert error <= sum(map(abs, doubles), Fraction(0)) / 2**96


texts = st.lists(
    st.none() | st.binary(max_size=3) | st.binary(max_size=4).map(lambda end: b"the same " + end)
)


@given(texts, st.data())
def test_best_texts_compare_byte_by_byte(rows: list[bytes | None], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    plain = [row or b"" for row in rows]
    offsets = np.cumsum([0, *map(len, plain)]).astype(np.int32)
    letters = np.frombuffer(b"".join(plain), np.uint8)
    valid = np.array([row is not None for row in rows], np.bool_)
    bounds = np.array([0, cut, cut, len(rows)], np.int64)
    for sign, best in ((1, min), (-1, max)):
        found = np.empty(3, np.int64)
        inputs = (frozen(offsets), frozen(letters), frozen(valid), frozen(bounds))
        best_texts(*inputs, sign, found)
        for run, part in enumerate((rows[:cut], [], rows[cut:])):
            present = [row for row in part if row is not None]
            expected = best(present) if present else None
            assert (rows[found[run]] if found[run] >= 0 else None) == expected


@given(st.lists(st.none() | st.integers(0, 4)), st.sampled_from([1, -1]))
def test_the_second_counts_equal_values_apart(rows: list[int | None], sign: int) -> None:
    keys = frozen(np.array([row or 0 for row in rows], np.int64))
    valid = frozen(np.array([row is not None for row in rows], np.bool_))
    found = np.empty(1, np.int64)
    second_by_run(keys, valid, frozen(np.array([0, len(rows)])), sign, found)
    present = sorted((row for row in rows if row is not None), reverse=sign < 0)
    assert (rows[found[0]] if found[0] >= 0 else None) == (present[1] if present[1:] else None)


def test_two_threads_do_not_disturb_each_other() -> None:
    values = np.random.default_rng(7).normal(size=100_000)
    bounds = list(range(0, 100_001, 1000))
    alone = floats_summarised(values, NO_NULLS, bounds)
    with ThreadPoolExecutor(2) as pool:
        for together in pool.map(lambda _: floats_summarised(values, NO_NULLS, bounds), range(8)):
            for one, other in zip(together, alone, strict=True):
                np.testing.assert_array_equal(one, other)
