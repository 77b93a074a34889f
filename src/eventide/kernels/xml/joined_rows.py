"""Rows of joins → distinct rows → one for each query that asked for them."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int64s, kernel, lean_kernel
from eventide.kernels.hashing import GOLDEN, mixed
from eventide.kernels.xml.join_pair import ROW

WITHIN, SINCE, QUERY = range(3)


@kernel
def distinct_rows(found: Int64s, count: int, exact: Bools) -> int:
    """Move the first of equal rows to the front, in their order; return how many there are.

    Rows whose number is in `exact` are distinct as they are.
    """
    length = 16
    while length < 2 * count:
        length *= 2
    table = np.full(length, -1, np.int64)
    kept = 0
    for i in range(count):
        new = True
        if not exact[found[i, ROW]]:
            word = np.uint64(0)
            for j in range(found.shape[1]):
                word = mixed(word * GOLDEN + np.uint64(found[i, j]))
            place = np.int64(word & np.uint64(length - 1))
            while new and table[place] >= 0:
                same = True
                for j in range(found.shape[1]):
                    same = same and found[table[place], j] == found[i, j]
                new = not same
                place = (place + 1) & (length - 1)
            if new:
                table[place] = kept
        if new:
            for j in range(found.shape[1]):
                found[kept, j] = found[i, j]
            kept += 1
    return kept


@lean_kernel
def count_asking(
    found: Int64s, elapsed: Int64s, earliest: Int64s, starts: Int64s, asking: Int64s
) -> int:
    """Return how many rows `write_asking` writes."""
    count = 0
    for i in range(len(found)):
        for place in range(starts[found[i, ROW]], starts[found[i, ROW] + 1]):
            if asking[place, WITHIN] < elapsed[i]:
                break
            count += asking[place, SINCE] <= earliest[i]
    return count


@lean_kernel
def write_asking(
    found: Int64s,
    elapsed: Int64s,
    earliest: Int64s,
    starts: Int64s,
    asking: Int64s,
    out: Int64s,
) -> None:
    """Write, for each row, the queries that ask for it: their number, and which row.

    `asking` has the queries of each row, the longest time first: how far apart documents may be,
    from which document on it counts, and its number. `elapsed` is how far those of a row are apart,
    and `earliest` the number of the first of them.
    """
    count = 0
    for i in range(len(found)):
        for place in range(starts[found[i, ROW]], starts[found[i, ROW] + 1]):
            if asking[place, WITHIN] < elapsed[i]:
                break
            if asking[place, SINCE] <= earliest[i]:
                out[count, 0] = asking[place, QUERY]
                out[count, 1] = i
                count += 1
