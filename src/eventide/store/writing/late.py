"""Late events: inserted into the leaves they belong to, or kept in a segment of their own.

A leaf that late events fall into is read, merged and rewritten at the end of the file, and so is
every node above it up to the flank; the old frames stay for readers who still use them. Late events
are inserted in bulk, so each leaf and node is rewritten once, no matter how many fall into it. A
leaf may grow by its spare space before it is split.

That pays if many events fall into few leaves. If a few fall into each of many, rewriting would cost
more than it gains, and they become a small sealed segment that overlaps others; so do events older
than the open segment. Compaction merges those later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s
from eventide.schema import TS
from eventide.store.files.frame import Kind
from eventide.store.files.mapped import MAPPED, damaged
from eventide.store.order import int64_view, sort_rows
from eventide.store.segments.encodings import DamagedLeafError
from eventide.store.segments.leaf import decode_leaf
from eventide.store.segments.segment_writer import SegmentWriter, leaf_capacity
from eventide.store.segments.tree import FAN_OUT, Levels, Tree, nodes_of, place, with_entries

MOST_REWRITTEN = 8
"""How many stored rows may be rewritten for one late row."""


def worth_inserting(tree: Tree, rows: pa.RecordBatch) -> bool:
    """Whether the leaves that sorted late rows fall into are few enough to be rewritten."""
    ts = int64_view(rows.column(TS))
    leaves = list(tree.leaves(TimeRange(int(ts[0]), int(ts[-1]) + 1)))
    if not leaves:
        return True
    between = pa.concat_batches([each.select(["ts_min", "rows"]) for each in leaves])
    touched = int(place(between, "rows")[np.unique(targets(between, ts))].sum())
    return touched <= MOST_REWRITTEN * int(rows.num_rows)


def targets(entries: pa.RecordBatch, ts: Int64s) -> Int64s:
    """Return which entry each time belongs to: the last one that begins no later.

    A late event has a larger number than every stored one, so among equal times it comes last.
    """
    found: Int64s = np.searchsorted(place(entries, "ts_min"), ts, "right") - 1
    return np.maximum(found, 0)


def insert_late(writer: SegmentWriter, rows: pa.RecordBatch, spare: float) -> None:
    """Put sorted rows into the leaves of an open segment, none of them before its first."""
    insertion = Insertion(writer, spare)
    ts = int64_view(rows.column(TS))
    levels = list(writer.levels)
    filled = [level for level in reversed(range(len(levels))) if levels[level].num_rows]
    starts = np.array([place(levels[level], "ts_min")[0] for level in filled], np.int64)
    ends = [*np.searchsorted(ts, starts[1:], "left"), len(ts)]
    start = 0
    for level, end in zip(filled, ends, strict=True):
        part = rows.slice(start, end - start)
        if part.num_rows:
            levels[level] = insertion.into(levels[level], level, part)
        start = int(end)
    writer.levels = closed_where_full(tuple(levels), writer)
    writer.add_to_indexes(rows)


def closed_where_full(levels: Levels, writer: SegmentWriter) -> Levels:
    """Write nodes of the levels of the flank that have grown beyond one."""
    for level in range(len(levels) + 1):
        if level < len(levels) and levels[level].num_rows >= FAN_OUT:
            entries, rest = levels[level], levels[level].slice(0, 0)
            kept = (*levels[:level], rest, *levels[level + 1 :])
            levels = with_entries(kept, level, entries, writer.form.layout, writer.write)
    return levels


class Insertion:
    """One batch of late rows that is inserted down the index."""

    def __init__(self, writer: SegmentWriter, spare: float) -> None:
        self.writer = writer
        self.spare = spare
        self.tree = writer.reached()

    def into(self, entries: pa.RecordBatch, level: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return entries of one level with sorted rows inserted below them."""
        belongs = targets(entries, int64_view(rows.column(TS)))
        touched = np.unique(belongs)
        self.writer.wasted += int(place(entries, "length")[touched].sum())
        starts = np.searchsorted(belongs, touched, "left")
        ends = np.searchsorted(belongs, touched, "right")
        parts = [rows.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
        if level == 0:
            grown = self.leaves([entries.slice(place, 1) for place in touched], parts)
        else:
            layout, write = self.writer.form.layout, self.writer.write
            grown = [
                nodes_of(
                    self.into(self.tree.child(entries, int(at)), level - 1, part),
                    level,
                    layout,
                    write,
                )
                for at, part in zip(touched, parts, strict=True)
            ]
        return spliced(entries, touched, grown)

    def leaves(
        self, entries: Sequence[pa.RecordBatch], parts: Sequence[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        """Rewrite leaves with more rows; return the entries that stand for each."""
        merged: list[pa.RecordBatch] = []
        bounds: list[int] = [0]
        counts: list[int] = []
        for entry, part in zip(entries, parts, strict=True):
            rows = sort_rows(pa.concat_batches([self.rows_of(entry), part]))
            cuts = self.cuts(rows)
            bounds += [bounds[-1] + cut for cut in cuts]
            counts.append(len(cuts))
            merged.append(rows)
        written = self.writer.write_leaves(pa.concat_batches(merged), np.array(bounds, np.int64))
        ends = np.cumsum(counts)
        return [written.slice(end - count, count) for end, count in zip(ends, counts, strict=True)]

    def cuts(self, rows: pa.RecordBatch) -> list[int]:
        """Return where a grown leaf is cut: not at all while it has spare space."""
        capacity = leaf_capacity(rows)
        if rows.num_rows <= capacity * (1 + self.spare):
            return [rows.num_rows]
        count = -(-rows.num_rows // capacity)
        ends = np.linspace(0, rows.num_rows, count + 1).astype(np.int64)[1:]
        return [int(end) for end in ends]

    def rows_of(self, entry: pa.RecordBatch) -> pa.RecordBatch:
        """Read the rows of a leaf."""
        path = self.writer.file.path
        address, length = int(place(entry, "address")[0]), int(place(entry, "length")[0])
        payload = MAPPED.frame(path, address, length, Kind.LEAF).payload
        schema = self.writer.form.schema.arrow
        try:
            return decode_leaf(payload, schema, schema.names)
        except DamagedLeafError as error:
            raise damaged(path, f"the leaf at byte {address}: {error}") from error


def spliced(
    entries: pa.RecordBatch, touched: Int64s, grown: Sequence[pa.RecordBatch]
) -> pa.RecordBatch:
    """Return entries with some replaced by others, of any number."""
    parts: list[pa.RecordBatch] = []
    start = 0
    for at, replacement in zip(touched, grown, strict=True):
        parts += [entries.slice(start, int(at) - start), replacement]
        start = int(at) + 1
    return pa.concat_batches([*parts, entries.slice(start)])
