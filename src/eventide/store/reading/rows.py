"""Single rows of a snapshot, by their numbers: row n is the n-th in order of (ts, _seq).

Most units are one leaf, and of those only what is needed is read: heads of many leaves are checked
in one call, evenly spaced times are computed, doubles are taken in place. Units of several leaves,
and rows that are in no leaf yet, are read as a scan reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.ordering import ranges
from eventide.schema import SEQ, TS
from eventide.store.order import int64_view, is_ascending
from eventide.store.reading.heads import Heads
from eventide.store.reading.leaves import Units, leaf_entries
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place


@dataclass(frozen=True)
class NumberedRows:
    """The rows of units by their numbers."""

    units: Units

    @cached_property
    def ends(self) -> Int64s:
        """The number behind the last row of each unit."""
        return np.cumsum(self.units.rows)

    @cached_property
    def begins(self) -> Int64s:
        """The number of the first row of each unit, and that behind all rows."""
        return np.concatenate([[0], self.ends])

    @cached_property
    def segment_of(self) -> Int64s:
        """The segment of each unit that is one leaf in order; -1 for others."""
        units = self.units
        segments = units.snapshot.segments
        part = units.order[units.bounds[:-1]]
        owner = np.searchsorted(units.offsets, part, "right") - 1
        in_order = np.array([*(each.form.in_order for each in segments), False])
        single = np.diff(units.bounds) == 1
        return np.where(single & in_order[np.minimum(owner, len(segments))], owner, -1)

    def find(self, ts: Int64s) -> Int64s:
        """Return the number of the first row that is not before each time."""
        unit = np.searchsorted(self.units.ts_max, ts)
        found = self.begins[unit]
        inside = np.flatnonzero(unit < self.units.count)
        inside = inside[ts[inside] > self.units.ts_min[unit[inside]]]
        inside = inside[np.argsort(unit[inside], kind="stable")]
        for part in self.parts(unit[inside], (TS,)):
            own = inside[part.places]
            found[own] = self.begins[unit[own]] + part.find(ts[own])
        return found

    def take(self, rows: Int64s, schema: pa.Schema) -> pa.RecordBatch:
        """Return rows by their numbers, in the order given."""
        if not is_ascending(rows):
            # Every leaf is read once, no matter how often others come in between.
            order = np.argsort(rows, kind="stable")
            back = np.empty(len(rows), np.int64)
            back[order] = np.arange(len(rows))
            return self.take(rows[order], schema).take(pa.array(back))
        fresh = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1] + 1])[: len(rows)])
        lengths = np.diff(np.append(fresh, len(rows)))
        return self.take_ranges(rows[fresh], rows[fresh] + lengths, schema)

    def take_ranges(self, low: Int64s, high: Int64s, schema: pa.Schema) -> pa.RecordBatch:
        """Return the rows of ranges [low, high), one range after another."""
        first = np.searchsorted(self.ends, low, "right")
        last = np.maximum(np.searchsorted(self.ends, high - 1, "right"), first)
        unit = ranges(first, last - first + 1)
        of_range = np.repeat(np.arange(len(low)), last - first + 1)
        start = np.maximum(low[of_range], self.begins[unit]) - self.begins[unit]
        end = np.minimum(high[of_range], self.ends[unit]) - self.begins[unit]
        batches = [no_rows(schema)]
        for part in self.parts(unit, schema.names):
            columns = part.columns(start[part.places], end[part.places], schema)
            batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        return batches[1] if len(batches) == 2 else pa.concat_batches(batches)

    def parts(self, unit: Int64s, names: Sequence[str]) -> Iterator[LeafPart | OddPart]:
        """Yield units, given in the order in which they are wanted, as they are read together."""
        kinds = self.segment_of[unit]
        # Neighbours of one kind, as long as they ascend, as readers require.
        fresh = (kinds[1:] != kinds[:-1]) | (unit[1:] < unit[:-1])
        bounds = [0, *(np.flatnonzero(fresh) + 1).tolist(), len(unit)]
        for first, last in pairwise(bounds if len(unit) else ()):
            places, kind = np.arange(first, last), int(kinds[first])
            distinct, leaf_of = np.unique(unit[first:last], return_inverse=True)
            heads = None if kind < 0 else self.heads(kind, distinct, names)
            if heads is not None:
                yield LeafPart(places, leaf_of, heads, self.units.snapshot.segments[kind])
                continue
            ends = np.searchsorted(leaf_of, np.arange(len(distinct) + 1))
            for number, each in enumerate(distinct.tolist()):
                yield OddPart(places[ends[number] : ends[number + 1]], self.units, each)

    def heads(self, number: int, units: Int64s, names: Sequence[str]) -> Heads | None:
        """Return the heads of units that are leaves of one segment; None if not all is there."""
        snapshot = self.units.snapshot
        segment = snapshot.segments[number]
        wanted = [TS, *(name for name in names if name != TS)]
        if len(snapshot.columns.stored_in(segment, wanted)) < len(wanted):
            return None
        entries = leaf_entries(snapshot.path, segment)
        leaves = self.units.order[self.units.bounds[units]] - self.units.offsets[number]
        places = [place(entries, name)[leaves] for name in ("address", "length", "rows")]
        return Heads.of(snapshot.path, segment, wanted, places)


@dataclass(frozen=True, slots=True)
class LeafPart:
    """Leaves of one segment that are wanted at some `places`: there it is the leaf `leaf_of`."""

    places: Int64s
    leaf_of: Int64s
    heads: Heads
    segment: Segment

    def find(self, ts: Int64s) -> Int64s:
        """Return the first row of its leaf that is not before each time."""
        return self.heads.find(self.leaf_of, ts)

    def columns(self, start: Int64s, end: Int64s, schema: pa.Schema) -> list[pa.Array]:
        """Return columns of the rows [start, end) of each leaf that is wanted."""
        return [self.column(field, start, end - start) for field in schema]

    def column(self, field: pa.Field, start: Int64s, counts: Int64s) -> pa.Array:
        """Return one column of some rows of each leaf that is wanted."""
        heads = self.heads
        position = list(heads.names).index(field.name)
        if field.name == TS:
            return to_arrow(self.times(start, counts)).view(field.type)
        if field.type == pa.float64() and heads.lie_plain(position):
            doubles, begins = heads.plain(position)
            return pa.array(doubles[ranges(begins[self.leaf_of] + start, counts)])
        bounds = np.searchsorted(self.leaf_of, np.arange(len(heads.rows) + 1)).tolist()
        parts = []
        for leaf, (first, last) in enumerate(pairwise(bounds)):
            picked = ranges(start[first:last], counts[first:last])
            parts.append(heads.column(leaf, position, to_arrow(picked)))
        values = pa.concat_arrays(parts)
        if field.name == SEQ and self.segment.seq_offset:
            return to_arrow(int64_view(values) + self.segment.seq_offset)
        return values

    def times(self, start: Int64s, counts: Int64s) -> Int64s:
        """Return the times of some rows of each leaf that is wanted."""
        return self.heads.times_at(np.repeat(self.leaf_of, counts), ranges(start, counts))


@dataclass(frozen=True, slots=True)
class OddPart:
    """A unit that has to be read as a scan reads it, wanted at some `places`."""

    places: Int64s
    units: Units
    unit: int

    def find(self, ts: Int64s) -> Int64s:
        """Return the first row of the unit that is not before each time."""
        return np.searchsorted(int64_view(self.read((TS,)).column(TS)), ts)

    def columns(self, start: Int64s, end: Int64s, schema: pa.Schema) -> list[pa.Array]:
        """Return columns of the rows [start, end), for each place."""
        rows = self.read(schema.names).take(pa.array(ranges(start, end - start)))
        columns: list[pa.Array] = rows.columns
        return columns

    def read(self, names: Sequence[str]) -> pa.RecordBatch:
        """Return all rows of the unit."""
        return pa.concat_batches(self.units.read(np.array([self.unit]), names))


def in_scope(units: Units, kept: Bools) -> tuple[Int64s, Int64s]:
    """Return the numbers of the rows of neighbouring units: from where to where each run goes."""
    first, behind = runs_of(kept)
    begins = np.concatenate([[0], np.cumsum(units.rows)])
    return begins[first], begins[behind]


def runs_of(kept: Bools) -> tuple[Int64s, Int64s]:
    """Return where each run of places that are kept begins, and the place behind it.

    >>> [part.tolist() for part in runs_of(np.array([True, True, False, True]))]
    [[0, 3], [2, 4]]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], kept.astype(np.int8), [0]])))
    return edges[::2], edges[1::2]
