"""Who receives the rows of a live query: a callback, or a sink."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable

import pyarrow as pa

from eventide.api.live.row_queue import LiveRows
from eventide.errors import SchemaError, SinkError
from eventide.sinks.contract import Sink

Receive = Callable[[LiveRows], object]


class RowReceiver(ABC):
    """Takes rows in order; `first_row` of the rows is the number of the first one."""

    def identify(self, identity: str) -> None:  # noqa: B027 - for those that have rows of several
        """Learn, before `begin`, which query the rows are of."""

    def begin(self, query: str | None, schema: pa.Schema, acknowledged: int) -> int:  # noqa: ARG002
        """Prepare for the rows of a query; return how many of them need not come again.

        `acknowledged` is how many have been received as far as the query knows.
        """
        return acknowledged

    @abstractmethod
    def take(self, rows: LiveRows) -> None:
        """Take rows. If it raises, the same rows come again."""

    def skip(self, until: int) -> None:  # noqa: B027 - for those that count
        """Expect no more rows with numbers below `until`: they went to the dead letters."""

    def safe(self, taken: int) -> int:
        """Return how many rows need not come again, of so many taken."""
        return taken

    @property
    def keeps(self) -> bool:
        """Whether rows that were taken may not be safe yet."""
        return False

    def tick(self) -> None:  # noqa: B027
        """Do what is due by the clock."""

    def flush(self) -> None:  # noqa: B027
        """Make all rows safe that were taken."""

    def close(self) -> None:  # noqa: B027
        """Make all rows safe, and free what is held."""


class Called(RowReceiver):
    """A callback."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive

    def take(self, rows: LiveRows) -> None:
        """Call it."""
        self.receive(rows)


class IntoSink(RowReceiver):
    """A sink."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def identify(self, identity: str) -> None:
        """Tell the sink which query the rows are of."""
        self.sink.identify(identity)

    def begin(self, query: str | None, schema: pa.Schema, acknowledged: int) -> int:
        """Ask the sink what it has; rows that were received and are not there went elsewhere."""
        there = self.sink.begin(query, schema)
        if there is None:
            return acknowledged
        if there < acknowledged:
            self.sink.skip(acknowledged)
        return max(there, acknowledged)

    def take(self, rows: LiveRows) -> None:
        """Hand rows to the sink."""
        row = rows.first_row
        for batch in rows.to_arrow().to_batches():
            self.sink.take(batch, row)
            row += batch.num_rows

    def skip(self, until: int) -> None:
        """Tell the sink that some rows will not come."""
        self.sink.skip(until)

    def safe(self, taken: int) -> int:
        """Return how many rows the sink has for good."""
        there = self.sink.safe()
        return taken if there is None else min(taken, there)

    @property
    def keeps(self) -> bool:
        """Whether the sink says which rows are safe."""
        return self.sink.safe() is not None

    def tick(self) -> None:
        """Let the sink do what is due."""
        self.sink.tick()

    def flush(self) -> None:
        """Let the sink make all rows safe."""
        self.sink.flush()

    def close(self) -> None:
        """Close the sink."""
        self.sink.close()


def receiver_of(receiver: Receive | Sink) -> RowReceiver:
    """Return what receives the rows of a query, given a callback or a sink."""
    is_sink = isinstance(receiver, type) and issubclass(receiver, Sink)
    if not (callable(receiver) or isinstance(receiver, Sink)) or is_sink:
        message = f"the receiver is {receiver!r:.80}"
        raise SchemaError(message, hint="give a function of one argument, or a sink")
    if inspect.iscoroutinefunction(receiver):
        message = "the receiver is a coroutine, which nobody would await"
        raise SchemaError(message, hint="write: async for rows in db.live(text)")
    return IntoSink(receiver) if isinstance(receiver, Sink) else Called(receiver)


def worth_another(error: BaseException) -> bool:
    """Whether rows that were refused with an error may be taken the next time."""
    return not isinstance(error, SinkError) or error.try_again
