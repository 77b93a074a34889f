"""Rows that meet conditions become candidates, candidates become periods that hold all matches.

Symbols that follow one another without a gap are a *block*. One row of a block determines the
others, so the rows found for its symbols, each moved back by its place in the block, have to
coincide. Blocks come one after another: from each first block to the nearest second one, and so on,
all within the time that a match may last. This takes a few passes over sorted arrays, and never
lists combinations.

A period is the time in which the matches of a candidate lie. Where the number of the first or the
last row of a match is known, the period is cut there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from eventide.engines.history.patterns.conditions import Condition, Shape
from eventide.kernels.compiled import Bools, Int64s
from eventide.store.reading.hits import Hits

FARTHEST = 2**62
KEY_SHIFT = 40
"""In patterns with keys, a row's number is that of its key, shifted by this many bits, plus its
place among the rows of the key. So the numbers of different keys lie apart."""


@dataclass(frozen=True, slots=True)
class Periods:
    """Periods in order, both ends included, cut to rows from `first` to `last`.

    Periods of a pattern with keys have one `key` each, and are in order of keys first.
    """

    start_us: Int64s
    end_us: Int64s
    first: Int64s
    last: Int64s
    key: Int64s

    def __len__(self) -> int:
        return len(self.start_us)

    def only(self, kept: Bools | Int64s | slice) -> Periods:
        """Return some of them."""
        columns = (self.start_us, self.end_us, self.first, self.last, self.key)
        return Periods(*(column[kept] for column in columns))


@dataclass(frozen=True, slots=True)
class SymbolRange:
    """The symbols from `first` to `last`; those `chosen` have conditions that were looked up."""

    first: int
    last: int
    chosen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Where a block can be: the number of its first row, the times of its outer chosen rows."""

    number: Int64s
    from_us: Int64s
    to_us: Int64s

    def __len__(self) -> int:
        return len(self.number)


def blocks_of(shape: Shape, chosen: Sequence[Condition], *, numbered: bool) -> list[SymbolRange]:
    """Return the blocks with chosen symbols; without row numbers each symbol is one by itself."""
    symbols = shape.skeleton.symbols
    wanted = {condition.symbol for condition in chosen}
    blocks: list[SymbolRange] = []
    start = 0
    for place in range(1, len(symbols) + 1):
        if place < len(symbols) and symbols[place].follows and numbered:
            continue
        own = tuple(each for each in range(start, place) if each in wanted)
        if own:
            blocks.append(SymbolRange(start, place - 1, own))
        start = place
    return blocks


def periods_of(
    shape: Shape, within_us: int, hits: Mapping[Condition, Hits], *, numbered: bool
) -> Periods:
    """Return periods in order that together hold every match, from the hits of the conditions.

    With `numbered`, `_seq` counts the rows in which the pattern is looked for.
    """
    count = len(shape.skeleton.symbols)
    blocks = blocks_of(shape, list(hits), numbered=numbered)
    found = [aligned(each, hits) if numbered else shared(each, hits) for each in blocks]
    starts = numbered and shape.skeleton.begins and blocks[0].first == 0
    ends = numbered and shape.skeleton.ends and blocks[-1].last == count - 1
    if starts or not ends:
        return periods_from(blocks, found, within_us, numbered=numbered, starts=starts, ends=ends)
    # Only the last row is known: the same, with time running backwards.
    turned = [backwards(*each, count) for each in zip(blocks[::-1], found[::-1], strict=True)]
    blocks, found = [block for block, _ in turned], [each for _, each in turned]
    periods = periods_from(blocks, found, within_us, numbered=True, starts=True, ends=False)
    order = slice(None, None, -1)
    turned_back = Periods(
        -periods.end_us, -periods.start_us, -periods.last, -periods.first, periods.key
    )
    return turned_back.only(order)


def backwards(
    block: SymbolRange, found: Occurrences, symbols: int
) -> tuple[SymbolRange, Occurrences]:
    """Return a block and its occurrences with time running backwards."""
    turned = SymbolRange(
        symbols - 1 - block.last,
        symbols - 1 - block.first,
        tuple(symbols - 1 - each for each in reversed(block.chosen)),
    )
    last_row = found.number + (block.last - block.first)
    order = slice(None, None, -1)
    return turned, Occurrences(-last_row[order], -found.to_us[order], -found.from_us[order])


