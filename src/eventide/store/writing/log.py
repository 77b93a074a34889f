"""The log of a stream's open end: events that are durable but not yet in a segment.

    bytes   what
    4       magic "EVL3"
    1       kind: 1 events, 2 checkpoint
    3       zero
    8       number of the record, from 0
    8       length of the payload, a multiple of 8
    16      the log's stamp
    4       CRC-32C of the payload
    4       CRC-32C of the 44 bytes before
    …       the payload, masked: a length, JSON of that length padded to 8, then Arrow messages

The first record is a checkpoint: the root of the open segment, and the events that are not in it. A
later checkpoint replaces everything before it. So reading a log from its last checkpoint on gives
the open end of the stream, and a log that has grown long is followed by a new, short one.

A power failure can tear the last records, if they were not synced: some of their sectors are
missing, and read as zeros or lie behind the end of the file. A damaged record has all its sectors.
The two must not be confused: acknowledged events may not vanish silently. Therefore the payload is
masked with fixed bytes, after which no sector of a whole record is all zeros.
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO, Any, TypeAlias

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.store.files.disk import AppendFile
from eventide.store.files.json_text import read_json

MAGIC = b"EVL3"
UNCHECKED = struct.Struct("<4sB3xQQ16sI")
HEADER = struct.Struct("<4sB3xQQ16sII")
SECTOR = 512
MASK: npt.NDArray[np.uint64] = np.frombuffer(
    hashlib.shake_256(b"the log of an eventide stream").digest(SECTOR), np.uint64
)
LOG_SUFFIX = ".log"

Rows: TypeAlias = pa.RecordBatch | pa.Buffer
"""Rows, or the Arrow message of them."""


class RecordKind(IntEnum):
    """What a record holds."""

    EVENTS = 1
    CHECKPOINT = 2


class DamagedLogError(Exception):
    """A log is not what was written. It never leaves this package: readers name the file."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record: facts, and the rows that belong to them."""

    kind: RecordKind
    facts: Mapping[str, Any]
    batches: tuple[pa.RecordBatch, ...]
    header: bytes
    end: int


def log_name() -> str:
    """Return a name for a new log; its stamp is part of it."""
    return f"log-{uuid.uuid4().hex}{LOG_SUFFIX}"


def stamp_of(name: str) -> bytes:
    """Return the stamp that all records of a log carry."""
    return bytes.fromhex(name.removeprefix("log-").removesuffix(LOG_SUFFIX))


class LogWriter:
    """The end of a log, where records are added."""

    def __init__(self, file: AppendFile, number: int) -> None:
        self.file = file
        self.number = number
        self.stamp = stamp_of(file.path.name)
        self.header = b""

    def append(self, kind: RecordKind, facts: Mapping[str, Any], batches: Sequence[Rows]) -> None:
        """Write a record. It is safe from a power failure only after `file.sync`."""
        payload = encode_payload(facts, batches)
        crc = google_crc32c.value(payload)
        fields = (MAGIC, kind, self.number, len(payload), self.stamp, crc)
        unchecked = UNCHECKED.pack(*fields)
        header = unchecked + struct.pack("<I", google_crc32c.value(unchecked))
        self.file.append([header, payload])
        self.header = header
        self.number += 1


def encode_payload(facts: Mapping[str, Any], batches: Sequence[Rows]) -> bytes:
    """Return the masked payload of a record."""
    messages = [each if isinstance(each, pa.Buffer) else each.serialize() for each in batches]
    text = json.dumps({**facts, "lengths": [len(each) for each in messages]}).encode()
    parts = [struct.pack("<Q", len(text)), text, b"\0" * (-len(text) % 8), *messages]
    return masked(b"".join(parts))


def masked(content: bytes | pa.Buffer) -> bytes:
    """Mask bytes, or take the mask off again."""
    words = np.frombuffer(content, np.uint64)
    whole = len(words) // len(MASK) * len(MASK)
    out = np.empty(len(words), np.uint64)
    np.bitwise_xor(
        words[:whole].reshape(-1, len(MASK)), MASK, out=out[:whole].reshape(-1, len(MASK))
    )
    np.bitwise_xor(words[whole:], MASK[: len(words) - whole], out=out[whole:])
    return out.tobytes()


