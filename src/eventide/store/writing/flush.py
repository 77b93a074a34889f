"""Write a stream's open end to segments: leaves, splits, late events, checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.kernels.ordering import sorting_order
from eventide.schema import SEQ, TS
from eventide.store.files.disk import remove, sync_folder
from eventide.store.files.frame import Kind
from eventide.store.order import int64_view
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import Segment, SegmentForm
from eventide.store.segments.segment_writer import SegmentWriter, leaf_capacity, write_segments
from eventide.store.segments.tree import place
from eventide.store.writing.late import insert_late, worth_inserting
from eventide.store.writing.log import RecordKind
from eventide.store.writing.open_stream import OpenStream
from eventide.store.writing.view import Reduced, StreamView, copied, joined

LOG_BYTES = 16 << 20
"""How long a log grows before its events become leaves: this much is read again after a crash."""
QUEUED_ROWS = 32_768
QUEUED_BYTES = LOG_BYTES // 4
HELD_BYTES = LOG_BYTES // 4
"""How much of the tail waits at most: every checkpoint has it again."""
LARGE_LEAVES = 4
"""A batch of this many leaves is not copied to join it to others."""


def flush(
    stream: OpenStream,
    view: StreamView,
    *,
    everything: bool = False,
    seal: bool = False,
    reduced: Reduced | None = None,
) -> StreamView:
    """Write what is due to segments, commit, and return the view after it.

    Whole leaves are due; with `everything`, all events and the queue are. `seal` ends the open
    segment; the next one leaves out what `reduced` says.
    """
    turn = Flush(stream, view)
    try:
        turn.write_tail(everything=everything or seal)
        turn.write_queue(everything=everything or seal)
        if seal:
            turn.seal()
            turn.view = replace(turn.view, reduced=reduced)
        turn.write_root()
    except BaseException:
        turn.discard()
        raise
    return turn.finish()


class Flush:
    """One flush. Nothing of it counts before `finish`."""

    def __init__(self, stream: OpenStream, view: StreamView) -> None:
        self.stream = stream
        self.view = view
        self.sealed: list[Segment] = []
        self.begun: list[SegmentWriter] = []

    def write_tail(self, *, everything: bool) -> None:
        """Write the older part of the tail as leaves."""
        view = self.view
        parts = ordered_parts(view) if view.in_order else list(view.tail)
        rows = sum(int(part.num_rows) for part in parts)
        # The very newest event is not due, unless everything is: it may have a wrong clock,
        # which would make all that follow late.
        done = self.write_rows(cut(parts, 0, rows if everything else self.due(parts)))
        # A copy, because the caller may write into its own arrays afterwards.
        kept = copied(joined(tuple(cut(parts, done, rows)), view.manifest.schema.arrow))
        self.view = replace(self.view, tail=(kept,) if kept.num_rows else ())
        if self.view.in_order != view.in_order:
            # A segment was sealed that did not keep the order of time as the next one does: so
            # other events may be late now.
            rerouted = replace(self.view, tail=()).with_rows(kept)
            self.view = replace(rerouted, next_seq=view.next_seq)
            self.write_tail(everything=everything)

    def write_rows(self, parts: Sequence[pa.RecordBatch]) -> int:
        """Append rows to segments, and return how many: not all if the order of those changes."""
        in_order, split_us = self.view.in_order, self.view.manifest.options.split_us
        done = 0
        for part in whole_leaves(parts):
            for rows in split_regularly(part, split_us, in_order=in_order):
                if self.is_beyond_border(rows):
                    self.seal()
                if self.view.in_order != in_order:
                    return done
                self.writer().add(rows)
                done += rows.num_rows
                closed = max(self.view.closed_ts, int(int64_view(rows.column(TS)).max()))
                self.view = replace(self.view, closed_ts=closed)
                if self.writer().is_full:
                    self.seal()
        return done

    def is_beyond_border(self, rows: pa.RecordBatch) -> bool:
        """Whether a regular split is due before rows: they reach into a later period."""
        split_us = self.view.manifest.options.split_us
        if split_us is None or (self.stream.writer is None and self.view.segment is None):
            return False
        levels = [level for level in self.writer().levels if level.num_rows]
        newest = max((int(place(level, "ts_max").max()) for level in levels), default=None)
        reached = int(int64_view(rows.column(TS)).max())
        return newest is not None and reached // split_us > newest // split_us

    def due(self, parts: Sequence[pa.RecordBatch]) -> int:
        """Return how many rows of the tail to write now: whole leaves, and not the newest."""
        rows = sum(int(part.num_rows) for part in parts)
        if not rows:
            return 0
        capacity = leaf_capacity(parts[-1])
        split_us = self.view.manifest.options.split_us
        passed = 0
        if split_us is not None and self.view.in_order:
            # Up to a border that has passed, the last leaf need not be whole.
            border = int(int64_view(parts[-1].column(TS))[-1]) // split_us * split_us
            times = [int64_view(part.column(TS)) for part in parts]
            passed = sum(int(np.searchsorted(ts, border)) for ts in times)
        held = (rows - passed) % capacity or min(capacity, rows - passed)
        return rows - lighter(parts, held)

    def writer(self) -> SegmentWriter:
        """Return the writer of the open segment."""
        stream, view = self.stream, self.view
        if stream.writer is None and view.segment is not None:
            stream.writer = SegmentWriter.resume(stream.folder, view.segment)
        if stream.writer is None:
            form, indexes = form_of(view)
            stream.writer = SegmentWriter.create(stream.folder, form, indexes)
            self.begun.append(stream.writer)
        return stream.writer

    def seal(self) -> None:
        """End the open segment, if there is one; the next one is a regular one again."""
        if self.stream.writer is None and self.view.segment is None:
            return
        writer = self.writer()
        segment = writer.root(Kind.SEAL)
        writer.sync()
        writer.close()
        self.stream.writer = None
        self.sealed.append(segment)
        self.view = replace(self.view, segment=None, reduced=None)

    def write_queue(self, *, everything: bool) -> None:
        """Write the late events if they are many."""
        view = self.view
        rows = sum(batch.num_rows for batch in view.queue)
        size = sum(batch.nbytes for batch in view.queue)
        if not rows or not (everything or rows >= QUEUED_ROWS or size >= QUEUED_BYTES):
            return
        older, rest = self.parted(view.sorted_queue)
        if rest.num_rows:
            insert_late(self.writer(), rest, view.manifest.options.spare)
            if self.writer().is_full:
                self.seal()
        if older.num_rows:
            form = replace(view.manifest.form, in_order=True)
            indexes = view.manifest.options.indexes
            self.sealed += write_segments(self.stream.folder, form, [older], indexes)
        self.view = replace(self.view, queue=())

    def parted(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Part late rows into those for a segment of their own, and those to insert."""
        stream, view = self.stream, self.view
        if (stream.writer is None and view.segment is None) or not view.in_order:
            return rows, rows.slice(0, 0)
        writer = self.writer()
        starts = [
            int(level.column("ts_min")[0].as_py()) for level in writer.levels if level.num_rows
        ]
        if not starts:
            return rows, rows.slice(0, 0)
        cut = int(np.searchsorted(int64_view(rows.column(TS)), min(starts)))
        rest = rows.slice(cut)
        if rest.num_rows and not worth_inserting(writer.reached(), rest):
            return rows, rows.slice(0, 0)
        return rows.slice(0, cut), rest

    def write_root(self) -> None:
        """Make what was written reachable, and safe."""
        writer = self.stream.writer
        if writer is not None and writer.rows:
            self.view = replace(self.view, segment=writer.root())
            writer.sync()
        if self.begun:
            sync_folder(self.stream.folder)

    def finish(self) -> StreamView:
        """Make what was written count: a checkpoint in the log, or a manifest with a new log."""
        stream, view = self.stream, self.view
        if self.sealed or view.log_end >= LOG_BYTES or is_changed(stream, view.manifest):
            manifest = view.manifest
            listed = replace(manifest, segments=manifest.segments.with_more(self.sealed))
            try:
                return stream.commit(replace(view, manifest=listed))
            except BaseException:
                self.discard()
                raise
        facts, batches = view.checkpoint()
        return stream.record(view, view, RecordKind.CHECKPOINT, facts, batches, sync=True)

    def discard(self) -> None:
        """Delete the new files that nothing refers to, after a failure.

        A segment that was to be sealed may be older, and is still open then.
        """
        listed = self.stream.view().files
        names = {name for segment in self.sealed for name in segment.files}
        names |= {path.name for writer in self.begun for path in writer.paths}
        for name in names - listed:
            remove(self.stream.folder / name)


