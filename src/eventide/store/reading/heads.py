"""The heads of many leaves, checked in one call, so that less of the leaves has to be read.

Evenly spaced times need not be read: their first and their step are in the head. Doubles that are
stored as they are need not be copied: they are summed up in the mapped file. Only the checksum of
the columns is left to do for a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Bools, Floats, Int64s, frozen
from eventide.kernels.store.leaves import FACT_NAMES, FACTS, read_heads
from eventide.store.files.frame import HEADER as FRAME_HEADER
from eventide.store.files.mapped import MAPPED, damaged, stamp_of
from eventide.store.order import int64_view
from eventide.store.segments.encodings import FRAME, PLAIN, RAW, STEPS, DamagedLeafError
from eventide.store.segments.leaf import ENTRY, HEADER, read_column
from eventide.store.segments.segment import Segment


@dataclass(frozen=True)
class Heads:
    """Leaves of a file whose heads are whole. `names` are the columns to read, `ts` the first."""

    path: Path
    content: pa.Buffer
    schema: pa.Schema
    names: Sequence[str]
    addresses: Int64s
    rows: Int64s
    facts: Int64s

    @classmethod
    def of(
        cls, folder: Path, segment: Segment, names: Sequence[str], leaves: Sequence[Int64s]
    ) -> Heads | None:
        """Check the heads of leaves, given address, length and rows of each; None if one fails."""
        addresses, lengths, rows = (frozen(each) for each in leaves)
        path, schema = folder / segment.file, segment.form.schema.arrow
        content = MAPPED.content(path, int((addresses + lengths).max(initial=0)))
        wanted = np.array([schema.get_field_index(name) for name in names], np.int64)
        facts = np.empty(len(addresses) * len(names) * FACTS, np.int64)
        view = frozen(np.frombuffer(content, np.uint8))
        stamp = frozen(np.frombuffer(stamp_of(path.name), np.uint8))
        inputs = (view, stamp, addresses, rows, len(schema), frozen(wanted))
        if read_heads(*inputs, facts) < len(addresses):
            return None
        shape = (len(addresses), len(names), FACTS)
        return cls(path, content, schema, names, addresses, rows, facts.reshape(shape))

    def fact(self, position: int, name: str) -> Int64s:
        """Return one fact of a column of every leaf."""
        return self.facts[:, position, FACT_NAMES.index(name)]

    @cached_property
    def even(self) -> Bools:
        """Whether the times of each leaf are evenly spaced."""
        encoding = self.fact(0, "encoding")
        stepped = (encoding == STEPS) | (encoding == FRAME)
        even: Bools = stepped & (self.fact(0, "width") == 0) & (self.fact(0, "nulls") == 0)
        return even

    @cached_property
    def steps(self) -> Int64s:
        """The distance between the times of each leaf, if they are evenly spaced."""
        return np.where(self.fact(0, "encoding") == STEPS, self.fact(0, "step"), 0)

    def times_of(self, leaf: int) -> Int64s:
        """Return the times of one leaf."""
        if self.even[leaf]:
            ramp = np.arange(int(self.rows[leaf]), dtype=np.int64)
            ramp *= self.steps[leaf]
            ramp += self.fact(0, "base")[leaf]
            return ramp
        return int64_view(self.column(leaf, 0))

    def times_at(self, leaf_of: Int64s, rows: Int64s) -> Int64s:
        """Return the times of rows of a leaf each; leaves ascend."""
        found: Int64s = self.fact(0, "base")[leaf_of] + self.steps[leaf_of] * rows
        for leaf in np.unique(leaf_of[~self.even[leaf_of]]).tolist():
            own = slice(*np.searchsorted(leaf_of, [leaf, leaf + 1]))
            found[own] = self.times_of(leaf)[rows[own]]
        return found

    def find(self, leaf_of: Int64s, ts: Int64s) -> Int64s:
        """Return the first row, of a leaf each, that is not before a time; leaves ascend."""
        base, steps = self.fact(0, "base")[leaf_of], self.steps[leaf_of]
        found: Int64s = -((base - ts) // np.maximum(steps, 1))
        rows = self.rows[leaf_of]
        found = np.where((steps == 0) & (ts > base), rows, found)
        found = np.minimum(np.maximum(found, 0), rows)
        for leaf in np.unique(leaf_of[~self.even[leaf_of]]).tolist():
            own = slice(*np.searchsorted(leaf_of, [leaf, leaf + 1]))
            found[own] = np.searchsorted(self.times_of(leaf), ts[own])
        return found

    def lie_plain(self, position: int) -> bool:
        """Whether a column of doubles can be read in place, in every leaf."""
        return bool(
            (self.fact(position, "encoding") == PLAIN).all()
            and (self.fact(position, "codecs") == RAW).all()
            and (self.fact(position, "nulls") == 0).all()
            and (self.fact(position, "length") == 8 * self.rows).all()
            and (self.fact(position, "start") % 8 == 0).all()
        )

    def plain(self, position: int) -> tuple[Floats, Int64s]:
        """Return the file as doubles, and where in it a column of each leaf begins, checked."""
        begins, lengths = self.fact(position, "start"), self.fact(position, "length")
        cut, value = self.content.slice, google_crc32c.value
        for address, start, length, checksum in zip(
            self.addresses.tolist(),
            begins.tolist(),
            lengths.tolist(),
            self.fact(position, "checksum").tolist(),
            strict=True,
        ):
            if value(cut(start, length)) != checksum:
                name = self.names[position]
                message = f"the leaf at byte {address}: column {name} fails its checksum"
                raise damaged(self.path, message)
        doubles = np.frombuffer(self.content, np.float64, self.content.size // 8)
        return frozen(doubles), begins // 8

    def column(self, leaf: int, position: int, picked: pa.Array | None = None) -> pa.Array:
        """Return one column of one leaf; with `picked`, of these rows only."""
        address, field = int(self.addresses[leaf]), self.schema.field(self.names[position])
        start = address + FRAME_HEADER.size
        place = HEADER.size + self.schema.get_field_index(field.name) * ENTRY.size
        entry = ENTRY.unpack_from(self.content, start + place)
        try:
            rows = int(self.rows[leaf])
            return read_column(self.content.slice(start), entry, field.type, rows, picked)
        except (DamagedLeafError, pa.ArrowException, OSError, LookupError, ValueError) as error:
            message = f"the leaf at byte {address}: column {field.name} is damaged: {error}"
            raise damaged(self.path, message) from error
