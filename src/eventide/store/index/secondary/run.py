"""One run of a secondary index: entries (value, ts, seq) in that order, and how to find them.

    bytes     what
    ...       pages of up to 4,096 entries, fewer where they would have over a mebibyte of text;
              each is a leaf (see `store/segments/leaf.py`) of the columns value, ts and seq
    ...       fences, a leaf with a row for each page: its first value, the number of entries
              before it, and where it begins
    64 × b    Bloom filter of all values, in b blocks (see `kernels/store/bloom.py`)
    4 × s     CRC-32C of each sector of the filter, 64 blocks; zeros up to a multiple of 8
    4         magic "ESRN"
    2         version, 1
    1, 1, 1   kind of the values, its place in `KINDS`, then precision and scale of decimals
    3         zero
    4         number of pages
    8         number of entries
    8         where the fences begin
    8         where the filter begins
    8         blocks of the filter, b
    8         length of the run, from its first page to its last byte
    4         zero
    4         CRC-32C of the 60 bytes before

Numbers are little-endian, places count from the begin of the run, and every part begins at a
multiple of eight bytes. The directory comes last because a run is written in one go, from entries
whose number is not known before. Every byte that is read is under a checksum, or is one: what
nobody wrote is noticed, and never answered.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.hashing import Hashes
from eventide.kernels.store.bloom import (
    WORDS_PER_BLOCK,
    add_to_filter,
    block_may_hold,
    block_number,
)
from eventide.schema import STORABLE_KINDS, DataType
from eventide.store.files.disk import Bytes
from eventide.store.files.mapped import MAPPED, Decoded
from eventide.store.index.ranges import ValueRange
from eventide.store.index.secondary.keys import NAMES, hashes_of, is_text, position, text_arrays
from eventide.store.segments.leaf import DamagedLeafError, decode_leaf, encode_leaf

MAGIC, VERSION = b"ESRN", 1
END = struct.Struct("<4sHBBB3xIQQQQQ4x")
CHECKSUM = struct.Struct("<I")
END_SIZE = END.size + CHECKSUM.size
KINDS = STORABLE_KINDS
"""In the order of their numbers in files: only ever add at the end."""
FENCES = ("value", "start", "place")
ALL_VALID = frozen(np.empty(0, np.bool_))

PAGE_ROWS = 4096
PAGE_TEXT_BYTES = 1 << 20
BITS_PER_VALUE = 10
BLOCK_BYTES = 8 * WORDS_PER_BLOCK
SECTOR_BLOCKS = 64
ALIGNMENT = 8


class DamagedRunError(Exception):
    """Bytes of a secondary index are not what was written. This error never leaves `store`."""


def run_bytes(batches: Iterable[pa.RecordBatch], data_type: DataType) -> Iterator[Bytes]:
    """Yield the bytes of one run; `batches` of entries are sorted, each follows the one before.

    In memory at a time: two batches, and eight bytes for each distinct value.
    """
    firsts: list[object] = []
    starts, places, hashes = [], [], [np.empty(0, np.uint64)]
    rows = place = 0
    for page in pages_of(batches):
        # As a Python value: a slice would keep all of the page in memory.
        firsts.append(page["value"][0].as_py())
        starts.append(rows)
        places.append(place)
        hashes.append(distinct(hashes_of(page["value"])))
        rows += page.num_rows
        for buffer in encode_leaf(page, "lz4"):
            place += len(buffer)
            yield buffer
    columns = {"value": firsts, "start": starts, "place": places}
    rest = encode_leaf(pa.RecordBatch.from_pydict(columns, leaf_schema(FENCES, data_type)), "lz4")
    filter_place = place + sum(map(len, rest))
    words = filter_of(np.concatenate(hashes))
    rest += filter_bytes(words)
    kind = KINDS.index(data_type.kind), data_type.precision, data_type.scale
    places_in_run = place, filter_place, len(words) // WORDS_PER_BLOCK
    length = place + sum(map(len, rest)) + END_SIZE
    end = END.pack(MAGIC, VERSION, *kind, len(firsts), rows, *places_in_run, length)
    yield from rest
    yield end + CHECKSUM.pack(checksum(end))


def pages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same entries by pages; only the last one may have fewer entries."""
    rest: pa.RecordBatch | None = None
    for batch in batches:
        rest = batch if rest is None else pa.concat_batches([rest, batch])
        start = 0
        for stop in page_stops(rest["value"]):
            yield rest.slice(start, stop - start)
            start = stop
        rest = rest.slice(start)
    if rest is not None and rest.num_rows:
        yield rest


