"""The smallest or largest text of each run of rows, by its bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int32s, Int64s, call, inline, kernel

Bytes = npt.NDArray[np.uint8]


@kernel
def best_texts(
    offsets: Int32s, data: Bytes, valid: Bools, bounds: Int64s, sign: int, rows: Int64s
) -> None:
    """Write the row of each run's smallest (sign 1) or largest (-1) text; -1 for none.

    Row i is data[offsets[i]:offsets[i + 1]]. The order is that of bytes, which is also that of the
    letters of UTF-8.
    """
    all_valid = len(valid) == 0
    for run in range(len(rows)):
        best = -1
        best_head = np.uint64(0)
        for i in range(bounds[run], bounds[run + 1]):
            if not (all_valid or valid[i]):
                continue
            head = head_of(data, offsets[i], offsets[i + 1])
            # Most comparisons are over after the first eight bytes.
            if best >= 0 and (head > best_head if sign > 0 else head < best_head):
                continue
            if best < 0 or head != best_head or rest_beats(data, offsets, i, best, sign):
                best = i
                best_head = head
        rows[run] = best


@inline
def head_of(data: Bytes, start: int, end: int) -> np.uint64:
    """Return the first eight bytes as a number that compares as they do, filled up with zeros."""
    eight = data[start : start + 8]
    if end - start >= 8:
        # Written out, this becomes one load.
        return (
            np.uint64(eight[0]) << np.uint64(56)
            | np.uint64(eight[1]) << np.uint64(48)
            | np.uint64(eight[2]) << np.uint64(40)
            | np.uint64(eight[3]) << np.uint64(32)
            | np.uint64(eight[4]) << np.uint64(24)
            | np.uint64(eight[5]) << np.uint64(16)
            | np.uint64(eight[6]) << np.uint64(8)
            | np.uint64(eight[7])
        )
    head = np.uint64(0)
    for place in range(end - start):
        head |= np.uint64(eight[place]) << np.uint64(56 - 8 * place)
    return head


@call
def rest_beats(data: Bytes, offsets: Int32s, row: int, best: int, sign: int) -> bool:
    """Whether a text beats the best one if their first eight bytes are equal."""
    start, length = offsets[row], offsets[row + 1] - offsets[row]
    best_start, best_length = offsets[best], offsets[best + 1] - offsets[best]
    for place in range(min(length, best_length)):
        mine, other = data[start + place], data[best_start + place]
        if mine != other:
            return bool(mine < other if sign > 0 else mine > other)
    return bool(length < best_length if sign > 0 else length > best_length)
