"""What a live query hands its rows to."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from eventide.errors import SinkError


class Sink(ABC):
    """Takes the rows of one live query, in order.

    The rows of a query are numbered from 0. A query with a name goes on after a restart: rows that
    the sink did not make safe before come again, with the same numbers. A sink that says how many
    rows it has gets each row exactly once; another one can tell by the numbers which rows it has
    seen.

    Methods are called by one thread at a time. Only `take` has to be written.
    """

    def identify(self, identity: str) -> None:  # noqa: B027 - not every sink has to
        """Learn, before `begin`, which query the rows are of.

        A query of another database may have the same name, but not the same identity.
        """

    def begin(self, query: str | None, schema: pa.Schema) -> int | None:  # noqa: ARG002
        """Prepare for the rows of a query; return how many of them are safe here already.

        It is called once, before the methods that follow. `query` is the query's name. Without a
        name, it has no earlier rows. None means that the sink cannot know what it has.
        """
        return None

    @abstractmethod
    def take(self, rows: pa.RecordBatch, first_row: int) -> None:
        """Take rows; `first_row` is the number of the first one.

        If it raises, the same rows come again, unless a `SinkError` says that this is of no use.
        Rows that the sink has already are dropped.
        """

    def skip(self, until: int) -> None:  # noqa: B027 - not every sink has to
        """Expect no more rows with numbers below `until`.

        Some that were not taken went elsewhere, such as to the dead letters.
        """

    def tick(self) -> None:  # noqa: B027
        """Do what is due by the clock. It is called about once a second, also without rows."""

    def safe(self) -> int | None:
        """Return the number below which all rows are safe; None if all that were taken are."""
        return None

    def flush(self) -> None:  # noqa: B027
        """Make all rows safe that were taken."""

    def close(self) -> None:  # noqa: B027
        """Make all rows safe and free what the sink holds; further calls do nothing."""


def rows_from(rows: pa.RecordBatch, first_row: int, next_row: int) -> pa.RecordBatch:
    """Return the rows with numbers from `next_row` on; refuse rows behind a gap.

    >>> rows_from(pa.record_batch({"car": ["a", "b", "c"]}), 7, 9).to_pylist()
    [{'car': 'c'}]
    """
    if first_row > next_row:
        message = f"rows {next_row:,} to {first_row - 1:,} are missing: row {first_row:,} came next"
        hint = "hand over rows in order; skip(until) says that some will not come"
        raise SinkError(message, hint=hint, try_again=False)
    return rows.slice(min(next_row - first_row, rows.num_rows))
