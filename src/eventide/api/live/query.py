"""A live query: results as soon as they are complete, late events counted and kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from textwrap import shorten
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide.api.live.late import LateEvents
from eventide.api.result import Result
from eventide.api.stream import Time, instant
from eventide.engines.history.answer import Sources
from eventide.engines.live.engine import LiveEngine, Reported
from eventide.engines.live.start import started, with_relations
from eventide.engines.standing.choice import best_plan
from eventide.errors import (
    SchemaError,
    StateError,
    StateLimitError,
    UnsupportedError,
    listed,
    pointing_into,
)
from eventide.instants import START_OF_TIME_US, TimeRange, moment
from eventide.interrupts import STEPPED_AT_ONCE, interruptible, interruptible_if_long
from eventide.operators.operator import Size
from eventide.plan.times import Duration, duration_us
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS, Schema
from eventide.store.source import EventSource

if TYPE_CHECKING:
    from eventide.api.live.clocks.wall_time import WallTime
    from eventide.api.live.running import RunningStream

QUERY_SHOWN = 80
"""This many letters of a query's text identify it in messages."""

log = logging.getLogger("eventide.live")

OnResult = Callable[[Result], None]
Step = Callable[[], tuple[Any, Reported]]
WhyFull = Callable[[str, int], StateLimitError]
"""Gives the error for who remembers too much, and how many bytes."""


