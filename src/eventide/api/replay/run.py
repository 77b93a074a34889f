"""A replay: stored events of some streams under one clock, a step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Protocol

import pyarrow as pa

from eventide.api.live.query import OnResult
from eventide.api.replay.pace import Pace, PaceClock, Speed, WallClock, speed_of
from eventide.api.result import Result
from eventide.api.stream import borders, call_of
from eventide.ingest.merging import EventCursor, MergeStep, TimeMerge
from eventide.instants import ALL_TIME, END_OF_TIME_US, TimeRange, moment
from eventide.store import Snapshot
from eventide.store.reading.aggregate import aggregate

TICK_S = 0.04
"""How often a paced replay hands events over: often enough to look smooth."""


class Replayed(Result):
    """Rows of a replay, the query they answer, and the replay's clock when they came."""

    __slots__ = ("clock_us", "query")

    def __init__(self, table: pa.Table, query: str, clock_us: int) -> None:
        super().__init__(table)
        self.query = query
        self.clock_us = clock_us

    @property
    def clock(self) -> str:
        """The replay's clock when the rows were complete: every event before it had been seen."""
        return moment(self.clock_us)


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """The progress of a replay: it has replayed `events` of `total`, all those before the clock."""

    events: int
    total: int
    rows: int = 0
    clock_us: int | None = None

    @property
    def clock(self) -> str:
        """The event time that the replay has reached."""
        return "not begun" if self.clock_us is None else moment(self.clock_us)

    def __str__(self) -> str:
        return f"{self.clock}: {self.events:,} of {self.total:,} events, {self.rows:,} rows"


class Receiver(Protocol):
    """Takes the events of a replay, a step at a time."""

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """The columns of the rows that come under each name."""
        ...

    def take(
        self, rows: Mapping[str, pa.RecordBatch], clock_us: int
    ) -> Iterator[tuple[str, pa.Table]]:
        """Take the events of each stream before the clock; yield the resulting rows under names."""
        ...

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows that are left when no event will follow."""
        ...


class Replay:
    """Stored events of a period, replayed. `Database.replay` makes it.

    Iterating over it runs it: rows come as soon as they are complete, and nothing is read ahead
    of the iteration. `run` goes through all of it. `stop`, from a callback or another thread,
    ends it after the current step; results that are not complete then are not reported.
    """

    def __init__(
        self,
        sources: Sequence[tuple[Snapshot, Sequence[str], TimeRange]],
        receiver: Receiver,
        *,
        speed: Speed | None = None,
        on_result: OnResult | None = None,
    ) -> None:
        self.speed = speed_of(speed)
        self.names = [snapshot.name for snapshot, _, _ in sources]
        self.merge = TimeMerge([cursor_of(*source) for source in sources])
        self.receiver = receiver
        self.on_result = on_result
        self.on_step: Callable[[ReplayProgress], None] | None = None
        """Called after every step, with or without results."""
        self.clock: PaceClock = WallClock()
        total = sum(events_in(snapshot, period) for snapshot, _, period in sources)
        self.progress = ReplayProgress(0, total)
        self.stopping = Event()
        self.results = self.replayed()

    def __iter__(self) -> Iterator[Replayed]:
        return self.results

    def __next__(self) -> Replayed:
        return next(self.results)

    def __repr__(self) -> str:
        return f"<Replay of {', '.join(self.names)}, {self.progress}>"

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """The columns of the rows, by the name of their query."""
        return self.receiver.schemas

    def run(self) -> ReplayProgress:
        """Replay all that is left, handing rows to `on_result`; return the progress."""
        for _ in self.results:
            pass
        return self.progress

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self.stopping.is_set()

    def stop(self) -> None:
        """End after the current step."""
        self.stopping.set()

    def replayed(self) -> Iterator[Replayed]:
        """Yield the rows step by step, at last those that the end completes."""
        steps = self.at_full_speed() if self.speed is None else self.paced(self.speed)
        for step in steps:
            # The clock stays just behind the last event: it does not jump to the end of time.
            ended = step.border_us == END_OF_TIME_US
            clock_us = step.newest_us + 1 if ended else step.border_us
            arrived = sum(int(each.num_rows) for each in step.rows)
            events = self.progress.events + arrived
            self.progress = replace(self.progress, events=events, clock_us=clock_us)
            rows = dict(zip(self.names, step.rows, strict=True))
            yield from self.handed_over(self.receiver.take(rows, clock_us), clock_us)
            if self.on_step is not None:
                self.on_step(self.progress)
        if not self.stopped and self.progress.clock_us is not None:
            yield from self.handed_over(self.receiver.finish(), self.progress.clock_us)

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.stopped or self.merge.ended

    def handed_over(
        self, found: Iterator[tuple[str, pa.Table]], clock_us: int
    ) -> Iterator[Replayed]:
        """Stamp, count and report results that have rows."""
        for name, table in found:
            if not table.num_rows:
                continue
            rows = self.progress.rows + int(table.num_rows)
            self.progress = replace(self.progress, rows=rows)
            result = Replayed(table, name, clock_us)
            if self.on_result is not None:
                self.on_result(result)
            yield result

    def at_full_speed(self) -> Iterator[MergeStep]:
        """Yield steps of as many events as were read at once."""
        while not self.over:
            yield self.merge.step()

    def paced(self, speed: float) -> Iterator[MergeStep]:
        """Yield the events that became due since the last tick of the clock."""
        if self.merge.ended:
            return
        now_s = self.clock.now()
        pace = Pace(speed, self.merge.first_us, now_s)
        while True:
            due_s = now_s + TICK_S
            yield from self.until(pace.reached_us(now_s) + 1)
            if self.over:
                return
            now_s = self.clock.now()
            if now_s < due_s:
                self.clock.sleep(due_s - now_s)
                now_s = self.clock.now()

    def until(self, until_us: int) -> Iterator[MergeStep]:
        """Yield the steps up to a time."""
        while not self.stopped:
            step = self.merge.step(until_us)
            yield step
            if step.border_us == until_us:
                return


def cursor_of(snapshot: Snapshot, columns: Sequence[str], period: TimeRange) -> EventCursor:
    """Return the events of a period, in order."""
    schema = pa.schema([(name, snapshot.schema.type_of(name).arrow) for name in columns])
    # The store refuses to read thinned events, even if the period is empty.
    batches = iter(()) if period.is_empty else snapshot.scan(columns, period)
    return EventCursor(batches, schema)


def events_in(snapshot: Snapshot, period: TimeRange) -> int:
    """Return how many events a period has, from the index."""
    if period == ALL_TIME:
        return snapshot.row_count
    counted = aggregate(snapshot, [call_of("count(*)")], borders(period))
    found: int = counted.column(0)[0].as_py()
    return found
