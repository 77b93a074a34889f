"""Replay through live queries: their answers come as they would have come live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from eventide.api.live.query import LiveQuery, OnResult
from eventide.api.replay.pace import Speed
from eventide.api.replay.run import Replay
from eventide.errors import EvaluationError
from eventide.instants import TimeRange
from eventide.store import Snapshot


class StandingQueries:
    """Queries that are fed with the events of their streams, all under the same clock."""

    def __init__(self, queries: Sequence[tuple[str, LiveQuery]]) -> None:
        self.queries = queries

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """The columns of each query's rows."""
        return {name: query.output_schema for name, query in self.queries}

    def take(
        self, rows: Mapping[str, pa.RecordBatch], clock_us: int
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield the results that the events or the time that passed complete; queries in order."""
        for name, query in self.queries:
            own = {stream: rows[stream] for stream in query.streams}
            yield name, query.take(own, clock_us).to_arrow()

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the results that the end completes."""
        for name, query in self.queries:
            yield name, query.finish().to_arrow()


def replay_queries(
    queries: Sequence[tuple[str, LiveQuery]],
    snapshots: Mapping[str, Snapshot],
    times: TimeRange,
    speed: Speed | None,
    on_result: OnResult | None,
) -> Replay:
    """Return the replay of what queries read, each stream with no more columns than they need."""
    if not queries:
        message = "there is no query to replay events through"
        raise EvaluationError(message, hint="db.replay_events(…) replays events without any")
    sources = []
    for name, snapshot in snapshots.items():
        reads = [query.reads[name] for _, query in queries if name in query.reads]
        columns = dict.fromkeys(each for names, _ in reads for each in names)
        hull = hull_of([period for _, period in reads])
        sources.append((snapshot, list(columns), times.intersect(hull)))
    return Replay(sources, StandingQueries(queries), speed=speed, on_result=on_result)


def hull_of(periods: Sequence[TimeRange]) -> TimeRange:
    """Return the shortest period that contains all given ones."""
    return TimeRange(min(each.start_us for each in periods), max(each.end_us for each in periods))
