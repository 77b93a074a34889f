"""Summaries of runs of rows: count, extremes, exact sums and sums of squares, in one pass.

Run r is the rows [bounds[r], bounds[r + 1]). An empty `valid` means that no row is null. If a run
has no value, its count is zero and its extremes are arbitrary.

Sums of floats are pairs, as in sums.py; a long run is added in lanes (lanes.py).
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.extremes import better
from eventide.kernels.aggregates.lanes import (
    LANES,
    LONG_RUN,
    add_in_lanes,
    add_in_turn,
    add_one_by_one,
    fold_lanes,
)
from eventide.kernels.compiled import Bools, Floats, Int64s, Numbers, call, inline, kernel


@call
def count_valid(valid: Bools, rows: int) -> int:
    """Return how many of a run's rows are not null."""
    if len(valid) == 0:
        return rows
    count = 0
    for i in range(len(valid)):
        count += 1 if valid[i] else 0
    return count


@call
def find_extremes(values: Numbers, valid: Bools, extremes: Numbers) -> None:
    """Write the smallest and the largest value; a NaN is larger than every number."""
    all_valid = len(valid) == 0
    found = False
    for i in range(len(values)):
        if all_valid or valid[i]:
            value = values[i]
            if not found:
                extremes[0] = value
                extremes[1] = value
                found = True
            if better(value, extremes[0], 1):
                extremes[0] = value
            if better(value, extremes[1], -1):
                extremes[1] = value


@inline
def spelled_once(value: float) -> float:
    """Return one zero for both, and one NaN for all."""
    return np.nan if np.isnan(value) else value + 0.0


@kernel
def summarise_floats(
    values: Floats, valid: Bools, bounds: Int64s, counts: Int64s, extremes: Floats, moments: Floats
) -> None:
    """Write each run's count, its smallest and largest value, and its sums.

    `moments` has four rows: the pair of the sum, then the pair of the sum of squares.
    """
    lanes = np.empty(6 * LANES)
    for run in range(len(counts)):
        start, end = bounds[run], bounds[run + 1]
        part, part_valid = values[start:end], valid[start:end]
        summarise_floats_of_run(part, part_valid, lanes, (counts, extremes, moments), run)


@inline
def summarise_floats_of_run(
    part: Floats, valid: Bools, lanes: Floats, out: tuple[Int64s, Floats, Floats], run: int
) -> None:
    """Write the summary of one run of floats."""
    counts, extremes, moments = out
    totals, ends = moments[:, run], extremes[:, run]
    counts[run] = count_valid(valid, len(part))
    if len(part) < LONG_RUN:
        add_in_turn(part, valid, totals, ends)
    else:
        add_in_lanes(part, valid, lanes)
        fold_lanes(lanes, totals)
        ends[0] = np.min(lanes[4 * LANES : 5 * LANES])
        ends[1] = np.max(lanes[5 * LANES :])
    # A NaN or an infinity anywhere shows in the total.
    if not np.isfinite(totals[0] + totals[1] + totals[2] + totals[3]):
        add_one_by_one(part, valid, totals)
        find_extremes(part, valid, ends)
    ends[0] = spelled_once(ends[0])
    ends[1] = spelled_once(ends[1])


@kernel
def summarise_integers(
    values: Int64s,
    valid: Bools,
    bounds: Int64s,
    counts: Int64s,
    extremes: Int64s,
    wholes: Int64s,
    moments: Floats,
) -> None:
    """Write each run's count, extremes, exact 128-bit sum, and sums of it as doubles.

    `wholes` has two rows, the high and low half; a run has fewer than 2^31 rows.
    """
    lanes = np.empty(6 * LANES)
    for run in range(len(counts)):
        start, end = bounds[run], bounds[run + 1]
        part, part_valid = values[start:end], valid[start:end]
        summarise_keys_of_run(part, part_valid, counts, extremes, run)
        # Halves of 32 bits add up without a carry, and a loop without one becomes vector
        # instructions.
        upper, lower = np.int64(0), np.int64(0)
        if len(part_valid) == 0:
            for i in range(len(part)):
                upper += part[i] >> 32
                lower += part[i] & 0xFFFFFFFF
        else:
            for i in range(len(part)):
                if part_valid[i]:
                    upper += part[i] >> 32
                    lower += part[i] & 0xFFFFFFFF
        shifted = np.uint64(upper) << np.uint64(32)
        total = shifted + np.uint64(lower)
        wholes[0, run] = (upper >> 32) + (np.int64(1) if total < shifted else np.int64(0))
        wholes[1, run] = np.int64(total)
        # No integer is so large that its square were not finite.
        if end - start < LONG_RUN:
            add_one_by_one(part, part_valid, moments[:, run])
        else:
            add_in_lanes(part, part_valid, lanes)
            fold_lanes(lanes, moments[:, run])


