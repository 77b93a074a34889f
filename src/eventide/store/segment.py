"""One immutable file of events, sorted by (ts, seq), and the statistics of its blocks.

A segment is a file of eight bytes that say so, and then blocks of about `BLOCK_ROWS` rows, back
to back; block.py has their layout. Its `seq` column counts from 0; `Segment.first_seq`, which lives
in the manifest, is added on reading. So a file can be written before its place in the stream is
known.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide.errors import StoreError
from eventide.schema import SEQ, TS
from eventide.store.block import BlockEncoder
from eventide.store.durable import remove, sync_file, sync_folder
from eventide.store.order import int64_view

BLOCK_ROWS = 65_536
BLOCK_BYTES = 64 << 20
SEGMENT_ROWS = 4 << 20
SEGMENT_BYTES = 512 << 20
FILE_HEADER = b"EVTSEG\x02\n"
SEGMENT_NAME = re.compile(r"seg-[0-9a-f]{32}\.ev")

Key = tuple[int, int]
"""(ts, seq): unique in a stream, and its order."""


@dataclass(frozen=True, slots=True)
class Block:
    """What the manifest knows of one block; `seq`s are relative to the segment's."""

    offset: int
    rows: int
    min_ts: int
    max_ts: int
    first_row_seq: int
    last_row_seq: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file as the manifest lists it."""

    file: str
    rows: int
    bytes: int
    first_seq: int
    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        # Names come from JSON that other processes wrote: none may point out of the folder.
        if not SEGMENT_NAME.fullmatch(self.file):
            message = f"{self.file!r} is not the name of a segment file"
            raise StoreError(message, hint="pass on staged segments as `stage` returned them")
        if not self.blocks or sum(block.rows for block in self.blocks) != self.rows:
            message = f"the blocks of {self.file} do not add up to {self.rows} rows"
            raise StoreError(message, hint="pass on staged segments as `stage` returned them")

    @property
    def min_ts(self) -> int:
        """The earliest event's time."""
        return self.blocks[0].min_ts

    @property
    def max_ts(self) -> int:
        """The latest event's time."""
        return self.blocks[-1].max_ts

    @property
    def first_key(self) -> Key:
        """The key of the first row."""
        return self.min_ts, self.first_seq + self.blocks[0].first_row_seq

    @property
    def last_key(self) -> Key:
        """The key of the last row."""
        return self.max_ts, self.first_seq + self.blocks[-1].last_row_seq

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        return {
            "file": self.file,
            "rows": self.rows,
            "bytes": self.bytes,
            "first_seq": self.first_seq,
            "blocks": [
                [b.offset, b.rows, b.min_ts, b.max_ts, b.first_row_seq, b.last_row_seq]
                for b in self.blocks
            ],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Segment:
        """Read what `to_json` wrote."""
        return cls(
            file=str(entry["file"]),
            rows=int(entry["rows"]),
            bytes=int(entry["bytes"]),
            first_seq=int(entry["first_seq"]),
            blocks=tuple(Block(*map(int, block)) for block in entry["blocks"]),
        )


@dataclass(frozen=True, slots=True)
class StagedSegment:
    """Files written but not yet part of the stream; `first_seq`s are meaningless until commit."""

    segments: tuple[Segment, ...]

    @property
    def rows(self) -> int:
        """How many events are staged."""
        return sum(segment.rows for segment in self.segments)

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `from_json` reads back."""
        return [segment.to_json() for segment in self.segments]

    @classmethod
    def from_json(cls, entries: Iterable[Mapping[str, Any]]) -> StagedSegment:
        """Read what `to_json` wrote."""
        return cls(tuple(Segment.from_json(entry) for entry in entries))


def write_segments(
    folder: Path, batches: Iterable[pa.RecordBatch], first_seq: int = 0
) -> tuple[Segment, ...]:
    """Write sorted batches to as many files of about `SEGMENT_ROWS` rows as they need.

    `first_seq` is taken off every `seq`. On return the files and their names are on the disk;
    after an error none of the files is left.
    """
    rest = (batch for batch in batches if batch.num_rows)
    segments: list[Segment] = []
    try:
        for first in rest:
            segments.append(write_segment(folder, take_segment(chain([first], rest)), first_seq))
        sync_folder(folder)
    except BaseException as error:
        for segment in segments:
            remove(folder / segment.file)
        if isinstance(error, (OSError, pa.ArrowException)) and not isinstance(error, StoreError):
            message = f"cannot write a segment to {folder}: {error}"
            hint = "nothing was stored; check the disk's free space and the folder's permissions"
            raise StoreError(message, hint=hint) from error
        raise
    return tuple(segments)


def take_segment(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches until they fill one segment; the others stay in `batches`."""
    rows = size = 0
    for batch in batches:
        yield batch
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= SEGMENT_ROWS or size >= SEGMENT_BYTES:
            return


def write_segment(folder: Path, batches: Iterator[pa.RecordBatch], first_seq: int) -> Segment:
    """Write sorted, non-empty batches to one file; remove it if that fails."""
    path = folder / f"seg-{uuid.uuid4().hex}.ev"
    blocks: list[Block] = []
    first = next(batches)
    encoder = BlockEncoder(first.schema)
    try:
        with pa.OSFile(str(path), "wb") as sink:
            sink.write(FILE_HEADER)
            for batch in chain([first], batches):
                for rows in cut_blocks(with_seq_offset(batch, -first_seq)):
                    blocks.append(block_statistics(rows, sink.tell()))
                    sink.write(encoder.encode(rows))
        sync_file(path)
        size = path.stat().st_size
    except BaseException:
        remove(path)
        raise
    return Segment(path.name, sum(b.rows for b in blocks), size, first_seq, tuple(blocks))


def cut_blocks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slice a batch into blocks, smaller ones where rows are large."""
    row_bytes = max(1, batch.nbytes // batch.num_rows)
    block_rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES // row_bytes))
    for start in range(0, batch.num_rows, block_rows):
        yield batch.slice(start, block_rows)


def block_statistics(block: pa.RecordBatch, offset: int) -> Block:
    """Return the statistics of one sorted block that is written at `offset`."""
    ts, seq = int64_view(block.column(TS)), int64_view(block.column(SEQ))
    return Block(offset, len(ts), int(ts[0]), int(ts[-1]), int(seq[0]), int(seq[-1]))


def with_seq_offset(batch: pa.RecordBatch, offset: int) -> pa.RecordBatch:
    """Return the batch with `offset` added to `seq`, where it has that column."""
    index = batch.schema.get_field_index(SEQ)
    if index < 0 or not offset:
        return batch
    seq = pa.array(int64_view(batch.column(index)) + offset)
    return batch.set_column(index, batch.schema.field(index), seq)
