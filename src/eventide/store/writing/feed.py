"""A queue before a stream: producers put tables in, one thread appends them, many at a time.

While one append is being written, new tables wait; the next append takes all of them. So thousands
of small tables become a few large appends, and one sync serves all of them. A full queue makes
producers wait: nothing is ever dropped. When the queue stays long, the stream leaves out some of
its indexes for a while (`adaptation.py`).
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import accumulate, groupby
from types import TracebackType
from typing import Self

import pyarrow as pa

from eventide.errors import BusyError, SchemaError, StoreError
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.manifest import KEPT_DECISIONS
from eventide.store.stream import StoredStream
from eventide.store.writing.adaptation import Configuration, Mode, QueueState, decide
from eventide.store.writing.append import BULK_BYTES, Appended, Outcome
from eventide.store.writing.open_stream import opened
from eventide.store.writing.view import StreamView, copied

JOINED_ROWS = 1 << 18
JOINED_BYTES = 4 * BULK_BYTES
"""The most that one append takes: enough to go straight to the segment, and quick."""
SUSTAINED = 3
"""After this many appends in a row with a long queue: one slow sync is not an overload."""
IDLE_S = 1.0
"""After this long without events the load is low, and missing indexes are built."""
REMEMBERED_REFUSALS = 16

OnStored = Callable[[pa.RecordBatch, int], None]
"""Called with the events of each table that was stored, and the number of the first."""

log = logging.getLogger("eventide.store")


class Ticket(Future[Appended]):
    """Stands for a table that was put in; `result()` returns once its events are stored.

    They are then as safe as the stream's durability says. If they were refused, or could not be
    stored, `result()` raises the error. A table that waits cannot be cancelled.
    """

    def __init__(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self.is_read = False

    def result(self, timeout: float | None = None) -> Appended:
        """Wait for the events to be stored; return their numbers."""
        try:
            return super().result(timeout)
        finally:
            self.is_read = self.done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait, and return the error, if there was one."""
        try:
            return super().exception(timeout)
        finally:
            self.is_read = self.done()


@dataclass(frozen=True, slots=True)
class Put:
    """A table in the queue, and the columns that it was made for."""

    events: pa.Table
    columns: StreamColumns
    ticket: Ticket


@dataclass(frozen=True, slots=True)
class FeedStats:
    """What a feed has done so far. Rows and puts that are being appended no longer wait."""

    queued_rows: int
    capacity_rows: int
    most_queued_rows: int
    puts: int
    joined_puts: int
    """How many puts shared an append with others."""
    refused_puts: int
    appends: int
    times_blocked: int
    """How many puts found the queue full."""
    mode: Mode
    decisions: tuple[str, ...]


