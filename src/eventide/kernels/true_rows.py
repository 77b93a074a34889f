"""The numbers of the rows on which a column of booleans is true."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s, inline, lean_kernel

Words = npt.NDArray[np.uint64]

WORD_BITS = 64

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_OCTETS = np.uint64(0x0F0F0F0F0F0F0F0F)
_EACH_OCTET = np.uint64(0x0101010101010101)


@inline
def _count_bits(word: np.uint64) -> np.int64:
    """Return how many bits are set; LLVM knows this text, and makes one instruction of it."""
    word = word - ((word >> np.uint64(1)) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _OCTETS
    return np.int64((word * _EACH_OCTET) >> np.uint64(56))


@lean_kernel
def true_rows(words: Words, first: int, found: Int32s) -> None:
    """Write the numbers of the bits that are set, less `first`, lowest first.

    It takes as long as there are words and bits set: a look at each bit takes ten times as long
    where few are.
    """
    count = 0
    number = -np.int64(first)
    for word in words:
        left = word
        while left:
            below = (left & (~left + np.uint64(1))) - np.uint64(1)
            found[count] = number + _count_bits(below)
            count += 1
            left &= left - np.uint64(1)
        number += WORD_BITS
