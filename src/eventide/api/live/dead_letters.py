"""Rows that no receiver took, kept in a stream of the database with the error."""

from __future__ import annotations

from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.api.live.row_queue import LiveRows
from eventide.api.stream import Publish
from eventide.errors import StateError, StoreError
from eventide.schema import Schema
from eventide.sinks.files import json_lines
from eventide.store import Store

if TYPE_CHECKING:
    from eventide.api.live.subscription import Subscription

NAME = "dead_letters"
SCHEMA = Schema.of(
    {"query": "string", "text": "string", "row_number": "int64", "row": "string", "error": "string"}
)
ERROR_SHOWN = 2_000


class DeadLetters:
    """The stream of dead letters, which is created with the first one.

    Its time is that of the clock: when the row was given up. `row` is the row as JSON.
    """

    def __init__(self, store: Store, publish: Publish) -> None:
        self.store = store
        self.publish = publish
        self.creating = Lock()

    def add(self, query: Subscription, rows: LiveRows, error: BaseException) -> None:
        """Store rows, and why they were not taken."""
        if NAME in query.streams:
            message = f"the receiver of a query over {NAME} raised: {error!r}"
            raise StateError(message, hint="its rows would be dead letters for ever")
        self.create()
        lines = [
            line for batch in rows.to_arrow().to_batches() for line in json_lines(batch).to_pylist()
        ]
        count = len(lines)
        why = f"{type(error).__name__}: {error}"[:ERROR_SHOWN]
        columns = {
            "ts": pa.array([time_ns() // 1000] * count, pa.timestamp("us")),
            "query": pa.array([query.name] * count, pa.string()),
            "text": pa.array([query.text] * count, pa.string()),
            "row_number": pa.array(range(rows.first_row, rows.first_row + count), pa.int64()),
            "row": pa.array(lines, pa.string()),
            "error": pa.array([why] * count, pa.string()),
        }
        stream = self.store.stream(NAME)
        outcome = stream.store(pa.table(columns))
        self.publish(stream, outcome.events, outcome.appended.first_seq)
        if outcome.error is not None:
            raise outcome.error

    def create(self) -> None:
        """Create the stream unless it is there."""
        with self.creating:
            if NAME in self.store.streams():
                return
            try:
                self.store.create_stream(NAME, SCHEMA)
            except StoreError:
                if NAME not in self.store.streams():  # or another process was quicker
                    raise
