"""One leaf of the time index: rows as columns, encoded and compressed apart, under checksums.

All numbers are little endian, all checksums CRC-32C. A leaf is a directory, then the columns in
the order of the schema; every part starts at a multiple of eight bytes. The types and names of the
columns are not in a leaf: the schema says them.

    directory
     0  u32  checksum of the directory from byte 4 to its end
     4  u16  version, 1
     6  u16  columns
     8  u64  rows
    16       one entry of 64 bytes for each column

    entry
     0  u64  where the column starts, from the start of the leaf
     8  u32  its length, padding included
    12  u32  its checksum, padding included
    16  u8   encoding, see below
    17  u8   codecs: two bits for each of the four buffers, the first lowest;
             0 raw, 1 LZ4 (raw blocks), 2 Zstandard
    18  u8   width of a packed number in bytes: 0, 1, 2, 4 or 8; 0 means that all are zero, and
             that no bytes are stored
    19  u8   bits of a code of a dictionary, 1 to 32
    20  u32  nulls
    24  i64  base
    32  i64  step
    40  u32  stored length of each of the four buffers, without padding
    56  u32  entries of the dictionary
    60  u32  length of all strings together, not compressed

    column
    Its four buffers one after the other, each padded with zeros to a multiple of eight. An empty
    buffer takes no bytes. The first is the validity, one bit for each row as in Arrow, and empty
    if there are no nulls or only nulls. The others depend on the encoding:

    0 nulls            nothing: every row is null, or there are no rows
    1 plain            the values as in Arrow: bits, doubles, decimals of sixteen bytes
    2 frame            unsigned numbers of `width` bytes: value = base + number.
                       Width 8 has base 0, so these are the values themselves
    3 steps            the same, one fewer than rows: the first value is base, and each next one
                       is that before it + step + number
    4 dictionary       codes of `bits` bits from the lowest bit of 64-bit words on, across their
                       borders; then the 64-bit values that the codes number from zero
    5 text             lengths as in frame, then the bytes of all strings
    6 text dictionary  codes as in 4; then the strings they number, as in 5

Integers and timestamps are 2, 3 or 4, doubles 1 or 4, booleans 1, strings and binaries 5 or 6.
Decimals are 1, or as integers if each fits 64 bits. Rows that are null have some value all the
same, which means nothing.

A reader checks the directory and the columns it is asked for, and nothing else is touched. Every
byte is under one checksum, padding too. A buffer that the codec does not make smaller by a
thirty-second is stored raw, and plain raw values are read without being copied.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Literal

import google_crc32c
import pyarrow as pa

from eventide.store.segments.encodings import (
    ALIGNMENT,
    CODEC_NAMES,
    NULLS,
    RAW,
    DamagedLeafError,
    Encoded,
    EncodedColumn,
    Raw,
    bitmap_of,
    decode_values,
    encode_values,
)

__all__ = ["Codec", "DamagedLeafError", "decode_leaf", "encode_leaf", "read_directory"]

Codec = Literal["lz4", "zstd", "none"]

VERSION = 1
HEADER = struct.Struct("<IHHQ")
ENTRY = struct.Struct("<QIIBBBBIqqIIIIII")
CHECKSUM_SIZE = 4
BUFFERS = 4
CODECS: dict[Codec, int] = {"lz4": 1, "zstd": 2}
# The codec's own overhead on fewer bytes than this is more than it saves.
SHORTEST_COMPRESSED = 64
# A buffer of this length is compressed only if parts of it become smaller: most doubles at full
# precision do not. Values that recur further apart are in a dictionary by then.
LONG_BUFFER = 1 << 16
PROBED_BYTES = 1 << 12
EMPTY = pa.py_buffer(b"")


def encode_leaf(rows: pa.RecordBatch, codec: Codec) -> list[pa.Buffer | bytes]:
    """Return the buffers of a leaf, to be written one after the other."""
    place = HEADER.size + rows.num_columns * ENTRY.size
    entries = []
    buffers: list[pa.Buffer | bytes] = []
    for column in rows.columns:
        entry, content, length = encode_column(column, place, codec)
        entries.append(entry)
        buffers += content
        place += length
    directory = HEADER.pack(0, VERSION, len(entries), rows.num_rows) + b"".join(entries)
    checked = directory[CHECKSUM_SIZE:]
    return [google_crc32c.value(checked).to_bytes(CHECKSUM_SIZE, "little") + checked, *buffers]


def encode_column(
    column: pa.Array, place: int, codec: Codec
) -> tuple[bytes, list[pa.Buffer | bytes], int]:
    """Return the entry of a column that starts at `place`, its buffers, and their length."""
    nulls = column.null_count
    encoded = Encoded(NULLS, []) if nulls == len(column) else encode_values(column)
    if 0 < nulls < len(column):
        validity = bitmap_of(column.buffers()[0], column.offset, len(column))
    else:
        validity = EMPTY
    content: list[pa.Buffer | bytes] = []
    sizes = [0] * BUFFERS
    codecs = checksum = length = 0
    for position, raw in enumerate([validity, *encoded.buffers]):
        stored, number = compress(raw, codec)
        sizes[position] = stored.size
        codecs |= number << 2 * position
        for buffer in (stored, bytes(-stored.size % ALIGNMENT)):
            if buffer:
                content.append(buffer)
                checksum = google_crc32c.extend(checksum, buffer)
                length += len(buffer)
    entry = ENTRY.pack(
        *(place, length, checksum),
        *(encoded.encoding, codecs, encoded.width, encoded.bits),
        *(nulls, encoded.base, encoded.step),
        *sizes,
        *(encoded.different, encoded.text),
    )
    return entry, content, length


def compress(raw: Raw, codec: Codec) -> tuple[pa.Buffer, int]:
    """Return the bytes to store, and the number of their codec."""
    buffer = raw if isinstance(raw, pa.Buffer) else pa.py_buffer(raw)
    if codec == "none" or buffer.size < SHORTEST_COMPRESSED:
        return buffer, RAW
    number = CODECS[codec]
    compressor = pa.Codec(CODEC_NAMES[number])
    if buffer.size >= LONG_BUFFER and not may_shrink(buffer, compressor):
        return buffer, RAW
    compressed = compressor.compress(buffer)
    if compressed.size > buffer.size - buffer.size // 32:
        return buffer, RAW
    return compressed, number


def may_shrink(buffer: pa.Buffer, compressor: pa.Codec) -> bool:
    """Whether one of four parts of a long buffer becomes smaller."""
    parts = (buffer.slice(buffer.size // 8 * place, PROBED_BYTES) for place in (1, 3, 5, 7))
    return any(compressor.compress(part).size < part.size for part in parts)


def decode_leaf(payload: pa.Buffer, schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    """Return some columns of a leaf, or raise `DamagedLeafError`."""
    if payload.address % ALIGNMENT:
        payload = pa.py_buffer(payload.to_pybytes())
    directory, rows = read_directory(payload)
    if len(directory) != HEADER.size + len(schema) * ENTRY.size:
        message = f"a leaf has not the {len(schema)} columns of its schema"
        raise DamagedLeafError(message)
    fields = []
    columns = []
    for name in names:
        field = schema.field(name)
        place = HEADER.size + schema.get_field_index(name) * ENTRY.size
        try:
            column = read_column(payload, ENTRY.unpack_from(directory, place), field.type, rows)
        except (DamagedLeafError, pa.ArrowException, OSError, LookupError, ValueError) as error:
            message = f"column {name} is damaged: {error}"
            raise DamagedLeafError(message) from error
        fields.append(field)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def read_directory(payload: pa.Buffer) -> tuple[bytes, int]:
    """Return the checked directory of a leaf, and how many rows it has."""
    if payload.size < HEADER.size:
        message = f"{payload.size} bytes are no leaf"
        raise DamagedLeafError(message)
    checksum, version, columns, rows = HEADER.unpack_from(payload)
    size = HEADER.size + columns * ENTRY.size
    directory = payload.slice(0, min(size, payload.size)).to_pybytes()
    if len(directory) < size or google_crc32c.value(directory[CHECKSUM_SIZE:]) != checksum:
        message = "the directory of a leaf fails its checksum"
        raise DamagedLeafError(message)
    if version != VERSION:
        message = f"a leaf has version {version}, not {VERSION}"
        raise DamagedLeafError(message)
    return directory, rows


def read_column(
    payload: pa.Buffer,
    entry: tuple[int, ...],
    kind: pa.DataType,
    rows: int,
    picked: pa.Array | None = None,
) -> pa.Array:
    """Return one column, checked; with `picked`, of these rows only."""
    place, length, checksum = entry[:3]
    content = payload.slice(place, length) if place + length <= payload.size else EMPTY
    if content.size != length or google_crc32c.value(content) != checksum:
        message = f"{length} bytes at byte {place} fail their checksum"
        raise DamagedLeafError(message)
    stored = EncodedColumn(content, entry)
    if stored.encoding == NULLS:
        return pa.nulls(rows if picked is None else len(picked), kind)
    return decode_values(stored, kind, rows, picked)
