"""Live queries that stand at the same event of every stream, and take steps together.

Derived streams that run stand before the queries that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock, RLock

import pyarrow as pa

from eventide.api.live.numbered import read_numbered
from eventide.api.live.query import LiveQuery
from eventide.api.live.running import EmittedRows, RunningStream
from eventide.api.result import Result
from eventide.api.stream import with_seq_from
from eventide.errors import EventideError
from eventide.ingest.by_time import by_time
from eventide.instants import START_OF_TIME_US
from eventide.interrupts import interrupts_wait
from eventide.schema import SEQ
from eventide.store import StoredStream

LARGE_GAP = 50_000
"""So many events of others are left to the follower: who appends is not to wait for them."""

NOTHING_MOVED: Mapping[int, Mapping[str, int]] = {}


class Group:
    """Live queries at one position: the number of the next event to take, by stream."""

    def __init__(self) -> None:
        self.listening: list[LiveQuery] = []
        """The queries that have a wall time: only they want to hear of events."""
        self.relations: frozenset[str] = frozenset()
        """The relations that queries read."""
        self.queries = []
        self.position: dict[str, int] = {}
        self.stored: dict[str, StoredStream] = {}
        """The streams of `position`: another one of the same name is not meant."""
        self.heard: set[str] = set()
        """The streams of which events have come since `hear`, if a query listens."""
        self.noting = Lock()
        self.hearing = RLock()
        """Held meanwhile: who appended does not go on before its events have been heard of."""
        self.stepping = RLock()
        """Held during a step, and while queries come and go."""

    @property
    def queries(self) -> list[LiveQuery]:
        """The queries, each behind the derived streams that it reads."""
        return self._queries

    @queries.setter
    def queries(self, queries: list[LiveQuery]) -> None:
        self._queries = queries
        self.listening = [query for query in queries if query.listens]
        feeds = (feed for query in queries for feed in query.engine.feeds)
        self.relations = frozenset(feed.stream for feed in feeds if feed.relation)

    @property
    def held(self) -> bool:
        """Whether a query takes no events now."""
        return any(query.held for query in self.queries)

    def take(self, stored: StoredStream, events: pa.RecordBatch, first_seq: int) -> bool:
        """Take events that have been appended, numbered from `first_seq` on.

        What others appended before is read from the store, and what has been read is not taken
        again. Return whether the events are taken: after a large gap they are left to the follower,
        and so are those before which others have to be taken, and those of a stream that was
        dropped and made anew.
        """
        stream = stored.name
        with self.stepping, interrupts_wait():
            end = first_seq + events.num_rows
            if stream not in self.position:
                return True
            if self.stored[stream].stream_id != stored.stream_id:
                return False
            if self.position[stream] >= end:
                return True
            gap = first_seq - self.position[stream]
            if gap > LARGE_GAP or self.is_ahead(stream, gap):
                return False
            self.catch_up(stream, first_seq)
            if stream in self.position:  # or the queries that read it have failed
                fresh = max(0, self.position[stream] - first_seq)
                # Before the step: should it be cut short, what has not taken the events is over.
                self.position[stream] = end
                self.step({stream: with_seq_from(events, first_seq).slice(fresh)})
            return True

    def is_ahead(self, stream: str, gap: int) -> bool:
        """Whether events of other streams have to be taken before those of a stream.

        A relation does not hold back the clock: its rows have to be there before events. `gap` is
        how many stored events of the stream are to be taken first.
        """
        if gap > 0 and (self.relations or self.max_lag_us is not None):
            return True
        return any(
            self.position.get(name, 0) < (self.end_of(name) or 0)
            for name in self.relations
            if name != stream
        )

    def hear(self) -> None:
        """Tell the wall time of queries of which streams events have come.

        It may move streams, in whichever group: so nothing else is locked here.
        """
        if not (self.listening or self.heard):
            return
        with self.hearing:
            with self.noting:
                streams, self.heard = self.heard, set()
            for query in self.listening if streams else ():
                if query.wall_time is not None:
                    for stream in streams:
                        query.wall_time.heard(stream)

    def catch_up(self, stream: str, until: int, steps: int | None = None) -> None:
        """Take the stored events of a stream before the number `until`.

        With `steps`, take so many steps at most, and none once a query is held. If events cannot
        be read, the queries of the stream fail.
        """
        with self.stepping, interrupts_wait():
            if self.position.get(stream, until) >= until:
                return
            try:
                for taken, events in enumerate(self.missing(stream, until)):
                    if taken == steps or (steps is not None and self.held):
                        return
                    self.position[stream] = events.column(SEQ)[-1].as_py() + 1
                    self.step({stream: events})
                    if stream not in self.position:
                        return
            except Exception as error:
                self.lose(stream, error)
                return
            # Numbers of events that have been dropped since are passed over.
            self.position[stream] = until

    def catch_up_all(self, ends: Mapping[str, int]) -> None:
        """Take the stored events of several streams before some numbers."""
        lag_us = self.max_lag_us
        if lag_us is None:
            # The rows of a relation wait for the clock, but do not hold it back.
            for stream in sorted(ends, key=lambda name: name not in self.relations):
                self.catch_up(stream, ends[stream])
        else:
            self.take_by_time(ends, lag_us)

    def take_by_time(
        self, ends: Mapping[str, int], lag_us: int, most_steps: int | None = None
    ) -> bool:
        """Take events of several streams so that none of them seems to lag behind another.

        Return whether there are more: with `most_steps`, as many are taken as in so many steps of
        one stream, and none once a query is held.
        """
        with self.stepping, interrupts_wait():
            behind = {name: end for name, end in ends.items() if self.position.get(name, end) < end}
            streams = {name: self.readable(name, end) for name, end in behind.items()}
            taken = 0
            for stream, events in by_time(streams, self.relations, lag_us, LARGE_GAP):
                if most_steps is not None and (self.held or taken >= most_steps * LARGE_GAP):
                    return True
                if stream in self.position:
                    self.position[stream] = events.column(SEQ)[-1].as_py() + 1
                    self.step({stream: events})
                    taken += events.num_rows
            for stream in behind.keys() & self.position.keys():
                # Numbers of events that have been dropped since are passed over.
                self.position[stream] = max(self.position[stream], behind[stream])
            return False

    def readable(self, stream: str, until: int) -> Iterator[pa.RecordBatch]:
        """Yield stored events; if they cannot be read, the queries of the stream fail."""
        try:
            yield from self.missing(stream, until)
        except Exception as error:
            self.lose(stream, error)

    @property
    def max_lag_us(self) -> int | None:
        """The least lag at which a query no longer waits for a stream, if one does so."""
        lags = [query.engine.max_lag_us for query in self.queries]
        return min((lag_us for lag_us in lags if lag_us is not None), default=None)

    def take_stored(self, steps: int) -> bool:
        """Take some of what is stored, in so many steps at most; return whether there is more.

        Of several streams, that which is furthest back in time has its turn: events of the others
        would only wait for it, or make it late.
        """
        for _ in range(steps):
            ends = {name: self.end_of(name) for name in list(self.position)}
            behind = {
                name: end
                for name, end in ends.items()
                if end is not None and self.position.get(name, end) < end
            }
            if not behind or self.held:
                return bool(behind)
            if len(behind) == 1:
                ((stream, end),) = behind.items()
                self.catch_up(stream, end, steps)
                return self.position.get(stream, end) < end
            lag_us = self.max_lag_us
            if lag_us is not None:
                return self.take_by_time(behind, lag_us, steps)
            # Rows of a relation are there before events of the same time.
            stream = min(
                behind, key=lambda name: (self.newest_us(name), name not in self.relations)
            )
            self.catch_up(stream, behind[stream], 1)
        return True

    def newest_us(self, stream: str) -> int:
        """Return the newest time of a stream that all queries have seen."""
        return min(
            (
                held.newest_us
                for query in self.queries
                for feed, held in zip(query.engine.feeds, query.state.feeds, strict=True)
                if feed.stream == stream
            ),
            default=START_OF_TIME_US,
        )

    def end_of(self, stream: str) -> int | None:
        """Return the number of a stream's next event; if it is gone, its queries fail."""
        stored = self.stored.get(stream)
        if stored is None:
            return None
        try:
            return stored.current().next_seq
        except EventideError as error:
            self.lose(stream, error)
            return None

    def lose(self, stream: str, why: Exception) -> None:
        """Let the queries of a stream that cannot be read any more fail."""
        with self.stepping:
            for query in self.queries:
                if stream in query.streams and stream not in query.sources:
                    query.lose(stream, why)
                for source in query.sources.values():
                    if source.failure is not None:
                        query.fail(source.failure)
            self.sweep()

    def missing(self, stream: str, until: int) -> Iterator[pa.RecordBatch]:
        """Yield the stored events that the queries have not taken, with the columns they read."""
        columns = dict.fromkeys(
            name
            for query in self.queries
            if stream in query.reads
            for name in query.reads[stream][0]
        )
        return read_numbered(self.stored[stream], columns, self.position[stream], until)

    def move(self, moved: Mapping[int, Mapping[str, int]]) -> dict[int, Result]:
        """Let queries know that no events of some streams before an instant will come.

        The instants are given by the identity of the query that reads the streams, and so are the
        results returned.
        """
        with self.stepping, interrupts_wait():
            return self.step({}, moved)

    def step(
        self,
        arrived: Mapping[str, pa.RecordBatch],
        moved: Mapping[int, Mapping[str, int]] = NOTHING_MOVED,
    ) -> dict[int, Result]:
        """Let every query take what concerns it; one that fails is over, and the others go on.

        `moved` are instants that streams have reached, by the identity of the query.
        """
        results: dict[int, Result] = {}
        emitted: dict[int, EmittedRows] = {}
        for place, query in enumerate(self.queries):
            rows = {
                name: each
                for name, each in arrived.items()
                if name in query.streams and name not in query.sources
            }
            reached = dict(moved.get(id(query), {}))
            for name, source in query.sources.items():
                if source.failure is not None:
                    query.fail(source.failure)
                if id(source) in emitted:
                    rows[name] = emitted[id(source)].rows
                    reached[name] = emitted[id(source)].reached_us
            if rows or reached:
                try:
                    results[id(query)] = query.take_delivered(rows, reached)
                except BaseException as interrupt:
                    for left in self.queries[place:]:
                        left.fail(interrupt)
                    self.sweep()
                    raise
                if isinstance(query, RunningStream):
                    emitted[id(query)] = query.emitted
        if self.listening:
            with self.noting:
                self.heard.update(arrived)
        if any(query.finished or query.unused for query in self.queries):
            self.sweep()
        return results

    def sweep(self) -> None:
        """Forget queries that are finished, and derived streams that no query reads any more."""
        with self.stepping:
            needed: set[int] = set()
            kept: list[LiveQuery] = []
            for query in reversed(self.queries):
                unread = (
                    isinstance(query, RunningStream)
                    and id(query) not in needed
                    and not query.wanted
                )
                if not (query.finished or query.unused or unread):
                    needed.update(id(source) for source in query.sources.values())
                    kept.append(query)
            self.queries = kept[::-1]
            read = {name for query in kept for name in query.streams}
            self.position = {name: at for name, at in self.position.items() if name in read}
            self.stored = {name: each for name, each in self.stored.items() if name in read}
