"""Pairs of periods: where partners lie in an order, and those among them that reach far enough.

Every relation of Allen is a run of neighbours in one of two orders of the other side, by (start,
end) or by (end, start), or those rows of such a run whose second bound lies beyond a limit. The
latter are found by a tree of the largest values, so that rows that do not fit cost nothing.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s, inline, kernel


@kernel
def search_pairs(
    major: Int64s,
    minor: Int64s,
    offsets: Int64s,
    keys: Int32s,
    wanted_major: Int64s,
    wanted_minor: Int64s,
    after: bool,
    found: Int64s,
) -> None:
    """Find where wanted pairs would stand among the ascending (major, minor) of a key.

    Key k has rows [offsets[k], offsets[k + 1]). With `after`, behind equal pairs.
    """
    for i in range(len(keys)):
        low, high = offsets[keys[i]], offsets[keys[i] + 1]
        one, other = wanted_major[i], wanted_minor[i]
        while low < high:
            middle = (low + high) // 2
            if major[middle] < one or (
                major[middle] == one
                and (minor[middle] < other or (after and minor[middle] == other))
            ):
                low = middle + 1
            else:
                high = middle
        found[i] = low


@kernel
def grow_tree(values: Int64s, tree: Int64s) -> None:
    """Write the largest value below every node; values are the leaves, the last half of `tree`.

    The length of `tree` is twice a power of two that is at least the length of `values`, and it is
    initialised with the smallest number.
    """
    size = len(tree) // 2
    for i in range(len(values)):
        tree[size + i] = values[i]
    for node in range(size - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])


@inline
def next_above(tree: Int64s, place: int, limit: int) -> int:
    """Return the first leaf from `place` on that is above the limit; past all if there is none."""
    size = len(tree) // 2
    if place >= size:
        return size
    node = place + size
    while tree[node] <= limit:
        # A right child has no neighbour below its parent.
        while node & 1:
            node >>= 1
        if node == 0:
            return size
        node += 1
    while node < size:
        node *= 2
        if tree[node] <= limit:
            node += 1
    return node - size


@kernel
def count_above(tree: Int64s, low: Int64s, high: Int64s, limits: Int64s, counts: Int64s) -> None:
    """Count the leaves of [low, high) that are above the limit."""
    for i in range(len(low)):
        count = 0
        place = low[i]
        while place < high[i]:
            place = next_above(tree, place, limits[i])
            if place < high[i]:
                count += 1
            place += 1
        counts[i] = count


@kernel
def any_above(tree: Int64s, low: Int64s, high: Int64s, limits: Int64s, found: Bools) -> None:
    """Write for each range whether a leaf of [low, high) is above the limit."""
    for i in range(len(low)):
        found[i] = low[i] < high[i] and next_above(tree, low[i], limits[i]) < high[i]


@kernel
def fill_above(
    tree: Int64s, low: Int64s, high: Int64s, limits: Int64s, ones: Int64s, others: Int64s
) -> None:
    """Write the pairs that `count_above` counted: the number of the limit, and the leaf."""
    written = 0
    for i in range(len(low)):
        place = low[i]
        while place < high[i]:
            place = next_above(tree, place, limits[i])
            if place < high[i]:
                ones[written] = i
                others[written] = place
                written += 1
            place += 1


@kernel
def fill_between(low: Int64s, high: Int64s, ones: Int64s, others: Int64s) -> None:
    """Write a pair for every place of [low, high): the number of the range, and the place."""
    written = 0
    for i in range(len(low)):
        for place in range(low[i], high[i]):
            ones[written] = i
            others[written] = place
            written += 1


def tree_of(values: Int64s) -> Int64s:
    """Return a tree of the largest values."""
    size = 1
    while size < len(values):
        size *= 2
    tree = np.full(2 * size, np.iinfo(np.int64).min, np.int64)
    grow_tree(values, tree)
    return tree
