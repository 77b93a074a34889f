"""Run a plan over events as they arrive: several streams, each with a watermark, under one clock.

    cars    a@10  b@20                 watermark 20 - lateness
    trucks  c@12         d@15          watermark 15 - lateness
    clock   the least of the watermarks: every event before it has come

Events before the clock go through the operators, in order of time; an event that comes behind it is
late. The changes of a relation wait for the clock like events, but do not hold it back: a relation
without changes is not a stream that has fallen silent. `advance` moves a silent stream on; when and
to which instants, silence.py decides by a wall clock.
"""

from __future__ import annotations

import struct
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.engines.build import build_live_tree
from eventide.engines.live.feeds import (
    FeedState,
    LiveFeed,
    accepted,
    check_in_order,
    check_present,
    feeds_of,
    rest_of,
    watermark,
    within,
)
from eventide.engines.live.late_windows import Late, LateWay, late_ways, split_late
from eventide.engines.partitioning import bucket_keys
from eventide.errors import (
    PlanError,
    SchemaError,
    StateLimitError,
    UnboundedStateWarning,
    UnsupportedError,
    listed,
)
from eventide.ingest.ordering import times
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.operators.checking import require_instant
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted
from eventide.operators.envelope import QUERY, Owner
from eventide.operators.key_layers import ready
from eventide.operators.operator import Size
from eventide.operators.standing.answer.report import Reporter
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful, columns_text
from eventide.operators.tree import OperatorTree, States
from eventide.plan.bounds import unbounded_reasons
from eventide.plan.explain import explain
from eventide.plan.meaning import digest_of
from eventide.plan.standing.elastic import shortened_by
from eventide.plan.standing.execution import Execution
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan
from eventide.schema import Schema

_NAME = "Arrivals"
HOW_TO_RESUME = (
    "go on with the query and the settings that wrote it; of the plans that a query may have, "
    "engines.standing.resume.resumed finds the one that wrote a state"
)

Arrived = Mapping[str, pa.RecordBatch]
"""Events that have arrived, by stream."""
NOTHING_REACHED: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class LiveState:
    """The state of a live query."""

    feeds: tuple[FeedState, ...]
    clock_us: int
    operators: States
    past_us: int = START_OF_TIME_US
    """Changes before this, and before the first event, are not reported: the query began with them.
    """

    def with_feeds(self, feeds: tuple[FeedState, ...]) -> LiveState:
        """Return the same state with other feeds."""
        return LiveState(feeds, self.clock_us, self.operators, self.past_us)

    def stands_like(self, other: LiveState) -> bool:
        """Whether another state is at the same time, and the same events wait in it."""
        feeds = zip(self.feeds, other.feeds, strict=True)
        return (self.clock_us, self.past_us) == (other.clock_us, other.past_us) and all(
            own.stands_like(its) for own, its in feeds
        )


@dataclass(frozen=True, slots=True)
class Reported:
    """The result of a step of a live query: rows, and late events by stream."""

    rows: pa.RecordBatch
    late: Mapping[str, pa.RecordBatch]
    watermark_us: int


