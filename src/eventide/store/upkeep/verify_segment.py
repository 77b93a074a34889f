"""Read all of one segment, and report what is not as it was written.

Every entry of the time index is computed anew from the rows below it and compared, so that an index
that answers wrongly is found too, even if all its checksums fit. No caches of this process are
used. One path from the root to a leaf is held in memory at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.errors import StoreError
from eventide.instants import moment
from eventide.kernels.compiled import Int64s
from eventide.kernels.ordering import sorting_order
from eventide.schema import SEQ, TS
from eventide.store.files.frame import DamagedFrameError, Frame, Kind, read_frame
from eventide.store.files.json_text import read_json
from eventide.store.files.mapped import map_file, stamp_of
from eventide.store.index.secondary.index import SecondaryReader
from eventide.store.index.secondary.keys import hashes_of, sort_keys, ties_ascend
from eventide.store.index.secondary.run import SECTOR_BLOCKS, DamagedRunError
from eventide.store.order import int64_view, is_ascending
from eventide.store.segments.encodings import DamagedLeafError
from eventide.store.segments.leaf import decode_leaf
from eventide.store.segments.segment import Key, Segment, SegmentForm, SegmentIndex
from eventide.store.segments.segment_writer import FORMAT
from eventide.store.segments.tree import (
    Levels,
    decode_levels,
    leaf_entries,
    parent_entries,
    place,
)
from eventide.store.upkeep.seq_set import SeqSet

Advance = Callable[[int], None]
Severity = Literal["info", "damage"]
MISSING = "is missing"

UNREADABLE = (
    *(DamagedFrameError, DamagedLeafError, DamagedRunError),
    *(pa.ArrowException, OSError, ValueError, struct.error),
)
FACTS = ("rows", "leaves", "ts_min", "ts_max", "first_seq", "last_seq", "seq_max")
MIX = [np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a file that is not as it should be; `info` if no answer can be wrong by it."""

    file: str
    place: int | None
    what: str
    severity: Severity = "damage"

    def __str__(self) -> str:
        where = self.file if self.place is None else f"{self.file} at byte {self.place}"
        return f"{where} {MISSING}" if self.what == MISSING else f"{where}: {self.what}"


@dataclass(frozen=True, slots=True)
class UnreadablePart:
    """A part of a segment that cannot be read: how many rows it had, and from when to when."""

    rows: int
    ts_min: int
    ts_max: int


def uncounted(_: int) -> None:
    """Show no progress."""


