"""Rows of a live query that are pulled: by a loop, by `async for`, as Arrow batches, all that wait.

The queue wakes an event loop by `call_soon_threadsafe`: no thread waits for it, and nothing is left
behind if its task is cancelled.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from eventide.api.live.row_queue import QUEUE_ROWS, LiveRows, RowQueue
from eventide.errors import StateError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Pull(Enum):
    """Stands where a receiver would: rows wait until they are pulled."""

    PULL = "pull"


class PullQueue(RowQueue):
    """A queue whose rows are pulled, by any number of threads and event loops."""

    def __init__(self, most_rows: int, has_room: Callable[[], None]) -> None:
        super().__init__(most_rows, has_room)
        self.wakers: list[Callable[[], None]] = []
        """Called when rows have come, or none will any more."""
        self.in_hand: LiveRows | None = None
        """The rows that were pulled last, and are not acknowledged yet."""

    @property
    def is_receiver(self) -> bool:
        """Anyone may be who pulls the rows."""
        return True

    def put(self, rows: LiveRows) -> None:
        """Queue rows; they are pulled in this order."""
        with self.changed:
            super().put(rows)
            self.wake_all()

    def end(self) -> None:
        """Let all who wait for rows know that no more will come."""
        with self.changed:
            super().end()
            self.wake_all()

    def wake_all(self) -> None:
        """Wake the event loops that wait."""
        for wake in self.wakers:
            wake()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` whenever rows come, inside the block."""
        with self.changed:
            self.wakers.append(wake)
        try:
            yield
        finally:
            with self.changed:
                self.wakers.remove(wake)

    def pull(self) -> LiveRows | None:
        """Return the first rows that wait, None if there are none now."""
        with self.changed:
            self.received()
            if not self.waiting:
                return None
            was_full = self.full
            rows = self.waiting.popleft()
            self.waiting_rows -= len(rows)
            self.in_hand = rows if self.acknowledge is not None else None
            self.changed.notify_all()
        if was_full and not self.full:
            self.has_room()
        return rows

    def received(self) -> None:
        """Acknowledge the rows that were pulled last: who asks for more is done with them."""
        if self.in_hand is not None and self.acknowledge is not None:
            self.acknowledge(self.in_hand.first_row + len(self.in_hand))
        self.in_hand = None

    @contextmanager
    def at_rest(self) -> Iterator[list[LiveRows]]:
        """Yield the rows that have not been received; more may be received meanwhile."""
        with self.changed:
            found = [*(() if self.in_hand is None else (self.in_hand,)), *self.waiting]
        yield found

    def drop_unreceived(self) -> None:
        """Drop what waits: rows that are pulled are not here any more."""
        with self.changed:
            self.waiting.clear()
            self.waiting_rows = 0
            self.changed.notify_all()

    def pull_by(self, until: float | None) -> LiveRows | None:
        """Return the first rows as soon as there are some; None if none come until then."""
        while True:
            rows = self.pull()
            if rows is not None:
                return rows
            with self.changed:
                left = None if until is None else until - monotonic()
                if self.ended or (left is not None and left <= 0):
                    return self.pull()
                if not self.waiting:
                    self.changed.wait(left)

    def drained(self, timeout: float | None = None) -> bool:  # noqa: ARG002
        """Return at once: rows stay here until someone wants them."""
        return True


class PulledRows(ABC):
    """What a live query offers to those who pull its rows.

    Several loops, in threads or tasks, may pull from one query: each batch of rows goes to one of
    them.
    """

    queue: RowQueue | None
    failure: BaseException | None

    @property
    @abstractmethod
    def output_schema(self) -> pa.Schema:
        """The columns of what is reported."""

    @abstractmethod
    def catch_up(self) -> None:
        """Take what is stored and has not been taken."""

    @abstractmethod
    def cancel(self) -> None:
        """End the query."""

    @abstractmethod
    def new_queue(self, most_rows: int) -> PullQueue:
        """Return a queue for rows that are pulled."""

    def pulled(self) -> PullQueue:
        """Return the queue of rows; without any receiver, rows are kept from now on."""
        if self.queue is None:
            self.queue = self.new_queue(QUEUE_ROWS)
        if not isinstance(self.queue, PullQueue):
            message = "the rows of this query go to its receiver, so they cannot be pulled as well"
            raise StateError(message, hint="pull those of another one: db.live(text)")
        return self.queue

    def over(self) -> None:
        """Raise why the query cannot go on, if it failed."""
        if isinstance(self.failure, Exception):
            raise self.failure
        if self.failure is not None:
            message = "the live query was interrupted in the midst of a step"
            raise StateError(message, hint="start it again") from self.failure

    def next(self, timeout: float | None = None) -> LiveRows | None:
        """Wait for rows and return them; return None if the query is over.

        With a `timeout`, also return None if no rows come for so many seconds; `status` tells the
        two apart. If the query has failed, raise why.
        """
        queue = self.pulled()
        rows = queue.pull_by(None if timeout is None else monotonic() + timeout)
        if rows is None and queue.ended:
            self.over()
        return rows

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> LiveRows:
        rows = self.next()
        if rows is None:
            raise StopIteration
        return rows

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LiveRows:
        queue, loop = self.pulled(), asyncio.get_running_loop()
        came = asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(came.set)

        await asyncio.sleep(0)  # others have a turn, however many rows wait
        with queue.waking(wake):
            while True:
                came.clear()
                ended = queue.ended
                rows = queue.pull()
                if rows is not None:
                    return rows
                if ended:
                    self.over()
                    raise StopAsyncIteration
                await came.wait()

    def results(self) -> pa.RecordBatchReader:
        """Return the rows as Arrow batches; reading waits for them, and ends with the query."""
        self.pulled()
        batches = (batch for rows in self for batch in rows.to_arrow().to_batches())
        return pa.RecordBatchReader.from_batches(self.output_schema, batches)

    def waiting(self) -> LiveRows:
        """Take all rows that wait now, perhaps none."""
        queue = self.pulled()
        self.catch_up()
        found: list[LiveRows] = []
        while (rows := queue.pull()) is not None:
            found.append(rows)
        if not found and queue.ended:
            self.over()
        first_row = found[0].first_row if found else 0
        tables = [self.output_schema.empty_table(), *(rows.to_arrow() for rows in found)]
        return LiveRows(pa.concat_tables(tables), first_row)

    def to_arrow(self) -> pa.Table:
        """Take all rows that wait now, as an Arrow table."""
        return self.waiting().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Take all rows that wait now, as a pandas frame."""
        return self.waiting().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Take all rows that wait now, as a polars frame."""
        return self.waiting().to_polars()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # It waits for the step that the query is in, which the event loop must not.
        await asyncio.shield(asyncio.to_thread(self.cancel))
