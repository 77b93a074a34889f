"""Hand new events to the live queries of a database."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, get_ident

import pyarrow as pa

from eventide.api.live_query import LiveQuery
from eventide.api.stream import with_seq_from


@dataclass(frozen=True, slots=True)
class DeliveredEvents:
    """Events of one append, numbered in the order of delivery."""

    number: int
    stream: str
    events: pa.RecordBatch
    first_seq: int


class Delivery:
    """Hands new events to the live queries over their stream, one append after the other."""

    def __init__(self) -> None:
        self.queries: list[LiveQuery] = []
        self.arrivals: deque[DeliveredEvents] = deque()
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
        with self.queueing:
            # The number comes first: an interrupt here loses a number, but never gives one out
            # twice.
            self.queued += 1
            self.arrivals.append(DeliveredEvents(self.queued, stream, events, first_seq))
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

    def deliver(self, arrival: DeliveredEvents, failures: list[Exception]) -> None:
        """Push events into every live query over their stream; add what went wrong."""
        readers = [each for each in self.queries if arrival.stream in each.streams]
        if not readers:
            return
        arrived = {arrival.stream: with_seq_from(arrival.events, arrival.first_seq)}
        for query in readers:
            try:
                query.deliver(arrival.number, arrived)
            except Exception as failure:
                failures.append(failure)
        with self.queueing:
            self.queries = [each for each in self.queries if not each.finished]

    def add(self, query: LiveQuery, seen: int | None = None) -> LiveQuery:
        """Add a query over events to come: all arrivals after the one numbered `seen`."""
        with self.queueing:
            query.delivered = self.queued if seen is None else seen
            query.catch_up = self.catch_up
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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep events in the queue meanwhile. In a callback, delivery is paused anyway."""
        if self.in_callback():
            yield
            return
        with self.delivering:
            self.deliverer = None
            yield


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
