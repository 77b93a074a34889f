"""A live query: results as soon as they are complete, late events counted and kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from textwrap import shorten
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.result import Result
from eventide.api.stream import Time, instant
from eventide.engines.history.answer import Sources
from eventide.engines.live.engine import NOTHING_REACHED, LiveEngine, Reported
from eventide.engines.live.start import started, with_relations
from eventide.errors import SchemaError, StateError, UnsupportedError, listed, pointing_into
from eventide.instants import START_OF_TIME_US, TimeRange, moment
from eventide.interrupts import STEPPED_AT_ONCE, interruptible, interruptible_if_long
from eventide.operators.operator import Size
from eventide.plan.times import Duration, duration_us
from eventide.schema import SEQ, TS

if TYPE_CHECKING:
    from eventide.api.running import EmittedRows, RunningStream

LATE_ROWS_KEPT = 100_000
"""Late events are always counted; this many of the newest are kept."""

LATE_ROWS_TOGETHER = 1_000
"""Late events are put together in batches of this many."""

QUERY_SHOWN = 80
"""This many letters of a query's text identify it in messages."""

OnResult = Callable[[Result], None]
Step = Callable[[], tuple[Any, Reported]]


class Upstream(Protocol):
    """What moves the derived streams that a live query reads."""

    def advance(self, query: LiveQuery, until_us: int, stream: str | None) -> Result | None:
        """Move the streams of a query on; return its results, None if they come later."""
        ...

    def leave(self, query: LiveQuery) -> Mapping[str, EmittedRows]:
        """Deliver nothing more to a query; return how its derived streams would end, by name."""
        ...


