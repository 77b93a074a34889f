"""The contents of a snapshot as units in order of time: leaves, and rows that are in none yet.

Usually a unit is one leaf. Leaves that overlap, because events came late, are one unit together. So
every row of a unit comes before every row of the next, and reading some units in order gives rows
in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.errors import StoreError
from eventide.instants import ALL_TIME
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.ordering import ranges
from eventide.schema import SEQ
from eventide.store.index.ranges import ValueRange
from eventide.store.order import int64_view
from eventide.store.reading.heads import Heads
from eventide.store.reading.scan import (
    RowSource,
    memory_rows,
    read_sources,
    stored_leaves,
)
from eventide.store.segments.encodings import STEPS
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place
from eventide.store.snapshot import Snapshot

CACHED_SEGMENTS = 256
PLACES = ("ts_min", "ts_max", "first_seq", "last_seq", "rows")


def leaf_entries(folder: Path, segment: Segment) -> pa.RecordBatch:
    """Return the entries of all leaves of a segment, or of the lowest level that is left of it."""
    return _leaf_entries(SegmentPlace.of(folder, segment))


@dataclass(frozen=True)
class SegmentPlace:
    """A segment by the place of its root: comparing everything in a segment takes too long."""

    folder: Path
    file: str
    root: int
    thinned: int
    segment: Segment = field(compare=False)

    @classmethod
    def of(cls, folder: Path, segment: Segment) -> SegmentPlace:
        """Return where a segment is."""
        return cls(folder, segment.file, segment.root, segment.thinned, segment)


@lru_cache(maxsize=CACHED_SEGMENTS)
def _leaf_entries(where: SegmentPlace) -> pa.RecordBatch:
    tree = where.segment.tree(where.folder)
    parts = [
        entries
        for level, some in reversed(list(enumerate(tree.levels)))
        for entries in tree.entries_below(some, level, min(level, tree.floor))
    ]
    return pa.concat_batches([no_rows(tree.schema), *parts])


def counts_up(folder: Path, segment: Segment) -> bool:
    """Whether the numbers of events count up from row to row in each leaf of a segment.

    The first and the last number of a leaf do not show it: events may have come late in between.
    """
    return segment.form.in_order and _counts_up(SegmentPlace.of(folder, segment))


@lru_cache(maxsize=CACHED_SEGMENTS)
def _counts_up(where: SegmentPlace) -> bool:
    entries = _leaf_entries(where)
    places = [place(entries, name) for name in ("address", "length", "rows")]
    heads = Heads.of(where.folder, where.segment, [SEQ], places)
    if heads is None:
        return False
    # Usually the head shows it; otherwise the numbers are read.
    stepped = (heads.fact(0, "encoding") == STEPS) & (heads.fact(0, "width") == 0)
    unsure = np.flatnonzero(~(stepped & (heads.fact(0, "step") == 1)))
    try:
        numbers = (int64_view(heads.column(leaf, 0)) for leaf in unsure.tolist())
        return all(bool((np.diff(each) == 1).all()) for each in numbers)
    except StoreError:
        return False


@dataclass(frozen=True)
class Units:
    """Units in order: unit u has the parts `order[bounds[u]:bounds[u + 1]]`.

    Parts are the leaves of all segments, one segment after another from `offsets` on, and then
    the rows in memory.
    """

    snapshot: Snapshot
    offsets: Int64s
    order: Int64s
    bounds: Int64s
    ts_min: Int64s
    ts_max: Int64s
    rows: Int64s
    in_order: bool
    """Whether events came in the order of their times: `_seq` counts up from row to row."""
    first_seq: int = 0
    possible: dict[tuple[str, ValueRange], Bools] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        """How many units there are."""
        return len(self.rows)

    def may_hold(self, attribute: str, wanted: ValueRange) -> Bools:
        """Return which units may have a row whose attribute is in a range."""
        key = (attribute, wanted)
        if key not in self.possible:
            segments = self.snapshot.segments
            parts = [part_may_hold(self.snapshot, each, attribute, wanted) for each in segments]
            parts += [
                np.array([wanted.mask(rows.column(attribute)).any()])
                for rows in self.snapshot.memory
                if rows.num_rows
            ]
            every = np.concatenate([np.empty(0, np.bool_), *parts])
            starts = self.bounds[:-1]
            found = np.logical_or.reduceat(every[self.order], starts) if len(starts) else every
            self.possible[key] = np.asarray(found)
        return self.possible[key]

    def share(self, is_so: Callable[[Segment], bool]) -> Bools:
        """Return the units that consist only of leaves of segments with some property."""
        parts = np.zeros(len(self.order), np.bool_)
        for number, segment in enumerate(self.snapshot.segments[: len(self.offsets) - 1]):
            parts[self.offsets[number] : self.offsets[number + 1]] = is_so(segment)
        if not self.count:
            return parts
        return np.asarray(np.logical_and.reduceat(parts[self.order], self.bounds[:-1]))

    def parts(self, units: Int64s) -> Iterator[tuple[int, Int64s, Int64s]]:
        """Yield the parts of some units: a segment, which leaves, and the unit of each.

        Segments are numbered as in the snapshot; after them come the rows in memory, as one more.
        """
        lengths = self.bounds[units + 1] - self.bounds[units]
        parts = self.order[ranges(self.bounds[units], lengths)]
        unit_of = np.repeat(units, lengths)
        owner = np.searchsorted(self.offsets, parts, "right") - 1
        for number in np.unique(owner).tolist():
            own = owner == number
            yield number, parts[own] - self.offsets[number], unit_of[own]

    def sources(self, units: Int64s) -> list[RowSource]:
        """Return the parts of some units, in order of first keys."""
        memory = [rows for rows in self.snapshot.memory if rows.num_rows]
        found: list[RowSource] = []
        for number, own, _ in self.parts(units):
            if number == len(self.snapshot.segments):
                found += [memory_rows(memory[part]) for part in own.tolist()]
                continue
            segment = self.snapshot.segments[number]
            entries = leaf_entries(self.snapshot.path, segment).take(pa.array(own))
            found += stored_leaves(self.snapshot.path, segment, entries)
        found.sort(key=lambda source: source.first_key)
        return found

    def batches(self, units: Int64s, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of some units, in order."""
        wanted = self.snapshot.wanted(columns, ALL_TIME, {})
        return read_sources(self.sources(units), wanted)

    def read(self, units: Int64s, columns: Sequence[str]) -> list[pa.RecordBatch]:
        """Return all rows of some units, in order."""
        return list(self.batches(units, columns))