def read_records(
    content: bytes,
    stamp: bytes,
    schemas: Mapping[RecordKind, pa.Schema],
    *,
    origin: int = 0,
    number: int = 0,
    synced: bool,
) -> Iterator[Record]:
    """Yield the records of a log from the byte `origin` on, up to the end or a torn one.

    Raises `DamagedLogError` where a record has all its bytes, but not those that were written.
    Where every record was `synced` before the next one, only the last can be torn.
    """
    start = 0
    while start < len(content):
        header, body = content[start : start + HEADER.size], start + HEADER.size
        if not is_whole(header):
            followed = synced and has_header(content, body, stamp)
            if is_torn(content, start, body, origin) and not followed:
                return
            raise damaged_record(origin + start)
        magic, kind, found_number, length, found_stamp, crc, _ = HEADER.unpack(header)
        if magic != MAGIC or found_stamp != stamp or found_number != number:
            raise damaged_record(origin + start)
        end = body + length
        payload = content[body:end]
        if len(payload) != length or google_crc32c.value(payload) != crc:
            if is_torn(content, body, end, origin) and not (synced and any(content[end:])):
                return
            raise damaged_record(origin + start)
        try:
            facts, batches = decode_payload(payload, schemas[RecordKind(kind)])
        except (ValueError, KeyError, TypeError, pa.ArrowException, OSError) as error:
            raise damaged_record(origin + start) from error
        yield Record(RecordKind(kind), facts, batches, header, origin + end)
        start, number = end, number + 1


def is_whole(header: bytes) -> bool:
    """Whether a header is there and fits its checksum."""
    if len(header) < HEADER.size:
        return False
    return bool(google_crc32c.value(header[:-4]) == struct.unpack("<I", header[-4:])[0])


def is_still_there(file: IO[bytes], header: bytes, end: int) -> bool:
    """Whether the record that was read up to `end` is in the log: a failed append takes it back."""
    file.seek(end - HEADER.size - HEADER.unpack(header)[3])
    return file.read(HEADER.size) == header


def has_header(content: bytes, start: int, stamp: bytes) -> bool:
    """Whether a whole header of the log is behind `start`: then what is before it was synced."""
    while (start := content.find(MAGIC, start)) >= 0:
        header = content[start : start + HEADER.size]
        if is_whole(header) and HEADER.unpack(header)[4] == stamp:
            return True
        start += 1
    return False


def is_torn(content: bytes, start: int, end: int, origin: int) -> bool:
    """Whether bytes of a record are missing: behind the end of the file, or a sector of zeros.

    The file has sectors, not the content read from it, which begins at its byte `origin`.
    """
    if len(content) < end:
        return True
    while start < end:
        following = min(((origin + start) // SECTOR + 1) * SECTOR - origin, end)
        if not any(content[start:following]):
            return True
        start = following
    return False


def damaged_record(start: int) -> DamagedLogError:
    """Return the error of a record that has changed."""
    return DamagedLogError(f"the record at byte {start} fails its checksum")


def decode_payload(
    payload: bytes, schema: pa.Schema
) -> tuple[Mapping[str, Any], tuple[pa.RecordBatch, ...]]:
    """Read what `encode_payload` wrote."""
    plain = pa.py_buffer(masked(payload))
    (length,) = struct.unpack("<Q", plain.slice(0, 8).to_pybytes())
    facts = read_json(plain.slice(8, length).to_pybytes())
    start = 8 + -(-length // 8) * 8
    batches = []
    for size in facts["lengths"]:
        message = pa.ipc.read_message(plain.slice(start, size))
        batches.append(pa.ipc.read_record_batch(message, schema))
        start += size
    return facts, tuple(batches)


def create_log(folder: Path) -> LogWriter:
    """Begin a new log."""
    return LogWriter(AppendFile.create(folder / log_name()), 0)
