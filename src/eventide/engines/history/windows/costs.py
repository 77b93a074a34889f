"""Estimate how long windows take, from the index and by replay."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from eventide.engines.history.access import Cost
from eventide.engines.history.replay import SLICE_ROWS
from eventide.engines.history.weights import Weights
from eventide.instants import TimeRange
from eventide.plan.windows.nodes import CountWindow, Window

BOUNDS = 2
"""The ends of a window by count are two more aggregates: the times of two events."""
SIDE_BY_SIDE = 0.2
"""Panes and windows by count lie side by side, and take this share of the time of others."""


@dataclass(frozen=True, slots=True)
class IndexWork:
    """The work for windows from the index: entries are merged, leaves with their rows read."""

    entries: int
    leaves: int
    rows: int
    slices: int
    windows: int
    attributes: int
    aggregates: int
    scanned: int = 0
    """The rows that are read and sorted as in a replay."""

    def cost(self, weights: Weights) -> Cost:
        """Return the cost."""
        runs = min(self.rows, self.slices + self.leaves)
        attributes = max(1, self.attributes)
        seconds = (
            weights.index_start
            + self.entries * weights.index_entry
            + self.leaves * weights.index_leaf
            + (self.rows - self.scanned) * attributes * weights.index_value
            + self.scanned * (weights.replay_event + (attributes + 2) * weights.replay_value)
            + runs * attributes * weights.index_run
            + self.windows * self.aggregates * weights.window
        )
        return Cost(seconds, rows=self.rows, blocks=self.leaves, intervals=self.slices)


def time_replay_seconds(
    window: Window, aggregates: int, rows: int, times: TimeRange, weights: Weights
) -> float:
    """Return about how long the replay of windows of time takes."""
    length = max(0, times.end_us - times.start_us)
    # Slices are two halos long or more, and each reads one halo of the next.
    halo = max(0, window.size_us - window.slide_us)
    slice_us = max(2 * halo, length * SLICE_ROWS // max(1, rows), 1)
    read = rows * (1 + max(0, length // slice_us - 1) * halo / max(1, length))
    panes = min(read, length / np.gcd(window.size_us, window.slide_us) + 1)
    event = weights.replay_event + aggregates * weights.replay_value
    kept = panes * aggregates * weights.replay_pane
    windows = window_count(window, rows, times) * aggregates
    return float(read * event + kept + windows * weights.window)


def window_count(window: Window, rows: int, times: TimeRange) -> int:
    """Return about how many windows have events: those of the period, fewer for few events."""
    length = max(0, times.end_us - times.start_us)
    of_event = -(-window.size_us // window.slide_us)
    return min((length + window.size_us) // window.slide_us, rows * of_event)


def count_replay_seconds(
    window: CountWindow, aggregates: int, rows: int, weights: Weights
) -> float:
    """Return about how long the replay of windows by count takes."""
    pane = window.slide if window.slide >= window.size else gcd(window.size, window.slide)
    columns = aggregates + BOUNDS
    kept = rows / pane * weights.replay_pane + rows / window.slide * weights.window
    event = weights.replay_event + columns * weights.replay_value
    return rows * event + kept * columns * SIDE_BY_SIDE
