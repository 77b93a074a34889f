"""Sketches of panes: of the tuples of a group that come together. They are merged when read.

A sketch is columns of entries, each with the number of its pane: one entry for a HyperLogLog, one
for each frequent value otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s, one_spelling
from eventide.accumulators.json_lists import listed_as_json
from eventide.arrays import to_arrow
from eventide.kernels.aggregates.sketches import (
    LONGEST,
    REGISTERS,
    Registers,
    estimated_counts,
    fill_registers,
    merge_registers,
)
from eventide.kernels.compiled import Int64s, frozen
from eventide.operators.checking import filled, require, require_within
from eventide.operators.fingerprints import fingerprints
from eventide.operators.standing.groups.counting import counted

FEWEST_COUNTERS = 256
COUNTERS_FOR_EACH = 8


@dataclass(frozen=True, slots=True)
class DistinctSketch:
    """A HyperLogLog of 4096 registers for each pane; standard error 1.6 %."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of entries."""
        return pa.schema([("pane", pa.int64()), ("registers", pa.binary(REGISTERS))])

    def lift(self, values: pa.Array, panes: Int64s, count: int) -> pa.RecordBatch:
        """Return the sketches of this many panes."""
        registers = np.zeros((count, REGISTERS), np.uint8)
        prints = fingerprints([values], len(values))
        words = prints.first ^ prints.second
        fill_registers(frozen(panes), frozen(words), frozen(~prints.null), registers)
        held = pa.Array.from_buffers(pa.binary(REGISTERS), count, [None, pa.py_buffer(registers)])
        return pa.RecordBatch.from_arrays([to_arrow(np.arange(count)), held], schema=self.schema)

    def finish(self, entries: pa.RecordBatch, owners: Int64s, count: int) -> pa.Array:
        """Return how many values each owner has, from the entries of its panes."""
        merged: Registers = np.zeros((count, REGISTERS), np.uint8)
        column = entries.column("registers")
        data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * REGISTERS :]
        held = data[: len(column) * REGISTERS].reshape(-1, REGISTERS)
        merge_registers(frozen(held), frozen(owners), merged)
        counts = np.empty(count)
        estimated_counts(merged, counts)
        return to_arrow(np.rint(counts).astype(np.int64))

    def check(self, entries: pa.RecordBatch) -> None:
        """Refuse registers that no values can have produced."""
        column = entries.column("registers")
        require(column.null_count == 0, "a sketch without registers")
        data = np.frombuffer(column.buffers()[1], np.uint8)
        require_within(data, 0, LONGEST + 2, "registers of a sketch")


@dataclass(frozen=True, slots=True)
class FrequentSketch:
    """The most frequent values of each pane, with their counts.

    A pane keeps `counters` values, at least 256. A count of the whole misses at most, for each
    pane, the smallest count that was kept: less than tuples / counters in all.
    """

    kind: pa.DataType
    count: int

    @property
    def counters(self) -> int:
        """How many values a pane keeps."""
        return max(FEWEST_COUNTERS, COUNTERS_FOR_EACH * self.count)

    @property
    def schema(self) -> pa.Schema:
        """The columns of entries."""
        return pa.schema([("pane", pa.int64()), ("value", self.kind), ("count", pa.int64())])

    def lift(self, values: pa.Array, panes: Int64s, count: int) -> pa.RecordBatch:  # noqa: ARG002
        """Return the values that each pane keeps."""
        present = values.is_valid()
        owners = panes[present.to_numpy(zero_copy_only=False)]
        ones = np.ones(len(owners), np.int64)
        return self._first(one_spelling(values.filter(present)), owners, ones, self.counters)

    def check(self, entries: pa.RecordBatch) -> None:
        """Refuse null values, and values that were never counted."""
        require(entries.column("value").null_count == 0, "a null among frequent values")
        require_within(filled(entries.column("count"), "counts"), 1, 2**62, "counts of values")

    def finish(self, entries: pa.RecordBatch, owners: Int64s, count: int) -> pa.Array:
        """Return the most frequent values of each owner as JSON, from the entries of its panes."""
        counts = int64s(entries.column("count"))
        first = self._first(entries.column("value"), owners, counts, self.count)
        lengths = np.bincount(int64s(first.column("pane")), minlength=count)
        return listed_as_json(lengths, first.column("value"), first.column("count"))

    def _first(
        self, values: pa.Array, owners: Int64s, counts: Int64s, limit: int
    ) -> pa.RecordBatch:
        """Return the most frequent values of each owner, in order of owner, count and value."""
        found = counted(values, owners, counts[:, np.newaxis])
        kept = np.flatnonzero(found.ranks < limit)
        columns = [
            to_arrow(found.owners[kept]),
            values.take(to_arrow(found.places[kept])),
            to_arrow(found.amounts[kept, 0]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


Sketch = DistinctSketch | FrequentSketch
