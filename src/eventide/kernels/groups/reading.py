"""Compute aggregates from the parts of a group (kernels/groups/sliding.py): words of its row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.aggregates.exact_sums import read_rest, read_sum
from eventide.kernels.aggregates.frequent_values import most_frequent
from eventide.kernels.aggregates.sorted_blocks import word_at
from eventide.kernels.aggregates.sorted_values import COUNT_BITS
from eventide.kernels.compiled import Floats, Int64s, call, inline
from eventide.kernels.key_table import KeyTable
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START

(
    ROWS,
    COUNT,
    INTEGER_SUM,
    DOUBLE_SUM,
    INTEGER_MEAN,
    DOUBLE_MEAN,
    DEVIATION,
    SMALLEST,
    LARGEST,
    INTEGER_QUANTILE,
    DOUBLE_QUANTILE,
    DISTINCT,
    FREQUENT,
    FREQUENT_TEXT,
    BUCKET_QUANTILE,
    LEAST_LIVING,
    GREATEST_LIVING,
) = range(17)
"""Kinds of readers."""

VALUES, NANS, UPPER, LOWER = range(4)
FIRST = np.int64(0)
LOW_63 = np.int64(2**63 - 1)
LOW_COUNT = np.int64((1 << COUNT_BITS) - 1)


class Readers(NamedTuple):
    """By aggregate: its kind and part, and the place of its words; then the end of all.

    `numbers` has the quantile, and the divisor of integers. `texts` and `ranks` order texts: the
    fingerprint gives a number, and the number a rank among all texts. They are empty if no list is
    wanted.
    """

    places: Int64s
    numbers: Floats
    texts: KeyTable | None
    ranks: Int64s


@call
def wide_double(high: int, low: int) -> float:
    """Return a 128-bit integer as a double, rounded if it has more than 53 bits."""
    if high == low >> 63:
        return np.float64(low)
    return np.float64(high) * 2.0**64 + np.float64(np.uint64(low))


@call
def double_sum(words: Int64s, notes: Int64s, owner: int, tallies: Int64s, group: int) -> float:
    """Return a sum of doubles: infinities and NaNs count while they are present."""
    part = owner - group * tallies.shape[1]
    upper, lower = tallies[group, part, UPPER], tallies[group, part, LOWER]
    if tallies[group, part, NANS] > 0 or (upper > 0 and lower > 0):
        return np.nan
    if upper > 0:
        return np.inf
    if lower > 0:
        return -np.inf
    return read_sum(words, notes[owner, START], notes[owner, ROOM], notes[owner, BASE])


@call
def number_of(word: int, scale: float) -> float:
    """Return the number of a word: an integer divided by the scale, a double if the scale is 0."""
    if scale == 0.0:
        return float(np.int64(word ^ ((word >> 63) & LOW_63)).view(np.float64))
    return float(word) / scale


@call
def quantile(
    words: Int64s, notes: Int64s, owner: int, block: int, share: float, scale: float
) -> float:
    """Return the quantile at a share, interpolated between neighbours."""
    along = share * float(notes[owner, LENGTH] - 1)
    below = int(np.floor(along))
    low_word = word_at(words, notes, owner, block, below)
    low = number_of(low_word, scale)
    if along == below:
        return low
    high_word = word_at(words, notes, owner, block, below + 1)
    if low_word == high_word:
        return low
    return low + (number_of(high_word, scale) - low) * (along - below)


@call
def bucket_quantile(words: Int64s, share: float, count: int) -> int:
    """Return the key of the bucket that holds the quantile at a share."""
    rank = int(np.floor(share * (count - 1)))
    place = 0
    passed = words[place] & LOW_COUNT
    while passed <= rank:
        place += 1
        passed += words[place] & LOW_COUNT
    return int(words[place] >> COUNT_BITS)


@call
def read_word(
    kind: int,
    words: Int64s,
    notes: Int64s,
    owner: int,
    block: int | None,
    count: int,
    share: float,
    scale: float,
) -> np.int64:
    """Return the single word of an aggregate over a list of values; there are some."""
    if block is None:
        return np.int64(0)
    start, length = notes[owner, START], notes[owner, LENGTH]
    if kind == SMALLEST:
        return np.int64(word_at(words, notes, owner, block, FIRST))
    if kind == LARGEST:
        return np.int64(word_at(words, notes, owner, block, length - 1))
    if kind == LEAST_LIVING:
        return np.int64(words[start + 2 * notes[owner, BASE] + 1])
    if kind == GREATEST_LIVING:
        return np.int64(~words[start + 2 * notes[owner, BASE] + 1])
    if kind == BUCKET_QUANTILE:
        return np.int64(bucket_quantile(words[start : start + length], share, count))
    found = quantile(words, notes, owner, block, share, 0.0 if kind == DOUBLE_QUANTILE else scale)
    return np.float64(np.nan if np.isnan(found) else found).view(np.int64)


@call
def read_pair(
    words: Int64s, notes: Int64s, owner: int, tallies: Int64s, group: int, row: Int64s, word: int
) -> None:
    """Write a sum of doubles, rounded once, and what is left of it, rounded once."""
    high, low = double_sum(words, notes, owner, tallies, group), 0.0
    if np.isfinite(high):
        start, room, base = notes[owner, START], notes[owner, ROOM], notes[owner, BASE]
        low = read_rest(words, start, room, base, high)
    row[word] = np.float64(high).view(np.int64)
    row[word + 1] = np.float64(low).view(np.int64)


@inline
def mean_or_sum(
    kind: int,
    words: Int64s,
    notes: Int64s,
    owner: int,
    tallies: Int64s,
    group: int,
    scale: float,
) -> np.int64:
    """Return a mean, or a sum of doubles, as a word; there are values."""
    part = owner - group * tallies.shape[1]
    if kind == INTEGER_MEAN:
        found = wide_double(tallies[group, part, UPPER], tallies[group, part, LOWER]) / scale
    else:
        found = double_sum(words, notes, owner, tallies, group)
    if kind != DOUBLE_SUM:
        found /= tallies[group, part, VALUES]
    # One spelling of NaN, so that equal rows have equal words.
    return np.float64(np.nan if np.isnan(found) else found).view(np.int64)


@inline
def read_row(
    places: Int64s,
    numbers: Floats,
    texts: KeyTable | None,
    ranks: Int64s,
    rows: int,
    tallies: Int64s,
    words: Int64s,
    notes: Int64s,
    block: int | None,
    group: int,
    row: Int64s,
) -> None:
    """Write the words of a group's row."""
    row[0] = 0
    for reader in range(len(numbers)):
        kind, part, word = places[reader, 0], places[reader, 1], places[reader, 2]
        owner = group * tallies.shape[1] + part
        values = rows if kind == ROWS else tallies[group, part, VALUES]
        share, scale = numbers[reader, 0], numbers[reader, 1]
        if kind in (DOUBLE_SUM, DOUBLE_MEAN, INTEGER_MEAN) and values > 0:
            row[word] = mean_or_sum(kind, words, notes, owner, tallies, group, scale)
        elif kind in (ROWS, COUNT):
            row[word] = values
        elif kind == DISTINCT:
            row[word] = notes[owner, BASE]
        elif kind in (FREQUENT, FREQUENT_TEXT):
            listed, is_text = row[word : places[reader + 1, 2]], kind == FREQUENT_TEXT
            most_frequent(words, notes, owner, block, listed, is_text, texts, ranks)
        elif values == 0:
            row[0] |= np.int64(1) << reader
            for place in range(word, places[reader + 1, 2]):
                row[place] = 0
        elif kind == INTEGER_SUM:
            row[word] = tallies[group, part, UPPER]
            row[word + 1] = tallies[group, part, LOWER]
        elif kind == DEVIATION:
            row[word] = values
            read_pair(words, notes, owner, tallies, group, row, word + 1)
            read_pair(words, notes, owner + 1, tallies, group, row, word + 3)
        else:
            row[word] = read_word(kind, words, notes, owner, block, values, share, scale)
