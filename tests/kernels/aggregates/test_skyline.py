"""The values that can become the minimum, against all living values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.aggregates.skyline import drop_ended, put_life
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START, Slabs, empty_slabs, widen, with_room
from tests.naive.ordered_values import skyline


def one_owner() -> Slabs:
    notes = np.zeros((1, 4), np.int64)
    return empty_slabs()._replace(words=np.zeros(8, np.int64), notes=notes)


def put(slabs: Slabs, value: int, end: int) -> Slabs:
    while not put_life(slabs.words, slabs.notes, 0, value, end):
        while not widen(slabs, 0, int(slabs.notes[0, ROOM]) + 1, np.int64(0)):
            slabs = with_room(slabs)
    return slabs


def entries(slabs: Slabs) -> list[tuple[int, int]]:
    start = int(slabs.notes[0, START] + 2 * slabs.notes[0, BASE])
    pairs = slabs.words[start : start + 2 * int(slabs.notes[0, LENGTH])].reshape(-1, 2)
    return [(int(end), int(value)) for end, value in pairs]


# Lives of one length end in the order in which they come.
LENGTHS = {"queue": st.just(6), "any": st.integers(1, 12)}


@pytest.mark.parametrize("lengths", LENGTHS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_only_what_can_become_the_smallest_is_kept(lengths: str, data: st.DataObject) -> None:
    steps = st.tuples(st.integers(0, 2), st.integers(-5, 5), LENGTHS[lengths])
    slabs, now = one_owner(), 0
    living: list[tuple[int, int]] = []
    for passed, value, length in data.draw(st.lists(steps, max_size=50)):
        now += passed
        living = [life for life in living if life[0] > now]
        drop_ended(slabs.words, slabs.notes, 0, now)
        assert entries(slabs) == skyline(living)
        living.append((now + length, value))
        slabs = put(slabs, value, now + length)
        assert entries(slabs) == skyline(living)


def test_long_lines_take_the_place_of_what_has_gone() -> None:
    slabs = one_owner()
    for now in range(2000):
        drop_ended(slabs.words, slabs.notes, 0, now)
        slabs = put(slabs, now, now + 50)
    assert entries(slabs) == [(now + 50, now) for now in range(1950, 2000)]
    assert slabs.notes[0, ROOM] <= 256
    slabs = put(slabs, 1980, 3000)
    assert entries(slabs)[-2:] == [(2029, 1979), (3000, 1980)]
