"""Rows on standard output, as they come."""

from __future__ import annotations

import os
import sys
from threading import Event
from typing import Literal, get_args

import pyarrow as pa

from eventide.errors import SinkError, listed
from eventide.sinks.contract import Sink
from eventide.sinks.files import csv_header, csv_lines, json_lines
from eventide.sinks.growing_table import GrowingTable

OutputFormat = Literal["table", "csv", "jsonl"]


class StandardOutput(Sink):
    """Prints rows as a table, CSV or JSON lines; by default a table on a terminal, else CSV.

    Names are printed once. If the reader of a pipe leaves, `ended` is set and later rows are
    dropped.
    """

    def __init__(self, format: OutputFormat | None = None) -> None:
        known = get_args(OutputFormat)
        if format is not None and format not in known:
            message = f"{format!r} is not a format"
            raise SinkError(message, hint=f"it is one of {listed(known)}", try_again=False)
        self.format = format
        self.ended = Event()
        self.table = GrowingTable()

    def begin(self, query: str | None, schema: pa.Schema) -> None:  # noqa: ARG002
        """Print the names of the columns, if the format needs no rows for that."""
        self.table = GrowingTable()
        if self.format is None:
            self.format = "table" if sys.stdout.isatty() else "csv"
        if self.format == "csv":
            self.write(csv_header(schema.names))

    def take(self, rows: pa.RecordBatch, first_row: int) -> None:  # noqa: ARG002
        """Print rows."""
        if not rows.num_rows:
            return
        if self.format == "table":
            self.write(self.table.text(pa.Table.from_batches([rows])))
        else:
            lines = csv_lines(rows) if self.format == "csv" else json_lines(rows)
            self.write("\n".join(lines.to_pylist()) + "\n")

    def write(self, text: str) -> None:
        """Print a text at once; nothing if nobody reads it any more."""
        if self.ended.is_set():
            return
        try:
            if sys.stdout.isatty() or not hasattr(sys.stdout, "buffer"):
                sys.stdout.write(text)
            else:
                # Files and pipes get UTF-8, and line ends as they are.
                sys.stdout.flush()
                sys.stdout.buffer.write(text.encode())
            sys.stdout.flush()
        except BrokenPipeError:
            self.ended.set()
            # Python would complain when it flushes, at its end, what the reader did not read.
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, sys.stdout.fileno())
            os.close(quiet)