def ordered_parts(view: StreamView) -> list[pa.RecordBatch]:
    """Return the tail in order of (ts, _seq), in batches that were not copied where they fit."""
    batches = list(view.tail)
    keys = [(int64_view(batch.column(TS)), int64_view(batch.column(SEQ))) for batch in batches]
    in_order = all(sorting_order(ts, seq) is None for ts, seq in keys) and all(
        (before[0][-1], before[1][-1]) < (after[0][0], after[1][0])
        for before, after in pairwise(keys)
    )
    return batches if in_order else [view.sorted_tail]


def lighter(parts: Sequence[pa.RecordBatch], held: int) -> int:
    """Return how many of the last rows are held back: fewer if those are too large."""
    rows = sum(int(part.num_rows) for part in parts)
    while held and sum(int(part.nbytes) for part in cut(parts, rows - held, rows)) > HELD_BYTES:
        held //= 2
    return held


def cut(parts: Sequence[pa.RecordBatch], start: int, end: int) -> list[pa.RecordBatch]:
    """Return the rows from one place to another of batches that follow each other."""
    found: list[pa.RecordBatch] = []
    for part in parts:
        first = max(0, start)
        rows = part.slice(first, max(0, min(part.num_rows, end) - first))
        if rows.num_rows:
            found.append(rows)
        start, end = start - part.num_rows, end - part.num_rows
    return found


