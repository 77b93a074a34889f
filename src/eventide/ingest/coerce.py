"""Tables, data frames and dicts become events of a schema."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, TypeGuard, cast

import numpy as np
import pyarrow as pa

from eventide.errors import IngestError, SchemaError, listed
from eventide.ingest.convert import CONVERT_ERRORS, Misfit, check_text, convert
from eventide.schema import MAX_TS_US, MIN_TS_US, SEQ, TIMESTAMP, TS, DataType, Schema

if TYPE_CHECKING:
    from pandas import DataFrame, Index, Series

PLAIN_TYPES: Mapping[str, type] = {
    "bool": bool,
    "int64": int,
    "float64": float,
    "string": str,
    "timestamp": datetime,
}
ACCEPTED = (
    "an Arrow table or record batch, a pandas or polars data frame, a dict, a list of dicts, "
    "or an object with __arrow_c_stream__"
)


def to_events(data: object, schema: Schema) -> pa.Table:
    """Return `ts` and the attributes, in the schema's order, with exactly its Arrow types.

    `data` is a table, a data frame, one dict or a list of dicts; see `ACCEPTED`. Nothing is lost: a
    value that does not fit is an error that names its column and row. Times may have any unit and
    zone; without a zone they are UTC, and nanoseconds are rounded down to microseconds. In dicts a
    missing key is null; in frames a missing column is an error.

    >>> events = to_events({"ts": "2024-01-01T00:00:01+01:00", "speed": 3},
    ...                    Schema.of({"speed": "float64"}))
    >>> events.to_pylist()
    [{'ts': datetime.datetime(2023, 12, 31, 23, 0, 1), 'speed': 3.0}]
    """
    if isinstance(data, pa.Table | pa.RecordBatch) and is_exact(table := as_table(data), schema):
        return table
    types = schema.event_types
    if isinstance(data, Mapping):
        data = [data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        columns = columns_of_dicts(data, types)
    elif is_pandas(data):
        columns = columns_of_pandas(data, types)
    else:
        table = as_table(data)
        check_names(table.column_names, types)
        columns = {name: converted(name, table.column(name), types[name]) for name in types}
    arrays = [columns[name] for name in types]
    return with_times(pa.Table.from_arrays(arrays, schema=schema.event_arrow))


def is_exact(table: pa.Table, schema: Schema) -> bool:
    """Whether a table is what `to_events` would make of it: most have nothing to convert."""
    if not table.schema.equals(schema.event_arrow, check_metadata=True):
        return False
    ts = table.column(0)
    if ts.num_chunks != 1 or ts.null_count or not len(ts):
        return False
    (times,) = ts.chunks
    counts = np.frombuffer(times.buffers()[1], np.int64, len(times), 8 * times.offset)
    if counts.min() < MIN_TS_US or counts.max() > MAX_TS_US:
        return False
    try:
        for name in schema.text_names:
            check_text(table.column(name))
    except CONVERT_ERRORS:
        return False  # converting says in which row
    return True


def as_table(data: object) -> pa.Table:
    """Return tabular data as an Arrow table."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.table(data)
        except (*CONVERT_ERRORS, TypeError) as error:
            message = f"cannot read the {type(data).__name__}: {error}"
            raise IngestError(message, hint=f"pass {ACCEPTED}") from error
    message = f"cannot read events from {type(data).__name__}"
    raise IngestError(message, hint=f"pass {ACCEPTED}")


def inferred_table(data: object) -> pa.Table:
    """Return any data that may be appended as a table, with the types that Arrow infers.

    One dict is one event, as in an append; a dict of lists is a table of these columns.

    >>> inferred_table([{"ts": "2024-01-01", "speed": 3}, {"ts": 0, "lane": 1}]).to_pylist()[1]
    {'ts': datetime.datetime(1970, 1, 1, 0, 0), 'speed': None, 'lane': 1}
    """
    columns = python_columns(data)
    if columns is not None:
        return pa.table({name: inferred_column(name, values) for name, values in columns.items()})
    if is_pandas(data):
        found = series_of_pandas(data)
        return pa.table({name: inferred_series(name, each) for name, each in found.items()})
    return as_table(data)


