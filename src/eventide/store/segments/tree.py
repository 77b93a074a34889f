"""The time index of a segment: a tree whose entries know what lies below them.

An entry stands for a leaf (some thousand rows) or for a node (`FAN_OUT` entries). It says where
that is in the file, the times and keys of its rows, how many rows and leaves it has, and the
aggregates of every summarised attribute. So one tree answers four questions: where is the n-th leaf
(it is the block-address index), which leaves can hold a time, which can hold a value, and what do
the rows of a period add up to.

It is built from below and only at its right edge. `Levels[k]` are the entries of level k that are
not yet inside a node: level 0 has leaves, level 1 has nodes of leaves, and so on. When a level has
`FAN_OUT` entries they are written as a node, and its entry goes one level up. The entries that are
not yet inside a node are the *flank*; writing it as a root frame makes everything before it
reachable.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow
from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.schema import SEQ, TS
from eventide.store.files.frame import Kind
from eventide.store.files.mapped import MAPPED, damaged
from eventide.store.index.ranges import ValueRange
from eventide.store.index.summaries import SummaryLayout
from eventide.store.order import int64_view

FAN_OUT = 64

PLACES = [
    pa.field(name, pa.int64())
    for name in (
        "address",  # where the frame begins
        "length",  # how long it is, with its header
        "rows",
        "leaves",
        "ts_min",
        "ts_max",
        "first_seq",  # the number of the row with the smallest (ts, _seq)
        "last_seq",  # of the row with the largest
        "seq_max",
    )
]

Levels = tuple[pa.RecordBatch, ...]
WriteFrame = Callable[[Kind, int, Sequence[bytes | pa.Buffer]], tuple[int, int]]
"""Takes kind, level and payload; returns address and length of the frame written."""


@lru_cache(maxsize=64)
def entry_schema(layout: SummaryLayout) -> pa.Schema:
    """Return the columns of an entry: its place, then its aggregates."""
    return pa.schema([*PLACES, *layout.arrow])


def leaf_entries(
    rows: pa.RecordBatch,
    bounds: Int64s,
    frames: Sequence[tuple[int, int]],
    summaries: pa.RecordBatch,
    *,
    in_order: bool,
) -> pa.RecordBatch:
    """Return an entry for each run of rows that became a leaf."""
    ts, seq = int64_view(rows.column(TS)), int64_view(rows.column(SEQ))
    starts, counts = bounds[:-1], np.diff(bounds)
    if in_order:
        first, last = starts, bounds[1:] - 1
    else:
        first, last = extreme_keys(ts, seq, bounds)
    places: list[Int64s] = [
        np.array([address for address, _ in frames], np.int64),
        np.array([length for _, length in frames], np.int64),
        counts,
        np.ones(len(counts), np.int64),
        ts[first],
        ts[last],
        seq[first],
        seq[last],
        np.maximum.reduceat(seq, starts) if len(starts) else starts,
    ]
    return with_summaries(places, summaries, pa.schema([*PLACES, *summaries.schema]))


def extreme_keys(ts: Int64s, seq: Int64s, bounds: Int64s) -> tuple[Int64s, Int64s]:
    """Return the rows with the smallest and the largest (ts, _seq) of each run."""
    runs = len(bounds) - 1
    first, last = np.empty(runs, np.int64), np.empty(runs, np.int64)
    for run in range(runs):
        start, end = int(bounds[run]), int(bounds[run + 1])
        part = ts[start:end]
        low, high = np.flatnonzero(part == part.min()), np.flatnonzero(part == part.max())
        first[run] = start + low[np.argmin(seq[start + low])]
        last[run] = start + high[np.argmax(seq[start + high])]
    return first, last


def parent_entries(
    children: pa.RecordBatch,
    bounds: Int64s,
    frames: Sequence[tuple[int, int]],
    layout: SummaryLayout,
) -> pa.RecordBatch:
    """Return an entry for each run of entries that became a node."""
    starts = bounds[:-1]
    ts_min, ts_max = place(children, "ts_min"), place(children, "ts_max")
    first_seq, last_seq = place(children, "first_seq"), place(children, "last_seq")
    first, last = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    for run, (start, end) in enumerate(zip(starts, bounds[1:], strict=True)):
        part = slice(int(start), int(end))
        first[run] = start + np.lexsort((first_seq[part], ts_min[part]))[0]
        last[run] = start + np.lexsort((last_seq[part], ts_max[part]))[-1]
    places: list[Int64s] = [
        np.array([address for address, _ in frames], np.int64),
        np.array([length for _, length in frames], np.int64),
        np.add.reduceat(place(children, "rows"), starts),
        np.add.reduceat(place(children, "leaves"), starts),
        ts_min[first],
        ts_max[last],
        first_seq[first],
        last_seq[last],
        np.maximum.reduceat(place(children, "seq_max"), starts),
    ]
    return with_summaries(places, layout.merge(children, frozen(bounds)), entry_schema(layout))


def with_summaries(
    places: Sequence[Int64s], summaries: pa.RecordBatch, schema: pa.Schema
) -> pa.RecordBatch:
    """Join the two halves of entries."""
    columns = [*(to_arrow(column) for column in places), *summaries.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def place(entries: pa.RecordBatch, name: str) -> Int64s:
    """Return one of the fixed columns of entries."""
    return int64_view(entries.column(name))


@lru_cache(maxsize=64)
def no_entries(layout: SummaryLayout) -> pa.RecordBatch:
    """Return a level without entries."""
    return no_rows(entry_schema(layout))


def with_entries(
    levels: Levels, level: int, entries: pa.RecordBatch, layout: SummaryLayout, write: WriteFrame
) -> Levels:
    """Add entries at the right edge of a level, writing the nodes that fill up."""
    grown = list(levels)
    while entries.num_rows:
        while len(grown) <= level:
            grown.append(no_entries(layout))
        held = pa.concat_batches([grown[level], entries])
        full = held.num_rows // FAN_OUT * FAN_OUT
        grown[level] = held.slice(full)
        entries = nodes_of(held.slice(0, full), level + 1, layout, write)
        level += 1
    return tuple(grown)


def nodes_of(
    children: pa.RecordBatch, level: int, layout: SummaryLayout, write: WriteFrame
) -> pa.RecordBatch:
    """Write entries as nodes of about `FAN_OUT`, and return the entries of those."""
    if not children.num_rows:
        return no_entries(layout)
    count = -(-children.num_rows // FAN_OUT)
    bounds = np.linspace(0, children.num_rows, count + 1).astype(np.int64)
    frames = [
        write(Kind.NODE, level, [children.slice(start, end - start).serialize()])
        for start, end in pairwise(bounds.tolist())
    ]
    return parent_entries(children, bounds, frames, layout)


def encode_levels(levels: Levels) -> list[bytes | pa.Buffer]:
    """Return the payload of a root frame: how many levels, then each as an Arrow message."""
    messages = [level.serialize() for level in levels]
    lengths = [message.size for message in messages]
    return [struct.pack(f"<{1 + len(lengths)}Q", len(lengths), *lengths), *messages]


def decode_levels(payload: pa.Buffer, schema: pa.Schema) -> Levels:
    """Read what `encode_levels` wrote."""
    (count,) = struct.unpack("<Q", payload.slice(0, 8).to_pybytes())
    lengths = struct.unpack(f"<{count}Q", payload.slice(8, 8 * count).to_pybytes())
    levels, start = [], 8 + 8 * count
    for length in lengths:
        message = pa.ipc.read_message(payload.slice(start, length))
        levels.append(pa.ipc.read_record_batch(message, schema))
        start += length
    return tuple(levels)


@dataclass(frozen=True)
class Tree:
    """The time index of one segment as a snapshot sees it."""

    path: Path
    schema: pa.Schema
    summaries: tuple[str, ...]
    levels: Levels
    floor: int = 0
    """The lowest level there is: above 0 where leaves, or more, were thinned away."""

    def leaves(
        self, time_range: TimeRange, where: Mapping[str, ValueRange] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the entries of leaves that may hold rows of a time range and with some values."""
        for level, entries in reversed(list(enumerate(self.levels))):
            yield from self.leaves_below(entries, level, time_range, where or {})

    def leaves_below(
        self,
        entries: pa.RecordBatch,
        level: int,
        time_range: TimeRange,
        where: Mapping[str, ValueRange],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the leaves under some entries of one level that may matter."""
        wanted = touching(entries, time_range)
        for attribute, condition in where.items():
            if attribute in self.summaries:
                low, high = entries.column(f"{attribute}.min"), entries.column(f"{attribute}.max")
                wanted &= condition.may_hold(low, high)
        if not wanted.any():
            return
        if level == 0:
            yield those(entries, wanted)
            return
        for row in np.flatnonzero(wanted):
            below = self.child(entries, int(row))
            yield from self.leaves_below(below, level - 1, time_range, where)

    def cover(
        self, time_range: TimeRange, names: list[str]
    ) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
        """Return entries that lie entirely in a time range, and leaves that it cuts.

        Together they hold every row of the range once. Nodes are read only at the two ends of the
        range: at most two paths from the root to a leaf. The whole entries have the columns
        `names`, the leaves have all. A thinned tree has no leaves: it returns the entries that a
        range cuts at its lowest level.
        """
        whole: list[pa.RecordBatch] = []
        cut: list[pa.RecordBatch] = []
        waiting = [(entries, level) for level, entries in enumerate(self.levels)]
        while waiting:
            entries, level = waiting.pop()
            inside = within(entries, time_range)
            border = touching(entries, time_range) & ~inside
            if inside.any():
                whole.append(those(entries.select(names), inside))
            if not border.any():
                continue
            if level <= self.floor:
                cut += [entries.slice(row, 1) for row in np.flatnonzero(border)]
            else:
                waiting += [
                    (self.child(entries, int(row)), level - 1) for row in np.flatnonzero(border)
                ]
        return whole, cut

    def entries_below(
        self, entries: pa.RecordBatch, level: int, wanted: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield all entries of a lower level under some entries, in order."""
        if level == wanted:
            yield entries
            return
        for row in range(entries.num_rows):
            yield from self.entries_below(self.child(entries, row), level - 1, wanted)

    def child(self, entries: pa.RecordBatch, row: int) -> pa.RecordBatch:
        """Return the entries of the node that an entry stands for."""
        address, length = int(place(entries, "address")[row]), int(place(entries, "length")[row])
        found = MAPPED.node(self.path, address, length, self.schema)
        if int(place(found, "rows").sum()) != int(place(entries, "rows")[row]):
            raise damaged(self.path, f"the node at byte {address} is not the one that was written")
        return found


def those(entries: pa.RecordBatch, wanted: Bools) -> pa.RecordBatch:
    """Return some of the entries. Usually they are neighbours, and nothing is copied."""
    rows = np.flatnonzero(wanted)
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows):
        return entries.slice(first, len(rows))
    return entries.filter(pa.array(wanted))


def touching(entries: pa.RecordBatch, time_range: TimeRange) -> Bools:
    """Return which entries have an instant of the range between their first and last."""
    found: Bools = (place(entries, "ts_max") >= time_range.start_us) & (
        place(entries, "ts_min") < time_range.end_us
    )
    return found


def within(entries: pa.RecordBatch, time_range: TimeRange) -> Bools:
    """Return which entries have all their rows in the range."""
    found: Bools = (place(entries, "ts_min") >= time_range.start_us) & (
        place(entries, "ts_max") < time_range.end_us
    )
    return found