class Feed:
    """A bounded queue and the thread that empties it into a stream.

    Use it in a `with` block, or `close` it: what waits is then stored first.
    """

    def __init__(
        self, stream: StoredStream, capacity_rows: int, on_stored: OnStored | None = None
    ) -> None:
        if capacity_rows <= 0:
            message = f"a feed cannot hold {capacity_rows} rows"
            raise StoreError(message, hint="its capacity is a number above zero")
        self.stream = stream
        self.capacity_rows = capacity_rows
        self.on_stored = on_stored
        self.process = os.getpid()
        mutex = threading.Lock()
        self.arrived = threading.Condition(mutex)
        self.moved = threading.Condition(mutex)
        self.turns: deque[object] = deque()
        self.waiting: deque[Put] = deque()
        self.taken: Sequence[Put] = ()
        self.tried: Sequence[Put] = ()
        self.refused: deque[Ticket] = deque(maxlen=REMEMBERED_REFUSALS)
        self.queued_rows = self.most_queued_rows = 0
        self.puts = self.done_puts = self.joined_puts = self.refused_puts = 0
        self.appends = self.times_blocked = 0
        self.lengths: deque[int] = deque(maxlen=SUSTAINED)
        self.decisions: deque[str] = deque(maxlen=KEPT_DECISIONS)
        self.owes_indexes = False
        self.is_closed = False
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self.run, name=f"feed {stream.name}", daemon=True)
        self.thread.start()
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def put(
        self, events: pa.Table, timeout: float | None = None, columns: StreamColumns | None = None
    ) -> Ticket:
        """Put a table into the queue; its events are numbered in the order of puts.

        While the queue is full this waits, at most `timeout` seconds: then it raises, and nothing
        was put in. A table larger than the queue is taken when it is empty. The table has the
        stream's columns as they are now, or were before; columns added or dropped later are added
        to and dropped from the table too.
        """
        self.check_process()
        if not isinstance(events, pa.Table):
            message = f"a feed takes Arrow tables, not {type(events).__name__}"
            raise SchemaError(message, hint="pa.Table.from_batches([...]), or from_pylist([...])")
        put = Put(events, columns or self.stream.columns, Ticket())
        with self.arrived:
            self.wait_for_room(events.num_rows, timeout)
            self.waiting.append(put)
            self.puts += 1
            self.queued_rows += events.num_rows
            self.most_queued_rows = max(self.most_queued_rows, self.queued_rows)
            self.arrived.notify()
        return put.ticket

    def wait_for_room(self, rows: int, timeout: float | None) -> None:
        """Return when the queue has room for this table, and no other waits longer."""
        self.check_open()
        turn = object()
        self.turns.append(turn)

        def is_next() -> bool:
            return self.is_closed or (self.turns[0] is turn and self.has_room(rows))

        try:
            if not is_next():
                self.times_blocked += 1
                if threading.current_thread() is self.thread:
                    timeout = 0.0  # a ticket's callback: only this thread could make room
                if not self.moved.wait_for(is_next, timeout):
                    raise self.full(timeout or 0.0)
            self.check_open()
        finally:
            self.turns.remove(turn)
            if self.turns:
                self.moved.notify_all()

    def has_room(self, rows: int) -> bool:
        """Whether a table fits in; any does into an empty queue."""
        return not self.waiting or self.queued_rows + rows <= self.capacity_rows

    def full(self, timeout: float) -> StoreError:
        """Return the error for a producer that has waited long enough."""
        message = (
            f"the feed of stream {self.stream.name!r} had no room for {timeout:g} s: "
            f"{self.queued_rows:,} of {self.capacity_rows:,} rows wait"
        )
        hint = "nothing was put in; wait longer, send less, or give the feed more capacity"
        return StoreError(message, hint=hint)

    def flush(self) -> None:
        """Return when everything put in so far is stored or refused; raise if the feed stopped."""
        self.check_process()
        if threading.current_thread() is self.thread:
            message = "a ticket's callback cannot wait for the feed that calls it"
            raise StoreError(message, hint="flush from the thread that puts events in")
        with self.moved:
            target = self.puts
            self.moved.wait_for(lambda: self.done_puts >= target or self.failure is not None)
            if self.failure is not None:
                raise self.stopped()

    def close(self) -> None:
        """Store what waits, and end the thread.

        Raises if the feed stopped, or a table was refused and nobody has read its ticket: else
        events could be missing without anybody knowing.
        """
        if os.getpid() != self.process:
            return  # a forked child has neither the thread nor anything of its own to store
        with self.arrived:
            self.is_closed = True
            self.arrived.notify()
            self.moved.notify_all()
        self.thread.join()
        atexit.unregister(self.close)
        if self.failure is not None:
            raise self.stopped()
        for ticket in self.refused:
            if not ticket.is_read:
                ticket.result()  # raises, and so is read: the next close does not raise again

    def stats(self) -> FeedStats:
        """Describe the queue, what went through it, and what the stream leaves out."""
        self.check_process()
        mode = configuration(self.stream.current()).mode
        with self.arrived:
            return FeedStats(
                queued_rows=self.queued_rows,
                capacity_rows=self.capacity_rows,
                most_queued_rows=self.most_queued_rows,
                puts=self.puts,
                joined_puts=self.joined_puts,
                refused_puts=self.refused_puts,
                appends=self.appends,
                times_blocked=self.times_blocked,
                mode=mode,
                decisions=tuple(self.decisions),
            )

    def check_process(self) -> None:
        """Refuse to work in a forked child, which has a copy of the queue and no thread."""
        if os.getpid() != self.process:
            message = f"this feed of stream {self.stream.name!r} belongs to another process"
            raise StoreError(message, hint="open a feed in the process that puts events in")

    def check_open(self) -> None:
        """Refuse events that would not be stored."""
        if self.failure is not None:
            raise self.stopped()
        if self.is_closed:
            message = f"the feed of stream {self.stream.name!r} is closed"
            raise StoreError(message, hint="nothing was put in; open another feed")

    def stopped(self) -> StoreError:
        """Return the error for everything that comes after what stopped the feed."""
        # The hint of the failure is for those whose events failed.
        why = self.failure.message if isinstance(self.failure, StoreError) else self.failure
        message = f"the feed of stream {self.stream.name!r} has stopped: {why}"
        error = StoreError(message, hint="this was not stored; open another feed when it can be")
        error.__cause__ = self.failure
        return error

    def run(self) -> None:
        """Append tables until the feed is closed and empty; the thread runs this."""
        try:
            while puts := self.next_puts():
                self.taken = puts
                for _, alike in groupby(puts, key=lambda put: put.columns):
                    self.store(list(alike))
                self.taken = ()
                self.adapt()
        except BaseException as error:
            # Producers have to hear of any error.
            self.stop(error)

    def next_puts(self) -> list[Put]:
        """Take what waits, as much as one append should have; nothing when the feed is closed."""
        while True:
            with self.arrived:
                is_due = self.arrived.wait_for(
                    lambda: self.waiting or self.is_closed, IDLE_S if self.owes_indexes else None
                )
                if is_due:
                    return self.take()
            self.build_missed_index()

    def take(self) -> list[Put]:
        """Take puts off the queue: one at least, if there is one."""
        puts: list[Put] = []
        rows = size = 0
        while self.waiting:
            events = self.waiting[0].events
            rows, size = rows + events.num_rows, size + events.nbytes
            if puts and (rows > JOINED_ROWS or size > JOINED_BYTES):
                break
            puts.append(self.waiting.popleft())
            self.queued_rows -= events.num_rows
        self.moved.notify_all()
        return puts

    def store(self, puts: Sequence[Put]) -> None:
        """Append puts as one; one by one if that shows that some of them do not fit."""
        self.tried = puts
        try:
            outcome = self.appended(pa.concat_tables([put.events for put in puts]), puts[0].columns)
        except OSError:
            raise
        except Exception as error:
            # If some had been stored there would be an outcome: none of these was.
            if len(puts) == 1:
                self.refuse(puts[0], error)
                return
            for put in puts:
                self.store([put])
        else:
            self.acknowledge(puts, outcome)
            if outcome.error is not None:
                raise outcome.error

    def appended(self, events: pa.Table, columns: StreamColumns) -> Outcome:
        """Append events, waiting for another writer as long as the feed is open."""
        while True:
            try:
                return self.stream.store(events, columns)
            except BusyError as error:
                if self.is_closed:
                    raise
                log.warning("the feed of stream %s waits: %s", self.stream.name, error.message)

    def acknowledge(self, puts: Sequence[Put], outcome: Outcome) -> None:
        """Tell producers which numbers their events have, or that those may not be safe."""
        counts = [put.events.num_rows for put in puts]
        starts = list(accumulate(counts, initial=0))[:-1]
        first = outcome.appended.first_seq
        for put, start in zip(puts, starts, strict=True):
            if outcome.error is None:
                put.ticket.set_result(Appended(put.events.num_rows, first + start))
            else:
                put.ticket.set_exception(outcome.error)
        # Live queries may be busy with somebody who waits for one of these tickets.
        if self.on_stored is not None:
            for count, start in zip(counts, starts, strict=True):
                # A copy: who keeps the events of one put need not keep those of all.
                events = outcome.events.slice(start, count)
                self.tell(copied(events) if len(puts) > 1 else events, first + start)
        with self.moved:
            self.appends += 1
            self.joined_puts += len(puts) if len(puts) > 1 else 0
            self.done_puts += len(puts)
            self.moved.notify_all()

    def tell(self, events: pa.RecordBatch, first_seq: int) -> None:
        """Hand stored events on. Errors there do not concern the producer."""
        if self.on_stored is None:
            return
        try:
            self.on_stored(events, first_seq)
        except Exception:
            log.exception("events of stream %s are stored, but a reader failed", self.stream.name)

    def refuse(self, put: Put, error: Exception) -> None:
        """Tell one producer that its table does not fit."""
        log.warning("stream %s has refused a table: %s", self.stream.name, error)
        put.ticket.set_exception(error)
        with self.moved:
            self.refused.append(put.ticket)
            self.refused_puts += 1
            self.done_puts += 1
            self.moved.notify_all()

    def stop(self, error: BaseException) -> None:
        """Tell everybody that nothing more is stored, and why."""
        log.error("the feed of stream %s has stopped: %s", self.stream.name, error)
        with self.moved:
            self.failure = error
            self.is_closed = True
            left = list(self.waiting)
            self.waiting.clear()
            self.queued_rows = 0
            self.moved.notify_all()
        # The error is about the last append: all others were not tried, and so are not stored.
        tried = set(map(id, self.tried))
        for put in (*self.taken, *left):
            if not put.ticket.done():
                put.ticket.set_exception(error if id(put) in tried else self.stopped())

    def adapt(self) -> None:
        """Let the stream leave something out if the queue has been long for a while."""
        with self.arrived:
            self.lengths.append(self.queued_rows)
        rows = min(self.lengths) if len(self.lengths) == SUSTAINED else 0
        view, meter = self.stream.current(), opened(self.stream.path).meter
        queued = QueueState(rows, self.capacity_rows, meter.newest - view.closed_ts)
        if not queued.is_long:
            return
        reduction = decide(
            meter.load(),
            queued,
            configuration(view),
            view.manifest.options,
            newest_correlation(view),
        )
        if reduction is None:
            return
        try:
            self.stream.split(reduction.reduced, note=reduction.why)
        except OSError as error:
            # The events are stored. If the disk is the cause, the next append will say so.
            log.warning("stream %s could not be split: %s", self.stream.name, error)
            return
        with self.arrived:
            self.decisions.append(reduction.why)
            self.owes_indexes = True
        # The next appends will show whether that was enough.
        self.lengths.clear()

    def build_missed_index(self) -> None:
        """Build one index that a segment lacks; the queue comes first after each."""
        view = self.stream.current()
        if configuration(view).mode != Mode.FULL:
            return
        try:
            self.owes_indexes = self.stream.rebuild_indexes(most=1) > 0
        except OSError as error:
            log.warning("stream %s could not be indexed: %s", self.stream.name, error)
            self.owes_indexes = False


def configuration(view: StreamView) -> Configuration:
    """Return what a stream does now."""
    return Configuration.of(view.manifest.options, view.reduced)


def newest_correlation(view: StreamView) -> dict[str, float]:
    """Return the temporal correlation of attributes as measured last; nothing before that."""
    measured = (segment.correlation for segment in reversed(view.segments))
    return dict(next(filter(None, measured), ()))
