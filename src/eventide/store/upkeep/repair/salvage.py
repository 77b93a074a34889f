"""Get rows out of a damaged segment, and write them to a new one.

Rows never change: a leaf that was rewritten for late events has all rows of the one before it. So
every whole leaf of a file counts, whether the index reaches it or not, and the numbers of the
events show which of its rows are known already. Leaves that the index reaches come first, then the
newest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.instants import ALL_TIME
from eventide.kernels.compiled import Bools, frozen
from eventide.schema import SEQ, TS
from eventide.store.files.frame import Frame, Kind, frames_backwards, read_frame
from eventide.store.index.aggregates import registered
from eventide.store.order import int64_view, sort_rows
from eventide.store.reading.scan import (
    StoredLeaf,
    StreamColumns,
    Wanted,
    read_sources,
    rebatch,
    with_seq_offset,
)
from eventide.store.segments.leaf import decode_leaf
from eventide.store.segments.segment import Segment, SegmentForm
from eventide.store.segments.segment_writer import write_segments
from eventide.store.segments.tree import decode_levels, parent_entries
from eventide.store.upkeep.seq_set import SeqSet
from eventide.store.upkeep.verify_segment import (
    FACTS,
    UNREADABLE,
    SegmentCheck,
    UnreadablePart,
    fact,
)


@dataclass(frozen=True, slots=True)
class SalvagedLeaf(StoredLeaf):
    """Some rows of a leaf."""

    payload: pa.Buffer
    kept: Bools

    def read(self, wanted: Wanted, names: Sequence[str]) -> pa.RecordBatch:  # noqa: ARG002
        """Return the rows that are kept, in order."""
        rows = leaf_rows(self.payload, self.segment).filter(pa.array(self.kept))
        return sort_rows(rows).select(list(names))


def leaf_rows(payload: pa.Buffer, segment: Segment) -> pa.RecordBatch:
    """Return all columns of a leaf, with the numbers that events have in the stream."""
    schema = segment.form.schema.arrow
    return with_seq_offset(decode_leaf(payload, schema, schema.names), segment.seq_offset)


def leaf_of(
    folder: Path, segment: Segment, frame: Frame, seen: SeqSet, parts: Sequence[UnreadablePart] = ()
) -> SalvagedLeaf | None:
    """Return the rows of a leaf that were not seen before; with `parts`, those of their times."""
    rows = leaf_rows(frame.payload, segment)
    ts, seq = int64_view(rows.column(TS)), int64_view(rows.column(SEQ))
    kept: Bools = np.full(len(ts), not parts)
    for part in parts:
        kept |= (ts >= part.ts_min) & (ts <= part.ts_max)
    kept[kept] = seen.add(seq[kept])
    if not kept.any():
        return None
    keys = list(zip(ts[kept].tolist(), seq[kept].tolist(), strict=True))
    length = frame.end - frame.address
    place = (folder, segment, frame.address, length, len(keys), min(keys), max(keys))
    return SalvagedLeaf(*place, frame.payload, kept)


def salvaged(check: SegmentCheck, seen: SeqSet, limit: int) -> list[SalvagedLeaf]:
    """Return what can be read of a segment: what its index reaches, and leaves before `limit`."""
    content, folder, segment = check.content, check.folder, check.segment
    if content is None:
        return []
    frames = [read_frame(content, address, check.stamp) for address in check.leaves]
    found = [leaf_of(folder, segment, frame, seen) for frame in frames]
    if check.lost:
        reached = set(check.leaves)
        for frame in frames_backwards(content, check.stamp):
            if frame.kind == Kind.LEAF and frame.address < limit and frame.address not in reached:
                try:
                    found.append(leaf_of(folder, segment, frame, seen, check.lost))
                except UNREADABLE:
                    continue
    return [leaf for leaf in found if leaf is not None]


def rewritten(folder: Path, segment: Segment, leaves: list[SalvagedLeaf]) -> tuple[Segment, ...]:
    """Write rows of a segment to a new one, sorted, with the same columns and indexes."""
    check_registered(segment.form)
    form = replace(segment.form, in_order=True)
    columns = StreamColumns(form.schema, form.column_ids)
    wanted = Wanted(columns, tuple(form.schema.arrow.names), ALL_TIME, {})
    sources = sorted(leaves, key=lambda leaf: leaf.first_key)
    batches = rebatch(read_sources(sources, wanted))
    return write_segments(folder, form, batches, [index.attribute for index in segment.indexes])


def check_registered(form: SegmentForm) -> None:
    """Say which aggregate this process cannot compute, if there is one."""
    for name, _ in form.aggregates:
        registered(name)


def newest_root(
    content: pa.Buffer, stamp: bytes, file: str, form: SegmentForm, after: int = 0
) -> Segment | None:
    """Return a segment as its last whole root behind `after` has it, without indexes."""
    check_registered(form)
    for frame in frames_backwards(content, stamp):
        if frame.address <= after:
            return None
        if frame.kind in (Kind.ROOT, Kind.SEAL):
            try:
                return listed(frame, file, form)
            except UNREADABLE:
                continue
    return None


def listed(root: Frame, file: str, form: SegmentForm) -> Segment:
    """Return how a manifest or log lists what a root reaches."""
    levels = decode_levels(root.payload, form.entry_schema)
    entries = pa.concat_batches(levels[::-1])
    bounds = frozen(np.array([0, entries.num_rows], np.int64))
    total = parent_entries(entries, bounds, [(0, 0)], form.layout)
    return Segment(
        file=file,
        bytes=root.end,
        root=root.address,
        root_length=root.end - root.address,
        seq_offset=0,
        **{name: fact(total, name) for name in FACTS},
        form=form,
        totals=total.serialize().to_pybytes(),
        sealed=root.kind == Kind.SEAL,
        indexes=(),
        correlation=(),
    )


def leaves_behind(content: pa.Buffer, stamp: bytes, root: int) -> bool:
    """Whether whole leaves were written behind a root."""
    frames = frames_backwards(content, stamp)
    return any(frame.kind == Kind.LEAF for frame in before(frames, root))


def before(frames: Iterator[Frame], address: int) -> Iterator[Frame]:
    """Yield frames that come backwards, as long as they lie behind an address."""
    for frame in frames:
        if frame.address <= address:
            return
        yield frame