def python_columns(data: object) -> dict[str, list[object]] | None:
    """Return the values of each column, if the data is a dict or a list of dicts."""
    if isinstance(data, Mapping):
        lists = [isinstance(values, list | tuple) for values in data.values()]
        if not all(lists) or not lists:
            return python_columns([data])
        if len({len(values) for values in data.values()}) > 1:
            message = "the lists differ in length"
            raise IngestError(message, hint="give every column as many values as there are rows")
        check_twice([str(name) for name in data])
        columns = {str(name): list(values) for name, values in data.items()}
    elif isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        rows = rows_of_dicts(data)
        names = dict.fromkeys(key for row in rows for key in row)
        check_twice([str(name) for name in names])
        columns = {str(name): [row.get(name) for row in rows] for name in names}
    else:
        return None
    if not columns:
        message = "there are no events, and so no columns"
        raise SchemaError(message, hint="pass an Arrow table, which has types without rows")
    return columns


def inferred_series(name: str, series: Series | Index) -> pa.ChunkedArray:
    """Return a column of pandas as Arrow has it; NaN is null, as in pandas."""
    try:
        return as_chunked(pa.array(series, from_pandas=True))
    except (*CONVERT_ERRORS, TypeError):
        return inferred_column(name, series.tolist())


def inferred_column(name: str, values: list[object]) -> pa.ChunkedArray:
    """Return Python values as a column of the type that Arrow infers; times are parsed."""
    if name == TS:
        return column_of_values(name, values, TIMESTAMP)
    try:
        return as_chunked(pa.array(values))
    except (*CONVERT_ERRORS, TypeError) as error:
        message = f"column {name!r} has values of several types: {error}"
        hint = "make them alike, or pass an Arrow table"
        raise IngestError(message, hint=hint) from None


def is_pandas(data: object) -> TypeGuard[DataFrame]:
    """Whether it is a pandas data frame, checked without importing pandas."""
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")


def columns_of_pandas(
    frame: DataFrame, types: Mapping[str, DataType]
) -> dict[str, pa.ChunkedArray]:
    """Convert each column; NaN is null, as in pandas."""
    found = series_of_pandas(frame)
    times = times_of_pandas(frame)
    if times is not None and TS not in found:
        found[TS] = times
        if times.name is not None and str(times.name) not in types:
            del found[str(times.name)]  # it is the time, under another name
    check_names(list(found), types)
    columns = {}
    for name, data_type in types.items():
        try:
            column = as_chunked(pa.array(found[name], from_pandas=True))
        except (*CONVERT_ERRORS, TypeError):
            # Objects of several types: the slow way takes them, or names the first that is wrong.
            columns[name] = column_of_values(name, found[name].tolist(), data_type)
        else:
            columns[name] = converted(name, column, data_type)
    return columns


def series_of_pandas(frame: DataFrame) -> dict[str, Series | Index]:
    """Return the columns of a frame by name, and the levels of its index that have one."""
    names = [str(name) for name in frame.columns]
    check_twice(names)
    found: dict[str, Series | Index] = {
        str(name): frame.index.get_level_values(level)
        for level, name in enumerate(frame.index.names)
        if name is not None
    }
    return found | {name: frame.iloc[:, place] for place, name in enumerate(names)}


def times_of_pandas(frame: DataFrame) -> Index | None:
    """Return the index of a frame if it consists of times."""
    is_times = frame.index.nlevels == 1 and frame.index.dtype.kind == "M"
    return frame.index if is_times else None


