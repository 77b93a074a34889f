"""The list of the most frequent values, against counting all of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.aggregates.frequent_values import (
    LIST_ROOM,
    keep_listed,
    most_frequent,
    needs_list,
)
from eventide.kernels.aggregates.sorted_blocks import count_of
from eventide.kernels.groups.sliding import LISTED, SORTED
from eventide.kernels.key_table import empty_table
from eventide.kernels.slabs import BASE, BLOCK, LENGTH, ROOM, Slabs, widen, with_room
from eventide.operators.standing.groups.slabs import compact_slabs
from tests.kernels.aggregates.test_sorted_blocks import Driven

NO_TEXTS, NO_RANKS = empty_table(), np.zeros(0, np.int64)
KINDS = np.array([SORTED, LISTED, SORTED])
"""The list of owner 0 is owner 1."""


def keep(slabs: Slabs, value: int, sign: int) -> Slabs:
    word, block = np.int64(value), int(slabs.facts[BLOCK])
    if not needs_list(slabs.notes, 1, block):
        return slabs
    while not keep_listed(slabs.words, slabs.notes, 1, word, sign, False, NO_TEXTS, NO_RANKS):
        while not widen(slabs, 1, LIST_ROOM, np.int64(0)):
            slabs = with_room(slabs)
    return slabs


def read(slabs: Slabs, wanted: int) -> list[tuple[int, int]]:
    row = np.zeros(2 * wanted + 1, np.int64)
    block = int(slabs.facts[BLOCK])
    most_frequent(slabs.words, slabs.notes, 0, block, row, False, NO_TEXTS, NO_RANKS)
    return [(int(row[2 * i + 1]), int(row[2 * i + 2])) for i in range(int(row[0]))]


def counted(values: list[int], wanted: int) -> list[tuple[int, int]]:
    found = Counter(values).items()
    return sorted(found, key=lambda item: (-item[1], item[0]))[:wanted]


# Of as many different values some are not in the list, and those in it leave it again and again.
PHASES = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([3, 30, 900])), max_size=5
)


@pytest.mark.parametrize("wanted", [1, 3, 200, 300])
@settings(max_examples=8, deadline=None)
@given(phases=PHASES, seed=st.integers(0, 99))
def test_lists_are_of_the_most_frequent(
    wanted: int, phases: list[tuple[float, int]], seed: int
) -> None:
    rng, driven = np.random.default_rng(seed), Driven()
    values = driven.known[0].values
    for growing, spread in [(1.0, 900), *phases, (0.0, 1)]:
        for _ in range(400):
            if rng.random() < growing:
                value, sign = int(rng.integers(0, spread)), 1
                driven.put(0, value)
            elif values:
                value, sign = values[int(rng.integers(0, len(values)) ** 2 // len(values))], -1
                driven.take(0, value)
            else:
                break
            driven.slabs = keep(driven.slabs, value, sign)
            if rng.random() < 0.1:
                assert read(driven.slabs, wanted) == counted(values, wanted)
        driven.slabs = compact_slabs(driven.slabs, driven.slabs.notes, KINDS)
        assert read(driven.slabs, wanted) == counted(values, wanted)
        slabs = driven.slabs
        if slabs.notes[0, ROOM] <= slabs.facts[BLOCK]:
            continue
        for value in {-1, *values[::50]}:
            assert count_of(slabs.words, slabs.notes, 0, value) == values.count(value)


def test_a_list_is_made_anew_only_when_too_few_are_left() -> None:
    driven = Driven()
    for value in range(1000):
        driven.put(0, value)
        driven.slabs = keep(driven.slabs, value, 1)
    assert read(driven.slabs, 2) == [(0, 1), (1, 1)]
    held = int(driven.slabs.notes[1, LENGTH])
    assert (held, driven.slabs.notes[1, BASE]) == (511, 0)
    for value in range(100):
        driven.take(0, value)
        driven.slabs = keep(driven.slabs, value, -1)
    assert driven.slabs.notes[1, LENGTH] == held - 200
    assert read(driven.slabs, 2) == [(100, 1), (101, 1)]
    assert driven.slabs.notes[1, LENGTH] == held - 200
