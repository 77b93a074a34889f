"""Read logs that an earlier Eventide wrote: `EVL3`. The next writer begins a log of today's format.

    bytes   what
    4       magic "EVL3"
    1       kind: 1 events, 2 checkpoint
    3       zero
    8       number of the record, from 0
    8       length of the payload, a multiple of 8
    16      the log's stamp
    4       CRC-32C of the payload
    4       CRC-32C of the 44 bytes before
    …       the payload, masked

Records follow one another without gaps, and such a log was never written over another. A sector
that a power failure has lost is all zeros, and masking makes sure that no sector of a whole record
is.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.store.writing.log import (
    HEADER,
    OLD_MAGIC,
    Record,
    RecordKind,
    damaged_record,
    decoded,
)
from eventide.store.writing.log_sectors import SECTOR

MASK: npt.NDArray[np.uint64] = np.frombuffer(
    hashlib.shake_256(b"the log of an eventide stream").digest(SECTOR), np.uint64
)


def masked(content: bytes) -> bytes:
    """Take the mask off bytes."""
    words = np.frombuffer(content, np.uint64)
    whole = len(words) // len(MASK) * len(MASK)
    out = np.empty(len(words), np.uint64)
    np.bitwise_xor(
        words[:whole].reshape(-1, len(MASK)), MASK, out=out[:whole].reshape(-1, len(MASK))
    )
    np.bitwise_xor(words[whole:], MASK[: len(words) - whole], out=out[whole:])
    return out.tobytes()


def read_old_records(
    content: bytes,
    stamp: bytes,
    schemas: Mapping[RecordKind, pa.Schema],
    *,
    origin: int = 0,
    number: int = 0,
    synced: bool,
) -> Iterator[Record]:
    """Yield the records of an old log; see `read_records`."""
    start = 0
    while start < len(content):
        header, body = content[start : start + HEADER.size], start + HEADER.size
        if not is_whole(header):
            followed = synced and has_header(content, body, stamp)
            if is_torn(content, start, body, origin) and not followed:
                return
            raise damaged_record(origin + start)
        magic, kind, found_number, length, found_stamp, crc, _ = HEADER.unpack(header)
        if magic != OLD_MAGIC or found_stamp != stamp or found_number != number:
            raise damaged_record(origin + start)
        end = body + length
        payload = content[body:end]
        if len(payload) != length or google_crc32c.value(payload) != crc:
            if is_torn(content, body, end, origin) and not (synced and any(content[end:])):
                return
            raise damaged_record(origin + start)
        plain = pa.py_buffer(masked(payload))
        kind, facts, batches = decoded(kind, plain, schemas, origin + start)
        yield Record(kind, facts, batches, header, origin + end)
        start, number = end, number + 1


def is_whole(header: bytes) -> bool:
    """Whether a header is there and fits its checksum."""
    if len(header) < HEADER.size:
        return False
    return bool(google_crc32c.value(header[:-4]) == struct.unpack("<I", header[-4:])[0])


def has_header(content: bytes, start: int, stamp: bytes) -> bool:
    """Whether a whole header of the log is behind `start`: then what is before it was synced."""
    while (start := content.find(OLD_MAGIC, start)) >= 0:
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


def next_old_record(
    content: bytes, start: int, stamp: bytes, number: int
) -> tuple[int, int] | None:
    """Return where the next whole header behind a damaged record is, and its number."""
    place = start
    if (own := own_header(content, start, stamp)) is not None and own[0] == number:
        place += HEADER.size + own[1]
    while (place := content.find(OLD_MAGIC, place)) >= 0:
        # Headers and payloads are multiples of 8 bytes long.
        found = None if place % 8 else own_header(content, place, stamp)
        if found is not None and found[0] > number:
            return place, found[0]
        place += 1
    return None


def own_header(content: bytes, start: int, stamp: bytes) -> tuple[int, int] | None:
    """Return the number and the length of a record of this log whose header is whole."""
    header = content[start : start + HEADER.size]
    if not is_whole(header):
        return None
    magic, _, number, length, found_stamp, _, _ = HEADER.unpack(header)
    return (number, length) if (magic, found_stamp) == (OLD_MAGIC, stamp) else None
