"""One refresh after the other, whichever of those that are due has the earliest deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def order(deadlines: Sequence[int], soon: int, has_time: Callable[[], bool]) -> list[int]:
    """Return which refreshes run, in order; those with deadlines until `soon` in any case."""
    waiting = dict(enumerate(deadlines))
    ran: list[int] = []
    while waiting:
        first = min(waiting, key=lambda each: (waiting[each], each))
        if waiting[first] > soon and not has_time():
            break
        del waiting[first]
        ran.append(first)
    return ran


def left_out(due: int, following: int, slide: int, stretch: int, first: int) -> int:
    """Return how many refreshes are over before `following` that were not computed."""
    every = [at for at in range(due, following, slide) if at >= first]
    return sum(at != due and at % (slide * stretch) != 0 for at in every)
