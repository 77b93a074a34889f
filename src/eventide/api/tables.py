"""Tables in memory as streams, for `eventide.sql`.

A table is first described by the names and types of its columns. Once the query is planned, only
the columns that it reads are converted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from eventide.errors import BindError, EventideError, SchemaError, Span, listed
from eventide.ingest.coerce import (
    as_table,
    check_twice,
    column_of_values,
    converted,
    inferred_column,
    inferred_series,
    is_pandas,
    python_columns,
    series_of_pandas,
    times_of_pandas,
    with_times,
)
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import Statement
from eventide.plan.events.written import written_tables
from eventide.plan.expressions import Column, walk
from eventide.plan.nodes import Filter, Project, Scan, scans_of
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import WINDOW_END, WINDOW_START, WindowAggregate
from eventide.schema import (
    MIN_TS_US,
    NULL,
    SEQ,
    STRING,
    TIMESTAMP,
    TS,
    TYPE_NAMES,
    Attribute,
    DataType,
    Schema,
)
from eventide.store import TableSource

T = TypeVar("T", bound=Collection[object])

Times = str | Mapping[str, str | None] | None
"""The column that holds the times: of every table that has it, or by table; None numbers rows."""

TIME_WORDS = (TS, "time", "timestamp", "date", "datetime", "event_time", "t")


@dataclass(frozen=True, slots=True)
class Table:
    """A table as given: its columns, their types for queries, and which column holds the times."""

    name: str
    schema: Schema
    columns: Mapping[str, pa.ChunkedArray]
    times: str | None
    """The column that holds the times; without one, rows are numbered."""
    called: str
    """What the user calls that column."""
    unreadable: Mapping[str, str]
    """Why a column cannot be read."""
    rows: int

    def source(self, read: set[str]) -> TableSource:
        """Return the rows as events, with the columns that are read."""
        found = {TS: self.moments()}
        schema = Schema(
            tuple(each for each in self.schema.attributes if each.name in read), stored=False
        )
        for attribute in schema.attributes:
            column = self.columns[attribute.name]
            found[attribute.name] = converted(attribute.name, column, attribute.type)
        if SEQ in self.columns:
            found[SEQ] = self.numbers()
        return TableSource(self.name, schema, with_times(pa.table(found), self.called))

    def moments(self) -> pa.ChunkedArray:
        """Return the time of each row; without times, rows are numbered from the earliest time."""
        if self.times is not None:
            return converted(self.called, self.columns[self.times], TIMESTAMP)
        numbers = np.arange(MIN_TS_US, MIN_TS_US + self.rows, dtype=np.int64)
        return pa.chunked_array([pa.array(numbers).cast(pa.timestamp("us"))])

    def numbers(self) -> pa.ChunkedArray:
        """Return the place of each row in the order of arrival, if the table has them."""
        column = self.columns[SEQ]
        if not pa.types.is_integer(column.type):
            message = f"column {SEQ!r} has type {column.type}, but it numbers the events"
            raise SchemaError(message, hint=f"drop it, or rename it: {SEQ.strip('_')!r} is free")
        return column.cast(pa.int64())


def tables_of(given: Mapping[str, object], ts: object = None) -> dict[str, Table]:
    """Describe tables; `ts` names the columns that hold times."""
    wanted = _times(ts, given)
    found = {name: _table(name, data, wanted) for name, data in given.items()}
    if isinstance(wanted, str) and all(each.times != wanted for each in found.values()):
        names = dict.fromkeys(name for each in found.values() for name in each.columns)
        message = f"no table has a column {wanted!r}, which should hold the times"
        raise SchemaError(message, hint=f"there are {listed(list(names))}")
    return found


def plan_tables(statement: Statement, tables: Mapping[str, Table], params: object = None) -> Plan:
    """Return the plan of a query over tables; an error says how to pass them correctly."""
    if statement.cel:
        from eventide.lang.sql.cel.publish import refuse_published

        why, hint = "there is no database to publish in", "leave it out, or use eventide.open(path)"
        refuse_published(statement, why, hint)
    try:
        plan = plan_sql(statement, {name: table.schema for name, table in tables.items()}, params)
        for scan in scans_of(plan):
            if scan.written is None:
                _refuse_unreadable(tables[scan.stream], scan)
        untimed = {name for name, table in tables.items() if table.times is None}
        for span, what, name in uses_of_time(plan, untimed):
            message = f"{what} needs times, and the table {name} has none"
            raise BindError(message, span=span, hint=_time_hint(tables[name]))
    except BindError as error:
        _explain_names(error, statement.text, tables)
        raise error.located_in(statement.text) from None
    return plan


def sources_for(plan: Plan, tables: Mapping[str, Table]) -> dict[str, TableSource]:
    """Return the sources of a plan over tables: of each table, the columns that its scans read."""
    read: dict[str, set[str]] = {}
    for scan in scans_of(plan):
        if scan.written is not None:
            continue
        read.setdefault(scan.stream, set()).update(name for name, _ in scan.columns)
    given = {name: tables[name].source(columns) for name, columns in read.items()}
    return given | written_sources(plan)


def written_sources(plan: Plan) -> dict[str, TableSource]:
    """Return the rows written in the query itself, as events."""
    return {
        name: TableSource(name, Schema.from_arrow(table.schema), table)
        for name, table in written_tables(plan).items()
    }


def _times(ts: object, given: Mapping[str, object]) -> Times:
    """Check which columns are said to hold times."""
    if ts is None or isinstance(ts, str):
        return ts
    named = isinstance(ts, Mapping) and all(
        each is None or isinstance(each, str) for each in ts.values()
    )
    if not named:
        message = f"ts names the column that holds the times, and is {type(ts).__name__}"
        hint = "write ts='when', or ts={'cars': 'when'}; call a table something else than ts"
        raise SchemaError(message, hint=hint)
    assert isinstance(ts, Mapping)
    for name in ts:
        if name not in given:
            message = f"ts names the table {name!r}, which is not passed"
            raise SchemaError(message, hint=f"there are {listed(list(given))}")
    return ts


def _table(name: str, data: object, ts: Times) -> Table:
    """Describe one table."""
    wanted = ts.get(name) if isinstance(ts, Mapping) else ts
    columns, failures, index = _columns(data, wanted)
    given = {each.lower(): each for each in columns}
    for each in columns:
        if given[each.lower()] != each:
            message = f"the table {name} has the columns {each!r} and {given[each.lower()]!r}"
            hint = "rename one of them: names differ by more than case"
            raise SchemaError(message, hint=hint)
    if TS in given:  # names are not case-sensitive
        columns = {TS if each == given[TS] else each: found for each, found in columns.items()}
    numbered = isinstance(ts, Mapping) and name in ts and wanted is None
    if isinstance(ts, str) and ts not in columns:
        wanted = None
    if wanted is not None and wanted not in columns:
        message = f"the table {name} has no column {wanted!r}, which should hold the times"
        raise SchemaError(message, hint=f"there are {listed(list(columns))}")
    if wanted is None and not numbered:
        if TS in columns:
            wanted = TS
        elif index is not None:
            wanted = TS
            columns = {TS: index, **columns}
    if TS in columns and wanted != TS:
        message = f"the table {name} has a column {TS!r} beside the times that are asked for"
        raise SchemaError(message, hint=f"rename it; {TS!r} is what queries call the times")
    attributes = []
    for each, column in columns.items():
        if each in (TS, SEQ):
            continue
        found = None if each in failures else _type_of(column)
        if found is None:
            failures.setdefault(each, f"has type {column.type}, which queries cannot read")
        attributes.append(Attribute(each, found or NULL))
    rows = len(next(iter(columns.values()))) if columns else 0
    schema = Schema(tuple(attributes), stored=False, timed=wanted is not None)
    called = given.get(TS, TS) if wanted in (None, TS) else wanted
    return Table(name, schema, columns, wanted, called, failures, rows)


def _columns(
    data: object, times: str | None
) -> tuple[dict[str, pa.ChunkedArray], dict[str, str], pa.ChunkedArray | None]:
    """Return columns as Arrow arrays, why some cannot be, and the times of a pandas index."""
    values = python_columns(data)
    if values is not None:
        return *_inferred(values, inferred_column, times), None
    if is_pandas(data):
        moments = times_of_pandas(data)
        index = None if moments is None else inferred_series(TS, moments)
        return *_inferred(series_of_pandas(data), inferred_series, times), index
    table = as_table(data)
    check_twice(table.column_names)
    return {name: table.column(name) for name in table.column_names}, {}, None


def _inferred(
    given: Mapping[str, T], infer: Callable[[str, T], pa.ChunkedArray], times: str | None
) -> tuple[dict[str, pa.ChunkedArray], dict[str, str]]:
    """Return columns with the types that Arrow infers, nulls where it cannot, and the reason."""
    found: dict[str, pa.ChunkedArray] = {}
    failures: dict[str, str] = {}
    for name, values in given.items():
        try:
            found[name] = infer(name, values)
        except EventideError as error:
            if name == times or name.lower() == TS:  # values of several types may all be times
                found[name] = column_of_values(name, list(values), TIMESTAMP)
                continue
            failures[name] = error.message.removeprefix(f"column {name!r} ")
            found[name] = pa.chunked_array([pa.nulls(len(values))])
    return found, failures


def _type_of(column: pa.ChunkedArray) -> DataType | None:
    """Return the type that queries see; a column that is all null is text."""
    if column.null_count == len(column) and pa.types.is_null(column.type):
        return STRING
    return DataType.from_arrow(column.type)


def _refuse_unreadable(table: Table, scan: Scan) -> None:
    for name, _ in scan.columns:
        if name in table.unreadable:
            message = f"column {name!r} of {table.name} {table.unreadable[name]}"
            hint = (
                f"leave it out, as in SELECT * EXCLUDE ({name}); types are {', '.join(TYPE_NAMES)}"
            )
            raise BindError(message, span=scan.span, hint=hint)


def uses_of_time(plan: Plan, untimed: Collection[str]) -> Iterator[tuple[Span | None, str, str]]:
    """Yield uses of the times of tables that have none: where, what, which table."""
    scans = [scan for scan in scans_of(plan) if scan.written is None and scan.stream in untimed]
    if not scans:
        return
    for source in plan.children:
        yield from uses_of_time(source, untimed)
    what = plan.time_use or _bounds_in(plan)
    if what is not None:
        yield scans[0].span, what, scans[0].stream


def _bounds_in(plan: Plan) -> str | None:
    """Return the bound that a node above windows by count uses, which have times too."""
    if not isinstance(plan, Project | Filter):
        return None
    source = plan.source
    while isinstance(source, Filter):
        source = source.source
    if not isinstance(source, WindowAggregate):
        return None
    for expression, _ in plan.expressions:
        for part in walk(expression):
            if isinstance(part, Column) and part.name in (WINDOW_START, WINDOW_END):
                return part.name
    return None


def _explain_names(error: BindError, text: str, tables: Mapping[str, Table]) -> None:
    """Say how to pass a table that is missing, or the times of a table without them."""
    name = "" if error.span is None else error.span.of(text).strip('"')
    if not tables and error.message == f"no stream {name!r}":
        passed = f"{name}=table" if name.isidentifier() else f"**{{{name!r}: table}}"
        error.hint = f"pass it: ev.sql(text, {passed})"
    for table in tables.values():
        if table.times is None and error.message == f"no column {TS!r} in {table.name}":
            error.hint = f"its rows have no times: {_time_hint(table)}"


def _time_hint(table: Table) -> str:
    """Suggest which column holds the times: one of type timestamp, else one with such a name."""
    kinds = {each.name: each.type for each in table.schema.attributes}
    times = [name for name, kind in kinds.items() if kind == TIMESTAMP]
    named = [name for name in kinds if name.lower() in TIME_WORDS]
    found = next(iter([*times, *named]), None)
    if found is None:
        return f"say which column holds them with ts=…; there are {listed(list(kinds))}"
    return f"say which column holds them, as in ev.sql(text, ts={found!r}, …)"
