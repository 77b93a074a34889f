"""The live queries of a database: how they come and go, and which of them step together.

Queries that keep up stand in one group. A query that takes no events now, because it is paused or
too many of its rows wait, leaves the group; it catches up from the store later, and comes back. A
durable query has a group of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from threading import Lock, RLock

from eventide.api.live.durable import DurableGroup
from eventide.api.live.group import LARGE_GAP, Group
from eventide.api.live.memory import MemoryBound
from eventide.api.live.query import LiveQuery
from eventide.api.live.running import EmittedRows, RunningStream
from eventide.api.live.shared.shared_live import SharedLive
from eventide.api.live.shared.shared_query import SharedQuery
from eventide.api.live.subscription import Subscription
from eventide.errors import StateError
from eventide.plan.named import NamedQuery
from eventide.store import Snapshot, Store, StoredStream

STEPS_AT_ONCE = 8
"""So many steps are taken before others have their turn."""
FAILED_KEPT = 20
"""So many queries that have failed are listed; older ones are forgotten."""


class LiveGroups:
    """The groups of live queries of a database."""

    def __init__(self, store: Store, most_bytes: int | None = None) -> None:
        self.store = store
        self.bound = None if most_bytes is None else MemoryBound(most_bytes)
        """How much all of them may remember."""
        self.ids = count(1)
        self.together = Group()
        self.behind: list[Group] = []
        """Groups of one query each, with the derived streams that only it reads."""
        self.durable: list[DurableGroup] = []
        self.changing = RLock()
        """Held while queries change groups; locked before any group is."""
        self.failed: deque[Subscription] = deque(maxlen=FAILED_KEPT)
        self.closed = False

    @property
    def queries(self) -> list[LiveQuery]:
        """All live queries, derived streams before those that read them."""
        return [query for group in self.groups for query in group.queries]

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups of queries."""
        return (self.together, *self.behind, *self.durable)

    def subscriptions(self) -> list[Subscription]:
        """Return the live queries that run for someone, oldest first."""
        found = [each for each in self.queries if isinstance(each, Subscription)]
        for query in self.queries:
            if isinstance(query, SharedLive):
                found += query.members.copy().values()
        return sorted(found, key=lambda each: each.id)

    def listed(self) -> list[Subscription]:
        """Return the live queries that run for someone, and those that failed, oldest first."""
        found = {each.id: each for each in (*self.failed.copy(), *self.subscriptions())}
        return [found[number] for number in sorted(found)]

    def forget_failed(self, query: Subscription) -> None:
        """List a query that has failed no longer."""
        with suppress(ValueError):
            self.failed.remove(query)

    def remember_failed(self, query: Subscription) -> None:
        """List a query that has failed, until it is cancelled."""
        if not any(each is query for each in self.failed.copy()):
            self.failed.append(query)

    def check_open(self) -> None:
        """Refuse a query of a database that is closed."""
        if self.closed:
            message = "the database is closed"
            raise StateError(message, hint="open it again")

    def add(self, query: LiveQuery, seen: Mapping[str, Snapshot]) -> None:
        """Add a query that has seen what is stored in its streams."""
        with self.changing, self.together.stepping:
            self.check_open()
            group = Group()
            group.queries = [query]
            group.position = {name: each.view.next_seq for name, each in seen.items()}
            group.stored = {name: stream_of(each) for name, each in seen.items()}
            for source in query.sources.values():
                source.wanted = False
            if isinstance(query, Subscription) and not query.sources and self.is_far(group):
                self.behind.append(group)
            else:
                self.merge(group)

    def begin_more(
        self, query: LiveQuery, streams: Iterable[str], begin: Callable[[Mapping[str, int]], None]
    ) -> None:
        """Let a query go on with more in it, and perhaps more streams, from what is stored on.

        `begin` gets the number of the next event of each of the streams.
        """
        with self.changing:
            self.check_open()
            group = self.group_of(query)
            if group is None:
                message = "the query is over"
                raise StateError(message, hint="subscribe again")
            with group.stepping:
                seen = self.store.snapshots(set(streams))
                ends = {name: each.view.next_seq for name, each in seen.items()}
                for name in ends:
                    group.end_of(name)  # those of a stream that is gone fail here
                for name, end in ends.items():
                    group.position.setdefault(name, end)
                    group.stored.setdefault(name, stream_of(seen[name]))
                group.catch_up_all(ends)
                if query.finished:
                    message = "the query is over"
                    raise StateError(message, hint="subscribe again") from query.failure
                with query.stepping:
                    begin(ends)
                # It has more streams now, and may have left when those that it was for had failed.
                group.queries = [*(each for each in group.queries if each is not query), query]

    def add_durable(self, group: DurableGroup) -> None:
        """Add a durable query."""
        with self.changing:
            self.check_open()
            self.durable = [*(each for each in self.durable if each.queries), group]

    def merge(self, group: Group) -> None:
        """Let a group that has caught up be one with those that keep up."""
        together = self.together
        ends: dict[str, int] = {}
        for stream in list(group.position):
            for each in (group, together):
                each.end_of(stream)  # those of a stream that is gone fail here
            if stream in together.position and stream in group.position:
                ends[stream] = max(together.position[stream], group.position[stream])
        for each in (group, together):
            each.catch_up_all(ends)
        # Who still holds the group must not step its queries.
        queries, group.queries = group.queries, []
        position, group.position = group.position, {}
        together.position = position | together.position
        together.stored = group.stored | together.stored
        together.queries = [*together.queries, *queries]
        together.heard |= group.heard

    def is_far(self, group: Group) -> bool:
        """Whether a group stands so far from those that keep up that they do not wait for it."""
        at = self.together.position
        return any(
            abs(here - at.get(stream, here)) > LARGE_GAP for stream, here in group.position.items()
        )

    def set_held_aside(self) -> None:
        """Let queries that take no events now leave those that keep up."""
        if not self.together.held:
            return
        with self.changing, self.together.stepping:
            for shared in self.together.queries:
                if isinstance(shared, SharedLive):
                    for member in list(shared.held_members.values()):
                        self.part(member)
                    shared.held_members.clear()
            for query in self.together.queries:
                if isinstance(query, Subscription) and query.held and not query.finished:
                    self.behind.append(self.apart(query))
            aside = {id(query) for group in self.behind for query in group.queries}
            left = [query for query in self.together.queries if id(query) not in aside]
            self.together.queries = left
            self.together.sweep()

    def apart(self, query: Subscription) -> Group:
        """Return a group of one query, with derived streams of its own that go on from here."""
        group = Group()
        queries: list[LiveQuery] = []
        copies: dict[int, RunningStream] = {}

        def own(reader: LiveQuery) -> None:
            for source in reader.sources.values():
                if id(source) not in copies:
                    copies[id(source)] = copy = source.copy()
                    own(copy)
                    queries.append(copy)
            reader.sources = {name: copies[id(each)] for name, each in reader.sources.items()}

        own(query)
        group.queries = [*queries, query]
        read = {name for each in group.queries for name in each.streams}
        together = self.together
        group.position = {name: at for name, at in together.position.items() if name in read}
        group.stored = {name: each for name, each in together.stored.items() if name in read}
        return group

    def caught_up(self, group: Group) -> bool:
        """Let a group take some of what is stored; whether it is up to date, or takes no more.

        A group that was behind joins those that keep up then.
        """
        if group.take_stored(STEPS_AT_ONCE) and not group.held:
            return False
        if group.held:
            return True
        with self.changing, self.together.stepping, group.stepping:
            if group not in self.behind:
                return True
            if self.is_far(group):
                return False
            self.behind.remove(group)
            self.merge(group)
            self.together.sweep()
        return True

    def group_of(self, query: LiveQuery) -> Group | None:
        """Return the group that a query is in."""
        wanted: LiveQuery = query
        if isinstance(query, SharedQuery) and query.shares:
            wanted = query.shared
        with self.changing:
            for group in self.groups:
                if any(each is wanted for each in group.queries):
                    return group
        return None

    def shared_live(self, lateness_us: int, max_lag_us: int | None) -> SharedLive | None:
        """Return the queries that run as one with some options, if there are any."""
        for query in self.together.queries:
            if isinstance(query, SharedLive) and not query.finished:
                many = query.many
                if (many.lateness_us, many.max_lag_us) == (lateness_us, max_lag_us):
                    return query
        return None

    def part(self, query: SharedQuery) -> None:
        """Let a query that shares go on by itself, beside the others."""
        with self.changing, self.together.stepping:
            if query.shares:
                query.engine, query.state = query.shared.part(query)
                query.watermark_us = query.state.clock_us
                self.together.queries = [*self.together.queries, query]

    def rejoin(self) -> None:
        """Let queries that keep up again share, if they are as far as the others."""
        apart = [each for each in self.together.queries if isinstance(each, SharedQuery)]
        if not apart:
            return
        with self.changing, self.together.stepping:
            joined = {id(query) for query in apart if query.joins()}
            if joined:
                left = [each for each in self.together.queries if id(each) not in joined]
                self.together.queries = left

    def forget(self, query: LiveQuery) -> None:
        """Let a query that is finished go, and the derived streams that only it read."""
        with self.changing:
            for group in self.groups:
                with group.stepping:
                    if any(each is query for each in group.queries):
                        group.sweep()
            self.behind = [group for group in self.behind if group.queries]
            self.durable = [group for group in self.durable if group.queries]

    def sweep(self) -> None:
        """Forget derived streams that no query reads, nor one that starts."""
        with self.together.stepping:
            for query in self.together.queries:
                if isinstance(query, RunningStream):
                    query.wanted = False
            self.together.sweep()

    def running(self, definition: NamedQuery) -> RunningStream | None:
        """Return a derived stream that keeps up, if it runs, for a query that starts."""
        with self.together.stepping:
            for query in self.together.queries:
                if (
                    isinstance(query, RunningStream)
                    and query.definition == definition
                    and not query.finished
                ):
                    query.wanted = True
                    return query
        return None

    def leave(self, query: LiveQuery) -> dict[str, EmittedRows]:
        """Deliver nothing more to a query; return how its derived streams would end, by name."""
        with self.changing:
            group = self.group_of(query)
            if group is None:
                return {}
            with group.stepping:
                group.queries = [each for each in group.queries if each is not query]
                ended = {name: source.ended() for name, source in query.sources.items()}
                group.sweep()
        return ended

    def leave_to_parent(self) -> None:
        """Let the live queries stay with the process that this one is a copy of."""
        queries = self.queries
        for group in self.durable:
            group.held_lock.close()
        self.together, self.behind, self.durable = Group(), [], []
        self.changing = RLock()  # of the old one nobody knows who holds it
        for query in queries:
            query.stepping = Lock()
            query.finished = True
            if isinstance(query, Subscription):
                query.queue = None


def stream_of(snapshot: Snapshot) -> StoredStream:
    """Return the stream that a snapshot is of."""
    return StoredStream(snapshot.name, snapshot.path, snapshot.manifest.stream_id)
