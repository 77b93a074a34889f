"""Check whether rows are sorted, and sort them."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, frozen, kernel, lean_kernel

DIGIT_BITS = 11
DIGIT_VALUES = 1 << DIGIT_BITS
BLOCK = 4096


@kernel
def is_sorted(ts: Int64s, seq: Int64s) -> bool:
    """Whether rows ascend by (ts, seq)."""
    for i in range(1, len(ts)):
        if ts[i] < ts[i - 1] or (ts[i] == ts[i - 1] and seq[i] < seq[i - 1]):
            return False
    return True


@lean_kernel
def ascends(earlier: Int64s, later: Int64s) -> bool:
    """Whether no number is less than the one before it: `later` begins one place behind.

    It looks at a block without a branch, which takes a fraction of the time.
    """
    for start in range(0, len(later), BLOCK):
        ones, others = earlier[start : start + BLOCK], later[start : start + BLOCK]
        falls = 0
        for i in range(len(others)):
            falls += ones[i] > others[i]
        if falls:
            return False
    return True


@lean_kernel
def survey(ts: Int64s, seq: Int64s) -> tuple[int, int, bool]:
    """Return the least and the greatest time of rows, and whether they ascend by (ts, seq)."""
    least, most, ascends = ts[0], ts[0], True
    for i in range(1, len(ts)):
        if ts[i] < ts[i - 1] or (ts[i] == ts[i - 1] and seq[i] < seq[i - 1]):
            ascends = False
        least, most = min(least, ts[i]), max(most, ts[i])
    return least, most, ascends


@lean_kernel
def gather(words: Int64s, order: Int64s, places: Int64s, out: Int64s) -> bool:
    """out[i] = words[order[places[i]]]; returns whether no place is below zero."""
    for i in range(len(places)):
        if places[i] < 0:
            return False
        out[i] = words[order[places[i]]]
    return True


def sorting_order(ts: Int64s, seq: Int64s | None = None) -> Int64s | None:
    """Return the row numbers in order of (ts, seq), or None if the rows are in order.

    Without `seq`, rows of equal `ts` stay in the order they have.

    >>> sorting_order(np.array([3, 1, 2])).tolist()
    [1, 2, 0]
    >>> sorting_order(np.array([1, 1, 2]), np.array([5, 6, 0])) is None
    True
    """
    if is_sorted(frozen(ts), frozen(ts if seq is None else seq)):
        return None
    # Stable sorting of 64-bit numbers is timsort: on a few sorted runs it is a plain merge.
    order = np.argsort(ts, kind="stable")
    if seq is None or is_sorted(frozen(ts[order]), frozen(seq[order])):
        return order
    return np.lexsort((seq, ts))


def ranges(starts: Int64s, lengths: Int64s) -> Int64s:
    """Return the numbers of [start, start + length) for each pair, one after another.

    >>> ranges(np.array([5, 9]), np.array([2, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    numbers: Int64s = np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths)
    return numbers


@kernel
def sort_pairs(
    numbers: Int64s, others: Int64s, sorted_numbers: Int64s, sorted_others: Int64s
) -> None:
    """Sort numbers, and put the others in the same order; equal numbers stay as they are.

    A radix sort from the lowest digit up, with only as many digits as the numbers differ in:
    numbers of rows lie close together, so this is several times as fast as comparing them.
    """
    count = len(numbers)
    if count == 0:
        return
    least, most = numbers[0], numbers[0]
    for i in range(count):
        least, most = min(least, numbers[i]), max(most, numbers[i])
    for i in range(count):
        sorted_numbers[i], sorted_others[i] = numbers[i], others[i]
    held_numbers, held_others = np.empty(count, np.int64), np.empty(count, np.int64)
    starts = np.empty(DIGIT_VALUES, np.int64)
    shift = 0
    while (most - least) >> shift:
        starts[:] = 0
        for i in range(count):
            starts[((sorted_numbers[i] - least) >> shift) & (DIGIT_VALUES - 1)] += 1
        before = 0
        for digit in range(DIGIT_VALUES):
            here = starts[digit]
            starts[digit] = before
            before += here
        for i in range(count):
            digit = ((sorted_numbers[i] - least) >> shift) & (DIGIT_VALUES - 1)
            place = starts[digit]
            starts[digit] += 1
            held_numbers[place] = sorted_numbers[i]
            held_others[place] = sorted_others[i]
        for i in range(count):
            sorted_numbers[i], sorted_others[i] = held_numbers[i], held_others[i]
        shift += DIGIT_BITS


@kernel
def merge_order(values: Int64s, offsets: Int64s, order: Int64s) -> None:
    """Write the stable order of values that ascend in each part [offsets[p], offsets[p + 1]).

    There are few parts.
    """
    place = offsets[:-1].copy()
    for i in range(len(order)):
        least = -1
        for part in range(len(place)):
            at = place[part]
            if at < offsets[part + 1] and (least < 0 or values[at] < values[place[least]]):
                least = part
        order[i] = place[least]
        place[least] += 1
