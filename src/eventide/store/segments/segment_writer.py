"""Write segments: leaves and their index in one sequence of appends.

A batch of rows is cut into leaves; all cores encode them while the aggregates of the whole batch
are computed, and the frames go to the file in one write. A crash leaves whole frames that no root
reaches, and perhaps a torn one: readers never look at them.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from eventide.errors import StoreError
from eventide.kernels.compiled import Int64s, frozen
from eventide.schema import SEQ, TS, DataType
from eventide.store.files.disk import AppendFile, Bytes, remove, sync_folder
from eventide.store.files.frame import Kind, aligned, frame_bytes
from eventide.store.files.mapped import MAPPED
from eventide.store.index.aggregates import registered
from eventide.store.index.correlation import CorrelationPart, correlation_of
from eventide.store.index.secondary.index import SecondaryReader, encode_run, merge_runs
from eventide.store.index.secondary.merging import runs_to_merge
from eventide.store.order import int64_view
from eventide.store.segments.leaf import encode_leaf
from eventide.store.segments.segment import Segment, SegmentForm, SegmentIndex
from eventide.store.segments.tree import (
    Levels,
    Tree,
    encode_levels,
    leaf_entries,
    parent_entries,
    place,
    with_entries,
)

LEAF_ROWS = 16_384
LEAF_BYTES = 2 << 20
MANY_COLUMNS = 512
"""With more columns a leaf may have more bytes: it would have few values of each, and every column
of a leaf costs as much as some hundred values."""
GROUP_LEAVES = 8
"""How many leaves are encoded and written together."""
GROUPS_AHEAD = 4
"""How many groups are encoded, or about to be, while one is written."""
SEGMENT_ROWS = 32 << 20
SEGMENT_BYTES = 1 << 30
FORMAT = 3

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class SegmentWriter:
    """The growing end of a segment. What it has written counts once a root of it is listed."""

    def __init__(
        self,
        form: SegmentForm,
        file: AppendFile,
        stamp: bytes,
        levels: Levels,
        indexes: Sequence[IndexWriter],
        correlation: Mapping[str, float],
    ) -> None:
        self.form = form
        self.file = file
        self.stamp = stamp
        self.levels = levels
        self.indexes = list(indexes)
        self.correlation = dict(correlation)
        self.wasted = 0
        self.root_length = 0
        self.measured: dict[str, CorrelationPart] = {}

    @classmethod
    def create(cls, folder: Path, form: SegmentForm, indexed: Sequence[str] = ()) -> SegmentWriter:
        """Begin a new file."""
        stamp = uuid.uuid4()
        file = AppendFile.create(folder / f"seg-{stamp.hex}.ev")
        writer = cls(form, file, stamp.bytes, (), [], {})
        head = {"format": FORMAT, "form": form.to_json()}
        try:
            writer.write(Kind.HEAD, 0, [json.dumps(head).encode()])
            for number, attribute in enumerate(indexed):
                path = folder / f"seg-{stamp.hex}-{number}.ix"
                kind = form.schema.type_of(attribute)
                writer.indexes.append(IndexWriter(attribute, kind, AppendFile.create(path), ()))
        except BaseException:
            writer.discard()
            raise
        return writer

    @classmethod
    def resume(cls, folder: Path, segment: Segment) -> SegmentWriter:
        """Go on with a segment that is not sealed, behind everything in its files."""
        for name, _ in segment.form.aggregates:
            registered(name)  # or say which aggregate this process cannot compute
        head = MAPPED.frame(folder / segment.file, 0, 0, Kind.HEAD)
        file = reopened(folder / segment.file)
        indexes = [
            IndexWriter(
                index.attribute,
                segment.form.schema.type_of(index.attribute),
                reopened(folder / index.file),
                index.extents,
            )
            for index in segment.indexes
        ]
        levels = segment.levels(folder)
        writer = cls(segment.form, file, head.stamp, levels, indexes, dict(segment.correlation))
        # What lies between the root and the end of the file was written by a process that
        # crashed.
        writer.wasted = segment.wasted + file.end - segment.bytes
        writer.root_length = segment.root_length
        return writer

    @property
    def paths(self) -> tuple[Path, ...]:
        """The segment's file, and those of its indexes."""
        return self.file.path, *(index.file.path for index in self.indexes)

    @property
    def rows(self) -> int:
        """How many rows the leaves hold."""
        return sum(int(place(level, "rows").sum()) for level in self.levels)

    @property
    def is_full(self) -> bool:
        """Whether the segment has the size at which another begins."""
        return self.file.end >= SEGMENT_BYTES or self.rows >= SEGMENT_ROWS

    def write(self, kind: Kind, level: int, payload: Sequence[Bytes]) -> tuple[int, int]:
        """Append one frame; return its address and length."""
        buffers = frame_bytes(kind, level, self.file.end, self.stamp, payload)
        return self.file.append(buffers), sum(memoryview(buffer).nbytes for buffer in buffers)

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows as leaves at the right edge of the index."""
        if not rows.num_rows:
            return
        bounds = leaf_bounds(rows)
        entries = self.write_leaves(rows, bounds)
        self.levels = with_entries(self.levels, 0, entries, self.form.layout, self.write)
        self.measure(rows, bounds)
        self.add_to_indexes(rows)

    def write_leaves(self, rows: pa.RecordBatch, bounds: Int64s) -> pa.RecordBatch:
        """Write runs of rows as leaves; return their entries."""
        runs = list(pairwise(bounds.tolist()))
        codec = self.form.codec
        frames: list[tuple[int, int]] = []

        def encoded(group: Sequence[tuple[int, int]]) -> list[list[Bytes]]:
            return [encode_leaf(rows.slice(start, end - start), codec) for start, end in group]

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            summaries = begun(threads, self.form.layout.summarise, rows, frozen(bounds))
            groups = [runs[at : at + GROUP_LEAVES] for at in range(0, len(runs), GROUP_LEAVES)]
            # While one group is written the next ones are encoded; only a few, because encoded
            # groups that are not written take memory.
            ahead = deque(begun(threads, encoded, group) for group in groups[:GROUPS_AHEAD])
            rest = iter(groups[GROUPS_AHEAD:])
            while ahead:
                frames += self.write_group(ahead.popleft()())
                ahead.extend(begun(threads, encoded, group) for group in islice(rest, 1))
            return leaf_entries(rows, bounds, frames, summaries(), in_order=self.form.in_order)

    def write_group(self, payloads: Sequence[list[Bytes]]) -> list[tuple[int, int]]:
        """Append several leaves with one call; return the address and length of each.

        The disk writes them while the next ones are encoded.
        """
        frames: list[tuple[int, int]] = []
        buffers: list[Bytes] = []
        address = self.file.end
        for payload in payloads:
            frame = frame_bytes(Kind.LEAF, 0, address, self.stamp, payload)
            length = sum(memoryview(buffer).nbytes for buffer in frame)
            frames.append((address, length))
            buffers += frame
            address += length
        self.file.begin_sync(self.file.append(buffers))
        return frames

    def measure(self, rows: pa.RecordBatch, bounds: Int64s) -> None:
        """Measure how steadily attributes change, in one of many leaves: that is enough."""
        leaf = rows.slice(0, int(bounds[1]))
        for attribute in self.form.schema.names:
            part = correlation_of(leaf.column(attribute))
            if part is not None:
                held = self.measured.get(attribute)
                self.measured[attribute] = part if held is None else held.merge(part)
                self.correlation[attribute] = self.measured[attribute].value

    def add_to_indexes(self, rows: pa.RecordBatch) -> None:
        """Append a run to every secondary index."""
        for index in self.indexes:
            index.add(rows)

    def root(self, kind: Kind = Kind.ROOT) -> Segment:
        """Make everything written so far reachable; return how a manifest or log lists it."""
        total = self.total()
        self.wasted += self.root_length
        address, length = self.write(kind, 0, encode_levels(self.levels))
        self.root_length = length
        names = ("rows", "leaves", "ts_min", "ts_max", "first_seq", "last_seq", "seq_max")
        return Segment(
            file=self.file.path.name,
            bytes=self.file.end,
            root=address,
            root_length=length,
            seq_offset=0,
            **{name: int(place(total, name)[0]) for name in names},
            form=self.form,
            totals=total.serialize().to_pybytes(),
            sealed=kind == Kind.SEAL,
            wasted=self.wasted,
            indexes=tuple(index.listed() for index in self.indexes),
            correlation=tuple(self.correlation.items()),
        )

    def total(self) -> pa.RecordBatch:
        """Return one entry for all rows."""
        entries = pa.concat_batches(self.levels[::-1])
        bounds = np.array([0, entries.num_rows], np.int64)
        return parent_entries(entries, bounds, [(0, 0)], self.form.layout)

    def reached(self) -> Tree:
        """Return the index of everything written so far."""
        form = self.form
        return Tree(self.file.path, form.entry_schema, form.summaries, self.levels)

    def sync(self) -> None:
        """Return once everything written is on the disk."""
        self.file.sync()
        for index in self.indexes:
            index.file.sync()

    def close(self) -> None:
        """Close the descriptors."""
        self.file.close()
        for index in self.indexes:
            index.file.close()

    def discard(self) -> None:
        """Delete the files."""
        self.close()
        for path in self.paths:
            remove(path)


def reopened(path: Path) -> AppendFile:
    """Open a file to go on where a frame or run may begin: a crash can leave part of the last."""
    file = AppendFile.open(path)
    file.end = aligned(file.end)
    return file


class IndexWriter:
    """The growing end of a secondary index: sorted runs, merged as they pile up."""

    def __init__(
        self,
        attribute: str,
        data_type: DataType,
        file: AppendFile,
        extents: Sequence[tuple[int, int]],
    ) -> None:
        self.attribute = attribute
        self.data_type = data_type
        self.file = file
        self.extents = list(extents)

    def add(self, rows: pa.RecordBatch) -> None:
        """Append a run of the rows' values, and merge runs where many have piled up."""
        column = rows.column(self.attribute)
        ts, seq = int64_view(rows.column(TS)), int64_view(rows.column(SEQ))
        self.append(encode_run(column, ts, seq))
        while chosen := list(runs_to_merge([length for _, length in self.extents])):
            self.merge(chosen)

    def append(self, buffers: Sequence[Bytes]) -> None:
        """Append the bytes of a run."""
        start = self.file.append(buffers)
        self.extents.append((start, self.file.end - start))

    def merge(self, chosen: Sequence[int]) -> None:
        """Write several runs as one, which replaces them from now on."""
        content = MAPPED.content(self.file.path, self.file.end)
        extents = [self.extents[place] for place in chosen]
        kept = [extent for place, extent in enumerate(self.extents) if place not in chosen]
        reader = SecondaryReader(content, extents, self.data_type)
        buffers = list(merge_runs(reader, extents))
        self.extents = kept
        self.append(buffers)

    def listed(self) -> SegmentIndex:
        """Return how a segment lists the index."""
        return SegmentIndex(self.attribute, self.file.path.name, tuple(self.extents))


