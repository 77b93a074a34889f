"""One block of a segment file: its columns compressed apart, each under a checksum.

    header    magic "EBLK", rows, number of columns, then length and checksum of each column,
              then the checksum of the header itself
    columns   each an Arrow IPC message that holds a record batch of this one column, its buffers
              compressed, padded to eight bytes

A narrow query reads the header and the columns it needs, and nothing else is decompressed or
checked. What a checksum does not cover is padding, which nobody reads.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
import pyarrow as pa

MAGIC = b"EBLK"
FIXED = struct.Struct("<4sII")
COLUMN = struct.Struct("<II")
CHECKSUM = struct.Struct("<I")
ALIGNMENT = 8


class DamagedBlockError(Exception):
    """A block is not what was written. Never leaves this package: readers say which file."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where the bytes of one column are, and what they have to add up to."""

    offset: int
    length: int
    checksum: int


class BlockEncoder:
    """Turns record batches of one schema into blocks."""

    def __init__(self, schema: pa.Schema, compression: str | None = "lz4") -> None:
        self.columns = [ColumnEncoder(field, compression) for field in schema]

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the bytes of one block."""
        chunks = [
            encoder.encode(column)
            for encoder, column in zip(self.columns, batch.columns, strict=True)
        ]
        header = FIXED.pack(MAGIC, batch.num_rows, len(chunks))
        header += b"".join(COLUMN.pack(len(chunk), checksum(chunk)) for chunk in chunks)
        header += CHECKSUM.pack(checksum(header))
        return b"".join(map(padded, [header, *chunks]))


class ColumnEncoder:
    """Turns arrays of one column into Arrow messages."""

    def __init__(self, field: pa.Field, compression: str | None) -> None:
        self.schema = pa.schema([field])
        self.sink = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        self.writer = pa.ipc.new_stream(self.sink, self.schema, options=options)
        # Before its first batch the writer puts the schema, which the manifest has already.
        self.encode(pa.nulls(0, field.type))

    def encode(self, column: pa.Array) -> bytes:
        """Return the message of one array."""
        self.writer.write_batch(pa.RecordBatch.from_arrays([column], schema=self.schema))
        return self.taken()

    def taken(self) -> bytes:
        """Return what the writer has written since the last call."""
        written = self.sink.getvalue()
        self.sink.seek(0)
        self.sink.truncate()
        return written


def read_block(
    file: pa.Buffer, offset: int, schema: pa.Schema, names: Sequence[str]
) -> pa.RecordBatch:
    """Return some columns of the block at `offset`, or raise `DamagedBlockError`."""
    rows, chunks = read_header(file, offset, len(schema))
    columns = []
    for name in names:
        field = schema.field(name)
        column = read_column(file, chunks[schema.get_field_index(name)], field)
        if len(column) != rows:
            message = f"column {name} has {len(column)} rows, not {rows}"
            raise DamagedBlockError(message)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, list(names))


def read_header(file: pa.Buffer, offset: int, columns: int) -> tuple[int, list[Chunk]]:
    """Return how many rows a block has, and where its columns are."""
    size = FIXED.size + columns * COLUMN.size
    header = file[offset : offset + size + CHECKSUM.size].to_pybytes()
    if len(header) < size + CHECKSUM.size or header[:4] != MAGIC:
        message = f"no block begins at byte {offset}"
        raise DamagedBlockError(message)
    if CHECKSUM.unpack_from(header, size)[0] != checksum(header[:size]):
        message = f"the header at byte {offset} fails its checksum"
        raise DamagedBlockError(message)
    _, rows, count = FIXED.unpack_from(header)
    if count != columns:
        message = f"the block at byte {offset} has {count} columns, not {columns}"
        raise DamagedBlockError(message)
    place = offset + aligned(size + CHECKSUM.size)
    chunks = []
    for length, expected in COLUMN.iter_unpack(header[FIXED.size : size]):
        chunks.append(Chunk(place, length, expected))
        place += aligned(length)
    return rows, chunks


def read_column(file: pa.Buffer, chunk: Chunk, field: pa.Field) -> pa.Array:
    """Return one column, checked."""
    content = file[chunk.offset : chunk.offset + chunk.length]
    if len(content) != chunk.length or checksum(content) != chunk.checksum:
        message = f"column {field.name} at byte {chunk.offset} fails its checksum"
        raise DamagedBlockError(message)
    message_read = pa.ipc.read_message(content)
    return pa.ipc.read_record_batch(message_read, pa.schema([field])).column(0)


def checksum(content: bytes | pa.Buffer) -> int:
    """Return the CRC-32C of some bytes."""
    return int(google_crc32c.value(content))


def aligned(size: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def padded(content: bytes) -> bytes:
    """Return bytes with zeros up to the alignment."""
    return content + b"\0" * (aligned(len(content)) - len(content))
