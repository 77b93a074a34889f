"""Refuse written groups that are inconsistent: kernels follow the numbers in them without checks.

Groups are written without spare room, one slab behind the other: where each begins follows from the
lengths of those before it.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.sorted_blocks import COUNTS, HEADER, LOWS, STARTS, SUMS
from eventide.kernels.aggregates.sorted_values import COUNT_BITS
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.groups.sliding import (
    BUCKETS,
    DOUBLES,
    GREATEST,
    LEAST,
    LISTED,
    LISTED_TEXTS,
    SORTED,
    SQUARES,
    VALUES,
)
from eventide.kernels.groups.tables import COUNT, EMITTED, FIRST, HEAD, SECOND, SEEN, GroupTables
from eventide.kernels.slabs import BASE, BLOCK, LENGTH, ROOM, SHORTEST, START, Slabs
from eventide.operators.checking import require, require_within
from eventide.operators.standing.groups.slabs import spread

HIGHEST_DIGIT = 80
"""Doubles have fewer digits on the common grid (kernels/aggregates/exact_sums.py)."""


def check_groups(groups: GroupTables, empty: GroupTables) -> None:
    """Refuse groups of other shapes, or two of one key."""
    about, count = groups.about, len(groups.about)
    require(about.dtype == groups.tallies.dtype == np.int64, "groups of other types")
    require(about.shape[1:] == empty.about.shape[1:], "groups of other rows")
    require(groups.tallies.shape == (count, *empty.tallies.shape[1:]), "groups of other parts")
    require_within(about[:, COUNT], 0, 2**62, "rows of groups")
    require(not about[:, SEEN].any(), "a group that is free or being changed")
    require_within(about[:, EMITTED], 0, 2, "what groups have emitted")
    words = np.ascontiguousarray(about[:, [FIRST, SECOND]]).view("i8,i8").ravel()
    require(len(np.unique(words)) == count, "two groups of one key")
    require(about.shape[1] >= HEAD, "groups without a head")


def check_slabs(slabs: Slabs, kinds: Int64s) -> None:
    """Refuse slabs that do not lie one behind the other, or whose contents do not fit."""
    words, notes, block = slabs.words, slabs.notes, int(slabs.facts[BLOCK])
    require(words.dtype == notes.dtype == np.int64, "slabs of other types")
    require(words.ndim == 1 and notes.shape == (len(kinds), 4), "slabs of other shapes")
    rooms, lengths, bases = notes[:, ROOM], notes[:, LENGTH], notes[:, BASE]
    require_within(rooms, 0, len(words) + 1, "lengths of slabs")
    require_within(lengths, 0, 2**40, "values of slabs")
    taken = rooms[rooms > 0]
    require(((taken & (taken - 1)) == 0).all(), "slabs whose length is no power of two")
    require_within(taken, SHORTEST, len(words) + 1, "lengths of slabs")
    ends = np.cumsum(rooms)
    starts = np.where(rooms > 0, ends - rooms, 0)
    require((notes[:, START] == starts).all(), "slabs that do not follow each other")
    last = int(ends[-1]) if len(ends) else 0
    require(last <= len(words), "slabs behind the end")
    many = (kinds == SORTED) & (rooms > block)
    lines = np.isin(kinds, (LEAST, GREATEST))
    listed = np.isin(kinds, (SORTED, BUCKETS, LISTED, LISTED_TEXTS)) & ~many
    require((2 * lengths[lines] <= rooms[lines]).all(), "staircases longer than their slabs")
    require((lengths[listed] <= rooms[listed]).all(), "lists longer than their slabs")
    digits = np.isin(kinds, (DOUBLES, SQUARES))
    require_within(bases[digits], -HIGHEST_DIGIT, HIGHEST_DIGIT, "lowest digits of sums")
    require((rooms[digits] >= 0).all(), "digits of sums in slabs of no size")
    require(not bases[lines].any(), "staircases that do not begin at their start")
    ordered = (kinds == SORTED) & ~many
    require_within(bases[kinds == SORTED] - lengths[kinds == SORTED], -(2**40), 1, "values")
    require_within(bases[kinds == SORTED], 0, 2**40, "different values")
    check_ascending(words, starts[ordered], lengths[ordered], 1)
    check_ascending(words, starts[lines], lengths[lines], 2)
    place = last
    for owner in np.flatnonzero(many):
        place = check_directory(slabs, int(owner), place)
    require(place == len(words), "words that are nobody's")


def check_ascending(words: Int64s, starts: Int64s, lengths: Int64s, step: int) -> None:
    """Refuse lists whose entries, of `step` words each, do not ascend."""
    places = np.repeat(starts, lengths) + step * (spread(np.zeros_like(starts), lengths))
    values = words[places]
    rises = np.ones(len(values), np.bool_)
    rises[1:] = values[1:] >= values[:-1]
    firsts = np.cumsum(lengths) - lengths
    rises[firsts[lengths > 0]] = True
    require(rises.all(), "values that are not in order")


def check_directory(slabs: Slabs, owner: int, place: int) -> int:
    """Refuse a directory that does not list the blocks from a place on; return where they end."""
    words, block = slabs.words, int(slabs.facts[BLOCK])
    start, room, length, _ = (int(note) for note in slabs.notes[owner])
    width, blocks = (room - HEADER) >> 2, int(words[start])
    require(1 <= blocks <= width, f"{blocks} blocks in a directory for {width}")
    columns = [
        words[start + HEADER + column * width :][:blocks] for column in (LOWS, STARTS, COUNTS, SUMS)
    ]
    lows, starts, counts, sums = columns
    end = place + blocks * block
    require(end <= len(words), "blocks behind the end")
    require((starts == place + block * np.arange(blocks)).all(), "blocks that do not follow")
    require_within(counts, 1, block + 1, "values of blocks")
    require(int(counts.sum()) == length, "blocks of other values")
    require((lows == words[starts]).all(), "blocks that begin with other values")
    check_joined(words, starts, counts)
    numbers = np.arange(1, blocks + 1)
    total = np.concatenate([[0], np.cumsum(counts)])
    expected = total[numbers] - total[numbers - (numbers & -numbers)]
    require((sums == expected).all(), "sums of other counts")
    return end


def check_joined(words: Int64s, starts: Int64s, counts: Int64s) -> None:
    """Refuse blocks whose values do not ascend from the first to the last."""
    values = words[spread(starts, counts)]
    require((values[1:] >= values[:-1]).all(), "values that are not in order")


def check_counted(groups: GroupTables, slabs: Slabs, kinds: Int64s) -> None:
    """Refuse parts whose counted values are not those that are there."""
    counted = groups.tallies[:, :, VALUES].ravel()
    require_within(counted, 0, 2**62, "counts of values")
    lengths, starts = slabs.notes[:, LENGTH], slabs.notes[:, START]
    sorted_ones = kinds == SORTED
    require((counted[sorted_ones] == lengths[sorted_ones]).all(), "values that are not counted")
    lines = np.isin(kinds, (LEAST, GREATEST))
    require(((counted[lines] > 0) == (lengths[lines] > 0)).all(), "values that are not counted")
    buckets = kinds == BUCKETS
    held = slabs.words[spread(starts[buckets], lengths[buckets])] & ((1 << COUNT_BITS) - 1)
    owners = np.repeat(np.arange(int(buckets.sum())), lengths[buckets])
    sums = np.bincount(owners, held, int(buckets.sum()))
    require((sums == counted[buckets]).all(), "values that are not counted")


def without_lists(slabs: Slabs, kinds: Int64s) -> Slabs:
    """Return slabs without lists of the most frequent values, which are rebuilt when read."""
    listed = np.isin(kinds, (LISTED, LISTED_TEXTS))
    notes = slabs.notes.copy()
    notes[listed, LENGTH] = notes[listed, BASE] = 0
    return slabs._replace(notes=notes)


def check_members(groups: GroupTables, of_tuple: Int64s, valid: Bools, columns: Int64s) -> None:
    """Refuse groups that count other rows or values than their tuples have."""
    count = len(groups.about)
    require_within(of_tuple, 0, count, "groups of tuples")
    rows = np.bincount(of_tuple, minlength=count)
    require((rows == groups.about[:, COUNT]).all(), "groups that count other rows")
    for part, column in enumerate(columns):
        values = np.bincount(of_tuple[valid[column]], minlength=count)
        require((values == groups.tallies[:, part, VALUES]).all(), "groups that count other values")
