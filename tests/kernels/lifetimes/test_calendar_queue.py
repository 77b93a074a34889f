"""The calendar queue, against a sorted list."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import Int64s, inline
from eventide.kernels.lifetimes.calendar_queue import (
    NEVER,
    Calendar,
    empty_calendar,
    grown_calendar,
    next_due,
    schedule,
)


@inline  # not kept on disk, where it would not notice that what it calls has changed
def tick(calendar: Calendar, clock: np.int64, handles: Int64s, exps: Int64s, out: Int64s) -> int:
    """Take out what is due, then schedule; return how many were due."""
    count = 0
    while True:
        handle = next_due(calendar, clock)
        if handle < 0:
            break
        out[count] = handle
        count += 1
    for i in range(len(handles)):
        schedule(calendar, handles[i], exps[i])
    return count


@settings(deadline=None)
@given(
    span=st.integers(1, 40),
    partitions=st.integers(1, 50),
    start=st.sampled_from([-100, 0, 10**15]),
    ticks=st.lists(
        st.tuples(st.integers(0, 60), st.lists(st.integers(1, 1000), max_size=4)), max_size=30
    ),
)
def test_handles_come_in_order_of_expiry(
    span: int, partitions: int, start: int, ticks: list[tuple[int, list[int]]]
) -> None:
    calendar = empty_calendar(span, partitions, 0)
    kept: dict[int, int] = {}
    clock, next_handle = start, 0
    for pause, lifetimes in ticks:
        clock += pause
        exps = [clock + 1 + lifetime % span for lifetime in lifetimes]
        handles = list(range(next_handle, next_handle + len(exps)))
        next_handle += len(exps)
        calendar = grown_calendar(calendar, next_handle)
        out = np.zeros(next_handle + 1, np.int64)
        arrays = np.array(handles, np.int64), np.array(exps, np.int64)
        count = tick(calendar, np.int64(clock), *arrays, out)
        due = [kept.pop(handle) for handle in out[:count].tolist()]
        assert due == sorted(due)
        assert all(exp <= clock for exp in due)
        assert all(exp > clock for exp in kept.values())
        kept |= dict(zip(handles, exps, strict=True))


@pytest.mark.parametrize("partitions", [1, 10])
def test_what_never_expires_is_not_kept(partitions: int) -> None:
    calendar = empty_calendar(10, partitions, 4)
    out = np.zeros(4, np.int64)
    exps = np.array([5, NEVER, 3], np.int64)
    assert tick(calendar, np.int64(0), np.arange(3), exps, out) == 0
    nothing = np.zeros(0, np.int64)
    assert tick(calendar, np.int64(2**62), nothing, nothing, out) == 2
    assert out[:2].tolist() == [2, 0]
