"""The instants of windows: when a tuple becomes visible, and when it expires."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from eventide.kernels.compiled import Bools, Int64s
from eventide.operators.changes import NEVER
from eventide.plan.standing.windows import PeriodWindow, RangeWindow, SinceWindow, Unbounded

TimeWindow = Unbounded | RangeWindow | PeriodWindow | SinceWindow
"""Windows in which each tuple knows its expiry when it arrives."""


def later(times: Int64s, by: Int64s | int) -> Int64s:
    """Return times moved forward; one that would lie beyond the end of time is never."""
    if times.max(initial=0) <= NEVER - np.max(by, initial=0):
        return times + by
    room = np.int64(NEVER) - np.maximum(times, 0)
    return np.where(room < by, NEVER, times + np.minimum(by, room))


def rounded_up(times: Int64s, step_us: int | None) -> Int64s:
    """Return the first multiples of a step at or after times; without a step, the times.

    >>> rounded_up(np.array([-11, -10, 0, 1]), 10).tolist()
    [-10, -10, 0, 10]
    """
    if step_us is None:
        return times
    step = min(step_us, NEVER)
    return later(times, (step - times % step) % step)


def expiries(window: TimeWindow, ts: Int64s) -> Int64s:
    """Return when events at these times leave a window."""
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            return rounded_up(later(ts, min(size, NEVER)), jump)
        case PeriodWindow(period_us=period):
            step = min(period, NEVER)
            return later(ts, step - ts % step)
        case SinceWindow() | Unbounded():
            return np.full(len(ts), NEVER)
    assert_never(window)


def members(window: TimeWindow, ts: Int64s) -> Bools | None:
    """Return which events are in a window at all; None if all are."""
    if not isinstance(window, SinceWindow):
        return None
    inside: Bools = ts >= window.since_us
    return inside if window.until_us is None else inside & (ts < window.until_us)
