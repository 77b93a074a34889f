"""Is it sorted, and the order that sorts it."""

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


def sorting_order(ts: Int64s, seq: Int64s) -> Int64s | None:
    """Return the row numbers in order of (ts, seq), or None when they are in order already."""
    if is_sorted(frozen(ts), frozen(seq)):
        return None
    return np.lexsort((seq, ts))
