"""Hand events to the live queries of a database, in order of `_seq`.

Queries that keep up stand in one group. Events of this process are handed to it by the thread that
appends, those of other processes by the follower. A query that takes no events now, because it is
paused or too many of its rows wait, leaves the group; it catches up from the store later, and comes
back.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock, RLock
from time import monotonic

import numpy as np
import pyarrow as pa

from eventide.api.live.durable import DurableGroup, DurableQuery
from eventide.api.live.follower import FOLLOWER, Looked
from eventide.api.live.group import LARGE_GAP, Group
from eventide.api.live.handover import is_receiving
from eventide.api.live.query import LiveQuery
from eventide.api.live.running import EmittedRows, RunningStream
from eventide.api.live.subscription import Subscription
from eventide.api.result import Result
from eventide.errors import SchemaError, StateError, listed
from eventide.instants import ALL_TIME
from eventide.plan.named import NamedQuery
from eventide.schema import SEQ
from eventide.store import Snapshot, Store, StoredStream

EVENTS_AT_ONCE = 50_000
"""So many stored events are taken in one step, at most."""
STEPS_AT_ONCE = 8
"""So many steps are taken before others have their turn."""
EVENTS_READ = STEPS_AT_ONCE * EVENTS_AT_ONCE
"""So many are read at once, at most."""
FAILED_KEPT = 20
"""So many queries that have failed are listed; older ones are forgotten."""
CLOSING_S = 30.0
"""How long the end of a process waits for receivers."""

log = logging.getLogger("eventide.live")


class Delivery:
    """The live queries of a database, and how events reach them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ids = count(1)
        self.together = Group(self.read)
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

    # Events come.

    def publish(self, stream: StoredStream, events: pa.RecordBatch, first_seq: int) -> None:
        """Hand events that this process has appended to the queries that keep up.

        What a receiver appends is left to the follower: a query waits for its receiver when it
        writes a checkpoint, so a receiver must not wait for a query.
        """
        if is_receiving():
            self.wake()
            return
        taken = True
        if stream.name in self.together.position:
            self.set_held_aside()
            taken = self.together.take(stream, events, first_seq)
        for group in self.durable:
            if not group.held:
                taken &= group.take(stream, events, first_seq)
        if not taken:
            self.wake()
        self.hear()

    def hear(self) -> None:
        """Tell the wall time of queries of which streams events have come."""
        for group in self.groups:
            group.hear()

    def look(self) -> Looked:
        """Let all queries take what is stored."""
        before = [dict(group.position) for group in self.groups]
        again = self.brought_together()
        for group in (*self.behind, *self.durable):
            if not group.held:
                again |= not self.caught_up(group)
        for group in self.durable:
            group.save_if_old()
        self.hear()
        found = before != [group.position for group in self.groups]
        return Looked(found, 0.0 if again else None)

    def brought_together(self) -> bool:
        """Let the queries that keep up take some of what is stored; whether there is more."""
        self.set_held_aside()
        return self.together.take_stored(STEPS_AT_ONCE)

    def bring(self, query: Subscription, until: float | None = None, *, wait: bool = True) -> bool:
        """Let a query take what is stored now, and wait for room for its rows if need be.

        Return whether all is taken: not if the query is paused, or the time `until` is over. The
        receiver of a query cannot wait for itself; its rows may then be more than the queue holds.
        """
        target: dict[str, int] | None = None
        while True:
            group = self.group_of(query)
            if group is None:
                return True
            # The position is that after a step which may still go on.
            with group.stepping:
                if target is None:
                    ends = {name: group.end_of(name) for name in stored_below(query)}
                    target = {name: end for name, end in ends.items() if end is not None}
                # A group that has been merged meanwhile has no position.
                if all(group.position.get(name, -1) >= end for name, end in target.items()):
                    return True
            if query.paused or (until is not None and monotonic() >= until):
                return False
            queue = query.queue
            if queue is not None and queue.full:
                if not wait:
                    return False
                if not queue.is_receiver:
                    if not queue.wait_for_room(until):
                        return False
                elif group is self.together:
                    self.set_held_aside()
                else:
                    for stream, end in target.items():
                        group.catch_up(stream, end)
            elif group is self.together:
                self.brought_together()
            else:
                self.caught_up(group)

    def wait(self, query: Subscription, timeout: float | None) -> bool:
        """Return once a query has taken what is stored now, and its rows are handed over."""
        until = None if timeout is None else monotonic() + timeout
        if not self.bring(query, until):
            return False
        left = None if until is None else max(0.0, until - monotonic())
        return query.queue is None or query.queue.drained(left)

    def read(
        self, stored: StoredStream, columns: Iterable[str], start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the stored events of a stream with numbers from `start` to before `end`."""
        while start < end:
            snapshot = stored.snapshot().since(start)
            known = [name for name in columns if name in snapshot.schema.arrow.names]
            names = list(dict.fromkeys((*known, SEQ)))
            rows, start = numbered(snapshot.scan(names, ALL_TIME), start, end)
            for place in range(0, rows.num_rows, EVENTS_AT_ONCE):
                yield rows.slice(place, EVENTS_AT_ONCE)

    # Queries come and go.

    def add_durable(self, group: DurableGroup) -> None:
        """Add a durable query."""
        with self.changing:
            self.check_open()
            self.durable = [*(each for each in self.durable if each.queries), group]
        FOLLOWER.follow(self)

    def check_open(self) -> None:
        """Refuse a query of a database that is closed."""
        if self.closed:
            message = "the database is closed"
            raise StateError(message, hint="open it again")

    def add(self, query: LiveQuery, seen: Mapping[str, Snapshot]) -> None:
        """Add a query that has seen what is stored in its streams."""
        with self.changing, self.together.stepping:
            self.check_open()
            group = Group(self.read)
            group.queries = [query]
            group.position = {name: each.view.next_seq for name, each in seen.items()}
            group.stored = {name: stream_of(each) for name, each in seen.items()}
            for source in query.sources.values():
                source.wanted = False
            if isinstance(query, Subscription) and not query.sources and self.is_far(group):
                self.behind.append(group)
            else:
                self.merge(group)
        FOLLOWER.follow(self)

    def merge(self, group: Group) -> None:
        """Let a group that has caught up be one with those that keep up."""
        together = self.together
        for stream in list(group.position):
            for each in (group, together):
                each.end_of(stream)  # those of a stream that is gone fail here
            if stream in together.position and stream in group.position:
                end = max(together.position[stream], group.position[stream])
                group.catch_up(stream, end)
                together.catch_up(stream, end)
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
            for query in self.together.queries:
                if isinstance(query, Subscription) and query.held and not query.finished:
                    self.behind.append(self.apart(query))
            aside = {id(query) for group in self.behind for query in group.queries}
            left = [query for query in self.together.queries if id(query) not in aside]
            self.together.queries = left
            self.together.sweep()

    def apart(self, query: Subscription) -> Group:
        """Return a group of one query, with derived streams of its own that go on from here."""
        group = Group(self.read)
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
        with self.changing:
            for group in self.groups:
                if any(each is query for each in group.queries):
                    return group
        return None

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

    def advance(self, query: Subscription, until_us: int, stream: str | None) -> Result:
        """Move the streams of a query on, and those below the derived streams that it reads."""
        with self.changing:
            chosen = moved_streams(query, stream)
            moved = {reader: dict.fromkeys(names, until_us) for reader, names in chosen.items()}
            group = self.group_of(query)
            found = {} if group is None else group.move(moved)
        return found.get(id(query), Result(query.output_schema.empty_table()))

    def move(self, query: LiveQuery, until_us: Mapping[str, int]) -> None:
        """Move streams of a query to instants, also below the derived streams that it reads.

        What is stored is taken before, for it is not to be late. A query that is held stays where
        it is.
        """
        if isinstance(query, Subscription) and not self.bring(query, wait=False):
            return
        with self.changing:
            group = self.group_of(query)
            if group is not None:
                chosen = moved_streams(query, None)
                group.move(
                    {
                        reader: {name: until_us[name] for name in names if name in until_us}
                        for reader, names in chosen.items()
                    }
                )

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

    # The follower.

    def folders(self) -> set[Path]:
        """Return the folders of the streams that live queries read."""
        read = {name for group in self.groups for name in list(group.position)}
        return {self.store.path / "streams" / name for name in read}

    def receives(self) -> bool:
        """Return whether a query has a receiver; who pulls rows holds on to the query anyway."""
        queues = (query.queue for query in self.subscriptions())
        return any(queue is not None and queue.has_receiver for queue in queues)

    def wake(self) -> None:
        """Let queries take what is stored soon."""
        FOLLOWER.wake()

    def close(self, timeout: float = CLOSING_S) -> None:
        """End all queries; rows of what is stored are handed over, in at most this time."""
        with self.changing:
            self.closed = True
            running = self.subscriptions()
        until = monotonic() + timeout
        for query in running:
            if query.queue is not None:
                query.queue.be_quick()
        for query in running:
            if query.queue is not None:
                self.bring(query, until)
            if isinstance(query, DurableQuery) and query.queue is not None:
                # What it cannot hand over in time is kept.
                query.queue.drained(max(0.0, until - monotonic()))
            try:
                query.cancel()
            except Exception:
                log.exception("%s could not be ended properly", query.described())
        for query in running:
            queue = query.queue
            if queue is None:
                continue
            if queue.drained(max(0.0, until - monotonic())):
                queue.close_receiver()
            else:
                rows = queue.waiting_rows
                log.warning("%s: %d rows were not handed over in time", query.described(), rows)

    def leave_to_parent(self) -> None:
        """Let the live queries stay with the process that this one is a copy of."""
        queries = self.queries
        for group in self.durable:
            group.held_lock.close()
        self.together, self.behind, self.durable = Group(self.read), [], []
        self.changing = RLock()  # of the old one nobody knows who holds it
        for query in queries:
            query.stepping = Lock()
            query.finished = True
            if isinstance(query, Subscription):
                query.queue = None


def stream_of(snapshot: Snapshot) -> StoredStream:
    """Return the stream that a snapshot is of."""
    return StoredStream(snapshot.name, snapshot.path, snapshot.manifest.stream_id)


def stored_below(query: LiveQuery) -> set[str]:
    """Return the stored streams that a query reads, also through derived streams."""
    below = [stored_below(source) for source in query.sources.values()]
    return {name for name in query.streams if name not in query.sources}.union(*below)


def numbered(batches: Iterable[pa.RecordBatch], start: int, end: int) -> tuple[pa.RecordBatch, int]:
    """Return events in the order of their numbers, the first ones from `start` to before `end`.

    The number that follows comes with them. Numbers of events that are gone are passed over.
    """
    chosen: list[pa.RecordBatch] = []
    stop = min(end, start + EVENTS_READ)
    following = end
    for rows in batches:
        seq = rows.column(SEQ).to_numpy()
        later = seq[(seq >= stop) & (seq < following)]
        following = int(later.min()) if later.size else following
        inside = (seq >= start) & (seq < stop)
        chosen.append(rows if inside.all() else rows.filter(pa.array(inside)))
    if not chosen:
        return pa.RecordBatch.from_pylist([]), following
    together = pa.concat_batches(chosen)
    order = np.argsort(together.column(SEQ).to_numpy(), kind="stable")
    return together.take(pa.array(order)), following


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
