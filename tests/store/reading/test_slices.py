"""Cutting time into slices, for any statistics."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import MAX_TS_US, MIN_TS_US
from eventide.store.source import MOST_SLICES, balanced_slices

instants = st.integers(MIN_TS_US, MAX_TS_US) | st.integers(MAX_TS_US - 5, MAX_TS_US)
periods = st.builds(
    lambda one, other, rows: (min(one, other), max(one, other), rows),
    instants,
    instants,
    st.integers(1, 10**9),
)


@settings(deadline=None, max_examples=100)
@given(st.lists(periods, min_size=1, max_size=6), instants, instants, st.integers(10**6, 10**9))
def test_slices_tile_the_data_exactly(
    found: list[tuple[int, int, int]], start: int, end: int, target_rows: int
) -> None:
    data = TimeRange(min(period[0] for period in found), max(period[1] for period in found) + 1)
    for time_range in (ALL_TIME, TimeRange(start, end)):
        pieces = [piece.time_range for piece in balanced_slices(found, time_range, target_rows)]
        assert all(not piece.is_empty for piece in pieces)
        assert all(one.end_us == other.start_us for one, other in pairwise(pieces))
        covered = data.intersect(time_range)
        for low, high, _ in found:
            part = TimeRange(low, high + 1).intersect(covered)
            if not part.is_empty:
                assert pieces[0].start_us <= part.start_us
                assert part.end_us <= pieces[-1].end_us
        if pieces:
            whole = TimeRange(pieces[0].start_us, pieces[-1].end_us)
            assert whole.intersect(covered) == whole


def test_slices_are_balanced() -> None:
    blocks = [(start, start + 99, 1000) for start in range(0, 10_000, 100)]
    slices = balanced_slices(blocks, ALL_TIME, 7000)
    assert sum(piece.rows for piece in slices) == 100_000
    assert all(6000 <= piece.rows <= 8500 for piece in slices)


def test_an_instant_with_many_rows_stays_whole() -> None:
    slices = balanced_slices([(5, 5, 1_000_000), (0, 9, 10)], ALL_TIME, 10)
    assert max(piece.rows for piece in slices) >= 1_000_000


def test_there_are_never_millions_of_slices() -> None:
    assert len(balanced_slices([(0, 10**12, 10**9)], ALL_TIME, 1)) <= MOST_SLICES
