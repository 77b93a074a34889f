"""Segments: conditions with all that finds them. Made once; conditions only leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s, Int64s
from eventide.kernels.ordering import ranges
from eventide.kernels.sharing.conditions.access import (
    Buckets,
    IntervalTrees,
    count_entries,
    fill_filter,
    place_entries,
)
from eventide.kernels.sharing.conditions.clusters import (
    Equalities,
    choose_equalities,
    keys_of_choices,
    sketch_constants,
    weigh_pairs,
)
from eventide.kernels.sharing.conditions.listing import (
    count_listings,
    drop_records,
    find_numbers,
    list_intervals,
    list_keys,
    nodes_of_intervals,
    write_records,
)
from eventide.kernels.sharing.conditions.matching import AHEAD
from eventide.kernels.sharing.conditions.programs import (
    CONSTANTS,
    DROPPED,
    FIRST_MASK,
    NUMBER,
    PROGRAM,
    SHAPE_BITS,
)
from eventide.operators.sharing.conditions.batches import Batch
from eventide.operators.sharing.conditions.shapes import EQUALITIES, NEEDS, SCAN, Shapes

_PROBE = 2.5
"""What it costs to look up a key, in conditions that are tried."""
_MOST_PAIRED = 400
"""Columns among which pairs are looked for."""
_ROUNDS = 12
_LINE = 64
_LARGE_TABLE = 1 << 18
_CELL = 4
"""Intervals for each cell of a tree."""


class Keys(NamedTuple):
    """Listings by key: cluster, words and entry of each."""

    clusters: Int32s
    first: Int64s
    second: Int64s
    entries: Int32s


@dataclass
class IndexSegment:
    """Records of conditions, how they are found, and their places in order of their numbers."""

    records: Int64s
    buckets: Buckets
    intervals: IntervalTrees
    scanned: Int32s
    by_number: Int32s
    repeats: bool
    """Whether a condition may be found twice on an event."""
    dropped: int = 0

    @property
    def listings(self) -> int:
        """How many conditions are tried on an event at most."""
        return len(self.buckets.entries) + len(self.intervals.low_entries) + len(self.scanned)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = (self.records, *self.buckets, *self.intervals, self.scanned, self.by_number)
        return sum(each.nbytes for each in arrays)

    def __len__(self) -> int:
        return len(self.by_number) - self.dropped

    @property
    def first_and_last(self) -> tuple[int, int]:
        """The least and the greatest of its numbers, also of those that were dropped."""
        first, last = self.records[self.by_number[[0, -1]] + NUMBER].tolist()
        return first, last

    def drop(self, numbers: Int64s) -> Batch:
        """Drop conditions with some distinct numbers, and return them."""
        places = np.empty(len(self.by_number), np.int64)
        places = places[: find_numbers(self.by_number, self.records, numbers, places)]
        dropped = self._at(places)
        drop_records(self.records, places)
        self.dropped += len(places)
        return dropped

    def left(self) -> Batch:
        """Return the conditions that are still there, in order of their numbers."""
        places = self.by_number.astype(np.int64)
        first = self.records[places + PROGRAM] & FIRST_MASK
        return self._at(places[first != DROPPED])

    def _at(self, places: Int64s) -> Batch:
        shapes = (self.records[places + PROGRAM] >> SHAPE_BITS).astype(np.int32)
        bases = (places + CONSTANTS).astype(np.int32)
        return Batch(self.records[places], shapes, bases, self.records)


def segment_of(batch: Batch, shapes: Shapes) -> IndexSegment:
    """Return a segment with conditions, which it puts in an order of its own."""
    order = np.argsort(batch.numbers, kind="stable")
    batch = batch.at(order)
    access = shapes.access.array[batch.shapes]
    by_equality = np.flatnonzero(access == EQUALITIES).astype(np.int32)
    by_need = np.flatnonzero(access == NEEDS).astype(np.int32)
    scanned = np.flatnonzero(access == SCAN).astype(np.int32)
    plans = _Plans()
    skipped = shapes.skipped.array[batch.shapes]
    keys = [_equality_keys(batch, by_equality, shapes, plans, skipped)]
    keys += _need_keys(batch, by_need, shapes, plans)
    buckets = _buckets(Keys(*map(np.concatenate, zip(*keys, strict=True))), plans)
    intervals = _intervals(batch, by_need, shapes)
    return _in_order(batch, shapes, skipped, buckets, intervals, scanned)


class _Plans:
    """The clusters of a segment, as they turn out to be needed."""

    def __init__(self) -> None:
        self.clusters: list[tuple[int, int]] = []
        self.text_keys = False

    def cluster_of(self, one: int, other: int = -1) -> int:
        self.clusters.append((one, other))
        return len(self.clusters) - 1


def _equality_keys(
    batch: Batch, chosen: Int32s, shapes: Shapes, plans: _Plans, skipped: Int32s
) -> Keys:
    """Return the keys of conditions that are found by an equality or two."""
    none = np.zeros(0, np.int64)
    if not len(chosen):
        return Keys(none.astype(np.int32), none, none, none.astype(np.int32))
    kinds, bases = batch.shapes[chosen], batch.bases[chosen]
    starts, counts = shapes.equal_starts.array, shapes.equal_counts.array
    distinct = np.unique(kinds)
    used = np.unique(shapes.equal_columns.array[_rows_of(starts, counts, distinct)])
    dense = np.full(int(used.max()) + 1, -1, np.int32)
    dense[used] = np.arange(len(used))
    columns, slots = shapes.equal_columns.array, shapes.equal_slots.array
    equalities = Equalities(starts, counts, columns, slots, dense)
    choices = _choices(equalities, batch, kinds, bases, len(used))
    one = dense[columns[choices[:, 0]]]
    other = np.where(choices[:, 1] < 0, one, dense[columns[choices[:, 1]]])
    pairs = np.unique(np.minimum(one, other) * len(used) + np.maximum(one, other))
    cluster_of = np.full((len(used), len(used)), -1, np.int32)
    for pair in pairs.tolist():
        low, high = divmod(pair, len(used))
        second = -1 if low == high else int(used[high])
        cluster_of[low, high] = plans.cluster_of(int(used[low]), second)
    size = len(chosen)
    keys = Keys(
        np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int64), chosen
    )
    decided = np.empty(size, np.int32)
    keys_of_choices(
        equalities, kinds, bases, batch.constants, choices, cluster_of,
        keys.clusters, keys.first, keys.second, decided,
    )  # fmt: skip
    skipped[chosen] = decided
    return keys


def _choices(
    equalities: Equalities, batch: Batch, kinds: Int32s, bases: Int32s, count: int
) -> Int32s:
    """Return which equalities each condition is found by.

    Pairs are chosen in rounds: those that save most, then again among what they leave.
    """
    shares = _shares(equalities, batch.constants, kinds, bases, count)
    paired = np.zeros((count, count), np.uint8)
    costs = np.full(len(kinds), np.inf)
    choices = np.empty((len(kinds), 2), np.int32)
    choose_equalities(equalities, kinds, shares, paired, costs, choices)
    if count > _MOST_PAIRED or len(kinds) * float(costs.max()) < _PROBE:
        return choices
    for _ in range(_ROUNDS):
        gains = np.zeros((count, count))
        weigh_pairs(equalities, kinds, shares, costs, gains)
        gains[paired != 0] = 0.0
        good = np.flatnonzero(gains > _PROBE)
        if not len(good):
            break
        best = good[np.argsort(-gains.ravel()[good], kind="stable")]
        paired.ravel()[best[: 1 + len(best) // 8]] = 1
        choose_equalities(equalities, kinds, shares, paired, costs, choices)
    return choices


def _shares(
    equalities: Equalities, constants: Int64s, kinds: Int32s, bases: Int32s, count: int
) -> npt.NDArray[np.float64]:
    """Return the share of conditions that an equality with each column leaves.

    One constant of many is that of an event: how many differ is counted in a sketch.
    """
    size = 1 << max(6, min(14, (2 * len(kinds)).bit_length()))
    sketch = np.zeros((count, size), np.uint8)
    sketch_constants(equalities, kinds, bases, constants, sketch)
    unmarked = np.maximum(1, size - sketch.sum(axis=1))
    shares: npt.NDArray[np.float64] = 1.0 / np.maximum(1.0, -size * np.log(unmarked / size))
    return shares


def _need_keys(batch: Batch, chosen: Int32s, shapes: Shapes, plans: _Plans) -> list[Keys]:
    """Return the keys of conditions of which one need or another has to be met."""
    if not len(chosen):
        return []
    totals = np.zeros(2, np.int64)
    kinds = np.ascontiguousarray(batch.shapes[chosen])
    count_listings(shapes.need_table, kinds, totals)
    size = int(totals[0])
    if not size:
        return []
    distinct = np.unique(kinds)
    starts, counts = shapes.need_starts.array, shapes.need_counts.array
    needs = shapes.needs.array[_rows_of(starts, counts, distinct)]
    columns = np.unique(needs[needs[:, 0] == 0, 1])
    cluster_of = np.full((int(columns.max()) if len(columns) else 0) + 2, -1, np.int32)
    for column in columns.tolist():
        cluster_of[column] = plans.cluster_of(column)
    plans.text_keys = bool((needs[:, 0] == 1).any())
    keys = Keys(
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.zeros(size, np.int64),
        np.empty(size, np.int32),
    )
    cluster_of[-1] = len(plans.clusters)
    list_keys(
        shapes.need_table, chosen, batch.shapes, batch.bases, batch.constants, cluster_of,
        keys.clusters, keys.first, keys.entries,
    )  # fmt: skip
    return [keys]


def _buckets(keys: Keys, plans: _Plans) -> Buckets:
    """Return the hash table of keys, and entries in runs."""
    clusters = [*plans.clusters, (int(plans.text_keys), -1)]
    capacity = 16
    while capacity < 2 * len(keys.first):
        capacity *= 2
    table = _in_lines(4 * capacity).reshape(capacity, 4)
    places = np.empty(len(keys.first), np.int32)
    found = count_entries(keys.clusters, keys.first, keys.second, table, places)
    if 4 * found <= capacity and capacity > 16:
        # Many conditions share keys: a smaller table stays nearer.
        while capacity > 16 and 4 * found <= capacity:
            capacity //= 2
        table = _in_lines(4 * capacity).reshape(capacity, 4)
        count_entries(keys.clusters, keys.first, keys.second, table, places)
    at = np.empty(len(places), np.int32)
    place_entries(table, places, at)
    entries = np.empty(len(places), np.int32)
    entries[at] = keys.entries
    filtered = np.zeros(capacity if capacity >= _LARGE_TABLE else 0, np.uint8)
    if len(filtered):
        fill_filter(table, filtered)
    return Buckets(np.array(clusters, np.int32), table, filtered, entries)


def _intervals(batch: Batch, chosen: Int32s, shapes: Shapes) -> IntervalTrees:
    """Return the interval trees of conditions that are found by an interval."""
    totals = np.zeros(2, np.int64)
    kinds = np.ascontiguousarray(batch.shapes[chosen])
    count_listings(shapes.need_table, kinds, totals)
    size = int(totals[1])
    columns, entries = np.empty(size, np.int32), np.empty(size, np.int32)
    lows, highs = np.empty(size, np.int64), np.empty(size, np.int64)
    if size:
        size = list_intervals(
            shapes.need_table, chosen, batch.shapes, batch.bases, batch.constants,
            columns, lows, highs, entries,
        )  # fmt: skip
    trees = [
        _Tree.over(lows[:size][here], highs[:size][here], entries[:size][here], column)
        for column in np.unique(columns[:size]).tolist()
        for here in [columns[:size] == column]
    ]
    return _joined(trees)


class _Tree(NamedTuple):
    """One interval tree."""

    column: int
    bounds: Int64s
    nodes: Int64s
    low_order: Int64s
    high_order: Int64s
    lows: Int64s
    highs: Int64s
    entries: Int32s

    @classmethod
    def over(cls, lows: Int64s, highs: Int64s, entries: Int32s, column: int) -> _Tree:
        """Return the tree of intervals; its cells have about as many ends each."""
        size = 1
        while size * _CELL < len(lows):
            size *= 2
        ends = np.sort(np.concatenate((lows, highs)))
        bounds = ends[(np.arange(1, size) * len(ends)) // size]
        nodes = np.empty(len(lows), np.int64)
        low_cells = np.searchsorted(bounds, lows, "right")
        high_cells = np.searchsorted(bounds, highs, "right")
        nodes_of_intervals(low_cells, high_cells, size, nodes)
        starts = np.zeros(2 * size + 1, np.int64)
        np.cumsum(np.bincount(nodes, minlength=2 * size), out=starts[1:])
        return cls(
            column, bounds, starts,
            np.lexsort((lows, nodes)), np.lexsort((~highs, nodes)),
            lows, highs, entries,
        )  # fmt: skip


def _joined(trees: list[_Tree]) -> IntervalTrees:
    """Return several trees in common arrays."""
    none, few = np.zeros(0, np.int64), np.zeros(0, np.int32)
    sizes = np.array([len(tree.bounds) + 1 for tree in trees], np.int64)
    before = np.cumsum([0, *(len(tree.entries) for tree in trees)])
    nodes = [tree.nodes + start for tree, start in zip(trees, before[:-1].tolist(), strict=True)]
    return IntervalTrees(
        np.array([tree.column for tree in trees], np.int32),
        sizes,
        np.cumsum(sizes - 1) - (sizes - 1),
        np.concatenate([none, *(tree.bounds for tree in trees)]),
        np.cumsum(2 * sizes + 1) - (2 * sizes + 1),
        np.concatenate([none, *nodes]),
        np.concatenate([none, *(tree.lows[tree.low_order] for tree in trees)]),
        np.concatenate([few, *(tree.entries[tree.low_order] for tree in trees)]),
        np.concatenate([none, *(tree.highs[tree.high_order] for tree in trees)]),
        np.concatenate([few, *(tree.entries[tree.high_order] for tree in trees)]),
        np.concatenate([none, *(tree.highs[tree.low_order] for tree in trees)]),
    )


def _in_order(
    batch: Batch,
    shapes: Shapes,
    skipped: Int32s,
    buckets: Buckets,
    intervals: IntervalTrees,
    scanned: Int32s,
) -> IndexSegment:
    """Return the segment with its records in the order in which they are found."""
    listed = np.concatenate((buckets.entries, intervals.low_entries, scanned))
    order_of_first = np.full(len(batch), len(listed), np.int64)
    order_of_first[listed[::-1]] = np.arange(len(listed))[::-1]
    order = np.argsort(order_of_first, kind="stable")
    sizes = shapes.sizes.array[batch.shapes]
    firsts = shapes.starts.array[batch.shapes] + skipped
    places = np.empty(len(batch), np.int32)
    records = _in_lines(int(sizes.sum()) + CONSTANTS * len(batch) + AHEAD)
    write_records(
        order, batch.numbers, batch.shapes, firsts, batch.bases, sizes, batch.constants,
        places, records,
    )  # fmt: skip
    return IndexSegment(
        records,
        buckets._replace(entries=places[buckets.entries]),
        intervals._replace(
            low_entries=places[intervals.low_entries], high_entries=places[intervals.high_entries]
        ),
        places[scanned],
        # The batch is in order of number.
        places,
        repeats=bool(len(listed) > np.count_nonzero(order_of_first < len(listed))),
    )


def _in_lines(count: int) -> Int64s:
    """Return words that begin at a line of the cache: a small record then lies in one."""
    spare = _LINE // 8
    words = np.zeros(count + spare, np.int64)
    first = -words.ctypes.data % _LINE // 8
    return words[first : first + count]


def _rows_of(starts: Int32s, counts: Int32s, which: Int32s) -> Int64s:
    """Return the rows that some shapes have in a table."""
    return ranges(starts[which].astype(np.int64), counts[which].astype(np.int64))
