"""The summary of an attribute as a row of words, which kernels read (kernels/store/descent.py)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.kernels.store.descent import (
    COUNT,
    FLOATS,
    INTEGERS,
    KEYS,
    LARGEST,
    LEAST,
    SMALLEST,
    SQUARES,
    SUM,
    WHOLE,
    WORDS,
)
from eventide.store.index.attribute_summaries import raw_integers

KINDS: Mapping[str, int] = {"float64": FLOATS, "int64": INTEGERS, "timestamp": KEYS}
"""The types of attributes whose summaries fit words."""
PLACES = {
    "count": COUNT,
    "min": SMALLEST,
    "max": LARGEST,
    "sum.high": SUM,
    "sum.low": SUM + 1,
    "squares.high": SQUARES,
    "squares.low": SQUARES + 1,
    "least": LEAST,
    "whole.high": WHOLE,
    "whole.low": WHOLE + 1,
}
"""Where the parts of a summary are."""
ENDS = ("min", "max")
ORDERED = ("count", *ENDS)
SUMMED = (*ORDERED, "sum.high", "sum.low", "squares.high", "squares.low")
STORED = {FLOATS: SUMMED, INTEGERS: (*SUMMED, "whole.high", "whole.low"), KEYS: ORDERED}
"""The parts that entries of the index have."""


def fill_words(words: Int64s, entries: pa.RecordBatch, attribute: str, kind: int) -> None:
    """Write the summaries of an attribute that entries of the index have."""
    for part in STORED[kind]:
        # Doubles are words as well.
        words[:, PLACES[part]] = raw_integers(entries.column(f"{attribute}.{part}"))
    if kind == FLOATS:
        numbers = words.view(np.float64)
        smallest, largest = numbers[:, SMALLEST], numbers[:, LARGEST]
        known = np.where(smallest > 0.0, smallest, np.where(largest < 0.0, -largest, 0.0))
        nothing = (words[:, COUNT] == 0) | ((smallest == 0.0) & (largest == 0.0))
        numbers[:, LEAST] = np.where(nothing, np.inf, known)


def no_words(rows: int) -> Int64s:
    """Return the summaries of nothing."""
    words = np.zeros((rows, WORDS), np.int64)
    words.view(np.float64)[:, LEAST] = np.inf
    return words
