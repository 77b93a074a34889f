"""A relation: rows by key that change in time, stored as the stream of their changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.result import Result
from eventide.api.stream import Stream, Time, instant
from eventide.engines.history.answer import run_history
from eventide.errors import SchemaError, StoreError, listed
from eventide.ingest.coerce import inferred_table
from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import Project, Scan
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.windows import RowsWindow, Windowed
from eventide.schema import DELETED, TS, Schema
from eventide.store import Appended


class Relation:
    """Rows by key; the newest version of each key counts. `Database.create_relation` makes it.

    Its changes are events of a stream of the same name; the `ts` of a change is the instant from
    which it holds. So a query over windows sees at every instant the rows as they were then, and
    all versions stay in history. Changes may come in any order of time, as events may.
    """

    def __init__(self, stream: Stream, newest_us: Callable[[], int]) -> None:
        if not stream.schema.key:
            message = f"{stream.name!r} is a stream without a key, not a relation"
            hint = f'db.create_relation(name, attributes, key=["{stream.schema.names[0]}"])'
            raise StoreError(message, hint=hint)
        self.stream = stream
        self.newest_us = newest_us

    @property
    def name(self) -> str:
        """The name queries use."""
        return self.stream.name

    @property
    def schema(self) -> Schema:
        """The attributes of the changes, with the key."""
        return self.stream.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The attributes that tell rows apart."""
        return self.schema.key

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes of the rows."""
        return tuple(name for name in self.schema.names if name != DELETED)

    def upsert(self, rows: object, at: Time | None = None) -> Appended:
        """Add rows, replacing those with the same key.

        `rows` may be anything that a stream can append. They hold from `at` on, or each from its
        own `ts`; without either, from the newest time in any stream of the database.
        """
        return self.change(inferred_table(rows), at, deleted=False)

    def delete(self, keys: object, at: Time | None = None) -> Appended:
        """Delete the rows with some keys: dictionaries, a table, or values of a single attribute.

        >>> import tempfile
        >>> import eventide
        >>> cars = eventide.open(tempfile.mkdtemp()).create_relation(
        ...     "owners", {"car": "string", "owner": "string"}, key=["car"]
        ... )
        >>> _ = cars.upsert([{"car": "a", "owner": "Ann"}, {"car": "b", "owner": "Bob"}], at=1)
        >>> _ = cars.delete(["b"], at=2)
        >>> cars.current().rows()
        [{'car': 'a', 'owner': 'Ann'}]
        """
        table = inferred_table(self.by_name(keys))
        named = [name for name in (TS, *self.key) if name in table.column_names]
        return self.change(table.select(named), at, deleted=True)

    def by_name(self, keys: object) -> object:
        """Return keys as rows with attribute names, also if they were given as plain values."""
        if len(self.key) > 1 or isinstance(keys, str) or not isinstance(keys, Sequence):
            return keys
        return [each if isinstance(each, Mapping) else {self.key[0]: each} for each in keys]

    def change(self, table: pa.Table, at: Time | None, *, deleted: bool) -> Appended:
        """Append changes, all of one kind."""
        for name in self.key:
            if name not in table.column_names or table.column(name).null_count:
                what = "is missing" if name not in table.column_names else "is null in some row"
                message = f"the key {name!r} of {self.name} {what}"
                raise SchemaError(message, hint=f"every row needs {listed(self.key)}")
        if DELETED in table.column_names:
            message = f"{DELETED!r} is no attribute of the rows of {self.name}"
            raise SchemaError(message, hint="delete(keys) takes rows away")
        if at is None and TS not in table.column_names:
            at = self.newest_us()
        if at is not None:
            if TS in table.column_names:
                table = table.drop_columns([TS])
            times = pa.repeat(pa.scalar(instant(at), pa.timestamp("us")), table.num_rows)
            table = table.append_column(TS, times)
        missing = [n for n in self.columns if n not in table.column_names] if deleted else []
        for name in missing:
            kind = self.schema.type_of(name).arrow
            table = table.append_column(name, pa.nulls(table.num_rows, kind))
        flags = pa.repeat(pa.scalar(deleted), table.num_rows)
        return self.stream.append(table.append_column(DELETED, flags))

    def current(self, at: Time | None = None) -> Result:
        """Return the rows after all changes, or as they were at a time."""
        period = ALL_TIME if at is None else TimeRange(ALL_TIME.start_us, instant(at) + 1)
        names = (TS, *self.columns, DELETED)
        scan = Scan(self.name, tuple((n, self.schema.type_of(n)) for n in names), period)
        window = Windowed(scan, self.name, RowsWindow(1, self.key, DELETED))
        items = tuple(
            Named(name, Column(f"{self.name}.{name}", self.schema.type_of(name)))
            for name in self.columns
        )
        plan, sources = Standing(Project(window, items)), {self.name: self.stream.snapshot()}
        table = run_history(plan, sources)
        order = pc.sort_indices(table, [(name, "ascending") for name in self.key])
        return Result(table.take(order))

    def __len__(self) -> int:
        return len(self.current())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name} {self.schema.type_of(name)}" for name in self.columns)
        return f"<Relation {self.name} ({fields}), key {listed(self.key)}>"
