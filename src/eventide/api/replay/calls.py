"""What a database offers to those who replay what is stored; the replay is imported by these."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from eventide.errors import UnboundedStateWarning
from eventide.lang.parameters import Parameters
from eventide.lang.sql.statement import Statement
from eventide.plan.events.written import refuse_written
from eventide.plan.nodes import stored_streams
from eventide.plan.times import Duration
from eventide.plan.tree import Plan
from eventide.schema import Schema
from eventide.store import Store

if TYPE_CHECKING:
    from eventide.api.builder import Query
    from eventide.api.live.query import LiveQuery, OnResult
    from eventide.api.replay.pace import Speed
    from eventide.api.replay.run import Replay
    from eventide.api.stream import Time


class ReplayCalls(ABC):
    """The calls of a database that replay streams."""

    store: Store

    @abstractmethod
    def catalog(self) -> dict[str, Schema]:
        """Return the schema of every stored stream."""

    @abstractmethod
    def plan(self, query: str | Statement, params: Parameters = None) -> Plan:
        """Return the plan of a query over streams, which publishes what it says."""

    @abstractmethod
    def pointing(self, text: str) -> AbstractContextManager[None]:
        """Let errors that are raised inside point into a query, or into what it reads by name."""

    def replay(  # noqa: PLR0913 - an option each
        self,
        queries: Query | Sequence[Query] | Mapping[str, Query],
        on_result: OnResult | None = None,
        *,
        params: Parameters = None,
        start: Time | None = None,
        end: Time | None = None,
        speed: Speed | None = None,
        lateness: Duration = "0 s",
    ) -> Replay:
        """Run queries as if live over the stored events of [start, end), of all their streams.

        Give one query, several, or several by name; all of them take the same `params`. All
        streams are merged under one clock, and the rows of an answer come once the clock has passed
        them, with the clock at which they came. Iterating over the replay yields them; `run` hands
        all of them to `on_result`. The end of the range completes what is still open. `speed`, such
        as "10x", is how much faster than real time event time goes; without it, the replay is as
        fast as it can be. Events appended meanwhile are not replayed.
        """
        from eventide.api.live.query import live_query
        from eventide.api.replay.pace import speed_of
        from eventide.api.replay.queries import replay_queries
        from eventide.api.stream import forward_range

        times, pace = forward_range(start, end), speed_of(speed)
        catalog = self.catalog()
        running: list[tuple[str, LiveQuery]] = []
        for name, query in named_queries(queries):
            text = str(query)
            plan = self.plan(text, params)
            # Here the range is the bound.
            with self.pointing(text), warnings.catch_warnings():
                warnings.simplefilter("ignore", UnboundedStateWarning)
                refuse_written(plan)
                stored = self.store.snapshots(stored_streams(plan))
                one = live_query(plan, catalog, None, lateness, text=text, sources=stored)
                running.append((name, one))
        names = dict.fromkeys(name for _, query in running for name in query.streams)
        snapshots = {name: self.store.stream(name).snapshot() for name in names}
        return replay_queries(running, snapshots, times, pace, on_result)

    def replay_events(
        self,
        *streams: str,
        start: Time | None = None,
        end: Time | None = None,
        columns: Sequence[str] | None = None,
        speed: Speed | None = None,
    ) -> Replay:
        """Replay the stored events of [start, end) of some streams, merged in order of time.

        The rows have `ts`, the `stream`, `_seq`, and the attributes of all streams, null where a
        stream has no such attribute. Events of the same time come in the order in which the
        streams are named here, those of one stream in order of arrival. For `speed` see `replay`.
        """
        from eventide.api.replay.events import replay_merged
        from eventide.api.replay.pace import speed_of
        from eventide.api.stream import forward_range

        times, pace = forward_range(start, end), speed_of(speed)
        snapshots = [self.store.stream(name).snapshot() for name in dict.fromkeys(streams)]
        return replay_merged(snapshots, times, columns, pace)


def named_queries(
    queries: Query | Sequence[Query] | Mapping[str, Query],
) -> list[tuple[str, Query]]:
    """Return queries with their names; the name of an unnamed query is its text."""
    from eventide.api.builder import Match

    if isinstance(queries, Mapping):
        return list(queries.items())
    several = [queries] if isinstance(queries, str | Match) else list(queries)
    return [(str(query), query) for query in several]
