"""A Bloom filter in blocks of 512 bits, so that a lookup touches one cache line.

A value sets one bit in each of the eight words of one block. At ten bits a value, about one in a
hundred absent values seems to be present.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import inline, kernel
from eventide.kernels.hashing import Hashes, mixed

WORDS_PER_BLOCK = 8


@inline
def block_of(hashed: np.uint64, blocks: int) -> np.int64:
    """Return the block of a hash: its upper half, scaled to the number of blocks."""
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32))


@kernel
def block_number(hashed: np.uint64, blocks: int) -> np.int64:
    """Return the block that a hash would be found in; blocks < 2**32."""
    return block_of(hashed, blocks)


@kernel
def add_to_filter(hashes: Hashes, words: Hashes) -> None:
    """Set the bits of hashes; `words` is the filter, eight words a block, at least one block."""
    blocks = len(words) // WORDS_PER_BLOCK
    for hashed in hashes:
        start = block_of(hashed, blocks) * WORDS_PER_BLOCK
        bits = mixed(hashed)
        for word in range(WORDS_PER_BLOCK):
            words[start + word] |= np.uint64(1) << (bits & np.uint64(63))
            bits >>= np.uint64(6)


@kernel
def block_may_hold(hashed: np.uint64, block: Hashes) -> bool:
    """Whether all bits of a hash are set in its block of eight words."""
    bits = mixed(hashed)
    for word in range(WORDS_PER_BLOCK):
        if (block[word] >> (bits & np.uint64(63))) & np.uint64(1) == np.uint64(0):
            return False
        bits >>= np.uint64(6)
    return True
