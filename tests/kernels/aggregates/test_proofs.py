"""Pairs of doubles that are marked as exact have lost nothing, however they were added up."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.aggregates.merges import merge_extremes, merge_moments
from eventide.kernels.aggregates.proofs import find_least, mark_exact, merge_least
from eventide.kernels.aggregates.summaries import summarise_floats
from eventide.kernels.compiled import Bools, Floats, Int64s, frozen

SIZES = st.sampled_from([1.0, 1e-3, 2.0**-60, 2.0**20, 1e17, 1e200, 5e-324, 1e308])
VALUES = st.builds(lambda x, size: x * size, st.floats(-2.0, 2.0), SIZES)
ANY = VALUES | st.sampled_from([0.0, -0.0, float("nan"), float("inf"), float("-inf")])
FEW = st.lists(st.tuples(ANY | st.floats(0.5, 9.0), st.booleans()), max_size=60)


def of_two_sizes(seed: int, bits: int) -> list[tuple[float, bool]]:
    """Values of which some are 2^bits times as large: at some bits a pair begins to lose."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 300))
    sizes = np.where(random.random(count) < 0.5, 1.0, 2.0**bits)
    values = random.uniform(1.0, 2.0, count) * random.choice([-1.0, 1.0], count) * sizes
    return list(zip(values.tolist(), (random.random(count) < 0.9).tolist(), strict=True))


TWO_SIZES = st.builds(of_two_sizes, st.integers(0, 10**6), st.integers(20, 64))


def naive_least(values: list[float]) -> float:
    """The smallest absolute value that is not zero."""
    return min((abs(x) for x in values if x != 0.0 and x == x), default=np.inf)  # noqa: PLR0124


def runs_of(rows: int, cuts: list[int]) -> Int64s:
    return frozen(np.array([0, *sorted(cut % (rows + 1) for cut in cuts), rows], np.int64))


def summaries(
    values: Floats, valid: Bools, bounds: Int64s
) -> tuple[Int64s, Floats, Floats, Floats]:
    """The counts, extremes, sums and least of runs."""
    runs = len(bounds) - 1
    counts, extremes, moments = np.empty(runs, np.int64), np.zeros((2, runs)), np.empty((4, runs))
    summarise_floats(values, valid, bounds, counts, extremes, moments)
    least = np.empty(runs)
    find_least(values, valid, bounds[:-1], bounds[1:], extremes, least)
    return counts, extremes, moments, least


@settings(deadline=None, max_examples=300)
@given(rows=FEW | TWO_SIZES, cuts=st.lists(st.integers(0, 300), max_size=4), nulls=st.booleans())
def test_exact_pairs_have_lost_nothing(
    rows: list[tuple[float, bool]], cuts: list[int], nulls: bool
) -> None:
    values = frozen(np.array([value for value, _ in rows], np.float64))
    present = [not nulls or kept for _, kept in rows]
    valid = frozen(np.array(present if nulls else [], np.bool_))
    bounds = runs_of(len(rows), cuts)
    counts, extremes, moments, least = summaries(values, valid, bounds)
    parts = [
        [values[i].item() for i in range(first, last) if present[i]]
        for first, last in pairwise(bounds)
    ]
    for run, part in enumerate(parts):
        if part:
            assert least[run] == naive_least(part)
    check_exact(counts, extremes, moments, least, parts)
    whole = frozen(np.array([0, len(parts)], np.int64))
    sums = [frozen(each) for each in moments]
    merged = np.empty(1, np.int64), np.zeros((2, 1)), np.empty((4, 1)), np.empty(1)
    ends = frozen(extremes[0]), frozen(extremes[1])
    merge_extremes(frozen(counts), *ends, whole, merged[0], merged[1])
    merge_moments((sums[0], sums[1]), (sums[2], sums[3]), whole, merged[2])
    merge_least(frozen(counts), frozen(least), whole, merged[3])
    check_exact(*merged, [[value for part in parts for value in part]])


def check_exact(
    counts: Int64s, extremes: Floats, moments: Floats, least: Floats, parts: list[list[float]]
) -> None:
    """Hold pairs that are marked as exact against sums of fractions."""
    out = np.empty(len(counts), np.bool_)
    ends = frozen(extremes[0]), frozen(extremes[1])
    every = mark_exact(frozen(counts), ends, frozen(least), frozen(moments[0]), out)
    assert every == out.all()
    for run in np.flatnonzero(out):
        high, low = moments[:2, run].tolist() if counts[run] else (0.0, 0.0)
        assert Fraction(high) + Fraction(low) == sum(map(Fraction, parts[run]))


def test_usual_values_are_exact() -> None:
    random = np.random.default_rng(3)
    for values in (random.normal(20, 5, 20_000), random.normal(0, 1, 20_000)):
        bounds = frozen(np.arange(0, 20_001, 1000))
        counts, extremes, moments, least = summaries(
            frozen(values), frozen(np.empty(0, np.bool_)), bounds
        )
        ends, out = (frozen(extremes[0]), frozen(extremes[1])), np.empty(20, np.bool_)
        assert mark_exact(frozen(counts), ends, frozen(least), frozen(moments[0]), out)
