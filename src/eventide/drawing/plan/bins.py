"""Reduce millions of periods and instants to the few hundred columns that are visible."""

from __future__ import annotations

import numpy as np

from eventide.drawing.chart.model import Times, Values
from eventide.drawing.chart.scale import Floats

LEVELS = 20
"""Heights are multiples of a twentieth: so equal neighbours become one shape, and files are small.
"""


def covered_shares(start_us: Times, end_us: Times, edges: Floats) -> Values:
    """Return which share of each column the periods [start, end) cover; they do not overlap.

    >>> covered_shares(np.array([0, 25]), np.array([5, 40]), np.array([0.0, 10, 20, 30, 40]))
    array([0.5, 0. , 0.5, 1. ])
    """
    return amounts(start_us, end_us, np.asarray(end_us - start_us, np.float64), edges) / np.diff(
        edges
    )


def amounts(start_us: Times, end_us: Times, values: Values, edges: Floats) -> Values:
    """Return how much of the values, each spread evenly over its period, lies in each column."""
    if not len(start_us):
        return np.zeros(len(edges) - 1)
    # Relative to the first edge: doubles are exact for small numbers only.
    first = edges[0]
    begin, end = start_us - first, np.maximum(end_us, start_us + 1) - first
    times, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.zeros(len(times))
    rate = values / (end - begin)
    np.add.at(change, place, np.concatenate([rate, -rate]))
    gained = np.concatenate([[0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(times))])
    return np.asarray(np.maximum(np.diff(np.interp(edges - first, times, gained)), 0.0))


def counts(ts_us: Times, edges: Floats) -> Values:
    """Return how many moments lie in each column."""
    inside = ts_us[(ts_us >= edges[0]) & (ts_us <= edges[-1])]
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    columns = ((inside - edges[0]) / width).astype(np.int64)
    columns = np.minimum(columns, len(edges) - 2)
    return np.bincount(columns, minlength=len(edges) - 1).astype(np.float64)


def heights_of_counts(found: Values) -> Values:
    """Return heights from 0 to 1: one instant is visible, and many stand out."""
    most = float(found.max(initial=0.0))
    if most <= 1:
        return found
    return np.where(found > 0, 0.35 + 0.65 * np.log(np.maximum(found, 1)) / np.log(most), 0.0)


def bar_path(low: Values, high: Values, left: float, top: float, height: float) -> str:
    """Return columns, each from a low to a high share of the height, as one SVG path.

    Columns are one unit wide; neighbours of the same height are one shape.
    """
    bottom = np.round(low * LEVELS) / LEVELS
    upper = np.maximum(np.round(high * LEVELS) / LEVELS, bottom)
    pair = np.stack([bottom, upper])
    starts = np.flatnonzero(np.append(True, (pair[:, 1:] != pair[:, :-1]).any(axis=0)))
    ends = np.append(starts[1:], pair.shape[1])
    parts = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        from_share, to_share = pair[:, start].tolist()
        if to_share > from_share:
            y = top + height * (1 - to_share)
            parts.append(
                f"M{left + start:g} {y:.4g}h{end - start}v{height * (to_share - from_share):.3g}"
                f"h{start - end}z"
            )
    return "".join(parts)
