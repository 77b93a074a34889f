"""Long reads of windows whose panes are overwritten meanwhile, as the thesis of Golab has them.

Here a slice is never overwritten, so no read of a window is in the way of events, nor they in its
way. This is what it would cost with one copy of each pane: how often a query begins again, or reads
a pane for nothing, in random schedules of many queries at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
AT_ONCE = 100_000
"""So many schedules are looked at together."""


@dataclass(frozen=True, slots=True)
class PaneReads:
    """How queries got on, each in its schedule."""

    committed: Bools
    aborted: Int64s
    """How often each began again."""
    taken_back: Int64s
    """How many panes each took back out of its result."""


def pane_reads(updates: Bools, length: int, *, youngest: bool, rescans: bool) -> PaneReads:
    """Return how queries got on; a row of `updates` says for all of them what is next.

    What a query has read is a bit for each age of a pane, the youngest is the lowest.
    """
    count = updates.shape[1]
    whole = (1 << length) - 1
    read, aborted, taken_back = (np.zeros(count, np.int64) for _ in range(3))
    committed = np.zeros(count, np.bool_)
    for is_update in updates:
        moved = is_update & ~committed
        older = read << 1
        gone = moved & (older > whole)
        kept = older & whole if rescans else np.where(gone, 0, older)
        aborted += gone & (not rescans)
        taken_back += gone & rescans
        unread = whole & ~read
        chosen = unread & -unread if youngest else highest(unread)
        read = np.where(moved, kept, np.where(committed, read, read | chosen))
        committed |= read == whole
    return PaneReads(committed, aborted, taken_back)


def highest(bits: Int64s) -> Int64s:
    """Return the highest bit of each number.

    >>> highest(np.array([6, 1, 0])).tolist()
    [4, 1, 0]
    """
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> shift)
    found: Int64s = bits - (bits >> 1)
    return found


@dataclass(frozen=True, slots=True)
class Isolation:
    """What queries in random schedules did, for each way to read."""

    schedules: int
    aborted_any: int
    """Oldest panes first: how often a query began again."""
    aborted_youngest: int
    taken_back: int
    """Youngest first: how many panes were taken back instead."""
    aborted_slowly: int
    """Youngest first, with at most one update between two reads."""


def isolation(schedules: int, length: int = 20, share: float = 0.3) -> Isolation:
    """Return what queries do in random schedules in which a share of all steps are updates."""
    rng = np.random.default_rng(7)
    found = np.zeros(4, np.int64)
    for first in range(0, schedules, AT_ONCE):
        count = min(AT_ONCE, schedules - first)
        updates = rng.random((6 * length, count)) < share
        slowly = updates.copy()
        for row in range(1, len(slowly)):
            slowly[row] &= ~slowly[row - 1]
        found += [
            pane_reads(updates, length, youngest=False, rescans=False).aborted.sum(),
            pane_reads(updates, length, youngest=True, rescans=False).aborted.sum(),
            pane_reads(updates, length, youngest=True, rescans=True).taken_back.sum(),
            pane_reads(slowly, length, youngest=True, rescans=False).aborted.sum(),
        ]
    return Isolation(schedules, *map(int, found))