def units_of(snapshot: Snapshot, *, numbered: bool = True) -> Units:
    """Return the contents of a snapshot as units. Thinned segments have no rows to read.

    Without `numbered` it is not checked whether they are in order, which takes a look at every
    leaf.
    """
    memory = [rows for rows in snapshot.memory if rows.num_rows]
    columns: dict[str, list[Int64s]] = {name: [] for name in PLACES}
    for segment in snapshot.segments:
        entries = leaf_entries(snapshot.path, segment)
        for name in PLACES:
            offset = segment.seq_offset if name.endswith("_seq") else 0
            columns[name].append(place(entries, name) + offset)
    for rows in memory:
        source = memory_rows(rows)
        begin, end = source.first_key, source.last_key
        values = (begin[0], end[0], begin[1], end[1], source.rows)
        for name, value in zip(PLACES, values, strict=True):
            columns[name].append(np.array([value], np.int64))
    none: Int64s = np.empty(0, np.int64)
    places = {name: np.concatenate([none, *columns[name]]) for name in PLACES}
    counts = [len(part) for part in columns["rows"]]
    order = np.lexsort((places["first_seq"], places["ts_min"]))
    ts_min, ts_max, first, last, counted = (places[name][order] for name in PLACES)
    reached = np.maximum.accumulate(ts_max) if len(ts_max) else ts_max
    newest = np.maximum.accumulate(last) if len(last) else last
    apart = (ts_min[1:] > reached[:-1]) | ((ts_min[1:] == reached[:-1]) & (first[1:] > newest[:-1]))
    bounds = np.concatenate([[0], np.flatnonzero(apart) + 1, [len(counted)]])[: len(counted) + 1]
    starts = bounds[:-1]
    # Nothing is missing or out of place: the numbers of each leaf are as many as its rows.
    in_order = (
        numbered
        and len(starts) == len(counted)
        and bool((last - first + 1 == counted).all() and (first[1:] == last[:-1] + 1).all())
        and all((np.diff(int64_view(rows.column(SEQ))) == 1).all() for rows in memory)
        and all(counts_up(snapshot.path, segment) for segment in snapshot.segments)
    )
    if not len(counted):
        return Units(snapshot, none, none, np.zeros(1, np.int64), none, none, none, in_order)
    return Units(
        snapshot,
        np.cumsum([0, *counts[: len(snapshot.segments)]]),
        order,
        bounds,
        np.minimum.reduceat(ts_min, starts),
        np.maximum.reduceat(ts_max, starts),
        np.add.reduceat(counted, starts),
        in_order,
        int(first[0]),
    )


def part_may_hold(
    snapshot: Snapshot, segment: Segment, attribute: str, wanted: ValueRange
) -> Bools:
    """Return which leaves of a segment may have a row whose attribute is in a range."""
    entries = leaf_entries(snapshot.path, segment)
    if not snapshot.columns.stored_in(segment, [attribute]):
        return np.zeros(entries.num_rows, np.bool_)  # null in every row
    if attribute not in segment.form.summaries:
        return np.ones(entries.num_rows, np.bool_)
    return wanted.may_hold(entries.column(f"{attribute}.min"), entries.column(f"{attribute}.max"))
