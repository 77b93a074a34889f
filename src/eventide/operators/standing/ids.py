"""Ids of tuples: the same in every process, however a run is divided into steps."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.hashing import Hashes, spread_words


def leaf_ids(seq: Int64s, number: int) -> Int64s:
    """Return the ids of events of a leaf; different for different `_seq` of one leaf."""
    leaf = _spread(np.full(1, number, np.uint64))
    return _spread(seq.astype(np.int64).view(np.uint64) ^ leaf).view(np.int64)


def joined_ids(*ids: Int64s) -> Int64s:
    """Return the ids of combinations of tuples, in the order of their parts."""
    joined = np.zeros(1, np.uint64)
    for part in ids:
        joined = _spread(joined ^ part.astype(np.int64).view(np.uint64))
    return joined.view(np.int64)


def _spread(words: Hashes) -> Hashes:
    """Return a one-to-one mapping of words to words that does not keep their order."""
    spread = np.empty_like(words)
    spread_words(frozen(words), spread)
    return spread
