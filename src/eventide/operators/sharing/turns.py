"""Which refreshes that are due get their turn in a step: those with the earliest deadlines first.

    deadline     of a refresh at e: when the next one is due, e + period
    first run    all that is late, or would be by the next step, for what one reads others read too
    then         runs of the others, earliest deadline first, as long as there is time

What has no turn stays due. Its answer is the same later: that of the window as it was at e. If a
machine cannot keep up, periods stretch, all by the same factor, to multiples of it: some refreshes
are left out then, and which are does not depend on who asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Int64s

RUN = 128
"""So many refreshes run together behind the first run, before time is looked at."""


def always() -> bool:
    """Whether there is time: nothing waits for it."""
    return True


def never() -> bool:
    """Whether there is time: not now."""
    return False


@dataclass(frozen=True, slots=True)
class RefreshTurn:
    """How far periods are stretched, and what of what is due is computed."""

    stretch: int = 1
    soon_us: int = END_OF_TIME_US
    """What has its deadline at this instant or before has its turn in any case."""
    has_time: Callable[[], bool] = always
    """Whether there is time for more."""


AT_ONCE = RefreshTurn()
"""All that is due."""


def not_now(stretch: int) -> RefreshTurn:
    """Return the turn of nothing."""
    return RefreshTurn(stretch, START_OF_TIME_US, never)


def joint_runs(deadlines: Int64s, turn: RefreshTurn, most: int = RUN) -> Iterator[Int64s]:
    """Yield which refreshes run together, in order, as long as there is time.

    >>> [run.tolist() for run in joint_runs(np.array([9, 4, 7, 5]), RefreshTurn(soon_us=5), most=1)]
    [[1, 3], [2], [0]]
    """
    soon = deadlines <= turn.soon_us
    if soon.any():
        yield np.flatnonzero(soon)
    left = np.flatnonzero(~soon)
    left = left[np.argsort(deadlines[left], kind="stable")]
    for first in range(0, len(left), most):
        if not turn.has_time():
            return
        yield left[first : first + most]


def left_out(due: Int64s, following: Int64s, slides: Int64s, stretch: int, first_us: int) -> Int64s:
    """Return how many refreshes a stretched period leaves out at each place.

    Those from `due` on, or from an instant on if that is later, are over before `following`; of
    these, `due` and the multiples of the stretched slide were computed.

    >>> left_out(np.array([20]), np.array([60]), np.array([10]), 3, 0).tolist()
    [2]
    """
    begin = np.maximum(due, -(-first_us // slides) * slides)
    begin = np.minimum(begin, following)
    every = (following - begin) // slides
    long = slides * stretch
    computed = (following - 1) // long - (begin - 1) // long
    computed += (begin == due) & (due % long != 0) & (due < following)
    found: Int64s = np.maximum(every - computed, 0)
    return found
