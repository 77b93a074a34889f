"""Files of secondary indexes for tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from eventide.schema import DataType
from eventide.store.index.ranges import ValueRange
from eventide.store.index.secondary import Extent, SecondaryReader, encode_run
from tests.naive.ranges import qualifies
from tests.store.values import column

Entry = tuple[object, int, int]


def joined(pieces: Iterable[bytes | pa.Buffer]) -> bytes:
    """Return pieces as they would be written."""
    return b"".join(map(bytes, pieces))


def run_of(entries: Sequence[Entry], data_type: DataType) -> bytes:
    """Return the bytes of a run."""
    values = column([value for value, _, _ in entries], data_type)
    ts, seq = (np.array([entry[at] for entry in entries], np.int64) for at in (1, 2))
    return joined(encode_run(values, ts, seq))


def file_of(runs: Sequence[bytes], before: int = 0) -> tuple[pa.Buffer, list[Extent]]:
    """Return runs one after the other behind some zeros, and where they are."""
    starts = np.cumsum([before, *map(len, runs)]).tolist()
    extents = [(start, len(run)) for start, run in zip(starts, runs, strict=False)]
    return pa.py_buffer(bytes(before) + b"".join(runs)), extents


def reader_of(flushes: Sequence[Sequence[Entry]], data_type: DataType) -> SecondaryReader:
    """Return a reader of one run for each flush."""
    file, extents = file_of([run_of(entries, data_type) for entries in flushes], before=8)
    return SecondaryReader(file, extents, data_type)


def looked_up(reader: SecondaryReader, wanted: ValueRange) -> list[tuple[int, int]]:
    """Return what a lookup finds, checking that `count` agrees."""
    ts, seq = reader.lookup(wanted)
    assert ts.dtype == seq.dtype == np.int64
    assert reader.count(wanted) == len(ts)
    return list(zip(ts.tolist(), seq.tolist(), strict=True))


def naively(entries: Iterable[Entry], wanted: ValueRange) -> list[tuple[int, int]]:
    """Return what a lookup has to find."""
    return sorted((ts, seq) for value, ts, seq in entries if qualifies(value, wanted))


@contextlib.contextmanager
def tiny_pages() -> Iterator[None]:
    """Make pages, chunks and tiers so small that a few entries have many of each."""
    with contextlib.ExitStack() as stack:
        for name, value in (
            ("run.PAGE_ROWS", 3),
            ("run.PAGE_TEXT_BYTES", 20),
            ("run.SECTOR_BLOCKS", 1),
            ("run.BITS_PER_VALUE", 200),
            ("merging.CHUNK_PAGES", 2),
        ):
            stack.enter_context(patch(f"eventide.store.index.secondary.{name}", value))
        yield
