"""Conditions that no single equality finds: under which keys and intervals each is listed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline, lean_kernel
from eventide.kernels.sharing.conditions.programs import (
    CONSTANTS,
    DROPPED,
    FIRST_MASK,
    NUMBER,
    PROGRAM,
    SHAPE_BITS,
)

KEY, TEXT_KEY, INTERVAL = range(3)
"""Kinds of needs: one of `count` constants, a text test, an interval with one end or two."""

KIND, COLUMN, SLOT, COUNT, OTHER, OPEN = range(6)
"""Fields of a need. OTHER is the slot of the upper end, OPEN has a bit for each end left out.

SLOT and OTHER are -1 where an interval has no end.
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
                entries[at] = condition
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
            entries[at] = condition
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
def write_records(
    order: Int64s,
    numbers: Int64s,
    shapes: Int32s,
    firsts: Int32s,
    bases: Int32s,
    sizes: Int32s,
    constants: Int64s,
    places: Int32s,
    records: Int64s,
) -> None:
    """Write the records of conditions in an order; `places` becomes where that of each is."""
    at = 0
    for condition in order:
        places[condition] = at
        records[at + NUMBER] = numbers[condition]
        records[at + PROGRAM] = (np.int64(shapes[condition]) << SHAPE_BITS) | firsts[condition]
        at += CONSTANTS
        for k in range(sizes[condition]):
            records[at] = constants[bases[condition] + k]
            at += 1


@lean_kernel
def find_numbers(by_number: Int32s, records: Int64s, numbers: Int64s, found: Int64s) -> int:
    """Write the places of records with some numbers that are not dropped; return how many."""
    count = 0
    for number in numbers:
        low, high = 0, len(by_number)
        while low < high:
            middle = (low + high) >> 1
            if records[by_number[middle] + NUMBER] < number:
                low = middle + 1
            else:
                high = middle
        while low < len(by_number) and records[by_number[low] + NUMBER] == number:
            if is_there(records, by_number[low]):
                found[count] = by_number[low]
                count += 1
            low += 1
    return count


@lean_kernel
def drop_records(records: Int64s, places: Int64s) -> None:
    """Mark records as dropped; their shapes stay."""
    for place in places:
        records[place + PROGRAM] = (records[place + PROGRAM] >> SHAPE_BITS) << SHAPE_BITS


@inline
def is_there(records: Int64s, place: int) -> bool:
    """Whether a record was not dropped."""
    return bool((records[place + PROGRAM] & FIRST_MASK) != DROPPED)


@lean_kernel
def sort_constants(starts: Int64s, counts: Int64s, constants: Int64s) -> None:
    """Put each run of constants in order."""
    for run in range(len(starts)):
        first = starts[run]
        for i in range(first + 1, first + counts[run]):
            word = constants[i]
            at = i
            while at > first and constants[at - 1] > word:
                constants[at] = constants[at - 1]
                at -= 1
            constants[at] = word
