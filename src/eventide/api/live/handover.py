"""Hand the rows of a live query to whoever receives them, apart from the steps that make them.

step ──> queue of rows ──> thread of the query ──> receiver
                               │ raises: again, some times, then
                               └──> dead letters
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, Thread, current_thread, local
from time import monotonic
from typing import Literal, get_args

import pyarrow as pa

from eventide.api.live.receiver import RowReceiver, worth_another
from eventide.api.live.row_queue import QUEUE_ROWS, LiveRows, RowQueue
from eventide.errors import SchemaError

IDLE_S = 2.0
"""A thread without work for so long ends; the next rows start another."""
LONGEST_WAIT_S = 300.0
TICK_S = 1.0
"""How often a receiver that has rows which are not safe is told of the clock."""

log = logging.getLogger("eventide.live")


GiveUp = Callable[[LiveRows, BaseException], bool]
"""Takes rows that the receiver does not, and why; returns whether they are kept."""


RECEIVING = local()
Full = Literal["wait", "fail"]


@dataclass(frozen=True, slots=True)
class HandOverOptions:
    """How rows are handed over.

    queue_rows       the query takes no step while so many rows wait
    full             what happens when they do: "wait", or "fail" the query
    retries          how often a receiver that raises is called again with the same rows
    retry_after_us   how long after the first failure; then twice as long, and so on
    """

    queue_rows: int = QUEUE_ROWS
    full: Full = "wait"
    retries: int = 3
    retry_after_us: int = 1_000_000

    def __post_init__(self) -> None:
        for name, least in (("queue_rows", 1), ("retries", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                message = f"{name} is {value!r}"
                raise SchemaError(message, hint=f"it is a whole number from {least} on")
        if self.retry_after_us < 0:
            message = "retry_after is less than nothing"
            raise SchemaError(message, hint='write retry_after="1 s"')
        if self.full not in get_args(Full):
            message = f"full is {self.full!r}"
            raise SchemaError(message, hint=f"it is {' or '.join(map(repr, get_args(Full)))}")

    def wait_s(self, failures: int) -> float:
        """Return how long to wait after so many failures."""
        return min(LONGEST_WAIT_S, self.retry_after_us / 1e6 * 2.0 ** (failures - 1))


def is_receiving() -> bool:
    """Whether this thread hands rows over, so that the call comes from a receiver."""
    return getattr(RECEIVING, "now", False)


class HandOver(RowQueue):
    """A queue of rows, and the thread that calls the receiver with them."""

    has_receiver = True

    def __init__(
        self,
        receiver: RowReceiver,
        give_up: GiveUp,
        options: HandOverOptions,
        has_room: Callable[[], None],
        name: str,
    ) -> None:
        super().__init__(options.queue_rows, has_room)
        self.receiver = receiver
        self.give_up = give_up
        self.options = options
        self.name = name
        self.taken_rows = self.acknowledged_rows = 0
        """The number behind the last row that was received or given up, and that below which all
        are safe."""
        self.thread: Thread | None = None
        self.handing = Lock()
        """Held while the receiver is called."""
        self.closed = False
        """Whether the receiver is closed."""
        self.hurry = False
        """Whether the process ends: nothing is tried again after a wait."""

    @property
    def fails_when_full(self) -> bool:
        """Whether the query fails while there is no room for its rows."""
        return self.options.full == "fail"

    @property
    def handed_rows(self) -> int:
        """How many rows the receiver has taken."""
        return max(0, self.taken_rows - self.given_up_rows)

    def identify(self, identity: str) -> None:
        """Let the receiver know which query the rows are of."""
        self.receiver.identify(identity)

    def begin(self, query: str | None, schema: pa.Schema, acknowledged: int) -> int:
        """Let the receiver prepare for the rows of a query; it may have some of them."""
        there = self.receiver.begin(query, schema, acknowledged)
        self.taken_rows = self.acknowledged_rows = there
        return there

    def put(self, rows: LiveRows) -> None:
        """Queue rows; they are handed over in this order."""
        with self.changed:
            super().put(rows)
            if self.thread is None:
                thread = Thread(target=self.run, name=f"eventide {self.name}", daemon=True)
                thread.start()
                self.thread = thread

    def run(self) -> None:
        """Hand over what waits, until nothing has waited for a while and all is safe."""
        RECEIVING.now = True
        while True:
            with self.changed:
                if not self.waiting and not self.ended:
                    self.changed.wait(TICK_S if self.unsafe else IDLE_S)
                if not self.waiting and (self.ended or not self.unsafe):
                    self.thread = None
                    break
                rows = self.waiting[0] if self.waiting else None
            if rows is not None and not self.hand(rows):
                # The query has failed. Its rows are not acknowledged, and no others follow them.
                with self.changed:
                    self.waiting.clear()
                    self.waiting_rows = 0
                    self.thread = None
                    self.changed.notify_all()
                break
            with self.handing:
                if rows is not None:
                    self.taken_rows = rows.first_row + len(rows)
                self.tell()
                if self.unsafe:
                    self.tick()
                    self.tell()
                if rows is not None:
                    self.taken()
        if self.ended:
            self.close_receiver()

    def end(self) -> None:
        """Close the receiver once it has got what waits: no more rows will come."""
        super().end()
        with self.changed:
            alone = self.thread is None
        if alone:
            self.close_receiver()

    @property
    def unsafe(self) -> bool:
        """Whether rows that were taken may have to come again."""
        return self.acknowledged_rows < self.taken_rows

    def tell(self) -> None:
        """Acknowledge the rows that are safe."""
        safe = self.receiver.safe(self.taken_rows)
        if safe > self.acknowledged_rows:
            self.acknowledged_rows = safe
            if self.acknowledge is not None:
                self.acknowledge(safe)

    def tick(self) -> None:
        """Let the receiver do what is due by the clock; what fails is tried again."""
        try:
            self.receiver.tick()
        except Exception as error:
            log.warning("%s: its receiver raised %r", self.name, error)

    def hand(self, rows: LiveRows) -> bool:
        """Hand rows over; if that fails again and again, give them up.

        Return whether someone has them: the receiver, or the dead letters.
        """
        failures = 0
        while True:
            try:
                with self.handing:
                    self.receiver.take(rows)
            except BaseException as error:
                failures += 1
                again = failures <= self.options.retries and worth_another(error)
                if again and not self.hurry:
                    self.retried += 1
                    log.info("%s: its receiver raised %r; it is called again", self.name, error)
                    self.pause(self.options.wait_s(failures))
                    continue
                self.given_up_rows += len(rows)
                log.warning("%s: %d rows were not received: %r", self.name, len(rows), error)
                return self.give_up(rows, error)
            return True

    @contextmanager
    def at_rest(self) -> Iterator[list[LiveRows]]:
        """Let all rows that were taken be safe; yield those that wait, while none is taken."""
        if self.closed or self.is_receiver or not self.receiver.keeps:
            # What was taken is safe, or not acknowledged, and has not left the queue.
            yield list(self.waiting)
            return
        with self.handing:
            self.receiver.flush()
            self.tell()
            yield list(self.waiting)

    def pause(self, seconds: float) -> None:
        """Wait, unless the process ends."""
        until = monotonic() + seconds
        with self.changed:
            while not self.hurry and monotonic() < until:
                self.changed.wait(until - monotonic())

    def drained(self, timeout: float | None = None) -> bool:
        """Return once nothing waits, or after so many seconds; whether nothing does.

        The receiver itself, whose rows leave the queue when it returns, does not wait.
        """
        return self.is_receiver or super().drained(timeout)

    @property
    def is_receiver(self) -> bool:
        """Whether the receiver itself asks."""
        return current_thread() is self.thread

    def be_quick(self) -> None:
        """Do not wait between calls of a receiver that raises: the process ends."""
        with self.changed:
            self.hurry = True
            self.changed.notify_all()

    def close_receiver(self) -> bool:
        """Free what the receiver holds; return whether that worked."""
        if self.is_receiver:
            return True  # it is in a call
        with self.handing:
            if self.closed:
                return True
            self.closed = True
            try:
                self.receiver.close()
            except Exception as error:
                log.warning("%s: its receiver raised %r when it was closed", self.name, error)
                return False
            self.tell()
            return True
