"""New events on their way to the live queries of a database."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, get_ident

import pyarrow as pa

from eventide.api.live_query import Subscription
from eventide.api.stream import numbered


@dataclass(frozen=True, slots=True)
class Arrival:
    """Events of one append, numbered in the order of delivery."""

    number: int
    stream: str
    events: pa.RecordBatch
    first_seq: int


class Delivery:
    """Hands new events to the queries over their stream, one after the other."""

    def __init__(self) -> None:
        self.subscriptions: list[Subscription] = []
        self.arrivals: deque[Arrival] = deque()
        self.queueing = Lock()
        self.queued = 0
        """The number of the last arrival."""
        self.delivering = Lock()
        self.deliverer: int | None = None
        """The thread that delivers now; whoever locks `delivering` sets it."""
        self.owed = 0
        """The number of the last arrival that thread has to deliver."""

    def publish(self, stream: str, events: pa.RecordBatch, first_seq: int) -> None:
        """Hand new events to the live queries over a stream, in the order of appending.

        They are numbered from `first_seq` on.

        A callback may append in its turn. What it appends waits until every query has seen what
        came before, or it would be early for some and make others late. A query that fails, or
        whose callback does, keeps nothing from the others.

        When this returns the queries have seen the events, unless a callback appended them. If it
        is interrupted, those that have not seen them yet see them before anything that follows.
        """
        with self.queueing:
            # First the number: after an interrupt here one is missing, and none is given twice.
            self.queued += 1
            self.arrivals.append(Arrival(self.queued, stream, events, first_seq))
        if self.in_callback():
            # The callback that appends has to return first; whoever called it goes on up to here.
            self.owed = self.queued
            return
        with self.delivering:
            failures = self.deliver_queued()
        raise_first(failures)

    def catch_up(self) -> None:
        """Deliver what an interrupt left in the queue, unless somebody is delivering anyway."""
        if self.arrivals and not self.delivering.locked():
            with self.delivering:
                failures = self.deliver_queued()
            raise_first(failures)

    def deliver_queued(self) -> list[Exception]:
        """Deliver what has been queued until now; return what went wrong.

        What other threads append from here on they deliver themselves. So nobody goes on for ever
        who only wanted to append once, and the queue is no longer than there are threads.
        """
        failures: list[Exception] = []
        self.deliverer = get_ident()
        self.owed = self.queued
        try:
            while self.arrivals and self.arrivals[0].number <= self.owed:
                # An interrupt may come at any point. An arrival leaves the queue once all have
                # seen it, and a query that is offered it again knows its number.
                self.deliver(self.arrivals[0], failures)
                self.arrivals.popleft()
        except BaseException as interrupt:
            mention(interrupt, failures)
            raise
        finally:
            self.deliverer = None
        return failures

    def in_callback(self) -> bool:
        """Whether this thread is delivering: it was called by a callback, then."""
        return self.delivering.locked() and self.deliverer == get_ident()

    def deliver(self, arrival: Arrival, failures: list[Exception]) -> None:
        """Push events into every live query over their stream; add what went wrong."""
        readers = [each for each in self.subscriptions if arrival.stream in each.streams]
        if not readers:
            return
        arrived = {arrival.stream: numbered(arrival.events, arrival.first_seq)}
        for subscription in readers:
            try:
                subscription.deliver(arrival.number, arrived)
            except Exception as failure:
                failures.append(failure)
        with self.queueing:
            self.subscriptions = [each for each in self.subscriptions if not each.finished]

    def add(self, subscription: Subscription, seen: int | None = None) -> Subscription:
        """Add a query over what is to come: all arrivals behind the one numbered `seen`."""
        with self.queueing:
            subscription.delivered = self.queued if seen is None else seen
            subscription.catch_up = self.catch_up
            self.subscriptions = [*self.subscriptions, subscription]
        return subscription

    def join(self, begin: Callable[[], Subscription]) -> Subscription:
        """Add a query that begins with what is stored, while nothing is delivered.

        What is stored before it looks is in what it sees; what is stored later is delivered to it.
        An event may be both, if it is stored but not yet in the queue: a query knows by their
        numbers which it has seen. Whoever appends meanwhile waits, and delivers afterwards.
        """
        with self.paused():
            seen = self.queued
            return self.add(begin(), seen)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep events in the queue meanwhile; a callback is paused anyway while it runs."""
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
    """Note on an error what else went wrong."""
    for other in others:
        error.add_note(f"another live query failed: {type(other).__name__}: {other}")
