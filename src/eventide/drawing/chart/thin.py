"""Reduce millions of points to the few that are visible, and keep extremes."""

from __future__ import annotations

import numpy as np

from eventide.drawing.chart.model import Times, Values

Indexes = np.ndarray[tuple[int], np.dtype[np.int64]]


def seen_on_line(columns: Indexes, values: Values) -> Indexes:
    """Return which points of a line to draw: per pixel column the first, lowest, highest, last.

    Through those the line covers exactly the pixels it would cover through all. `columns` ascend.
    One missing value of a column is kept as well, so that a gap stays a gap.
    """
    if len(columns) == 0:
        return np.empty(0, np.int64)
    starts = np.flatnonzero(np.diff(columns, prepend=columns[0] - 1))
    ends = np.append(starts[1:], len(columns))
    picked = [starts, ends - 1]
    picked += [extremes(columns, values, sign) for sign in (1.0, -1.0)]
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        picked.append(missing[np.flatnonzero(np.diff(columns[missing], prepend=-1))])
    return np.unique(np.concatenate(picked))


def extremes(columns: Indexes, values: Values, sign: float) -> Indexes:
    """Return the index of the highest value of each column; the lowest where `sign` is -1."""
    present = np.flatnonzero(~np.isnan(values))
    order = present[np.lexsort((sign * values[present], columns[present]))]
    last = np.flatnonzero(np.diff(columns[order], append=np.iinfo(np.int64).max))
    return order[last]


def seen_bars(columns: Indexes, values: Values) -> tuple[Indexes, Values]:
    """Return the pixel columns that have bars, and the highest value of each."""
    present = ~np.isnan(values)
    columns, values = columns[present], values[present]
    if len(columns) == 0:
        return columns, values
    starts = np.flatnonzero(np.diff(columns, prepend=columns[0] - 1))
    return columns[starts], np.maximum.reduceat(values, starts)


def seen_points(x: Indexes, y: Indexes) -> Indexes:
    """Return one point of each pixel that has points."""
    if len(x) == 0:
        return np.empty(0, np.int64)
    _, first = np.unique(np.stack([x, y]), axis=1, return_index=True)
    return np.sort(first)


def around(ts_us: Times, times: Times) -> Indexes:
    """Return for each of `times` the index of the nearest of `ts_us`, which ascend."""
    right = np.clip(np.searchsorted(ts_us, times), 0, len(ts_us) - 1)
    left = np.clip(right - 1, 0, None)
    nearer = np.abs(ts_us[left] - times) <= np.abs(ts_us[right] - times)
    return np.where(nearer, left, right)
