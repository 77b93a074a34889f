"""Hand events to the live queries of a database, in order of `_seq`.

Events of this process are handed to the queries that keep up by the thread that appends, those of
other processes by the follower. Other queries catch up from the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic

import pyarrow as pa

from eventide.api.live.durable import DurableGroup, DurableQuery
from eventide.api.live.follower import FOLLOWER, Looked
from eventide.api.live.groups import STEPS_AT_ONCE, LiveGroups
from eventide.api.live.handover import is_receiving
from eventide.api.live.query import LiveQuery
from eventide.api.live.subscription import Subscription
from eventide.api.result import Result
from eventide.errors import SchemaError, listed
from eventide.store import Snapshot, StoredStream

CLOSING_S = 30.0
"""How long the end of a process waits for receivers."""

log = logging.getLogger("eventide.live")


class Delivery(LiveGroups):
    """The live queries of a database, and how events reach them."""

    def add(self, query: LiveQuery, seen: Mapping[str, Snapshot]) -> None:
        """Add a query that has seen what is stored in its streams, and let it follow them."""
        super().add(query, seen)
        FOLLOWER.follow(self)

    def begin_more(
        self, query: LiveQuery, streams: Iterable[str], begin: Callable[[Mapping[str, int]], None]
    ) -> None:
        """Let a query go on with more in it, and follow its streams."""
        super().begin_more(query, streams, begin)
        # A set of queries is added without any: the follower may have found nothing to follow.
        if not FOLLOWER.follows(self):
            FOLLOWER.follow(self)

    def add_durable(self, group: DurableGroup) -> None:
        """Add a durable query, and let it follow its streams."""
        super().add_durable(group)
        FOLLOWER.follow(self)

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
        self.look_at_memory()

    def look_at_memory(self) -> None:
        """End queries if all of them remember more than they may together."""
        if self.bound is not None:
            self.bound.look(self)

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
        self.rejoin()
        self.hear()
        self.look_at_memory()
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
                done = all(group.position.get(name, -1) >= end for name, end in target.items())
            if done:
                # It may look for its group: what is locked for that is locked before any group is.
                query.brought()
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
                    group.catch_up_all(target)
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


def stored_below(query: LiveQuery) -> set[str]:
    """Return the stored streams that a query reads, also through derived streams."""
    below = [stored_below(source) for source in query.sources.values()]
    return {name for name in query.streams if name not in query.sources}.union(*below)


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
