"""The log of a stream's open end: events that are durable but not yet in a segment.

A log is a sequence of records. Each fills some sectors of 512 bytes (`log_sectors.py`), whose
content without their tags is

    bytes   what
    4       magic "EVL4"
    1       kind: 1 events, 2 checkpoint
    3       zero
    8       number of the record, from 0
    8       length of the payload
    16      the log's stamp
    4       CRC-32C of all bytes of the sectors behind this header, tags and zeros too
    4       CRC-32C of the 44 bytes before
    …       the payload: a length, JSON of that length padded to 8, then Arrow messages
    …       zeros

The first record is a checkpoint: the root of the open segment, and the events that are not in it. A
later checkpoint replaces everything before it. So reading a log from its last checkpoint on gives
the open end of the stream, and a log that has grown long is followed by a new, short one. That one
may be written over an older log (`spare_log.py`): it ends where no record of its own follows.

A power failure can tear the last records, if they were not synced: some of their sectors are
unwritten, or lie behind the end of the file. A damaged record has all its sectors. The two must not
be confused: acknowledged events may not vanish silently.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO, Any, TypeAlias

import google_crc32c
import numpy as np
import pyarrow as pa

from eventide.store.files.disk import AppendFile
from eventide.store.files.json_text import read_json
from eventide.store.writing.log_sectors import (
    CONTENT,
    SECTOR,
    Sectors,
    are_own,
    are_unwritten,
    content_of,
    count_of,
    first_stamp,
    in_sectors,
    is_unwritten,
    sectors_in,
)

MAGIC = b"EVL4"
OLD_MAGIC = b"EVL3"
UNCHECKED = struct.Struct("<4sB3xQQ16sI")
HEADER = struct.Struct("<4sB3xQQ16sII")
LOG_SUFFIX = ".log"
SPARE_NAME = "log.spare"
READ_BYTES = 512 * SECTOR


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


def log_name(stamp: bytes | None = None) -> str:
    """Return the name of a log, which tells its stamp; a new one without."""
    return f"log-{(stamp or first_stamp()).hex()}{LOG_SUFFIX}"


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
        self.header, record = encode_record(kind, self.number, self.stamp, facts, batches)
        self.file.append([record])
        self.number += 1


def encode_record(
    kind: RecordKind,
    number: int,
    stamp: bytes,
    facts: Mapping[str, Any],
    batches: Sequence[Rows],
) -> tuple[bytes, pa.Buffer]:
    """Return the header of a record, and all of its bytes."""
    parts = payload_parts(facts, batches)
    length = sum(map(len, parts))
    padding = -(HEADER.size + length) % CONTENT
    sectors = in_sectors(b"".join([bytes(HEADER.size), *parts, bytes(padding)]), stamp)
    record = sectors.reshape(-1).view(np.uint8)
    crc = google_crc32c.value(record[HEADER.size :])
    unchecked = UNCHECKED.pack(MAGIC, kind, number, length, stamp, crc)
    header = unchecked + struct.pack("<I", google_crc32c.value(unchecked))
    record[: HEADER.size] = np.frombuffer(header, np.uint8)
    return header, pa.py_buffer(record)


def payload_parts(facts: Mapping[str, Any], batches: Sequence[Rows]) -> list[bytes | pa.Buffer]:
    """Return the bytes of a payload: a length, JSON of that length padded to 8, Arrow messages."""
    messages = [each if isinstance(each, pa.Buffer) else each.serialize() for each in batches]
    text = json.dumps({**facts, "lengths": [len(each) for each in messages]}).encode()
    return [struct.pack("<Q", len(text)), text, bytes(-len(text) % 8), *messages]


def decoded(
    kind: int, payload: pa.Buffer, schemas: Mapping[RecordKind, pa.Schema], place: int
) -> tuple[RecordKind, Mapping[str, Any], tuple[pa.RecordBatch, ...]]:
    """Read what `payload_parts` wrote; `place` is where the record begins."""
    try:
        found = RecordKind(kind)
        schema = schemas[found]
        (length,) = struct.unpack("<Q", payload.slice(0, 8).to_pybytes())
        facts = read_json(payload.slice(8, length).to_pybytes())
        start = 8 + -(-length // 8) * 8
        batches = []
        for size in facts["lengths"]:
            message = pa.ipc.read_message(payload.slice(start, size))
            batches.append(pa.ipc.read_record_batch(message, schema))
            start += size
    except (ValueError, KeyError, TypeError, pa.ArrowException, OSError) as error:
        raise damaged_record(place) from error
    return found, facts, tuple(batches)


def damaged_record(start: int) -> DamagedLogError:
    """Return the error of a record that has changed."""
    return DamagedLogError(f"the record at byte {start} fails its checksum")


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a record of a log, whole."""

    kind: int
    number: int
    length: int
    crc: int
    content: bytes

    @property
    def sectors(self) -> int:
        """How many sectors the record has."""
        return count_of(HEADER.size + self.length)


