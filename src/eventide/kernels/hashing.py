"""Hashes of keys that are the same on every machine and in every process."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int64s, inline, kernel

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio of 64 bits: the step of SplitMix64."""
NULL_HASH = GOLDEN
FNV_OFFSET = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


@inline
def mixed(value: np.uint64) -> np.uint64:
    """Spread the bits of a word, as the last step of SplitMix64 does."""
    value = (value ^ (value >> np.uint64(30))) * MIX_1
    value = (value ^ (value >> np.uint64(27))) * MIX_2
    return value ^ (value >> np.uint64(31))


@kernel
def spread_words(words: Hashes, out: Hashes) -> None:
    """Write the next value of SplitMix64 after each word: one to one, without order."""
    for i in range(len(words)):
        out[i] = mixed(words[i] + GOLDEN)


@kernel
def hash_words(words: Int64s, valid: Bools, out: Hashes) -> None:
    """Mix a column of 64-bit values into `out`; an empty `valid` means all are valid."""
    for i in range(len(words)):
        present = len(valid) == 0 or valid[i]
        word = mixed(np.uint64(words[i])) if present else NULL_HASH
        out[i] = mixed(out[i] * FNV_PRIME + word)


@kernel
def hash_bytes(offsets: Int32s, data: Bytes, valid: Bools, out: Hashes) -> None:
    """Mix a column of byte strings into `out`; an empty `valid` means all are valid."""
    for i in range(len(offsets) - 1):
        word = NULL_HASH
        if len(valid) == 0 or valid[i]:
            word = FNV_OFFSET
            for place in range(offsets[i], offsets[i + 1]):
                word = (word ^ np.uint64(data[place])) * FNV_PRIME
        out[i] = mixed(out[i] * FNV_PRIME + mixed(word))
