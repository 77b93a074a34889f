"""Summaries of runs of rows: count, extremes, exact sums and sums of squares, in one pass.

Run r is the rows [bounds[r], bounds[r + 1]). An empty `valid` means that no row is null. Where
a run has no value its count is zero and its extremes mean nothing.

Sums of floats are pairs, as in sums.py. One pair is a chain of additions that wait for each
other, and asks of every value whether it is finite; so a long run is added in many lanes,
without asking, and only a run whose total turns out not to be finite is done again with care.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from eventide.kernels.aggregates.extremes import better
from eventide.kernels.aggregates.sums import two_product, two_sum
from eventide.kernels.compiled import Bools, Floats, Int32s, Int64s, Numbers, inlined, kernel

Bytes = npt.NDArray[np.uint8]

LANES = 32  # sixteen fill two of the widest vector registers; 32 measured best
LONG_RUN = 4 * LANES  # below this, putting the lanes together costs more than they save


def generate_fused(_typing: Any, a: Any, b: Any, c: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ANN401
    """Return the type and the instruction of a * b + c, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.fma(*args)

    return types.float64(a, b, c), generate


# What rounding a product lost, in one instruction instead of the seventeen of `two_product`.
fused: Callable[..., float] = intrinsic(generate_fused)


@inlined
def two_sum_of_finite(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum and what rounding lost; a NaN if the sum is not finite."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def add_in_lanes(values: Numbers, valid: Bools, lanes: Floats) -> None:
    """Add up values in lanes: sums, what they lost, sums of squares, what those lost.

    After these four come the lanes' smallest and largest values, all LANES wide.
    """
    lanes[: 4 * LANES] = 0.0
    lanes[4 * LANES : 5 * LANES] = np.inf
    lanes[5 * LANES :] = -np.inf
    all_valid = len(valid) == 0
    for start in range(0, len(values), LANES):
        # A slice starts at zero, so that the loop over it needs no test for negative places and
        # becomes vector instructions: four times as fast.
        block = values[start : start + LANES]
        if all_valid and len(block) == LANES:
            for j in range(LANES):
                add_to_lane(float(block[j]), j, lanes)
        elif all_valid:
            for j in range(len(block)):
                add_to_lane(float(block[j]), j, lanes)
        else:
            block_valid = valid[start : start + LANES]
            for j in range(len(block)):
                if block_valid[j]:
                    add_to_lane(float(block[j]), j, lanes)


@inlined
def add_to_lane(value: float, lane: int, lanes: Floats) -> None:
    """Add one value to one lane."""
    total, lost = two_sum_of_finite(lanes[lane], value)
    lanes[lane] = total
    lanes[LANES + lane] += lost
    square = value * value
    square_lost = fused(value, value, -square)
    total, lost = two_sum_of_finite(lanes[2 * LANES + lane], square)
    lanes[2 * LANES + lane] = total
    lanes[3 * LANES + lane] += lost + square_lost
    smallest, largest = lanes[4 * LANES + lane], lanes[5 * LANES + lane]
    lanes[4 * LANES + lane] = value if value < smallest else smallest
    lanes[5 * LANES + lane] = value if value > largest else largest


@kernel
def fold_lanes(lanes: Floats, moments: Floats) -> None:
    """Put the lanes of sums and of squares together into two pairs."""
    for pair in range(2):
        high, low = 0.0, 0.0
        for j in range(2 * LANES * pair, 2 * LANES * pair + LANES):
            high, lost = two_sum_of_finite(high, lanes[j])
            low += lost + lanes[LANES + j]
        moments[2 * pair] = high
        moments[2 * pair + 1] = low


@kernel
def add_in_turn(values: Floats, valid: Bools, moments: Floats, extremes: Floats) -> None:
    """Add up a short run, without asking whether its values are finite; find its extremes."""
    all_valid = len(valid) == 0
    high, low, square_high, square_low = 0.0, 0.0, 0.0, 0.0
    smallest, largest = np.inf, -np.inf
    for i in range(len(values)):
        if all_valid or valid[i]:
            value = values[i]
            high, lost = two_sum_of_finite(high, value)
            low += lost
            square = value * value
            square_high, lost = two_sum_of_finite(square_high, square)
            square_low += lost + fused(value, value, -square)
            smallest = value if value < smallest else smallest
            largest = value if value > largest else largest
    moments[0], moments[1] = high, low
    moments[2], moments[3] = square_high, square_low
    extremes[0], extremes[1] = smallest, largest


@kernel
def add_one_by_one(values: Numbers, valid: Bools, moments: Floats) -> None:
    """Add up values and squares as the accumulators do, whatever is among them."""
    all_valid = len(valid) == 0
    moments[:] = 0.0
    for i in range(len(values)):
        if all_valid or valid[i]:
            value = float(values[i])
            moments[0], lost = two_sum(moments[0], value)
            moments[1] += lost
            square, square_lost = two_product(value, value)
            moments[2], lost = two_sum(moments[2], square)
            moments[3] += lost + square_lost


@kernel
def count_valid(valid: Bools, rows: int) -> int:
    """Return how many of a run's rows are not null."""
    if len(valid) == 0:
        return rows
    count = 0
    for i in range(len(valid)):
        count += 1 if valid[i] else 0
    return count


@kernel
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


@inlined
def spelled_once(value: float) -> float:
    """Return one zero for both, and one NaN for the many."""
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


@inlined
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


@inlined
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


@inlined
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


@inlined
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
def best_texts(
    offsets: Int32s, data: Bytes, valid: Bools, bounds: Int64s, sign: int, rows: Int64s
) -> None:
    """Write the row of each run's smallest (sign 1) or largest (-1) text; -1 for none.

    Row i is data[offsets[i]:offsets[i + 1]]. Order is that of bytes, which is also that of the
    letters of UTF-8.
    """
    all_valid = len(valid) == 0
    for run in range(len(rows)):
        best = -1
        best_head = np.uint64(0)
        for i in range(bounds[run], bounds[run + 1]):
            if not (all_valid or valid[i]):
                continue
            head = head_of(data, offsets[i], offsets[i + 1])
            # Most comparisons are over after the first eight bytes.
            if best >= 0 and (head > best_head if sign > 0 else head < best_head):
                continue
            if best < 0 or head != best_head or rest_beats(data, offsets, i, best, sign):
                best = i
                best_head = head
        rows[run] = best


@inlined
def head_of(data: Bytes, start: int, end: int) -> np.uint64:
    """Return the first eight bytes as a number that compares as they do; zeros fill it up."""
    eight = data[start : start + 8]
    if end - start >= 8:
        # Written out, this becomes one load.
        return (
            np.uint64(eight[0]) << np.uint64(56)
            | np.uint64(eight[1]) << np.uint64(48)
            | np.uint64(eight[2]) << np.uint64(40)
            | np.uint64(eight[3]) << np.uint64(32)
            | np.uint64(eight[4]) << np.uint64(24)
            | np.uint64(eight[5]) << np.uint64(16)
            | np.uint64(eight[6]) << np.uint64(8)
            | np.uint64(eight[7])
        )
    head = np.uint64(0)
    for place in range(end - start):
        head |= np.uint64(eight[place]) << np.uint64(56 - 8 * place)
    return head


@kernel
def rest_beats(data: Bytes, offsets: Int32s, row: int, best: int, sign: int) -> bool:
    """Whether a text beats the best one, where their first eight bytes are the same."""
    start, length = offsets[row], offsets[row + 1] - offsets[row]
    best_start, best_length = offsets[best], offsets[best + 1] - offsets[best]
    for place in range(min(length, best_length)):
        mine, other = data[start + place], data[best_start + place]
        if mine != other:
            return bool(mine < other if sign > 0 else mine > other)
    return bool(length < best_length if sign > 0 else length > best_length)


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


@kernel
def second_by_run(keys: Numbers, valid: Bools, bounds: Int64s, sign: int, rows: Int64s) -> None:
    """Write the row of each run's second smallest (sign 1) or largest (-1) value; -1 for none.

    Equal values count apart: the second largest of 7, 7 and 3 is 7.
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
