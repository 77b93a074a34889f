"""Cutting time into periods: every time is in the period that its definition says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s
from eventide.store.reading.cuts import Cuts, EvenCuts, ListedCuts

TIMES = TimeRange(-50, 70)
NOWHERE = np.empty(0, np.int64)
instants = st.lists(st.integers(TIMES.start_us, TIMES.end_us - 1), max_size=30)
lengths = st.integers(1, 40)


def array(values: list[int]) -> Int64s:
    return np.array(values, np.int64)


def runs_of(periods: list[int], breaks: list[int]) -> list[tuple[int, int]]:
    """Return where a new period, or a break, begins a run."""
    return [
        (row, period)
        for row, period in enumerate(periods)
        if row == 0 or row in breaks or period != periods[row - 1]
    ]


def check_runs(cuts: Cuts, ts: list[int], breaks: list[int]) -> None:
    periods = cuts.periods_of(array(ts)).tolist()
    starts, found = cuts.runs(array(ts), array(breaks))
    assert list(zip(starts.tolist(), found.tolist(), strict=True)) == runs_of(periods, breaks)


@settings(deadline=None, max_examples=40)
@given(instants, lengths, lengths, st.sets(st.integers(0, 29)))
def test_a_window_has_all_or_nothing_of_an_even_period(
    ts: list[int], size: int, slide: int, breaks: set[int]
) -> None:
    cuts = EvenCuts.of_windows(size, slide, TIMES)
    periods = cuts.periods_of(array(ts)).tolist()
    windows = [
        frozenset(k for k in range(-100, 80) if k * slide <= each < k * slide + size) for each in ts
    ]
    for period, own, each in zip(periods, windows, ts, strict=True):
        assert cuts.starts_of(array([period]))[0] <= each < cuts.starts_of(array([period + 1]))[0]
        assert bool(cuts.are_asked(array([period]))[0]) == bool(own)
        for other, others in zip(periods, windows, strict=True):
            assert period != other or own == others
    check_runs(cuts, ts, sorted(breaks))


@settings(deadline=None, max_examples=40)
@given(instants, st.lists(st.integers(-50, 70), max_size=10), st.sets(st.integers(0, 29)))
def test_listed_periods_begin_at_their_cuts(
    ts: list[int], inner: list[int], breaks: set[int]
) -> None:
    every = sorted([TIMES.start_us, TIMES.end_us, *inner])
    cuts = ListedCuts(array(every))
    expected = [
        next(n for n, (start, end) in enumerate(pairwise(every)) if start <= each < end)
        for each in ts
    ]
    assert cuts.times == TIMES
    assert cuts.periods_of(array(ts)).tolist() == expected
    check_runs(cuts, ts, sorted(breaks))


def test_cuts_of_a_period_are_counted_and_not_listed() -> None:
    day, year = 86_400_000_000, 365 * 86_400_000_000
    cuts = EvenCuts.of_windows(day, 1, TimeRange(0, 1000 * year))
    assert cuts.between(TimeRange(0, year)) == year
    assert EvenCuts.of_windows(day, day, TimeRange(0, year)).between(TimeRange(0, year)) == 365
    assert ListedCuts(array([0, 5, 5, 9])).between(TimeRange(1, 9)) == 2