class LateEvents:
    """Late events of a stream: all are counted, the newest ones are kept."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: deque[pa.RecordBatch] = deque()
        self.kept_rows = 0

    def add(self, late: pa.RecordBatch) -> None:
        """Count late events, and keep them in place of the oldest ones."""
        self.count += late.num_rows
        self.kept_rows += late.num_rows
        if self.kept and len(self.kept[-1]) + late.num_rows <= LATE_ROWS_TOGETHER:
            # Each batch takes about a kilobyte beside its rows, and events may come one by one.
            late = pa.concat_batches([self.kept.pop(), late])
        self.kept.append(late)
        while self.kept_rows - len(self.kept[0]) >= LATE_ROWS_KEPT:
            self.kept_rows -= len(self.kept.popleft())


class LiveQuery:
    """A query that runs live; `Database.subscribe` makes it.

    A query that meets a value without an answer, such as an overflow, or that remembers more than
    it may, cannot go on: it is finished, and `failure` says why.

    A standing query, over windows of one stream or several, can be asked for its answer at any
    time. Its clock is the least of the streams' watermarks, and the answer is as of the last
    instant before it; a stream that is silent holds it back until `advance` moves it on.
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
        self.first_seq: Mapping[str, int] = {}
        """Events with lower numbers were part of the history the query began with."""
        self.lates = {stream: LateEvents() for stream in engine.streams}
        self.finished = False
        self.failure: BaseException | None = None
        # The answer may be asked for while another thread appends.
        self.stepping = Lock()
        self.delivered = 0
        """The number of the last arrival that the database handed over."""
        self.catch_up: Callable[[], None] = lambda: None
        """Delivers what an interrupted append left waiting."""
        self.sources: Mapping[str, RunningStream] = {}
        """The derived streams that it reads, by name, as they run for all their readers."""
        self.upstream: Upstream | None = None
        """How it moves and leaves these streams."""

    def begin(self, stored: Sources, fresh: Mapping[str, int], from_history: bool) -> Self:
        """Let a query see what is stored: rows of relations, and events if asked for.

        `fresh` is the number of each stream's next event; earlier ones are not taken again.
        """
        with pointing_into(self.text):
            begin = started if from_history else with_relations
            self.state = begin(self.engine, stored)
        self.watermark_us = self.state.clock_us
        seen = [feed.stream for feed in self.engine.feeds if from_history or feed.relation]
        self.first_seq = {name: fresh[name] for name in seen}
        return self

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
        fresh = {stream: self.unseen(stream, rows) for stream, rows in arrived.items()}
        return self.go_on(long_step(lambda: self.engine.take(self.state, fresh, clock_us), fresh))

    def deliver(
        self,
        number: int,
        arrived: Mapping[str, pa.RecordBatch],
        reached: Mapping[str, int] = NOTHING_REACHED,
    ) -> Result | None:
        """Take an arrival of the database, once: a second delivery of it does nothing.

        `reached` are instants before which all events of a stream have come, by stream.
        """
        if number <= self.delivered:
            return None
        fresh = {stream: self.unseen(stream, rows) for stream, rows in arrived.items()}

        def step() -> tuple[Any, Reported]:
            return self.engine.take(self.state, fresh, None, reached)

        return self.go_on(long_step(step, fresh), number)

    def fail(self, why: BaseException) -> None:
        """End the query because a derived stream that it reads has failed."""
        with self.stepping:
            if not self.finished:
                self.finished, self.failure = True, why

    def finish(self) -> Result:
        """Complete all that is open, as if the streams had ended.

        Later calls of `push` and `advance` are ignored.
        """
        self.catch_up()
        parts: list[pa.Table] = []
        if self.upstream is not None and not self.finished:
            ended = self.upstream.leave(self)
            rows = {name: each.rows for name, each in ended.items()}
            newest = {name: each.reached_us for name, each in ended.items()}
            step = interruptible(lambda: self.engine.take_last(self.state, rows, newest))
            parts.append(self.go_on(step).to_arrow())
        last = self.go_on(interruptible(lambda: self.engine.finish(self.state)), last=True)
        return Result(pa.concat_tables([*parts, last.to_arrow()]))

    def advance(self, to: Time, stream: str | None = None) -> Result:
        """Declare that no event before a time will come, of one stream or of all.

        Results that become complete are reported without any event: windows end, silences are over,
        rows expire. Events that come nevertheless are late. A query that is finished ignores the
        call: as for `push`, the result is empty.

        A derived stream that the query reads is moved on too, for all its readers.
        """
        until_us = instant(to)
        if self.upstream is not None:
            self.catch_up()
            found = self.upstream.advance(self, until_us, stream)
            return Result(self.output_schema.empty_table()) if found is None else found
        if stream is not None:
            self.engine.check_stream(stream)
        self.catch_up()
        return self.go_on(interruptible(lambda: self.engine.advance(self.state, until_us, stream)))

    def current(self, last: Duration | None = None) -> Result:
        """Return the answer of a standing query, as of the last instant before its clock.

        With `last`, such as "30 s", return the answer of the same query over windows only that
        long.
        """
        self.catch_up()
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

    def unseen(self, stream: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return events without those that were part of the history the query began with."""
        first = self.first_seq.get(stream)
        if first is None or not rows.num_rows:
            return rows
        return rows.filter(pc.greater_equal(rows.column(SEQ), first))

    def __repr__(self) -> str:
        text = shorten(self.text or "query", QUERY_SHOWN, placeholder=" …")
        started = self.watermark_us != START_OF_TIME_US
        parts = [f"clock {moment(self.watermark_us)}" if started else "no clock yet"]
        if self.failure is None:
            rows = sum(size.tuples for _, size in self.sizes())
            parts.append(f"remembers {rows:,} row{'' if rows == 1 else 's'}")
        if self.finished:
            parts.append("finished" if self.failure is None else "failed")
        return f"<LiveQuery {text}: {listed(self.streams)}; {', '.join(parts)}>"

    def go_on(self, step: Step, number: int | None = None, *, last: bool = False) -> Result:
        """Take a step, the `last` one or not; hand over the results that are complete.

        `number` is that of the arrival from the database, if the step takes one.
        """
        with self.stepping:
            if self.finished:
                return Result(self.output_schema.empty_table())
            try:
                result = self.stepped(step)
                calls_back = self.on_result if len(result) else None
                self.finished = last
                self.delivered = self.delivered if number is None else number
            except BaseException as error:
                # Operators change their state in place, and the query has lost the events of
                # this step: after an interrupt, or when memory runs out, to go on would give
                # wrong answers.
                self.finished, self.failure = True, error
                if not isinstance(error, Exception):
                    error.add_note(f"interrupted in the midst of a step, it is over: {self!r}")
                raise
        if calls_back is not None:
            calls_back(result)
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
