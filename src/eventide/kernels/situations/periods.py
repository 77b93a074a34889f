"""The relation of two periods whose ends may not be known yet.

A run is given by the positions of its start and end; an end at NEVER is not known. The bits are
those of plan/situations/allen.py. A stream of consecutive runs is sorted by start and by end, so
four searches find the relations of all of them to one period.
"""

from __future__ import annotations

from eventide.kernels.compiled import Int64s, call, kernel
from eventide.kernels.situations.runs import NEVER

(BEFORE, AFTER, MEETS, MET_BY, OVERLAPS, OVERLAPPED_BY, STARTS, STARTED_BY) = (
    1, 2, 4, 8, 16, 32, 64, 128,
)  # fmt: skip
(DURING, CONTAINS, FINISHES, FINISHED_BY, EQUALS) = (256, 512, 1024, 2048, 4096)
ANY = 8191


@kernel
def possible(start: int, end: int, other_start: int, other_end: int) -> int:
    """Return the relations that one period may still come to have to another."""
    if end == NEVER and other_end == NEVER:
        if start < other_start:
            return OVERLAPS | FINISHED_BY | CONTAINS
        if start > other_start:
            return OVERLAPPED_BY | FINISHES | DURING
        return STARTS | EQUALS | STARTED_BY
    if end <= other_start:
        return MEETS if end == other_start else BEFORE
    if other_end <= start:
        return MET_BY if other_end == start else AFTER
    if start < other_start:
        if end < other_end:
            return OVERLAPS
        return FINISHED_BY if end == other_end else CONTAINS
    if start > other_start:
        if end > other_end:
            return OVERLAPPED_BY
        return FINISHES if end == other_end else DURING
    if end == other_end:
        return EQUALS
    return STARTS if end < other_end else STARTED_BY


@call
def first_at_least(values: Int64s, low: int, high: int, bound: int) -> int:
    """Return the first of [low, high) whose value is at least the bound, or `high`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@call
def add_range(ranges: Int64s, count: int, low: int, high: int) -> int:
    """Write [low, high) behind the others, or make the last one longer; return how many."""
    if low >= high:
        return count
    if count and ranges[2 * count - 1] == low:
        ranges[2 * count - 1] = high
        return count
    ranges[2 * count] = low
    ranges[2 * count + 1] = high
    return count + 1


@kernel
def certain_ranges(
    start: int,
    end: int,
    mask: int,
    starts: Int64s,
    ends: Int64s,
    now: int,
    low: int,
    high: int,
    ranges: Int64s,
) -> int:
    """Write which runs of [low, high) certainly have a relation of the mask; return how many.

    The mask is what the period may be to a run. Ends behind `now` are not known. Only the last
    run can be open, and its end is behind everything that is compared with it here.
    """
    before = first_at_least(ends, low, high, start)
    met = first_at_least(ends, before, high, start + 1)
    meeting = first_at_least(starts, met, high, end)
    after = meeting if end == NEVER else first_at_least(starts, meeting, high, end + 1)
    count = 0
    if mask & AFTER:
        count = add_range(ranges, count, low, before)
    if mask & MET_BY:
        count = add_range(ranges, count, before, met)
    if met < meeting:
        run_end = ends[met] if ends[met] <= now else NEVER
        if not possible(start, end, starts[met], run_end) & ~mask:
            count = add_range(ranges, count, met, met + 1)
        if mask & CONTAINS:
            count = add_range(ranges, count, met + 1, meeting - 1)
        last = meeting - 1
        if last > met:
            run_end = ends[last] if ends[last] <= now else NEVER
            if not possible(start, end, starts[last], run_end) & ~mask:
                count = add_range(ranges, count, last, meeting)
    if mask & MEETS:
        count = add_range(ranges, count, meeting, after)
    if mask & BEFORE:
        count = add_range(ranges, count, after, high)
    return count


@kernel
def intersect_ranges(left: Int64s, lefts: int, right: Int64s, rights: int, both: Int64s) -> int:
    """Write what lies in ranges of both lists, which ascend; return how many."""
    count = 0
    i = 0
    j = 0
    while i < lefts and j < rights:
        low = max(left[2 * i], right[2 * j])
        high = min(left[2 * i + 1], right[2 * j + 1])
        if low < high:
            both[2 * count] = low
            both[2 * count + 1] = high
            count += 1
        if left[2 * i + 1] < right[2 * j + 1]:
            i += 1
        else:
            j += 1
    return count