def periods_from(
    blocks: Sequence[SymbolRange],
    found: Sequence[Occurrences],
    within_us: int,
    *,
    numbered: bool,
    starts: bool,
    ends: bool,
) -> Periods:
    """Return a period for each first block from which the last can be reached in time.

    `starts` and `ends` say that the first and the last row of a match are in these blocks.
    """
    first, last = found[0], found[-1]
    reached = nearest(blocks, found, numbered=numbered)
    alive = np.flatnonzero(reached < len(last))
    alive = alive[last.to_us[reached[alive]] - first.from_us[alive] <= within_us]
    if numbered:
        alive = alive[key_of(last.number[reached[alive]]) == key_of(first.number[alive])]
    from_us = first.from_us[alive]
    # A match begins at most WITHIN before its last known row, and ends at most WITHIN after its
    # first known row.
    start_us, end_us = last.to_us[reached[alive]] - within_us, from_us + within_us
    first_row = np.full(len(alive), -FARTHEST, np.int64)
    last_row = np.full(len(alive), FARTHEST, np.int64)
    if starts:
        first_row = first.number[alive]
        if blocks[0].chosen[0] == blocks[0].first:
            start_us = from_us
    if ends:
        # The latest last block that can belong to this first one.
        latest = alive if len(blocks) == 1 else latest_by(last, key_of(first.number[alive]), end_us)
        last_row = last.number[latest] + (blocks[-1].last - blocks[-1].first)
        if blocks[-1].chosen[-1] == blocks[-1].last:
            end_us = last.to_us[latest]
    return Periods(start_us, end_us, first_row, last_row, key_of(first.number[alive]))


def key_of(number: Int64s) -> Int64s:
    """Return the keys of rows by their numbers, also if these count backwards."""
    return np.abs(number) >> KEY_SHIFT


def latest_by(found: Occurrences, key: Int64s, end_us: Int64s) -> Int64s:
    """Return the place of the latest occurrence of each key up to a time; there is one."""
    own = key_of(found.number)
    if not len(own) or own[0] == own[-1]:
        return np.searchsorted(found.to_us, end_us, "right") - 1
    # Times are replaced by their ranks, which leave room for the key beside them.
    times = np.unique(found.to_us)
    ranks = np.searchsorted(times, found.to_us) + (own << 32)
    wanted = np.searchsorted(times, end_us, "right") - 1 + (key << 32)
    return np.searchsorted(ranks, wanted, "right") - 1


def nearest(
    blocks: Sequence[SymbolRange], found: Sequence[Occurrences], *, numbered: bool
) -> Int64s:
    """Return for each first block the place of the nearest last block that can follow it.

    Every symbol in between takes at least one row. If no block can follow, the place is behind all.
    """
    reached: Int64s = np.arange(len(found[0]))
    for (block, here), (following, there) in pairwise(zip(blocks, found, strict=True)):
        if numbered:
            begin = here.number + (following.first - block.first)
            places = np.searchsorted(there.number, begin)
        else:
            places = np.searchsorted(there.from_us, here.to_us)
        reached = np.append(places, len(there))[reached]
    return reached


def aligned(block: SymbolRange, hits: Mapping[Condition, Hits]) -> Occurrences:
    """Return where all conditions on a block hold, each on its own row; numbers ascend."""
    own = [each for each in hits if each.symbol in block.chosen]
    own.sort(key=lambda each: len(hits[each]))
    number = hits[own[0]].seq - (own[0].symbol - block.first)
    for condition in own[1:]:
        wanted = number + (condition.symbol - block.first)
        number = number[places_of(wanted, hits[condition].seq) >= 0]
    # A block that would begin before its key does would get the number of another key.
    inside = key_of(number) == key_of(number + (own[0].symbol - block.first))
    number = number[inside]
    if len(own) == 1:
        ts = hits[own[0]].ts[inside]
        return Occurrences(number, ts, ts)
    times = []
    for symbol in (block.chosen[0], block.chosen[-1]):
        found = next(hits[each] for each in own if each.symbol == symbol)
        times.append(found.ts[places_of(number + (symbol - block.first), found.seq)])
    return Occurrences(number, *times)


def shared(block: SymbolRange, hits: Mapping[Condition, Hits]) -> Occurrences:
    """Return the rows on which all conditions on one symbol hold, in order of time."""
    found = shared_by([hits[c] for c in hits if c.symbol in block.chosen])
    return Occurrences(found.seq, found.ts, found.ts)


def shared_by(hits: Sequence[Hits]) -> Hits:
    """Return the rows that are hits of all conditions, in order of time."""
    fewest, *others = sorted(hits, key=len)
    for other in others:
        fewest = fewest.at(np.flatnonzero(places_of(fewest.seq, np.sort(other.seq)) >= 0))
    return fewest


def places_of(wanted: Int64s, ascending: Int64s) -> Int64s:
    """Return where numbers stand among others, -1 for those that do not."""
    if not len(ascending):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[places] == wanted, places, -1)
