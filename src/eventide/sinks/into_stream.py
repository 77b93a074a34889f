"""Rows as events of a stream."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from eventide.errors import IngestError, SchemaError, SinkError, listed
from eventide.schema import SEQ, TIMESTAMP, TS, DataType, Schema
from eventide.sinks.contract import Sink, rows_from
from eventide.store import Appended, StreamOptions


class TargetStream(Protocol):
    """What the sink needs of a stream."""

    @property
    def schema(self) -> Schema:
        """The attributes of the events."""
        ...

    @property
    def options(self) -> StreamOptions:
        """How the stream is stored."""
        ...

    def append(
        self, data: object, *, producer: str | None = None, sequence: int | None = None
    ) -> Appended:
        """Store events; a batch that its producer has stored already adds nothing."""
        ...

    def last_sequence(self, producer: str) -> int | None:
        """Return the highest sequence that a producer has stored."""
        ...

    def sync(self) -> None:
        """Return once everything appended so far is on the disk."""
        ...


class TargetDatabase(Protocol):
    """What the sink needs of a database."""

    def streams(self) -> Collection[str]:
        """Return the names of the streams."""
        ...

    def stream(self, name: str) -> TargetStream:
        """Return a stream by its name."""
        ...

    def create_stream(self, name: str, attributes: pa.Schema) -> TargetStream:
        """Create a stream."""
        ...


class IntoStream(Sink):
    """Appends rows to a stream of a database, each row of a query with a name exactly once.

    The rows need a column `ts`. A stream that is not there is made with the columns of the query.
    Others may append to the stream as well: the store notes, with the events, how many rows of
    the query it has. A query without a name has no such note: rows whose append fails after they
    were stored may come twice.
    """

    def __init__(self, database: TargetDatabase, name: str) -> None:
        self.database = database
        self.name = name
        self.identity = ""
        self.stream: TargetStream | None = None
        self.producer: str | None = None
        self.names: list[str] = []
        self.next_row = 0
        self.safe_rows = 0

    def identify(self, identity: str) -> None:
        """Keep rows apart from those of a query of the same name in another database."""
        self.identity = f" {identity}"

    def begin(self, query: str | None, schema: pa.Schema) -> int:
        """Find the stream, or make it; return how many rows of the query it has."""
        self.producer = None if query is None else f"query {query}{self.identity}"
        self.names = [name for name in schema.names if name != SEQ]
        check_time(schema)
        if self.name in self.database.streams():
            self.stream = self.database.stream(self.name)
            check_columns(self.name, self.stream.schema, schema)
            # A stream whose events come from elsewhere says so now.
            self.stream.append(schema.empty_table().select(self.names))
        else:
            self.stream = self.database.create_stream(self.name, schema)
        self.next_row = self.stored(self.stream)
        # Another process may have stored them without waiting for the disk.
        self.stream.sync()
        self.safe_rows = self.next_row
        return self.next_row

    def take(self, rows: pa.RecordBatch, first_row: int) -> None:
        """Append rows in one append."""
        stream = self.begun()
        fresh = rows_from(rows, first_row, self.next_row)
        if not fresh.num_rows:
            return
        start, end = self.next_row, self.next_row + fresh.num_rows
        sequence = None if self.producer is None else end - 1
        try:
            events = pa.Table.from_batches([fresh]).select(self.names)
            stream.append(events, producer=self.producer, sequence=sequence)
        except (SchemaError, IngestError) as error:
            message = f"{self.name} cannot take the rows: {error.message}"
            raise SinkError(message, hint=error.hint, try_again=False) from error
        except BaseException:
            # The disk may have failed after the rows were stored.
            self.next_row = max(start, self.stored(stream))
            raise
        self.next_row = end
        if stream.options.durability == "batch":
            if self.safe_rows < start:
                self.flush()
            self.safe_rows = end

    def stored(self, stream: TargetStream) -> int:
        """Return how many rows of the query the stream has."""
        last = None if self.producer is None else stream.last_sequence(self.producer)
        return 0 if last is None else last + 1

    def tick(self) -> None:
        """Wait until all rows are on the disk."""
        if self.stream is not None:
            self.flush()

    def skip(self, until: int) -> None:
        """Go on at a later row."""
        if until > self.next_row:
            self.flush()
            self.next_row = self.safe_rows = until

    def safe(self) -> int:
        """Return the number below which all rows are on the disk."""
        return self.safe_rows

    def flush(self) -> None:
        """Wait until all rows are on the disk."""
        if self.safe_rows < self.next_row:
            self.begun().sync()
            self.safe_rows = self.next_row

    def close(self) -> None:
        """Wait until all rows are on the disk, and let go of the stream."""
        if self.stream is not None:
            self.flush()
            self.stream = None

    def begun(self) -> TargetStream:
        """Return the stream; refuse rows before `begin` and after `close`."""
        if self.stream is None:
            message = f"nothing is appended to {self.name} now"
            raise SinkError(message, hint="call begin first", try_again=False)
        return self.stream

    def __repr__(self) -> str:
        return f"<IntoStream {self.name}>"


def check_time(schema: pa.Schema) -> None:
    """Refuse rows that are no events."""
    if TS not in schema.names or not pa.types.is_timestamp(schema.field(TS).type):
        message = f"rows without a time {TS} are no events"
        hint = "select one, as in SELECT ts, … or SELECT window_end AS ts, …"
        raise SinkError(message, hint=hint, try_again=False)


def check_columns(name: str, schema: Schema, rows: pa.Schema) -> None:
    """Refuse a stream that has other columns than the rows."""
    wanted = {TS: TIMESTAMP} | {each.name: each.type for each in schema.attributes}
    given = {each.name: DataType.from_arrow(each.type) for each in rows if each.name != SEQ}
    wrong = [
        each
        for each in dict.fromkeys([*wanted, *given])
        if not fits(given.get(each), wanted.get(each))
    ]
    if wrong:
        message = f"the columns of {name} are not those of the query: {listed(wrong)} differ"
        hint = f"{name} has {listed([f'{column} {kind}' for column, kind in wanted.items()])}"
        raise SinkError(message, hint=hint, try_again=False)


def fits(given: DataType | None, wanted: DataType | None) -> bool:
    """Whether values of a type may be stored as another one; whether each fits is seen later."""
    if given is None or wanted is None:
        return False
    return given == wanted or (given.is_numeric and wanted.is_numeric)
