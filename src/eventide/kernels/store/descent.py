"""Go down the index of a segment to the ends of a period, and add up what lies in between.

An index is flat: node n has the entries [nodes[n, 0], nodes[n, 1]) and is of level nodes[n, 2]; the
first nodes are its roots, the lowest level first. The summary of an attribute is a row of words,
some of which are doubles:

    count | smallest, largest | sum, its rest | squares, their rest | least | whole: high, low

A row has the words that its kind of attribute has: floats have no `whole`, integers no `least`, and
keys, which only have an order, neither these nor sums.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.extremes import better
from eventide.kernels.aggregates.proofs import find_least
from eventide.kernels.aggregates.summaries import (
    summarise_floats,
    summarise_integers,
    summarise_keys,
)
from eventide.kernels.aggregates.sums import two_sum
from eventide.kernels.compiled import Bools, Floats, Int64s, inline, kernel

FLOATS, INTEGERS, KEYS = 0, 1, 2
COUNT, SMALLEST, LARGEST = 0, 1, 2
SUM, SQUARES, LEAST = 3, 5, 7
WHOLE = 8
WORDS = 10

TS_MIN, TS_MAX, CHILD, ROWS, ADDRESS, LENGTH = range(6)
PLACES = 6
"""How many columns `places` has; kernels read the first four."""

NOTHING_MISSING = -1


@kernel
def descend(
    nodes: Int64s,
    roots: int,
    places: Int64s,
    floor: int,
    start_us: int,
    end_us: int,
    found: Int64s,
    counts: Int64s,
) -> int:
    """Find the entries that lie entirely in [start_us, end_us), and those that it cuts.

    The former are written from the beginning of `found`, the latter from its end, which are at the
    level `floor`. `counts` are how many of each, and the rows of the former. Returns the entry
    whose node has to be known first, or `NOTHING_MISSING`.
    """
    waiting = np.empty(len(nodes), np.int64)
    for root in range(roots):
        waiting[root] = root
    depth, whole, cut, rows = roots, 0, 0, 0
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        for entry in range(nodes[node, 0], nodes[node, 1]):
            first, last = places[entry, TS_MIN], places[entry, TS_MAX]
            if last < start_us or first >= end_us:
                continue
            if first >= start_us and last < end_us:
                found[whole] = entry
                whole += 1
                rows += places[entry, ROWS]
            elif nodes[node, 2] <= floor:
                cut += 1
                found[len(found) - cut] = entry
            elif places[entry, CHILD] < 0:
                return entry
            else:
                waiting[depth] = places[entry, CHILD]
                depth += 1
    counts[0], counts[1], counts[2] = whole, cut, rows
    return NOTHING_MISSING


@kernel
def add_entries(kind: int, words: Int64s, entries: Int64s, total: Int64s) -> None:
    """Add the summaries of some entries to a total, one after the other."""
    numbers, sums = words.view(np.float64), total.view(np.float64)
    for entry in entries:
        first = total[COUNT] == 0
        if words[entry, COUNT] > 0:
            total[COUNT] += words[entry, COUNT]
            if kind == FLOATS:
                take_extremes(numbers[entry], sums, first)
                if first or numbers[entry, LEAST] < sums[LEAST]:
                    sums[LEAST] = numbers[entry, LEAST]
            else:
                take_extremes(words[entry], total, first)
        if kind != KEYS:
            add_pair(numbers[entry], sums, SUM)
            add_pair(numbers[entry], sums, SQUARES)
        if kind == INTEGERS:
            before = np.uint64(total[WHOLE + 1])
            after = before + np.uint64(words[entry, WHOLE + 1])
            carry = np.int64(1) if after < before else np.int64(0)
            total[WHOLE] += words[entry, WHOLE] + carry
            total[WHOLE + 1] = np.int64(after)


@inline
def take_extremes(row: Floats | Int64s, total: Floats | Int64s, first: bool) -> None:
    """Keep the smaller and the larger extreme; those of a first row in any case."""
    if first or better(row[SMALLEST], total[SMALLEST], 1):
        total[SMALLEST] = row[SMALLEST]
    if first or better(row[LARGEST], total[LARGEST], -1):
        total[LARGEST] = row[LARGEST]


@inline
def add_pair(row: Floats, total: Floats, place: int) -> None:
    """Add one pair of doubles to another, as the accumulators do."""
    total[place], lost = two_sum(total[place], row[place])
    total[place + 1] += lost + row[place + 1]


@kernel
def summarise_float_part(values: Floats, valid: Bools, start: int, end: int, words: Int64s) -> None:
    """Write the summary of the values [start, end) of a leaf; an empty `valid` has no null."""
    starts, ends = np.full(1, start, np.int64), np.full(1, end, np.int64)
    bounds = np.array([start, end], np.int64)
    counts, extremes = np.empty(1, np.int64), np.empty((2, 1))
    moments, least = np.empty((4, 1)), np.empty(1)
    summarise_floats(values, valid, bounds, counts, extremes, moments)
    find_least(values, valid, starts, ends, extremes, least)
    numbers = words.view(np.float64)
    words[COUNT] = counts[0]
    numbers[SMALLEST], numbers[LARGEST] = extremes[0, 0], extremes[1, 0]
    for i in range(4):
        numbers[SUM + i] = moments[i, 0]
    numbers[LEAST] = least[0]


@kernel
def summarise_integer_part(
    values: Int64s, valid: Bools, start: int, end: int, kind: int, words: Int64s
) -> None:
    """Write the summary of the integers or keys [start, end) of a leaf."""
    bounds = np.array([start, end], np.int64)
    counts, extremes = np.empty(1, np.int64), np.empty((2, 1), np.int64)
    if kind == KEYS:
        summarise_keys(values, valid, bounds, counts, extremes)
    else:
        wholes, moments = np.empty((2, 1), np.int64), np.empty((4, 1))
        summarise_integers(values, valid, bounds, counts, extremes, wholes, moments)
        words.view(np.float64)[SUM : SUM + 4] = moments[:, 0]
        words[WHOLE], words[WHOLE + 1] = wholes[0, 0], wholes[1, 0]
    words[COUNT] = counts[0]
    words[SMALLEST], words[LARGEST] = extremes[0, 0], extremes[1, 0]
