"""Threads share parts of work, are kept, and leave nothing behind."""

from __future__ import annotations

import os
import threading
import time
import weakref

import pytest

from eventide import threads
from eventide.threads import in_threads


def test_results_are_in_the_order_of_the_parts() -> None:
    def slowly(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        return number * number

    squares = [number * number for number in range(40)]
    assert in_threads(slowly, range(40), 3) == squares
    assert in_threads(slowly, range(40)) == squares
    assert in_threads(slowly, []) == []


def test_whoever_asks_works_too_and_the_others_are_kept() -> None:
    def seen(barrier: threading.Barrier) -> int:
        barrier.wait(60)
        return threading.get_ident()

    found = []
    for _ in range(20):
        barrier = threading.Barrier(2)
        own = in_threads(seen, [barrier, barrier])
        assert threading.get_ident() in own
        assert len(set(own)) == 2
        found += own
    # A helper says that it is free a moment after its last part, so now and then there are two.
    assert len(set(found)) < 10


def test_one_thread_is_the_one_that_asks() -> None:
    assert set(in_threads(lambda _: threading.get_ident(), range(9), 1)) == {threading.get_ident()}


def test_parts_may_share_their_work_again() -> None:
    def inner(number: int) -> int:
        return sum(in_threads(lambda each: each + number, range(10), 2))

    expected = [45 + 10 * number for number in range(12)]
    assert in_threads(inner, range(12), 3) == expected


def test_the_error_is_that_of_the_first_part_and_ends_the_work() -> None:
    begun, both = [], threading.Barrier(2)

    def work(number: int) -> None:
        begun.append(number)
        if number < 2:
            both.wait(60)
            if number == 0:
                time.sleep(0.02)  # most often the error of the other is there before
            message = f"part {number}"
            raise ValueError(message)

    with pytest.raises(ValueError, match="part 0"):
        in_threads(work, range(50), 2)
    assert sorted(begun) == [0, 1]


def test_nothing_of_the_work_is_kept() -> None:
    class Rows:
        """What can be watched."""

    given = [Rows(), Rows()]
    assert len(in_threads(id, given)) == 2
    kept = [weakref.ref(each) for each in given]
    del given
    # A helper lets go of it when it waits again.
    while any(each() is not None for each in kept):
        time.sleep(0.001)


def test_a_child_of_a_fork_has_threads_of_its_own() -> None:
    def both(barrier: threading.Barrier) -> int:
        return barrier.wait(60)

    assert sorted(in_threads(both, [threading.Barrier(2)] * 2)) == [0, 1]
    child = os.fork()
    if child == 0:
        os._exit(sum(in_threads(both, [threading.Barrier(2)] * 2)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_little_work_does_not_need_more_and_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers that come too late are not free yet when the next work begins."""
    monkeypatch.setattr(threads, "_idle", [])
    monkeypatch.setattr(threads, "_made", [])
    monkeypatch.setattr(threads, "MOST_HELPERS", 2)
    for _ in range(300):
        assert in_threads(abs, range(4), 3) == [0, 1, 2, 3]
    assert 1 <= len(threads._made) <= 2