def header_in(sector: Sectors, stamp: bytes) -> Header | None:
    """Return the header that a sector begins with; None if it is no whole one of the log."""
    if not are_own(sector[None], stamp)[0]:
        return None
    content = sector.tobytes()[: HEADER.size]
    magic, kind, number, length, found, crc, checksum = HEADER.unpack(content)
    if google_crc32c.value(content[:-4]) != checksum or (magic, found) != (MAGIC, stamp):
        return None
    return Header(kind, number, length, crc, content)


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
    sectors, row = sectors_in(content), 0
    while row < len(sectors):
        place_of_record = origin + row * SECTOR
        header = header_in(sectors[row], stamp)
        if header is None:
            is_followed = synced and next_header(sectors, row + 1, stamp) is not None
            if are_unwritten(sectors[row : row + 1], stamp)[0] and not is_followed:
                return
            raise damaged_record(place_of_record)
        if header.number != number:
            raise damaged_record(place_of_record)
        end = row + header.sectors
        if end > len(sectors):
            return
        record = sectors[row:end]
        if google_crc32c.value(record.reshape(-1).view(np.uint8)[HEADER.size :]) != header.crc:
            is_followed = synced and bool(are_own(sectors[end:], stamp).any())
            if are_unwritten(record[1:], stamp).any() and not is_followed:
                return
            raise damaged_record(place_of_record)
        payload = pa.py_buffer(content_of(record)).slice(HEADER.size, header.length)
        kind, facts, batches = decoded(header.kind, payload, schemas, place_of_record)
        yield Record(kind, facts, batches, header.content, origin + end * SECTOR)
        row, number = end, number + 1


def next_header(sectors: Sectors, start: int, stamp: bytes) -> tuple[int, Header] | None:
    """Return the first sector from one on that a whole record header of the log is in."""
    (own,) = are_own(sectors[start:], stamp).nonzero()
    for row in (own + start).tolist():
        header = header_in(sectors[row], stamp)
        if header is not None:
            return row, header
    return None


def next_record(content: bytes, start: int, stamp: bytes, number: int) -> tuple[int, int] | None:
    """Return where the next whole header behind a damaged record is, and its number."""
    sectors, row = sectors_in(content), start // SECTOR
    while (found := next_header(sectors, row, stamp)) is not None:
        row, header = found
        if header.number > number:
            return row * SECTOR, header.number
        # The payload of the damaged record itself may look like anything.
        is_damaged = row * SECTOR == start and header.number == number
        row += header.sectors if is_damaged else 1
    return None


def is_old(start: bytes) -> bool:
    """Whether a log, or the header of a record, begins as logs did before this format."""
    return start[: len(OLD_MAGIC)] == OLD_MAGIC


@dataclass(frozen=True, slots=True)
class Refused:
    """The end of a log that a failed append could not remove, as the failure has left it."""

    log: str
    end: int
    """Where the log ends without it."""
    size: int
    modified_ns: int

    def is_as_left(self, log: str, found: os.stat_result) -> bool:
        """Whether nobody has written to the log since, behind the record or by cutting it."""
        left = (self.log, self.size, self.modified_ns)
        return left == (log, found.st_size, found.st_mtime_ns)


def is_still_there(file: IO[bytes], header: bytes, end: int) -> bool:
    """Whether the record that was read up to `end` is in the log: a failed append takes it back."""
    file.seek(start_of(header, end))
    return file.read(HEADER.size) == header


def start_of(header: bytes, end: int) -> int:
    """Return where a record begins that has a header and ends at a byte."""
    size = HEADER.size + HEADER.unpack(header)[3]
    return int(end - (size if is_old(header) else count_of(size) * SECTOR))


def ends_at(folder: Path, log: str, header: bytes, end: int) -> bool:
    """Whether nothing was written behind the record with a header, and that is still there.

    Every append asks this, so it goes without a file object and arrays.
    """
    if not header or is_old(header):
        return False
    descriptor = os.open(f"{folder}/{log}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.pread(descriptor, HEADER.size, start_of(header, end)) != header:
            return False
        following = os.pread(descriptor, SECTOR, end)
    finally:
        os.close(descriptor)
    return len(following) < SECTOR or is_unwritten(following, stamp_of(log))


def last_checkpoint(file: IO[bytes], end: int, stamp: bytes) -> tuple[int, int]:
    """Return where the last checkpoint begins, and its number, as far as headers tell.

    What is before it is not read: it counts no more.
    """
    place = number = 0
    found = place, number
    while place + SECTOR <= end:
        sector = os.pread(file.fileno(), SECTOR, place)
        header = header_in(sectors_in(sector)[0], stamp) if len(sector) == SECTOR else None
        following = end + 1 if header is None else place + header.sectors * SECTOR
        if header is None or header.number != number or following > end:
            break
        if header.kind == RecordKind.CHECKPOINT:
            found = place, number
        place, number = following, number + 1
    return found


def read_rest(file: IO[bytes], start: int, end: int, stamp: bytes) -> bytes:
    """Read a log from a byte on, up to where so much is not of this log that none of it follows."""
    file.seek(start)
    parts = []
    while start < end:
        part = file.read(min(READ_BYTES, end - start))
        parts.append(part)
        start += len(part)
        if not part or not are_own(sectors_in(part), stamp).any():
            break
    return b"".join(parts)


def read_whole_rest(file: IO[bytes], start: int, end: int, stamp: bytes) -> bytes:
    """Read a log from a byte on, like `read_rest`, but for damage: all of it, if any follows."""
    content = read_rest(file, start, end, stamp)
    place = start + len(content)
    buffer = memoryview(bytearray(READ_BYTES))
    while place < end:
        size = os.preadv(file.fileno(), [buffer[: end - place]], place)
        if not size:
            break
        if are_own(sectors_in(buffer[:size]), stamp).any():
            file.seek(start)
            return file.read(end - start)
        place += size
    return content


def create_log(folder: Path) -> LogWriter:
    """Begin a new log."""
    return LogWriter(AppendFile.create(folder / log_name()), 0)