def whole_leaves(parts: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches so that only the last may end inside a leaf.

    Small batches are joined; of a large one only the part that fills up the leaf before it is
    copied.
    """
    waiting: list[pa.RecordBatch] = []
    held = 0
    for part in parts:
        capacity = leaf_capacity(part)
        missing = -held % capacity
        if part.num_rows < missing + LARGE_LEAVES * capacity:
            waiting.append(part)
            held += part.num_rows
            continue
        if held:
            yield pa.concat_batches([*waiting, part.slice(0, missing)])
        whole = missing + (part.num_rows - missing) // capacity * capacity
        yield part.slice(missing, whole - missing)
        waiting, held = [part.slice(whole)], part.num_rows - whole
    if held:
        yield pa.concat_batches(waiting)


def is_changed(stream: OpenStream, manifest: Manifest) -> bool:
    """Whether a manifest is another than the newest committed one."""
    return stream.held is None or stream.held.manifest is not manifest


def form_of(view: StreamView) -> tuple[SegmentForm, tuple[str, ...]]:
    """Return the form of the segment that begins next, and the attributes it indexes."""
    form, indexes = view.manifest.form, view.manifest.options.indexes
    if view.reduced is None:
        return form, indexes
    return replace(form, in_order=view.reduced.in_order), view.reduced.indexes


def split_regularly(
    rows: pa.RecordBatch, split_us: int | None, *, in_order: bool
) -> Iterator[pa.RecordBatch]:
    """Cut rows at the borders of regular splits.

    Rows in order of arrival cross a border with the first event behind it, no matter what follows.
    """
    if not rows.num_rows:
        return
    if split_us is None:
        yield rows
        return
    ts = int64_view(rows.column(TS))
    periods = (ts if in_order else np.maximum.accumulate(ts)) // split_us
    cuts: Sequence[int] = [0, *(np.flatnonzero(np.diff(periods)) + 1), len(periods)]
    for start, end in pairwise(cuts):
        yield rows.slice(start, end - start)
