"""Numbers of conditions in order, each once."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, call_lean, lean_kernel

LANES = 16
"""Numbers that are compared at a time."""
_FEW = 4 * LANES
_NONE = np.iinfo(np.int64).min
_MOST = np.iinfo(np.int64).max


@call_lean
def sort_once(numbers: Int64s, first: int, last: int, spare: Int64s) -> int:
    """Sort numbers[first:last] and leave out those that come again; return the end.

    There is room for `LANES` numbers behind the last one, and for as many in `spare` as are sorted.
    """
    if last - first > _FEW:
        sort_runs(numbers, first, last, spare)
        return once_each(numbers, first, last)
    # The place of each is how many are less. To count them all takes no branch.
    blocks = (last - first + LANES - 1) // LANES
    for i in range(last, first + blocks * LANES):
        numbers[i] = _MOST
    for i in range(last - first):
        spare[i] = _NONE
    for i in range(first, last):
        number, rank = numbers[i], np.int64(0)
        for block in range(blocks):
            at = first + block * LANES
            for lane in range(LANES):
                rank += np.int64(numbers[at + lane] < number)
        spare[rank] = number
    end = np.int64(first)
    for i in range(last - first):
        numbers[end] = spare[i]
        end += np.int64(spare[i] != _NONE)
    return int(end)


@call_lean
def sort_runs(numbers: Int64s, first: int, last: int, spare: Int64s) -> None:
    """Sort numbers[first:last], which is a few runs that ascend."""
    runs = 2
    while runs > 1:
        runs = 0
        start = first
        while start < last:
            middle = start + 1
            while middle < last and numbers[middle - 1] <= numbers[middle]:
                middle += 1
            if middle == last:
                runs += 1
                break
            end = middle + 1
            while end < last and numbers[end - 1] <= numbers[end]:
                end += 1
            merge_runs(numbers, start, middle, end, spare)
            runs += 1
            start = end


@call_lean
def merge_runs(numbers: Int64s, first: int, middle: int, last: int, spare: Int64s) -> None:
    """Merge two runs that ascend and lie side by side."""
    count = middle - first
    for i in range(count):
        spare[i] = numbers[first + i]
    left, right, at = 0, middle, first
    while left < count:
        if right < last and numbers[right] < spare[left]:
            numbers[at] = numbers[right]
            right += 1
        else:
            numbers[at] = spare[left]
            left += 1
        at += 1


@call_lean
def once_each(numbers: Int64s, first: int, last: int) -> int:
    """Leave out numbers that come again in numbers[first:last], in order; return the end."""
    at = first
    for i in range(first, last):
        if at == first or numbers[at - 1] != numbers[i]:
            numbers[at] = numbers[i]
            at += 1
    return at


@lean_kernel
def merge_pairs(
    events: Int64s,
    numbers: Int64s,
    other_events: Int64s,
    other_numbers: Int64s,
    merged_events: Int64s,
    merged_numbers: Int64s,
) -> int:
    """Merge two lists of pairs in order of event and number, each pair once; return how many."""
    left, right, count = 0, 0, 0
    while left < len(events) or right < len(other_events):
        take_left = right == len(other_events)
        if not take_left and left < len(events):
            take_left = events[left] < other_events[right] or (
                events[left] == other_events[right] and numbers[left] <= other_numbers[right]
            )
        if take_left:
            event, number = events[left], numbers[left]
            left += 1
        else:
            event, number = other_events[right], other_numbers[right]
            right += 1
        if count and merged_events[count - 1] == event and merged_numbers[count - 1] == number:
            continue
        merged_events[count], merged_numbers[count] = event, number
        count += 1
    return count
