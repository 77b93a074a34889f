"""Hand new events to the live queries of a database."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock, get_ident

import pyarrow as pa

from eventide.api.live_query import LiveQuery
from eventide.api.result import Result
from eventide.api.running import EmittedRows, RunningStream
from eventide.api.stream import with_seq_from
from eventide.errors import SchemaError, listed

Given = tuple[dict[str, pa.RecordBatch], dict[str, int]]
"""Events by stream, and instants before which all events of a stream have come."""


@dataclass(frozen=True)
class DeliveredEvents:
    """Events of one append, numbered in the order of delivery."""

    number: int
    stream: str
    events: pa.RecordBatch
    first_seq: int

    def given(self, query: LiveQuery) -> Given:
        """Return what a query gets of it."""
        if self.stream not in query.streams or self.stream in query.sources:
            return {}, {}
        return {self.stream: self.numbered}, {}

    @cached_property
    def numbered(self) -> pa.RecordBatch:
        """The events with their numbers."""
        return with_seq_from(self.events, self.first_seq)


@dataclass(frozen=True, slots=True)
class Advance:
    """No event before a time will come, of the streams below a query; numbered as events are."""

    number: int
    until_us: int
    moved: Mapping[int, frozenset[str]]
    """The streams that are moved on, by the identity of the query that reads them."""
    query: LiveQuery
    reported: list[Result] = field(default_factory=list)
    """The results of the query."""

    def given(self, query: LiveQuery) -> Given:
        """Return what a query gets of it."""
        return {}, dict.fromkeys(self.moved.get(id(query), ()), self.until_us)


class Delivery:
    """Hands new events to the live queries over their stream, one append after the other.

    Derived streams that run stand before the queries that read them.
    """

    def __init__(self) -> None:
        self.queries: list[LiveQuery] = []
        self.arrivals: deque[DeliveredEvents | Advance] = deque()
        self.queueing = Lock()
        self.queued = 0
        """The number of the last arrival."""
        self.delivering = Lock()
        self.deliverer: int | None = None
        """The thread that delivers now; the thread that locks `delivering` sets it."""
        self.owed = 0
        """The number of the last arrival that this thread has to deliver."""

    def publish(self, stream: str, events: pa.RecordBatch, first_seq: int) -> None:
        """Hand new events to the live queries over a stream, in the order of appending.

        The events are numbered from `first_seq` on.

        A callback may append too. Its events wait until every query has seen the earlier ones;
        otherwise they would be early for some queries and make others late. When a query or its
        callback fails, the other queries still get the events.

        When this returns, the queries have seen the events, unless a callback appended them. After
        an interrupt, queries that have not seen the events yet see them before any later ones.
        """
        self.queue(lambda number: DeliveredEvents(number, stream, events, first_seq))

    def advance(self, query: LiveQuery, until_us: int, stream: str | None) -> Result | None:
        """Move the streams of a query on, and those below the derived streams that it reads.

        Return the results of the query; from a callback, None: they come later.
        """
        moved = moved_streams(query, stream)
        entry = self.queue(lambda number: Advance(number, until_us, moved, query))
        assert isinstance(entry, Advance)
        return entry.reported[0] if entry.reported else None

    def queue(self, make: Callable[[int], DeliveredEvents | Advance]) -> DeliveredEvents | Advance:
        """Queue an arrival and deliver it, unless a callback has to return first."""
        entry = self.enqueue(make)
        self.deliver_owed()
        return entry

    def put(self, stream: str, events: pa.RecordBatch, first_seq: int) -> None:
        """Queue new events, in their place among others; `deliver_owed` hands them over."""
        self.enqueue(lambda number: DeliveredEvents(number, stream, events, first_seq))

    def enqueue(
        self, make: Callable[[int], DeliveredEvents | Advance]
    ) -> DeliveredEvents | Advance:
        """Queue an arrival, with the next number."""
        with self.queueing:
            # The number comes first: an interrupt here loses a number, but never gives one out
            # twice.
            self.queued += 1
            entry = make(self.queued)
            self.arrivals.append(entry)
            return entry

    def deliver_owed(self) -> None:
        """Deliver what is queued, unless a callback has to return first."""
        if self.in_callback():
            # The callback that appends has to return first; the delivery that called it
            # continues here.
            self.owed = self.queued
            return
        with self.delivering:
            failures = self.deliver_queued()
        raise_first(failures)

    def catch_up(self) -> None:
        """Deliver what an interrupt left in the queue, unless another thread is delivering."""
        if self.arrivals and not self.delivering.locked():
            with self.delivering:
                failures = self.deliver_queued()
            raise_first(failures)

    def deliver_queued(self) -> list[Exception]:
        """Deliver what has been queued until now; return what went wrong.

        Other threads deliver what they append from here on themselves. So an append returns even if
        others append all the time, and the queue is never longer than the number of threads.
        """
        failures: list[Exception] = []
        self.deliverer = get_ident()
        self.owed = self.queued
        try:
            while self.arrivals and self.arrivals[0].number <= self.owed:
                # An interrupt may come at any point. An arrival leaves the queue only when all
                # queries have seen it, and a query that is offered it again knows its number.
                self.deliver(self.arrivals[0], failures)
                self.arrivals.popleft()
        except BaseException as interrupt:
            mention(interrupt, failures)
            raise
        finally:
            self.deliverer = None
        return failures

    def in_callback(self) -> bool:
        """Whether this thread is delivering, so that the call comes from a callback."""
        return self.delivering.locked() and self.deliverer == get_ident()

    def deliver(self, arrival: DeliveredEvents | Advance, failures: list[Exception]) -> None:
        """Push an arrival into every live query that it concerns; add what went wrong."""
        number = arrival.number
        emitted: dict[int, EmittedRows] = {}
        stepped = False
        for query in self.queries:
            arrived, reached = arrival.given(query)
            for name, source in query.sources.items():
                if source.failure is not None:
                    query.fail(source.failure)
                if id(source) in emitted:
                    arrived[name] = emitted[id(source)].rows
                    reached[name] = emitted[id(source)].reached_us
            if not (arrived or reached):
                continue
            stepped = True
            try:
                result = query.deliver(number, arrived, reached)
            except Exception as failure:
                failures.append(failure)
                continue
            if isinstance(query, RunningStream):
                emitted[id(query)] = query.emitted
            if isinstance(arrival, Advance) and arrival.query is query and result is not None:
                arrival.reported.append(result)
        if stepped:
            self.sweep()

    def sweep(self) -> None:
        """Forget queries that are finished, and derived streams that no query reads any more."""
        with self.queueing:
            needed: set[int] = set()
            kept: list[LiveQuery] = []
            for query in reversed(self.queries):
                unread = isinstance(query, RunningStream) and id(query) not in needed
                if not (query.finished or unread):
                    needed.update(id(source) for source in query.sources.values())
                    kept.append(query)
            self.queries = kept[::-1]

    def add(self, query: LiveQuery, seen: int | None = None) -> LiveQuery:
        """Add a query over events to come: all arrivals after the one numbered `seen`."""
        with self.queueing:
            query.delivered = self.queued if seen is None else seen
            query.catch_up = self.catch_up
            query.upstream = self if query.sources else None
            self.queries = [*self.queries, query]
        return query

    def join(self, begin: Callable[[], LiveQuery]) -> LiveQuery:
        """Add a query that begins with what is stored, while nothing is delivered.

        Events stored before it takes its snapshot are in the snapshot; later ones are delivered to
        it. An event that is stored but not yet in the queue may be both: the query recognises by
        its number what it has seen. Threads that append meanwhile wait, and deliver afterwards.
        """
        with self.paused():
            seen = self.queued
            return self.add(begin(), seen)

    def leave(self, query: LiveQuery) -> dict[str, EmittedRows]:
        """Deliver nothing more to a query; return how its derived streams would end, by name."""
        with self.paused():
            with self.queueing:
                self.queries = [each for each in self.queries if each is not query]
            ended = {name: source.ended() for name, source in query.sources.items()}
        self.sweep()
        return ended

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep events in the queue meanwhile. In a callback, delivery is paused anyway."""
        if self.in_callback():
            yield
            return
        with self.delivering:
            self.deliverer = None
            yield