def page_stops(values: pa.Array) -> Iterator[int]:
    """Yield where full pages end."""
    ends = text_arrays(values)[0] if is_text(values.type) else None
    stop = 0
    while True:
        start, stop = stop, stop + PAGE_ROWS
        if ends is not None:
            full = int(ends[start]) + PAGE_TEXT_BYTES
            stop = min(stop, max(start + 1, int(np.searchsorted(ends, full, side="right"))))
        if stop > len(values):
            return
        yield stop


def distinct(hashes: Hashes) -> Hashes:
    """Return the hashes of sorted values, once for each value; hashes that collide may be one."""
    once: Hashes = hashes[np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))]
    return once


def filter_of(hashes: Hashes) -> Hashes:
    """Return the words of a Bloom filter of some values; none for no values."""
    blocks = -(-len(hashes) * BITS_PER_VALUE // (8 * BLOCK_BYTES))
    words = np.zeros(blocks * WORDS_PER_BLOCK, np.uint64)
    add_to_filter(frozen(hashes), words)
    return words


def filter_bytes(words: Hashes) -> list[Bytes]:
    """Return a filter and the checksums of its sectors as bytes."""
    content, size = pa.py_buffer(words), SECTOR_BLOCKS * BLOCK_BYTES
    sums = b"".join(
        CHECKSUM.pack(checksum(content[start : start + size]))
        for start in range(0, content.size, size)
    )
    return [content, sums + bytes(-len(sums) % ALIGNMENT)]


def leaf_schema(names: Sequence[str], data_type: DataType) -> pa.Schema:
    """Return the schema of entries or fences: a value, and two numbers."""
    types = (data_type.arrow, pa.int64(), pa.int64())
    return pa.schema(list(zip(names, types, strict=True)))


def checksum(content: Bytes) -> int:
    """Return the CRC-32C of some bytes."""
    return int(google_crc32c.value(content))


def bytes_at(file: pa.Buffer, offset: int, size: int) -> pa.Buffer:
    """Return bytes of a file, or raise `DamagedRunError` where it ends too early."""
    if offset < 0 or size < 0 or offset + size > file.size:
        message = f"the file has no {size} bytes at byte {offset}"
        raise DamagedRunError(message)
    return file.slice(offset, size)


def leaf_of(
    file: pa.Buffer, start: int, stop: int, schema: pa.Schema, names: Sequence[str]
) -> pa.RecordBatch:
    """Return some columns of a leaf in a file, or raise `DamagedRunError`."""
    try:
        return decode_leaf(bytes_at(file, start, stop - start), schema, names)
    except (DamagedLeafError, pa.ArrowException) as error:
        message = f"the page at byte {start} is damaged: {error}"
        raise DamagedRunError(message) from error


class Run:
    """A run in a file; opening it reads its end, the rest is read when needed."""

    def __init__(
        self,
        file: pa.Buffer,
        offset: int,
        length: int,
        data_type: DataType,
        path: Path | None = None,
    ) -> None:
        self.file = file
        self.path = path
        self.offset = offset
        self.length = length
        self.data_type = data_type
        self.schema = leaf_schema(NAMES, data_type)
        content = bytes_at(file, offset + length - END_SIZE, END_SIZE).to_pybytes()
        magic, version, *kind, pages, rows, fences, blooms, blocks, size = END.unpack_from(content)
        whole = checksum(content[: END.size]) == CHECKSUM.unpack_from(content, END.size)[0]
        if not whole or magic != MAGIC or size != length or offset < 0:
            message = f"no run of {length} bytes begins at byte {offset}"
            raise DamagedRunError(message)
        wanted = [KINDS.index(data_type.kind), data_type.precision, data_type.scale]
        if version != VERSION or kind != wanted:
            message = f"the run at byte {offset} has version {version}, or no {data_type} values"
            raise DamagedRunError(message)
        self.pages: int = pages
        self.rows: int = rows
        self.fences_offset: int = offset + fences
        self.filter_offset: int = offset + blooms
        self.blocks: int = blocks

    @cached_property
    def fences(self) -> tuple[pa.Array, Int64s, Int64s]:
        """The first value of each page, the entries before it, and where it begins.

        The last two have one more element: the number of entries, and the place behind the last
        page.
        """
        schema = leaf_schema(FENCES, self.data_type)
        found = leaf_of(self.file, self.fences_offset, self.filter_offset, schema, FENCES)
        if found.num_rows != self.pages:
            message = f"the fences at byte {self.fences_offset} are not those of the run"
            raise DamagedRunError(message)
        starts = np.append(int64s(found["start"]), self.rows)
        places = np.append(int64s(found["place"]) + self.offset, self.fences_offset)
        return found["value"], starts, places

    def page(self, number: int, *names: str) -> pa.RecordBatch:
        """Return some columns of a page, all without names."""
        _, starts, places = self.fences
        first, behind = map(int, places[number : number + 2])
        page = leaf_of(self.file, first, behind, self.schema, names or NAMES)
        if page.num_rows != starts[number + 1] - starts[number]:
            message = f"the page at byte {first} has {page.num_rows} entries"
            raise DamagedRunError(message)
        return page

    def may_hold(self, hashed: np.uint64) -> bool:
        """Whether some value may have a hash; if not, none has it."""
        if self.blocks == 0:
            return False
        block = int(block_number(hashed, self.blocks))
        words = self.sector(block // SECTOR_BLOCKS)
        start = block % SECTOR_BLOCKS * WORDS_PER_BLOCK
        return bool(block_may_hold(hashed, frozen(words[start : start + WORDS_PER_BLOCK])))

    def sector(self, number: int) -> Hashes:
        """Return the words of one sector of the filter, checked."""
        start = number * SECTOR_BLOCKS
        size = min(SECTOR_BLOCKS, self.blocks - start) * BLOCK_BYTES
        content = bytes_at(self.file, self.filter_offset + start * BLOCK_BYTES, size)
        sums = self.filter_offset + self.blocks * BLOCK_BYTES
        expected = bytes_at(self.file, sums + number * CHECKSUM.size, CHECKSUM.size)
        if checksum(content) != CHECKSUM.unpack(expected)[0]:
            message = f"sector {number} of the filter at byte {self.filter_offset} is damaged"
            raise DamagedRunError(message)
        return np.frombuffer(content, np.uint64)

    def rows_of(self, wanted: ValueRange) -> tuple[int, int]:
        """Return the numbers of the first entry in a checked range, and of the first behind it."""
        low, high = 0, self.rows
        if wanted.low is not None:
            low = self.rows_before(wanted.low, after=not wanted.includes_low)
        if wanted.high is not None:
            high = self.rows_before(wanted.high, after=wanted.includes_high)
        return low, max(low, high)

    def rows_before(self, bound: object, *, after: bool) -> int:
        """Return how many values are below a bound; with `after`, how many up to it."""
        firsts, starts, _ = self.fences
        page = position(firsts, bound, after=after) - 1
        if page < 0:
            return 0
        return int(starts[page]) + position(self.page(page, "value")["value"], bound, after=after)

    def times(self, start: int, stop: int) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield ts and seq of the entries from one number to another, by pages."""
        _, starts, _ = self.fences
        first = int(np.searchsorted(starts, start, side="right")) - 1
        for number in range(first, self.pages):
            before = int(starts[number])
            if before >= stop:
                return
            inside = slice(max(start - before, 0), stop - before)
            yield self.numbers(number, "ts")[inside], self.numbers(number, "seq")[inside]

    def numbers(self, number: int, name: str) -> Int64s:
        """Return one column of a page as numbers; those of a file that is known stay decoded."""

        def decode() -> Decoded:
            return int64s(self.page(number, name)[name]), ALL_VALID

        if self.path is None:
            return int64s(self.page(number, name)[name])
        _, _, places = self.fences
        found, _ = MAPPED.column(self.path, int(places[number]), name, decode)
        return np.asarray(found, np.int64)

    def verify(self) -> None:
        """Read all pages and all of the filter."""
        for number in range(self.pages):
            self.page(number)
        for number in range(-(-self.blocks // SECTOR_BLOCKS)):
            self.sector(number)
