"""A live query of a database: it follows the store, has a life of its own, and hands rows over."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter, time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import pyarrow as pa

from eventide.api.live.handover import HandOver, HandOverOptions
from eventide.api.live.pulled import PulledRows, PullQueue
from eventide.api.live.query import LiveQuery, Step
from eventide.api.live.receiver import RowReceiver
from eventide.api.live.row_queue import LiveRows, RowQueue
from eventide.api.live.shown.drawn import NewestRows, live_html, show, with_newest
from eventide.api.live.shown.metrics import RefreshNumbers, Value, numbers_of
from eventide.api.result import Result
from eventide.api.stream import Time, instant
from eventide.engines.live.engine import LiveEngine
from eventide.errors import StateError, StateLimitError
from eventide.interrupts import interruptible, interrupts_wait
from eventide.plan.times import Duration, duration_us

if TYPE_CHECKING:
    from eventide.api.live.dead_letters import DeadLetters
    from eventide.api.live.delivery import Delivery

log = logging.getLogger("eventide.live")

Status = Literal["running", "paused", "failed", "finished"]


@dataclass(slots=True)
class Counters:
    """What a live query has done since it began."""

    since_us: int = field(default_factory=lambda: time_ns() // 1000)
    events: int = 0
    rows: int = 0
    steps: int = 0
    step_seconds: float = 0.0


class Subscription(LiveQuery, PulledRows):
    """A live query of a database; `Database.subscribe` and `Database.live` make it.

    It sees every event that is appended to its streams, by whichever process, in order of `_seq`.
    Its rows are handed to a receiver apart from the appends: `wait` returns once all is handed
    over.

    A query that meets a value without an answer, such as an overflow, or that remembers more than
    it may, cannot go on: its `status` is "failed", and `failure` says why. A standing query, over
    windows of one stream or several, can be asked for its answer at any time, `current()`.
    """

    def __init__(self, engine: LiveEngine, delivery: Delivery, *, text: str = "") -> None:
        super().__init__(engine, text=text)
        self.delivery = delivery
        self.id = next(delivery.ids)
        self.name: str | None = None
        self.queue: RowQueue | None = None
        """Where rows wait, if anyone takes them."""
        self.paused = False
        self.counters = Counters()
        self.newest: NewestRows = ()
        """The last rows, to be drawn."""

    def receive(
        self, receiver: RowReceiver, options: HandOverOptions, letters: DeadLetters
    ) -> None:
        """Hand all rows to a receiver, apart from the steps."""

        def give_up(rows: LiveRows, error: BaseException) -> bool:
            try:
                letters.add(self, rows, error)
                receiver.skip(rows.first_row + len(rows))
            except Exception as failure:
                failure.add_note(f"{len(rows)} rows are lost: the receiver raised {error!r}")
                self.fail(failure)
                self.delivery.forget(self)
                return False
            return True

        name = self.described()
        self.queue = HandOver(receiver, give_up, options, self.delivery.wake, name)

    def new_queue(self, most_rows: int) -> PullQueue:
        """Return a queue for rows that are pulled."""
        queue = PullQueue(most_rows, self.delivery.wake)
        if self.finished:
            queue.end()
        return queue

    @property
    def step_seconds(self) -> float:
        """How long its steps took."""
        return self.counters.step_seconds

    @property
    def status(self) -> Status:
        """Whether the query runs, is paused, has failed or is finished."""
        if self.failure is not None:
            return "failed"
        if self.finished:
            return "finished"
        return "paused" if self.paused else "running"

    @property
    def held(self) -> bool:
        """Whether it takes no events now: it is paused, or the rows that wait are too many."""
        full = self.queue is not None and self.queue.full
        return (self.paused or full) and not self.finished

    def catch_up(self) -> None:
        """Take what is stored, as far as there is room for rows."""
        self.delivery.bring(self, wait=False)

    def brought(self) -> None:
        """Complete what waits, for all that is stored is taken."""

    @property
    def refreshes(self) -> RefreshNumbers | None:
        """How late refreshes are: None, for the query has none that are scheduled."""
        return None

    def pause(self) -> None:
        """Take no events until `resume`; they wait in the store."""
        self.paused = True
        log.info("live query %d is paused: %s", self.id, self.described())

    def resume(self) -> None:
        """Go on where the query was paused."""
        self.paused = False
        log.info("live query %d goes on: %s", self.id, self.described())
        self.delivery.wake()

    def cancel(self) -> None:
        """End the query; what is open is not completed. Rows that wait are still handed over."""
        with self.stepping:
            self.finished = True
        self.ended()
        self.delivery.forget_failed(self)

    def wait(self, timeout: float | None = None) -> bool:
        """Return once all events stored before the call are taken, and their rows handed over.

        With a `timeout`, return after so many seconds at the latest; whether all is done.
        """
        self.check_not_paused("what it has not seen would never be handed over")
        return self.delivery.wait(self, timeout)

    def check_not_paused(self, what: str) -> None:
        """Refuse what needs all events that are stored."""
        if self.paused and not self.finished:
            message = f"the query is paused: {what}"
            raise StateError(message, hint="call resume() first")

    def finish(self) -> Result:
        """Complete all that is open, as if the streams had ended; return when rows are handed over.

        Later appends are ignored. For a query that is paused, the streams end where it stands.
        """
        self.delivery.bring(self)
        with interrupts_wait():
            parts: list[pa.Table] = []
            if self.sources and not self.finished:
                ended = self.delivery.leave(self)
                rows = {name: each.rows for name, each in ended.items()}
                newest = {name: each.reached_us for name, each in ended.items()}
                step = interruptible(lambda: self.engine.take_last(self.state, rows, newest))
                parts.append(self.go_on(step).to_arrow())
            parts.append(super().finish().to_arrow())
        self.ended()
        if self.queue is not None:
            self.queue.drained()
            self.queue.close_receiver()
        return Result(pa.concat_tables(parts))

    def ended(self) -> None:
        """Tell others that the query is over."""
        log.info("live query %d has ended: %s", self.id, self.described())
        self.delivery.forget(self)
        if self.queue is not None:
            self.queue.end()

    def fail(self, why: BaseException) -> None:
        """End the query: it cannot go on."""
        super().fail(why)
        self.over_if_finished()

    def go_on(self, step: Step, *, last: bool = False) -> Result:
        """Take a step; who waits for rows learns that it was the last one."""
        try:
            return super().go_on(step, last=last)
        finally:
            self.over_if_finished()

    def over_if_finished(self) -> None:
        """Let whoever waits for rows know that no more will come; remember a query that failed."""
        if not self.finished:
            return
        if self.failure is not None:
            self.delivery.remember_failed(self)
        if self.queue is not None:
            self.queue.end()

    def advance(self, to: Time, stream: str | None = None) -> Result:
        """Declare that no event before a time will come, of one stream or of all.

        Results that become complete are reported without any event: windows end, silences are over,
        rows expire. Events that come nevertheless are late. A query that is finished ignores the
        call.

        A derived stream that the query reads is moved on too, for all its readers.
        """
        self.check_not_paused("events that it has not seen would be late")
        self.delivery.bring(self)
        if self.sources:
            return self.delivery.advance(self, instant(to), stream)
        with interrupts_wait():
            return super().advance(to, stream)

    def current(self, last: Duration | None = None) -> Result:
        """Return the answer of a standing query, as of the last instant before its clock.

        With `last`, such as "30 s", return the answer of the same query over windows only that
        long.
        """
        self.delivery.bring(self, wait=False)
        return super().current(last)

    def take_delivered(
        self, arrived: Mapping[str, pa.RecordBatch], reached: Mapping[str, int]
    ) -> Result:
        """Take events of the database, and count them."""
        if not self.finished:
            self.counters.events += sum(rows.num_rows for rows in arrived.values())
        return super().take_delivered(arrived, reached)

    def stepped(self, step: Step) -> Result:
        """Take a step: queue its rows, and count."""
        started = perf_counter()
        result = super().stepped(step)
        self.counters.steps += 1
        self.counters.step_seconds += perf_counter() - started
        if len(result):
            self.hand_on(result.to_arrow())
        return result

    def hand_on(self, table: pa.Table) -> None:
        """Count rows, and queue them for whoever takes them."""
        rows = LiveRows(table, self.counters.rows)
        self.newest = with_newest(self.newest, rows)
        self.counters.rows += len(rows)
        if self.queue is not None:
            self.report(rows, self.queue)
            self.check_room(self.queue)

    def report(self, rows: LiveRows, queue: RowQueue) -> None:
        """Queue rows for the receiver."""
        queue.put(rows)

    def check_room(self, queue: RowQueue) -> None:
        """Refuse to go on if too many rows wait, and the query is to fail then."""
        if queue.full and queue.fails_when_full:
            message = f"{queue.waiting_rows:,} rows wait to be handed over, as many as may"
            hint = 'take them faster, or subscribe with a larger queue_rows, or full="wait"'
            raise StateLimitError(message, hint=hint)

    def metrics(self) -> dict[str, Value]:
        """Return what is known of the query: its status, counters, size and failure."""
        return numbers_of(self)

    def show(self, every: Duration = "1 s") -> None:
        """Draw the query and its newest rows, again and again, until it is over.

        A notebook has one picture that changes; a terminal gets a new text below the last one when
        something has changed. Ctrl-C ends the drawing, and the query goes on.
        """
        show(self, duration_us(every) / 1e6)

    def _repr_html_(self) -> str:
        return live_html(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self.queue is not None and self.queue.has_receiver:
            self.delivery.bring(self)
        self.cancel()
        if kind is None and self.queue is not None:
            self.queue.drained()
            self.queue.close_receiver()
