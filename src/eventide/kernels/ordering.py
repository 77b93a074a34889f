"""Are rows in order of (ts, seq), and the order that puts them there."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, frozen, kernel


@kernel
def is_sorted(ts: Int64s, seq: Int64s) -> bool:
    """Whether rows ascend by (ts, seq)."""
    for i in range(1, len(ts)):
        if ts[i] < ts[i - 1] or (ts[i] == ts[i - 1] and seq[i] < seq[i - 1]):
            return False
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
