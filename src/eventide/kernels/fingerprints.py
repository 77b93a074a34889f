"""Two hashes of a key at once."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int64s, lean_kernel
from eventide.kernels.hashing import (
    FNV_OFFSET,
    FNV_PRIME,
    NULL_HASH,
    Bytes,
    Hashes,
    Int32s,
    mixed,
)


@lean_kernel
def hash_words_twice(words: Int64s, valid: Bools, first: Hashes, second: Hashes) -> None:
    """Mix a column of 64-bit values into two hashes, each as `hash_words` does."""
    for i in range(len(words)):
        present = len(valid) == 0 or valid[i]
        word = mixed(np.uint64(words[i])) if present else NULL_HASH
        first[i] = mixed(first[i] * FNV_PRIME + word)
        second[i] = mixed(second[i] * FNV_PRIME + word)


@lean_kernel
def hash_bytes_twice(
    offsets: Int32s, data: Bytes, valid: Bools, first: Hashes, second: Hashes
) -> None:
    """Mix a column of byte strings into two hashes, each as `hash_bytes` does."""
    for i in range(len(offsets) - 1):
        word = NULL_HASH
        if len(valid) == 0 or valid[i]:
            word = FNV_OFFSET
            for place in range(offsets[i], offsets[i + 1]):
                word = (word ^ np.uint64(data[place])) * FNV_PRIME
        word = mixed(word)
        first[i] = mixed(first[i] * FNV_PRIME + word)
        second[i] = mixed(second[i] * FNV_PRIME + word)