def begun(
    threads: ThreadPoolExecutor,
    work: Callable[Arguments, Returned],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Callable[[], Returned]:
    """Begin work in another thread; return a function that waits for it and returns its result."""
    try:
        return threads.submit(work, *args, **kwargs).result
    except RuntimeError:
        # A feed stores what waits when the interpreter ends, and then there are no new threads.
        return partial(work, *args, **kwargs)


def leaf_capacity(rows: pa.RecordBatch) -> int:
    """Return how many of such rows a leaf has: fewer if rows are large."""
    row_bytes = max(1, int(rows.nbytes) // max(1, rows.num_rows))
    most_bytes = LEAF_BYTES * max(1, rows.num_columns // MANY_COLUMNS)
    return int(max(1, min(LEAF_ROWS, most_bytes // row_bytes)))


def leaf_bounds(rows: pa.RecordBatch) -> Int64s:
    """Cut rows into leaves."""
    inner = np.arange(0, rows.num_rows, leaf_capacity(rows), dtype=np.int64)
    return np.append(inner, np.int64(rows.num_rows))


def write_segments(
    folder: Path, form: SegmentForm, batches: Iterable[pa.RecordBatch], indexed: Sequence[str] = ()
) -> tuple[Segment, ...]:
    """Write sorted batches to as many sealed files as they need.

    On return the files and their names are on the disk; after an error none of them is left.
    """
    rest = (batch for batch in batches if batch.num_rows)
    segments: list[Segment] = []
    try:
        for first in rest:
            segments.append(write_segment(folder, form, chain([first], rest), indexed))
        sync_folder(folder)
    except BaseException as error:
        for segment in segments:
            for name in segment.files:
                remove(folder / name)
        if isinstance(error, (OSError, pa.ArrowException)) and not isinstance(error, StoreError):
            raise cannot_write(folder, error) from error
        raise
    return tuple(segments)


def write_segment(
    folder: Path, form: SegmentForm, batches: Iterator[pa.RecordBatch], indexed: Sequence[str]
) -> Segment:
    """Write batches until one file is full; the others stay. Remove the file if that fails."""
    writer = SegmentWriter.create(folder, form, indexed)
    try:
        for batch in batches:
            writer.add(batch)
            if writer.is_full:
                break
        segment = writer.root(Kind.SEAL)
        writer.sync()
        writer.close()
    except BaseException:
        writer.discard()
        raise
    return segment


def cannot_write(folder: Path, error: BaseException) -> StoreError:
    """Return the error for a disk that takes no more."""
    message = f"cannot write to {folder}: {error}"
    hint = "nothing was stored; check the disk's free space and the folder's permissions"
    return StoreError(message, hint=hint)
