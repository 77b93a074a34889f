"""What must be true of every segment after any operations on the stream."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.store import Snapshot
from eventide.store.files.frame import Kind
from eventide.store.files.mapped import MAPPED
from eventide.store.order import int64_view
from eventide.store.segments import tree
from eventide.store.segments.leaf import decode_leaf
from eventide.store.segments.segment import Key, Segment
from eventide.store.segments.tree import leaf_entries, parent_entries, place


def check_tree(snapshot: Snapshot) -> None:
    """Check every index against its rows, and that each event is there exactly once."""
    numbers: list[int] = []
    for segment in (each for each in snapshot.segments if not each.thinned):
        numbers += Walk(snapshot.path, segment).check()
    for rows in snapshot.memory:
        numbers += int64_view(rows.column("_seq")).tolist()
    assert len(numbers) == snapshot.row_count
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= number < snapshot.view.next_seq for number in numbers)


class Walk:
    """One way through all entries of a segment, in the order of its index."""

    def __init__(self, folder: Path, segment: Segment) -> None:
        self.path = folder / segment.file
        self.segment = segment
        self.tree = segment.tree(folder)
        self.frames: list[tuple[int, int]] = [(segment.root, segment.root_length)]
        self.keys: list[Key] = []
        self.leaves = 0

    def check(self) -> list[int]:
        """Check everything; return the `_seq` of every row."""
        segment, levels = self.segment, self.tree.levels
        for level in reversed(range(len(levels))):
            assert levels[level].num_rows < tree.FAN_OUT
            self.check_entries(levels[level], level)
        entries = pa.concat_batches(levels[::-1])
        total = parent_entries(entries, all_of(entries), [(0, 0)], segment.form.layout)
        assert same(segment.summary(), total)
        names = ("rows", "leaves", "ts_min", "ts_max", "first_seq", "last_seq", "seq_max")
        assert [getattr(segment, name) for name in names] == [
            int(place(total, name)[0]) for name in names
        ]
        assert (segment.leaves, segment.rows) == (self.leaves, len(self.keys))
        if segment.form.in_order:
            assert all(one < other for one, other in pairwise(self.keys))
        assert (min(self.keys), max(self.keys)) == (
            (segment.ts_min, segment.first_seq),
            (segment.ts_max, segment.last_seq),
        )
        for (start, length), (following, _) in pairwise(sorted(self.frames)):
            assert start + length <= following
        assert max(start + length for start, length in self.frames) <= segment.bytes
        return [segment.seq_offset + seq for _, seq in self.keys]

    def check_entries(self, entries: pa.RecordBatch, level: int) -> None:
        """Check entries of one level, and everything below them."""
        for row in range(entries.num_rows):
            entry = entries.slice(row, 1)
            frame = (int(place(entry, "address")[0]), int(place(entry, "length")[0]))
            self.frames.append(frame)
            if level:
                below = self.tree.child(entries, row)
                assert 0 < below.num_rows <= tree.FAN_OUT
                layout = self.segment.form.layout
                assert same(entry, parent_entries(below, all_of(below), [frame], layout))
                self.check_entries(below, level - 1)
            else:
                self.check_leaf(entry, frame)

    def check_leaf(self, entry: pa.RecordBatch, frame: tuple[int, int]) -> None:
        """Check that an entry says what its leaf holds."""
        form = self.segment.form
        payload = MAPPED.frame(self.path, *frame, Kind.LEAF).payload
        rows = decode_leaf(payload, form.schema.arrow, form.schema.arrow.names)
        assert rows.num_rows
        summary = form.layout.summarise(rows, all_of(rows))
        own = leaf_entries(rows, all_of(rows), [frame], summary, in_order=form.in_order)
        assert same(entry, own)
        ts, seq = (int64_view(rows.column(name)).tolist() for name in ("ts", "_seq"))
        self.keys += zip(ts, seq, strict=True)
        self.leaves += 1


def all_of(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the bounds of one run."""
    return np.array([0, rows.num_rows], np.int64)


def same(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Whether two entries agree to the last bit, but for NaNs."""
    return one.schema.equals(other.schema) and repr(one.to_pylist()) == repr(other.to_pylist())
