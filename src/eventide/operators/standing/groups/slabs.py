"""The slabs of groups: how much room they need, compact copies, and their contents.

Sums need all of their slab. Sorted values need room for as many as there are; if these are many,
they stand in blocks, which a directory lists (kernels/aggregates/sorted_blocks.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.aggregates.sorted_blocks import COUNTS, HEADER, STARTS
from eventide.kernels.compiled import Int64s
from eventide.kernels.groups.sliding import BUCKETS, GREATEST, LEAST, LISTED, LISTED_TEXTS, SORTED
from eventide.kernels.slabs import BASE, BLOCK, LENGTH, ROOM, SHORTEST, START, USED, Slabs

LINES = (LEAST, GREATEST)
LISTS = (SORTED, BUCKETS, LISTED, LISTED_TEXTS)


class SlabPlaces(NamedTuple):
    """Slabs: where each begins, how many of its words matter, and how long it has to be."""

    starts: Int64s
    lengths: Int64s
    rooms: Int64s


class Blocks(NamedTuple):
    """Blocks: their owner, at which word the start is noted, the start, the number of values."""

    owners: Int64s
    named: Int64s
    starts: Int64s
    counts: Int64s


def spread(starts: Int64s, lengths: Int64s) -> Int64s:
    """Return this many places from each start on, one after the other."""
    behind = np.cumsum(lengths)
    within = np.repeat(starts - behind + lengths, lengths)
    return within + np.arange(len(within))


def blocks_of(slabs: Slabs, notes: Int64s, kinds: Int64s) -> Blocks:
    """Return all blocks of owners with these notes, in order."""
    owners = np.flatnonzero((kinds == SORTED) & (notes[:, ROOM] > slabs.facts[BLOCK]))
    directories, rooms = notes[owners, START], notes[owners, ROOM]
    counts, widths = slabs.words[directories], (rooms - HEADER) // 4
    named = spread(directories + HEADER + STARTS * widths, counts)
    counted = spread(directories + HEADER + COUNTS * widths, counts)
    return Blocks(np.repeat(owners, counts), named, slabs.words[named], slabs.words[counted])


def owned(slabs: Slabs, notes: Int64s, kinds: Int64s) -> SlabPlaces:
    """Return the slabs of owners with these notes; those of lists no longer than needed."""
    lines = np.isin(kinds, LINES)
    whole = ~(lines | np.isin(kinds, LISTS))
    whole |= (kinds == SORTED) & (notes[:, ROOM] > slabs.facts[BLOCK])
    lengths = np.where(lines, 2, 1) * notes[:, LENGTH]
    rooms = np.where(lengths > 0, SHORTEST, 0)
    while (rooms < lengths).any():
        rooms = np.where(rooms < lengths, 2 * rooms, rooms)
    return SlabPlaces(
        notes[:, START] + np.where(lines, 2 * notes[:, BASE], 0),
        np.where(whole, notes[:, ROOM], lengths),
        np.where(whole, notes[:, ROOM], rooms),
    )


def needed_words(slabs: Slabs, notes: Int64s, kinds: Int64s) -> int:
    """Return how many words the slabs of these owners need."""
    blocks = len(blocks_of(slabs, notes, kinds).starts) * int(slabs.facts[BLOCK])
    return int(owned(slabs, notes, kinds).rooms.sum()) + blocks


def compact_slabs(slabs: Slabs, notes: Int64s, kinds: Int64s) -> Slabs:
    """Return a pool with only the slabs of these owners, one behind the other."""
    blocks, slab = blocks_of(slabs, notes, kinds), owned(slabs, notes, kinds)
    full = np.full(len(blocks.starts), slabs.facts[BLOCK])
    sources = np.concatenate([slab.starts, blocks.starts])
    lengths = np.concatenate([slab.lengths, blocks.counts])
    rooms = np.concatenate([slab.rooms, full])
    behind = np.cumsum(rooms)
    starts = behind - rooms
    words = np.zeros(int(behind[-1]) if len(behind) else 0, np.int64)
    words[spread(starts, lengths)] = slabs.words[spread(sources, lengths)]
    own = starts[: len(notes)]
    moved = own[blocks.owners] + blocks.named - notes[blocks.owners, START]
    words[moved] = starts[len(notes) :]
    fresh, facts = notes.copy(), slabs.facts.copy()
    fresh[:, START], fresh[:, ROOM] = np.where(slab.rooms > 0, own, 0), slab.rooms
    fresh[np.isin(kinds, LINES), BASE] = 0
    facts[USED] = len(words)
    return Slabs(words, fresh, np.full_like(slabs.free, -1), facts)


def sorted_words(slabs: Slabs, owners: Int64s) -> Int64s:
    """Return the sorted values of these owners."""
    notes, kinds = slabs.notes[owners], np.full(len(owners), SORTED)
    blocks = blocks_of(slabs, notes, kinds)
    few = notes[:, ROOM] <= slabs.facts[BLOCK]
    starts = np.concatenate([notes[few, START], blocks.starts])
    lengths = np.concatenate([notes[few, LENGTH], blocks.counts])
    return slabs.words[spread(starts, lengths)]
