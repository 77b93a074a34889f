"""Which runs are merged, and how many are left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.store.index.secondary import runs_to_merge
from eventide.store.index.secondary.merging import tier_of

KB, MB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([KB], []),
        ([KB] * 3, []),
        ([KB] * 4, [0, 1, 2, 3]),
        ([9 * MB, KB, KB, KB, KB], [1, 2, 3, 4]),
        ([9 * MB, KB, 8 * MB, KB, 7 * MB, 6 * MB], [0, 1, 2, 3, 4, 5]),  # small ones go along
        ([900 * MB, 9 * MB, 8 * MB, 7 * MB], []),
        ([100 * KB] * 4 + [KB] * 4, [4, 5, 6, 7]),  # the lowest tier first
    ],
)
def test_runs_to_merge(sizes: list[int], expected: list[int]) -> None:
    assert runs_to_merge(sizes, fan_in=4) == expected


@given(st.lists(st.integers(1, 4 * MB), max_size=200), st.integers(2, 9))
def test_few_runs_are_left_and_entries_rewritten_seldom(flushes: list[int], fan_in: int) -> None:
    live: list[int] = []
    for size in flushes:
        live.append(size)
        while due := runs_to_merge(live, fan_in):
            assert len(due) >= fan_in
            total = sum(live[at] for at in due)
            live = [kept for at, kept in enumerate(live) if at not in due] + [total]
    tiers = [tier_of(size, fan_in) for size in live]
    assert all(tiers.count(tier) < fan_in for tier in tiers)
    assert sum(live) == sum(flushes)
