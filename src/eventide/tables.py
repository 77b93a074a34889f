"""Tables in memory as streams: what `eventide.sql` is asked over."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from eventide.errors import BindError, SchemaError, listed
from eventide.ingest.coerce import inferred_table, to_events
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Plan
from eventide.schema import SEQ, TIMESTAMP, TS, DataType, Schema
from eventide.store import TableSource


def plan_tables(text: str, sources: Mapping[str, TableSource]) -> Plan:
    """Return the plan of a query over tables; of a table that is missing, say how to pass it."""
    try:
        return plan_sql(text, {name: source.schema for name, source in sources.items()})
    except BindError as error:
        name = "" if error.span is None else error.span.of(text).strip('"')
        if not sources and error.message == f"no stream {name!r}":
            passed = f"{name}=table" if name.isidentifier() else f"**{{{name!r}: table}}"
            error.hint = f"pass it: ev.sql(text, {passed})"
        raise


def table_sources(tables: Mapping[str, object]) -> dict[str, TableSource]:
    """Return tables in memory as streams, by their names."""
    return {name: table_source(name, data) for name, data in tables.items()}


def table_source(name: str, data: object) -> TableSource:
    """Return a table in memory as a stream; its `_seq`, or else its rows, tell arrival order."""
    table = inferred_table(data)
    if TS not in table.column_names:
        message = f"the table {name} has no column {TS!r}, which holds the time of each row"
        raise SchemaError(message, hint=_time_hint(table.schema))
    schema = Schema.from_arrow(table.schema)
    if SEQ not in table.column_names:
        return TableSource(name, schema, to_events(table, schema))
    events = to_events(table.drop_columns([SEQ]), schema)
    if not pa.types.is_integer(table.column(SEQ).type):
        message = f"column {SEQ!r} has type {table.column(SEQ).type}, but it numbers the events"
        raise SchemaError(message, hint=f"drop it, or rename it: {SEQ.strip('_')!r} is free")
    seq = table.column(SEQ).cast(pa.int64())
    return TableSource(name, schema, events.append_column(SEQ, seq))


def _time_hint(schema: pa.Schema) -> str:
    """Suggest which column to rename: the one of times, else one that is called so."""
    times = [field.name for field in schema if DataType.from_arrow(field.type) == TIMESTAMP]
    words = (TS, "time", "timestamp", "date", "datetime", "event_time", "t")
    named = [name for name in schema.names if name.lower() in words]
    found = next(iter([*times, *named]), None)
    if found is None:
        return f"rename the column of times to {TS!r}; there are {listed(schema.names)}"
    return f"rename {found!r} to {TS!r}"