def as_chunked(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an array as a column; pandas' Arrow types give one already."""
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def check_names(names: Sequence[str], types: Mapping[str, DataType]) -> None:
    """Refuse columns that are missing, unknown, or given twice."""
    check_twice(names)
    check_known(names, types)
    missing = [name for name in types if name not in names]
    if missing:
        message = f"column {listed(missing)} is missing"
        raise SchemaError(message, hint=f"the columns are {listed(list(names))}")


def check_twice(names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        message = f"column {listed(twice)} is there twice"
        raise SchemaError(message, hint="give every column a name of its own")


def check_known(names: Sequence[str], types: Mapping[str, DataType]) -> None:
    """Refuse columns that the stream does not have."""
    unknown = [name for name in names if name not in types]
    if SEQ in unknown:
        message = f"the events have a column {SEQ!r}, which the stream numbers by itself"
        raise SchemaError(
            message, hint=f"drop the column, or rename it: {SEQ.strip('_')!r} is free"
        )
    if unknown:
        message = f"the stream has no attribute {listed([repr(name) for name in unknown])}"
        folded = {name.lower(): name for name in types}
        close = difflib.get_close_matches(str(unknown[0]).lower(), folded, n=1)
        guess = f"did you mean {folded[close[0]]!r}? " if close else ""
        raise SchemaError(message, hint=f"{guess}it has {listed(list(types))}")


def converted(name: str, column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """Convert a column; an error names the row that cannot be converted."""
    try:
        return convert(name, column, data_type)
    except Misfit as misfit:
        raise refusal(misfit) from None


def columns_of_dicts(
    rows: Sequence[object], types: Mapping[str, DataType]
) -> dict[str, pa.ChunkedArray]:
    """Return a column for each name; keys that a row does not have are null."""
    events = rows_of_dicts(rows)
    if not all(event.keys() <= types.keys() for event in events):
        check_known(list(dict.fromkeys(key for event in events for key in event)), types)
    return {
        name: column_of_values(name, [event.get(name) for event in events], data_type)
        for name, data_type in types.items()
    }


def rows_of_dicts(rows: Sequence[object]) -> Sequence[Mapping[str, object]]:
    """Return the rows, each of which has to be a dict."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            message = f"row {number} is {type(row).__name__}, not a dict"
            raise IngestError(message, hint=f"pass {ACCEPTED}")
    return cast("Sequence[Mapping[str, object]]", rows)


def column_of_values(
    name: str, values: list[object], data_type: DataType, first_row: int = 0
) -> pa.ChunkedArray:
    """Convert Python values, which may be of several types."""
    plain = plain_column(values, data_type)
    if plain is not None:
        return pa.chunked_array([plain])
    try:
        return convert(name, pa.chunked_array([pa.array(values)]), data_type)
    except (*CONVERT_ERRORS, TypeError, Misfit):
        if len(values) == 1:
            misfit = Misfit(name, first_row, values[0], data_type)
            raise refusal(misfit) from None
    # Arrow may know no one type for good values (an int and a Decimal, say): convert the halves.
    half = len(values) // 2
    left = column_of_values(name, values[:half], data_type, first_row)
    right = column_of_values(name, values[half:], data_type, first_row + half)
    return pa.chunked_array([*left.chunks, *right.chunks], data_type.arrow)


def plain_column(values: list[object], data_type: DataType) -> pa.Array | None:
    """Return values that all have the Python type of a column, or are null: nothing is lost."""
    expected = PLAIN_TYPES.get(data_type.kind)
    if expected is None or not {*map(type, values)} <= {expected, NoneType}:
        return None
    if expected is datetime and any(each.tzinfo for each in cast("list[datetime]", values) if each):
        return None
    try:
        return pa.array(values, data_type.arrow)
    except CONVERT_ERRORS:
        return None  # converting says in which row


def refusal(misfit: Misfit) -> IngestError:
    """Return the error for a value that does not fit."""
    return IngestError(f"row {misfit.row}, {misfit}", hint=misfit.hint)


def with_times(events: pa.Table, called: str = TS) -> pa.Table:
    """Refuse events without a time; `called` is the user's name for the column of times."""
    ts = events.column(TS)
    if ts.null_count:
        row = ts.is_null().index(True).as_py()
        message = f"row {row}, column {called!r}: null is not a time"
        raise IngestError(message, hint="every event has a time; drop or repair the row")
    return events
