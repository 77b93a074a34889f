"""Rows of a durable query that wait for their receiver, as a checkpoint has them.

They are Arrow streams, one behind the other: rows with the same columns that follow each other are
in one of them. Each says the number of its first row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pyarrow as pa

from eventide.api.live.row_queue import LiveRows


def written_rows(waiting: Sequence[LiveRows]) -> bytes:
    """Write rows out that wait for their receiver."""
    sink = pa.BufferOutputStream()
    for _, alike in groupby(waiting, lambda rows: rows.to_arrow().schema):
        rows = list(alike)
        table = pa.concat_tables([each.to_arrow() for each in rows])
        about = {"first_row": str(rows[0].first_row)}
        schema = table.schema.with_metadata({**(table.schema.metadata or {}), **about})
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(table.cast(schema))
    written: bytes = sink.getvalue().to_pybytes()
    return written


def waiting_rows(written: bytes) -> list[LiveRows]:
    """Read back what `written_rows` wrote."""
    found: list[LiveRows] = []
    source = pa.BufferReader(written)
    while source.tell() < len(written):
        table = pa.ipc.open_stream(source).read_all()
        first = int((table.schema.metadata or {})[b"first_row"])
        found.append(LiveRows(table.replace_schema_metadata(None), first))
    return found