@inline
def summarise_keys_of_run(
    part: Int64s, valid: Bools, counts: Int64s, extremes: Int64s, run: int
) -> None:
    """Write the count and the extremes of one run of integers."""
    counts[run] = count_valid(valid, len(part))
    smallest, largest = np.int64(2**63 - 1), np.int64(-(2**63))
    if len(valid) == 0:
        for i in range(len(part)):
            smallest = min(smallest, part[i])
            largest = max(largest, part[i])
    else:
        for i in range(len(part)):
            if valid[i]:
                smallest = min(smallest, part[i])
                largest = max(largest, part[i])
    extremes[0, run] = smallest
    extremes[1, run] = largest


@kernel
def summarise_keys(
    values: Int64s, valid: Bools, bounds: Int64s, counts: Int64s, extremes: Int64s
) -> None:
    """Write each run's count, and its smallest and largest integer."""
    for run in range(len(counts)):
        start, end = bounds[run], bounds[run + 1]
        part, part_valid = values[start:end], valid[start:end]
        summarise_keys_of_run(part, part_valid, counts, extremes, run)


@inline
def wide_less(high: int, low: int, other_high: int, other_low: int) -> bool:
    """Whether one 128-bit integer is smaller than another; low halves have no sign."""
    if high != other_high:
        return high < other_high
    return bool(np.uint64(low) < np.uint64(other_low))


@kernel
def summarise_decimals(
    words: Int64s, valid: Bools, bounds: Int64s, counts: Int64s, extremes: Int64s, wholes: Int64s
) -> None:
    """Write each run's count, extremes and sum of 128-bit integers, given low half first.

    `extremes` has four rows: low and high half of the smallest, then of the largest.
    """
    all_valid = len(valid) == 0
    for run in range(len(counts)):
        counts[run] = 0
        high, low = np.int64(0), np.uint64(0)
        for i in range(bounds[run], bounds[run + 1]):
            if all_valid or valid[i]:
                widen(words[2 * i], words[2 * i + 1], counts[run] == 0, extremes[:2, run], 1)
                widen(words[2 * i], words[2 * i + 1], counts[run] == 0, extremes[2:, run], -1)
                counts[run] += 1
                total = low + np.uint64(words[2 * i])
                high += words[2 * i + 1] + (np.int64(1) if total < low else np.int64(0))
                low = total
        wholes[0, run] = high
        wholes[1, run] = np.int64(low)


@inline
def widen(low: int, high: int, first: bool, held: Int64s, sign: int) -> None:
    """Take a 128-bit integer as the smallest (sign 1) or largest (-1) if it is."""
    if (
        first
        or (sign > 0 and wide_less(high, low, held[1], held[0]))
        or (sign < 0 and wide_less(held[1], held[0], high, low))
    ):
        held[0] = low
        held[1] = high


@kernel
def second_by_run(keys: Numbers, valid: Bools, bounds: Int64s, sign: int, rows: Int64s) -> None:
    """Write the row of each run's second smallest (sign 1) or largest (-1) value; -1 for none.

    Equal values count separately: the second largest of 7, 7 and 3 is 7.
    """
    all_valid = len(valid) == 0
    for run in range(len(rows)):
        first, second = -1, -1
        for i in range(bounds[run], bounds[run + 1]):
            if not (all_valid or valid[i]):
                continue
            if first < 0 or better(keys[i], keys[first], sign):
                second = first
                first = i
            elif second < 0 or better(keys[i], keys[second], sign):
                second = i
        rows[run] = second
