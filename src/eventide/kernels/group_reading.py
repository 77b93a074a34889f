"""What aggregates read from the parts of a group (kernels/sliding_groups.py): words of its row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Floats, Int64s, inlined, kernel
from eventide.kernels.exact_sums import read_sum
from eventide.kernels.key_table import KeyTable, find
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START
from eventide.kernels.sorted_values import COUNT_BITS

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
) = range(15)
"""Kinds of readers."""

VALUES, NANS, UPPER, LOWER = range(4)
LOW_63 = np.int64(2**63 - 1)
LOW_COUNT = np.int64((1 << COUNT_BITS) - 1)


class Readers(NamedTuple):
    """By aggregate: its kind and part, and the place of its words; then the end of all.

    `numbers` has which quantile, and by what to divide integers. `texts` and `ranks` order texts:
    by fingerprint one finds a number, and by that the rank of a text among all.
    """

    places: Int64s
    numbers: Floats
    texts: KeyTable
    ranks: Int64s


@kernel
def wide_double(high: int, low: int) -> float:
    """Return a 128-bit integer as a double, rounded where it has more than 53 bits."""
    if high == low >> 63:
        return np.float64(low)
    return np.float64(high) * 2.0**64 + np.float64(np.uint64(low))


@kernel
def double_sum(words: Int64s, notes: Int64s, owner: int, tallies: Int64s, group: int) -> float:
    """Return a sum of doubles: infinities and NaNs count as long as they are there."""
    part = owner - group * tallies.shape[1]
    upper, lower = tallies[group, part, UPPER], tallies[group, part, LOWER]
    if tallies[group, part, NANS] > 0 or (upper > 0 and lower > 0):
        return np.nan
    if upper > 0:
        return np.inf
    if lower > 0:
        return -np.inf
    return read_sum(words, notes[owner, START], notes[owner, ROOM], notes[owner, BASE])[0]


@kernel
def quantile(words: Int64s, count: int, share: float, scale: float) -> float:
    """Return the value at a share of the way from the first to the last, between neighbours.

    The scale divides integers; 0 says that the words are doubles.
    """
    along = share * (count - 1)
    below = int(np.floor(along))
    above = min(below + 1, count - 1)
    low_word, high_word = words[below], words[above]
    if scale == 0.0:
        low = float(np.int64(low_word ^ ((low_word >> 63) & LOW_63)).view(np.float64))
        high = float(np.int64(high_word ^ ((high_word >> 63) & LOW_63)).view(np.float64))
    else:
        low, high = float(low_word) / scale, float(high_word) / scale
    if low_word == high_word or along == below:
        return low
    return low + (high - low) * (along - below)


@kernel
def bucket_quantile(words: Int64s, share: float, count: int) -> int:
    """Return the key of the bucket that the value at a share of the way is in."""
    rank = int(np.floor(share * (count - 1)))
    place = 0
    passed = words[place] & LOW_COUNT
    while passed <= rank:
        place += 1
        passed += words[place] & LOW_COUNT
    return int(words[place] >> COUNT_BITS)


@kernel
def rank_of(value: np.int64, is_text: bool, texts: KeyTable, ranks: Int64s) -> np.int64:
    """Return a number that is smaller the further in front a value belongs."""
    return ranks[find(texts, value, np.int64(0))] if is_text else value


@kernel
def most_frequent(
    words: Int64s, row: Int64s, is_text: bool, texts: KeyTable, ranks: Int64s
) -> None:
    """Write how many values are listed, then value and count of each, the most frequent first."""
    longest = (len(row) - 1) // 2
    row[:] = 0
    place = 0
    while place < len(words):
        value, run = words[place], place
        while run < len(words) and words[run] == value:
            run += 1
        count = run - place
        place = run
        slot = row[0]
        if slot == longest and row[2 * slot] > count:
            continue
        rank = rank_of(value, is_text, texts, ranks)
        while slot > 0:
            before, times = row[2 * slot - 1], row[2 * slot]
            if times > count:
                break
            if times == count and rank_of(before, is_text, texts, ranks) < rank:
                break
            if slot < longest:
                row[2 * slot + 1] = before
                row[2 * slot + 2] = times
            slot -= 1
        if slot < longest:
            row[2 * slot + 1] = value
            row[2 * slot + 2] = count
            row[0] = min(row[0] + 1, longest)


@kernel
def read_values(kind: int, words: Int64s, count: int, share: float, scale: float) -> np.int64:
    """Return what is read from values in order, as a word; so many were counted."""
    if kind == SMALLEST:
        return np.int64(words[0])
    if kind == LARGEST:
        return np.int64(words[-1])
    if kind == BUCKET_QUANTILE:
        return np.int64(bucket_quantile(words, share, count))
    found = quantile(words, count, share, 0.0 if kind == DOUBLE_QUANTILE else scale)
    return np.float64(np.nan if np.isnan(found) else found).view(np.int64)


@kernel
def read_pair(
    words: Int64s, notes: Int64s, owner: int, tallies: Int64s, group: int, row: Int64s, word: int
) -> None:
    """Write a sum of doubles as two, which together have twice the bits."""
    high, low = double_sum(words, notes, owner, tallies, group), 0.0
    if np.isfinite(high):
        start, room, base = notes[owner, START], notes[owner, ROOM], notes[owner, BASE]
        low = read_sum(words, start, room, base)[1]
    row[word] = np.float64(high).view(np.int64)
    row[word + 1] = np.float64(low).view(np.int64)


@inlined
def read_row(
    places: Int64s,
    numbers: Floats,
    texts: KeyTable,
    ranks: Int64s,
    rows: int,
    tallies: Int64s,
    words: Int64s,
    notes: Int64s,
    group: int,
    row: Int64s,
) -> None:
    """Write the words of a group's row."""
    row[0] = 0
    for reader in range(len(numbers)):
        kind, part, word = places[reader, 0], places[reader, 1], places[reader, 2]
        owner = group * tallies.shape[1] + part
        values = rows if kind == ROWS else tallies[group, part, VALUES]
        if kind in (DOUBLE_SUM, DOUBLE_MEAN, INTEGER_MEAN) and values > 0:
            if kind == INTEGER_MEAN:
                high, low = tallies[group, part, UPPER], tallies[group, part, LOWER]
                found = wide_double(high, low) / numbers[reader, 1]
            else:
                found = double_sum(words, notes, owner, tallies, group)
            if kind != DOUBLE_SUM:
                found /= values
            # One spelling of NaN, so that equal rows have equal words.
            row[word] = np.float64(np.nan if np.isnan(found) else found).view(np.int64)
        elif kind in (ROWS, COUNT):
            row[word] = values
        elif kind == DISTINCT:
            row[word] = notes[owner, BASE]
        elif kind in (FREQUENT, FREQUENT_TEXT):
            start, listed = notes[owner, START], row[word : places[reader + 1, 2]]
            found_values = words[start : start + notes[owner, LENGTH]]
            most_frequent(found_values, listed, kind == FREQUENT_TEXT, texts, ranks)
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
            start = notes[owner, START]
            found_values = words[start : start + notes[owner, LENGTH]]
            share, scale = numbers[reader, 0], numbers[reader, 1]
            row[word] = read_values(kind, found_values, values, share, scale)