def moved_streams(query: LiveQuery, stream: str | None) -> dict[int, frozenset[str]]:
    """Return which streams of a query, and of the derived streams below it, are moved on.

    Without a stream, all of them. Else those that have the name, and those below a derived stream
    that has it.
    """
    moved: dict[int, frozenset[str]] = {}
    known: dict[str, None] = {}

    def add(reader: LiveQuery, *, every: bool) -> None:
        known.update(dict.fromkeys(reader.streams))
        stored = {name for name in reader.streams if name not in reader.sources}
        chosen = stored if every else stored & {stream}
        moved[id(reader)] = moved.get(id(reader), frozenset()) | chosen
        for name, source in reader.sources.items():
            add(source, every=every or name == stream)

    add(query, every=stream is None)
    if stream is not None and stream not in known:
        message = f"the query does not read {stream!r}"
        raise SchemaError(message, hint=f"it reads {listed(list(known))}")
    return moved


def raise_first(failures: list[Exception]) -> None:
    """Raise the first of several failures, if there is one; it mentions the others."""
    if failures:
        failures[0].add_note("a live query failed; the appended events are stored")
        mention(failures[0], failures[1:])
        raise failures[0]


def mention(error: BaseException, others: Sequence[Exception]) -> None:
    """Add a note to an error about what else went wrong."""
    for other in others:
        error.add_note(f"another live query failed: {type(other).__name__}: {other}")
