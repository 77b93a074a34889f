"""How conditions are found: by what has to be true of an event before a condition can be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline, inline_lean, lean_kernel
from eventide.kernels.hashing import GOLDEN, mixed
from eventide.kernels.sharing.conditions.programs import Octets

FIRST, SECOND, CLUSTER, RUN = range(4)
"""Fields of a bucket: the two words of its key, its cluster plus one, where its entries are."""
_RUN_BITS = 32
_FILTER_SHIFT = np.uint64(24)
_COUNT_MASK = (1 << _RUN_BITS) - 1


class Buckets(NamedTuple):
    """Conditions by cluster and words: a hash table of runs of `entries`.

    A cluster is one or two columns whose words a condition asks to be equal to constants;
    `clusters` has the columns, -1 for no second one. The last cluster is that of text tests. An
    entry is the place of a record. A large table has a filter of a bit for each key, which stays
    nearer than the table; otherwise the filter is empty.
    """

    clusters: Int32s
    table: Int64s
    filtered: Octets
    entries: Int32s


class IntervalTrees(NamedTuple):
    """Conditions by an interval in which the word of a column has to be: interval trees.

    SlottedTree t is over `columns[t]` and has `sizes[t]` cells, a power of two, between
    `bounds[bound_starts[t]:]`. An interval belongs to the lowest node over all its cells; nodes are
    numbered as in a heap. Node n of tree t has entries [nodes[s + n], nodes[s + n + 1]), where s is
    `node_starts[t]`: once in order of the lower end, once from the highest upper end down.
    """

    columns: Int32s
    sizes: Int64s
    bound_starts: Int64s
    bounds: Int64s
    node_starts: Int64s
    nodes: Int64s
    lows: Int64s
    low_entries: Int32s
    highs: Int64s
    high_entries: Int32s
    low_ends: Int64s


@inline
def hash_of_key(first: np.int64, second: np.int64, cluster: np.int64) -> np.uint64:
    """Return the hash of a key."""
    word = np.uint64(first) * GOLDEN + (np.uint64(second) ^ (np.uint64(cluster) << np.uint64(48)))
    return mixed(word)


@inline_lean
def find_bucket(table: Int64s, first: int, second: int, cluster: int) -> int:
    """Return the bucket of a key, or the free one that it would get."""
    word = hash_of_key(np.int64(first), np.int64(second), np.int64(cluster))
    return find_hashed(table, word, first, second, cluster)


@inline_lean
def find_hashed(table: Int64s, word: np.uint64, first: int, second: int, cluster: int) -> int:
    """Return the bucket of a key with this hash, or the free one that it would get."""
    mask = np.uint64(len(table) - 1)
    place = word & mask
    while table[place, CLUSTER] != 0:
        if (
            table[place, FIRST] == first
            and table[place, SECOND] == second
            and table[place, CLUSTER] == cluster + 1
        ):
            break
        place = (place + np.uint64(1)) & mask
    return int(np.int64(place))


@inline_lean
def may_be_there(filtered: Octets, word: np.uint64) -> bool:
    """Whether there may be a key with this hash: the filter says no to most that are not there."""
    bit = (word >> _FILTER_SHIFT) & np.uint64(8 * len(filtered) - 1)
    return bool((filtered[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7))) & np.uint8(1))


@lean_kernel
def fill_filter(table: Int64s, filtered: Octets) -> None:
    """Put the keys of all buckets into the filter."""
    for place in range(len(table)):
        if table[place, CLUSTER] != 0:
            cluster = np.int64(table[place, CLUSTER] - 1)
            word = hash_of_key(table[place, FIRST], table[place, SECOND], cluster)
            bit = (word >> _FILTER_SHIFT) & np.uint64(8 * len(filtered) - 1)
            filtered[bit >> np.uint64(3)] |= np.uint8(1) << np.uint8(bit & np.uint64(7))


@lean_kernel
def count_entries(
    clusters: Int32s, first: Int64s, second: Int64s, table: Int64s, buckets: Int32s
) -> int:
    """Put the keys of entries into buckets and count them there; return how many keys differ.

    `buckets[i]` becomes the place of the bucket of entry i. The table is large enough.
    """
    count = 0
    for i in range(len(clusters)):
        place = find_bucket(table, first[i], second[i], clusters[i])
        if table[place, CLUSTER] == 0:
            table[place, FIRST], table[place, SECOND] = first[i], second[i]
            table[place, CLUSTER] = clusters[i] + 1
            count += 1
        table[place, RUN] += 1
        buckets[i] = place
    return count


@lean_kernel
def place_entries(table: Int64s, buckets: Int32s, places: Int32s) -> None:
    """Give each bucket a run, and each entry its place in that of its bucket, in order."""
    start = np.int64(0)
    for place in range(len(table)):
        count = table[place, RUN]
        table[place, RUN] = start << _RUN_BITS
        start += count
    for i in range(len(buckets)):
        run = table[buckets[i], RUN]
        places[i] = (run >> _RUN_BITS) + (run & _COUNT_MASK)
        table[buckets[i], RUN] = run + 1


@inline
def run_start(run: np.int64) -> np.int64:
    """Return where the entries of a bucket begin."""
    return run >> _RUN_BITS


@inline
def run_count(run: np.int64) -> np.int64:
    """Return how many entries a bucket has."""
    return run & _COUNT_MASK
