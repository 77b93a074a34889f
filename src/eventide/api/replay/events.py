"""Replay without a query: the events of several streams, merged into one order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eventide.api.replay.pace import Speed
from eventide.api.replay.run import Replay
from eventide.errors import EvaluationError, SchemaError, listed
from eventide.ingest.ordering import times
from eventide.instants import TimeRange
from eventide.schema import SEQ, TS
from eventide.store import Snapshot

STREAM = "stream"
"""The column that says which stream an event of a merge is of."""


class MergedEvents:
    """Yields the events themselves, of all streams in one order."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self.schema = united(schemas)
        self.name = ", ".join(schemas)

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """The columns of the events."""
        return {self.name: self.schema}

    def take(
        self,
        rows: Mapping[str, pa.RecordBatch],
        clock_us: int,  # noqa: ARG002 - events need not wait for a clock
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield the events in order of time, then of streams, then of arrival."""
        parts = [self.widened(name, each) for name, each in rows.items() if each.num_rows]
        if parts:
            table = pa.Table.from_batches(parts, self.schema).combine_chunks()
            if len(parts) > 1:
                # A stable sort: streams keep their order, and each stream its own of (ts, _seq).
                order = np.argsort(np.concatenate([times(part) for part in parts]), kind="stable")
                table = table.take(pa.array(order))
            yield self.name, table

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield nothing: no event waits."""
        return iter(())

    def widened(self, stream: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return events with the columns of all streams; those that their stream lacks are null."""
        columns = [
            pa.repeat(stream, rows.num_rows)
            if field.name == STREAM
            else rows.column(field.name)
            if field.name in rows.schema.names
            else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def replay_merged(
    snapshots: Sequence[Snapshot],
    times: TimeRange,
    columns: Sequence[str] | None,
    speed: Speed | None,
) -> Replay:
    """Return the replay of the events of streams, merged."""
    if not snapshots:
        message = "no stream is named"
        raise EvaluationError(message, hint='write db.replay_events("cars", "trucks")')
    sources, schemas = [], {}
    for snapshot in snapshots:
        own = snapshot.schema.arrow
        wanted = [n for n in own.names if columns is None or n in (TS, SEQ) or n in columns]
        schemas[snapshot.name] = pa.schema([own.field(name) for name in wanted])
        sources.append((snapshot, wanted, times))
    known = {name for snapshot in snapshots for name in snapshot.schema.arrow.names}
    for name in columns or ():
        if name not in known:
            message = f"none of the streams has a column {name!r}"
            raise SchemaError(message, hint=f"there are {listed(sorted(known))}")
    return Replay(sources, MergedEvents(schemas), speed=speed)


def united(schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the columns of a merge: `ts`, `stream`, `_seq`, and every attribute of any stream."""
    fields: dict[str, tuple[str, pa.DataType]] = {}
    for stream, schema in schemas.items():
        for field in schema:
            first, kind = fields.setdefault(field.name, (stream, field.type))
            message = None
            if field.name == STREAM:
                message = f"{stream} has an attribute {STREAM!r}, which here tells streams apart"
            elif field.type != kind:
                message = f"{field.name!r} is {kind} in {first}, and {field.type} in {stream}"
            if message is not None:
                others = {n for each in schemas.values() for n in each.names}
                hint = f"leave it out: columns={sorted(others - {TS, SEQ, field.name})}"
                raise SchemaError(message, hint=hint)
    own = {name: kind for name, (_, kind) in fields.items()}
    heads = [(TS, own.pop(TS)), (STREAM, pa.string()), (SEQ, own.pop(SEQ))]
    return pa.schema([*heads, *own.items()])
