"""Quantiles, distinct and most frequent values of frames, from the ranks of values.

Rank r stands for the r-th smallest different value. Frames are [left, right); neither bound ever
decreases.
"""

from __future__ import annotations

from eventide.kernels.compiled import Floats, Int64s, inline, kernel


@inline
def count_rank(tree: Int64s, rank: int, more: int) -> None:
    """Count a rank up or down in a tree of partial sums (Fenwick's)."""
    place = rank + 1
    while place < len(tree):
        tree[place] += more
        place += place & -place


@inline
def rank_at(tree: Int64s, top: int, place: int) -> int:
    """Return the rank of the value at a place, counted from 0, of the values in a tree."""
    found = 0
    step = top
    left = place
    while step > 0:
        following = found + step
        if following < len(tree) and tree[following] <= left:
            found = following
            left -= tree[following]
        step >>= 1
    return found


@kernel
def ranks_at_share(
    ranks: Int64s,
    left: Int64s,
    right: Int64s,
    share: float,
    form: int,
    tree: Int64s,
    low: Int64s,
    high: Int64s,
    between: Floats,
) -> None:
    """Write the ranks of the values around a share of each frame, and where between them it is.

    With n values in order, form 0 takes the place share * (n - 1), form 1 the first value with at
    least that share of the values up to it, form 2 the place share * (n - 1) rounded down. A frame
    without values has the rank -1. `tree` has a place for each rank and one more, all zero.
    """
    top = 1
    while 2 * top < len(tree):
        top *= 2
    start = 0
    end = 0
    for frame in range(len(left)):
        if left[frame] >= end:
            while start < end:
                count_rank(tree, ranks[start], -1)
                start += 1
            start = left[frame]
            end = start
        while start < left[frame]:
            count_rank(tree, ranks[start], -1)
            start += 1
        while end < right[frame]:
            count_rank(tree, ranks[end], 1)
            end += 1
        count = end - start
        low[frame] = -1
        high[frame] = -1
        between[frame] = 0.0
        if count == 0:
            continue
        if form == 1:
            along = share * count
            place = int(along) if along == int(along) else int(along) + 1
            low[frame] = rank_at(tree, top, max(place - 1, 0))
            high[frame] = low[frame]
            continue
        along = share * (count - 1)
        place = int(along)
        low[frame] = rank_at(tree, top, place)
        high[frame] = low[frame]
        if form == 0 and along != place:
            high[frame] = rank_at(tree, top, place + 1)
            between[frame] = along - place


@kernel
def count_ranks(
    ranks: Int64s, left: Int64s, right: Int64s, counts: Int64s, distinct: Int64s
) -> None:
    """Write how many different ranks each frame has; `counts` has a place for each, all zero."""
    start = 0
    end = 0
    many = 0
    for frame in range(len(left)):
        while start < min(left[frame], end):
            counts[ranks[start]] -= 1
            many -= 1 if counts[ranks[start]] == 0 else 0
            start += 1
        start = left[frame]
        end = max(end, start)
        while end < right[frame]:
            many += 1 if counts[ranks[end]] == 0 else 0
            counts[ranks[end]] += 1
            end += 1
        distinct[frame] = many


@kernel
def most_frequent_ranks(
    ranks: Int64s, left: Int64s, right: Int64s, counts: Int64s, found: Int64s, times: Int64s
) -> None:
    """Write the most frequent ranks of each frame and their counts; of equal ones the smaller.

    Places behind the last have the rank -1. `counts` has a place for each rank, all zero.
    """
    wanted = found.shape[1]
    for frame in range(len(left)):
        found[frame, :] = -1
        for i in range(left[frame], right[frame]):
            counts[ranks[i]] += 1
        listed = 0
        for i in range(left[frame], right[frame]):
            rank = ranks[i]
            count = counts[rank]
            if count == 0:
                continue
            counts[rank] = 0
            slot = listed
            while slot > 0 and (
                times[frame, slot - 1] < count
                or (times[frame, slot - 1] == count and found[frame, slot - 1] > rank)
            ):
                if slot < wanted:
                    found[frame, slot] = found[frame, slot - 1]
                    times[frame, slot] = times[frame, slot - 1]
                slot -= 1
            if slot < wanted:
                found[frame, slot] = rank
                times[frame, slot] = count
                listed = min(listed + 1, wanted)
