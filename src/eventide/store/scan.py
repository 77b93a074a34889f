"""Read blocks of many segments as one sequence sorted by (ts, seq).

Blocks are taken in order of their first key. One that overlaps no other is passed on as it is:
only the wanted columns are read, and nothing is compared. Where blocks overlap (late data), they
are read a few at a time; all rows before the first key of the next unread block are complete, so
they are sorted and passed on, and the others wait. Memory is bounded by the blocks that overlap
one instant, never by the data.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.batch import TimeRange
from eventide.errors import StoreError
from eventide.schema import SEQ, TS, Schema
from eventide.store.block import DamagedBlockError, read_block
from eventide.store.order import int64_view, sort_rows
from eventide.store.segment import FILE_HEADER, Block, Key, Segment, with_seq_offset
from eventide.store.source import SCAN_ROWS

SCAN_BYTES = 256 << 20
OPEN_FILES = 32


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of one segment."""

    segment: Segment
    index: int

    @property
    def block(self) -> Block:
        """The block's statistics."""
        return self.segment.blocks[self.index]

    @property
    def first_key(self) -> Key:
        """The key of the first row."""
        return self.block.min_ts, self.segment.first_seq + self.block.first_row_seq

    @property
    def last_key(self) -> Key:
        """The key of the last row."""
        return self.block.max_ts, self.segment.first_seq + self.block.last_row_seq


@dataclass(slots=True)
class SegmentReader:
    """Reads blocks of a stream's segments, keeping a few files open."""

    folder: Path
    schema: Schema
    time_range: TimeRange
    opened: OrderedDict[str, pa.Buffer] = field(default_factory=OrderedDict)

    def read(self, piece: Piece, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the rows of a block that lie in the time range."""
        block, wanted = piece.block, self.time_range
        cut = block.min_ts < wanted.start_us or block.max_ts >= wanted.end_us
        needed = list(dict.fromkeys([*columns, TS] if cut else columns))
        path = self.folder / piece.segment.file
        try:
            rows = read_block(self.open(piece.segment), block.offset, self.schema.arrow, needed)
        except (DamagedBlockError, pa.ArrowException) as error:
            raise damaged(path, str(error)) from error
        if rows.num_rows != block.rows:
            raise damaged(path, f"block {piece.index} has {rows.num_rows} rows, not {block.rows}")
        if cut:
            ts = int64_view(rows.column(TS))
            start, end = np.searchsorted(ts, [wanted.start_us, wanted.end_us])
            rows = rows.slice(start, end - start)
        return with_seq_offset(rows.select(list(columns)), piece.segment.first_seq)

    def open(self, segment: Segment) -> pa.Buffer:
        """Map a segment into memory, or return it if it is."""
        if segment.file in self.opened:
            self.opened.move_to_end(segment.file)
            return self.opened[segment.file]
        path = self.folder / segment.file
        size = path.stat().st_size if path.exists() else None
        if size != segment.bytes:
            raise wrong_size(path, size, segment.bytes)
        try:
            content = pa.memory_map(str(path)).read_buffer()
        except OSError as error:
            raise damaged(path, str(error)) from error
        if content[: len(FILE_HEADER)].to_pybytes() != FILE_HEADER:
            raise damaged(path, "it does not begin as a segment does")
        self.opened[segment.file] = content
        if len(self.opened) > OPEN_FILES:
            self.opened.popitem(last=False)
        return content


def scan_segments(
    reader: SegmentReader, segments: Sequence[Segment], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all segments in order, in batches of about `SCAN_ROWS` rows."""
    return rebatch(sorted_parts(reader, pieces_of(segments, reader.time_range), columns))


def pieces_of(segments: Sequence[Segment], time_range: TimeRange) -> list[Piece]:
    """Return the blocks that may have rows in a time range, in order of their first key."""
    pieces = [
        Piece(segment, index)
        for segment in segments
        if time_range.overlaps(TimeRange(segment.min_ts, segment.max_ts + 1))
        for index, block in enumerate(segment.blocks)
        if time_range.overlaps(TimeRange(block.min_ts, block.max_ts + 1))
    ]
    return sorted(pieces, key=lambda piece: piece.first_key)


def sorted_parts(
    reader: SegmentReader, pieces: Sequence[Piece], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield rows in order, in batches of any size, some perhaps empty."""
    for cluster in overlapping(pieces):
        if len(cluster) == 1:
            yield reader.read(cluster[0], columns)
        else:
            yield from merge(reader, cluster, columns)


def overlapping(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Group pieces so that those of different groups do not overlap; most groups have one."""
    group: list[Piece] = []
    last: Key | None = None
    for piece in pieces:
        if last is not None and piece.first_key > last:
            yield group
            group = []
        group.append(piece)
        last = piece.last_key if last is None else max(last, piece.last_key)
    if group:
        yield group


def merge(
    reader: SegmentReader, pieces: Sequence[Piece], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of overlapping pieces in order, reading about `SCAN_ROWS` rows at a time."""
    needed = [*columns, *(key for key in (TS, SEQ) if key not in columns)]
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        waiting.append(reader.read(piece, needed))
        rows, size = rows + waiting[-1].num_rows, size + waiting[-1].nbytes
        if following is not None and rows < SCAN_ROWS and size < SCAN_BYTES:
            continue
        complete = [rows_before(run, following) for run in waiting]
        yield sort_rows(pa.concat_batches(complete)).select(list(columns))
        waiting = [
            run.slice(done.num_rows)
            for run, done in zip(waiting, complete, strict=True)
            if done.num_rows < run.num_rows
        ]
        rows = size = 0


def rows_before(run: pa.RecordBatch, following: Piece | None) -> pa.RecordBatch:
    """Return the rows of a sorted run that come before the next unread piece."""
    if following is None:
        return run
    next_ts, next_seq = following.first_key
    ts, seq = int64_view(run.column(TS)), int64_view(run.column(SEQ))
    tie_start, tie_end = np.searchsorted(ts, next_ts, "left"), np.searchsorted(ts, next_ts, "right")
    return run.slice(0, int(tie_start + np.searchsorted(seq[tie_start:tie_end], next_seq)))


def rebatch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches into ones of about `SCAN_ROWS` rows, dropping empty ones."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting and (rows + batch.num_rows > SCAN_ROWS or size + batch.nbytes > SCAN_BYTES):
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if waiting:
        yield pa.concat_batches(waiting)


def wrong_size(path: Path, size: int | None, expected: int) -> StoreError:
    """Return the error for a segment file that is gone, cut short, or changed."""
    if size is not None:
        return damaged(path, f"it has {size} bytes, the manifest says {expected}")
    message = f"segment {path} is missing"
    hint = (
        "if a compaction replaced it, the snapshot is over an hour old: take a new one; "
        "otherwise restore the file from a backup"
    )
    return StoreError(message, hint=hint)


def damaged(path: Path, reason: str) -> StoreError:
    """Return the error for a segment file that cannot be read."""
    message = f"segment {path} is damaged: {reason}"
    return StoreError(message, hint="restore the file from a backup, or drop the stream")