@dataclass(frozen=True)
class LiveEngine(Stateful[LiveState]):
    """A tree of operators behind the streams it reads: configuration only, the state travels."""

    plan: Plan
    tree: OperatorTree
    feeds: tuple[LiveFeed, ...]
    lateness_us: int = 0
    max_state_bytes: int | None = None
    max_lag_us: int | None = None
    """A stream that is further behind the furthest one, in event time, is not waited for."""
    late_ways: tuple[LateWay, ...] | None = None
    """The way from each leaf to its windows, if late events are taken by window."""

    def __post_init__(self) -> None:
        if self.lateness_us < 0:
            message = f"lateness must not be negative, got {self.lateness_us} us"
            raise PlanError(message)

    @classmethod
    def of(  # noqa: PLR0913 - an option each
        cls,
        plan: Plan,
        catalog: Mapping[str, Schema],
        lateness_us: int = 0,
        *,
        execution: Execution = "aware",
        max_state_bytes: int | None = None,
        max_lag_us: int | None = None,
        late: Late = "watermark",
    ) -> LiveEngine:
        """Build the engine of a plan; `UnsupportedError` if it cannot run live."""
        by_window = late == "window"
        tree = build_live_tree(plan, execution, late_windows=by_window)
        ways = late_ways(tree) if by_window else None
        feeds = feeds_of(tree, catalog)
        live = cls(plan, tree, feeds, lateness_us, max_state_bytes, max_lag_us, ways)
        for reason in unbounded_reasons(plan) if max_state_bytes is None else ():
            warnings.warn(reason, UnboundedStateWarning, stacklevel=frames_of_ours())
        # Kernels are compiled now, not while the first event waits.
        nothing = [no_rows(leaf.schema) for leaf in tree.leaves]
        tree.step(tree.initial_state(), tuple(nothing), 0)
        if bucket_keys(plan) is not None:
            ready()
        return live

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: the plan, how it runs, what it reads, and how time goes."""
        facts = {QUERY: explain(self.plan)}
        how: tuple[object, ...] = ()
        if self.tree.reporter is not None:
            how = (self.tree.reporter.execution, self.tree.reporter.keeps_answer)
            facts["execution"] = self.tree.reporter.execution
        if self.late_ways is not None:
            how = (*how, "late by window")
            facts["late"] = "by window"
        facts |= {f"columns of {each.stream}": columns_text(each.schema) for each in self.feeds}
        facts["lateness"] = format_duration(self.lateness_us)
        lag_us = self.max_lag_us
        facts["max lag"] = "none" if lag_us is None else format_duration(lag_us)
        digest = digest_of(self.plan, how, self.feeds, self.lateness_us, self.max_lag_us)
        owner = Owner("a live query", digest, facts)
        return owner if self.tree.reporter is None else replace(owner, hint=HOW_TO_RESUME)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The streams whose events the query reads."""
        return tuple(dict.fromkeys(feed.stream for feed in self.feeds))

    @property
    def reads(self) -> dict[str, tuple[list[str], TimeRange]]:
        """The columns and times that are read of each stream."""
        found: dict[str, tuple[list[str], TimeRange]] = {}
        for feed in self.feeds:
            periods = [self.tree.leaves[leaf].scan.time_range for leaf in feed.leaves]
            names, known = found.get(feed.stream, ([], periods[0]))
            hull = TimeRange(
                min(known.start_us, *(each.start_us for each in periods)),
                max(known.end_us, *(each.end_us for each in periods)),
            )
            found[feed.stream] = list(dict.fromkeys((*names, *feed.schema.names))), hull
        return found

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of what is reported."""
        return self.tree.output_schema

    def initial_state(self) -> LiveState:
        """Return the state before the first event."""
        feeds = tuple(FeedState(no_rows(feed.schema)) for feed in self.feeds)
        return LiveState(feeds, START_OF_TIME_US, self.tree.initial_state())

    @property
    def stream(self) -> str:
        """The only stream, of a query that reads one."""
        (stream,) = self.streams
        return stream

    def push(
        self, state: LiveState, arrived: pa.RecordBatch, clock_us: int | None = None
    ) -> tuple[LiveState, Reported]:
        """Take events of the only stream, in the order of their arrival; see `take`."""
        return self.take(state, {self.stream: arrived}, clock_us)

    def take(
        self,
        state: LiveState,
        arrived: Arrived,
        clock_us: int | None = None,
        reached: Mapping[str, int] = NOTHING_REACHED,
    ) -> tuple[LiveState, Reported]:
        """Take events of some streams that have arrived together.

        `clock_us` is the time that all streams have reached, where they share a clock. `reached`
        are instants before which all events of a stream have come, by stream. Events that arrive
        together do not make each other late.
        """
        if clock_us is not None:
            state = self.moved(state, clock_us - self.lateness_us)
        for stream, until_us in reached.items():
            state = self.moved(state, until_us, stream)
        return self.take_by_feed(state, self.by_feed(arrived), {})

    def take_last(
        self, state: LiveState, arrived: Arrived, newest_us: Mapping[str, int]
    ) -> tuple[LiveState, Reported]:
        """Take the last events of some streams, and the newest time of any event below them."""
        newest = {
            number: newest_us[feed.stream]
            for number, feed in enumerate(self.feeds)
            if feed.stream in newest_us
        }
        return self.take_by_feed(state, self.by_feed(arrived), newest)

    def by_feed(self, arrived: Arrived) -> dict[int, pa.RecordBatch]:
        """Return events by the number of their feed, with the columns that are read."""
        return {
            number: self.columns_read(number, arrived[feed.stream])
            for number, feed in enumerate(self.feeds)
            if feed.stream in arrived
        }

    def columns_read(self, number: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that a feed reads, unless the events no longer have them."""
        feed, present = self.feeds[number], rows.schema
        if present.equals(feed.schema):
            return rows
        if not present.equals(self.checked.get(number, feed.schema)):
            check_present(feed.schema, present, feed.stream)
            self.checked[number] = present
        return rows.select(feed.schema.names)

    @cached_property
    def checked(self) -> dict[int, pa.Schema]:
        """The columns that the events of each feed had lately: checked when they change."""
        return {}

    @cached_property
    def nothing(self) -> pa.RecordBatch:
        """A report without rows."""
        return no_rows(self.output_schema)

    def complete_until(self, state: LiveState) -> int:
        """Return the instant before which all rows of the query have been reported."""
        return self.tree.reached(state.operators, state.clock_us)

    def take_by_feed(
        self,
        state: LiveState,
        arrived: Mapping[int, pa.RecordBatch],
        newest_us: Mapping[int, int],
    ) -> tuple[LiveState, Reported]:
        """Take events by the number of their feed.

        `newest_us` is the newest time of a feed that was seen anywhere: these arrivals may be
        only a part of what came.
        """
        late: dict[str, pa.RecordBatch] = {}
        feeds = list(state.feeds)
        for number, rows in arrived.items():
            feeds[number], too_late = accepted(feeds[number], rows, state.clock_us)
            if too_late.num_rows and self.late_ways is not None:
                feeds[number], too_late = self.taken_late(state, number, feeds[number], too_late)
            if too_late.num_rows:
                late[self.feeds[number].stream] = too_late
        for number, newest in newest_us.items():
            held = feeds[number]
            feeds[number] = replace(held, newest_us=max(held.newest_us, newest))
        after = state.with_feeds(tuple(feeds))
        after, rows = self.run_until(after, self.clock_of(after))
        return after, Reported(rows, late, after.clock_us)

    def taken_late(
        self, state: LiveState, number: int, held: FeedState, late: pa.RecordBatch
    ) -> tuple[FeedState, pa.RecordBatch]:
        """Return a feed with the late events that a window takes, and the other ones."""
        assert self.late_ways is not None
        ways = [(leaf, self.late_ways[leaf]) for leaf in self.feeds[number].leaves]
        taken, late = split_late(self.tree, ways, state.operators, late, state.clock_us)
        return held.holding(concat_batches([taken, held.waiting], taken.schema)), late

    def advance(
        self, state: LiveState, until_us: int, stream: str | None = None
    ) -> tuple[LiveState, Reported]:
        """Move a stream, or all of them, to a time: no earlier event will come."""
        if stream is not None:
            self.check_stream(stream)
        after = self.moved(state, until_us, stream)
        after, rows = self.run_until(after, self.clock_of(after))
        return after, Reported(rows, {}, after.clock_us)

    def moved(self, state: LiveState, until_us: int, stream: str | None = None) -> LiveState:
        """Return the state with a stream, or all of them, at a time or behind it."""
        feeds = tuple(
            replace(held, advanced_us=max(held.advanced_us, until_us))
            if stream in (None, feed.stream)
            else held
            for feed, held in zip(self.feeds, state.feeds, strict=True)
        )
        return state.with_feeds(feeds)

    def finish(self, state: LiveState) -> tuple[LiveState, Reported]:
        """Complete all that is open: no event will follow.

        An answer that holds at every instant is that of the newest event of all streams.
        """
        after, rows = self.run_until(state, self.end_of(state))
        return after, Reported(rows, {}, after.clock_us)

    def end_of(self, state: LiveState) -> int:
        """Return the instant to which a query runs when no event will follow."""
        if self.tree.ends:
            return END_OF_TIME_US
        seen = [held.newest_us for held in state.feeds if held.newest_us != START_OF_TIME_US]
        return max([state.clock_us, *(newest_us + 1 for newest_us in seen)])

    def marks(self, state: LiveState) -> dict[str, int]:
        """Return the watermark of each stream that the clock waits for."""
        return {feed.stream: mark_us for feed, mark_us in self.marks_by_feed(state)}

    def marks_by_feed(self, state: LiveState) -> list[tuple[LiveFeed, int]]:
        """Return the feeds that the clock waits for, with their watermarks."""
        return [
            (feed, watermark(held, self.lateness_us))
            for feed, held in zip(self.feeds, state.feeds, strict=True)
            if feed.holds_back
        ]

    def clock_of(self, state: LiveState) -> int:
        """Return the instant before which every event has come."""
        marks = [mark_us for _, mark_us in self.marks_by_feed(state)]
        if min(marks) == END_OF_TIME_US:
            return self.end_of(state)
        furthest_us = START_OF_TIME_US if self.max_lag_us is None else max(marks) - self.max_lag_us
        return max(state.clock_us, min(marks), furthest_us)

    def run_until(self, state: LiveState, clock_us: int) -> tuple[LiveState, pa.RecordBatch]:
        """Send the events before the clock through the operators; late ones are behind it."""
        if clock_us <= state.clock_us and not self.takes_late(state):
            return state, self.nothing
        leaving: list[pa.RecordBatch] = []
        feeds: list[FeedState] = []
        for held in state.feeds:
            ready = int(times(held.waiting).searchsorted(clock_us))
            leaving.append(held.waiting.slice(0, ready))
            feeds.append(held.holding(rest_of(held.waiting, ready)))
        operators, border_us = state.operators, state.past_us
        if clock_us == END_OF_TIME_US:
            operators = self.tree.knowing(operators, self.newest_by_leaf(state))
        if border_us > state.clock_us:
            border_us = self.end_of_past(state, leaving, clock_us)
        if border_us > state.clock_us:
            cuts = [int(np.searchsorted(times(rows), border_us)) for rows in leaving]
            before = [rows.slice(0, cut) for rows, cut in zip(leaving, cuts, strict=True)]
            operators, _ = self.tree.step(operators, self.by_leaf(before), border_us)
            leaving = [rows.slice(cut) for rows, cut in zip(leaving, cuts, strict=True)]
        operators, reported = self.tree.step(operators, self.by_leaf(leaving), clock_us)
        after = LiveState(tuple(feeds), clock_us, operators)
        self.check_size(after)
        return after, reported

    def newest_by_leaf(self, state: LiveState) -> list[int]:
        """Return the newest time of each leaf that was seen anywhere."""
        newest = {
            leaf: held.newest_us
            for feed, held in zip(self.feeds, state.feeds, strict=True)
            for leaf in feed.leaves
        }
        return [newest[leaf] for leaf in range(len(newest))]

    def takes_late(self, state: LiveState) -> bool:
        """Whether late events wait that windows take."""
        return self.late_ways is not None and any(
            held.waiting.num_rows and times(held.waiting)[0] < state.clock_us
            for held in state.feeds
        )

    def end_of_past(
        self, state: LiveState, leaving: Sequence[pa.RecordBatch], clock_us: int
    ) -> int:
        """Return the instant up to which nothing is reported: the query began with that."""
        begun = [
            int(times(rows)[0])
            for feed, rows in zip(self.feeds, leaving, strict=True)
            if feed.holds_back and rows.num_rows
        ]
        return min([state.past_us, clock_us, *begun])

    def by_leaf(self, rows: Sequence[pa.RecordBatch]) -> tuple[pa.RecordBatch, ...]:
        """Return the events of each feed as those of each window."""
        found = []
        for feed, time_range, names in self.wanted:
            events = rows[feed]
            if time_range is not None:
                events = within(events, time_range)
            found.append(events.select(names))
        return tuple(found)

    @cached_property
    def wanted(self) -> list[tuple[int, TimeRange | None, list[str]]]:
        """The feed of each leaf, and the times, if not all, and columns that it wants of it."""
        feed_of = {leaf: place for place, feed in enumerate(self.feeds) for leaf in feed.leaves}
        ranges = [leaf.scan.time_range for leaf in self.tree.leaves]
        return [
            (feed_of[place], None if ranges[place] == ALL_TIME else ranges[place], names)
            for place, names in enumerate(leaf.schema.names for leaf in self.tree.leaves)
        ]

    def current(self, state: LiveState, last_us: int | None = None) -> pa.RecordBatch:
        """Return the answer as of the instant before the clock.

        With `last_us`, as if all windows were that long.
        """
        reporter = self.reporter
        sooner_us = 0 if last_us is None else shortened_by(self.plan, last_us)
        if not reporter.keeps_answer:
            word = reporter.report.upper()
            message = (
                f"the answer to this {word} is not kept: its rows never go, it would only grow"
            )
            hint = f"keep what is reported, leave {word} out, or write [RANGE 1 HOUR] for a window"
            raise UnsupportedError(message, hint=hint)
        if state.clock_us == START_OF_TIME_US:
            return no_rows(reporter.answer_schema)
        return self.tree.current(state.operators, sooner_us)

    @property
    def reporter(self) -> Reporter:
        """What keeps the answer of a standing query."""
        if self.tree.reporter is None:
            message = "this query is not over windows that slide: it has no answer at an instant"
            hint = "write FROM stream [RANGE 10 MINUTES] for an answer that holds at every instant"
            raise UnsupportedError(message, hint=hint)
        return self.tree.reporter

    def sizes(self, state: LiveState) -> tuple[tuple[str, Size], ...]:
        """Return how much each operator remembers, and how many events wait for the clock."""
        waiting = [
            (f"{feed.stream}, waiting", Size(held.waiting.num_rows, held.waiting.nbytes))
            for feed, held in zip(self.feeds, state.feeds, strict=True)
        ]
        return (*waiting, *self.tree.sizes(state.operators))

    def check_size(self, state: LiveState) -> None:
        """Refuse to go on if the state is larger than it may be."""
        if self.max_state_bytes is None:
            return
        sizes = self.sizes(state)
        total = sum(size.bytes for _, size in sizes)
        if total <= self.max_state_bytes:
            return
        name, most = max(sizes, key=lambda each: each[1].bytes)
        message = (
            f"the query remembers {total:,} bytes, more than the {self.max_state_bytes:,} it may: "
            f"most of it, {most.bytes:,} bytes for {most.tuples:,} tuples, is for {name}"
        )
        hint = "a shorter window, SLIDE, fewer columns or a larger max_state_bytes would help"
        raise StateLimitError(message, hint=hint)

    def feed_schema(self, stream: str) -> pa.Schema:
        """Return the columns that are read of a stream."""
        return next(feed.schema for feed in self.feeds if feed.stream == stream)

    def check_stream(self, stream: str) -> None:
        """Refuse a stream that the query does not read."""
        if stream not in self.streams:
            message = f"the query does not read {stream!r}"
            raise SchemaError(message, hint=f"it reads {listed(self.streams)}")

    def of_keys(self, state: LiveState, wanted: Wanted) -> LiveState:
        """Return the state of some queries; the events that wait are for all of them."""
        return replace(state, operators=self.tree.of_keys(state.operators, wanted))

    def united(self, state: LiveState, other: LiveState) -> LiveState:
        """Return the state of the queries of both, which have seen the same of all streams."""
        if not state.stands_like(other):
            message = "two states of a live query that have not seen the same cannot be united"
            raise UnsupportedError(message, hint="bring both to the same events and clock first")
        return replace(state, operators=self.tree.united(state.operators, other.operators))

    def write(self, state: LiveState) -> bytes:
        """Write the state out."""
        feeds = [
            write_rows(
                _NAME,
                held.waiting,
                {"newest_us": held.newest_us, "advanced_us": held.advanced_us},
            )
            for held in state.feeds
        ]
        facts = struct.pack("<qq", state.clock_us, state.past_us)
        return join_parts([facts, *feeds, self.tree.write(state.operators)])

    def read(self, written: bytes) -> LiveState:
        """Read back what `write` wrote."""
        facts, *held, operators = parts_of("the query", written, 2 + len(self.feeds))
        clock_us, past_us = struct.unpack("<qq", facts)
        require_instant(clock_us, "the clock")
        feeds = []
        for feed, part in zip(self.feeds, held, strict=True):
            waiting, marks = read_rows(_NAME, part, feed.schema)
            check_in_order(waiting)
            newest_us, advanced_us = marks["newest_us"], marks["advanced_us"]
            require_instant(newest_us, f"the newest time of {feed.stream}")
            require_instant(advanced_us, f"the time that {feed.stream} was advanced to")
            feeds.append(FeedState(waiting, newest_us, advanced_us))
        return LiveState(tuple(feeds), clock_us, self.tree.read(operators), past_us)


def frames_of_ours() -> int:
    """Return the number of the frame that called Eventide: that is where a warning belongs."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("eventide."):
        frame, level = frame.f_back, level + 1
    return level
