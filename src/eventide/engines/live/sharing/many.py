"""Any live queries in one engine: those that can share run as one, the others run beside them.

Queries are known by their numbers, which ascend. They come and go between steps, and each answers
as if it ran alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeVar

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.engines.live.engine import (
    NOTHING_REACHED,
    Arrived,
    LiveEngine,
    LiveState,
    Reported,
)
from eventide.engines.live.feeds import FeedState, LiveFeed
from eventide.engines.live.sharing.engine import (
    SharedEngine,
    SharedQueries,
    SharedStep,
    shared_of,
)
from eventide.engines.live.sharing.run import StepCounts
from eventide.engines.live.sharing.turns import RefreshTurns
from eventide.engines.live.sharing.windows import RefreshDelays
from eventide.errors import StateLimitError
from eventide.instants import START_OF_TIME_US, TimeRange
from eventide.kernels.compiled import Int64s
from eventide.operators.operator import Size
from eventide.plan.sharing.portion import Portion
from eventide.plan.sharing.template import QUERY
from eventide.schema import Schema

Streams = frozenset[str]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ManyRows:
    """Rows of several queries with the same columns: `numbers` says whose each row is."""

    numbers: Int64s
    rows: pa.RecordBatch


@dataclass(slots=True)
class ManyStep:
    """What a step gave: rows, late events and for which queries they were late, failures."""

    rows: list[ManyRows] = field(default_factory=list)
    late: list[tuple[Mapping[str, pa.RecordBatch], Int64s]] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)

    def add_shared(self, step: SharedStep) -> None:
        """Add what a step of queries that share gave."""
        for each in step.rows:
            numbers = each.rows.column(QUERY).to_numpy()
            self.rows.append(ManyRows(numbers, each.rows.select(each.columns)))
        self.late += step.late
        self.failed |= step.failed


@dataclass(slots=True)
class Lone:
    """A query that runs by itself."""

    engine: LiveEngine
    state: LiveState
    done: StepCounts = field(default_factory=StepCounts)


@dataclass(frozen=True, slots=True)
class ManyFeeds:
    """How far the feeds of many queries are."""

    queries: ManyQueries

    @property
    def feeds(self) -> tuple[FeedState, ...]:
        """The state of each feed, without what waits."""
        return self.queries.feed_states


class ManyQueries:
    """Live queries by number, in whatever they share."""

    def __init__(
        self,
        catalog: Mapping[str, Schema],
        lateness_us: int = 0,
        max_lag_us: int | None = None,
        max_state_bytes: int | None = None,
        turns: RefreshTurns | None = None,
    ) -> None:
        self.turns = turns or RefreshTurns()
        """When refreshes of periodic queries are computed."""
        self.catalog = catalog
        self.lateness_us = lateness_us
        self.max_lag_us = max_lag_us
        self.max_state_bytes = max_state_bytes
        """How much all of them may remember."""
        self.shared: list[SharedQueries] = []
        self.lone: dict[int, Lone] = {}

    def __len__(self) -> int:
        return sum(map(len, self.shared)) + len(self.lone)

    @property
    def numbers(self) -> Int64s:
        """The numbers of all queries."""
        lone = np.array(list(self.lone), np.int64)
        return np.concatenate([lone, *(each.numbers for each in self.shared)])

    def add(self, portion: Portion, following: Mapping[str, int] = NOTHING_REACHED) -> None:
        """Let queries of a template begin now."""
        standing = portion.template.plan.standing is not None
        self.queries_over(portion.template.streams, standing=standing).add(portion, following)

    def queries_over(self, streams: Streams, *, standing: bool = False) -> SharedQueries:
        """Return the queries that share and read these streams, all of them; new ones may join."""
        for each in self.shared:
            alike = each.streams == streams and each.engine.shared.ends != standing
            if alike and each.engine.fits(self.catalog):
                return each
        engine = SharedEngine.over(
            streams,
            self.catalog,
            self.lateness_us,
            self.max_lag_us,
            standing=standing,
            turns=self.turns,
        )
        self.shared.append(SharedQueries(engine))
        return self.shared[-1]

    def add_lone(self, number: int, engine: LiveEngine, state: LiveState) -> None:
        """Let a query begin now that shares nothing, in the state that it begins with."""
        self.lone[number] = Lone(engine, state)

    def initial_state(self) -> ManyFeeds:
        """Return how far the feeds are, as a group of queries asks for it."""
        return ManyFeeds(self)

    def drop(self, numbers: Int64s) -> None:
        """Let queries go."""
        for number in numbers.tolist() if self.lone else ():
            self.lone.pop(number, None)
        for shared in self.shared:
            shared.drop(numbers)
        self.shared = [each for each in self.shared if len(each)]

    def readers(self, stream: str) -> Int64s:
        """Return the numbers of the queries that read a stream."""
        shared = [each.numbers for each in self.shared if stream in each.streams]
        lone = [number for number, each in self.lone.items() if stream in each.engine.streams]
        return np.concatenate([*shared, np.array(lone, np.int64)])

    @property
    def engines(self) -> Iterator[LiveEngine]:
        """The engines of all queries."""
        yield from (each.engine for each in self.shared)
        yield from (each.engine for each in self.lone.values())

    @property
    def states(self) -> Iterator[tuple[LiveEngine, LiveState]]:
        """All states, with their engines."""
        for shared in self.shared:
            yield from ((shared.engine, state) for state in shared.states)
        yield from ((each.engine, each.state) for each in self.lone.values())

    @property
    def schemas(self) -> Iterator[pa.Schema]:
        """The columns of the rows of each template, and of each query that runs by itself."""
        for shared in self.shared:
            yield from shared.engine.shared.schemas
        yield from (each.engine.output_schema for each in self.lone.values())

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that queries read."""
        return tuple(dict.fromkeys(name for engine in self.engines for name in engine.streams))

    @property
    def feeds(self) -> tuple[LiveFeed, ...]:
        """One feed for each stream; a relation if all that read it take it for one."""
        found: dict[str, LiveFeed] = {}
        for feed in (feed for engine in self.engines for feed in engine.feeds):
            known = found.get(feed.stream)
            if known is None or known.relation:
                found[feed.stream] = feed
        return tuple(found.values())

    def newest_us(self, stream: str) -> int:
        """Return the newest time of a stream that all queries have seen."""
        shared = [each.newest_us(stream) for each in self.shared if stream in each.streams]
        lone = [
            held.newest_us
            for each in self.lone.values()
            for feed, held in zip(each.engine.feeds, each.state.feeds, strict=True)
            if feed.stream == stream
        ]
        return min([*shared, *lone], default=START_OF_TIME_US)

    def marks(self, state: ManyFeeds) -> dict[str, int]:  # noqa: ARG002 - it is at hand
        """Return the least watermark of each stream that a query waits for."""
        found: dict[str, int] = {}
        for engine, own in self.states:
            for stream, mark_us in engine.marks(own).items():
                found[stream] = min(mark_us, found.get(stream, mark_us))
        return found

    @property
    def moved_to(self) -> dict[str, int]:
        """The instants to which streams were moved without events, by stream."""
        found: dict[str, int] = {}
        for engine, state in self.states:
            for feed, held in zip(engine.feeds, state.feeds, strict=True):
                if held.advanced_us != START_OF_TIME_US:
                    known = found.get(feed.stream, held.advanced_us)
                    found[feed.stream] = max(known, held.advanced_us)
        return found

    @property
    def feed_states(self) -> tuple[FeedState, ...]:
        """How far each feed is."""
        return tuple(
            FeedState(no_rows(feed.schema), self.newest_us(feed.stream)) for feed in self.feeds
        )

    @property
    def reads(self) -> dict[str, tuple[list[str], TimeRange]]:
        """The columns and times that are read of each stream."""
        found: dict[str, tuple[list[str], TimeRange]] = {}
        for engine in self.engines:
            for stream, (names, period) in engine.reads.items():
                known, hull = found.get(stream, ([], period))
                hull = TimeRange(
                    min(hull.start_us, period.start_us), max(hull.end_us, period.end_us)
                )
                found[stream] = list(dict.fromkeys((*known, *names))), hull
        return found

    @property
    def clock_us(self) -> int:
        """The least clock of all queries that have one."""
        clocks = [clock_us for each in self.shared for clock_us in each.clocks]
        clocks += [each.state.clock_us for each in self.lone.values()]
        return min((each for each in clocks if each != START_OF_TIME_US), default=START_OF_TIME_US)

    def take(self, arrived: Arrived, reached: Mapping[str, int] = NOTHING_REACHED) -> ManyStep:
        """Take events of some streams that have arrived together."""
        with self.turns.step(lambda: self.clock_us):
            return self.taken(arrived, reached)

    def taken(self, arrived: Arrived, reached: Mapping[str, int]) -> ManyStep:
        """Take events of some streams."""
        found = ManyStep()
        for shared in self.shared:
            own = restricted(arrived, shared.streams)
            instants = restricted(reached, shared.streams)
            if own or instants:
                found.add_shared(shared.take(own, instants))
        for number, lone in list(self.lone.items()):
            own = restricted(arrived, lone.engine.streams)
            instants = restricted(reached, lone.engine.streams)
            if own or instants:
                step = partial(lone.engine.take, arrived=own, reached=instants)
                count = sum(rows.num_rows for rows in own.values())
                self.step_lone(found, number, step, count)
        self.keep_small(found)
        return found

    def advance(self, until_us: int, stream: str | None = None) -> ManyStep:
        """Move a stream, or all of them, to a time."""
        with self.turns.step(lambda: self.clock_us):
            return self.advanced(until_us, stream)

    def refresh(self, *, every: bool = False) -> ManyStep:
        """Compute refreshes that wait for their turn: every one, or as there is time."""
        found = ManyStep()
        self.turns.nothing_waits = every
        try:
            with self.turns.step(lambda: self.clock_us):
                for shared in self.shared:
                    found.add_shared(shared.refresh())
        finally:
            self.turns.nothing_waits = False
        self.keep_small(found)
        return found

    @property
    def delays(self) -> RefreshDelays | None:
        """How late refreshes were, and how many were left out; None if there are none."""
        windows = [each for shared in self.shared for each in shared.windows]
        own = [each.delays for each in windows if each.node.refreshes]
        return RefreshDelays.of_all(own) if own else None

    @property
    def waiting(self) -> int:
        """How many queries have a refresh that waits for its turn."""
        return sum(each.waiting for each in self.shared)

    def advanced(self, until_us: int, stream: str | None) -> ManyStep:
        """Move a stream, or all of them."""
        found = ManyStep()
        for shared in self.shared:
            if stream is None or stream in shared.streams:
                found.add_shared(shared.advance(until_us, stream))
        for number, lone in list(self.lone.items()):
            if stream is None or stream in lone.engine.streams:
                step = partial(lone.engine.advance, until_us=until_us, stream=stream)
                self.step_lone(found, number, step)
        self.keep_small(found)
        return found

    def settle(self) -> ManyStep:
        """Do what was put off, as before states are written; queries for which it fails leave."""
        found = ManyStep()
        for shared in self.shared:
            found.failed |= shared.settle()
        return found

    def finish(self) -> ManyStep:
        """Complete all that is open: no event will follow."""
        found = ManyStep()
        for shared in self.shared:
            found.add_shared(shared.finish())
        for number, lone in list(self.lone.items()):
            self.step_lone(found, number, lone.engine.finish)
        return found

    def keep_small(self, found: ManyStep) -> None:
        """Let the queries go that remember most, until the others remember no more than they may.

        Those of a template go together: what they remember is in one place.
        """
        if self.max_state_bytes is None:
            return
        total = self.nbytes
        while total > self.max_state_bytes and len(self):
            numbers, most = self.give_up_most()
            alike = "this query" if len(numbers) == 1 else f"{len(numbers):,} queries like this one"
            message = (
                f"the queries remember {total:,} bytes, more than the {self.max_state_bytes:,} "
                f"that they may together, most of it, {most:,} bytes, for {alike}"
            )
            hint = "a shorter window, fewer queries or a larger max_state_bytes would help"
            error = StateLimitError(message, hint=hint)
            found.failed |= dict.fromkeys(numbers.tolist(), error)
            total = self.nbytes

    def give_up_most(self) -> tuple[Int64s, int]:
        """Let the queries go that together remember most; return them, and how many bytes."""
        numbers, most = max(self.heaviest(), key=lambda each: each[1])
        self.drop(numbers)
        for shared in self.shared:
            shared.forget_gone()
            shared.compact()
        return numbers, most

    def heaviest(self) -> Iterator[tuple[Int64s, int]]:
        """Yield queries that remember something together, and how many bytes."""
        for shared in self.shared:
            for state in shared.states:
                yield from shared.engine.shared.by_template(shared_of(state))
        for number, lone in self.lone.items():
            size = sum(size.bytes for _, size in lone.engine.sizes(lone.state))
            yield np.array([number], np.int64), size

    @property
    def nbytes(self) -> int:
        """How much all queries remember."""
        return sum(size.bytes for _, size in self.sizes())

    def step_lone(
        self,
        found: ManyStep,
        number: int,
        step: Callable[[LiveState], tuple[LiveState, Reported]],
        events: int = 0,
    ) -> None:
        """Take a step of a query that runs by itself; if it fails, it leaves."""
        lone, started = self.lone[number], perf_counter()
        try:
            lone.state, reported = step(lone.state)
        except Exception as error:
            del self.lone[number]
            found.failed[number] = error
            return
        rows = reported.rows
        lone.done.add(perf_counter() - started, events, rows.num_rows)
        if rows.num_rows:
            found.rows.append(ManyRows(np.full(rows.num_rows, number, np.int64), rows))
        if reported.late:
            found.late.append((reported.late, np.array([number], np.int64)))

    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """Return how much is remembered, and for what."""
        found = [each for shared in self.shared for each in shared.sizes()]
        for lone in self.lone.values():
            found += lone.engine.sizes(lone.state)
        return tuple(found)


def restricted(values: Mapping[str, Value], names: Iterable[str]) -> dict[str, Value]:
    """Return the values of some streams."""
    return {name: values[name] for name in names if name in values}
