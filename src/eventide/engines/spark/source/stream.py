"""The store as a streaming source: the events of a time range, replayed in order of time.

    offset   {"ts": …, "_seq": …}   events before ts have been read, of those numbered below _seq

A query replays what was stored when it began. `_seq` numbers events as they are stored, so the
number of the next one is a snapshot that a checkpoint can hold: after a restart, events appended
since are not visible, with any time, and a micro-batch that is tried again has the same rows. A
border lies between two instants, so events of the same time are never separated. Behind the last
event the offset is the end of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from eventide.api.replay.pace import Pace, PaceClock, WallClock
from eventide.engines.spark.types import to_the_border
from eventide.ingest.merging import EventCursor
from eventide.ingest.ordering import times
from eventide.instants import END_OF_TIME_US, TimeRange
from eventide.schema import SEQ, TS
from eventide.store import Snapshot, StoredStream
from eventide.store.index.ranges import ValueRange

CLOCK = "eventide_clock"
"""The column, if it is asked for, with the time up to which everything has been replayed."""
ROWS_PER_BATCH = 1_000_000
PARTITION_ROWS = 250_000
SNAPSHOT_S = 600.0
"""After this long another snapshot is taken: the files of an old one may be gone after an hour."""

Offset = dict[str, int]


@dataclass(frozen=True, slots=True)
class ReplayWanted:
    """What is replayed of a stream, and how fast."""

    columns: tuple[str, ...]
    time_range: TimeRange
    where: Mapping[str, ValueRange] = field(default_factory=dict)
    rows_per_batch: int = ROWS_PER_BATCH
    speed: float | None = None
    zoneless: frozenset[str] = frozenset()
    """The times that Spark knows without a zone."""


@dataclass
class ReplayPartition(ds.InputPartition):
    """A slice of a micro-batch, with the part of the snapshot that it touches."""

    source: Snapshot
    time_range: TimeRange
    before_seq: int
    clock_us: int


class ReplayReader(ds.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Replays a stream in micro-batches: of a number of rows, or of what the clock makes due.

    Spark runs one for each query, in a process of its own beside the driver. A task makes another,
    which only reads the partition that it is given.
    """

    def __init__(self, stored: StoredStream, wanted: ReplayWanted) -> None:
        self.stored = stored
        self.wanted = wanted
        self.clock: PaceClock = WallClock()
        self.pace: Pace | None = None
        self.waits = False
        self.snapshot: Snapshot | None = None
        self.taken_s = 0.0
        self.ahead: EventCursor | None = None
        self.position: tuple[int, int] = (0, 0)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where a new query begins, and the number below which all of its events are."""
        before_seq = self.present().view.next_seq
        return {"ts": self.times_from(self.wanted.time_range.start_us, before_seq), SEQ: before_seq}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return how much a micro-batch has at most: what is due, if the clock decides."""
        if self.wanted.speed is not None:
            return ReadAllAvailable()
        return ReadMaxRows(self.wanted.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Wait for what is not yet due: an empty answer would end the query."""
        self.waits = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return where the next micro-batch ends; where it starts, if nothing is due or left."""
        first_us = self.times_from(start[TS], start[SEQ])
        if first_us == END_OF_TIME_US:
            return start
        border_us: int | None = END_OF_TIME_US
        if self.wanted.speed is not None:
            border_us = self.due_border(self.wanted.speed, first_us)
        elif isinstance(limit, ReadMaxRows):
            border_us = self.border_after(max(1, limit.max_rows))
        return start if border_us is None else {TS: border_us, SEQ: start[SEQ]}

    def reportLatestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the end, for the query's progress."""
        return {TS: END_OF_TIME_US, SEQ: self.position[1]}

    def partitions(self, start: Offset, end: Offset) -> Sequence[ds.InputPartition]:
        """Cut a micro-batch into slices of time that have about as many rows each."""
        period = TimeRange(start[TS], end[TS]).intersect(self.wanted.time_range)
        if period.is_empty:
            return []
        source = self.present()
        slices = source.slices(period, PARTITION_ROWS, self.wanted.where)
        return [
            ReplayPartition(source.within(part.time_range), part.time_range, end[SEQ], end[TS])
            for part in slices
        ]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one slice."""
        assert isinstance(partition, ReplayPartition)
        stored = [name for name in self.wanted.columns if name != CLOCK]
        numbered = stored if SEQ in stored else [*stored, SEQ]
        for batch in partition.source.scan(numbered, partition.time_range, self.wanted.where):
            rows = numbered_below(batch, partition.before_seq)
            if CLOCK in self.wanted.columns:
                clock = np.full(rows.num_rows, partition.clock_us, np.int64)
                rows = rows.append_column(CLOCK, pa.array(clock))
            if rows.num_rows:
                chosen = rows.select(list(self.wanted.columns))
                yield to_the_border(chosen, self.wanted.zoneless)

    def present(self) -> Snapshot:
        """Return a snapshot that is not too old; `_seq` leaves out what came after the first."""
        now_s = self.clock.now()
        if self.snapshot is None or now_s - self.taken_s > SNAPSHOT_S:
            self.snapshot, self.taken_s, self.ahead = self.stored.snapshot(), now_s, None
        return self.snapshot

    def times_from(self, ts_us: int, before_seq: int) -> int:
        """Look ahead from a time on; return the time of the first event there, or the end."""
        source = self.present()
        at_us, below_seq = self.position
        if self.ahead is None or ts_us < at_us or before_seq != below_seq:
            rest = TimeRange(ts_us, END_OF_TIME_US).intersect(self.wanted.time_range)
            batches = source.scan([TS, SEQ], rest, self.wanted.where) if not rest.is_empty else ()
            found = (numbered_below(batch, before_seq) for batch in batches)
            self.ahead = EventCursor(
                found, pa.schema([(TS, pa.timestamp("us")), (SEQ, pa.int64())])
            )
        self.ahead.take(ts_us)
        self.position = (ts_us, before_seq)
        return self.first_from(ts_us)

    def first_from(self, ts_us: int) -> int:
        """Return the time of the first event at or after a time, or the end of time."""
        assert self.ahead is not None
        place = 0
        while True:
            while place < len(self.ahead.held):
                ts = times(self.ahead.held[place])
                if ts[-1] >= ts_us:
                    return int(ts[np.searchsorted(ts, ts_us)])
                place += 1
            if self.ahead.exhausted:
                return END_OF_TIME_US
            self.ahead.load()

    def border_after(self, rows: int) -> int:
        """Return the time of the first event beyond the limit; an instant is never split."""
        assert self.ahead is not None
        before = place = 0
        while True:
            while place < len(self.ahead.held):
                ts = times(self.ahead.held[place])
                if before + len(ts) > rows:
                    border_us = int(ts[rows - before])
                    first_us = self.ahead.first_us
                    return border_us if border_us > first_us else self.first_from(first_us + 1)
                before, place = before + len(ts), place + 1
            if self.ahead.exhausted:
                return END_OF_TIME_US
            self.ahead.load()

    def due_border(self, speed: float, first_us: int) -> int | None:
        """Return the time of the first event that is not due yet; None if the next one is not."""
        now_s = self.clock.now()
        if self.pace is None:
            self.pace = Pace(speed, first_us, now_s)
        if self.waits:
            self.clock.sleep(self.pace.seconds_until(first_us, now_s))
            now_s = max(self.clock.now(), now_s)
            return self.first_from(max(self.pace.reached_us(now_s), first_us) + 1)
        reached_us = self.pace.reached_us(now_s)
        return None if reached_us < first_us else self.first_from(reached_us + 1)

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark sends the reader to every task: what a task reads is in its partition.
        return ReplayReader, (self.stored, self.wanted)


def numbered_below(rows: pa.RecordBatch, before_seq: int) -> pa.RecordBatch:
    """Return the events that were stored before the one with a number."""
    seq = rows.column(SEQ)
    if not rows.num_rows or pc.max(seq).as_py() < before_seq:
        return rows
    return rows.filter(pc.less(seq, before_seq))
