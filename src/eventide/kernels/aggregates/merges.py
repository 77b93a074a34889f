"""Merge summaries of runs into those of longer runs: extremes, counts, sums."""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.extremes import better
from eventide.kernels.aggregates.summaries import count_valid, widen
from eventide.kernels.aggregates.sums import two_sum
from eventide.kernels.compiled import Bools, Floats, Int64s, Numbers, kernel


@kernel
def merge_extremes(
    counts: Int64s,
    smallest: Numbers,
    largest: Numbers,
    bounds: Int64s,
    out_counts: Int64s,
    extremes: Numbers,
) -> None:
    """Merge the counts and extremes of each run of entries."""
    for run in range(len(out_counts)):
        count = np.int64(0)
        for i in range(bounds[run], bounds[run + 1]):
            if counts[i] == 0:
                continue
            if count == 0 or better(smallest[i], extremes[0, run], 1):
                extremes[0, run] = smallest[i]
            if count == 0 or better(largest[i], extremes[1, run], -1):
                extremes[1, run] = largest[i]
            count += counts[i]
        out_counts[run] = count


@kernel
def merge_wide_extremes(
    counts: Int64s,
    smallest: Int64s,
    largest: Int64s,
    bounds: Int64s,
    out_counts: Int64s,
    extremes: Int64s,
) -> None:
    """Merge the counts and 128-bit extremes of each run of entries, given low half first."""
    for run in range(len(out_counts)):
        count = np.int64(0)
        for i in range(bounds[run], bounds[run + 1]):
            if counts[i] > 0:
                widen(smallest[2 * i], smallest[2 * i + 1], count == 0, extremes[:2, run], 1)
                widen(largest[2 * i], largest[2 * i + 1], count == 0, extremes[2:, run], -1)
                count += counts[i]
        out_counts[run] = count


@kernel
def count_by_run(valid: Bools, bounds: Int64s, counts: Int64s) -> None:
    """Write how many rows of each run are not null."""
    for run in range(len(counts)):
        start, end = bounds[run], bounds[run + 1]
        counts[run] = count_valid(valid[start:end], end - start)


@kernel
def merge_counts(counts: Int64s, bounds: Int64s, out: Int64s) -> None:
    """Add up the counts of each run of entries."""
    for run in range(len(out)):
        out[run] = 0
        for i in range(bounds[run], bounds[run + 1]):
            out[run] += counts[i]


@kernel
def merge_moments(
    sums: tuple[Floats, Floats],
    squares: tuple[Floats, Floats],
    bounds: Int64s,
    moments: Floats,
) -> None:
    """Add up the pairs of each run of entries, as the accumulators do."""
    for run in range(len(bounds) - 1):
        moments[:, run] = 0.0
        for i in range(bounds[run], bounds[run + 1]):
            moments[0, run], lost = two_sum(moments[0, run], sums[0][i])
            moments[1, run] += lost + sums[1][i]
            moments[2, run], lost = two_sum(moments[2, run], squares[0][i])
            moments[3, run] += lost + squares[1][i]


@kernel
def merge_wholes(high: Int64s, low: Int64s, bounds: Int64s, wholes: Int64s) -> None:
    """Add up the 128-bit integers of each run of entries."""
    for run in range(len(bounds) - 1):
        total_high, total_low = np.int64(0), np.uint64(0)
        for i in range(bounds[run], bounds[run + 1]):
            total = total_low + np.uint64(low[i])
            total_high += high[i] + (np.int64(1) if total < total_low else np.int64(0))
            total_low = total
        wholes[0, run] = total_high
        wholes[1, run] = np.int64(total_low)
