"""Rows of a live query that wait for whoever takes them, in a bounded queue.

A query whose queue is full takes no step until there is room. Its events wait in the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from time import monotonic

import pyarrow as pa

from eventide.api.result import Result

QUEUE_ROWS = 100_000
"""So many rows of a query may wait, unless it says otherwise."""


class LiveRows(Result):
    """Rows of a live query, with the number of the first one; the query's first row is row 0."""

    __slots__ = ("first_row",)

    def __init__(self, table: pa.Table, first_row: int) -> None:
        super().__init__(table)
        self.first_row = first_row


class RowQueue:
    """The rows of one query that wait; without more, until someone takes them."""

    has_receiver = False
    """Whether the rows are handed to a receiver, without being asked for."""

    def __init__(self, most_rows: int, has_room: Callable[[], None]) -> None:
        self.most_rows = max(1, most_rows)
        self.has_room = has_room
        """Called when a full queue has room again."""
        self.waiting: deque[LiveRows] = deque()
        self.waiting_rows = 0
        self.changed = Condition()
        self.ended = False
        """Whether no more rows will come."""
        self.acknowledge: Callable[[int], None] | None = None
        """Called with the number below which no row has to come again, if someone wants to know."""
        self.retried = 0
        """How many calls of a receiver were repeated."""
        self.given_up_rows = 0
        """How many rows the receiver did not take."""

    @property
    def fails_when_full(self) -> bool:
        """Whether the query fails, rather than waits, while there is no room for its rows."""
        return False

    @property
    def handed_rows(self) -> int:
        """How many rows a receiver has taken, those of a durable query from its start on."""
        return 0

    def identify(self, identity: str) -> None:
        """Learn, before `begin`, which query the rows are of."""

    def begin(self, query: str | None, schema: pa.Schema, acknowledged: int) -> int:  # noqa: ARG002
        """Prepare for the rows of a query; return how many of them need not come again.

        `acknowledged` is how many have been received as far as the query knows.
        """
        return acknowledged

    @property
    def full(self) -> bool:
        """Whether so many rows wait that no more are to be made."""
        return self.waiting_rows >= self.most_rows

    @property
    def is_receiver(self) -> bool:
        """Whether the one who asks may be the one who takes the rows, and cannot wait for room."""
        return False

    def put(self, rows: LiveRows) -> None:
        """Queue rows; they are taken in this order."""
        with self.changed:
            self.waiting.append(rows)
            self.waiting_rows += len(rows)
            self.changed.notify_all()

    def taken(self) -> None:
        """Drop the first rows: they have been taken."""
        with self.changed:
            was_full = self.full
            self.waiting_rows -= len(self.waiting.popleft())
            self.changed.notify_all()
        if was_full and not self.full:
            self.has_room()

    def drop_unreceived(self) -> None:
        """Drop rows that nobody has in hands yet: all but the first ones."""
        with self.changed:
            while len(self.waiting) > 1:
                self.waiting_rows -= len(self.waiting.pop())
            self.changed.notify_all()

    @contextmanager
    def at_rest(self) -> Iterator[list[LiveRows]]:
        """Let rows that were taken be safe, if that can be; yield those that are not received."""
        with self.changed:
            found = list(self.waiting)
        yield found

    def drained(self, timeout: float | None = None) -> bool:
        """Return once nothing waits, or after so many seconds; whether nothing does."""
        until = None if timeout is None else monotonic() + timeout
        with self.changed:
            while self.waiting:
                left = None if until is None else until - monotonic()
                if left is not None and left <= 0:
                    return False
                self.changed.wait(left)
        return True

    def wait_for_room(self, until: float | None = None) -> bool:
        """Return once the queue is not full, or at a time; whether there is room."""
        with self.changed:
            while self.full:
                left = None if until is None else until - monotonic()
                if left is not None and left <= 0:
                    return False
                self.changed.wait(left)
        return True

    def end(self) -> None:
        """Let whoever waits for rows know that no more will come."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def be_quick(self) -> None:
        """Do not wait between calls of a receiver that raises: the process ends."""

    def close_receiver(self) -> bool:
        """Free what the receiver holds, if there is one; return whether that worked."""
        return True
