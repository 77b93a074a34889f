"""A segment file is a sequence of frames; each says what it is and carries checksums.

    bytes   what
    4       magic "EVF3"
    1       kind: 1 head, 2 leaf, 3 node, 4 root, 5 seal
    1       level: 0 for a leaf, 1 and up for a node; else 0
    2       zero
    8       length of the payload
    8       where this frame begins in the file
    16      the segment's stamp, the same in all its frames
    4       CRC-32C of the payload; of a leaf that of its directory, which has those of its columns
    4       CRC-32C of the 44 bytes before

The payload follows at once, then zeros up to the next multiple of 64. Frames begin only there, so
that after a crash the last whole frame is found by stepping back from the end of the file; place
and stamp keep bytes that merely look like a frame from being taken for one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import google_crc32c
import numpy as np
import pyarrow as pa

MAGIC = b"EVF3"
HEADER = struct.Struct("<4sBBHQQ16sII")
ALIGNMENT = 64
UNCHECKED = struct.Struct("<4sBBHQQ16sI")


class Kind(IntEnum):
    """What a frame holds."""

    HEAD = 1
    LEAF = 2
    NODE = 3
    ROOT = 4
    SEAL = 5


class DamagedFrameError(Exception):
    """Bytes are not the frame that was written. This error never leaves this package."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a segment."""

    kind: Kind
    level: int
    address: int
    stamp: bytes
    payload: pa.Buffer

    @property
    def end(self) -> int:
        """Where the next frame begins."""
        return aligned(self.address + HEADER.size + self.payload.size)


def aligned(size: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def frame_bytes(
    kind: Kind, level: int, address: int, stamp: bytes, payload: Sequence[bytes | pa.Buffer]
) -> list[bytes | pa.Buffer]:
    """Return the bytes of a frame that begins at `address`, as buffers to be written."""
    length = sum(memoryview(buffer).nbytes for buffer in payload)
    crc = checksum(kind, payload)
    unchecked = UNCHECKED.pack(MAGIC, kind, level, 0, length, address, stamp, crc)
    header = unchecked + struct.pack("<I", google_crc32c.value(unchecked))
    padding = aligned(HEADER.size + length) - HEADER.size - length
    return [header, *payload, *([b"\0" * padding] if padding else [])]


def checksum(kind: int, payload: Sequence[bytes | pa.Buffer]) -> int:
    """Return the checksum in a frame's header: of its payload, or that of a leaf's directory.

    The columns of a leaf have their own checksums in its directory, so that a reader need not
    touch the others; with that of the directory here, no leaf can stand for another.
    """
    if kind == Kind.LEAF:
        start = bytes(memoryview(payload[0])[:4]) if payload else b""
        return int.from_bytes(start, "little")
    crc = 0
    for buffer in payload:
        crc = google_crc32c.extend(crc, bytes(buffer))
    return crc


def read_frame(file: pa.Buffer, address: int, stamp: bytes | None = None) -> Frame:
    """Return the frame that begins at `address`, or raise `DamagedFrameError`."""
    if address < 0 or address % ALIGNMENT or address + HEADER.size > file.size:
        message = f"no frame can begin at byte {address}"
        raise DamagedFrameError(message)
    header = file.slice(address, HEADER.size).to_pybytes()
    magic, kind, level, _, length, place, found, crc, header_crc = HEADER.unpack(header)
    whole = magic == MAGIC and place == address and google_crc32c.value(header[:-4]) == header_crc
    if not whole or (stamp is not None and found != stamp):
        message = f"no frame begins at byte {address}"
        raise DamagedFrameError(message)
    start = address + HEADER.size
    if start + length > file.size:
        message = f"the frame at byte {address} is cut short"
        raise DamagedFrameError(message)
    payload = file.slice(start, length)
    if checksum(kind, [payload]) != crc:
        message = f"the frame at byte {address} fails its checksum"
        raise DamagedFrameError(message)
    try:
        return Frame(Kind(kind), level, address, found, payload)
    except ValueError as error:
        message = f"the frame at byte {address} is of no known kind"
        raise DamagedFrameError(message) from error


def frames_backwards(file: pa.Buffer, stamp: bytes) -> Iterator[Frame]:
    """Yield every whole frame of a segment, the last first."""
    words = np.frombuffer(file, np.uint32, file.size // 4)
    step, magic = ALIGNMENT // 4, np.frombuffer(MAGIC, np.uint32)[0]
    chunk = 1 << 20
    # Up to a multiple of the step: a frame that lacks only its padding is whole.
    end = -(-len(words) // step) * step
    while end > 0:
        start = max(0, end - chunk * step)
        found = np.flatnonzero(words[start:end:step] == magic)
        for place in found[::-1]:
            try:
                yield read_frame(file, (start + int(place) * step) * 4, stamp)
            except DamagedFrameError:
                continue
        end = start
