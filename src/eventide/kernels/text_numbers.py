"""Numbers of texts by their fingerprints."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, kernel
from eventide.kernels.key_table import KeyTable, find, put


@kernel
def find_numbers(table: KeyTable, words: Int64s) -> Int64s:
    """Return the number of each fingerprint, -1 if it has none."""
    found = np.empty(len(words), np.int64)
    for i in range(len(words)):
        found[i] = find(table, words[i], np.int64(0))
    return found


@kernel
def put_numbers(table: KeyTable, words: Int64s, first: int) -> None:
    """Number fingerprints from `first` on; there has to be room."""
    for i in range(len(words)):
        put(table, words[i], np.int64(0), np.int64(first + i))
