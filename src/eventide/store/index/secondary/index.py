"""A secondary index: where the events are whose attribute has some value.

An index is a file to which runs are appended, and a list of the extents that count. A flush adds a
run; `runs_to_merge` says when to write one with the entries of several, which replaces them. A
lookup does a binary search in the fences of each run, and reads the pages that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.kernels.compiled import Int64s
from eventide.kernels.ordering import sorting_order
from eventide.schema import DataType
from eventide.store.files.disk import Bytes
from eventide.store.index.ranges import ValueRange, checked, type_of
from eventide.store.index.secondary.keys import entries_of, hashes_of
from eventide.store.index.secondary.merging import merged
from eventide.store.index.secondary.run import Run, run_bytes

RANGES_REMEMBERED = 256

Extent = tuple[int, int]
"""Offset and length of a run in its file."""


def encode_run(values: pa.Array, ts: Int64s, seq: Int64s) -> list[Bytes]:
    """Return the bytes of a run with an entry for each value that is not null; rows in any order.

    The number of bytes is a multiple of eight, and so has to be the place they are written at.
    """
    return list(run_bytes([entries_of(values, ts, seq)], type_of(values)))


def merge_runs(reader: SecondaryReader, extents: Sequence[Extent]) -> Iterator[Bytes]:
    """Yield the bytes of one run with the entries of several.

    In memory at a time: of each run 65,536 entries, or 4 MiB as stored if values are large, and
    eight bytes for each distinct value.
    """
    merging = SecondaryReader(reader.file, extents, reader.data_type)
    yield from run_bytes(merging.entries(), reader.data_type)


class SecondaryReader:
    """Answers from the runs of an index; raises `DamagedRunError` if bytes are damaged.

    With the `path` of its file, pages that were decoded lately need not be decoded again.
    """

    def __init__(
        self,
        file: pa.Buffer,
        extents: Sequence[Extent],
        data_type: DataType,
        path: Path | None = None,
    ) -> None:
        self.file = file
        self.data_type = data_type
        self.runs = [Run(file, offset, length, data_type, path) for offset, length in extents]
        self.lately: dict[ValueRange, list[tuple[Run, int, int]]] = {}

    @property
    def rows(self) -> int:
        """How many entries there are."""
        return sum(run.rows for run in self.runs)

    def count(self, wanted: ValueRange) -> int:
        """Return how many entries are in a range, reading at most two pages a run."""
        return sum(stop - start for _, start, stop in self.found(wanted))

    def lookup(self, wanted: ValueRange) -> tuple[Int64s, Int64s]:
        """Return (ts, seq) of the events in a range, in that order."""
        # Something to concatenate even where nothing is found.
        parts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for run, start, stop in self.found(wanted):
            parts += run.times(start, stop)
        ts, seq = map(np.concatenate, zip(*parts, strict=True))
        order = sorting_order(ts, seq)
        return (ts, seq) if order is None else (ts[order], seq[order])

    def found(self, wanted: ValueRange) -> list[tuple[Run, int, int]]:
        """Return the runs with entries in a range, and from where to where they are.

        Counting entries is usually followed by a lookup: so ranges are remembered for a while.
        """
        if wanted not in self.lately:
            if len(self.lately) >= RANGES_REMEMBERED:
                self.lately.clear()
            self.lately[wanted] = list(self.bisected(checked(wanted, self.data_type)))
        return self.lately[wanted]

    def bisected(self, wanted: ValueRange) -> Iterator[tuple[Run, int, int]]:
        """Yield the runs with entries in a checked range, and from where to where they are."""
        runs = self.runs
        if wanted.is_equality:
            value = one_spelling(pa.array([wanted.low], self.data_type.arrow))
            hashed = hashes_of(value)[0]
            runs = [run for run in runs if run.may_hold(hashed)]
        for run in runs:
            start, stop = run.rows_of(wanted)
            if start < stop:
                yield run, start, stop

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Yield batches of all entries, columns value, ts and seq, sorted in that order."""
        return merged(self.runs)

    def verify(self) -> None:
        """Read everything, also what a lookup would skip."""
        for run in self.runs:
            run.verify()
