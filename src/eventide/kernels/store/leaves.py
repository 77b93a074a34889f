"""Check the heads of many leaves of a mapped file in one call: which of them are whole.

A leaf's head is that of its frame, and the directory of its columns: both have checksums, which are
small. The checksums of columns are checked by their readers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventide.kernels.aggregates.lanes import LANES
from eventide.kernels.aggregates.summaries import summarise_floats_of_run
from eventide.kernels.compiled import Floats, Int64s, inline, kernel

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]

FRAME_HEAD = 48
FRAME_MAGIC = 0x33465645  # "EVF3"
LEAF_KIND = 2
LEAF_VERSION = 1
LEAF_HEAD = 16
COLUMN_ENTRY = 64
POLYNOMIAL = 0x82F63B78

FACT_NAMES = (
    "start",  # of the column, in the file
    "length",
    "checksum",
    "encoding",
    "codecs",
    "width",
    "nulls",
    "base",
    "step",
)
FACTS = len(FACT_NAMES)


def crc_table() -> Words:
    """Return the table of a CRC-32C by byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ (np.uint32(POLYNOMIAL) * (table & np.uint32(1)))
    return table


TABLE = crc_table()


@inline
def crc_of(content: Bytes, start: int, end: int) -> np.uint32:
    """Return the CRC-32C of some bytes: a table is fast enough for the few bytes of a head."""
    crc = np.uint32(0xFFFFFFFF)
    for place in range(start, end):
        crc = TABLE[(crc ^ content[place]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


@inline
def number_at(content: Bytes, place: int, width: int) -> np.int64:
    """Return the unsigned number of some bytes, the lowest first."""
    number = np.int64(0)
    for byte in range(width):
        number |= np.int64(content[place + byte]) << np.int64(8 * byte)
    return number


@inline
def is_whole(content: Bytes, stamp: Bytes, address: int, rows: int, columns: int) -> bool:
    """Whether a leaf of this many rows and columns begins at an address."""
    size = LEAF_HEAD + columns * COLUMN_ENTRY
    start = address + FRAME_HEAD
    if address < 0 or address % 64 != 0 or start + size > len(content):
        return False
    length = number_at(content, address + 8, 8)
    if length < size or start + length > len(content):
        return False
    same = number_at(content, address, 4) == FRAME_MAGIC and content[address + 4] == LEAF_KIND
    same = same and number_at(content, address + 16, 8) == address
    for byte in range(16):
        same = same and content[address + 24 + byte] == stamp[byte]
    if not same or number_at(content, address + 44, 4) != crc_of(content, address, address + 44):
        return False
    checksum = number_at(content, start, 4)
    return bool(
        number_at(content, address + 40, 4) == checksum
        and number_at(content, start + 4, 2) == LEAF_VERSION
        and number_at(content, start + 6, 2) == columns
        and number_at(content, start + 8, 8) == rows
        and crc_of(content, start + 4, start + size) == checksum
    )


@kernel
def read_heads(
    content: Bytes,
    stamp: Bytes,
    addresses: Int64s,
    rows: Int64s,
    columns: int,
    wanted: Int64s,
    facts: Int64s,
) -> int:
    """Write what the heads of leaves say of some of their columns; return how many are whole.

    `facts` is flat: for each leaf, and each wanted column, `FACTS` numbers in the order of their
    names below. Leaves after the first that is not whole are not checked.
    """
    for leaf in range(len(addresses)):
        start = addresses[leaf] + FRAME_HEAD
        if not is_whole(content, stamp, addresses[leaf], rows[leaf], columns):
            return leaf
        for position in range(len(wanted)):
            entry = start + LEAF_HEAD + wanted[position] * COLUMN_ENTRY
            out = facts[(leaf * len(wanted) + position) * FACTS :]
            out[0] = start + number_at(content, entry, 8)
            out[1] = number_at(content, entry + 8, 4)
            out[2] = number_at(content, entry + 12, 4)
            out[3] = content[entry + 16]
            out[4] = content[entry + 17]
            out[5] = content[entry + 18]
            out[6] = number_at(content, entry + 20, 4)
            out[7] = number_at(content, entry + 24, 8)
            out[8] = number_at(content, entry + 32, 8)
    return len(addresses)


@kernel
def summarise_runs(
    values: Floats, starts: Int64s, ends: Int64s, counts: Int64s, extremes: Floats, moments: Floats
) -> None:
    """Write the summary of each run [starts[r], ends[r]) of values, none of them null.

    As `summarise_floats`, but the runs may lie anywhere.
    """
    none = np.empty(0, np.bool_)
    lanes = np.empty(6 * LANES)
    for run in range(len(counts)):
        part = values[starts[run] : ends[run]]
        summarise_floats_of_run(part, none, lanes, (counts, extremes, moments), run)


@kernel
def runs_by_slide(
    ts: Int64s,
    slide_us: int,
    rest_us: int,
    breaks: Int64s,
    starts: Int64s,
    periods: Int64s,
) -> int:
    """Write where runs of rows of the same period begin, and its number; return how many there are.

    Periods begin at k·slide (number 2k) and at k·slide + rest (number 2k + 1), 0 < rest <= slide;
    with a rest as long as the slide there are only the even ones. Times need not ascend. A run
    begins at each of the rows `breaks` as well, which ascend.
    """
    count, broken = 0, 0
    low, high = np.int64(0), np.int64(0)
    for row in range(len(ts)):
        instant = ts[row]
        while broken < len(breaks) and breaks[broken] == row:
            broken += 1
            high = low
        if row == 0 or instant < low or instant >= high:
            turn = instant // slide_us
            middle = turn * slide_us + rest_us
            if instant < middle:
                low, high, period = turn * slide_us, middle, 2 * turn
            else:
                low, high, period = middle, (turn + 1) * slide_us, 2 * turn + 1
            starts[count] = row
            periods[count] = period
            count += 1
    return count


@kernel
def runs_by_cuts(ts: Int64s, cuts: Int64s, breaks: Int64s, starts: Int64s, periods: Int64s) -> int:
    """Write where runs of rows of the same period begin, and its number; return how many there are.

    Span i is [cuts[i], cuts[i + 1]), and every time lies in one of them. Times need not ascend. A
    run begins at each of the rows `breaks` as well, which ascend.
    """
    count, broken = 0, 0
    low, high = np.int64(0), np.int64(0)
    period = 0
    for row in range(len(ts)):
        instant = ts[row]
        while broken < len(breaks) and breaks[broken] == row:
            broken += 1
            high = low
        if row == 0 or instant < low or instant >= high:
            period = np.searchsorted(cuts, instant, side="right") - 1
            low, high = cuts[period], cuts[period + 1]
            starts[count] = row
            periods[count] = period
            count += 1
    return count
