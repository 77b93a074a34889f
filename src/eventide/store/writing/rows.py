"""Events on their way into a stream: checked, and with the columns that it has now."""

from __future__ import annotations

import pyarrow as pa

from eventide.errors import SchemaError, listed
from eventide.schema import MAX_TS_US, MIN_TS_US, TS, Schema
from eventide.store.order import int64_view
from eventide.store.reading.scan import StreamColumns


def checked_rows(events: pa.Table, schema: Schema) -> pa.RecordBatch:
    """Return events as one batch, refusing rows that do not fit the stream."""
    expected = schema.event_arrow
    is_same = events.schema.equals(expected, check_metadata=True)
    if not is_same and (
        events.schema.names != expected.names or events.schema.types != expected.types
    ):
        found = listed([f"{field.name} {field.type}" for field in events.schema])
        message = f"the events have {found}"
        wanted = listed([f"{field.name} {field.type}" for field in expected])
        raise SchemaError(message, hint=f"the stream takes {wanted}, in this order")
    if events.column(TS).null_count:
        message = "ts is null in some row"
        raise SchemaError(message, hint="every event has a time")
    batches = events.to_batches() if is_same else []
    if len(batches) == 1:
        (rows,) = batches
    else:
        columns = [joined_chunks(column) for column in events.columns]
        rows = pa.RecordBatch.from_arrays(columns, schema=expected)
    ts = int64_view(rows.column(0))
    if len(ts) and not (ts.min() >= MIN_TS_US and ts.max() <= MAX_TS_US):
        message = "ts lies outside the years 0001 to 9999 in some row"
        raise SchemaError(message, hint="ts counts microseconds since 1970-01-01 UTC")
    return rows


def with_present_columns(
    rows: pa.RecordBatch, made_for: StreamColumns | None, present: StreamColumns
) -> pa.RecordBatch:
    """Return rows that were made for some columns with the columns that there are now."""
    if made_for is None or made_for.ids == present.ids:
        return rows
    known = dict(zip(made_for.ids, rows.columns[1:], strict=True))
    expected = present.schema.event_arrow
    columns = [
        known[identity] if identity in known else pa.nulls(rows.num_rows, field.type)
        for identity, field in zip(present.ids, list(expected)[1:], strict=True)
    ]
    return pa.RecordBatch.from_arrays([rows.column(0), *columns], schema=expected)


def joined_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copying only to join several."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
