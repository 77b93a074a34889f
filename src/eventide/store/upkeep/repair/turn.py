"""What one repair knows so far: the stream's open end, and which events are safe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.schema import SEQ, TS
from eventide.store.files.frame import read_frame
from eventide.store.order import int64_view
from eventide.store.upkeep.repair.report import RepairNotes
from eventide.store.upkeep.repair.salvage import leaf_rows
from eventide.store.upkeep.repair.start import RepairStart
from eventide.store.upkeep.seq_set import SeqSet
from eventide.store.upkeep.verify_segment import SegmentCheck
from eventide.store.writing.view import StreamView

FARTHEST = 10**8
"""Among how many numbers lost ones are looked for."""


@dataclass(slots=True)
class SafeEvents:
    """The events that are not lost."""

    memory: list[pa.RecordBatch]
    """Those that only the log has."""
    seen: SeqSet = field(default_factory=SeqSet)
    """The numbers of all of them."""
    kept: list[SegmentCheck] = field(default_factory=list)
    """The whole segments that have the others."""

    def remember(self, check: SegmentCheck) -> None:
        """Add the event numbers of a whole segment."""
        self.kept.append(check)
        for seqs in seqs_of(check):
            self.seen.add(seqs)

    def filter_memory(self) -> None:
        """Leave out of the log's events those that a segment has."""
        for place, batch in enumerate(self.memory):
            fresh = self.seen.add(int64_view(batch.column(SEQ)))
            self.memory[place] = batch.filter(pa.array(fresh))

    def fresh_rows(self, check: SegmentCheck) -> int:
        """Return how many events of a segment are nowhere else."""
        return sum(int((~self.seen.has(seqs)).sum()) for seqs in seqs_of(check))

    def agrees(self, check: SegmentCheck, known: int) -> bool:
        """Whether the known events of a segment have the same times elsewhere."""
        keys = [keys_of(rows) for rows in rows_of(check)]
        seq, ts = (np.concatenate(parts) for parts in zip(*keys, strict=True))
        order = np.argsort(seq)
        seq, ts = seq[order], ts[order]
        for batch in (*self.memory, *(rows for each in self.kept for rows in rows_of(each))):
            other_seq, other_ts = keys_of(batch)
            places = np.minimum(np.searchsorted(seq, other_seq), len(seq) - 1)
            is_same = seq[places] == other_seq
            known -= int(is_same.sum())
            if (ts[places[is_same]] != other_ts[is_same]).any():
                return False
        return known == 0

    def unseen(self, start: int, end: int) -> Int64s:
        """Return the numbers from one to another that no event has, up to a limit."""
        numbers = np.arange(start, max(start, min(end, start + FARTHEST)), dtype=np.int64)
        unseen: Int64s = numbers[~self.seen.has(numbers)]
        return unseen


@dataclass(slots=True)
class RepairTurn:
    """One turn of repair."""

    start: RepairStart
    notes: RepairNotes
    dry_run: bool
    view: StreamView
    """The stream with its open end, as it will be."""
    safe: SafeEvents
    is_changed: bool
    """Whether a new manifest is needed."""
    listed: SeqSet = field(default_factory=SeqSet)
    """The numbers of events in listed segments, of which each must be there once."""

    @property
    def folder(self) -> Path:
        """The folder of the stream."""
        return self.start.folder


def rows_of(check: SegmentCheck) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the leaves that could be read."""
    for address in check.leaves:
        frame = read_frame(check.content, address, check.stamp)
        yield leaf_rows(frame.payload, check.segment)


def seqs_of(check: SegmentCheck) -> Iterator[Int64s]:
    """Yield the numbers of the events in the leaves that could be read."""
    for rows in rows_of(check):
        yield int64_view(rows.column(SEQ))


def keys_of(rows: pa.RecordBatch) -> tuple[Int64s, Int64s]:
    """Return the numbers and the times of events."""
    return int64_view(rows.column(SEQ)), int64_view(rows.column(TS))
