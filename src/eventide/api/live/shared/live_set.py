"""A set of live queries with one receiver: hundreds of thousands that come and go as one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import islice
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from eventide.api.live.clocks.clock import SYSTEM_CLOCK, Clock
from eventide.api.live.late import LateEvents
from eventide.api.live.shared.asked import AskedQueries, Texts, asked
from eventide.api.live.shown.metrics import RefreshNumbers
from eventide.api.live.subscription import Subscription
from eventide.api.many.result import schema_with_query, with_query
from eventide.api.result import Result
from eventide.api.stream import Time, instant
from eventide.engines.live.engine import LiveEngine
from eventide.engines.live.sharing.costs import costs_of
from eventide.engines.live.sharing.many import ManyQueries, ManyStep
from eventide.errors import SchemaError, StateError, UnsupportedError, listed
from eventide.interrupts import (
    STEPPED_AT_ONCE,
    interruptible,
    interruptible_if_long,
    interrupts_wait,
)
from eventide.kernels.compiled import Int64s
from eventide.operators.operator import Size
from eventide.plan.bind import suggestion
from eventide.schema import SEQ, TS

if TYPE_CHECKING:
    from eventide.api.live.delivery import Delivery
    from eventide.api.live.query import WhyFull
    from eventide.api.live.shared.sets import PlannedSet, SetPlanner
    from eventide.plan.times import Duration

FAILURES_KEPT = 1_000
"""So many queries that have failed are kept with their errors; all are counted."""

log = logging.getLogger("eventide.live")

REFRESH_AFTER_US = 50_000
"""Refreshes that wait are looked at again after so long."""


class LiveSet(Subscription):
    """Many live queries with one receiver; `Database.subscribe_many` makes it.

    Each query answers as if it ran alone from when it was added. Rows come with a column `query`:
    its number, from 0 in the order in which they were added, or its name if it has one. It is
    called `_query` where queries have a column `query`. Rows of queries with different columns come
    apart.
    """

    def __init__(
        self, many: ManyQueries, planner: SetPlanner, delivery: Delivery, *, text: str = ""
    ) -> None:
        # It has what a group of queries asks an engine for.
        super().__init__(cast("LiveEngine", many), delivery, text=text)
        self.many = many
        self.planner = planner
        self.following = 0
        """The number of the next query."""
        self.names: dict[int, str] | None = None
        """The names of the queries, by number, if they have names."""
        self.numbers: dict[str, int] = {}
        self.failures: dict[int | str, Exception] = {}
        """Queries that could not go on, and why; the others have gone on. Of many, the newest."""
        self.failed_count = 0
        """How many queries could not go on, also those that are not in `failures` any more."""
        self.changing = RLock()
        """Held while queries come or go; locked before any group is."""
        self.clock: Clock = SYSTEM_CLOCK
        self.awaited = False
        """Whether the clock sees to it that refreshes which wait are computed."""

    def __len__(self) -> int:
        return len(self.many)

    def add(self, queries: Texts, parameters: Any = None) -> range:  # noqa: ANN401
        """Add queries, which begin now: texts, or a text with a table of parameters.

        Returns their numbers. A query that is wrong is refused, and none of them is added.
        """
        return self.add_asked(asked(queries, parameters))

    def add_asked(self, wanted: AskedQueries) -> range:
        """Add queries, which begin now."""
        # They begin after what is stored: the set takes that first, and waits for room if need be.
        # Its receiver may ask for something meanwhile, so nothing is locked.
        self.delivery.bring(self)
        with self.changing:
            self.check_may_add(wanted)
            first = self.following
            planned = self.planner.plan(wanted, first)

            def begin(following: Mapping[str, int]) -> None:
                # Before the first row of theirs.
                self.note_added(wanted)
                planned.begin(self.many, following)
                self.begun(wanted, planned, following)

            self.delivery.begin_more(self, planned.streams, begin)
            return range(first, self.following)

    def begun(
        self, wanted: AskedQueries, planned: PlannedSet, following: Mapping[str, int]
    ) -> None:
        """Know that queries have begun with the events of these numbers."""

    def check_may_add(self, wanted: AskedQueries) -> None:
        """Refuse queries of a set that takes none, or whose names do not go with the others."""
        if self.finished:
            message = "the set is finished"
            raise StateError(message, hint="subscribe again")
        self.check_not_paused("new queries begin after events that it has not seen")
        if self.following and (wanted.names is None) != (self.names is None):
            message = "some queries of the set have names and others have none"
            raise SchemaError(message, hint="give a dict of names and texts, or none at all")
        for name in wanted.names or ():
            if name in self.numbers:
                message = f"there is a query {name!r} already"
                raise SchemaError(message, hint="drop it first, or choose another name")

    def note_added(self, wanted: AskedQueries) -> None:
        """Note how many queries there are, and their names."""
        if wanted.names is not None:
            own = dict(enumerate(wanted.names, self.following))
            self.names = {**(self.names or {}), **own}
            self.numbers |= {name: number for number, name in own.items()}
        self.following += len(wanted)

    def drop(self, queries: int | str | Iterable[int | str]) -> None:
        """Let queries go, by number or by name; what is open is not completed."""
        given: Iterable[int | str] = (
            [queries] if isinstance(queries, str) or not isinstance(queries, Iterable) else queries
        )
        with self.changing:
            numbers = np.array([self.number_of(each) for each in given], np.int64)
            group = self.delivery.group_of(self)
            if group is not None:
                with group.stepping, self.stepping:
                    self.many.drop(numbers)
                    self.gone(numbers)
            for number in numbers.tolist():
                self.forget_name(number)

    def gone(self, numbers: Int64s) -> None:
        """Know that queries have left, for another reason than an event."""

    def forget_name(self, number: int) -> None:
        """Let a query that has left have no name: another one may take it."""
        if self.names is not None and number in self.names:
            self.numbers.pop(self.names.pop(number), None)

    def number_of(self, query: int | str) -> int:
        """Return the number of a query."""
        if isinstance(query, int | np.integer) and 0 <= query < self.following:
            return int(query)
        if isinstance(query, str) and query in self.numbers:
            return self.numbers[query]
        message = f"no query {query!r} in the set"
        names = list(self.numbers)
        hint = suggestion(str(query), names, "query") if names else f"there are {self.following}"
        raise SchemaError(message, hint=hint)

    @property
    def texts(self) -> dict[int | str, str]:
        """The texts of the queries of a durable set, by name, or by number if they have none."""
        message = "only a durable set keeps the texts of its queries"
        raise UnsupportedError(message, hint='db.subscribe_many(queries, name="…") is durable')

    def key_of(self, number: int) -> int | str:
        """Return the name of a query, or its number if it has none."""
        return number if self.names is None else self.names[number]

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of what is reported, where all queries have the same."""
        key = pa.int64() if self.names is None else pa.string()
        schemas = list(dict.fromkeys(self.many.schemas))
        return schema_with_query(key, schemas[0] if len(schemas) == 1 else pa.schema([]))

    def take_delivered(
        self, arrived: Mapping[str, pa.RecordBatch], reached: Mapping[str, int]
    ) -> Result:
        """Take events of the database; a query that fails leaves the set."""
        if self.finished:
            return Result(self.output_schema.empty_table())
        count = sum(rows.num_rows for rows in arrived.values())
        self.counters.events += count

        def take() -> ManyStep:
            return self.many.take(arrived, reached)

        step = interruptible_if_long(take, count, STEPPED_AT_ONCE)
        try:
            return self.step_all(step)
        except Exception as error:
            log.error("a set of live queries has failed: %s: %s", self.described(), error)
            return Result(self.output_schema.empty_table())

    def advance(self, to: Time, stream: str | None = None) -> Result:
        """Declare that no event before a time will come, of one stream or of all."""
        self.check_not_paused("events that it has not seen would be late")
        until_us = instant(to)
        if stream is not None and stream not in self.streams:
            message = f"no query of the set reads {stream!r}"
            raise SchemaError(message, hint=f"they read {listed(self.streams)}")
        self.delivery.bring(self)

        def advance() -> ManyStep:
            return self.many.advance(until_us, stream)

        with interrupts_wait():
            return self.step_all(interruptible(advance))

    def finish(self) -> Result:
        """Complete all that is open, as if the streams had ended; return once rows are received."""
        self.delivery.bring(self)
        with interrupts_wait():
            result = self.step_all(interruptible(self.many.finish), last=True)
        self.ended()
        if self.queue is not None:
            self.queue.drained()
            self.queue.close_receiver()
        return result

    def step_all(self, step: Any, *, last: bool = False) -> Result:  # noqa: ANN401
        """Take a step with all queries, and queue their rows."""
        with self.stepping:
            if self.finished:
                return Result(self.output_schema.empty_table())
            started = perf_counter()
            try:
                found: ManyStep = step()
                self.finished = last
                self.counters.steps += 1
                self.counters.step_seconds += perf_counter() - started
                self.watermark_us = self.many.clock_us
                self.note(found)
                self.see_to_waiting()
                return self.queued(found)
            except BaseException as error:
                self.finished, self.failure = True, error
                self.over_if_finished()
                raise

    def give_up_most(self, why: WhyFull) -> None:
        """Let the queries go that together remember most; the others go on."""
        group = self.delivery.group_of(self)
        if group is None:
            return
        with group.stepping, self.stepping:
            if not len(self.many):
                return
            numbers, most = self.many.give_up_most()
            who = str(self.key_of(int(numbers[0])))
            if len(numbers) > 1:
                who = f"{len(numbers):,} alike, the first of which is {who}"
            error = why(f"{who} of {self.described()}", most)
            self.note(ManyStep(failed=dict.fromkeys(numbers.tolist(), error)))

    def see_to_waiting(self) -> None:
        """Let the clock see to refreshes that wait for their turn."""
        if self.many.turns.is_timed and not self.awaited and self.many.waiting:
            self.awaited = True
            self.clock.wake_at(self.clock.now_us() + REFRESH_AFTER_US, self.refresh)

    def refresh(self, *, every: bool = False) -> None:
        """Compute refreshes that wait, as there is time for them, or every one."""
        group = self.delivery.group_of(self) if self.many.turns.is_timed else None
        if group is None:
            return
        with group.stepping:
            self.awaited = self.awaited and every
            if self.held and not every:
                self.see_to_waiting()
            elif not self.finished and self.many.waiting:
                self.step_all(lambda: self.many.refresh(every=every))

    def brought(self) -> None:
        """Compute all refreshes that wait: somebody wants what is stored to be taken."""
        self.refresh(every=True)

    @property
    def refreshes(self) -> RefreshNumbers | None:
        """How late refreshes are, and how many there are; None if no query is periodic."""
        with self.stepping:
            delays = self.many.delays
            if delays is None:
                return None
            return RefreshNumbers(
                self.many.turns.stretch,
                delays.left_out,
                self.many.waiting,
                delays.overdue,
                delays.most_us,
            )

    def lose(self, stream: str, why: Exception) -> None:
        """Let the queries of a stream that cannot be read any more go; the others go on."""
        with self.stepping:
            numbers = self.many.readers(stream)
            self.many.drop(numbers)
            self.gone(numbers)
            self.note(ManyStep(failed=dict.fromkeys(numbers.tolist(), why)))

    def note(self, found: ManyStep) -> None:
        """Count late events, and note which queries have failed."""
        for late, _ in found.late[:1]:
            for stream, rows in late.items():
                self.lates.setdefault(stream, LateEvents()).add(rows.select([TS, SEQ]))
        for number, error in found.failed.items():
            key = self.key_of(number)
            self.failures.pop(key, None)
            self.failures[key] = error
            log.error("query %s of a set has failed: %s", key, error)
        self.failed_count += len(found.failed)
        for key in list(islice(self.failures, max(0, len(self.failures) - FAILURES_KEPT))):
            del self.failures[key]

    def queued(self, found: ManyStep) -> Result:
        """Queue the rows of a step, and return them if all have the same columns."""
        tables = [self.with_query(each.numbers, each.rows) for each in found.rows]
        for table in tables:
            self.hand_on(table)
        alike = [each for each in tables if each.schema == tables[0].schema]
        return Result(pa.concat_tables(alike) if alike else self.output_schema.empty_table())

    def with_query(self, numbers: Int64s, rows: pa.RecordBatch) -> pa.Table:
        """Return rows with a first column that says which query each is of."""
        keys = range(self.following) if self.names is None else self.names
        return with_query(keys, numbers, rows)

    def costs(self) -> Result:
        """Return what each query has done and costs: rows in and out, seconds, and bytes.

        What queries share is apportioned: time by the rows that each has taken, conditions and
        constants evenly, and what operators keep by the rows taken as well.
        """
        with self.stepping:
            self.check_whole("asked what it costs")
            costs = costs_of(self.many)
        rows = pa.RecordBatch.from_pydict(
            {
                "rows_in": costs.rows_in,
                "rows_out": costs.rows_out,
                "seconds": costs.seconds,
                "bytes": np.rint(costs.nbytes).astype(np.int64),
            }
        )
        return Result(self.with_query(costs.numbers, rows))

    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """Return how much is remembered, and for what."""
        with self.stepping:
            self.check_whole("asked what it remembers")
            return self.many.sizes()

    def late(self, stream: str | None = None) -> Result:
        """Return the `ts` and `_seq` of late events that are kept, of one stream or of all."""
        names = list(self.lates) if stream is None else [stream]
        fields = [("stream", pa.string()), (TS, pa.timestamp("us")), (SEQ, pa.int64())]
        parts = [pa.schema(fields).empty_table()]
        for name in names:
            for rows in self.lates[name].kept if name in self.lates else ():
                parts.append(pa.table({"stream": [name] * len(rows), TS: rows[TS], SEQ: rows[SEQ]}))
        return Result(pa.concat_tables(parts))

    def current(self, last: Duration | None = None) -> Result:  # noqa: ARG002
        """Refuse: queries of a set report rows, and have no answer of their own to ask for."""
        message = "a set of queries cannot be asked for its current answer"
        raise UnsupportedError(message, hint="subscribe to the query by itself: db.subscribe(text)")

    def described(self) -> str:
        """Return a few words that say which queries they are."""
        stretch = self.many.turns.stretch
        longer = f", periods {stretch} times as long" if stretch > 1 else ""
        return f"{len(self):,} queries{longer}, {super().described()}"

    def __repr__(self) -> str:
        return f"<LiveSet {self.described()}; {self.status}>"
