"""New events on their way to the live queries of a database."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

import pyarrow as pa

from eventide.subscription import Subscription


class Delivery:
    """Hands new events to the queries over their stream, one after the other."""

    def __init__(self) -> None:
        self.subscriptions: list[Subscription] = []
        self.arrivals: deque[tuple[str, pa.RecordBatch]] = deque()
        self.delivering = Lock()
        self.deliverer: int | None = None
        """The thread that delivers now."""
        self.owed = 0
        """How many of the arrivals, from the first on, that thread has to deliver."""

    def publish(self, stream: str, events: pa.RecordBatch) -> None:
        """Hand new events to the live queries over a stream, in the order of appending.

        A callback may append in its turn. What it appends waits until every query has seen what
        came before, or it would be early for some and make others late. A query that fails, or
        whose callback does, keeps nothing from the others.

        When this returns the queries have seen the events, unless a callback appended them.
        """
        self.arrivals.append((stream, events))
        if self.deliverer == get_ident():
            # The callback that appends has to return first; whoever called it goes on up to here.
            self.owed = len(self.arrivals)
            return
        failures = self.deliver_queued()
        if failures:
            failures[0].add_note("a standing query failed; the appended events are stored")
            raise failures[0]

    def deliver_queued(self) -> list[Exception]:
        """Deliver what has been queued until now; return what went wrong.

        What other threads append from here on they deliver themselves. So nobody goes on for ever
        who only wanted to append once, and the queue is no longer than there are threads.
        """
        failures: list[Exception] = []
        with self.delivering:
            self.deliverer = get_ident()
            self.owed = len(self.arrivals)
            try:
                while self.owed:
                    self.owed -= 1
                    failures += self.deliver(*self.arrivals.popleft())
            finally:
                self.deliverer = None
        return failures

    def deliver(self, stream: str, events: pa.RecordBatch) -> list[Exception]:
        """Push events into every live query over their stream; return what went wrong."""
        failures: list[Exception] = []
        for subscription in list(self.subscriptions):
            if stream not in subscription.streams:
                continue
            try:
                subscription.take({stream: events})
            except Exception as failure:
                failures.append(failure)
        self.subscriptions = [each for each in self.subscriptions if not each.finished]
        return failures

    def add(self, subscription: Subscription) -> Subscription:
        """Add a query over what is to come."""
        self.subscriptions.append(subscription)
        return subscription

    def join(self, begin: Callable[[], Subscription]) -> Subscription:
        """Add a query that begins with what is stored, while nothing is delivered.

        What is stored before it looks is in what it sees; what is stored later is delivered to it.
        An event may be both, if it is stored but still waits in the queue: a query knows by their
        numbers which it has seen. Whoever appends meanwhile waits, and delivers afterwards.
        """
        with self.paused():
            return self.add(begin())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep events in the queue meanwhile; a callback is paused anyway while it runs."""
        if self.deliverer == get_ident():
            yield
            return
        with self.delivering:
            yield