class SegmentCheck:
    """One segment, read once. Afterwards it knows what could be read."""

    def __init__(
        self, folder: Path, segment: Segment, seqs: SeqSet, advance: Advance = uncounted
    ) -> None:
        self.folder = folder
        self.segment = segment
        self.seqs = seqs
        self.advance = advance
        self.stamp = stamp_of(segment.file)
        self.schema = segment.form.schema.arrow
        # Aggregates that this process has not registered cannot be computed anew.
        self.layout = segment.form.layout
        self.content: pa.Buffer | None = None
        self.is_sound = True
        self.leaves: list[int] = []
        """Where the leaves begin that could be read."""
        self.lost: list[UnreadablePart] = []
        """What the index reaches and could not be read; the whole segment if the root is lost."""
        self.lost_indexes: list[SegmentIndex] = []
        self.last_key: Key | None = None
        self.entries = {index.attribute: Fingerprint() for index in segment.indexes}

    def findings(self) -> Iterator[Finding]:
        """Read everything, and yield what is wrong."""
        for finding in self.tree_findings():
            self.is_sound = False
            yield finding
        for index in self.segment.indexes:
            try:
                self.check_index(index)
            except UNREADABLE as error:
                self.lost_indexes.append(index)
                # A hint would be for someone who reads the segment.
                reason = error.message if isinstance(error, StoreError) else error
                yield Finding(index.file, None, f"the index of {index.attribute}: {reason}")

    def tree_findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the segment's own file."""
        segment, file = self.segment, self.segment.file
        everything = UnreadablePart(segment.rows, segment.ts_min, segment.ts_max)
        try:
            content = self.content = map_file(self.folder / file)
        except StoreError as error:
            self.lost.append(everything)
            yield Finding(file, None, f"{part_text(everything)}: {error.message}")
            return
        if content.size < segment.bytes:
            yield Finding(file, None, f"it ends at byte {content.size} of {segment.bytes}")
        try:
            check_head(read_frame(content, 0, self.stamp), segment)
        except (*UNREADABLE, KeyError, TypeError) as error:
            yield Finding(file, 0, f"the head: {error}")
        try:
            kind = Kind.SEAL if segment.sealed else Kind.ROOT
            frame = self.frame(segment.root, segment.root_length, kind, 0)
            levels = decode_levels(frame.payload, segment.form.entry_schema)
        except UNREADABLE as error:
            self.lost.append(everything)
            yield Finding(file, segment.root, f"the root of {part_text(everything)}: {error}")
            return
        for level, entries in reversed(list(enumerate(levels))):
            yield from self.below(entries, level)
        yield from self.totals(levels)

    def frame(self, address: int, length: int, kind: Kind, level: int) -> Frame:
        """Return a frame, refusing one that is not what an entry says."""
        frame = read_frame(self.content, address, self.stamp)
        if (frame.kind, frame.level, frame.end - address) != (kind, level, length):
            message = f"a {frame.kind.name.lower()} of {frame.end - address} bytes"
            raise DamagedFrameError(message)
        return frame

    def below(self, entries: pa.RecordBatch, level: int) -> Iterator[Finding]:
        """Yield what is wrong below some entries of a level, and with the entries."""
        if level < self.segment.thinned:
            return  # what was below is gone on purpose
        for row in range(entries.num_rows):
            entry = entries.slice(row, 1)
            if level == 0:
                yield from self.leaf(entry)
            else:
                yield from self.node(entry, level)

    def node(self, entry: pa.RecordBatch, level: int) -> Iterator[Finding]:
        """Yield what is wrong with a node, and below it."""
        address, length = fact(entry, "address"), fact(entry, "length")
        try:
            payload = self.frame(address, length, Kind.NODE, level).payload
            message = pa.ipc.read_message(payload)
            children = pa.ipc.read_record_batch(message, self.segment.form.entry_schema)
            bounds = np.array([0, children.num_rows], np.int64)
            expected = parent_entries(children, bounds, [(address, length)], self.layout)
        except UNREADABLE as error:
            yield self.unreadable("a node", entry, error)
            return
        yield from self.compare("the node", entry, expected)
        yield from self.below(children, level - 1)

    def leaf(self, entry: pa.RecordBatch) -> Iterator[Finding]:
        """Yield what is wrong with a leaf."""
        address, length = fact(entry, "address"), fact(entry, "length")
        try:
            rows = self.read_leaf(self.frame(address, length, Kind.LEAF, 0))
        except UNREADABLE as error:
            yield self.unreadable("a leaf", entry, error)
            return
        self.leaves.append(address)
        self.advance(rows.num_rows)
        bounds, in_order = np.array([0, rows.num_rows], np.int64), self.segment.form.in_order
        summaries = self.layout.summarise(rows, bounds)
        frames = [(address, length)]
        expected = leaf_entries(rows, bounds, frames, summaries, in_order=in_order)
        yield from self.compare("the leaf", entry, expected)
        ts, seq = int64_view(rows.column(TS)), int64_view(rows.column(SEQ))
        if not self.seqs.add(seq + self.segment.seq_offset).all():
            yield Finding(self.segment.file, address, "events of the leaf are in the stream twice")
        if in_order:
            yield from self.check_order(ts, seq, address)
        for attribute, fingerprint in self.entries.items():
            fingerprint.add(rows.column(attribute), ts, seq)

    def read_leaf(self, frame: Frame) -> pa.RecordBatch:
        """Return all columns of a leaf, which has at least one row."""
        rows = decode_leaf(frame.payload, self.schema, self.schema.names)
        rows.validate(full=True)
        if not rows.num_rows:
            message = "the leaf has no rows"
            raise DamagedLeafError(message)
        return rows

    def check_order(self, ts: Int64s, seq: Int64s, address: int) -> Iterator[Finding]:
        """Yield whether rows are out of order, or come before those of the leaf before."""
        first, last = (int(ts[0]), int(seq[0])), (int(ts[-1]), int(seq[-1]))
        before = self.last_key is None or self.last_key < first
        if not before or sorting_order(ts, seq) is not None:
            yield Finding(self.segment.file, address, "the leaf is out of order")
        self.last_key = last

    def compare(
        self, what: str, entry: pa.RecordBatch, expected: pa.RecordBatch
    ) -> Iterator[Finding]:
        """Yield what an entry says that is not true."""
        if wrong := differing(entry, expected):
            message = f"the entry of {what} is wrong about {', '.join(wrong)}"
            yield Finding(self.segment.file, fact(entry, "address"), message)

    def unreadable(self, what: str, entry: pa.RecordBatch, error: Exception) -> Finding:
        """Record what is lost below an entry, and return it as text."""
        part = UnreadablePart(*(fact(entry, name) for name in ("rows", "ts_min", "ts_max")))
        self.lost.append(part)
        return Finding(
            self.segment.file, fact(entry, "address"), f"{what} of {part_text(part)}: {error}"
        )

    def totals(self, levels: Levels) -> Iterator[Finding]:
        """Yield what the segment's listing says of all rows that is not true."""
        segment = self.segment
        entries = pa.concat_batches(levels[::-1])
        bounds = np.array([0, entries.num_rows], np.int64)
        total = parent_entries(entries, bounds, [(0, 0)], self.layout)
        wrong = [name for name in FACTS if getattr(segment, name) != fact(total, name)]
        try:
            known = total.select([*FACTS, *self.layout.arrow.names])
            wrong += [f"total {name}" for name in differing(segment.summary(), known)]
        except UNREADABLE as error:
            wrong.append(f"its totals ({error})")
        if wrong:
            message = f"the listing of the segment is wrong about {', '.join(wrong)}"
            yield Finding(segment.file, None, message)

    def check_index(self, index: SegmentIndex) -> None:
        """Refuse a secondary index that has other entries than the leaves."""
        data_type = self.segment.form.schema.type_of(index.attribute)
        reader = SecondaryReader(map_file(self.folder / index.file), index.extents, data_type)
        found = Fingerprint()
        for run in reader.runs:
            for number in range(run.pages):
                page = run.page(number)
                ts, seq = (page[name].to_numpy() for name in ("ts", "seq"))
                keys = sort_keys(page["value"])
                if not is_ascending(keys) or not ties_ascend(keys, ts, seq):
                    message = f"page {number} of the run at byte {run.offset} is out of order"
                    raise DamagedRunError(message)
                found.add(page["value"], ts, seq)
            for number in range(-(-run.blocks // SECTOR_BLOCKS)):
                run.sector(number)
        expected = self.entries[index.attribute]
        if not self.lost and found != expected:
            message = f"it has {found.count} entries, not the {expected.count} of the leaves"
            raise DamagedRunError(message)


@dataclass
class Fingerprint:
    """A sum of hashes, which tells sets of index entries apart in any order."""

    count: int = 0
    total: int = 0

    def add(self, values: pa.Array, ts: Int64s, seq: Int64s) -> None:
        """Take in the entries of rows; a null has none."""
        if values.null_count:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            values, ts, seq = values.drop_null(), ts[valid], seq[valid]
        mixed = hashes_of(one_spelling(values))
        for part, factor in zip((ts, seq), MIX, strict=False):
            mixed = (mixed ^ (mixed >> np.uint64(31)) ^ part.view(np.uint64)) * factor
        mixed = (mixed ^ (mixed >> np.uint64(29))) * MIX[2]
        self.count += len(mixed)
        self.total = (self.total + int(mixed.sum())) % 2**64


def check_head(frame: Frame, segment: Segment) -> None:
    """Refuse a head that is not that of a segment with these columns."""
    head = read_json(frame.payload.to_pybytes())
    form = SegmentForm.from_json(head["form"])
    if (
        (frame.kind, head["format"]) != (Kind.HEAD, FORMAT)
        or form.schema.arrow.types != segment.form.schema.arrow.types
        or form.column_ids != segment.form.column_ids
        or form.in_order != segment.form.in_order
    ):
        message = "it belongs to another segment"
        raise DamagedFrameError(message)


def fact(entry: pa.RecordBatch, name: str) -> int:
    """Return one of the fixed columns of a single entry."""
    return int(place(entry, name)[0])


def differing(found: pa.RecordBatch, expected: pa.RecordBatch) -> list[str]:
    """Return the columns in which two batches differ; a NaN is equal to a NaN."""
    return [
        name
        for name in expected.schema.names
        if not same_values(found.column(name), expected.column(name))
    ]


def same_values(found: pa.Array, expected: pa.Array) -> bool:
    """Whether two columns have the same values."""
    return bool(found.equals(expected)) or repr(found.to_pylist()) == repr(expected.to_pylist())


def part_text(part: UnreadablePart) -> str:
    """Return a part as text."""
    period = (
        moment(part.ts_min)
        if part.ts_min == part.ts_max
        else (f"{moment(part.ts_min)} to {moment(part.ts_max)}")
    )
    return f"{part.rows:,} events, {period}"
