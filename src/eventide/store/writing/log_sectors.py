"""The sectors of a log, each of which says for which log it was written.

    504     content
    8       the log's tag

A log may be written over an older one that is no longer needed: its blocks are on the disk
already, so that a sync need not note new ones. Then bytes of the older log lie behind its end, and
in place of what a power failure has lost. Nobody may take them for records. Nor may they hide
damage: a sector that was damaged later is neither ours nor one that we have not written yet.

So logs that were written over one another have related stamps: the first twelve bytes are the same,
the last four count. A tag is a hash of the stamp. Whoever knows the stamp of a log knows the tags
of all logs before it in this file. A sector is *unwritten* if it has one of these, or is all zeros.

The tag comes last because a process that is killed may leave the first part of a write: a sector
that is not whole has the tag that it had before, or, at worst, a first part of the new one.
"""

from __future__ import annotations

import hashlib
import uuid
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

SECTOR = 512
TAG_SIZE = 8
CONTENT = SECTOR - TAG_SIZE
WORDS = SECTOR // 8
FILE_SIZE = 12
"""How many bytes of a stamp are those of the file."""
MOST_LOGS = 256
"""How many logs are written over one another: a reader makes as many tags."""

Sectors: TypeAlias = npt.NDArray[np.uint64]
"""A row for each sector."""


def first_stamp() -> bytes:
    """Return the stamp of a log in a file of its own."""
    return uuid.uuid4().bytes[:FILE_SIZE] + bytes(4)


def next_stamp(stamp: bytes) -> bytes | None:
    """Return the stamp of a log that is written over another, None if there were many."""
    following = logs_before(stamp) + 1
    if following >= MOST_LOGS:
        return None
    return stamp[:FILE_SIZE] + following.to_bytes(4, "big")


def logs_before(stamp: bytes) -> int:
    """Return how many logs were in the file before."""
    return int.from_bytes(stamp[FILE_SIZE:], "big")


@lru_cache(maxsize=1024)
def tag_of(stamp: bytes) -> int:
    """Return the tag of the sectors of a log."""
    return int.from_bytes(hashlib.blake2b(stamp, digest_size=TAG_SIZE).digest(), "little")


@lru_cache(maxsize=64)
def older_tags(stamp: bytes) -> frozenset[int]:
    """Return the tags of unwritten sectors: of logs before, or partly overwritten by ours.

    Ours is none of them, though one in 256 logs has the last byte of a log before: then seven bytes
    of it make it whole.
    """
    count = min(logs_before(stamp), MOST_LOGS)
    stamps = [stamp[:FILE_SIZE] + number.to_bytes(4, "big") for number in range(count)]
    own = tag_of(stamp)
    low_bytes = [(1 << 8 * size) - 1 for size in range(TAG_SIZE)]
    found = {(own & low) | (tag_of(each) & ~low) for each in stamps for low in low_bytes}
    return frozenset(found - {own})


def count_of(size: int) -> int:
    """Return how many sectors a content of some bytes takes."""
    return -(-size // CONTENT)


def in_sectors(content: bytes, stamp: bytes) -> Sectors:
    """Return sectors with a content that fills them."""
    sectors = np.empty((len(content) // CONTENT, WORDS), np.uint64)
    sectors[:, :-1] = np.frombuffer(content, np.uint64).reshape(-1, WORDS - 1)
    sectors[:, -1] = tag_of(stamp)
    return sectors


def content_of(sectors: Sectors) -> bytes:
    """Return the content of sectors."""
    return sectors[:, :-1].tobytes()


def sectors_in(content: bytes | memoryview) -> Sectors:
    """Return the whole sectors of a part of a file that begins with one."""
    count = len(content) // SECTOR
    return np.frombuffer(content, np.uint64, count * WORDS).reshape(count, WORDS)


def are_own(sectors: Sectors, stamp: bytes) -> npt.NDArray[np.bool_]:
    """Return which sectors were written for a log."""
    own: npt.NDArray[np.bool_] = sectors[:, -1] == np.uint64(tag_of(stamp))
    return own


def are_unwritten(sectors: Sectors, stamp: bytes) -> npt.NDArray[np.bool_]:
    """Return which sectors nobody has written since the log began."""
    older = np.isin(sectors[:, -1], np.array([*older_tags(stamp)], np.uint64))
    return older | ~sectors.any(axis=1)


def is_unwritten(sector: bytes, stamp: bytes) -> bool:
    """Whether nobody has written one sector since the log began."""
    tag = int.from_bytes(sector[CONTENT:], "little")
    return tag in older_tags(stamp) or not any(sector)


def written_bytes(content: bytes, stamp: bytes) -> int:
    """Return up to where bytes behind the end of a log may have been written for it."""
    if not 0 < logs_before(stamp) < MOST_LOGS:
        return len(content)
    (own,) = are_own(sectors_in(content), stamp).nonzero()
    return SECTOR * (int(own[-1]) + 1) if len(own) else 0
