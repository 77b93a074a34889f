"""The stored derived streams of a database: each takes a step when what it reads has grown."""

from __future__ import annotations

import logging
from threading import RLock

import pyarrow as pa

from eventide.api.live.delivery import Delivery
from eventide.api.live.stored.query import StoredQuery
from eventide.api.named import Named, NamedQueries
from eventide.errors import StoreError
from eventide.lang.sql.named.inline import names_read
from eventide.plan.named import NamedQuery

log = logging.getLogger("eventide.live")


class StoredQueries:
    """The stored derived streams of a database."""

    def __init__(self, named: NamedQueries, delivery: Delivery) -> None:
        self.named = named
        self.delivery = delivery
        self.changing = RLock()
        self.known: Named = {}
        self.queries: list[StoredQuery] = []

    def present(self) -> list[StoredQuery]:
        """Return the queries that are defined now, each behind those that it reads.

        If the definitions cannot be read, those that were defined last: producers go on, and who
        asks for a name is told.
        """
        try:
            known = self.named.all()
        except StoreError as error:
            log.warning("stored streams may be out of date: %s", error.message)
            return self.queries
        if known is self.known or not (known or self.queries):
            return self.queries
        with self.changing:
            # A stream may have been dropped and made again: what is remembered of it is void.
            stored = [each for each in known.values() if each.kind == "stored stream"]
            self.queries = [self.made(each, known) for each in stored]
            self.known = known
            return self.queries

    def made(self, named: NamedQuery, known: Named) -> StoredQuery:
        """Return a query that begins, or goes on where it is."""
        others = self.named.inlined([named.name])
        late = [named.lateness_us, *(known[each].lateness_us for each in below(named, others))]
        return StoredQuery(self.named.store, named, others, max(late), self.delivery.publish)

    def failures(self) -> dict[str, str]:
        """Return why queries have failed, by name in lower case."""
        found = ((query.name.lower(), query.failure) for query in self.present())
        return {name: str(failure) for name, failure in found if failure is not None}

    def go_on(self) -> None:
        """Let every query take what it has not seen."""
        for query in self.present():
            query.step()

    def follow(self, stream: str, events: pa.RecordBatch, first_seq: int) -> None:
        """Let queries take events that have just been appended, and others the rows of those."""
        queries = self.present()
        if not queries:
            return
        moved = {stream}
        for query in queries:
            if not any(query.reads(name) for name in moved):
                continue
            if query.step((stream, events, first_seq)):
                moved.add(query.name)

    def begin(self, name: str) -> None:
        """Let a new query take what is stored; raise why it cannot."""
        for query in self.present():
            if query.name == name:
                query.warns = True
                query.step()
                if query.failure is not None:
                    raise query.failure


def below(named: NamedQuery, others: Named) -> set[str]:
    """Return the queries whose text takes the place of names in another one."""
    found: set[str] = set()
    waiting = [named]
    while waiting:
        for name in (names_read(waiting.pop().text) & others.keys()) - found:
            found.add(name)
            waiting.append(others[name])
    return found