class LiveQuery:
    """A query that runs live over events that are handed to it.

    A query that meets a value without an answer, such as an overflow, or that remembers more than
    it may, cannot go on: it is finished, and `failure` says why.

    A standing query, over windows of one stream or several, can be asked for its answer at any
    time. Its clock is the least of the streams' watermarks, and the answer is as of the last
    instant before it; a stream that is silent holds it back until `advance`, or the wall clock of a
    query with `idle`, moves it on.
    """

    def __init__(
        self,
        engine: LiveEngine,
        on_result: OnResult | None = None,
        *,
        text: str = "",
    ) -> None:
        self.engine = engine
        self.on_result = on_result
        self.text = text
        self.state: Any = engine.initial_state()
        self.watermark_us = START_OF_TIME_US
        self.lates = {stream: LateEvents() for stream in engine.streams}
        self.finished = False
        self.failure: BaseException | None = None
        # The answer may be asked for while another thread appends.
        self.stepping = Lock()
        self.sources: Mapping[str, RunningStream] = {}
        """The derived streams that it reads, by name, as they run for all their readers."""
        self.wall_time: WallTime | None = None
        """What moves its streams when they fall silent, if that is wanted."""
        self.listens = False
        """Whether it has a wall time, or will have one as soon as it has begun."""

    def begin(self, stored: Sources, from_history: bool) -> None:
        """Let a query see what is stored: rows of relations, and events if asked for."""
        with pointing_into(self.text):
            begin = started if from_history else with_relations
            self.state = begin(self.engine, stored)
        self.watermark_us = self.state.clock_us

    @property
    def held(self) -> bool:
        """Whether it takes no events now."""
        return False

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams whose events the query reads."""
        return self.engine.streams

    @property
    def reads(self) -> dict[str, tuple[list[str], TimeRange]]:
        """The columns and times that are read of each stream."""
        return self.engine.reads

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of what is reported."""
        return self.engine.output_schema

    @property
    def late_count(self) -> int:
        """How many events came too late, of all streams."""
        return sum(late.count for late in self.lates.values())

    @property
    def late_counts(self) -> dict[str, int]:
        """How many events of each stream came too late."""
        return {stream: late.count for stream, late in self.lates.items()}

    def push(
        self, arrived: pa.RecordBatch, newest_us: int | None = None, *, stream: str | None = None
    ) -> Result:
        """Take events that have just arrived; return (and report) the results they complete.

        `stream` says whose they are, where a query reads several. `newest_us` is the newest time
        seen anywhere, where other streams share the clock. A query that is finished ignores them:
        the result is empty.
        """
        return self.take({self.named(stream): arrived}, newest_us)

    def take(self, arrived: Mapping[str, pa.RecordBatch], clock_us: int | None = None) -> Result:
        """Take events of one or several streams that have arrived together."""
        step = long_step(lambda: self.engine.take(self.state, arrived, clock_us), arrived)
        return self.go_on(step)

    def take_delivered(
        self, arrived: Mapping[str, pa.RecordBatch], reached: Mapping[str, int]
    ) -> Result:
        """Take events of the database, and instants before which all of a stream have come.

        A query that fails is over, and says why; who appended the events has no part in it.
        """

        def step() -> tuple[Any, Reported]:
            return self.engine.take(self.state, arrived, None, reached)

        try:
            return self.go_on(long_step(step, arrived))
        except Exception as error:
            log.error("a live query has failed: %s: %s", self.described(), error)
            return Result(self.output_schema.empty_table())

    def fail(self, why: BaseException) -> None:
        """End the query: it cannot go on."""
        with self.stepping:
            if self.finished:
                return
            self.finished, self.failure = True, why
        log.error("a live query has failed: %s: %s", self.described(), why)

    def give_up_most(self, why: WhyFull) -> None:
        """End the query, which remembers too much; `why` gives the error for a name and a size."""
        size = sum(size.bytes for _, size in self.sizes())
        self.fail(why(self.described(), size))

    def lose(self, stream: str, why: Exception) -> None:  # noqa: ARG002 - it is one of its streams
        """End the query: one of its streams cannot be read any more."""
        self.fail(why)

    @property
    def unused(self) -> bool:
        """Whether it runs for nobody."""
        return False

    def finish(self) -> Result:
        """Complete all that is open, as if the streams had ended.

        Later calls of `push` and `advance` are ignored.
        """
        return self.go_on(interruptible(lambda: self.engine.finish(self.state)), last=True)

    def advance(self, to: Time, stream: str | None = None) -> Result:
        """Declare that no event before a time will come, of one stream or of all.

        Results that become complete are reported without any event: windows end, silences are over,
        rows expire. Events that come nevertheless are late. A query that is finished ignores the
        call: as for `push`, the result is empty.
        """
        until_us = instant(to)
        if stream is not None:
            self.engine.check_stream(stream)
        return self.go_on(interruptible(lambda: self.engine.advance(self.state, until_us, stream)))

    def current(self, last: Duration | None = None) -> Result:
        """Return the answer of a standing query, as of the last instant before its clock.

        With `last`, such as "30 s", return the answer of the same query over windows only that
        long.
        """
        with self.stepping, pointing_into(self.text):
            standing = self.standing("asked for its current answer")
            last_us = None if last is None else duration_us(last)
            return Result(pa.Table.from_batches([standing.current(self.state, last_us)]))

    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """Return the size of the state: events that wait, and rows that operators keep.

        Operators have the names that `explain` gives them; those without state are left out.
        """
        with self.stepping:
            self.check_whole("asked what it remembers")
            return self.engine.sizes(self.state)

    def late(self, stream: str | None = None) -> Result:
        """Return the late events that are kept, with the columns that the query reads.

        For a query over several streams, return those of one stream; without its name, return only
        the `ts` and `_seq` of all late events.
        """
        if stream is None and len(self.streams) > 1:
            parts = [
                pa.table({"stream": [name] * len(rows), **{c: rows.column(c) for c in (TS, SEQ)}})
                for name, late in self.lates.items()
                for rows in late.kept
            ]
            fields = [("stream", pa.string()), (TS, pa.timestamp("us")), (SEQ, pa.int64())]
            return Result(pa.concat_tables([pa.schema(fields).empty_table(), *parts]))
        name = self.named(stream)
        kept = self.lates[name].kept
        return Result(pa.Table.from_batches(kept, self.engine.feed_schema(name)))

    def named(self, stream: str | None) -> str:
        """Return the stream that is meant; without a name, the only one."""
        if stream is None and len(self.streams) == 1:
            return self.streams[0]
        if stream not in self.streams:
            what = "no stream is named" if stream is None else f"the query does not read {stream!r}"
            raise SchemaError(what, hint=f"it reads {listed(self.streams)}")
        return stream

    def standing(self, what: str) -> LiveEngine:
        """Return the engine, if it is that of a standing query."""
        self.check_whole(what)
        if self.engine.tree.reporter is None:
            message = f"this query is not over windows that slide: it cannot be {what}"
            hint = "write FROM stream [RANGE 10 MINUTES] for an answer that holds at every instant"
            raise UnsupportedError(message, hint=hint)
        return self.engine

    def check_whole(self, what: str) -> None:
        """Refuse to look at a state that an interrupt left half changed."""
        if self.failure is not None and not isinstance(self.failure, Exception):
            message = f"this query was interrupted in the midst of a step: it cannot be {what}"
            raise StateError(message, hint="subscribe again")

    def described(self) -> str:
        """Return a few words that say which query it is."""
        return shorten(self.text or "query", QUERY_SHOWN, placeholder=" …")

    def __repr__(self) -> str:
        started = self.watermark_us != START_OF_TIME_US
        parts = [f"clock {moment(self.watermark_us)}" if started else "no clock yet"]
        if self.failure is None:
            rows = sum(size.tuples for _, size in self.sizes())
            parts.append(f"remembers {rows:,} row{'' if rows == 1 else 's'}")
        if self.finished:
            parts.append("finished" if self.failure is None else "failed")
        return f"<LiveQuery {self.described()}: {listed(self.streams)}; {', '.join(parts)}>"

    def go_on(self, step: Step, *, last: bool = False) -> Result:
        """Take a step, the `last` one or not; report the results that are complete."""
        with self.stepping:
            if self.finished:
                return Result(self.output_schema.empty_table())
            try:
                result = self.stepped(step)
                self.finished = last
            except BaseException as error:
                # Operators change their state in place, and the query has lost the events of
                # this step: after an interrupt, or when memory runs out, to go on would give
                # wrong answers.
                self.finished, self.failure = True, error
                if not isinstance(error, Exception):
                    error.add_note(f"interrupted in the midst of a step, it is over: {self!r}")
                raise
        if self.on_result is not None and len(result):
            self.on_result(result)
        return result

    def stepped(self, step: Step) -> Result:
        """Take a step: count and keep late events, return the results that are complete."""
        with pointing_into(self.text):
            self.state, reported = step()
        self.watermark_us = reported.watermark_us
        for stream, rows in reported.late.items():
            if rows.num_rows:
                self.lates[stream].add(rows)
        return Result(pa.Table.from_batches([reported.rows]))


def long_step(step: Step, arrived: Mapping[str, pa.RecordBatch]) -> Step:
    """Return a step that can be interrupted, if it takes many events."""
    count = sum(rows.num_rows for rows in arrived.values())
    return interruptible_if_long(step, count, STEPPED_AT_ONCE)


def live_query(
    plan: Plan,
    catalog: Mapping[str, Schema],
    on_result: OnResult | None,
    lateness: Duration,
    *,
    text: str = "",
    sources: Mapping[str, EventSource] | None = None,
) -> LiveQuery:
    """Return a live query that is fed by hand; its errors point into `text`.

    The plan is chosen by what is stored in its streams, or in others like them.
    """
    chosen = best_plan(plan, sources or {})
    engine = LiveEngine.of(chosen, catalog, duration_us(lateness))
    return LiveQuery(engine, on_result, text=text)
