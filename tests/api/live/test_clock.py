"""Wall clocks wake who waits for a time."""

from __future__ import annotations

from threading import Event

import pytest

import eventide as ev
from eventide.api.live.clocks.clock import SystemClock
from eventide.errors import EvaluationError

LONG_S = 60.0
"""No test waits for so long unless something is wrong."""


def test_who_waits_is_woken_in_order_and_once() -> None:
    clock, woken = ev.ManualClock(), list[str]()
    for at_us, name in [(3_000_000, "c"), (1_000_000, "a"), (1_000_000, "b")]:
        clock.wake_at(at_us, lambda name=name: woken.append(name))  # type: ignore[misc]
    clock.advance("999 ms")
    assert woken == []
    clock.advance("1 ms")
    assert woken == ["a", "b"]
    clock.advance("1 h")
    clock.advance("1 h")
    assert woken == ["a", "b", "c"]
    assert repr(clock) == "<ManualClock: 2 h 1 s have passed>"


def test_who_is_woken_may_wait_again() -> None:
    clock, times = ev.ManualClock(), list[int]()

    def again() -> None:
        times.append(clock.now_us())
        clock.wake_at(clock.now_us() + 2_000_000, again)

    again()
    for _ in range(5):
        clock.advance("1 s")
    assert times == [0, 2_000_000, 4_000_000]


def test_time_does_not_go_back() -> None:
    with pytest.raises(EvaluationError, match=r"advanced by -\(1 s\)"):
        ev.ManualClock().advance("-1 s")


def test_the_clock_of_the_system_wakes_in_a_thread_of_its_own() -> None:
    clock, woken, order = SystemClock(), Event(), list[str]()

    def last() -> None:
        order.append("last")
        woken.set()

    def fails() -> None:
        order.append("fails")
        raise ValueError

    begun = clock.now_us()
    clock.wake_at(begun + 40_000, last)
    clock.wake_at(begun + 20_000, fails)
    clock.wake_at(begun - 1, lambda: order.append("first"))
    assert woken.wait(LONG_S)
    assert clock.now_us() >= begun + 40_000
    assert order == ["first", "fails", "last"]


def test_its_thread_ends_and_begins_again() -> None:
    clock = SystemClock()
    for _ in range(3):
        woken = Event()
        clock.wake_at(clock.now_us(), woken.set)
        assert woken.wait(LONG_S)
        thread = clock.thread
        if thread is not None:
            thread.join(LONG_S)
        assert clock.thread is None
