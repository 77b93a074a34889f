"""Which row holds the smallest, largest, first or last value, by group and by frame.

Kernels return row numbers, so that values of any type can be taken by them; -1 stands for none.
A NaN is larger than every number, as in the comparison operators.
"""

from __future__ import annotations

from eventide.kernels.compiled import Bools, Codes, Int64s, Numbers, inline, kernel


@inline
def better(a: float, b: float, sign: int) -> bool:
    """Whether `a` is smaller than `b` (sign 1) or larger (sign -1)."""
    if sign > 0:
        return a < b or (b != b and a == a)  # noqa: PLR0124 - only a NaN differs from itself
    return a > b or (a != a and b == b)  # noqa: PLR0124


@kernel
def best_by_group(values: Numbers, valid: Bools, groups: Int64s, sign: int, best: Int64s) -> None:
    """best[g] = the first row of group g with its smallest (sign 1) or largest (-1) value.

    `best` starts at -1. An empty `valid` means that all rows are valid.
    """
    all_valid = len(valid) == 0
    for i in range(len(groups)):
        if all_valid or valid[i]:
            held = best[groups[i]]
            if held < 0 or better(values[i], values[held], sign):
                best[groups[i]] = i


@kernel
def first_by_group(groups: Codes, first: Int64s) -> None:
    """first[g] = the first row of group g; `first` starts at -1."""
    for i in range(len(groups)):
        if first[groups[i]] < 0:
            first[groups[i]] = i


@kernel
def last_by_group(groups: Int64s, last: Int64s) -> None:
    """last[g] = the last row of group g."""
    for i in range(len(groups)):
        last[groups[i]] = i


@kernel
def best_by_frame(
    values: Numbers,
    valid: Bools,
    left: Int64s,
    right: Int64s,
    sign: int,
    waiting: Int64s,
    best: Int64s,
) -> None:
    """best[f] = the row of frame [left, right) with its smallest (sign 1) or largest (-1) value.

    Neither bound ever decreases. `waiting` is scratch as long as `values`: the rows that may still
    become the best, best first; a row that a later one beats never will.
    """
    all_valid = len(valid) == 0
    head = 0
    tail = 0
    end = 0
    for frame in range(len(left)):
        end = max(end, left[frame])
        while end < right[frame]:
            if all_valid or valid[end]:
                while tail > head and better(values[end], values[waiting[tail - 1]], sign):
                    tail -= 1
                waiting[tail] = end
                tail += 1
            end += 1
        while head < tail and waiting[head] < left[frame]:
            head += 1
        best[frame] = waiting[head] if head < tail else -1
