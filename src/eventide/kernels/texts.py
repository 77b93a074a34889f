"""Short texts as numbers: equal texts have equal numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s, Int64s, inline, lean_kernel
from eventide.kernels.hashing import GOLDEN, Bytes

Words = npt.NDArray[np.uint64]

LONGEST_TEXT = 15
"""So many bytes of a text and its length fit two words."""
SPARE_BYTES = 24
"""So many bytes behind the last text may be read."""
TOO_MANY = -1
TOO_LONG = -2

_BYTE = np.int64(8)
_LENGTH_AT = np.uint64(56)


@inline
def _bytes_at(words: Words, place: np.int64, count: np.int64) -> np.uint64:
    """Return up to eight bytes from a place on, without a branch."""
    at, shift = place >> np.int64(3), np.uint64((place & np.int64(7)) << np.int64(3))
    word = (words[at] >> shift) | ((words[at + 1] << np.uint64(1)) << (np.uint64(63) - shift))
    half = np.uint64(count << np.int64(2))
    return np.uint64(word & (((np.uint64(1) << half) << half) - np.uint64(1)))


@lean_kernel
def number_texts(
    offsets: Int32s,
    words: Words,
    low: Words,
    high: Words,
    numbers: Int32s,
    known: int,
    codes: Int32s,
    first: Int64s,
) -> int:
    """Number distinct texts in order of first occurrence; return how many there are.

    Text i is the bytes [offsets[i], offsets[i + 1]) of `words`, which has `SPARE_BYTES` behind
    them. `low`, `high` and `numbers`, -1 where a place is free, are a hash table of `known` texts;
    its size is a power of two. `codes[i]` is the number of text i, `first[n]` the first text with
    number known + n.
    Returns `TOO_LONG` for a text over `LONGEST_TEXT`, `TOO_MANY` if `first` is full.
    """
    shift = np.uint64(65)
    for _ in range(65):
        shift -= np.uint64(1)
        if np.int64(1) << np.int64(np.uint64(64) - shift) >= len(numbers):
            break
    mask = np.int64(len(numbers) - 1)
    count = known
    for i in range(len(codes)):
        start = np.int64(offsets[i])
        length = np.int64(offsets[i + 1]) - start
        if length > LONGEST_TEXT:
            return TOO_LONG
        one = _bytes_at(words, start, min(length, _BYTE))
        other = np.uint64(length) << _LENGTH_AT
        if length > _BYTE:
            other |= _bytes_at(words, start + _BYTE, length - _BYTE)
        mix = (one ^ (other * GOLDEN)) * GOLDEN
        place = np.int64((mix ^ (mix >> np.uint64(29))) * GOLDEN >> shift)
        while numbers[place] >= 0 and (low[place] != one or high[place] != other):
            place = (place + np.int64(1)) & mask
        if numbers[place] < 0:
            if count - known == len(first):
                return TOO_MANY
            low[place], high[place], numbers[place] = one, other, count
            first[count - known] = i
            count += 1
        codes[i] = numbers[place]
    return count


@lean_kernel
def gather_texts(offsets: Int32s, data: Bytes, places: Int64s, ends: Int32s, out: Bytes) -> int:
    """Write the texts at some places one behind the other, and where each ends behind a first zero.

    Returns how many bytes they take: only if `out` has so many is it written.
    """
    total = 0
    ends[0] = 0
    for i in range(len(places)):
        total += offsets[places[i] + 1] - offsets[places[i]]
        ends[i + 1] = total
    if total <= len(out):
        for i in range(len(places)):
            start, at = offsets[places[i]], ends[i]
            for byte in range(ends[i + 1] - at):
                out[at + byte] = data[start + byte]
    return total
