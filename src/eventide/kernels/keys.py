"""Rows by key: where values stand among those of a key."""

from __future__ import annotations

from eventide.kernels.compiled import Int64s, kernel


@kernel
def search_keys(
    values: Int64s, offsets: Int64s, keys: Int64s, wanted: Int64s, after: bool, found: Int64s
) -> None:
    """Find where wanted values would stand among the ascending values of a key.

    Key k has values [offsets[k], offsets[k + 1]). With `after`, behind equal ones.
    """
    for i in range(len(wanted)):
        low, high = offsets[keys[i]], offsets[keys[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if values[middle] < wanted[i] or (after and values[middle] == wanted[i]):
                low = middle + 1
            else:
                high = middle
        found[i] = low
