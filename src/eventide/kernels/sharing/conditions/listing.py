"""Conditions that no single equality finds: under which keys and intervals each is listed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, lean_kernel

KEY, TEXT_KEY, INTERVAL = range(3)
"""Kinds of needs: one of `count` constants, a text test, an interval with one end or two."""

KIND, COLUMN, SLOT, COUNT, OTHER, OPEN, WHOLE = range(7)
"""Fields of a need. OTHER is the slot of the upper end, OPEN has a bit for each end left out.

SLOT and OTHER are -1 where an interval has no end. With WHOLE, nothing else is asked.
"""
LOW_OPEN, HIGH_OPEN = 1, 2
LEAST = np.iinfo(np.int64).min
MOST = np.iinfo(np.int64).max


class ListedNeeds(NamedTuple):
    """What has to be true, one or another, of each shape: rows of `needs`."""

    starts: Int32s
    counts: Int32s
    needs: Int32s


@lean_kernel
def count_listings(needs: ListedNeeds, shapes: Int32s, totals: Int64s) -> None:
    """Count the listings of conditions: by key, and by interval."""
    for shape in shapes:
        start = needs.starts[shape]
        for k in range(start, start + needs.counts[shape]):
            if needs.needs[k, KIND] == INTERVAL:
                totals[1] += 1
            else:
                totals[0] += max(1, needs.needs[k, COUNT])


@lean_kernel
def list_keys(
    needs: ListedNeeds,
    conditions: Int32s,
    shapes: Int32s,
    bases: Int32s,
    constants: Int64s,
    cluster_of: Int32s,
    clusters: Int32s,
    first: Int64s,
    entries: Int32s,
) -> None:
    """Write the cluster, the word and the entry of each listing by key.

    `cluster_of` has the cluster of each column, and at its end that of text tests.
    """
    at = 0
    for condition in conditions:
        shape, base = shapes[condition], bases[condition]
        start = needs.starts[shape]
        for k in range(start, start + needs.counts[shape]):
            kind = needs.needs[k, KIND]
            if kind == INTERVAL:
                continue
            cluster = cluster_of[len(cluster_of) - 1]
            if kind == KEY:
                cluster = cluster_of[needs.needs[k, COLUMN]]
            slot = base + needs.needs[k, SLOT]
            for place in range(slot, slot + max(1, needs.needs[k, COUNT])):
                clusters[at] = cluster
                first[at] = constants[place]
                entries[at] = -1 - condition if needs.needs[k, WHOLE] else condition
                at += 1


@lean_kernel
def list_intervals(
    needs: ListedNeeds,
    conditions: Int32s,
    shapes: Int32s,
    bases: Int32s,
    constants: Int64s,
    columns: Int32s,
    lows: Int64s,
    highs: Int64s,
    entries: Int32s,
) -> int:
    """Write column, both ends and entry of each listing by interval that has a word in it."""
    at = 0
    for condition in conditions:
        shape, base = shapes[condition], bases[condition]
        start = needs.starts[shape]
        for k in range(start, start + needs.counts[shape]):
            if needs.needs[k, KIND] != INTERVAL:
                continue
            low, high = np.int64(LEAST), np.int64(MOST)
            ends = needs.needs[k, OPEN]
            if needs.needs[k, SLOT] >= 0:
                low = constants[base + needs.needs[k, SLOT]]
                if ends & LOW_OPEN:
                    if low == MOST:
                        continue
                    low += 1
            if needs.needs[k, OTHER] >= 0:
                high = constants[base + needs.needs[k, OTHER]]
                if ends & HIGH_OPEN:
                    if high == LEAST:
                        continue
                    high -= 1
            if low > high:
                continue
            columns[at] = needs.needs[k, COLUMN]
            lows[at], highs[at] = low, high
            entries[at] = -1 - condition if needs.needs[k, WHOLE] else condition
            at += 1
    return at


@lean_kernel
def nodes_of_intervals(low_cells: Int64s, high_cells: Int64s, size: int, nodes: Int64s) -> None:
    """Write the lowest node of a heap with `size` leaves that is over the cells of an interval."""
    for i in range(len(nodes)):
        low, high = size + low_cells[i], size + high_cells[i]
        while low != high:
            low >>= 1
            high >>= 1
        nodes[i] = low


@lean_kernel
def gather_constants(
    order: Int64s, bases: Int32s, sizes: Int32s, constants: Int64s, starts: Int32s, out: Int64s
) -> None:
    """Copy the constants of conditions in an order; `starts` becomes where those of each are."""
    at = 0
    for i in range(len(order)):
        base = bases[order[i]]
        starts[i] = at
        for k in range(sizes[order[i]]):
            out[at] = constants[base + k]
            at += 1


@lean_kernel
def sort_slots(bases: Int32s, slot: int, count: int, constants: Int64s) -> None:
    """Put `count` constants of each condition from a slot on in order."""
    for base in bases:
        first = base + slot
        for i in range(first + 1, first + count):
            word = constants[i]
            at = i
            while at > first and constants[at - 1] > word:
                constants[at] = constants[at - 1]
                at -= 1
            constants[at] = word
