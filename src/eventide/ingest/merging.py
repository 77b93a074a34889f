"""Merge streams that are each in order of time into steps of one clock.

    cars     1  3  4 | 7  9 …         each cursor holds what it has read so far
    trucks   2     4 | 8 …
                     └ border: no stream can still bring an event before it

A step has the events of all streams before its border and after the last one. Whole batches are cut
with a binary search; no event is handled by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.ingest.ordering import times
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US


@dataclass(frozen=True, slots=True)
class MergeStep:
    """The events of each stream before the border that were in no step before."""

    border_us: int
    rows: tuple[pa.RecordBatch, ...]

    @property
    def newest_us(self) -> int:
        """The time of the newest event, or the start of time if there is none."""
        return max([START_OF_TIME_US, *(int(times(r)[-1]) for r in self.rows if r.num_rows)])


class EventCursor:
    """The future events of one stream; it reads no further than it is asked to."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self.batches = batches
        self.schema = schema
        self.held: list[pa.RecordBatch] = []
        self.exhausted = False

    @property
    def first_us(self) -> int:
        """The time of the next event read, or the end of time."""
        return int(times(self.held[0])[0]) if self.held else END_OF_TIME_US

    @property
    def complete_us(self) -> int:
        """Every event before this time has been read: the batch read last begins there."""
        if self.exhausted:
            return END_OF_TIME_US
        return int(times(self.held[-1])[0]) if len(self.held) > 1 else START_OF_TIME_US

    def load(self) -> None:
        """Read one more batch."""
        batch = next(self.batches, None)
        if batch is None:
            self.exhausted = True
        elif batch.num_rows:
            self.held.append(batch)

    def load_some(self) -> None:
        """Read until there is an event, unless there is none left."""
        while not self.held and not self.exhausted:
            self.load()

    def take(self, border_us: int) -> pa.RecordBatch:
        """Return and remove the events read before a time."""
        taken: list[pa.RecordBatch] = []
        while self.held and self.first_us < border_us:
            batch = self.held.pop(0)
            end = int(np.searchsorted(times(batch), border_us))
            taken.append(batch.slice(0, end))
            if end < batch.num_rows:
                self.held.insert(0, batch.slice(end))
        if len(taken) == 1:
            return taken[0]
        if not taken:
            return no_rows(self.schema)
        return pa.concat_batches(taken)


class TimeMerge:
    """Several streams under one clock."""

    def __init__(self, cursors: Sequence[EventCursor]) -> None:
        self.cursors = cursors

    @property
    def first_us(self) -> int:
        """The time of the next event of all, or the end of time."""
        for cursor in self.cursors:
            cursor.load_some()
        return min([END_OF_TIME_US, *(cursor.first_us for cursor in self.cursors)])

    @property
    def ended(self) -> bool:
        """Whether no event is left."""
        return self.first_us == END_OF_TIME_US

    def step(self, until_us: int = END_OF_TIME_US) -> MergeStep:
        """Return what comes next: some events, or all before `until_us` if the border is there."""
        while True:
            border_us = min([until_us, *(cursor.complete_us for cursor in self.cursors)])
            if border_us == until_us or any(each.first_us < border_us for each in self.cursors):
                return MergeStep(border_us, tuple(each.take(border_us) for each in self.cursors))
            # Nothing lies before the border: the stream that sets it has to read on first.
            for cursor in self.cursors:
                if cursor.complete_us == border_us:
                    cursor.load()
