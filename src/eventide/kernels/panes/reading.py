"""Compute aggregates from the totals and panes of a group (kernels/panes/panes.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Floats, Int64s, call_lean, inline
from eventide.kernels.groups import reading
from eventide.kernels.groups.reading import double_sum, read_pair, wide_double
from eventide.kernels.slabs import BASE, LENGTH, START

HIGHEST, LOWEST, FADING, FADING_ONES, PANES = range(10, 15)
"""Kinds of parts beside those of kernels/groups/sliding.py: staircases, decayed values, and as the
last part the list of panes, unless they wait in a queue of all groups."""

FADED_COUNT, FADED_SUM, FADED_MEAN = range(20, 23)
"""Kinds of readers beside those of kernels/groups/reading.py."""

WIDE, ROWS, REF, QUEUED = range(4)
"""The contents of `entry`: how many words an entry has, where in it the number of rows is and the
refresh it is as of, -1 if nowhere; and 1 if entries wait in a queue."""


class Kept(NamedTuple):
    """What is kept and read of a group.

    A part is its kind, its column, where its words stand in an entry of the list of panes, and the
    column of times if it decays; `halves` has the half-lives. `entry` is about entries. A reader is
    its kind, its part, and where its words stand in a row; `numbers` has its divisor.
    """

    parts: Int64s
    entry: Int64s
    halves: Floats
    readers: Int64s
    numbers: Floats


NEVER = np.int64(2**63 - 1)
VALUES, _, UPPER, LOWER = range(4)

ROWS_READER, COUNT, INTEGER_SUM = reading.ROWS, reading.COUNT, reading.INTEGER_SUM
INTEGER_MEAN, DOUBLE_SUM, DOUBLE_MEAN = (
    reading.INTEGER_MEAN,
    reading.DOUBLE_SUM,
    reading.DOUBLE_MEAN,
)
DEVIATION, SMALLEST, LARGEST = reading.DEVIATION, reading.SMALLEST, reading.LARGEST


@inline
def faded(kept: Kept, words: Int64s, notes: Int64s, group: int, part: int, now: int) -> float:
    """Return a decayed sum as of now: all panes, from the oldest on."""
    owner = group * len(kept.parts) + len(kept.parts) - 1
    first = notes[owner, START] + notes[owner, BASE]
    total = 0.0
    for place in range(first, first + notes[owner, LENGTH], kept.entry[WIDE]):
        age = float(now - words[place + kept.entry[REF]])
        value = np.int64(words[place + kept.parts[part, 2]]).view(np.float64)
        total += value * 0.5 ** (age / kept.halves[part])
    return total


@inline
def faded_mean(kept: Kept, words: Int64s, notes: Int64s, group: int, part: int) -> float:
    """Return a decayed mean: a part divided by the weights in the next part, NaN without any.

    Both decay alike, so it is as of the last refresh with weights: an old mean is not 0 / 0.
    """
    owner = group * len(kept.parts) + len(kept.parts) - 1
    first = notes[owner, START] + notes[owner, BASE]
    now = -NEVER
    for place in range(first, first + notes[owner, LENGTH], kept.entry[WIDE]):
        if words[place + kept.parts[part + 1, 2]] != 0:
            now = max(now, words[place + kept.entry[REF]])
    weights = faded(kept, words, notes, group, part + 1, int(now))
    return faded(kept, words, notes, group, part, int(now)) / weights if weights > 0.0 else np.nan


@call_lean
def read_slides(
    kept: Kept,
    rows: int,
    tallies: Int64s,
    words: Int64s,
    notes: Int64s,
    group: int,
    now: int,
    row: Int64s,
) -> bool:
    """Write the words of a group's row; return whether it changes at the next refresh."""
    moves = False
    row[0] = 0
    for reader in range(len(kept.numbers)):
        kind, part, word = kept.readers[reader, 0], kept.readers[reader, 1], kept.readers[reader, 2]
        owner = group * len(kept.parts) + part
        values = rows if kind in (ROWS_READER, FADED_COUNT) else tallies[group, part, VALUES]
        found = 0.0
        if kind in (ROWS_READER, COUNT):
            row[word] = values
        elif (notes[owner, LENGTH] if kind in (SMALLEST, LARGEST) else values) == 0:
            row[0] |= np.int64(1) << reader
            for place in range(word, kept.readers[reader + 1, 2]):
                row[place] = 0
        elif kind == INTEGER_SUM:
            row[word] = tallies[group, part, UPPER]
            row[word + 1] = tallies[group, part, LOWER]
        elif kind == DEVIATION:
            row[word] = values
            read_pair(words, notes, owner, tallies, group, row, word + 1)
            read_pair(words, notes, owner + 1, tallies, group, row, word + 3)
        elif kind in (SMALLEST, LARGEST):
            largest = words[notes[owner, START] + notes[owner, BASE] + 1]
            row[word] = largest if kind == LARGEST else ~largest
        else:
            if kind == INTEGER_MEAN:
                high, low = tallies[group, part, UPPER], tallies[group, part, LOWER]
                found = wide_double(high, low) / kept.numbers[reader] / values
            elif kind in (DOUBLE_SUM, DOUBLE_MEAN):
                found = double_sum(words, notes, owner, tallies, group)
                if kind == DOUBLE_MEAN:
                    found /= values
            elif kind == FADED_MEAN:
                found = faded_mean(kept, words, notes, group, part + 1)
            else:
                found = faded(kept, words, notes, group, part + (kind == FADED_SUM), now)
                moves = moves or (found != 0.0 and np.isfinite(found))
            # One spelling of NaN, so that equal rows have equal words.
            row[word] = np.float64(np.nan if np.isnan(found) else found).view(np.int64)
    return moves
